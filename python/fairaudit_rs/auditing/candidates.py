"""Guesses which columns of a file hold decisions or labels, and which value is favourable.

The guesses use names, values and the position in the file: labels are usually the last column.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

#: The largest number of values that make groups; numbers with more are cut into bands.
MOST_GROUPS = 20
#: Texts that mean a missing value in many files.
_MARKS = ("?", "-", "na", "n/a", "#n/a", "nan", "null", "none")
#: The score that a guess needs: a known name, the last column, or values such as "denied".
LEAST_SCORE = 3
#: The rank of a column whose name is not known.
_NO_RANK = 99
_NAMED, _WEAKLY_NAMED, _TELLING, _NEUTRAL, _LAST = 4, 2, 3, 1, 3

#: Words in the names of decision columns. Those of five letters or more also match the start of a
#: longer word: "approv" matches approved and approval.
_DECISIONS = (
    "y_pred decision decid approv approval accept hired hire admit admission select grant offer "
    "award promot shortlist action denied deny declin refus reject flag flagged detain "
    "predict pred"
)
_LABELS = (
    "y_true label target outcome y repaid repay truth actual default recid income class pass "
    "passed performance fraud dropout graduat readmi churn convert subscri success"
)
#: Words in the names of labels that other columns have too.
_WEAK_LABELS = "paid status response result event"
#: Names of numbers that become decisions by a cut.
_GRADES = {"g3", "grade", "grades", "mark", "marks", "points", "gpa"}
#: Words in the names of decisions and labels that people want to avoid.
_UNWANTED = (
    "denied deny declin refus reject flag flagged detain default recid fraud dropout readmi churn "
    "arrest charged"
)

_YES = {"1", "yes", "y", "true", "t"}
_NO = {"0", "-1", "no", "n", "false", "f"}
#: Values that are decisions by their meaning.
_GRANTED = {
    *("approved", "approve", "accepted", "accept", "granted", "grant", "admitted", "admit"),
    *("hired", "hire", "selected", "select", "offered", "invited", "shortlisted", "promoted"),
}
_REFUSED = {"denied", "deny", "refused", "refuse", "rejected", "reject", "declined", "withdrawn"}
#: Values that are outcomes by their meaning.
_GOOD = {"good", "pass", "passed", "paid", "repaid", "fully paid", "positive", "success", "won"}
_BAD = {"bad", "fail", "failed", "charged off", "default", "defaulted", "negative", "lost"}


@dataclass(frozen=True, kw_only=True)
class FileColumn:
    """A column of a file."""

    name: str
    #: The most frequent values with their numbers of rows, in descending order.
    values: tuple[tuple[Any, int], ...]
    n_values: int
    n_missing: int
    is_number: bool
    low: float
    high: float
    #: The quantiles at one third and two thirds of its numbers.
    thirds: tuple[float, float] = (math.nan, math.nan)
    #: The texts in it that usually mean a missing value.
    marks: tuple[str, ...] = ()

    @property
    def is_binary(self) -> bool:
        """Return whether the column has two values."""
        return self.n_values == 2

    @property
    def words(self) -> set[str]:
        """The words of the column's name, and the whole name."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.name.strip()).lower()
        name = re.sub(r"[^a-z0-9]+", "_", name).strip("_")
        return {name, *name.split("_")}

    @property
    def is_flag(self) -> bool:
        """Return whether the values are 0 and 1, or true and false."""
        texts = {plain_text(value) for value, _ in self.values}
        return self.is_binary and (texts == {"0", "1"} or texts == {"false", "true"})

    def has_word(self, stems: str) -> bool:
        """Return whether the name has one of these words, or a word that begins with a long one."""
        return self.place_of_word(stems) is not None

    def place_of_word(self, stems: str) -> int | None:
        """Return the position of the first of these words in the name; None if it has none."""
        words = self.words
        for place, stem in enumerate(stems.split()):
            if stem in words or (len(stem) > 4 and any(word.startswith(stem) for word in words)):
                return place
        return None


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A column that may hold decisions or labels."""

    column: FileColumn
    is_decision: bool
    #: The evidence for it; below `LEAST_SCORE` it is used only if the user names it.
    score: int
    #: The value that people want; None if neither the name nor the values show it.
    favourable: Any
    #: For numbers, the smallest value that counts as positive; None for columns of two values.
    cut: float | None = None

    @property
    def name(self) -> str:
        """The name of the column."""
        return self.column.name


def columns_of(frame: pl.LazyFrame, counts: str | None = None) -> list[FileColumn]:
    """Describe the columns of a table; the column ``counts`` has the number of people per row."""
    import polars as pl

    frame = frame.collect().lazy()
    persons = (pl.lit(1, pl.Int64) if counts is None else pl.col(counts)).alias("persons")
    found = []
    for name, kind in frame.collect_schema().items():
        if name == counts:
            continue
        column = frame.select(pl.col(name).alias("value"), persons)
        counted = (
            column.drop_nulls()
            .group_by("value")
            .agg(pl.col("persons").sum().alias("len"))
            .sort(["len", "value"], descending=[True, False])
            .collect()
        )
        n_rows = int(column.select(pl.col("persons").sum()).collect().item())
        n_values = counted.height
        numbers = kind.is_numeric() and n_values > 0
        value = pl.col("value")
        thirds = column.select(
            value.quantile(share, "lower").alias(f"{share}") for share in (1 / 3, 2 / 3)
        )
        found.append(
            FileColumn(
                name=name,
                values=tuple(counted.head(MOST_GROUPS).iter_rows()),
                n_values=n_values,
                n_missing=n_rows - int(counted["len"].sum()),
                is_number=kind.is_numeric(),
                low=float(counted["value"].min()) if numbers else 0.0,  # type: ignore[arg-type]
                high=float(counted["value"].max()) if numbers else 0.0,  # type: ignore[arg-type]
                thirds=thirds.collect().row(0) if numbers else (math.nan, math.nan),
                marks=_marks(counted["value"]) if kind == pl.String else (),
            )
        )
    return found


def _marks(values: pl.Series) -> tuple[str, ...]:
    """Return the texts that usually mean a missing value, without surrounding blanks."""
    texts = values.str.strip_chars()
    return tuple(texts.filter(texts.str.to_lowercase().is_in(_MARKS)).unique().to_list())


def candidates_of(columns: Sequence[FileColumn], last: str | None) -> list[Candidate]:
    """Return the columns that may hold decisions or labels, the likeliest first.

    ``last`` is the name of the last column that is not a weight.
    """
    found = []
    for place, column in enumerate(columns):
        if column.is_binary:
            rank, candidate = _of_two_values(column, column.name == last)
        elif column.is_number and column.words & _GRADES and column.n_values:
            # Half of the range, which is the pass mark of many tests.
            cut = math.ceil((column.low + column.high) / 2)
            score = _WEAKLY_NAMED + _LAST * (column.name == last)
            # Columns of two values come first, because numbers need a cut.
            rank = _NO_RANK + 1
            candidate = Candidate(
                column=column, is_decision=False, score=score, favourable=None, cut=cut
            )
        else:
            continue
        found.append((-candidate.score, rank, place, candidate))
    return [candidate for *_, candidate in sorted(found, key=lambda entry: entry[:3])]


def _of_two_values(column: FileColumn, is_last: bool) -> tuple[int, Candidate]:
    """Return the position of its name among known names, and the column as a candidate."""
    decision, label = column.place_of_word(_DECISIONS), column.place_of_word(_LABELS)
    texts = {plain_text(value) for value, _ in column.values}
    score = 0
    if decision is not None or label is not None:
        score += _NAMED
    elif column.has_word(_WEAK_LABELS):
        score += _WEAKLY_NAMED
    value_score = 0
    if texts & (_GRANTED | _REFUSED | _GOOD | _BAD):
        value_score = _TELLING
    elif _favourable(column) is not None or texts == {"1", "2"}:
        value_score = _NEUTRAL
    score += value_score + _LAST * (is_last and value_score > 0)
    is_decision = decision is not None or (label is None and bool(texts & (_GRANTED | _REFUSED)))
    ranks = [rank for rank in (decision, label) if rank is not None]
    return min(ranks, default=_NO_RANK), Candidate(
        column=column, is_decision=is_decision, score=score, favourable=_favourable(column)
    )


def _favourable(column: FileColumn) -> Any:
    """Guess which of two values people want, by the values and the name; None if unknown."""
    by_text = {plain_text(value): value for value, _ in column.values}
    if len(by_text) != 2:
        return None
    for wanted, unwanted in ((_GRANTED, _REFUSED), (_GOOD, _BAD)):
        good, bad = ([text for text in by_text if text in some] for some in (wanted, unwanted))
        if len(good) == 1:
            return by_text[good[0]]
        if len(bad) == 1:
            return next(value for text, value in by_text.items() if text != bad[0])
    above = [text for text in by_text if text.startswith(">")]
    if len(above) == 1 and any(text.startswith("<") for text in by_text):
        return by_text[above[0]]
    yes, no = ([text for text in by_text if text in some] for some in (_YES, _NO))
    if len(yes) != 1 or len(no) != 1:
        return None
    return by_text[no[0] if column.has_word(_UNWANTED) else yes[0]]


def plain_text(value: Any) -> str:
    """Return a value as the text by which values are compared: 1.0 is "1", True is "true"."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip().lower()
