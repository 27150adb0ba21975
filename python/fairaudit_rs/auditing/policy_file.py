"""Read and write policy files: ``fairaudit.toml``, or a table of ``pyproject.toml``.

Reading is strict: an unknown key is an error that names the nearest known one, and every error
names the file and the line.
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
from .keys import argument_of, check_names, known_keys
from .toml_lines import KeyPath, key_lines

#: Arguments that take columns of the data, and whether each takes several columns.
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
    #: The keys under which the content stands in the file; () for the whole file.
    place: KeyPath
    lines: Mapping[KeyPath, int]

    def part(self, *keys: str | int) -> Any:
        """Return the value under nested keys; None if there is none."""
        value: Any = self.content
        for key in keys:
            if isinstance(key, str) and key not in value:
                return None
            value = value[key]
        return value

    def header(self, *keys: str) -> str:
        """Return the header of a table, or of an entry in an array of tables."""
        name = ".".join(map(str, (*self.place, *keys)))
        return f"[[{name}]]" if len(keys) > 1 else f"[{name}]"

    def place_of(self, table: str, key: str) -> str | None:
        """Return the file and the line of a key; None if the file does not have it."""
        if key not in (self.part(table) or {}):
            return None
        return f"{self.name}{self._line_of((*self.place, table, key))}"

    def convert(self, make: Callable[[Any], T], *keys: str | int) -> T:
        """Convert the value under nested keys; errors name the file and the line."""
        content = self.part(*keys)
        try:
            return make(content)
        except FairAuditError as error:
            raise self._located(error, content, keys) from None

    def _located(
        self, error: FairAuditError, content: Any, keys: tuple[str | int, ...]
    ) -> FairAuditError:
        """Return an error with the file and the line of its argument."""
        message = str(error)
        place = (*self.place, *keys)
        if isinstance(content, Mapping):
            key = argument_of(error.argument or "")
            if key in content:
                place = (*place, key)
            inner = re.match(r"\w+ of '([^']*)' is ", message)
            if inner and (*place, inner[1]) in self.lines:
                place = (*place, inner[1])
        return error.with_message(f"{self.name}{self._line_of(place)}: {message}")

    def _line_of(self, place: KeyPath) -> str:
        """Return the line of a key, or of the nearest table around it."""
        while place and place not in self.lines:
            place = place[:-1]
        return f", line {self.lines[place]}" if place else ""


def read_policy(path: str | FilePath) -> PolicyFile:
    """Return the content of a file, whose only tables are the policy and the roles."""
    if not isinstance(path, str | FilePath):
        raise ArgumentTypeError(
            f"path is {path!r}; accepted: the path of a .toml file", argument="path"
        )
    name = str(path)
    try:
        text = FilePath(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        line = 1 + error.object[: error.start].count(b"\n")
        raise ArgumentError(
            f"{name}, line {line}: not UTF-8 text. Save the file as UTF-8.", argument="path"
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{name} cannot be read: {reason}", argument="path") from None
    # Lines are counted as tomllib does, without the byte order mark.
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    try:
        content = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise _unreadable(name, text, str(error)) from None
    place: KeyPath = ("tool", "fairaudit") if FilePath(path).name == _PYPROJECT else ()
    found = PolicyFile(name=name, content=content, place=(), lines=key_lines(text))
    for key in place:
        found = PolicyFile(
            name=name,
            content=found.part(str(key)) or {},
            place=(*found.place, key),
            lines=found.lines,
        )
    where = found.header() if place else "the file"
    found.convert(lambda whole: known_keys(where, whole, ["policy", "roles"]))
    return found


def _unreadable(name: str, text: str, reason: str) -> ArgumentError:
    """Return the error about a text that is not valid TOML."""
    match = re.search(r" \(at line (\d+), column \d+\)$| \(at end of document\)$", reason)
    if match is None:
        return ArgumentError(f"{name}: not valid TOML: {reason}", argument="path")
    line = match[1] or 1 + text.rstrip("\n").count("\n")
    text = f"{name}, line {line}: not valid TOML: {reason[: match.start()]}"
    if "Invalid value" in reason:
        text += '. Texts need quotes, as in y_true = "repaid"'
    return ArgumentError(text, argument="path")


def read_roles(path: str | FilePath) -> dict[str, Any]:
    """Return the columns that a file names in ``[roles]``, by argument.

    ``combine`` has attributes by name, each with the columns of 0 and 1 that are combined to it.
    """
    found = read_policy(path)
    return {} if found.part("roles") is None else found.convert(_roles, "roles")


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
    """Return a key, in quotes if TOML requires them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else value_text(key)


def value_text(value: Any) -> str:
    """Return a plain value in TOML syntax."""
    if isinstance(value, str):
        # JSON and TOML escape alike except for DEL; lone surrogates cannot be encoded.
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
