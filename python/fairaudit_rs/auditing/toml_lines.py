"""Finds the line of each key in a TOML text, which `tomllib` does not provide.

`tomllib` has read the text before, so nothing is checked here. Strings, comments and brackets are
only recognised so that their content is not taken for keys.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping

#: The path to a value: keys of tables and positions in arrays.
KeyPath = tuple[str | int, ...]

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


def key_lines(text: str) -> Mapping[KeyPath, int]:
    """Return the line, from 1, of every key, table header and entry of an array."""
    return _Scanner(text).lines


class _Scanner:
    """Scans a text once, from key to value to key."""

    def __init__(self, text: str) -> None:
        self.text, self.position = text, 0
        self.lines: dict[KeyPath, int] = {}
        #: Number of tables in each array of tables so far.
        self._tables: dict[KeyPath, int] = {}
        table: KeyPath = ()
        self._skip()
        while self.position < len(text):
            table = self._header() if text[self.position] == "[" else self._pair(table)
            self._skip()

    def _skip(self) -> None:
        """Skip blanks, line ends and comments."""
        self.position = self._match_end(_BLANK)

    def _match_end(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.position)
        assert match is not None
        return match.end()

    def _header(self) -> KeyPath:
        """Read ``[a.b]`` or ``[[a.b]]``; return the path of the table that begins."""
        start, is_array = self.position, self.text.startswith("[[", self.position)
        self.position += 2 if is_array else 1
        *parents, last = self._keys()
        path: KeyPath = ()
        for key in parents:
            path = self._latest((*path, key))
        path = (*path, last)
        self.position = self.text.index("]]" if is_array else "]", self.position) + (
            2 if is_array else 1
        )
        if is_array:
            self._record_line(path, start)
            self._tables[path] = self._tables.get(path, 0) + 1
        path = self._latest(path)
        self._record_line(path, start)
        return path

    def _latest(self, path: KeyPath) -> KeyPath:
        """Return the path of the last table of an array of tables; other paths are unchanged."""
        return (*path, self._tables[path] - 1) if path in self._tables else path

    def _pair(self, table: KeyPath) -> KeyPath:
        """Read ``key = value`` in a table; return the path of the table."""
        path, start = table, self.position
        for key in self._keys():
            path = (*path, key)
            self._record_line(path, start)
        self.position = self.text.index("=", self.position) + 1
        self._value(path)
        return table

    def _keys(self) -> list[str]:
        """Read a dotted key and return its parts."""
        found = []
        while True:
            self.position = self._match_end(re.compile(r"[ \t]*"))
            end = self._match_end(_KEY)
            name, self.position = self.text[self.position : end], end
            found.append(tomllib.loads(f"x = {name}")["x"] if name[0] in "\"'" else name)
            dot = _DOT.match(self.text, self.position)
            if dot is None:
                return found
            self.position = dot.end()

    def _value(self, path: KeyPath) -> None:
        self._skip()
        opening = self.text[self.position]
        if opening == "[":
            self._array(path)
        elif opening == "{":
            self._inline_table(path)
        else:
            self.position = self._match_end(_SCALAR)

    def _array(self, path: KeyPath) -> None:
        self.position += 1
        place = 0
        while not self._take_closing("]"):
            self._record_line((*path, place), self.position)
            self._value((*path, place))
            place += 1

    def _inline_table(self, path: KeyPath) -> None:
        self.position += 1
        while not self._take_closing("}"):
            self._pair(path)

    def _take_closing(self, bracket: str) -> bool:
        """Skip a comma; return True, past the bracket, if the closing bracket comes next."""
        self._skip()
        if self.text[self.position] == ",":
            self.position += 1
            self._skip()
        if self.text[self.position] != bracket:
            return False
        self.position += 1
        return True

    def _record_line(self, path: KeyPath, position: int) -> None:
        self.lines.setdefault(path, 1 + self.text.count("\n", 0, position))
