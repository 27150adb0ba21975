"""Policies in files: ``fairaudit.toml``, or a table of ``pyproject.toml``.

Strict: a key that is not known is an error that names the nearest one, and every error names the
file and the line.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, TypeVar

from ..errors import ArgumentError, ArgumentTypeError, FairAuditError, FileError
from .criterion import check_names, known_keys
from .toml_lines import Path, key_lines

#: Columns of the data by the arguments that they are given to, and whether there may be several.
ROLES = {
    "y_true": False,
    "y_pred": False,
    "y_score": False,
    "sensitive_features": True,
    "strata": True,
    "clusters": True,
    "sample_weight": False,
}
_PYPROJECT = "pyproject.toml"

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PolicyFile:
    """The content of a policy file, with the line of each key."""

    name: str
    content: Mapping[str, Any]
    #: Where the content stands in the file.
    place: Path
    lines: Mapping[Path, int]

    def part(self, *keys: str | int) -> Any:
        """Return what stands under keys; None where there is nothing."""
        found: Any = self.content
        for key in keys:
            if isinstance(key, str) and key not in found:
                return None
            found = found[key]
        return found

    def header(self, *keys: str) -> str:
        """Return the header of a table, or of one of an array of tables."""
        name = ".".join(map(str, (*self.place, *keys)))
        return f"[[{name}]]" if len(keys) > 1 else f"[{name}]"

    def made(self, make: Callable[[Any], T], *keys: str | int) -> T:
        """Make something of what stands under keys; errors say in which line."""
        content = self.part(*keys)
        try:
            return make(content)
        except FairAuditError as error:
            raise self._located(error, content, keys) from None

    def _located(
        self, error: FairAuditError, content: Any, keys: tuple[str | int, ...]
    ) -> FairAuditError:
        """Return an error with the line of the key that its message begins with."""
        message = str(error)
        place = (*self.place, *keys)
        if isinstance(content, Mapping):
            subjects = [key for key in content if message.startswith(f"{key} ")]
            place = (*place, *sorted(subjects, key=len)[-1:])
            inner = re.match(r"\w+ of '([^']*)' is ", message)
            if inner and (*place, inner[1]) in self.lines:
                place = (*place, inner[1])
        return type(error)(
            f"{self.name}{self._at(place)}: {message}", argument=error.argument, code=error.code
        )

    def _at(self, place: Path) -> str:
        """Return the line of a place, or of the nearest table around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return f", line {self.lines[place]}" if place else ""


def read_policy(path: str | FilePath) -> PolicyFile:
    """Return what a file says of policy and roles."""
    if not isinstance(path, str | FilePath):
        raise ArgumentTypeError(
            f"path is {path!r}; accepted: the path of a .toml file", argument="path"
        )
    name = str(path)
    try:
        text = FilePath(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise ArgumentError(f"{name}, line {line}: is no UTF-8 text; accepted: TOML") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{name} cannot be read: {reason}") from None
    # As tomllib counts lines; a mark of the encoding is no part of the text.
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unreadable(name, text, str(error)) from None
    place: Path = ("tool", "fairaudit") if FilePath(path).name == _PYPROJECT else ()
    found = PolicyFile(name=name, content=content, place=(), lines=key_lines(text))
    for key in place:
        found = PolicyFile(
            name=name,
            content=found.part(str(key)) or {},
            place=(*found.place, key),
            lines=found.lines,
        )
    where = found.header() if place else "the file"
    found.made(lambda whole: known_keys(where, whole, ["policy", "roles"]))
    return found


def _unreadable(name: str, text: str, reason: str) -> ArgumentError:
    """Return the error of a text that is no TOML."""
    match = re.search(r" \(at line (\d+), column \d+\)$| \(at end of document\)$", reason)
    if match is None:
        return ArgumentError(f"{name}: is no TOML: {reason}")
    line = match[1] or 1 + text.rstrip("\n").count("\n")
    return ArgumentError(f"{name}, line {line}: is no TOML: {reason[: match.start()]}")


def read_roles(path: str | FilePath) -> dict[str, Any]:
    """Return the columns that a file names in ``[roles]``, by argument.

    ``combine`` has attributes by name, each with the columns of 0 and 1 that it is made of.
    """
    found = read_policy(path)
    return {} if found.part("roles") is None else found.made(_roles, "roles")


def _roles(content: Any) -> dict[str, Any]:
    known_keys("[roles]", content, [*ROLES, "combine"])
    return {
        name: _combined(value) if name == "combine" else _columns(name, value)
        for name, value in content.items()
    }


def _combined(value: object) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping) or not all(
        isinstance(columns, list) for columns in value.values()
    ):
        raise ArgumentTypeError(
            f"combine is {value!r}; accepted: attributes, each with a list of columns, as "
            '{ race = ["black", "white"] }',
            argument="combine",
        )
    return {name: check_names(f"combine of {name!r}", columns) for name, columns in value.items()}


def _columns(name: str, value: object) -> str | tuple[str, ...]:
    if isinstance(value, str) and value:
        return (value,) if ROLES[name] else value
    if not ROLES[name] or not isinstance(value, list) or not value:
        many = ", or a list of them" if ROLES[name] else ""
        raise ArgumentTypeError(
            f"{name} is {value!r}; accepted: the name of a column{many}", argument=name
        )
    return check_names(name, value)


# -- writing -----------------------------------------------------------------------------------


def write_toml(tables: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Return tables as TOML, each under its header."""
    return "\n".join(
        "\n".join(
            [
                header,
                *(f"{quote_key(key)} = {value_text(entry)}" for key, entry in table.items()),
                "",
            ]
        )
        for header, table in tables
    )


def quote_key(key: str) -> str:
    """Return a key, in quotes where it needs some."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)


def value_text(value: Any) -> str:
    """Return a plain value as TOML writes it."""
    if isinstance(value, str):
        # JSON escapes as TOML does, but for this one letter; halves of surrogates are in no file.
        text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        return text.encode("utf-8", "replace").decode()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        pairs = (f"{quote_key(key)} = {value_text(entry)}" for key, entry in value.items())
        inside = ", ".join(pairs)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    return repr(value)
