"""Computes the numbers of one tail: threshold, fit, return levels and their limits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..data.equality import EqualByValue
from ..report.notes import Note
from ..report.words import number

Floats = NDArray[np.float64]

#: Fewest rows of a tail.
FEWEST_ROWS = 100
#: The farthest horizon, as a multiple of the rows.
FARTHEST = 5
#: Fewest exceedances that are fitted.
FEWEST_EXCEEDANCES = 15
#: Fewest distinct exceedances if values lie on a grid.
FEWEST_DISTINCT = 5
#: If at least this share of the exceedances is distinct, ties are ignored.
_DISTINCT = 0.9
#: A fit gives the level of horizon m if m k / n is at least this.
LEAST_HORIZON = 3.0
#: Fits with this shape or more are refused.
HIGHEST_SHAPE = 3.0
#: Replicates of cuts that are not shipped. The seed is fixed, so intervals depend on data only.
_REPLICATES = 4_000
_SEED = 20_261_119


class LevelEstimate(NamedTuple):
    """A return level by one method, with its interval."""

    value: float
    low: float
    high: float


NONE = LevelEstimate(math.nan, math.nan, math.nan)


@dataclass(frozen=True, kw_only=True)
class ReturnLevel:
    """A return level: the value that one row in `horizon` exceeds.

    Attributes
    ----------
    horizon : float
        The horizon in rows.
    value, low, high : float
        The level and its interval; NaN where it is refused.
    standing : str
        ``"measured"``: the limits are order statistics, which are valid for every law.
        ``"extrapolated"``: they come from the fit, and are valid if the tail goes on as it began.
        ``"refused"``: there is no level, for the `reason`.
    rows_over_horizon : float
        Expected number of observed rows above the level: rows / horizon.
    lower_free : float
        A lower limit that is valid for every law; -infinity where there is none.
    fitted, fitted_low, fitted_high : float
        The level and its interval by the fit, also where order statistics give `value`; NaN where
        the fit does not reach the horizon.
    half, half_low, half_high : float
        The same from half as many exceedances, to show how much the threshold matters.
    reason : str
        Why it is refused; "" where it is not.
    """

    horizon: float
    value: float
    low: float
    high: float
    standing: str
    rows_over_horizon: float
    lower_free: float
    fitted: float
    fitted_low: float
    fitted_high: float
    half: float
    half_low: float
    half_high: float
    reason: str

    @property
    def at_least(self) -> float:
        """The limit for a claim "at least": the smaller of the two lower limits."""
        return self.lower_free if math.isnan(self.low) else min(self.low, self.lower_free)


def rows_text(m: float) -> str:
    """Return a horizon as text; whole numbers have no fraction."""
    return f"{m:,.0f}" if m == int(m) else f"{m:,}"


@dataclass(frozen=True, eq=False, kw_only=True)
class TailProblem(EqualByValue):
    """The values of a tail and how it is fitted; its fit and levels are computed on demand.

    Attributes
    ----------
    values : array
        One finite number for each row.
    upper : float or None
        A known upper end of the law.
    n_exceedances : int or None
        How many of the largest values are fitted; None if the number of rows decides.
    threshold : float or None
        The threshold, in place of a number of exceedances.
    resolution : float or None
        The step of the grid on which values lie; None to look for a grid if values are tied.
    ties : bool
        Whether ties are examined; if not, all values are treated as continuous.
    confidence : float
        Level of the intervals.
    n_threads : int or None
        None or -1 takes all cores that the process may use.
    """

    values: Floats
    upper: float | None = None
    n_exceedances: int | None = None
    threshold: float | None = None
    resolution: float | None = None
    ties: bool = True
    confidence: float = 0.95
    n_threads: int | None = None

    @cached_property
    def sorted(self) -> _native.TailValues:
        """The values, sorted."""
        values = np.ascontiguousarray(self.values, dtype=np.float64)
        return _native.TailValues(values, self.call)

    @property
    def call(self) -> _native.Call:
        """How native functions are run."""
        return _native.Call(self.n_threads)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.values)

    @cached_property
    def k(self) -> int:
        """Number of exceedances, if there is a fit."""
        if self.threshold is not None:
            return int((np.asarray(self.values) > self.threshold).sum())
        wanted = self.n_exceedances or _native.default_exceedances(self.n)
        return min(wanted, self.n - 1)

    @cached_property
    def fit_basis(self) -> FitBasis:
        """The scale and the grid of the fit, or the reason why there is none."""
        return _fit_basis(self)

    @property
    def fit(self) -> _native.Tail | None:
        """The fit; None where `why_no_fit` has a reason."""
        return None if self.why_no_fit else self._fit

    @cached_property
    def _fit(self) -> _native.Tail | None:
        if self.fit_basis.reason:
            return None
        if self.threshold is not None:
            return self.sorted.fit_over(self.threshold, self.scale_upper)
        return self.sorted.fit(self.k, self.scale_upper, self.fit_basis.resolution)

    @property
    def why_no_fit(self) -> str:
        """The reason why there is no fit; "" where there is one."""
        if self._fit is not None and self._fit.shape >= HIGHEST_SHAPE:
            return f"the shape is beyond {HIGHEST_SHAPE:g}, where nothing is calibrated"
        return self.fit_basis.reason

    @property
    def notes(self) -> tuple[Note, ...]:
        """Notes on the fit."""
        edge = (AT_EDGE,) if self.fit is not None and self.fit.at_edge else ()
        return (*self.fit_basis.notes, *edge)

    @property
    def scale_upper(self) -> float | None:
        """The known end in the scale of the fit; None if the values themselves are fitted."""
        return self.fit_basis.upper

    @cached_property
    def half(self) -> TailProblem | None:
        """The same tail with half as many exceedances; None where they are too few."""
        if self.fit is None or self.threshold is not None:
            return None
        k = max(self.k // 2, FEWEST_EXCEEDANCES)
        if k >= self.k:
            return None
        half = TailProblem(
            values=self.values,
            upper=self.scale_upper,
            n_exceedances=k,
            resolution=self.fit_basis.resolution,
            ties=self.ties,
            confidence=self.confidence,
            n_threads=self.n_threads,
        )
        # The values need not be sorted again.
        half.__dict__["sorted"] = self.sorted
        return half if half.fit is not None else None

    # -- levels ----------------------------------------------------------------------------------

    @property
    def largest_horizon(self) -> float:
        """The largest horizon with a return level; 0 if there are too few rows."""
        return FARTHEST * self.n if self.n >= FEWEST_ROWS else 0

    def why_refused(self, m: float) -> str:
        """Return why a horizon has no return level; "" if it has one."""
        if self.n < FEWEST_ROWS:
            return f"{self.n:,} rows; a tail needs at least {FEWEST_ROWS}"
        if m > FARTHEST * self.n:
            return (
                f"a horizon of {rows_text(m)} is beyond {FARTHEST} times the {self.n:,} rows; the "
                f"largest one is {self.largest_horizon:,.0f}"
            )
        if not self.is_measured(m) and not self.reaches(m):
            reason = self.why_no_fit or "the level is below the threshold"
            return f"{reason}; order statistics alone reach a horizon of {self._most_measured():,}"
        return ""

    def _most_measured(self) -> int:
        """Return the largest horizon whose level order statistics limit from both sides."""
        tail = (1 - self.confidence) / 2
        return max(1, math.floor(-1 / math.expm1(math.log(tail) / self.n)))

    def reaches(self, m: float) -> bool:
        """Return whether the fit gives the level of a horizon."""
        return self.fit is not None and m * self.fit.k / self.n >= LEAST_HORIZON

    def is_measured(self, m: float) -> bool:
        """Return whether order statistics limit the level from both sides."""
        return self.n >= FEWEST_ROWS and self.sorted.order_limits(m, self.confidence)[2]

    def cuts(self, m: float, call: _native.Call) -> _native.Cuts:
        """Return the cuts of a horizon: shipped, or simulated beyond the shipped table."""
        assert self.fit is not None
        return level_cuts(self.fit.k, self.n, float(m), call)

    def fitted(self, m: float, call: _native.Call) -> LevelEstimate:
        """Return the fitted level with its interval; NaN where the fit does not give one."""
        if not self.reaches(m) or self.why_refused(m):
            return NONE
        assert self.fit is not None
        low, high = self.fit.interval(m, self.confidence, self.cuts(m, call), call)
        return LevelEstimate(self.fit.level(m), low, high)

    def empirical(self, m: float) -> float:
        """Return the value that one observed row in m exceeds."""
        rank = math.floor(self.n / m * (1 + 1e-12))
        return float(self.sorted.top(rank + 1)[-1])

    def value(self, m: float) -> float:
        """Return the level: empirical where it is measured, else fitted; NaN if refused."""
        if self.why_refused(m):
            return math.nan
        if self.is_measured(m):
            return self.empirical(m)
        assert self.fit is not None
        return self.fit.level(m)

    def level(self, m: float, call: _native.Call) -> ReturnLevel:
        """Return the level of a horizon with all its limits."""
        reason = self.why_refused(m)
        free_low, free_high, measured = self.sorted.order_limits(m, self.confidence)
        fitted = self.fitted(m, call)
        half = NONE if self.half is None or reason else self.half.fitted(m, call)
        if reason:
            standing, low, high = "refused", math.nan, math.nan
        elif measured:
            standing, low, high = "measured", free_low, free_high
        else:
            standing, low, high = "extrapolated", fitted.low, fitted.high
            if self.n >= 3 * m:
                high = max(high, float(self.sorted.top(1)[0]))
        return ReturnLevel(
            horizon=float(m),
            value=self.value(m),
            low=low,
            high=high,
            standing=standing,
            rows_over_horizon=self.n / m,
            lower_free=free_low,
            fitted=fitted.value,
            fitted_low=fitted.low,
            fitted_high=fitted.high,
            half=half.value,
            half_low=half.low,
            half_high=half.high,
            reason=reason,
        )

    def shape_interval(self, call: _native.Call) -> tuple[float, float]:
        """Return the interval of the shape; NaN without a fit, or if no shape fits well."""
        if self.fit is None:
            return math.nan, math.nan
        cuts = shape_cuts(self.fit.k, call)
        return self.fit.shape_interval(self.confidence, cuts, call) or (math.nan, math.nan)

    @cached_property
    def excesses(self) -> Floats:
        """The excesses over the threshold on the scale of the fit, the largest first."""
        assert self.fit is not None
        top = self.sorted.top(self.fit.k)
        return self.on_scale(top) - float(self.on_scale(np.array([self.fit.threshold]))[0])

    def on_scale(self, values: Floats) -> Floats:
        """Return values on the scale of the fit: -log(1 - c / upper) where an end is known."""
        upper = self.scale_upper
        return values if upper is None else -np.log1p(-values / upper)

    def from_scale(self, values: Floats) -> Floats:
        """Return values on the scale of the fit, transformed back to the scale of the rows."""
        upper = self.scale_upper
        return values if upper is None else -upper * np.expm1(-values)


@dataclass(frozen=True, kw_only=True)
class FitBasis:
    """The scale and the grid on which a tail is fitted, or why it is not."""

    #: The known end in the scale of the fit; None if the values themselves are fitted.
    upper: float | None
    #: The step of the grid whose cells are fitted; None for continuous values.
    resolution: float | None = None
    #: Why there is no fit.
    reason: str = ""
    notes: tuple[Note, ...] = ()
    #: Number of tied exceedances although there is no grid: rows may be repeated.
    n_repeated: int = 0


#: Part of the note on a few equal values.
PERSONS = "where equal rows belong to one person, limits do not hold"
#: The note on many equal values.
COPIES = Note(
    "many-equal-differences",
    "many rows have the same difference: if they are copies of one another, or several rows of one "
    "person, order statistics do not hold either (76 to 79 % for 95, of rows repeated one to three "
    "times)",
)

#: The note on a fit whose shape is -1.
AT_EDGE = Note(
    "tail-fit-at-lowest-shape",
    "the shape is at the edge of what is fitted, -1: where the law ends more abruptly still (a "
    "smooth maximum over one direction has -2) only order statistics hold, and limits of the fit "
    "are too wide",
)


def _fit_basis(tail: TailProblem) -> FitBasis:
    upper = tail.upper
    if tail.n < FEWEST_ROWS:
        return FitBasis(upper=upper, reason=f"{tail.n:,} rows; a tail needs at least {FEWEST_ROWS}")
    if tail.k < FEWEST_EXCEEDANCES:
        reason = f"{tail.k} rows exceed the threshold; a fit needs at least {FEWEST_EXCEEDANCES}"
        return FitBasis(upper=upper, reason=reason)
    top = tail.sorted.top(tail.k + 1)
    last = float(top[-1]) if tail.threshold is None else tail.threshold
    if top[0] == last:
        reason = f"the {len(top):,} largest values are all {number(last)}"
        return FitBasis(upper=upper, reason=reason)
    n_zero = int((np.asarray(tail.values) == 0).sum()) if last == 0 else 0
    if n_zero > 1:
        reason = f"the threshold lies at the {n_zero:,} rows without a difference"
        return FitBasis(upper=upper, reason=reason)
    n_distinct, step = tail.sorted.ties(tail.k)
    if tail.resolution is not None or (tail.ties and n_distinct < _DISTINCT * tail.k):
        return _grid_basis(tail, n_distinct, tail.resolution or step)
    notes = []
    if n_distinct < tail.k:
        text = f"{tail.k - n_distinct} of {tail.k} exceedances are tied: {PERSONS}"
        notes.append(Note("tied-exceedances", text))
    if upper is not None and top[0] >= upper:
        n_end = int((top >= upper).sum())
        upper = None
        notes.append(
            Note(
                "values-at-upper-end",
                f"{n_end} of the largest values lie at the upper end, {number(float(top[0]))}: the "
                "tail is fitted on the scale of the values",
            )
        )
    return FitBasis(upper=upper, notes=tuple(notes), n_repeated=tail.k - n_distinct)


def _grid_basis(tail: TailProblem, n_distinct: int, step: float | None) -> FitBasis:
    if n_distinct < FEWEST_DISTINCT:
        reason = f"only {n_distinct} values above the threshold differ; a fit needs at least "
        return FitBasis(upper=tail.upper, reason=f"{reason}{FEWEST_DISTINCT}")
    if tail.threshold is not None:
        reason = "a threshold is given, and cells begin where they do: leave one of them out"
        return FitBasis(upper=tail.upper, reason=reason)
    if step is None:
        reason = f"of {tail.k} exceedances {n_distinct} differ, and they lie on no common grid"
        n_repeated = tail.k - n_distinct
        return FitBasis(upper=tail.upper, reason=reason, notes=(COPIES,), n_repeated=n_repeated)
    note = Note(
        "values-on-grid", f"values lie on a grid of {number(step)}: the fit is that of its cells"
    )
    return FitBasis(upper=tail.upper, resolution=step, notes=(note,))


@lru_cache(maxsize=256)
def _simulated_levels(k: int, n: int, m: float, n_threads: int | None) -> _native.Cuts:
    draws, call = _native.Draws(_REPLICATES, seed=_SEED, series=k), _native.Call(n_threads)
    return _native.simulate_level_cuts(k, [(m * k / n, float(n))], draws, call)[0]


@lru_cache(maxsize=64)
def _simulated_shape(k: int, n_threads: int | None) -> _native.Cuts:
    draws, call = _native.Draws(_REPLICATES, seed=_SEED, series=k), _native.Call(n_threads)
    return _native.simulate_shape_cuts(k, draws, call)


def level_cuts(k: int, n: int, m: float, call: _native.Call) -> _native.Cuts:
    """Return the cuts of return levels: shipped, or simulated beyond the shipped table."""
    shipped = _native.Cuts.of_level(k, float(n), m)
    return shipped or _simulated_levels(k, n, m, call.n_threads)


def shape_cuts(k: int, call: _native.Call) -> _native.Cuts:
    """Return the cuts of the shape: shipped, or simulated beyond the shipped table."""
    return _native.Cuts.of_shape(k) or _simulated_shape(k, call.n_threads)
