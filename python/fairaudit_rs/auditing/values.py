"""Check and convert the values of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, get_args

from .. import arguments
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import LensName
from .criterion import Criterion, check_label, check_names
from .keys import argument_of

#: The lowest minimum group size, in eligible rows: below it, verdicts are wrong more often than
#: stated.
LEAST_FLOOR = 30
#: Default cuts, for attributes of this name that hold numbers.
DEFAULT_BANDS: Mapping[str, tuple[float, ...]] = MappingProxyType({"age": (25, 45)})


def check_text(name: str, value: object, empty: bool = False) -> str:
    """Return a text, not empty unless it may be."""
    if isinstance(value, str) and (empty or value.strip()):
        return value
    error = ArgumentError if isinstance(value, str) else ArgumentTypeError
    raise error(
        f"{name} is {value!r}; accepted: a text{'' if empty else ', not empty'}",
        argument=argument_of(name),
    )


def check_criteria(value: object) -> tuple[Criterion, ...]:
    """Return the criteria; refuse two about the same question."""
    accepted = "a list of Criterion, one or more"
    if isinstance(value, Mapping) or not arguments.is_listing(value):
        raise ArgumentTypeError(f"criteria is {value!r}; accepted: {accepted}", argument="criteria")
    criteria = tuple(value)
    if not criteria:
        raise ArgumentError(f"criteria is empty; accepted: {accepted}", argument="criteria")
    seen: set[Any] = set()
    for criterion in criteria:
        if not isinstance(criterion, Criterion):
            raise ArgumentTypeError(
                f"criteria holds {criterion!r}; accepted: {accepted}", argument="criteria"
            )
        if criterion.lens is not None:
            _check_overlap(criterion, [lens for lens in seen if isinstance(lens, Criterion)])
            seen.add(criterion)
            continue
        key = (criterion.metric, criterion.ratio is None, criterion.attributes, criterion.reference)
        if key in seen:
            kind = "ratio" if criterion.ratio is not None else "tolerance"
            raise ArgumentError(
                f"criteria has {criterion.metric} with a {kind} twice. Keep one criterion for each "
                "metric, attributes and reference.",
                argument="criteria",
            )
        seen.add(key)
    return criteria


def _check_overlap(criterion: Criterion, others: Iterable[Criterion]) -> None:
    """Refuse a second criterion about the same lens and attribute."""
    for other in others:
        both = set(criterion.attributes or other.attributes or ()) & set(other.attributes or ())
        if criterion.lens == other.lens and (
            None in (criterion.attributes, other.attributes) or both
        ):
            about = f" for {' and '.join(sorted(both))}" if both else ""
            raise ArgumentError(
                f"criteria has the lens {criterion.lens} twice{about}. Keep one criterion for each "
                "lens and attribute.",
                argument="criteria",
            )


def check_cuts(value: object) -> Mapping[str, tuple[float, ...]]:
    """Return the cuts of each attribute."""
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(
            f"bands is {value!r}; accepted: cuts by attribute, such as {{'age': (25, 45)}}",
            argument="bands",
        )
    return MappingProxyType(
        {check_text("bands", name): _cuts(name, cuts) for name, cuts in value.items()}
    )


def _cuts(attribute: str, value: object) -> tuple[float, ...]:
    name = f"bands of {attribute!r}"
    accepted = "numbers that grow, such as 25 and 45"
    if isinstance(value, Mapping) or not arguments.is_listing(value):
        raise ArgumentTypeError(f"{name} is {value!r}; accepted: {accepted}", argument="bands")
    # Whole numbers stay as they are, because they become the names of groups.
    cuts = tuple(cut if isinstance(cut, int) else arguments.finite(name, cut) for cut in value)
    for cut in cuts:
        arguments.finite(name, cut)
    if not cuts or any(low >= high for low, high in pairwise(cuts)):
        raise ArgumentError(f"{name} is {value!r}; accepted: {accepted}", argument="bands")
    return cuts


def lens_names(value: object) -> Any:
    """Return "auto", or lenses by name."""
    words = get_args(LensName)
    if isinstance(value, str) and value == "auto":
        return "auto"
    if not arguments.is_listing(value):
        accepted = ", ".join(map(repr, words))
        error = ArgumentError if isinstance(value, str) else ArgumentTypeError
        raise error(
            f"lenses is {value!r}; accepted: 'auto', or a list of {accepted}", argument="lenses"
        )
    found = check_names("lenses", value)
    if not found:
        raise ArgumentError(
            "lenses is empty; accepted: 'auto', or a list of lenses", argument="lenses"
        )
    return tuple(arguments.choice("lenses", lens, words) for lens in found)


#: Options of each rule, with their types.
_OPTIONS: Mapping[str, Mapping[str, type]] = {
    "nyc_ll144": {"sex": str, "race": str, "leave_out": bool, "date": str, "data": str}
}


def check_rule_options(rule: str | None, value: object) -> Mapping[str, str | bool]:
    """Return the options of a rule, each checked for its type."""
    # The rule itself is checked later, so it may be anything here.
    known = _OPTIONS.get(rule, {}) if isinstance(rule, str) else {}
    accepted = ", ".join(map(repr, known)) if known else f"no options with the rule {rule!r}"
    if not isinstance(value, Mapping):
        raise ArgumentTypeError(
            f"rule_options is {value!r}; accepted: a table of options: {accepted}",
            argument="rule_options",
        )
    found: dict[str, str | bool] = {}
    for name, option in value.items():
        if name not in known:
            raise ArgumentError(
                f"rule_options has {name!r}; accepted: {accepted}", argument="rule_options"
            )
        is_text = known[name] is str
        what = f"rule_options of {name!r}"
        found[name] = check_text(what, option) if is_text else arguments.flag(what, option)
    return MappingProxyType(found)


def fair_lending_criteria(ratio: float | None, references: object) -> list[Criterion]:
    """Return the criteria of fair_lending: one ratio, and a reference group for each attribute."""
    if ratio is None:
        raise ArgumentError(
            "ratio is None, and fair_lending needs it. Pass the impact ratio below which a group "
            "is flagged, such as 0.8; no regulation sets one.",
            argument="ratio",
            code="missing-argument",
        )
    if not isinstance(references, Mapping) or not references:
        raise ArgumentError(
            f"references is {references!r}; accepted for fair_lending: a dict with the reference "
            "group of each attribute, such as {'race': 'white'}",
            argument="references",
        )
    for name, group in references.items():
        for part in group if isinstance(group, tuple) else (group,):
            check_label(f"references of {name!r}", part)
    return [
        Criterion(metric="selection_rate", ratio=ratio, attributes=(name,), reference=group)
        for name, group in references.items()
    ]
