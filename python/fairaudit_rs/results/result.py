"""Base classes of results: a sentence, a dict, frames, a picture in a notebook."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from .. import arguments
from ..data.equality import are_equal
from ..data.groups import escape_controls, group_name
from ..errors import ArgumentTypeError, DataError, NotStoredError
from .stored import decode_entry, decode_fields, encode_fields, encode_value
from .words import fold_notes, number, row_count

if TYPE_CHECKING:
    from typing import Self

    import polars as pl


#: Version of the layout of `to_dict`: 2 is exact, 1 had no way back.
SCHEMA_VERSION = 2
#: Fields that the repr shows.
_IN_REPR = ["metric", "notion", "ratio", "estimate", "statistic", "pvalue", "engine", "n_rows"]
#: Up to so many groups are printed with the sentence.
_MOST_PRINTED = 12


class Serializable:
    """A dataclass that goes to a dict for JSON and comes back."""

    #: Fields that dicts do not hold: one number per replicate or row, data and models.
    _bulky: ClassVar[frozenset[str]] = frozenset()
    #: Those among them that play no part in comparisons.
    _uncompared: ClassVar[frozenset[str]] = frozenset()
    #: Cached properties that dicts hold too, because they are made of bulky fields.
    _derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` makes the same again.

        NaN is None, infinity a text, keys that are no text are their own JSON: 0 is ``"0"``, and
        the text ``"0"`` has quotes of its own. Arrays with a number per replicate or row are left
        out, and so are models and data.
        """
        derived = _types_of(type(self))
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": type(self).__name__,
            **encode_fields(self, self._bulky),
            **{name: encode_value(getattr(self, name), hint) for name, hint in derived.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return what `to_dict` made a dict of.

        It is equal in all that the dict holds, says the same sentences, and raises `NotStoredError`
        where it is asked for what the dict left out.
        """
        if not isinstance(content, Mapping):
            raise ArgumentTypeError(
                f"content is a {type(content).__name__}; accepted: a dict that `to_dict` returned",
                argument="content",
            )
        for name, wanted in (("kind", cls.__name__), ("schema_version", SCHEMA_VERSION)):
            if content.get(name) != wanted:
                raise DataError(
                    f"{name} is {content.get(name)!r}; accepted: {wanted!r}", argument=name
                )
        known = decode_fields(cls, content, cls._bulky)
        for name, hint in _types_of(cls).items():
            known[name] = decode_entry(content, name, hint)
        made = object.__new__(cls)
        made.__dict__.update(known)
        return made

    def __eq__(self, other: object) -> bool:
        """Return whether two results are equal, with numbers by replicate or row if both have them.

        What came back from a dict is equal in all that the dict holds.
        """
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Serializable)
        shared = (self._bulky - self._uncompared) & vars(self).keys() & vars(other).keys()
        return self.to_dict() == other.to_dict() and all(
            are_equal(vars(self)[name], vars(other)[name]) for name in shared
        )

    def __hash__(self) -> int:
        return hash(type(self))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say why a field that dicts do not hold is missing."""
            # A property that needs what is missing comes here by its own name.
            absent = self._bulky - vars(self).keys()
            if name in absent or (absent and hasattr(type(self), name)):
                raise NotStoredError(
                    f"{name} is not there: this {type(self).__name__} came from a dict, which "
                    "holds no data, models or numbers by row; pickle the result to keep them, or "
                    "make it anew",
                    argument=name,
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _types_of(kind: type[Serializable]) -> dict[str, Any]:
    """Return the annotations of what is derived."""
    return {name: get_type_hints(getattr(kind, name).func)["return"] for name in kind._derived}


def from_dict(content: Mapping[str, Any]) -> Any:
    """Return the result that its `to_dict` made a dict of, whatever its class.

    Parameters
    ----------
    content : dict
        What ``result.to_dict()`` returned, also by way of JSON.

    Returns
    -------
    Result
        Of the class that the dict names as its ``"kind"``. It equals the one before in all that the
        dict holds, and prints the same sentences. Null distributions, arrays with a number per
        row, data and models are in no dict: what needs them raises `NotStoredError`.

    Examples
    --------
    >>> import json, fairaudit_rs as fa
    >>> result = fa.permutation_test(
    ...     y_pred=[1, 1, 1, 0, 1, 0, 0, 0], sensitive_features=list("aabbaabb"),
    ...     metric="selection_rate")
    >>> fa.from_dict(json.loads(json.dumps(result.to_dict()))) == result
    True
    """
    if not isinstance(content, Mapping):
        raise ArgumentTypeError(
            f"content is a {type(content).__name__}; accepted: a dict that `to_dict` returned",
            argument="content",
        )
    public = import_module(__name__.partition(".")[0])
    kind = content.get("kind")
    found = getattr(public, kind) if isinstance(kind, str) and kind in public.__all__ else None
    if not (isinstance(found, type) and issubclass(found, Serializable)):
        raise DataError(
            f"kind is {kind!r}; accepted: the class of a result, as `to_dict` names it",
            argument="kind",
        )
    return found.from_dict(content)


@dataclass(frozen=True, repr=False, eq=False)
class Result(Serializable):
    """Base of all that a public function finds: a sentence, a dict, rows of tables."""

    _bulky = frozenset({"null_distribution", "null_probabilities"})

    def __hash__(self) -> int:
        return hash((type(self), self.summary()))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Return what `to_dict` made a dict of; of results in results, whatever their class."""
        if cls is Result:
            made: Self = from_dict(content)
            return made
        return super().from_dict(content)

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        raise NotImplementedError

    def _remarks(self) -> tuple[str, ...]:
        """Return what a reader must know besides the sentence."""
        return ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes beside the sentence; several of one kind are one note."""
        return tuple(fold_notes(self._remarks(), self._group_names()))

    def _group_names(self) -> Sequence[str]:
        """Return the names of the groups, as notes have them."""
        return ()

    def _group_lines(self, width: int | None = None) -> list[str]:
        """Return the groups as lines of text, when there are more than a sentence names."""
        del width
        return []

    @property
    def details(self) -> str:
        """The names of the methods, which sentences do without; "" where none is to be named."""
        return ""

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None) -> str:
        """Return what is printed: the sentence, groups or a table, notes, and names of methods.

        Parameters
        ----------
        width : int, optional
            Rows of tables that are longer go on in the next line; None leaves them whole.

        Returns
        -------
        str
            Sentences are not wrapped.
        """
        notes = [f"Note: {text}." for text in self.remarks]
        details = [f"Details: {self.details}."] if self.details else []
        lines = [self.summary(), *self._group_lines(width), *notes, *details]
        return "\n".join(escape_controls(line, kept="\n\t") for line in lines)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={_short(getattr(self, name))}"
            for name in _IN_REPR
            if name in self.__dataclass_fields__
        )
        return f"{type(self).__name__}({shown})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` makes the same result again.

        NaN is None, infinity a text, keys that are no text are their own JSON: 0 is ``"0"``, and
        the text ``"0"`` has quotes of its own. Arrays with a number per replicate or row are left
        out, and so are models and data.
        """
        return {**super().to_dict(), "summary": self.summary()}

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("pairs",)

    def to_frame(self, table: str | None = None) -> pl.DataFrame:
        """Return a table of the result as a polars frame.

        Parameters
        ----------
        table : str, optional
            One of ``tables``; None for the first of them. ``"pairs"`` are the compared groups,
            ``"groups"`` has rows, rows used, value and interval of each group.

        Returns
        -------
        polars.DataFrame
            With one row per entry of the table.
        """
        import polars as pl

        if table is not None:
            table = arguments.choice("table", table, self.tables)
        return pl.DataFrame(self._rows_of(table or self.tables[0]), infer_schema_length=None)

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        """Return the rows of one of `tables`."""
        return self.group_rows() if table == "groups" else self.rows()

    def rows(self) -> list[dict[str, Any]]:
        """Return the result as the rows of a table."""
        raise NotImplementedError

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group: rows, rows used, value and interval; () without groups."""
        return []

    def _repr_html_(self) -> str:
        import html

        tables = [self.rows()]
        if "groups" in self.tables[1:]:
            tables.append(self.group_rows())
        texts = [f"Note: {text}." for text in self.remarks]
        texts += [f"Details: {self.details}."] if self.details else []
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in texts)
        shown = "".join(map(_html_table, filter(None, tables)))
        return f"<div><p>{html.escape(self.summary())}</p>{shown}{notes}</div>"


@dataclass(frozen=True, repr=False, eq=False)
class Finding(Result):
    """Base of the results of all lenses: one estimate, and what a test says of it.

    Attributes
    ----------
    estimate : float
        What was measured.
    standard_error : float
        Its standard error; NaN with a reason among the warnings when it has none.
    statistic : float
        The test statistic.
    pvalue : float
        Valid by construction.
    confidence_interval : tuple of float
        (low, high).
    alternative : str
        ``"two-sided"``, ``"greater"`` or ``"less"``.
    n_rows : int
        Rows that took part.
    group_sizes : dict
        Rows of each group.
    seed : int
        Pass it as ``rng=`` to repeat the result bit for bit.
    engine : str
        How the null distribution was found.
    warnings : tuple of str
        What a reader must know besides the numbers.
    """

    estimate: float
    standard_error: float
    statistic: float
    pvalue: float
    confidence_interval: tuple[float, float]
    alternative: str
    n_rows: int
    group_sizes: dict[Any, int]
    seed: int
    engine: str
    warnings: tuple[str, ...]

    def __hash__(self) -> int:
        return hash((type(self), self.seed, self.n_rows, self.engine))

    def _remarks(self) -> tuple[str, ...]:
        """Return what a reader must know besides the sentence."""
        return self.warnings

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("pairs", "groups") if self.group_sizes else ("pairs",)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [{"group": self.name_of(g), "n_rows": n} for g, n in self.group_sizes.items()]

    def name_of(self, group: Any) -> str:
        """Return the name of a group for people."""
        return group_name(group, getattr(self, "attribute", ""))

    def sized(self, group: Any) -> str:
        """Return the name of a group with its rows, for a sentence."""
        return f"{self.name_of(group)} ({row_count(self.group_sizes[group])})"

    def sizes(self) -> str:
        """Return the sizes of many groups for a sentence."""
        least, most = min(self.group_sizes.values()), max(self.group_sizes.values())
        return row_count(most) + " each" if least == most else f"{least:,} to {row_count(most)}"

    def _group_names(self) -> Sequence[str]:
        return [self.name_of(group) for group in self.group_sizes]

    def _group_lines(self, width: int | None = None) -> list[str]:
        """Return the groups as lines of text, when there are more than a sentence names."""
        del width
        if not 2 < len(self.group_sizes) <= _MOST_PRINTED:
            return []
        rows = [row for row in self.group_rows() if "value" in row]
        many = len({row.get("metric") for row in rows}) > 1
        return [group_line(row, many) for row in rows]


def group_line(row: Mapping[str, Any], many: bool) -> str:
    """Return a group's row of the table as a line of text; of many metrics with its name."""
    metric = f"{row['metric']} of " if many else ""
    line = f"  {metric}{row['group']}: {number(row['value'])}"
    low, high = row.get("low", math.nan), row.get("high", math.nan)
    interval = "" if math.isnan(low) else f" ({number(low)} to {number(high)})"
    used = row_count(row["n_rows"], row.get("n_used"))
    return f"{line}{interval}{', ' if used else ''}{used}"


def _html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    import html

    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_short(v))}</td>" for v in row.values()) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
