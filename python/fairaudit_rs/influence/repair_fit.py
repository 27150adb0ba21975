"""Fit a `Repair` from the arguments of `InfluenceResult.repair`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..errors import ArgumentTypeError, DataError
from ..inference.pvalues import upper_tail
from ..literals import RepairMethod
from ..report.notes import Note
from .cell_map import CellMap, FeatureCells
from .cost import ChangeCost, CostFunction
from .direct_repair import GapTarget, fit_direct
from .effects import ReportRows
from .label_probability import label_probability
from .nuisance import check_estimator
from .problem import InfluenceProblem, RowParts, others_name
from .rates import Measure
from .repair import Repair
from .transport import fit_transport

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: With fewer rows in a denominator, the interval of a gap may cover less often than its level.
_ENOUGH_ROWS = 50.0
#: The most that scores of the same model differ, even in single precision.
_ROUNDING = 1e-5


@dataclass(frozen=True, eq=False, kw_only=True)
class RepairArguments:
    """The arguments of `InfluenceResult.repair`."""

    method: str
    counterfactual: Any
    cost: Mapping[str, float] | CostFunction | None
    immovable: Iterable[str]
    parts: Sequence[float]
    floor: float | None
    nuisance: Any
    rng: Any
    random_state: Any
    n_threads: int | None

    def fit(
        self, audit: InfluenceProblem, attribute: str, others: tuple[Any, ...], level: float
    ) -> Repair:
        """Check the arguments, find the map, and measure its effects."""
        arguments.choice("method", self.method, get_args(RepairMethod))
        check_estimator(self.nuisance)
        checked = arguments.check(
            rng=self.rng, random_state=self.random_state, n_threads=self.n_threads
        )
        if audit.missing_numbers.indicator:
            raise DataError(
                f"X has missing numbers in "
                f"{', '.join(audit.missing_numbers.indicator)}, which a repair "
                "cannot move. Fill them in and run the audit again.",
                argument="X",
            )
        seed = checked.seed
        if checked.n_threads is not None:
            audit = replace(audit, n_threads=checked.n_threads)
        fit_map = self._direct if self.method == "direct" else self._transport
        parts, report_part, cell_map, certificate, floor = fit_map(audit, seed)
        report, unseen = _report(audit, parts, report_part, cell_map)
        return _repair(
            audit,
            report,
            cell_map,
            method=self.method,
            attribute=attribute,
            others=others,
            certificate=certificate,
            floor=floor,
            n_unseen=unseen,
            seed=seed,
            level=level,
        )

    def _direct(
        self, audit: InfluenceProblem, seed: int
    ) -> tuple[RowParts, int, CellMap, dict[str, float], float | None]:
        if self.counterfactual is not None:
            raise ArgumentTypeError(
                "counterfactual needs method='transport', but the method is 'direct'. Change the "
                "method, or remove the counterfactual.",
                argument="counterfactual",
                mentions=("method",),
                code="conflicting-arguments",
            )
        shares = arguments.parts(self.parts, ("fit", "report"))
        parts = audit.parts(shares, seed)
        cells, _, cell_of_row = _cells(audit, parts)
        cost = self._cost(audit, cells)
        others = parts.other(audit.measure, 0).value
        target = GapTarget(
            measure=audit.measure,
            others=tuple(rate.value for rate in others.rates),
            label=self._label_probability(audit, parts, cells, cell_of_row),
        )
        target.check()
        floor = self._floor(cells, target)
        repair = fit_direct(cells, cost, target, floor, audit.call)
        return parts, 1, repair.cell_map, repair.certificate, floor

    def _transport(
        self, audit: InfluenceProblem, seed: int
    ) -> tuple[RowParts, int, CellMap, dict[str, float], float | None]:
        given = self.counterfactual
        if given is None:
            raise ArgumentTypeError(
                "counterfactual is None, but method='transport' needs one. Pass the result of "
                "descend().",
                argument="counterfactual",
                mentions=("method",),
                code="missing-argument",
            )
        for name in ("floor", "nuisance"):
            if getattr(self, name) is not None:
                raise ArgumentTypeError(
                    f"{name} needs method='direct', but the method is 'transport'. Change the "
                    f"method, or remove {name}.",
                    argument=name,
                    mentions=("method",),
                    code="conflicting-arguments",
                )
        parts = getattr(given, "parts", None)
        factors = getattr(given, "factors", None)
        if not isinstance(parts, RowParts) or factors is None:
            raise ArgumentTypeError(
                f"counterfactual is a {type(given).__name__}; accepted: a result of descend()",
                argument="counterfactual",
            )
        factors = np.asarray(factors, dtype=np.float64)
        same = np.array_equal(parts.distinct.features, audit.distinct.features)
        if not same or len(factors) != len(parts.count):
            raise DataError(
                "counterfactual belongs to another audit. Call descend() on the result that you "
                "repair.",
                argument="counterfactual",
            )
        cells, first, cell_of_row = _cells(audit, parts)
        in_target = parts.count[:, 0] > 0
        mass = parts.count[in_target, 0] * factors[in_target]
        masses = np.asarray(np.bincount(cell_of_row, mass, len(first)), dtype=np.float64)
        if not masses.sum() > 0:
            raise DataError(
                "counterfactual gives every row the weight 0. Pass one with a weight above 0.",
                argument="counterfactual",
            )
        repair = fit_transport(cells, self._cost(audit, cells), masses)
        return parts, parts.count.shape[1] - 1, repair.cell_map, repair.certificate, None

    def _cost(self, audit: InfluenceProblem, cells: FeatureCells) -> ChangeCost:
        return ChangeCost.from_arguments(
            self.cost, self.immovable, audit.encodings, cells.features, cells.count
        )

    def _floor(self, cells: FeatureCells, target: GapTarget) -> float | None:
        if self.floor is None:
            if not target.has_moving_denominator:
                return None
            return float(cells.count @ cells.score) / cells.n_rows / 2
        accepted = "a mean score above 0, at most 1"
        return arguments.number("floor", self.floor, accepted, lambda value: 0 < value <= 1)

    def _label_probability(
        self, audit: InfluenceProblem, parts: RowParts, cells: FeatureCells, cell_of_row: Ints
    ) -> Floats:
        """Return P(Y = 1 | x) of each cell, fitted on the fit part."""
        if not audit.measure.needs_labels:
            return np.zeros(len(cells))
        by_cell = np.empty(len(cells))
        by_cell[cell_of_row] = label_probability(audit, parts, 0, self.nuisance)[
            parts.count[:, 0] > 0
        ]
        return by_cell


def _cells(audit: InfluenceProblem, parts: RowParts) -> tuple[FeatureCells, Ints, Ints]:
    """Return the cells of the fit part, and the cell of every distinct row with target rows.

    Between them comes the position of one distinct row of each cell.
    """
    target_rows = np.flatnonzero(parts.count[:, 0])
    if not len(target_rows):
        raise DataError(
            "the fit part has no row of the target group. Use a larger first share in parts=.",
            argument="parts",
        )
    features = np.ascontiguousarray(parts.distinct.features[target_rows])
    first, _, cell_of_row = _native.distinct_rows(features, audit.call)
    count = parts.count[target_rows, 0].astype(np.float64)
    totals = np.asarray(np.bincount(cell_of_row, count), dtype=np.float64)
    rows = np.ascontiguousarray(features[first])
    if audit.predict is not None:
        score = np.ascontiguousarray(audit.predict(rows))
    else:
        score = np.bincount(cell_of_row, count * parts.distinct.terms[target_rows, 1]) / totals
    first_row = target_rows[first].astype(np.int64)
    return (
        FeatureCells(features=rows, count=totals, score=score),
        first_row,
        cell_of_row.astype(np.int64),
    )


def _report(
    audit: InfluenceProblem, parts: RowParts, report_part: int, cell_map: CellMap
) -> tuple[ReportRows, int]:
    """Return the rows of the report part, and how many have features that the fit part lacks."""
    target_rows = np.flatnonzero(parts.count[:, report_part])
    count = parts.count[target_rows, report_part].astype(np.float64)
    label, score = parts.distinct.terms[target_rows, :2].T
    cell, unseen = cell_map.find(parts.distinct.features[target_rows], audit.call)
    report = ReportRows(
        label=label,
        before=score,
        after=cell_map.expected_score(cell, score),
        count=count,
        others=parts.others,
        other_count=parts.other_count[:, report_part].astype(np.float64),
    )
    return report, int(count[unseen].sum())


def _repair(
    audit: InfluenceProblem,
    report: ReportRows,
    cell_map: CellMap,
    *,
    method: str,
    attribute: str,
    others: tuple[Any, ...],
    certificate: dict[str, float],
    floor: float | None,
    n_unseen: int,
    seed: int,
    level: float,
) -> Repair:
    measure = audit.measure
    (before, error_before), (after, error) = (report.gap(measure, flag) for flag in (False, True))
    quantile = _native.normal_quantile(0.5 + level / 2)
    with_labels = measure.needs_labels or bool(audit.rows[:, 0].any() or audit.others[:, 0].any())
    n_own, n_other = int(report.count.sum()), int(report.other_count.sum())
    return Repair(
        estimate=after,
        standard_error=error,
        statistic=after / error if error > 0 else math.nan,
        pvalue=2 * upper_tail(abs(after) / error) if error > 0 else math.nan,
        confidence_interval=(after - quantile * error, after + quantile * error),
        alternative="two-sided",
        n_rows=n_own + n_other,
        group_sizes={audit.target_name: n_own, others_name(audit.target_name): n_other},
        seed=seed,
        engine=_engine(method, certificate),
        notes=(
            *_repair_notes(measure, report, method, audit.display_name, n_unseen),
            *_score_notes(audit),
        ),
        method=method,
        metric=measure.name,
        target=audit.target_name,
        others=others,
        attribute=attribute,
        gap_before=before,
        gap_before_interval=(before - quantile * error_before, before + quantile * error_before),
        cost=cell_map.mean_cost,
        moved=cell_map.moved,
        n_cells=len(cell_map.cells),
        n_unseen=n_unseen,
        floor=floor,
        effects=report.effects(measure, with_labels, level),
        certificate=certificate,
        confidence_level=level,
        way=cell_map,
        coding=cell_map.cost.coding,
    )


def _engine(method: str, certificate: dict[str, float]) -> str:
    if method == "transport":
        return "linear program"
    return "two multipliers" if certificate["floor_multiplier"] else "one multiplier"


def _repair_notes(
    measure: Measure, report: ReportRows, method: str, target: str, n_unseen: int
) -> Iterator[Note]:
    """Yield the notes on a repair."""
    if method == "transport" and measure.needs_labels:
        yield Note(
            "transport-keeps-labels",
            f"transport gives {target} other features but leaves every row its own "
            f"label, so that it does not close the gap in {measure.name}: what is left is measured "
            "here; method='direct' aims at 0",
            (target,),
        )
    fewest = report.smallest_denominator(measure)
    if fewest < _ENOUGH_ROWS:
        yield Note(
            "few-rows-in-denominator",
            f"only {fewest:.3g} rows of the report part are in a denominator of {measure.name}; "
            "the interval may be off",
        )
    n = float(report.count.sum())
    if n_unseen > n / 10:
        yield Note(
            "features-not-in-fit-part",
            f"{n_unseen:,} of {n:,.0f} rows of {target} in the report part have "
            "features that were not seen in the fit part and go the way of the nearest that were",
            (target,),
        )


def _score_notes(audit: InfluenceProblem) -> Iterator[Note]:
    """Yield a note if equal features have different scores: moved rows get only a mean score."""
    if audit.predict is not None:
        return
    distinct = audit.distinct
    first, _, place = _native.distinct_rows(distinct.features, audit.call)
    score = distinct.terms[:, 1]
    if (np.abs(score - score[first][place]) <= _ROUNDING).all():
        return
    yield Note(
        "scores-differ-at-equal-features",
        "rows with the same features have different scores, so that a row that moves is given the "
        "mean score of the rows that it joins in the fit part: the map goes where chance made it "
        "good, what is left of the gap looks smaller than it is, and its interval does not hold; "
        "pass model=, or all features that the scores depend on",
    )
