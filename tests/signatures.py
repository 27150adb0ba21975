"""Arguments of public functions: names, defaults, and where each is described."""

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from typing import Any

import fairaudit_rs as fa
from fairaudit_rs.results.result import Serializable

ROOMS = ("metrics", "models", "datasets")
#: Classes whose instances come from functions, or from methods of their own: nobody else makes one.
MADE_BY_US = {
    "Cells",
    "GevFit",
    "SearchResult",
    "Quality",
    "PowerPlan",
    "CalibrationReport",
    "Distances",
    "FairMetric",
    "Metric",
    "Model",
}


def public() -> dict[str, Callable[..., Any]]:
    """Return public functions, constructors and methods that take something, by name."""
    found: dict[str, Callable[..., Any]] = {}
    for module in (fa, *(getattr(fa, room) for room in ROOMS)):
        for name in module.__all__:
            entry = getattr(module, name)
            if inspect.isfunction(entry):
                found[name] = entry
            elif inspect.isclass(entry):
                found |= of_class(name, entry)
    return found


def of_class(name: str, kind: type) -> dict[str, Callable[..., Any]]:
    """Return the constructor of a class, unless only we call it, and its methods with arguments."""
    found: dict[str, Callable[..., Any]] = {}
    if name not in MADE_BY_US and not issubclass(kind, Serializable):
        found[name] = kind
    for member in dir(kind):
        method = getattr(kind, member)
        ours = str(getattr(method, "__module__", "")).startswith("fairaudit_rs")
        if not member.startswith("_") and ours and callable(method) and arguments_of(method):
            found[f"{name}.{member}"] = method
    return found


def arguments_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the arguments of a function, without self."""
    given = inspect.signature(function).parameters
    return {name: value for name, value in given.items() if name != "self" and name[0] != "_"}


# -- one default, one kind ---------------------------------------------------------------------

#: By argument, and then by function, why it is another one there. ``*`` for all functions: the
#: name means what the function says.
Exceptions = Mapping[str, Mapping[str, str]]


def differing(functions: Mapping[str, Callable[..., Any]], exceptions: Exceptions) -> list[str]:
    """Return what has not one default and one kind in all functions, and idle exceptions."""
    by_name: dict[str, dict[str, tuple[str, str]]] = defaultdict(dict)
    for label, function in functions.items():
        for name, argument in arguments_of(function).items():
            default = "none" if argument.default is argument.empty else repr(argument.default)
            kind = "by name" if argument.kind is argument.KEYWORD_ONLY else "by place"
            by_name[name][label] = (f"default {default}", kind)
    found = []
    for name, given in by_name.items():
        excepted = exceptions.get(name, {})
        rest = {
            label: what
            for label, what in given.items()
            if not any(fnmatch(label, pattern) for pattern in excepted)
        }
        seen: dict[tuple[str, str], str] = {}
        for label, what in rest.items():
            seen.setdefault(what, label)
        if len(seen) > 1:
            words = "; ".join(f"{', '.join(what)} in {label}" for what, label in seen.items())
            found.append(f"{name} has {words}")
        usual = next(iter(seen), None)
        for pattern in excepted:
            hit = [what for label, what in given.items() if fnmatch(label, pattern)]
            if not hit or (pattern != "*" and set(hit) == {usual}):
                found.append(f"the exception for {name} in {pattern} is not needed")
    absent = [name for name in exceptions if name not in by_name]
    return found + [f"the exception for {name} is of no argument" for name in absent]


# -- one description ---------------------------------------------------------------------------

REFERENCE = re.compile(r"\b[Aa]s (?:in|for) `([\w.]+)`|\bSee `([\w.]+)`|\bsee `([\w.]+)`")
ENTRY = re.compile(r"(\w+(?:, \w+)*)(?: : (.*))?$")


@dataclass(frozen=True)
class Description:
    """The description of an argument: its type, its meaning, and where else to look."""

    type: str
    text: str

    @property
    def reference(self) -> str | None:
        """The function whose description is meant."""
        found = REFERENCE.match(self.text)
        return found and next(filter(None, found.groups()))


def described(function: Callable[..., Any]) -> dict[str, Description]:
    """Return the entries of the parameters in a docstring, by name."""
    lines = (inspect.getdoc(function) or "").split("\n")
    heads = ("Parameters", "Attributes")
    starts = [i for i in range(len(lines) - 1) if lines[i] in heads and lines[i + 1][:3] == "---"]
    found: dict[str, Description] = {}
    for start in starts:
        names: list[str] = []
        for i, line in enumerate(lines[start + 2 :], start + 2):
            if i + 1 < len(lines) and lines[i + 1][:3] == "---":
                break
            if line and line[0] != " ":
                entry = ENTRY.match(line)
                assert entry, line
                names = entry[1].split(", ")
                types = (entry[2] or "").removesuffix(", optional")
                each = types.split(", ")
                own = each if len(each) == len(names) else [types] * len(names)
                found |= {
                    name: Description(kind, "") for name, kind in zip(names, own, strict=True)
                }
            for name in names if line[:1] == " " else ():
                known = found[name]
                found[name] = Description(known.type, f"{known.text} {line.strip()}".strip())
    return found


def undescribed(functions: Mapping[str, Callable[..., Any]]) -> list[str]:
    """Return arguments that no docstring describes, here or where it refers to."""
    found = []
    for label, function in functions.items():
        names = list(arguments_of(function))
        if len(names) == 1 and not described(function):
            # The sentence says what happens to the one argument.
            continue
        for name in names:
            reason = why_undescribed(label, name, functions)
            if reason:
                found.append(f"{name} of {label} {reason}")
    return found


def why_undescribed(
    label: str, name: str, functions: Mapping[str, Callable[..., Any]], seen: tuple[str, ...] = ()
) -> str | None:
    """Return why an argument is not described, None where it is."""
    if label not in functions:
        # A class that only we make lists what its arguments are among its attributes.
        kind = getattr(fa.metrics, label)
        return None if name in described(kind) else f"is not described in {label}"
    if name not in arguments_of(functions[label]):
        return f"is said to be described in {label}, which has no such argument"
    entries = described(functions[label])
    if name == "random_state" and "``random_state`` is an alias" in entries["rng"].text:
        return None
    if name not in entries:
        return "is not described"
    entry = entries[name]
    if not entry.text:
        return "has an empty description"
    if entry.reference is None:
        return None
    home = label.rpartition(".")[0]
    targets = [entry.reference, f"{home}.{entry.reference}"]
    known = {*functions, *MADE_BY_US}
    target = next((text for text in targets if text in known), None)
    if target is None:
        return f"is said to be described in {entry.reference}, which is not public"
    if target in seen:
        return f"is described nowhere: {' -> '.join([*seen, target])}"
    return why_undescribed(target, name, functions, (*seen, label))


def texts_of(name: str, functions: Mapping[str, Callable[..., Any]]) -> list[str]:
    """Return what docstrings say of an argument where they do not refer to others."""
    entries = [(function, described(function).get(name)) for function in functions.values()]
    return [
        entry.text
        for function, entry in entries
        if entry and entry.reference is None and name in arguments_of(function)
    ]


def types_of(name: str, functions: Mapping[str, Callable[..., Any]]) -> dict[str, list[str]]:
    """Return the types that docstrings give an argument, with the functions of each."""
    found: dict[str, list[str]] = defaultdict(list)
    for label, function in functions.items():
        entry = described(function).get(name)
        if name in arguments_of(function) and entry and entry.reference is None:
            found[entry.type].append(label)
    return dict(found)
