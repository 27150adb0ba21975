"""The counterfactual distribution: row weights of the target group that make its gap small."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..inference.pvalues import upper_tail
from ..literals import DescentMethod, DescentPicture
from ..report.notes import Note
from ..report.words import number
from ..results.chart import Chart
from ..results.result import Finding
from .chart import descent_chart, marginals_chart
from .descent import (
    FEW_WEIGHTED,
    PARTS,
    REPORT,
    Descent,
    DescentPath,
    DescentStep,
    FeatureMean,
    GapEstimate,
    StoppingRule,
    prepare_descent,
)
from .nuisance import check_estimator
from .problem import InfluenceProblem, RowParts, others_name

Floats = NDArray[np.float64]

METHODS: tuple[DescentMethod, ...] = get_args(DescentMethod)
#: Standard errors up to this are rounding errors.
_ROUNDING = 1e-14
#: The random stream of the seed that draws samples.
_SAMPLING = 8


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class Counterfactual(Finding):
    """The result of `InfluenceResult.descend`; see there for how to read the numbers.

    Attributes
    ----------
    estimate : float
        The gap under the weights, on the report part.
    metric : str
        The metric that is compared.
    target : object
        The target group.
    before, after : GapEstimate
        The gap on the report part without and with the weights: ``value``, ``standard_error``,
        ``low``, ``high``, and the metric of both sides (``target``, ``others``).
    tolerance : float
        The bound of |gap| that the descent had to reach.
    smallest_tolerance : float
        The bound of the stop part with equal weights and a gap of 0. A smaller tolerance is hard to
        reach with this number of rows.
    bound : float
        The one-sided upper bound of |gap| on the stop part, at the end of the path.
    status : str
        ``"reached"``; ``"effective sample size"`` if it fell below a tenth of the rows of the stop
        part; or ``"steps"`` if the descent ended after ``max_steps``.
    path : tuple of DescentStep
        ``step``, ``fit_gap``, ``gap``, ``standard_error``, ``bound`` and ``effective_share`` of
        the weights before each step and after the last one.
    marginals : tuple of FeatureMean
        ``feature``, ``level``, and its mean or share in the target group ``before`` and ``after``
        with ``standard_error``, ``low`` and ``high`` (on the report part) and in the ``others``.
    n_effective : float
        The effective sample size of the report part.
    method : str
        ``"reweight"`` or ``"resample"``.
    parts_of_rows : tuple of float
        The shares of the rows in the fit, the stop and the report part.
    confidence_level : float
        Level of the intervals and of the one-sided bound.
    attribute : str
        The sensitive feature.
    row : ndarray of int
        Positions of the rows of the target group in the data.
    weights : ndarray
        The weight of each row of the target group, in the order of ``row``; their mean is 1.
    parts : object
        The distinct rows of the three parts, for a repair that uses the same parts.
    factors, label_rate : ndarray
        For each distinct row, its weight after the descent and its fitted P(Y = 1 | X).
    """

    metric: str
    target: Any
    before: GapEstimate
    after: GapEstimate
    tolerance: float
    smallest_tolerance: float
    bound: float
    status: str
    path: tuple[DescentStep, ...]
    marginals: tuple[FeatureMean, ...]
    n_effective: float
    method: str
    parts_of_rows: tuple[float, ...]
    confidence_level: float
    attribute: str
    row: NDArray[np.int64]
    weights: Floats
    parts: RowParts
    factors: Floats
    label_rate: Floats

    _not_in_dict = Finding._not_in_dict | {"row", "weights", "parts", "factors", "label_rate"}

    _not_compared = frozenset({"parts", "factors", "label_rate"})

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("features", "groups", "path")

    @property
    def reached(self) -> bool:
        """Return whether the bound of the gap is below the tolerance."""
        return self.status == "reached"

    @property
    def n_steps(self) -> int:
        """The number of steps of the descent."""
        return len(self.path) - 1

    def sample(self, n: int, rng: Any = None, *, random_state: Any = None) -> NDArray[np.int64]:
        """Draw rows of the counterfactual distribution.

        Parameters
        ----------
        n : int
            The number of rows, drawn with replacement.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed; ``random_state`` is an alias.

        Returns
        -------
        ndarray of int
            Positions of rows of the target group in the data.
        """
        checked = arguments.check(n=n, rng=rng, random_state=random_state)
        key = np.array([checked.seed, _SAMPLING], dtype=np.uint64)
        stream = np.random.Generator(np.random.Philox(key=key))
        ends = np.cumsum(self.weights)
        place = np.searchsorted(ends, stream.random(checked.n) * ends[-1], side="right")
        last = np.flatnonzero(self.weights)[-1]
        return np.asarray(self.row[np.minimum(place, last)])

    def plot(self, what: DescentPicture = "path") -> Chart:
        """Return a chart of the descent, or of the features before and after it.

        Parameters
        ----------
        what : {"path", "marginals"}
            The gap of the stop part with its bound, by step; or the means of the features in the
            target group without and with the weights, and in the others.

        Returns
        -------
        Chart
            The chart.
        """
        what = arguments.choice("what", what, get_args(DescentPicture))
        if what == "path":
            steps = [
                {
                    "step": step.step,
                    "gap": step.gap,
                    "bound": step.bound,
                    "share": step.effective_share,
                }
                for step in self.path
            ]
            return descent_chart(steps, self.tolerance, self.metric)
        rows = [
            {
                "feature": f"{marginal.feature}: {marginal.level}"
                if marginal.level not in ("", "1", "True")
                else marginal.feature,
                "before": marginal.before,
                "after": marginal.after,
                "low": marginal.low,
                "high": marginal.high,
                "others": marginal.others,
            }
            for marginal in self.marginals
        ]
        return marginals_chart(rows, self.name_of(self.target), others_name(self.target))

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        who, before, after = self.sized(self.target), self.before, self.after
        level = f"{100 * self.confidence_level:g} %"
        done = "resampled" if self.method == "resample" else "reweighted"
        steps = f"{self.n_steps} step" + ("" if self.n_steps == 1 else "s")
        verdict = (
            f"is shown to be below {number(self.tolerance)}"
            if self.reached
            else f"is not shown to be below {number(self.tolerance)} ({self.status})"
        )
        return (
            f"{self.metric}: with the rows of {who} {done} in {steps}, its gap {verdict} (at most "
            f"{number(self.bound)}, {level} confidence); on rows that played no part in it, it "
            f"goes from {number(before.value)} to {number(after.value)} ({level} interval "
            f"{number(after.low)} to {number(after.high)}, as good as "
            f"{self.n_effective:,.0f} rows)."
        )

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        if table == "path":
            names = ("step", "fit_gap", "gap", "standard_error", "bound", "effective_share")
            return [{name: getattr(step, name) for name in names} for step in self.path]
        return super()._rows_of(table)

    def group_rows(self) -> list[dict[str, Any]]:
        """Return a row of the target group and one of the others, on the report part."""
        return [
            {
                "metric": self.metric,
                "group": self.name_of(group),
                "n_rows": n,
                "value": before,
                "value_after": after,
            }
            for (group, n), before, after in zip(
                self.group_sizes.items(),
                (self.before.target, self.before.others),
                (self.after.target, self.after.others),
                strict=True,
            )
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per feature, or level of one, before and after."""
        return [
            {
                "feature": marginal.feature,
                "level": marginal.level,
                "before": marginal.before,
                "after": marginal.after,
                "low": marginal.low,
                "high": marginal.high,
                "others": marginal.others,
            }
            for marginal in self.marginals
        ]


def find_counterfactual(
    audit: InfluenceProblem,
    *,
    row: NDArray[np.int64],
    attribute: str,
    tolerance: object,
    parts: object,
    step: object,
    method: str,
    max_steps: object,
    nuisance: Any,
    confidence_level: object,
    rng: Any,
    random_state: Any,
) -> Counterfactual:
    """Check the arguments, follow the descent, and return its result."""
    shares = arguments.parts(parts, PARTS)
    method = arguments.choice("method", method, METHODS)
    check_estimator(nuisance)
    checked = arguments.check(
        tolerance=tolerance,
        step=step,
        max_steps=max_steps,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
    )
    rule = StoppingRule(
        tolerance=checked.tolerance,
        step=checked.step,
        max_steps=checked.max_steps,
        level=checked.confidence_level,
    )
    seed = checked.seed
    descent, notes = prepare_descent(audit, rule, shares, seed, nuisance)
    path: DescentPath = descent.resampled() if method == "resample" else descent.reweighted()
    before = descent.gap(descent.unweighted(REPORT), REPORT)
    after = descent.gap(path.report, REPORT)
    weights = path.factors[audit.distinct_positions[2]]
    total = float((path.factors * audit.distinct.count).sum())
    # If all rows are the same, both estimates are rounding errors.
    error = after.standard_error
    is_defined = error > _ROUNDING
    return Counterfactual(
        estimate=after.value,
        standard_error=error,
        statistic=after.value / error if is_defined else math.nan,
        pvalue=2 * upper_tail(abs(after.value) / error) if is_defined else math.nan,
        confidence_interval=(after.low, after.high),
        alternative="two-sided",
        n_rows=len(audit.rows) + len(audit.others),
        group_sizes={
            audit.target_name: len(audit.rows),
            others_name(audit.target_name): len(audit.others),
        },
        seed=seed,
        engine="descent",
        notes=(*_descent_notes(descent, path), *notes),
        metric=audit.measure.name,
        target=audit.target_name,
        before=before,
        after=after,
        tolerance=rule.tolerance,
        smallest_tolerance=descent.smallest_tolerance,
        bound=path.steps[-1].bound,
        status=path.status,
        path=path.steps,
        marginals=descent.marginals(path.report),
        n_effective=path.report.n_effective,
        method=method,
        parts_of_rows=shares,
        confidence_level=rule.level,
        attribute=attribute,
        row=row,
        weights=weights * (len(weights) / total),
        parts=descent.parts,
        factors=path.factors,
        label_rate=descent.label_probability,
    )


def _descent_notes(descent: Descent, path: DescentPath) -> Iterator[Note]:
    """Yield the notes on the descent."""
    rule, audit = descent.rule, descent.audit
    smallest = descent.smallest_tolerance
    if rule.tolerance < smallest:
        yield Note(
            "tolerance-below-reach",
            f"a tolerance of {rule.tolerance:g} is below {number(smallest)}, the bound that the "
            "stop part would have without weights at a gap of 0: with as many rows it can hardly "
            "be shown",
        )
    if not abs(audit.gap) > audit.half_width(rule.level):
        yield Note(
            "direction-of-descent-unknown",
            "the interval of the gap before includes 0, so that the direction of the descent is "
            "not known",
        )
    weighted = descent.fewest_events(path.report)
    if weighted < FEW_WEIGHTED:
        yield Note(
            "few-weighted-rows",
            f"the weighted rows of the report part are as good as {weighted:,.0f} in the "
            f"denominator of the metric, fewer than {FEW_WEIGHTED:g}: its intervals may be too "
            "short",
        )
    if path.status == "effective sample size":
        yield Note(
            "descent-ended-at-sample-size",
            "the descent ended where the effective sample size of the stop part fell below a tenth "
            "of its rows: the gap is not shown to be below the tolerance",
        )
    if path.status == "steps":
        yield Note(
            "descent-ended-at-max-steps",
            f"the descent ended after max_steps={rule.max_steps} steps: the gap is not shown to be "
            "below the tolerance",
        )
