"""Parse row filters such as ``age >= 18 and (state = 'NY' or state is missing)``.

The text becomes a polars expression and is never evaluated as code. A comparison with a missing
value (or NaN) is missing, and rows for which the whole filter is missing are dropped.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .frames import unknown_column_error

if TYPE_CHECKING:
    import polars as pl

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>'[^']*'|"[^"]*"|`[^`]*`)"""
    r"""|(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))"""
    r"""|(?P<sign><=|>=|!=|==|=|<|>|\(|\)|,)"""
    r"""|(?P<word>\w[\w.-]*))"""
)
_COMPARISONS = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_KEYWORDS = {"and", "or", "not", "in", "is"}
_EXAMPLE = (
    "accepted: a condition such as age >= 18 and state = 'NY', with and, or, not, in (a, b) and is "
    "missing"
)
_MAX_DEPTH = 50


def row_filter(text: str, schema: Mapping[str, pl.DataType]) -> pl.Expr:
    """Parse a filter into an expression; ``schema`` has the types of the columns."""
    return _FilterParser(text, schema).parse()


def column_text(name: str) -> str:
    """Return the name of a column for a filter, in quotation marks if needed."""
    if re.fullmatch(r"[A-Za-z_]\w*", name) and name.lower() not in _KEYWORDS:
        return name
    mark = next((mark for mark in "`\"'" if mark not in name), "`")
    return f"{mark}{name}{mark}"


def parse_decision(text: str, schema: Mapping[str, pl.DataType]) -> tuple[str, pl.Expr]:
    """Parse a cut such as ``score=0.7`` into the name and the expression of a decision."""
    import polars as pl

    name, _, threshold = text.rpartition("=")
    try:
        cut = float(threshold)
    except ValueError:
        cut = float("nan")
    if not name or cut != cut:
        raise ArgumentError(
            f"cut is {text!r}; accepted: a column and a number, such as score=0.7", argument="cut"
        )
    if name not in schema:
        raise unknown_column_error(
            f"cut names column {name!r}, which does not exist", name, list(schema), argument="cut"
        )
    if not schema[name].is_numeric():
        raise ArgumentError(
            f"cut names {name!r}, which holds {schema[name]}; accepted: numbers", argument="cut"
        )
    score = pl.col(name).cast(pl.Float64).fill_nan(None)
    return f"{name} >= {threshold.strip()}", (score >= cut).cast(pl.Int8)


class _FilterParser:
    """A recursive descent parser of filters."""

    def __init__(self, text: str, schema: Mapping[str, pl.DataType]) -> None:
        self.text, self.schema = text, schema
        self.tokens = self._tokens()
        self.position = self.depth = 0

    def _tokens(self) -> list[tuple[str, str]]:
        tokens, place = [], 0
        text = self.text.rstrip()
        while place < len(text):
            token = _TOKEN.match(text, place)
            if token is None or not token.lastgroup:
                raise self._error(f"{text[place:].strip()[:20]!r} is not understood")
            kind, value = token.lastgroup, token[token.lastgroup]
            if kind == "word" and value.lower() in _KEYWORDS:
                kind, value = "keyword", value.lower()
            tokens.append((kind, value))
            place = token.end()
        return tokens

    def _error(self, why: str) -> ArgumentError:
        return ArgumentError(f"where is {self.text!r}: {why}; {_EXAMPLE}", argument="where")

    def _peek(self) -> tuple[str, str]:
        return (
            self.tokens[self.position] if self.position < len(self.tokens) else ("end", "the end")
        )

    def _advance(self) -> tuple[str, str]:
        token = self._peek()
        self.position += 1
        return token

    def _accept(self, *values: str) -> bool:
        """Take the next tokens and return True if they are these words and signs."""
        ahead = self.tokens[self.position : self.position + len(values)]
        if [value for kind, value in ahead if kind in ("keyword", "sign")] != list(values):
            return False
        self.position += len(values)
        return True

    def parse(self) -> pl.Expr:
        """Return the expression of the whole text."""
        expression = self._disjunction()
        if self._peek()[0] != "end":
            raise self._error(f"{self._peek()[1]!r} follows a complete condition")
        return expression

    def _disjunction(self) -> pl.Expr:
        expression = self._conjunction()
        while self._accept("or"):
            expression = expression | self._conjunction()
        return expression

    def _conjunction(self) -> pl.Expr:
        expression = self._term()
        while self._accept("and"):
            expression = expression & self._term()
        return expression

    def _term(self) -> pl.Expr:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self._error(f"more than {_MAX_DEPTH} parts are nested")
        if self._accept("not"):
            expression = ~self._term()
        elif self._accept("("):
            expression = self._disjunction()
            if not self._accept(")"):
                raise self._error("a bracket is not closed")
        else:
            expression = self._comparison()
        self.depth -= 1
        return expression

    def _comparison(self) -> pl.Expr:
        import polars as pl

        name = self._column()
        dtype = self.schema[name]
        column = pl.col(name)
        if dtype.is_float():
            column = column.fill_nan(None)
        elif isinstance(dtype, pl.Categorical | pl.Enum):
            column = column.cast(pl.String)
        if self._accept("is"):
            negated = self._accept("not")
            kind, value = self._advance()
            if kind != "word" or value.lower() not in ("missing", "null"):
                raise self._error(f"{value!r} follows {name!r} is, where missing is needed")
            return column.is_not_null() if negated else column.is_null()
        negated = self._accept("not")
        if self._accept("in"):
            is_member = column.is_in(self._value_list(name, dtype))
            return ~is_member if negated else is_member
        kind, sign = self._advance()
        if negated or kind != "sign" or sign not in _COMPARISONS:
            raise self._error(f"{sign!r} follows column {name!r}, where a comparison is needed")
        expression: pl.Expr = _COMPARISONS[sign](column, pl.lit(self._literal(name, dtype)))
        return expression

    def _column(self) -> str:
        kind, value = self._advance()
        name = value[1:-1] if kind == "quoted" else value
        if kind not in ("quoted", "word", "number"):
            raise self._error(f"{value!r} comes where the name of a column is needed")
        if name not in self.schema:
            raise unknown_column_error(
                f"where names column {name!r}, which does not exist",
                name,
                list(self.schema),
                argument="where",
            )
        return name

    def _value_list(self, name: str, dtype: pl.DataType) -> list[Any]:
        if not self._accept("("):
            raise self._error("in needs values in brackets")
        values = [self._literal(name, dtype)]
        while self._accept(","):
            values.append(self._literal(name, dtype))
        if not self._accept(")"):
            raise self._error("a bracket is not closed")
        return values

    def _literal(self, name: str, dtype: pl.DataType) -> Any:
        """Read the next token as a value of the type of a column."""
        import polars as pl

        kind, value = self._advance()
        if kind not in ("quoted", "word", "number"):
            raise self._error(
                f"{value!r} comes where column {name!r} needs a value to compare with"
            )
        text = value[1:-1] if kind == "quoted" else value
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
            if kind == "number":
                raise self._error(
                    f"column {name!r} holds text, and {value} is a number ('{value}' is text)"
                )
            return text
        try:
            return _PARSERS[_kind(dtype)](text)
        except (KeyError, ValueError):
            raise self._error(
                f"{text!r} does not fit column {name!r}, which holds {_kind(dtype)}"
            ) from None


def _kind(dtype: pl.DataType) -> str:
    import polars as pl

    if dtype == pl.Boolean:
        return "true or false"
    if dtype == pl.Date:
        return "dates"
    if isinstance(dtype, pl.Datetime):
        return "times"
    return "numbers" if dtype.is_numeric() else str(dtype)


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower() == "true"


def _number(text: str) -> int | float:
    number = float(text)
    return (
        int(text)
        if number.is_integer() and abs(number) < 2**53 and re.fullmatch(r"[+-]?\d+", text)
        else number
    )


def _date(text: str) -> Any:
    import datetime

    return datetime.date.fromisoformat(text)


def _time(text: str) -> Any:
    import datetime

    return datetime.datetime.fromisoformat(text)


_PARSERS = {"true or false": _boolean, "numbers": _number, "dates": _date, "times": _time}
