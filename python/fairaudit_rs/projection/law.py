"""Compute the asymptotic p-value of the statistic, and check that the limit law fits the data."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..inference.pvalues import SMALLEST_PVALUE
from ..report.notes import Note
from ..results.verdict import rejects_at
from .criteria import CriteriaTolerance, Curvature
from .problem import BANDWIDTHS, Criteria

#: With fewer expected rows of a decision under equal rates, a rate is not close to normal.
_FEW_DECISIONS = 4
#: With fewer effective rows in the window, the density near the boundary is not estimable ...
_FEW_ROWS = 10
#: ... which is harmless if so many rows of a decision are expected: docs/atlas/projection.md.
_ENOUGH_DECISIONS = 15
#: With fewer distinct margins in the window, most of them shared, the margins are discrete.
_FEW_MARGINS = 100
#: The accepted range of the predicted size of a 5 % test of each criterion; outside it, the limit
#: law does not fit the margins.
_SIZES = (0.01, 0.10)
#: A bound far beyond any gap.
_FARTHEST = 1e6
#: Below this predicted size a test has no power at all, because rows move at no cost.
_HARDLY_EVER = 0.001


@dataclass(frozen=True, kw_only=True)
class LimitTest:
    """The asymptotic p-value, with its sensitivity to the bandwidth and reasons for doubt."""

    pvalue: float
    critical_value: float
    sensitivity: tuple[tuple[float, float], ...] = ()
    effective_rows: float = math.nan
    inconclusive: str | None = None
    note: Note | None = None

    @classmethod
    def from_criteria(
        cls,
        criteria: Criteria,
        tolerance: CriteriaTolerance,
        statistic: float,
        curvature: Curvature | None,
        alpha: float,
    ) -> LimitTest:
        """Return the test by the limit law."""
        wide = tolerance.widened()
        fair = bool(((criteria.gap >= wide.low) & (criteria.gap <= wide.high)).all())
        undefined = cls(pvalue=math.nan, critical_value=math.nan)
        if curvature is None:
            if fair:
                return replace(undefined, pvalue=1.0)
            reason = "the distances to the boundary do not vary"
            return replace(undefined, inconclusive=reason + _suggestion(criteria, tolerance))
        rows = float(curvature.effective_rows.min())
        laws = [_LimitLaw(criteria, tolerance, matrix) for matrix in curvature.matrices]
        if not all(law.exists for law in laws):
            reason = (
                "some criteria are combinations of others"
                if (np.diag(curvature.matrix) > 0).all()
                else "no rows lie near the boundary, whose density the limit law needs"
            )
            return replace(
                undefined,
                effective_rows=rows,
                pvalue=1.0 if fair else math.nan,
                inconclusive=None if fair else reason + _suggestion(criteria, tolerance),
            )
        critical = laws[1].critical_value(alpha)
        if fair:
            return cls(pvalue=1.0, critical_value=critical, effective_rows=rows)
        tails = [law.tail(statistic) for law in laws]
        sensitivity = tuple(
            (factor * curvature.bandwidth, max(found.tail, SMALLEST_PVALUE))
            for factor, found in zip(BANDWIDTHS, tails, strict=True)
        )
        pvalue = sensitivity[1][1]
        doubt = _doubt(criteria, curvature)
        if doubt is None:
            bound = "p is an upper bound: with so many tolerances the law is that of none"
            note = Note("p-is-upper-bound", bound) if tails[1].is_bound else None
            return cls(
                pvalue=pvalue,
                critical_value=critical,
                sensitivity=sensitivity,
                effective_rows=rows,
                note=note,
            )
        if doubt.is_safe or (doubt.rejects_too_rarely and rejects_at(pvalue, alpha)):
            more = (
                "it rejects all the same"
                if rejects_at(pvalue, alpha)
                else "p is larger than it need be"
                + _suggestion(criteria, tolerance, "has more power")
            )
            note = Note("limit-law-may-not-fit", f"{doubt.reason}; {more}")
            return cls(
                pvalue=pvalue,
                critical_value=critical,
                sensitivity=sensitivity,
                effective_rows=rows,
                note=note,
            )
        return cls(
            pvalue=math.nan,
            critical_value=math.nan,
            sensitivity=sensitivity,
            effective_rows=rows,
            inconclusive=doubt.reason + _suggestion(criteria, tolerance),
        )


def _suggestion(
    criteria: Criteria, tolerance: CriteriaTolerance, what: str = "gives a valid p-value"
) -> str:
    """Return a text that suggests the permutation test; "" if it does not apply."""
    exchangeable = tolerance.is_sharp and criteria.rows.weight is None
    return f"; calibration='permutation' {what}" if exchangeable else ""


class _LimitLaw:
    """The limit law of the statistic under the least favourable fair gaps."""

    def __init__(
        self, criteria: Criteria, tolerance: CriteriaTolerance, matrix: NDArray[Any]
    ) -> None:
        self.covariance, self.matrix = criteria.covariance, matrix
        root = math.sqrt(criteria.n_rows)
        # Gaps lie within -1 and 1, so a bound beyond that is no constraint: keep it finite.
        self.low, self.high = (
            np.where(np.isfinite(side), np.clip(side, -_FARTHEST, _FARTHEST), side) * root
            for side in (tolerance.low, tolerance.high)
        )
        self.call = criteria.call
        scale = np.sqrt(np.diag(matrix))
        self.exists = bool((scale > 0).all()) and bool(
            np.linalg.eigvalsh(matrix / np.outer(scale, scale)).min() > 1e-10
        )

    @cached_property
    def _worst(self) -> _native.BoxLaw:
        matrices = self.covariance.ravel(), self.matrix.ravel()
        return _native.BoxLaw(*matrices, self.low, self.high, self.call)

    def tail(self, statistic: float) -> _native.BoxTail:
        """Return the p-value, and whether it is an upper bound."""
        return self._worst.tail(statistic, self.call)

    def critical_value(self, alpha: float) -> float:
        """Return the value that is exceeded with probability alpha."""
        return self._worst.quantile(alpha, self.call)


@dataclass(frozen=True)
class _Doubt:
    """Why the limit law does not fit the rows, and in which direction it errs."""

    reason: str
    #: The test is conservative.
    rejects_too_rarely: bool = False
    #: The test is conservative, but still has some power.
    is_safe: bool = False


def _doubt(criteria: Criteria, curvature: Curvature) -> _Doubt | None:
    """Return why the limit law does not fit these rows; None if it does."""
    fewest, which = criteria.fewest_decisions()
    if fewest < _FEW_DECISIONS:
        return _Doubt(
            f"only {fewest:.2g} rows {which} are expected; the limit law needs {_FEW_DECISIONS}"
        )
    rows = curvature.effective_rows
    if (rows < _FEW_ROWS).any() and fewest < _ENOUGH_DECISIONS:
        return _Doubt(
            f"only {float(rows.min()):.3g} effective rows lie near the boundary (within a "
            f"bandwidth of {curvature.bandwidth:.3g}), and only {fewest:.2g} rows {which} are "
            f"expected; the limit law needs {_FEW_ROWS} of the former or {_ENOUGH_DECISIONS} of "
            "the latter"
        )
    near = criteria.distinct_margins(curvature.bandwidth, _FEW_MARGINS)
    if near.margins < min(_FEW_MARGINS, near.rows / 2):
        return _Doubt(
            f"the {near.rows:,} rows within a bandwidth of the boundary have only {near.margins} "
            "distinct margins (atoms, as those of trees, forests and categorical features)"
        )
    sizes = criteria.predicted_sizes(curvature, 0.05)
    least, most = min(sizes), max(sizes)
    margins = (
        "the cost of small gaps does not follow the limit law (margins with atoms, as those of "
        "trees and of categorical features, a dip near the boundary, or few rows): a 5 % test "
        "would reject"
    )
    if most > _SIZES[1]:
        return _Doubt(f"{margins} {100 * most:.2g} % of such data were they fair")
    if least < _SIZES[0]:
        reason = f"{margins} only {100 * least:.2g} % of such data were they fair"
        return _Doubt(reason, rejects_too_rarely=True, is_safe=least >= _HARDLY_EVER)
    return None
