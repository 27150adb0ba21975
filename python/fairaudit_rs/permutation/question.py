"""From the arguments of a public call to a problem: what is compared, and how rows are drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .. import arguments, metrics
from ..data.cells import Cells
from ..data.groups import choose_groups, pairs_of
from ..data.labels import Label
from ..data.rows import Rows
from ..data.tables import AuditTable
from ..errors import ArgumentError, ArgumentTypeError
from ..metrics.metric import Metric
from .callable import FunctionProblem
from .correlation import CorrelationProblem
from .counts import CountProblem
from .doubts import doubts_of
from .joint import JointProblem
from .problem import Problem
from .rows import RowProblem

#: One replicate of the AUC costs 600 row visits per distinct score on cells: cells win above 600
#: rows per score.
_ROWS_PER_LEVEL = 600
_MOST_LEVELS = 20_000


@dataclass(frozen=True, kw_only=True)
class Question:
    """A problem with what a result says about its data."""

    problem: Problem
    n_rows: int
    n_missing: int
    features: tuple[str, ...]
    #: Strata of the user's that rows are exchanged within.
    strata_names: tuple[str, ...]
    pairs: list[tuple[int, int]]
    #: Which rows exchange their groups.
    exchanged: str
    #: The data as given.
    data: Any = None
    #: What is known to go wrong with such data.
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Design:
    """The arguments of a public call that say what is compared."""

    metric: Any
    y_true: Any = None
    y_pred: Any = None
    y_score: Any = None
    sensitive_features: Any = None
    data: Any = None
    groups: Sequence[Any] | None = None
    reference: Any = None
    studentize: str | bool = "auto"
    strata: Any = "auto"
    clusters: Any = None
    sample_weight: Any = None
    engine: str = "auto"
    score_bins: Any = None
    pos_label: Label = None
    n_threads: int | None = None

    def pose(self, seed: int) -> Question:
        """Check the arguments, read the data and make the problem."""
        chosen = metrics.get(self.metric)
        weighted = self.sample_weight is not None or self.clusters is not None
        scaling = scaling_of(self.studentize, chosen, weighted)
        conditional, own_strata = split_strata(self.strata)
        if self.score_bins is not None and chosen.family not in ("calibration", "ranks"):
            raise ArgumentTypeError(
                f"score_bins goes with calibration_error and auc, not with {chosen.name}"
            )
        if self.score_bins is not None and isinstance(self.data, Cells):
            raise ArgumentTypeError(
                "score_bins does not go with data=cells, which hold their own bins"
            )
        if chosen.family == "correlation":
            return self._correlation(chosen, scaling, own_strata)
        problem: Problem
        if chosen.family == "callable" or weighted:
            rows = self._rows(chosen, own_strata)
            cells = rows.cells
            keys = choose_groups(cells, self.groups, self.reference)
            if chosen.family == "callable":
                problem = FunctionProblem.make(rows, chosen, keys, scaling, conditional, seed)
            else:
                problem = RowProblem.make(rows, chosen, keys, scaling, conditional)
        elif chosen.family == "ratio":
            rows = self._rows(chosen, own_strata)
            cells = rows.cells
            keys = choose_groups(cells, self.groups, self.reference)
            problem = RowProblem.make(rows, chosen, keys, scaling, conditional)
        elif chosen.family == "ranks":
            levels, table = self._score_levels(chosen, own_strata)
            if levels is None:
                assert table is not None
                rows = self._rows_of(table, chosen)
                cells = rows.cells
                keys = choose_groups(cells, self.groups, self.reference)
                problem = RowProblem.make(rows, chosen, keys, scaling, conditional)
            else:
                cells = levels
                keys = choose_groups(cells, self.groups, self.reference)
                problem = CountProblem.make(cells, chosen, keys, scaling, conditional)
                if cells.score_edges is not None:
                    problem.notes.append(
                        "scores within one bin count as tied; more bins or the scores themselves "
                        "tell more"
                    )
        else:
            cells = self._cells(chosen, own_strata)
            keys = choose_groups(cells, self.groups, self.reference)
            kind = JointProblem if chosen.family == "joint" else CountProblem
            problem = kind.make(cells, chosen, keys, scaling, conditional)
        names = cells.strata_names if conditional else ()
        own = chosen.conditions_on if conditional and self.clusters is None else None
        rows_word = "rows" if self.clusters is None else "clusters"
        return Question(
            problem=problem,
            n_rows=cells.n_rows,
            n_missing=cells.n_missing,
            features=cells.sensitive_features,
            strata_names=names,
            pairs=pairs_of(keys, self.reference),
            exchanged=exchanged(chosen, own, names, rows_word),
            data=self.data,
            doubts=doubts_of(problem),
        )

    def _correlation(self, metric: Metric, scaling: str, own_strata: Any) -> Question:
        for name in ("groups", "reference", "clusters", "sample_weight"):
            if getattr(self, name) is not None:
                raise ArgumentTypeError(f"{name} does not go with {metric.name}, a correlation")
        if isinstance(self.data, Cells):
            raise ArgumentTypeError(
                f"data is a Cells, which hold counts; {metric.name} needs the rows themselves"
            )
        extra = _extra(metric)
        rows = self._table(metric, own_strata, extra).attribute_rows(
            columns=metric.needs,
            extra=[f"extra:{name}" for name in extra],
            pos_label=self.pos_label,
        )
        problem = CorrelationProblem.make(rows, metric, scaling)
        n_rows = len(rows.attribute) + rows.n_missing
        names = rows.strata_names
        return Question(
            problem=problem,
            n_rows=n_rows,
            n_missing=rows.n_missing,
            features=(rows.name,),
            strata_names=names,
            pairs=[],
            exchanged=exchanged(metric, None, names, "rows"),
            doubts=doubts_of(problem),
        )

    def _score_levels(
        self, metric: Metric, own_strata: Any
    ) -> tuple[Cells | None, AuditTable | None]:
        """Return cells by distinct score when that is less work than the rows, or the table."""
        if isinstance(self.data, Cells) or self.score_bins is not None:
            cells = self._cells(metric, own_strata)
            if cells.score_edges is None:
                raise ArgumentError(f"{metric.name} needs y_score; the cells hold no scores")
            return cells, None
        table = self._table(metric, own_strata).loaded()
        limit = min(table.n_rows // _ROWS_PER_LEVEL, _MOST_LEVELS)
        if self.engine in ("cells", "exact"):
            limit = _MOST_LEVELS
        if self.engine == "stream" or limit < 2:
            return None, table
        return table.score_levels(limit, self.pos_label), table

    def _cells(self, metric: Metric, own_strata: Any) -> Cells:
        data = self.data
        if isinstance(data, Cells):
            given = [
                name
                for name, value in (
                    ("y_true", self.y_true),
                    ("y_pred", self.y_pred),
                    ("y_score", self.y_score),
                    ("strata", own_strata),
                )
                if value is not None
            ]
            if given:
                raise ArgumentTypeError(
                    f"{given[0]} does not go with data=cells, which hold their own columns"
                )
            missing = [name for name in metric.needs if name not in data.columns]
            if missing:
                raise ArgumentError(
                    f"{metric.name} needs {missing[0]}; the cells hold {', '.join(data.columns)}"
                )
            if self.sensitive_features is None:
                return data
            return data.marginalize(self.sensitive_features)
        return self._table(metric, own_strata).cells(
            columns=metric.needs,
            score_bins=self.score_bins,
            pos_label=self.pos_label,
            n_threads=self.n_threads,
        )

    def _rows(self, metric: Metric, own_strata: Any) -> Rows:
        if isinstance(self.data, Cells):
            weight = "sample_weight" if self.sample_weight is not None else "clusters"
            reason = metric.name if metric.family in ("ratio", "callable") else weight
            raise ArgumentTypeError(
                f"data is a Cells, which hold counts; {reason} needs the rows themselves"
            )
        return self._rows_of(self._table(metric, own_strata, _extra(metric)), metric)

    def _rows_of(self, table: AuditTable, metric: Metric) -> Rows:
        extra = _extra(metric)
        return table.rows(
            columns=metric.needs,
            extra=[f"extra:{name}" for name in extra],
            binary=metric.family in ("ranks", "counts") or self.pos_label is not None,
            pos_label=self.pos_label,
        )

    def _table(self, metric: Metric, own_strata: Any, extra: Sequence[str] = ()) -> AuditTable:
        table = AuditTable.make(
            data=self.data,
            y_true=self.y_true,
            y_pred=self.y_pred,
            y_score=self.y_score,
            sensitive_features=self.sensitive_features,
            strata=own_strata,
            clusters=self.clusters,
            sample_weight=self.sample_weight,
            extra=extra,
        )
        for name in metric.needs:
            if name not in table.roles:
                hint = (
                    "; pass y_pred=(y_score >= threshold)"
                    if (name == "y_pred" and "y_score" in table.roles)
                    else ""
                )
                raise ArgumentError(f"{name} is None; {metric.name} needs it{hint}")
        return table


def _extra(metric: Metric) -> list[str]:
    """Return the columns of data that a metric names besides those with roles."""
    named = [value for value in (metric.numerator, metric.denominator) if isinstance(value, str)]
    return [name for name in named if name not in metric.columns]


def scaling_of(value: str | bool, metric: Metric, weighted: bool) -> str:
    """Return how the statistic is scaled."""
    if isinstance(value, bool):
        value = "auto" if value else "none"
    accepted = ("auto", "pooled", "unpooled", "none")
    if metric.family == "callable":
        accepted = ("auto", "bootstrap", "shared", "none")
    word = arguments.choice("studentize", value, accepted)
    if word == "auto":
        return "unpooled" if weighted and metric.family != "callable" else metric.variance
    if word == "pooled" and (weighted or metric.variance != "pooled"):
        reason = (
            "weighted or clustered"
            if weighted
            else "not a proportion, nor proportions of different rows"
        )
        raise ArgumentError(
            f"studentize is 'pooled' for {metric.name}, which is {reason}; accepted: 'auto', "
            "'unpooled', 'none'"
        )
    return word


def split_strata(strata: Any) -> tuple[bool, Any]:
    """Return whether the metric's own stratum is used, and strata of the user's own."""
    if isinstance(strata, str) and strata == "auto":
        return True, None
    if strata is None or strata is False:
        return False, None
    return True, strata


def exchanged(
    metric: Metric, conditions_on: str | None, strata_names: Sequence[str], rows_word: str
) -> str:
    """Say which rows exchange their groups."""
    rows = {
        "denominator": metric.denominator_rows or "rows of the denominator",
        "label": "rows of the same label",
        "decision": "rows of the same decision",
        "score": "rows of the same score bin",
        None: rows_word,
    }[conditions_on]
    return rows + (f" with equal {', '.join(strata_names)}" if strata_names else "")
