"""Holds the result of `ecd_search`: every setting tried, and the report on the best one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..data.groups import group_name
from ..report.notes import Note
from ..report.words import number, row_count
from ..results.result import Result
from ..results.stored import encode_value


@dataclass(frozen=True, kw_only=True)
class PairEcd:
    """The ECD of a pair of groups, first minus second; NaN limits if no interval is computed."""

    first: Any
    second: Any
    estimate: float
    low: float = math.nan
    high: float = math.nan


def worst_of(pairs: Sequence[PairEcd]) -> PairEcd:
    """Return the pair with the largest absolute ECD; the first one among equals."""
    return max(pairs, key=lambda pair: abs(pair.estimate))


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One setting, with its measurements on the selection part."""

    settings: dict[str, Any]
    accuracy: float
    #: The signed ECD of the worst pair of groups; NaN with a reason in `note`.
    ecd: float
    first: Any
    second: Any
    #: Whether its accuracy reaches the floor.
    feasible: bool
    note: str = ""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SearchResult(Result):
    """The result of `ecd_search`; its notes explain the numbers.

    ``print(result)`` is a sentence.

    Attributes
    ----------
    best : Trial or None
        The trial with the smallest absolute ECD among those that reach the accuracy floor; None if
        no trial does.
    model : object
        The model that was fitted with the best settings.
    trials : tuple of Trial
        All trials, in the order in which they were run.
    selection_ecd : float
        ECD of the worst pair by ``model`` on the selection part. It is optimistic, as the smallest
        of many estimates.
    report_ecd : float
        The same on the report part, which was not used to choose; NaN with a reason in
        ``notes``.
    report : tuple of PairEcd
        Every measurable pair of groups on the report part, with simultaneous 95 % intervals.
    selection_accuracy, report_accuracy : float
        Shares of correct decisions on both parts.
    accuracy_floor : float
        The accuracy floor, as passed or as derived from the most accurate trial.
    horizon : int
        Number of interactions of which the worst case is estimated.
    n_rows : dict
        Number of rows of the parts ``"fit"``, ``"selection"`` and ``"report"``.
    group_sizes : dict
        Number of rows of each group in the report part.
    sampler : str
        How settings were drawn.
    seed : int
        Pass it as ``rng=`` to repeat the search.
    notes : tuple of Note
        Notes for the reader of the numbers.
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
    notes: tuple[Note, ...]

    _not_in_dict = frozenset({"model"})
    _not_compared = frozenset({"model"})

    @property
    def settings(self) -> dict[str, Any] | None:
        """The best settings; None if no trial reaches the floor."""
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
            f"{sentence}; {number(self.report_ecd)}{limits}, {self._sized(worst.first)} minus "
            f"{self._sized(worst.second)}, on the part kept for the report, with accuracy "
            f"{number(self.report_accuracy)}."
        )

    def _sized(self, group: Any) -> str:
        return f"{group_name(group)} ({row_count(self.group_sizes[group])})"

    def __repr__(self) -> str:
        return (
            f"SearchResult(settings={self.settings}, report_ecd={self.report_ecd:.6g}, "
            f"report_accuracy={self.report_accuracy:.6g}, n_trials={len(self.trials)})"
        )

    def __hash__(self) -> int:
        return hash((self.seed, self.horizon, len(self.trials)))

    def rows(self) -> list[dict[str, Any]]:
        """Return the trials as the rows of a table, the settings as columns."""
        best = self._best()
        names = list(dict.fromkeys(name for trial in self.trials for name in trial.settings))
        return [
            {
                **{name: _cell(trial.settings.get(name)) for name in names},
                "accuracy": trial.accuracy,
                "ecd": trial.ecd,
                "first": None if trial.first is None else group_name(trial.first),
                "second": None if trial.second is None else group_name(trial.second),
                "feasible": trial.feasible,
                "best": trial is best,
                "note": trial.note,
            }
            for trial in self.trials
        ]

    def _best(self) -> Trial | None:
        """Return the trial that equals `best`, which may be a copy that was read from a dict."""
        best = encode_value(self.best)
        return next((trial for trial in self.trials if best and encode_value(trial) == best), None)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("trials", "pairs", "groups")

    def _rows_of(self, table: str) -> list[dict[str, Any]]:
        if table == "pairs":
            return [
                {
                    "first": group_name(ecd.first),
                    "second": group_name(ecd.second),
                    "first_n_rows": self.group_sizes[ecd.first],
                    "second_n_rows": self.group_sizes[ecd.second],
                    "estimate": ecd.estimate,
                    "low": ecd.low,
                    "high": ecd.high,
                }
                for ecd in self.report
            ]
        if table == "groups":
            return self.group_rows()
        rows = self.rows()
        columns = {name: _of_one_type([row[name] for row in rows]) for name in rows[0]}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row per group, with its number of rows in the report part."""
        return [{"group": group_name(g), "n_rows": n} for g, n in self.group_sizes.items()]


def _shown(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cell(value: Any) -> Any:
    """Return a setting as the value of a table cell; other objects become text."""
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _of_one_type(values: list[Any]) -> list[Any]:
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) <= 1 or kinds == {int, float}:
        return values
    return [None if value is None else str(value) for value in values]
