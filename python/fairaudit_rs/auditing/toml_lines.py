"""Where the keys of a TOML text stand: what `tomllib` does not tell.

The text is one that `tomllib` has read, so that nothing is checked here: strings, comments and
brackets are only told apart, for a key that stands in one of them is none.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

#: Of keys, and of places in arrays.
Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'""")
_DOT = re.compile(r"[ \t]*\.[ \t]*")
#: Values that are neither arrays nor inline tables; the longest quotes first.
_SCALAR = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}(?!")'
    r"|'''.*?'{3,5}(?!')"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|[^,\]}#\n]+",
    re.DOTALL,
)


def key_lines(text: str) -> Mapping[Path, int]:
    """Return the line, from 1, of every key and table header; entries of arrays have a number."""
    return _Scanner(text).lines


class _Scanner:
    """Goes through a text once, from key to value to key."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.lines: dict[Path, int] = {}
        #: How many tables an array of tables has so far.
        self._tables: dict[Path, int] = {}
        table: Path = ()
        self._skip()
        while self.at < len(text):
            table = self._header() if text[self.at] == "[" else self._pair(table)
            self._skip()

    def _skip(self) -> None:
        """Go over blanks, line ends and comments."""
        self.at = self._end(_BLANK)

    def _end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        assert match is not None
        return match.end()

    def _header(self) -> Path:
        """Read ``[a.b]`` or ``[[a.b]]``; return the path of the table that begins."""
        start, is_array = self.at, self.text.startswith("[[", self.at)
        self.at += 2 if is_array else 1
        *parents, last = self._keys()
        path: Path = ()
        for key in parents:
            path = self._latest((*path, key))
        path = (*path, last)
        self.at = self.text.index("]]" if is_array else "]", self.at) + (2 if is_array else 1)
        if is_array:
            self._note(path, start)
            self._tables[path] = self._tables.get(path, 0) + 1
        path = self._latest(path)
        self._note(path, start)
        return path

    def _latest(self, path: Path) -> Path:
        """Return the path of the last table of an array of tables; others are themselves."""
        return (*path, self._tables[path] - 1) if path in self._tables else path

    def _pair(self, table: Path) -> Path:
        """Read ``key = value`` in a table; return the path of the table."""
        path, start = table, self.at
        for key in self._keys():
            path = (*path, key)
            self._note(path, start)
        self.at = self.text.index("=", self.at) + 1
        self._value(path)
        return table

    def _keys(self) -> list[str]:
        """Read a key, or several with dots between."""
        found = []
        while True:
            self.at = self._end(re.compile(r"[ \t]*"))
            end = self._end(_KEY)
            name, self.at = self.text[self.at : end], end
            found.append(tomllib.loads(f"x = {name}")["x"] if name[0] in "\"'" else name)
            dot = _DOT.match(self.text, self.at)
            if dot is None:
                return found
            self.at = dot.end()

    def _value(self, path: Path) -> None:
        self._skip()
        opening = self.text[self.at]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            self.at = self._end(_SCALAR)

    def _array(self, path: Path) -> None:
        self.at += 1
        place = 0
        while not self._closed("]"):
            self._note((*path, place), self.at)
            self._value((*path, place))
            place += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while not self._closed("}"):
            self._pair(path)

    def _closed(self, bracket: str) -> bool:
        """Go to the next entry; whether the bracket stands there instead."""
        self._skip()
        if self.text[self.at] == ",":
            self.at += 1
            self._skip()
        if self.text[self.at] != bracket:
            return False
        self.at += 1
        return True

    def _note(self, path: Path, at: int) -> None:
        self.lines.setdefault(path, 1 + self.text.count("\n", 0, at))
