"""Ceteris-paribus scores: what a feature alone moves, all others held fixed (Definition 5).

gamma = E[psi(b, X_-j) - psi(a, X_-j)] over the rows of the target group, psi(x) the conditional
mean of the influence. Doubly robust: right where either P(Y = 1 | X) or P(x_j = b | X_-j) is; its
standard error is the larger of that of the influence function and of the stacked one, which counts
in what the two regressions add.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .nuisance import Basis, CrossFit, RidgeFit, cross_fit, cross_mean
from .rates import PARTS, MeasureValue, RateValue

Floats = NDArray[np.float64]
Predict = Callable[[Floats], Floats]

#: With a larger share of the weights 1 / e of an arm in one row there is no overlap to speak of.
_LARGEST_SHARE = 0.1
#: Share of all rows that those with a value stand for, by weights 1 / e; 1 with overlap.
_STAND_FOR = (0.8, 1.25)
#: Share of the variance of a feature that the others must leave.
_LEAST_REST = 0.01
#: A variance that is no more than this share of the squared mean is that of rounding.
_ROUNDING = 1e-24
#: Rows of either label in an arm.
_FEWEST = 10.0


@dataclass(frozen=True, eq=False, kw_only=True)
class Folded:
    """Kinds of rows of the target group by fold, with how often each occurs."""

    features: Floats
    label: Floats
    score: Floats
    count: Floats
    folds: NDArray[np.int64]

    @property
    def n_rows(self) -> float:
        """How many rows there are."""
        return float(self.count.sum())

    @property
    def parts(self) -> Floats:
        """1, y, f and y f, one column each."""
        y, f = self.label, self.score
        return np.column_stack([np.ones(len(f)), y, f, y * f])


@dataclass(frozen=True, eq=False, kw_only=True)
class Arm:
    """The rows with one value of a feature: who has it, and what it would be for the others."""

    inside: Floats
    #: The model, P(Y = 1 | X) and the design of the latter, were all rows to have the value.
    score: Floats
    label: Floats
    design: Floats
    #: P(X_j = value | the other features), the design of that regression and its fit on all rows.
    share: Floats
    others: Floats
    fit: RidgeFit
    n_rows: float

    @cached_property
    def change(self) -> Floats:
        """By row, what it adds to the coefficients of the share, times the number of rows."""
        return self.fit.influence(self.others, self.inside, self.n_rows)


@dataclass(frozen=True, eq=False, kw_only=True)
class Flip:
    """A score with all else held fixed: from one value of a feature to another, or its slope."""

    estimate: float
    standard_error: float
    df: float
    #: By kind and fold, of the standard error that was taken.
    influence: Floats
    plain_error: float
    stacked_error: float
    refusal: str


@dataclass(frozen=True, eq=False, kw_only=True)
class Nuisances:
    """P(Y = 1 | X) of the target group, shared by all features."""

    rows: Folded
    basis: Basis
    design: Floats
    crossed: CrossFit
    whole: RidgeFit

    @classmethod
    def of(cls, rows: Folded, needed: bool = True) -> Nuisances:
        """Fit it, where labels play a part."""
        basis = Basis.of(rows.features, rows.count)
        design = basis.design(rows.features)
        if not needed:
            p = design.shape[1]
            whole = RidgeFit(np.zeros(p), 1.0, np.eye(p))
            fits = (whole,) * (int(rows.folds.max()) + 1)
            crossed = CrossFit(fits, rows.folds)
            return cls(rows=rows, basis=basis, design=design, crossed=crossed, whole=whole)
        crossed = cross_fit(design, rows.label, rows.count, rows.folds)
        whole = RidgeFit.of(design, rows.label, rows.count, crossed.penalty)
        return cls(rows=rows, basis=basis, design=design, crossed=crossed, whole=whole)


def flip(nuisances: Nuisances, value: MeasureValue, predict: Predict, column: int) -> Flip:
    """Return the score of the binary feature in a column, 1 against 0."""
    low, high = arms_of(nuisances, predict, (column,))
    return contrast(nuisances, value, low, high)


def arms_of(nuisances: Nuisances, predict: Predict, columns: tuple[int, ...]) -> list[Arm]:
    """Return the rows by value of a feature: 0 and 1 of one column, or a value for each column."""
    rows = nuisances.rows
    others = np.delete(rows.features, columns, axis=1)
    basis = Basis.of(others, rows.count)
    design = basis.design(others)
    arms = []
    for number, column in enumerate(columns):
        own = rows.features[:, column]
        crossed = cross_fit(design, own, rows.count, rows.folds)
        whole = RidgeFit.of(design, own, rows.count, crossed.penalty)
        share = crossed.predict(design)
        alone = np.zeros(len(columns))
        alone[number] = 1.0
        if len(columns) == 1:
            # The regression of 1 - x is that of x with the other sign.
            turned = RidgeFit(-whole.coef, whole.penalty, whole.hessian)
            nothing = np.zeros(1)
            arms.append(
                _arm(nuisances, predict, columns, nothing, 1 - own, 1 - share, design, turned)
            )
        arms.append(_arm(nuisances, predict, columns, alone, own, share, design, whole))
    return arms


def _arm(
    nuisances: Nuisances,
    predict: Predict,
    columns: tuple[int, ...],
    setting: Floats,
    inside: Floats,
    share: Floats,
    others: Floats,
    fit: RidgeFit,
) -> Arm:
    moved = nuisances.rows.features.copy()
    moved[:, columns] = setting
    design = nuisances.basis.design(moved)
    return Arm(
        inside=inside,
        score=predict(moved),
        label=nuisances.crossed.predict(design),
        design=design,
        share=share,
        others=others,
        fit=fit,
        n_rows=nuisances.rows.n_rows,
    )


def contrast(nuisances: Nuisances, value: MeasureValue, low: Arm, high: Arm) -> Flip:
    """Return the score of one value of a feature against another."""
    rows, arms = nuisances.rows, [low, high]
    estimate, plain, by_label, by_share = _doubly_robust(rows, value, arms)
    n, count = rows.n_rows, rows.count
    change = nuisances.whole.influence(nuisances.design, rows.label, n) @ by_label
    for arm, gradient in zip(arms, by_share, strict=True):
        change += arm.change @ gradient
    stacked = plain + change
    errors = [math.sqrt(float(count @ one**2)) / n for one in (plain, stacked)]
    taken = plain if errors[0] >= errors[1] else stacked
    square, fourth = float(count @ taken**2), float(count @ taken**4)
    return Flip(
        estimate=estimate,
        standard_error=max(errors),
        df=square**2 / fourth if fourth > 0 else math.nan,
        influence=taken,
        plain_error=errors[0],
        stacked_error=errors[1],
        refusal=_refusal(rows, arms, value.measure.needs_labels),
    )


def plug_in(nuisances: Nuisances, value: MeasureValue, low: Arm, high: Arm) -> Flip:
    """Return the score as the paper has it: the mean change of psi, as if P(Y = 1 | X) were known.

    Its error is that of a plain mean, which is too small by far: for comparison only.
    """
    rows = nuisances.rows
    levels = [_level_and_slope(arm, value.parts) for arm in (low, high)]
    of_low, of_high = (
        level + slope * arm.label for (level, slope), arm in zip(levels, (low, high), strict=True)
    )
    difference, n = of_high - of_low, rows.n_rows
    estimate = float(rows.count @ difference) / n
    influence = difference - estimate
    error = math.sqrt(float(rows.count @ influence**2) / max(n - 1, 1) / n)
    return Flip(
        estimate=estimate,
        standard_error=error,
        df=math.inf,
        influence=influence,
        plain_error=error,
        stacked_error=math.nan,
        refusal="",
    )


def _doubly_robust(
    rows: Folded, value: MeasureValue, arms: list[Arm]
) -> tuple[float, Floats, Floats, list[Floats]]:
    """Return the score, its influence values, and its gradients by the regressions.

    s_v = c0 + c1 h + 1{x = v} / e c1 (y - h) with E[u | x] = c0 + c1 h, the same of b with d0, d1;
    gamma = mean(s_b - s_a) / B.
    """
    n, count = rows.n_rows, rows.count
    estimate, influence = 0.0, np.zeros(len(count))
    by_label = np.zeros(arms[0].design.shape[1])
    by_share = [np.zeros(arm.others.shape[1]) for arm in arms]
    for weight, rate in zip(value.measure.weights, value.rates, strict=True):
        of_u = [_augmented(rows, arm, rate.excess) for arm in arms]
        of_b = [_augmented(rows, arm, rate.base) for arm in arms]
        difference = of_u[1] - of_u[0]
        gamma = float(count @ difference) / n / rate.mean_base
        base_gap = float(count @ (of_b[1] - of_b[0])) / n
        u, b = rows.parts @ rate.excess, rows.parts @ rate.base
        one = difference - gamma * rate.mean_base - base_gap * u / rate.mean_base
        one -= gamma * (b - rate.mean_base)
        estimate += weight * gamma
        influence += weight / rate.mean_base * one
        for sign, arm, gradient in zip((-1.0, 1.0), arms, by_share, strict=True):
            more = _gradients(rows, arm, rate)
            by_label += sign * weight / rate.mean_base * more[0]
            gradient += sign * weight / rate.mean_base * more[1]
    return estimate, influence, by_label, by_share


def _level_and_slope(arm: Arm, parts: Floats) -> tuple[Floats, Floats]:
    """Return c0 and c1: with f as in the arm, the mean of a sum of parts given x is c0 + c1 h."""
    assert len(parts) == PARTS
    one, label, score, both = parts
    return one + score * arm.score, label + both * arm.score


def _augmented(rows: Folded, arm: Arm, parts: Floats) -> Floats:
    level, slope = _level_and_slope(arm, parts)
    residual = arm.inside / arm.share * (rows.label - arm.label)
    return np.asarray(level + slope * (arm.label + residual))


def _gradients(rows: Folded, arm: Arm, rate: RateValue) -> tuple[Floats, Floats]:
    """Return the derivatives of the mean of s_v by the coefficients of h and of e."""
    _, slope = _level_and_slope(arm, rate.excess)
    left = (1 - arm.inside / arm.share) * slope * arm.label * (1 - arm.label)
    share = -arm.inside / arm.share * (1 - arm.share) * slope * (rows.label - arm.label)
    by_label = (rows.count * left) @ arm.design
    return by_label / rows.n_rows, (rows.count * share) @ arm.others / rows.n_rows


def _refusal(rows: Folded, arms: list[Arm], labels: bool) -> str:
    """Say why there is no overlap, or too few rows of a label; "" where there is enough."""
    for arm in arms:
        inside = arm.inside > 0
        for label in (0.0, 1.0) if labels else ():
            n = float(rows.count[inside & (rows.label == label)].sum())
            if n < _FEWEST:
                return f"{n:g} rows with label {label:g} and one of its values, {_FEWEST:g} needed"
        weights = 1 / arm.share[inside]
        # Where all rows could have the value, those that have it stand for all of them.
        stand_for = float(rows.count[inside] @ weights) / rows.n_rows
        if not _STAND_FOR[0] <= stand_for <= _STAND_FOR[1]:
            return (
                f"rows with one of its values stand for {100 * stand_for:.0f} % of all: no overlap"
            )
        largest = float(weights.max() / (rows.count[inside] @ weights))
        if largest > _LARGEST_SHARE:
            return f"one row carries {100 * largest:.2g} % of the weights of its value: no overlap"
    return ""


def partialled_out(
    rows: Folded, value: MeasureValue, columns: tuple[int, ...], column: int, binary: bool
) -> Flip:
    """Return the slope of psi by what the other features do not say of a column.

    E[(psi - l)(x - e)] / E[(x - e)^2], l = E[psi | X_-j] and e = E[x | X_-j] cross-fitted:
    the overlap-weighted score of a binary feature, right where e is. It needs predictions only.
    """
    others = np.delete(rows.features, columns, axis=1)
    basis = Basis.of(others, rows.count)
    design, x = basis.design(others), rows.features[:, column]
    psi = rows.parts @ value.parts
    expected = cross_mean(design, psi, rows.count, rows.folds)
    if binary:
        share = cross_fit(design, x, rows.count, rows.folds).predict(design)
    else:
        share = cross_mean(design, x, rows.count, rows.folds)
    rest, n = x - share, rows.n_rows
    square = float(rows.count @ rest**2) / n
    center = float(rows.count @ x) / n
    spread = float(rows.count @ (x - center) ** 2) / n
    if spread <= _ROUNDING * center**2:
        return _nothing("constant in the target group")
    if not square > _LEAST_REST * spread:
        return _nothing("the other features determine it")
    theta = float(rows.count @ ((psi - expected) * rest)) / n / square
    influence = (psi - expected - theta * rest) * rest / square
    for weight, rate in zip(value.measure.weights, value.rates, strict=True):
        u, b = rows.parts @ rate.excess, rows.parts @ rate.base
        own = float(rows.count @ (u * rest)) / n / rate.mean_base / square
        shared = float(rows.count @ (b * rest)) / n / square
        centred = b / rate.mean_base - 1
        influence -= weight * (shared * u / rate.mean_base**2 + own * centred)
    second, fourth = float(rows.count @ influence**2), float(rows.count @ influence**4)
    error = math.sqrt(second) / n
    return Flip(
        estimate=theta,
        standard_error=error,
        df=second**2 / fourth if fourth > 0 else math.nan,
        influence=influence,
        plain_error=error,
        stacked_error=math.nan,
        refusal="",
    )


def _nothing(refusal: str) -> Flip:
    nan = math.nan
    return Flip(
        estimate=nan,
        standard_error=nan,
        df=nan,
        influence=np.zeros(0),
        plain_error=nan,
        stacked_error=nan,
        refusal=refusal,
    )
