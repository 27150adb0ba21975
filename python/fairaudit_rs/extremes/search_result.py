"""What a tail-aware search found: every setting that was tried, and the report of the best."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ..data.groups import group_name
from ..results.result import SCHEMA_VERSION, to_plain
from ..results.words import number

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class PairEcd:
    """The extreme discrimination of one group less that of another, with an interval if asked."""

    first: Any
    second: Any
    estimate: float
    low: float = math.nan
    high: float = math.nan


def worst_of(pairs: Sequence[PairEcd]) -> PairEcd:
    """Return the pair whose groups are farthest apart, in either direction; the first of equals."""
    return max(pairs, key=lambda pair: abs(pair.estimate))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One setting, on the part of the rows on which it is chosen."""

    settings: dict[str, Any]
    accuracy: float
    #: Of the worst pair of groups, signed; NaN with a reason in `note`.
    ecd: float
    first: Any
    second: Any
    #: Whether its accuracy reaches the floor.
    feasible: bool
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchResult:
    """What `ecd_search` found; see there for what the numbers mean.

    ``print(result)`` is a sentence.

    Attributes
    ----------
    best : Trial or None
        The trial with the smallest ECD in size, among those that reach the accuracy floor; None
        where none does.
    model : object
        The model that was fitted with its settings.
    trials : tuple of Trial
        All, in the order in which they were tried.
    selection_ecd : float
        ECD of the worst pair by ``model`` on the part on which it was chosen: the smallest of
        many, so optimistic.
    report_ecd : float
        The same on the part that took no part in the choice; NaN with a reason in ``warnings``.
    report : tuple of PairEcd
        Every measurable pair of groups on that part, with 95 % intervals that hold together.
    selection_accuracy, report_accuracy : float
        Shares of right decisions on both parts.
    accuracy_floor : float
        As given, or as found from the most accurate trial.
    horizon : int
        Interactions over which the worst case is looked at.
    n_rows : dict
        Rows of the parts ``"fit"``, ``"selection"`` and ``"report"``.
    group_sizes : dict
        Rows of each group on the report part.
    sampler : str
        How settings were drawn.
    seed : int
        Pass it as ``rng=`` to repeat the search.
    warnings : tuple of str
        What a reader must know besides the numbers.
    """

    best: Trial | None
    model: Any
    trials: tuple[Trial, ...]
    selection_ecd: float
    report_ecd: float
    report: tuple[PairEcd, ...]
    selection_accuracy: float
    report_accuracy: float
    accuracy_floor: float
    horizon: int
    n_rows: dict[str, int]
    group_sizes: dict[Any, int]
    sampler: str
    seed: int
    warnings: tuple[str, ...]

    @property
    def settings(self) -> dict[str, Any] | None:
        """The best settings, None where no trial reaches the floor."""
        return None if self.best is None else self.best.settings

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        n_feasible = sum(trial.feasible for trial in self.trials)
        tried = f"Of {len(self.trials):,} settings {n_feasible:,}"
        floor = f"the accuracy floor of {number(self.accuracy_floor)}"
        if self.best is None:
            most = max(t.accuracy for t in self.trials if not math.isnan(t.accuracy))
            return f"{tried} reach {floor}; the most accurate one has {number(most)}."
        named = ", ".join(f"{name}={_shown(value)}" for name, value in self.best.settings.items())
        pair = f"{group_name(self.best.first)} minus {group_name(self.best.second)}"
        sentence = (
            f"{tried} measured ones reach {floor}; the one with the smallest ECD at "
            f"{self.horizon:,} interactions has {named}: {number(self.selection_ecd)} "
            f"({pair}) on the part on which it was chosen, which is optimistic"
        )
        if not self.report:
            return f"{sentence}, and not measurable on the part kept for the report."
        worst = worst_of(self.report)
        limits = ""
        if not math.isnan(worst.low):
            limits = f" ({number(worst.low)} to {number(worst.high)})"
        return (
            f"{sentence}; {number(self.report_ecd)}{limits} ({group_name(worst.first)} minus "
            f"{group_name(worst.second)}) on the part kept for the report, with accuracy "
            f"{number(self.report_accuracy)}."
        )

    def __str__(self) -> str:
        return "\n".join([self.summary(), *(f"Note: {text}." for text in self.warnings)])

    def __repr__(self) -> str:
        return (
            f"SearchResult(settings={self.settings}, report_ecd={self.report_ecd:.6g}, "
            f"report_accuracy={self.report_accuracy:.6g}, n_trials={len(self.trials)})"
        )

    def __eq__(self, other: object) -> bool:
        """Whether another search found the same; models themselves are not compared."""
        if not isinstance(other, SearchResult):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.seed, self.horizon, len(self.trials)))

    def rows(self) -> list[dict[str, Any]]:
        """Return the trials as the rows of a table, the settings as columns."""
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.settings))
        return [
            {
                **{name: _cell(trial.settings.get(name)) for name in names},
                "accuracy": trial.accuracy,
                "ecd": trial.ecd,
                "first": None if trial.first is None else group_name(trial.first),
                "second": None if trial.second is None else group_name(trial.second),
                "feasible": trial.feasible,
                "best": trial is self.best,
                "note": trial.note,
            }
            for trial in self.trials
        ]

    def to_frame(self) -> pl.DataFrame:
        """Return the trials as a polars frame; settings of several types in a column as text."""
        import polars as pl

        rows = self.rows()
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return pl.DataFrame({name: _of_one_type(values) for name, values in columns.items()})

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values for JSON, without the model."""
        plain = {
            entry.name: to_plain(_plain(getattr(self, entry.name)))
            for entry in fields(self)
            if entry.name != "model"
        }
        head = {"schema_version": SCHEMA_VERSION, "kind": "SearchResult"}
        return {**head, **plain, "summary": self.summary()}

    def _repr_html_(self) -> str:
        rows = self.rows()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(v))}</td>" for v in row.values()) + "</tr>"
            for row in rows
        )
        notes = "".join(f"<p>Note: {html.escape(text)}.</p>" for text in self.warnings)
        return (
            f"<div><p>{html.escape(self.summary())}</p><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{body}</tbody></table>{notes}</div>"
        )


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cell(value: Any) -> Any:
    """Return a setting as a value of a table: what is no number, text or truth by its text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _of_one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds == {int, float}:
        return values
    return [None if value is None else str(value) for value in values]


def _plain(value: Any) -> Any:
    """Return trials with settings that JSON can hold."""
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Trial):
        content = {entry.name: getattr(value, entry.name) for entry in fields(value)}
        return content | {"settings": {name: _cell(v) for name, v in value.settings.items()}}
    if isinstance(value, Mapping):
        return dict(value)
    return value
