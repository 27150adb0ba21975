"""Base classes of results, which turn into sentences, dicts, frames and notebook output."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, get_type_hints

from .. import arguments
from ..data.equality import are_equal
from ..data.groups import group_name
from ..errors import ArgumentTypeError, DataError, NotStoredError
from ..report.columns import known_table
from ..report.document import Document, Section
from ..report.notes import Note, fold_notes
from ..report.words import row_count
from .stored import decode_entry, decode_fields, encode_fields, encode_value

if TYPE_CHECKING:
    from typing import Self

    import polars as pl


#: Version of the layout of `to_dict`: 3 has notes with codes, 2 had texts instead.
SCHEMA_VERSION = 3
#: The code of notes that were stored without one.
UNNAMED = "unnamed"
#: Fields that the repr shows.
_IN_REPR = ["metric", "notion", "ratio", "estimate", "statistic", "pvalue", "engine", "n_rows"]
#: The titles of tables, by their names in `Result.to_frame`.
_TITLES = {
    "findings": "Findings",
    "gaps": "Rejected audits by gap",
    "law": "Fitted law",
    "moved": "Rows that change sides",
    "pairs": "Pairs of groups",
    "path": "Path",
    "return_levels": "Return levels",
    "value": "Audit value",
}


class Serializable:
    """A dataclass that can be converted to a dict for JSON, and back."""

    #: Fields that dicts do not contain: one number per replicate or row, data and models.
    _not_in_dict: ClassVar[frozenset[str]] = frozenset()
    #: Those of them that ``==`` ignores.
    _not_compared: ClassVar[frozenset[str]] = frozenset()
    #: Cached properties that dicts contain, because they depend on fields that dicts omit.
    _derived: ClassVar[tuple[str, ...]] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` makes an equal object.

        NaN becomes None, infinity a text. Keys that are not text become their JSON: 0 is ``"0"``,
        and the text ``"0"`` gets quotes. Arrays with a number per replicate or row, models and data
        are omitted.
        """
        derived = _types_of(type(self))
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": type(self).__name__,
            **encode_fields(self, self._not_in_dict),
            **{name: encode_value(getattr(self, name), hint) for name, hint in derived.items()},
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild the object from the dict of `to_dict`.

        It equals the original in everything that the dict contains, and prints the same sentences.
        Anything else raises `NotStoredError`.
        """
        if not isinstance(content, Mapping):
            raise ArgumentTypeError(
                f"content is a {type(content).__name__}; accepted: a dict that `to_dict` returned",
                argument="content",
            )
        content = _with_named_notes(content)
        for name, wanted in (("kind", cls.__name__), ("schema_version", SCHEMA_VERSION)):
            if content.get(name) != wanted:
                raise DataError(
                    f"{name} is {content.get(name)!r}; accepted: {wanted!r}", argument="content"
                )
        known = decode_fields(cls, content, cls._not_in_dict)
        for name, hint in _types_of(cls).items():
            known[name] = decode_entry(content, name, hint)
        result = object.__new__(cls)
        result.__dict__.update(known)
        return result

    def __eq__(self, other: object) -> bool:
        """Return whether two results are equal.

        Fields that dicts omit are compared only if both have them, so a result from a dict equals
        its original.
        """
        if type(self) is not type(other):
            return NotImplemented
        assert isinstance(other, Serializable)
        shared = (self._not_in_dict - self._not_compared) & vars(self).keys() & vars(other).keys()
        return self.to_dict() == other.to_dict() and all(
            are_equal(vars(self)[name], vars(other)[name]) for name in shared
        )

    def __hash__(self) -> int:
        return hash(type(self))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Explain why a field that dicts do not contain is missing."""
            # A property that needs a missing field also ends here, under its own name.
            absent = self._not_in_dict - vars(self).keys()
            if name in absent or (absent and hasattr(type(self), name)):
                raise NotStoredError(
                    f"{name} is not there: this {type(self).__name__} came from a dict, which "
                    "contains no data, models or numbers by row. Compute the result again, or "
                    "pickle it instead."
                )
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


def _with_named_notes(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a stored object in the present layout; notes of the one before had no codes."""
    if content.get("schema_version") != SCHEMA_VERSION - 1:
        return content
    named: dict[str, Any] = _named(content)
    return named


def _named(value: Any) -> Any:
    """Return a part of a stored object, with a code for each of its notes."""
    if isinstance(value, list):
        return [_named(entry) for entry in value]
    if not isinstance(value, Mapping):
        return value
    parts = {name: _named(entry) for name, entry in value.items()}
    texts = value.get("notes", value.get("warnings"))
    if isinstance(texts, list) and all(isinstance(text, str) for text in texts):
        parts["notes"] = [
            {"code": UNNAMED, "text": text, "subject": [], "scope": "", "reason": ""}
            for text in texts
        ]
    if parts.get("schema_version") == SCHEMA_VERSION - 1:
        parts["schema_version"] = SCHEMA_VERSION
    return parts


def _types_of(kind: type[Serializable]) -> dict[str, Any]:
    """Return the annotations of the derived properties."""
    return {name: get_type_hints(getattr(kind, name).func)["return"] for name in kind._derived}


def from_dict(content: Mapping[str, Any]) -> Any:
    """Rebuild a result of any class from the dict of its `to_dict`.

    Parameters
    ----------
    content : dict
        The return value of ``result.to_dict()``, possibly after a round trip through JSON.

    Returns
    -------
    Result
        Of the class in the entry ``"kind"``. It equals the original in everything that the dict
        contains, and prints the same sentences. Dicts contain no null distributions, arrays with a
        number per row, data or models: anything that needs them raises `NotStoredError`.

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
    result_class = (
        getattr(public, kind) if isinstance(kind, str) and kind in public.__all__ else None
    )
    if not (isinstance(result_class, type) and issubclass(result_class, Serializable)):
        raise DataError(
            f"kind is {kind!r}; accepted: the class of a result, as `to_dict` names it",
            argument="content",
        )
    return result_class.from_dict(content)


@dataclass(frozen=True, repr=False, eq=False)
class Result(Serializable):
    """Base class of all results of public functions."""

    _not_in_dict = frozenset({"null_distribution", "null_probabilities"})

    def __hash__(self) -> int:
        return hash((type(self), self.summary()))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Rebuild the result from the dict of `to_dict`; `Result` itself accepts any class."""
        if cls is Result:
            result: Self = from_dict(content)
            return result
        return super().from_dict(content)

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        raise NotImplementedError

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the notes."""
        return tuple(note.text for note in self._own_notes())

    def _own_notes(self) -> tuple[Note, ...]:
        """Return the field `notes`; an empty tuple if the class has none."""
        notes: tuple[Note, ...] = getattr(self, "notes", ())
        return notes

    def _remarks(self) -> tuple[Note, ...]:
        """Return notes that the sentence does not contain."""
        return self._own_notes()

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes besides the sentence; several notes of one kind are folded into one."""
        return tuple(fold_notes(self._remarks()))

    @property
    def details(self) -> str:
        """The names of the methods, which the sentence does not contain; "" if there are none."""
        return ""

    def document(self, *, brief: bool = False) -> Document:
        """Return the result as data for renderers: sentences, tables, notes and methods.

        With ``brief`` it has only what `to_text` prints, which takes less time with many groups.
        """
        facts = {"Seed": str(seed)} if (seed := getattr(self, "seed", None)) is not None else {}
        return Document(
            title=self._title(),
            sentences=tuple(self.summary().splitlines()),
            sections=tuple(self._sections(brief)),
            notes=self.remarks,
            details=self.details,
            facts=facts,
        )

    def _title(self) -> str:
        """Return the title of a page about the result."""
        words = re.sub(r"(?<!^)([A-Z])", r" \1", type(self).__name__.removesuffix("Result")).lower()
        metric = getattr(self, "metric", "")
        return f"{words.capitalize()}: {metric}" if metric else words.capitalize()

    def _sections(self, brief: bool) -> Iterator[Section]:
        """Yield the tables of the result; printed text contains those in `_printed_tables`."""
        level = getattr(self, "confidence_level", None)
        printed = self._printed_tables()
        for name in self._document_tables():
            rows = self._document_rows(name) if name in printed or not brief else []
            if rows:
                table = known_table(name, rows, level, getattr(self, "metric", None))
                title = _TITLES.get(name, name.replace("_", " ").capitalize())
                yield Section(title=title, tables=(table,), is_detail=name not in printed)

    def _document_tables(self) -> Sequence[str]:
        """Return the names of the tables of the document."""
        return self.tables

    def _document_rows(self, table: str) -> Sequence[dict[str, Any]]:
        """Return the rows of a table of the document."""
        return self._rows_of(table)

    def _printed_tables(self) -> Collection[str]:
        """Return the names of the tables that printed text contains."""
        return ()

    def __str__(self) -> str:
        return self.to_text()

    def to_text(self, width: int | None = None, *, details: bool = False) -> str:
        """Return the printed text: sentences, tables, notes, and names of methods.

        Parameters
        ----------
        width : int, optional
            Longer rows of tables continue in the next line; None never breaks them.
        details : bool
            Include all tables, as `to_markdown` does.

        Returns
        -------
        str
            Sentences are not wrapped.
        """
        document = self.document(brief=not details)
        return render_result("text", document, width=width, details=details)

    def to_markdown(self) -> str:
        """Return the result as a page of Markdown: sentences, all tables, notes and methods."""
        return render_result("markdown", self.document())

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={_short(getattr(self, name))}"
            for name in _IN_REPR
            if name in self.__dataclass_fields__
        )
        return f"{type(self).__name__}({shown})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, from which `from_dict` makes an equal result.

        NaN becomes None, infinity a text. Keys that are not text become their JSON: 0 is ``"0"``,
        and the text ``"0"`` gets quotes. Arrays with a number per replicate or row, models and data
        are omitted.
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
            One of ``tables``; None for the first of them. ``"pairs"`` has the compared pairs of
            groups; ``"groups"`` has the rows, eligible rows, value and interval of each group.

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
        """Return one row per group: rows, eligible rows, value and interval; [] without groups."""
        return []

    def _repr_html_(self) -> str:
        return render_result("html", self.document())


def render_result(form: str, document: Document, **options: Any) -> str:
    """Return a document as text, Markdown or HTML; renderers lie above results."""
    renderer = import_module(f"{__name__.partition('.')[0]}.rendering.{form}")
    text: str = renderer.render(document, **options)
    return text


@dataclass(frozen=True, repr=False, eq=False)
class Finding(Result):
    """Base class of the results of all lenses: one estimate and its test.

    Attributes
    ----------
    estimate : float
        The measured value.
    standard_error : float
        Standard error of the estimate; NaN, with a reason among the warnings, if unknown.
    statistic : float
        The test statistic.
    pvalue : float
        The p-value of the test, valid by construction.
    confidence_interval : tuple of float
        Confidence interval (low, high) of the estimate.
    alternative : str
        ``"two-sided"``, ``"greater"`` or ``"less"``.
    n_rows : int
        Number of rows in the analysis.
    group_sizes : dict
        Number of rows of each group.
    seed : int
        Pass it as ``rng=`` to repeat the result bit for bit.
    engine : str
        How the null distribution was computed.
    notes : tuple of Note
        Remarks that a reader needs besides the numbers, each with a code.
    """

    _derived: ClassVar[tuple[str, ...]] = ("warnings",)

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
    notes: tuple[Note, ...]

    def __hash__(self) -> int:
        return hash((type(self), self.seed, self.n_rows, self.engine))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("pairs", "groups") if self.group_sizes else ("pairs",)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group."""
        return [{"group": self.name_of(g), "n_rows": n} for g, n in self.group_sizes.items()]

    def name_of(self, group: Any) -> str:
        """Return the display name of a group."""
        return group_name(group, getattr(self, "attribute", ""))

    def sized(self, group: Any) -> str:
        """Return the name of a group with its number of rows, for a sentence."""
        return f"{self.name_of(group)} ({row_count(self.group_sizes[group])})"

    def sizes(self) -> str:
        """Return the range of group sizes, for a sentence."""
        least, most = min(self.group_sizes.values()), max(self.group_sizes.values())
        return row_count(most) + " each" if least == most else f"{least:,} to {row_count(most)}"

    def _printed_tables(self) -> Collection[str]:
        """Return the table of groups, if the sentence does not name them all."""
        has_values = len(self.group_sizes) > 2 and any("value" in row for row in self.group_rows())
        return ("groups",) if has_values else ()


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
