"""`TailFit`: the fitted tail of a group, with its return levels, sentences and charts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import _native, arguments
from ..errors import ArgumentError
from ..literals import TailPicture
from ..report.notes import Note
from ..report.words import number, numbers
from ..results.chart import Chart
from ..results.result import Finding
from . import chart
from .diagnostics import (
    CvTest,
    GoodnessOfFit,
    QuantileRow,
    StabilityRow,
    cv_test,
    goodness_of_fit,
    quantile_rows,
    stability_rows,
    zhang_stephens,
)
from .problem import FEWEST_EXCEEDANCES, ReturnLevel, TailProblem

Floats = NDArray[np.float64]

#: Horizons of the table of return levels.
HORIZONS = (10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0)
#: The meaning of each type of tail.
TYPES = {
    "I": "type I: it may fall off like an exponential law, or a little faster or slower",
    "II": "type II: it is heavier than any exponential law",
    "III": "type III: it ends",
}
#: Kinds of charts.
PICTURES: tuple[TailPicture, ...] = get_args(TailPicture)
#: Replicates of the goodness-of-fit test.
_N_RESAMPLES = 999


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class TailFit(Finding):
    """The tail of one group: see `fit_tail`.

    Attributes
    ----------
    estimate : float
        The shape, with ``confidence_interval``; NaN where there is no fit.
    n : int
        Number of rows.
    n_exceedances : int
        Number of rows above the threshold.
    threshold : float
        The threshold, on the scale of the values.
    shape, scale, location : float
        The law of excesses over the threshold, on the scale of the fit: a shape above 0 means a
        heavy tail, below 0 a finite end. With ``method="point_process"``, the law of the largest
        of ``block_size`` rows.
    upper : float or None
        The known upper end; the scale of the fit is then -log(1 - value / upper).
    resolution : float or None
        The step of the grid whose cells were fitted; None for continuous values.
    type : str
        ``"I"``, ``"II"`` or ``"III"`` by the interval of the shape; "" where there is no fit.
    endpoint : float
        Upper end of the fitted law, on the scale of the values; infinite if it has none.
    method : str
        ``"gpd"`` or ``"point_process"``.
    reason : str
        Why there is no fit; "" where there is one.
    confidence_level : float
        Level of all intervals.
    """

    n: int
    n_exceedances: int
    threshold: float
    shape: float
    scale: float
    location: float
    upper: float | None
    resolution: float | None
    type: str
    endpoint: float
    method: str
    block_size: float | None
    reason: str
    confidence_level: float
    problem: TailProblem = field(repr=False)
    name: str = "the tail"

    _not_in_dict = frozenset({"problem"})
    _not_compared = frozenset({"problem"})
    _derived = (
        "warnings",
        "return_levels",
        "typical_level",
        "largest_horizon",
        "goodness_of_fit",
    )

    def __hash__(self) -> int:
        return hash((type(self), self.name, self.n, self.n_exceedances))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns."""
        return ("return_levels",)

    # -- numbers ---------------------------------------------------------------------------------

    def level(self, m: float) -> ReturnLevel:
        """Return the level that one row in m exceeds, with all its limits.

        Parameters
        ----------
        m : float
            The horizon in rows, above 1.

        Returns
        -------
        ReturnLevel
            Its ``standing`` is ``"measured"``, ``"extrapolated"`` or ``"refused"``.
        """
        return self.problem.level(check_horizon("m", m), self.problem.call)

    def return_level(self, m: float) -> tuple[float, float, float]:
        """Return the level that one row in m exceeds, with its interval.

        Parameters
        ----------
        m : float
            The horizon in rows, above 1.

        Returns
        -------
        tuple of float
            The level and its limits; NaN where it is refused, for which `level` has the reason.

        Examples
        --------
        >>> import numpy as np, fairaudit_rs as fa
        >>> tail = fa.fit_tail(np.random.default_rng(0).standard_exponential(2_000))
        >>> level, low, high = tail.return_level(1_000)
        >>> low < 6.9 < high
        True
        """
        level = self.level(m)
        return level.value, level.low, level.high

    def lower_free(self, m: float) -> float:
        """Return a distribution-free lower limit of the level that one row in m exceeds.

        Parameters
        ----------
        m : float
            The horizon in rows, above 1.

        Returns
        -------
        float
            An order statistic; -infinity if none is low enough.
        """
        return self.problem.sorted.order_limits(check_horizon("m", m), self.confidence_level)[0]

    @cached_property
    def return_levels(self) -> tuple[ReturnLevel, ...]:
        """Return levels of horizons from 10 to 1,000,000 rows."""
        return tuple(self.level(m) for m in HORIZONS)

    @cached_property
    def typical_level(self) -> ReturnLevel:
        """The level in the summary, for a horizon of 1,000 rows or all rows if there are fewer."""
        return self.level(float(min(self.n, 1_000)))

    @cached_property
    def goodness_of_fit(self) -> GoodnessOfFit | None:
        """The Anderson-Darling test of the fit; None without a fit.

        Values on a grid are tested at the middle of their cells. The seed of the replicates is
        fixed.
        """
        if self.problem.fit is None:
            return None
        draws = _native.Draws(_N_RESAMPLES, seed=0)
        return goodness_of_fit(self.problem.excesses, draws, self.problem.call)

    @cached_property
    def cv_test(self) -> CvTest | None:
        """The test for a tail heavier than exponential; None below 11 rows or without a fit."""
        if self.n <= 10 or self.problem.fit is None:
            return None
        values = self.problem.on_scale(np.asarray(self.problem.values))
        return cv_test(values, call=self.problem.call)

    @cached_property
    def zhang_stephens(self) -> tuple[float, float]:
        """Shape and scale by Zhang and Stephens (2009), without an interval, for comparison."""
        if self.problem.fit is None:
            return math.nan, math.nan
        return zhang_stephens(self.problem.excesses, self.problem.call)

    def stability(self, m: float = 1_000) -> tuple[StabilityRow, ...]:
        """Return fits over many thresholds, which show how much the choice matters.

        Parameters
        ----------
        m : float
            The horizon of the return level in each row.

        Returns
        -------
        tuple of StabilityRow
            From few exceedances to many; thresholds and levels on the scale of the fit.
        """
        problem, m = self.problem, check_horizon("m", m)
        most = min(4 * problem.k, problem.n - 1)
        ks = np.unique(
            np.geomspace(FEWEST_EXCEEDANCES, max(most, FEWEST_EXCEEDANCES), 40).astype(int)
        )
        values = problem.on_scale(problem.sorted.top(most + 1))
        return stability_rows(values, ks.tolist(), m * len(values) / problem.n, problem.call)

    def quantiles(self) -> tuple[QuantileRow, ...]:
        """Return excesses with quantiles and bands of the fit; () without a fit."""
        fit = self.problem.fit
        if fit is None:
            return ()
        return quantile_rows(
            self.problem.excesses,
            fit.shape,
            fit.scale,
            confidence_level=self.confidence_level,
            call=self.problem.call,
        )

    # -- words -----------------------------------------------------------------------------------

    @cached_property
    def largest_horizon(self) -> float:
        """The largest horizon with a return level."""
        return self.problem.largest_horizon

    @property
    def feasible(self) -> bool | None:
        """Return whether a guarantee against worst cases is feasible; None if unknown.

        A tail of type III has an end; levels of type II grow as a power of the horizon. Type I is
        undecided: the interval of the shape includes 0 and heavier tails.
        """
        return {"III": True, "II": False}.get(self.type)

    def feasibility(self) -> str:
        """Explain in words what the type of the tail means for a guarantee."""
        if not self.type:
            return f"No type is known: {self.reason or 'no shape from -1 to 3 fits well'}."
        low, high = self.confidence_interval
        words = (
            f"The shape {number(self.estimate)} ({number(low)} to {number(high)}) says "
            f"{TYPES[self.type]}"
        )
        if self.upper is not None:
            words += (
                f", on the scale on which the known end {number(self.upper)} is infinitely far "
                "away. A bounded quantity is type III in the limit"
            )
        verdict = {
            "III": "A guarantee is feasible: worst cases stop short of "
            f"{number(self.endpoint)}, as the fit has it",
            "I": "Whether a guarantee is feasible is not known: shapes above 0, with which worst "
            "cases keep growing as a power of the horizon, are not excluded up to "
            f"{number(high)}",
            "II": "No guarantee is feasible short of "
            + ("the known end" if self.upper is not None else "infinity")
            + ": worst cases keep growing as a power of the horizon",
        }[self.type]
        return f"{words}. {verdict}."

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        rows = f"{self.n:,} rows"
        name = self.name[:1].upper() + self.name[1:]
        if self.reason:
            return (
                f"{name} of {rows} has no fit ({self.reason}); what is said of it rests on order "
                "statistics alone."
            )
        typical = self.typical_level
        shape, low, high = numbers(self.estimate, *self.confidence_interval)
        limits = (
            "no shape fits well" if math.isnan(self.confidence_interval[0]) else f"{low} to {high}"
        )
        value, least, most = numbers(typical.value, typical.low, typical.high)
        level = f"{100 * self.confidence_level:g} %"
        return (
            f"{name} of {rows}: {self.n_exceedances} of them exceed "
            f"{number(self.threshold)}, with shape {shape} ({limits}); 1 row in "
            f"{typical.horizon:,.0f} exceeds {value} ({level} interval {least} to "
            f"{most}, {typical.standing})."
        )

    def rows(self) -> list[dict[str, Any]]:
        """Return the table of return levels."""
        return [level_row(level) for level in self.return_levels]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; see `Result.to_dict`."""
        return {**super().to_dict(), "feasibility": self.feasibility()}

    def plot(self, kind: TailPicture = "return_level") -> Chart:
        """Return a chart.

        Parameters
        ----------
        kind : {"return_level", "qq", "density", "stability"}
            Return levels with their limits over horizons; excesses against quantiles of the fit;
            the density of the tail; the shape over many thresholds.

        Returns
        -------
        Chart
            Shown in notebooks, and saved by ``save``.
        """
        kind = arguments.choice("kind", kind, PICTURES)
        return draw_tails(kind, {self.name: self})


def draw_tails(kind: str, tails: dict[Any, TailFit]) -> Chart:
    """Return a chart of several tails."""
    fitted = {name: tail for name, tail in tails.items() if tail.problem.fit is not None}
    if kind != "return_level" and not fitted:
        raise ArgumentError(
            f"kind is {kind!r}, which needs a fit, but there is none. Pass kind='return_level'.",
            argument="kind",
        )
    if kind == "qq":
        return chart.quantile_chart({name: tail.quantiles() for name, tail in fitted.items()})
    if kind == "stability":
        return chart.stability_chart(
            {name: (tail.stability(), tail.n_exceedances) for name, tail in fitted.items()}
        )
    if kind == "density":
        return chart.density_chart(
            {
                name: (tail.problem.sorted.top(tail.n), _density(tail))
                for name, tail in fitted.items()
            }
        )
    return chart.level_chart({name: _level_curve(tail) for name, tail in tails.items()})


def _level_curve(tail: TailFit) -> tuple[ReturnLevel, ...]:
    most = max(tail.largest_horizon, 20.0)
    return tuple(tail.level(float(m)) for m in np.geomspace(10, most, 25).round())


def _density(tail: TailFit) -> list[tuple[float, float]]:
    """Return (value, density) pairs of the fitted tail, as part of the density of all rows."""
    problem, fit = tail.problem, tail.problem.fit
    assert fit is not None
    top = float(problem.on_scale(problem.sorted.top(1))[0])
    start = float(problem.on_scale(np.array([fit.threshold]))[0])
    excess = np.linspace(0, 1.3 * (top - start), 121)
    if fit.shape < 0:
        excess = excess[excess < -fit.scale / fit.shape]
    with np.errstate(over="ignore"):
        inner = 1 + fit.shape * excess / fit.scale
        density = (
            np.exp(-excess / fit.scale) if abs(fit.shape) < 1e-9 else inner ** (-1 / fit.shape - 1)
        ) / fit.scale
    if problem.scale_upper is not None:
        # The derivative of the scale t = -log(1 - c / upper) by the value c: 1 / (upper - c).
        density = density * np.exp(start + excess) / problem.scale_upper
    values = problem.from_scale(start + excess)
    share = fit.k / problem.n
    return [(float(x), float(share * y)) for x, y in zip(values, density, strict=True)]


def level_row(level: ReturnLevel) -> dict[str, Any]:
    """Return a return level as the row of a table."""
    return {
        "horizon": level.horizon,
        "value": level.value,
        "standing": level.standing,
        "low": level.low,
        "high": level.high,
        "lower_free": level.lower_free,
        "at_least": level.at_least,
        "rows_over_horizon": level.rows_over_horizon,
        "fitted": level.fitted,
        "fitted_low": level.fitted_low,
        "fitted_high": level.fitted_high,
        "half": level.half,
        "half_low": level.half_low,
        "half_high": level.half_high,
        "reason": level.reason,
    }


def check_horizon(name: str, value: object) -> float:
    """Check a horizon in rows, which must be a number above 1."""
    accepted = "a number of rows above 1"
    return arguments.number(name, value, accepted, lambda found: 1 < found < math.inf)


def make_tail_fit(
    problem: TailProblem,
    *,
    name: str = "the tail",
    method: str = "gpd",
    block_size: float | None = None,
    notes: Sequence[Note] = (),
) -> TailFit:
    """Return the fit of a tail as a result."""
    fit, nan = problem.fit, math.nan
    low, high = problem.shape_interval(problem.call)
    if fit is None:
        shape, scale, location, threshold, endpoint = nan, nan, nan, nan, nan
    else:
        shape, scale, threshold, endpoint = fit.shape, fit.scale, fit.threshold, fit.end
        location = float(problem.on_scale(np.array([threshold]))[0])
    if method == "point_process" and fit is not None and block_size is not None:
        expected = block_size * fit.k / problem.n
        location, scale, _ = _native.gev_of_excesses(location, scale, shape, expected)
    return TailFit(
        estimate=shape,
        standard_error=nan,
        statistic=nan,
        pvalue=nan,
        confidence_interval=(low, high),
        alternative="two-sided",
        n_rows=problem.n,
        group_sizes={},
        seed=0,
        engine="profile likelihood" if fit is not None else "order statistics",
        notes=(*notes, *problem.notes),
        n=problem.n,
        n_exceedances=problem.k if fit is None else fit.k,
        threshold=threshold,
        shape=shape,
        scale=scale,
        location=location,
        upper=problem.scale_upper,
        resolution=problem.fit_basis.resolution,
        type="" if math.isnan(low) else "III" if high < 0 else "II" if low > 0 else "I",
        endpoint=endpoint,
        method=method,
        block_size=block_size,
        reason=problem.why_no_fit,
        confidence_level=problem.confidence,
        problem=problem,
        name=name,
    )
