"""Marginal proxy scores: the association of a feature with the influence of rows.

A binary feature compares the rows with and without it, E[psi | x = 1] - E[psi | x = 0]; a
categorical one all pairs of its levels; a continuous one has the slope per standard deviation.
Standard errors include the error of estimating the rate, and for slopes the standard deviation,
from the same rows. Everything is computed from sums of the terms of a row (see `rates`) and of
their products, by column.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import chi_square_tail, t_quantile, t_upper_tail
from .feature import Feature
from .feature_encodings import FeatureEncodings
from .rates import N_TERMS, MeasureValue, RateValue

Floats = NDArray[np.float64]

#: With at least so many events and non-events in every cell, intervals cover ...
ENOUGH_EVENTS = 10.0
#: ... and below this they are not given.
FEW_EVENTS = 5.0
_ONE = np.eye(N_TERMS)[0]


@dataclass(frozen=True, eq=False)
class DistinctGroupRows:
    """The distinct rows of a group, in an order that does not depend on the data, with counts."""

    features: Floats
    #: Label, score and their product: one column each.
    terms: Floats
    count: Floats

    @property
    def n_rows(self) -> float:
        """The total number of rows."""
        return float(self.count.sum())


#: The positions of a group's rows, and the labels and scores of all rows.
GroupRows: TypeAlias = tuple[NDArray[np.int64], NDArray[np.bool_], Floats]


@dataclass(frozen=True, eq=False)
class TermMoments:
    """Sums over rows: of the four terms (the first is the number of rows) and their products."""

    sums: Floats
    products: Floats

    @classmethod
    def from_rows(cls, rows: GroupRows, call: _native.Call) -> TermMoments:
        """Add up the rows of a group; the result does not depend on their order."""
        one, label, score, both, square, both_square = _native.group_moments(rows, call)
        products = [
            [one, label, score, both],
            [label, label, both, both],
            [score, both, square, both_square],
            [both, both, both_square, both_square],
        ]
        return cls(np.array([one, label, score, both]), np.array(products))

    @property
    def n(self) -> float:
        """The number of rows."""
        return float(self.sums[0])

    @property
    def mean(self) -> Floats:
        """The means of the terms."""
        return np.asarray(self.sums / self.n)

    def without(self, other: TermMoments) -> TermMoments:
        """Return the rows that are not in another cell."""
        return TermMoments(self.sums - other.sums, self.products - other.products)

    def __add__(self, other: TermMoments) -> TermMoments:
        return TermMoments(self.sums + other.sums, self.products + other.products)


@dataclass(frozen=True)
class FeatureContrast:
    """The contrast behind a score: two values of a feature, or its slope."""

    feature: str
    kind: str
    #: The levels compared; () for slopes.
    levels: tuple[str, ...]
    #: The influence values of the score, as a combination of columns: (column, sign).
    columns: tuple[tuple[int, float], ...] = ()
    _: KW_ONLY
    #: "marginal", "ceteris_paribus" or "partialled_out".
    method: str = "marginal"


@dataclass(frozen=True, eq=False)
class FeatureScore:
    """A proxy score: of a feature, a pair of its levels, or its slope."""

    contrast: FeatureContrast
    _: KW_ONLY
    estimate: float
    standard_error: float
    #: Degrees of freedom of the t law; infinite for the normal law.
    df: float
    #: The fewest events or non-events in a cell.
    n_events: float
    note: str = ""

    @property
    def t(self) -> float:
        """The estimate in standard errors."""
        return self.estimate / self.standard_error if self.standard_error > 0 else math.nan

    @property
    def pvalue(self) -> float:
        """The two-sided p-value of no difference."""
        return 2 * t_upper_tail(abs(self.t), self.df)

    @property
    def has_few_events(self) -> bool:
        """Return whether there are too few events for a reliable interval."""
        return self.n_events < ENOUGH_EVENTS

    def interval(self, level: float) -> tuple[float, float]:
        """Return the interval of this score alone."""
        half = t_quantile((1 - level) / 2, self.df) * self.standard_error
        return self.estimate - half, self.estimate + half


@dataclass(frozen=True, eq=False)
class InfluenceColumn:
    """The influence of a row on the score of a column, in the form that the core takes."""

    level: Floats
    slope: Floats
    curve: float
    #: The mean and slope of u on the column, the factor and spread of the leverage; 0 if no slope.
    leverage: tuple[float, float, float, float]


class MarginalScores:
    """The marginal scores of all features of a group."""

    def __init__(
        self,
        coding: FeatureEncodings,
        rows: GroupRows,
        whole: TermMoments,
        value: MeasureValue,
        features: tuple[Feature, ...],
        call: _native.Call,
    ) -> None:
        self.all, self.value, self.features, self.call = whole, value, features, call
        self._native = _native.InfluenceRows(coding.native, coding.raw_values_of_one, rows, call)
        flat = self._native.sums
        first, second = np.triu_indices(N_TERMS)
        self._sums, self._squares = flat[:, :N_TERMS], flat[:, N_TERMS : 2 * N_TERMS]
        self._products = np.empty((len(flat), N_TERMS, N_TERMS))
        self._products[:, first, second] = self._products[:, second, first] = flat[:, 2 * N_TERMS :]
        self._columns = [_no_column() for _ in range(len(flat))]
        self.scores: list[FeatureScore] = []
        self.tests: dict[str, tuple[float, int]] = {}
        for feature in features:
            self.scores += self._scores_of(feature)
        self._add_slopes()

    def _cell(self, column: int) -> TermMoments:
        """Return the sums of the rows with 1 in a column."""
        return TermMoments(self._sums[column], self._products[column])

    def _cells(self, columns: list[int]) -> TermMoments:
        """Return the sums of the rows with 1 in any of several columns."""
        cell = self._cell(columns[0])
        for at in columns[1:]:
            cell = cell + self._cell(at)
        return cell

    def _scores_of(self, feature: Feature) -> list[FeatureScore]:
        if feature.kind == "binary":
            return [self._binary(feature)]
        if feature.kind == "categorical":
            return self._categorical(feature)
        return [self._slope(feature)]

    # -- binary --------------------------------------------------------------------------------

    def _binary(self, feature: Feature) -> FeatureScore:
        (at,) = feature.columns
        inside = self._cell(at)
        outside = self.all.without(inside)
        contrast = FeatureContrast(feature.name, feature.kind, feature.levels, ((at, 1.0),))
        if inside.n < 1 or outside.n < 1:
            return refused_score(contrast, "constant in the target group")
        n_events = min(self._events(inside), self._events(outside))
        estimate = 0.0
        of_inside, of_outside = np.zeros(N_TERMS), np.zeros(N_TERMS)
        for weight, rate in self._rates():
            gap = float(rate.deviation @ (inside.mean - outside.mean))
            base_gap = float(rate.denominator @ (inside.mean - outside.mean))
            theta = gap / rate.mean_denominator
            shared = base_gap * rate.deviation / rate.mean_denominator + theta * _centred(rate)
            share = inside.n / self.all.n
            excess = rate.deviation - float(rate.deviation @ inside.mean) * _ONE
            of_inside += weight / rate.mean_denominator * (excess / share - shared)
            excess = rate.deviation - float(rate.deviation @ outside.mean) * _ONE
            of_outside += weight / rate.mean_denominator * (-excess / (1 - share) - shared)
            estimate += weight * theta
        variance, df = split_variance(
            [(inside, of_inside[None]), (outside, of_outside[None])], self.all.n
        )
        self._columns[at] = InfluenceColumn(of_outside, of_inside - of_outside, 0.0, (0.0,) * 4)
        return _scored(contrast, estimate, math.sqrt(variance[0, 0]), float(df[0]), n_events)

    # -- categorical ---------------------------------------------------------------------------

    def _categorical(self, feature: Feature) -> list[FeatureScore]:
        """Compare all pairs of levels; levels with few events are merged into one."""
        groups = self._merged(feature)
        cells = [self._cells(columns) for _, columns in groups]
        names = [name for name, _ in groups]
        if len(groups) < 2:
            contrast = FeatureContrast(feature.name, feature.kind, tuple(names))
            return [refused_score(contrast, "fewer than two levels with enough events")]
        theta, influences, plain = self._levels(cells)
        for (_, columns), cell in zip(groups, cells, strict=True):
            for number, at in enumerate(columns):
                self._columns[at] = self._level_column(cell, alone=number == 0)
        contrasts = [
            (cell, contrast[1:] - contrast[0]) for cell, contrast in zip(cells, plain, strict=True)
        ]
        V, _ = split_variance(contrasts, self.all.n)
        gaps = theta[1:] - theta[0]
        wald = float(gaps @ np.linalg.pinv(V) @ gaps)
        self.tests[feature.name] = (chi_square_tail(wald, len(groups) - 1), len(groups))
        scores = []
        pairs = list(combinations(range(len(groups)), 2))
        second, first = (np.array([pair[i] for pair in pairs]) for i in (1, 0))
        of_pairs = [
            (cell, influence[second] - influence[first])
            for cell, influence in zip(cells, influences, strict=True)
        ]
        V, df = split_variance(of_pairs, self.all.n)
        events = [self._events(cell) for cell in cells]
        for number, (a, b) in enumerate(pairs):
            plus = [(at, 1.0) for at in groups[b][1]]
            minus = [(at, -1.0) for at in groups[a][1]]
            levels = (names[b], names[a])
            contrast = FeatureContrast(feature.name, feature.kind, levels, (*plus, *minus))
            error, n_events = math.sqrt(V[number, number]), min(events[a], events[b])
            gap = float(theta[b] - theta[a])
            scores.append(_scored(contrast, gap, error, float(df[number]), n_events))
        return scores

    def _merged(self, feature: Feature) -> list[tuple[str, list[int]]]:
        """Merge levels with few events, and add the next smallest until the merged has enough."""
        events = {at: self._events(self._cell(at)) for at in feature.columns}
        named = dict(zip(feature.columns, feature.levels, strict=True))
        rich = [at for at in feature.columns if events[at] >= ENOUGH_EVENTS]
        poor = [at for at in feature.columns if events[at] < ENOUGH_EVENTS]
        if not poor:
            return [(named[at], [at]) for at in rich]
        for at in sorted(rich, key=lambda at: events[at]):
            if self._events(self._cells(poor)) >= ENOUGH_EVENTS:
                break
            poor.append(at)
            rich.remove(at)
        return [*((named[at], [at]) for at in rich), (f"other ({len(poor)} levels)", poor)]

    def _levels(self, cells: list[TermMoments]) -> tuple[Floats, list[Floats], list[Floats]]:
        """Return the means of psi by level, and by cell their influence values.

        These come twice: with the error of estimating the mean denominator B, and without it.
        """
        theta = np.zeros(len(cells))
        full = [np.zeros((len(cells), N_TERMS)) for _ in cells]
        plain = [np.zeros((len(cells), N_TERMS)) for _ in cells]
        for weight, rate in self._rates():
            for k, level in enumerate(cells):
                mean = float(rate.deviation @ level.mean)
                theta[k] += weight * mean / rate.mean_denominator
                shared = (
                    float(rate.denominator @ level.mean) * rate.deviation / rate.mean_denominator
                )
                own = (rate.deviation - mean * _ONE) * self.all.n / level.n
                for c in range(len(cells)):
                    influence = (own if c == k else 0.0) - shared
                    plain[c][k] += weight / rate.mean_denominator * influence
                    influence = influence - mean / rate.mean_denominator * _centred(rate)
                    full[c][k] += weight / rate.mean_denominator * influence
        return theta, full, plain

    def _level_column(self, cell: TermMoments, alone: bool) -> InfluenceColumn:
        """Return the influence of a column on the mean of its level.

        If several columns share a level, only the first (``alone``) has the part of all rows.
        """
        level, slope = np.zeros(N_TERMS), np.zeros(N_TERMS)
        for weight, rate in self._rates():
            mean = float(rate.deviation @ cell.mean)
            slope += (
                weight
                / rate.mean_denominator
                * (rate.deviation - mean * _ONE)
                * self.all.n
                / cell.n
            )
            shared = float(rate.denominator @ cell.mean) * rate.deviation / rate.mean_denominator
            level -= (
                weight
                / rate.mean_denominator
                * (shared + mean / rate.mean_denominator * _centred(rate))
            )
        return InfluenceColumn(level if alone else np.zeros(N_TERMS), slope, 0.0, (0.0,) * 4)

    # -- continuous ----------------------------------------------------------------------------

    def _slope(self, feature: Feature) -> FeatureScore:
        (at,) = feature.columns
        contrast = FeatureContrast(feature.name, feature.kind, (), ((at, 1.0),))
        n = self.all.n
        spread = float(self._squares[at][0])
        if not spread > 0 or n < 3:
            return refused_score(contrast, "constant in the target group")
        # Per standard deviation (ddof 1), so that the scaled feature has the sum of squares n - 1.
        along = self._sums[at] / spread
        level, slope, curve, estimate = np.zeros(N_TERMS), np.zeros(N_TERMS), 0.0, 0.0
        of_u = self.value.coefficients
        for weight, rate in self._rates():
            theta = float(rate.deviation @ along) / rate.mean_denominator
            base_slope = float(rate.denominator @ along)
            estimate += weight * theta
            factor = weight / rate.mean_denominator
            level -= factor * (
                base_slope * rate.deviation / rate.mean_denominator + theta * _centred(rate)
            )
            mean = float(rate.deviation @ self.all.mean)
            slope += factor * n / spread * (rate.deviation - mean * _ONE)
            curve -= factor * n / spread * float(rate.deviation @ along)
            level -= weight * theta / 2 * _ONE
            curve += weight * theta / 2 * n / spread
        mean, along_u = float(of_u @ self.all.mean), float(of_u @ along)
        leverage = (mean, along_u, n / spread, spread)
        self._columns[at] = InfluenceColumn(level, slope, curve, leverage)
        return _scored(contrast, estimate, math.nan, math.inf, self._events(self.all))

    def _add_slopes(self) -> None:
        """Compute the products of all influence values, and the standard errors of slopes."""
        columns = self._columns
        influences = [
            np.append(np.concatenate([column.level, column.slope]), column.curve)
            for column in columns
        ]
        self.products, squares = self._native.gram(
            np.array(influences),
            self.value.coefficients.tolist(),
            np.array([column.leverage for column in columns]),
            self.call,
        )
        for place, score in enumerate(self.scores):
            if score.contrast.kind == "continuous" and not score.note.startswith("refused"):
                error = math.sqrt(squares[score.contrast.columns[0][0]]) / self.all.n
                self.scores[place] = replace(score, standard_error=error)

    # -- shared --------------------------------------------------------------------------------

    def _rates(self) -> list[tuple[float, RateValue]]:
        return list(zip(self.value.measure.weights, self.value.rates, strict=True))

    def _events(self, cell: TermMoments) -> float:
        """Return the fewest events or non-events of any rate in a cell."""
        return self.value.fewest_events(cell.sums)

    def correlation(self, scores: list[FeatureScore]) -> Floats:
        """Return the correlations of the influence values of some scores."""
        mixing = np.zeros((len(scores), len(self.products)))
        for row, score in enumerate(scores):
            for at, sign in score.contrast.columns:
                mixing[row, at] += sign
        covariance = mixing @ self.products @ mixing.T
        scale = np.sqrt(np.diag(covariance))
        return np.asarray(covariance / np.outer(scale, scale))


def split_variance(cells: list[tuple[TermMoments, Floats]], n_rows: float) -> tuple[Floats, Floats]:
    """Return the covariance of means of influence values, split by cell, and Satterthwaite's df.

    Each cell comes with the coefficients of its influence values on the terms, one row per mean.
    """
    size = len(cells[0][1])
    total, between, below = np.zeros((size, size)), np.zeros((size, size)), np.zeros(size)
    for cell, weights in cells:
        if cell.n <= 1:
            return np.full((size, size), math.nan), np.full(size, math.nan)
        mean = weights @ cell.mean
        square = weights @ cell.products @ weights.T - cell.n * np.outer(mean, mean)
        V = cell.n / (cell.n - 1) * square / n_rows**2
        total += V
        below += np.maximum(np.diag(V), 0.0) ** 2 / (cell.n - 1)
        between += cell.n * np.outer(mean, mean) / n_rows**2
    total += between
    # Rounding may leave a variance below 0.
    np.fill_diagonal(total, np.maximum(np.diag(total), 0.0))
    below += np.diag(between) ** 2 / (n_rows - 1)
    df = np.full(size, math.nan)
    np.divide(np.diag(total) ** 2, below, out=df, where=below > 0)
    return total, df


def _centred(rate: RateValue) -> Floats:
    return np.asarray(rate.denominator - rate.mean_denominator * _ONE)


def _no_column() -> InfluenceColumn:
    return InfluenceColumn(np.zeros(N_TERMS), np.zeros(N_TERMS), 0.0, (0.0,) * 4)


def refused_score(contrast: FeatureContrast, reason: str) -> FeatureScore:
    """Return a score of NaN with the reason why there is none."""
    nan, note = math.nan, f"refused: {reason}"
    return FeatureScore(contrast, estimate=nan, standard_error=nan, df=nan, n_events=0.0, note=note)


def _scored(
    contrast: FeatureContrast, estimate: float, error: float, df: float, n_events: float
) -> FeatureScore:
    """Return a score, or a refused one if there are too few events."""
    if n_events < FEW_EVENTS:
        return refused_score(
            contrast, f"{n_events:.3g} events in a cell, {FEW_EVENTS:g} are needed"
        )
    note = note_on(n_events)
    return FeatureScore(
        contrast, estimate=estimate, standard_error=error, df=df, n_events=n_events, note=note
    )


def note_on(n_events: float) -> str:
    """Return the note on a score with few events; "" if there are enough."""
    if n_events >= ENOUGH_EVENTS:
        return ""
    return f"few events: {n_events:.3g} in a cell, so that it is not looked at with the others"
