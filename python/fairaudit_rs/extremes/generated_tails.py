"""Estimates the tails of groups with rows from a generator, for `extreme_test(generator=...)`.

The model scores the generated rows, and their attribute is flipped, as for the real rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ArgumentError, NotMeasurableError
from ..inference.pvalues import monte_carlo_pvalue
from .augment import AugmentedTail, TailEstimates, TopUps, augmented_tails
from .frame_rows import join_rows, take_rows
from .problem import TailProblem
from .question import ROW_BOUNDS, ExtremeArguments, ExtremeQuestion, upper_of
from .scoring import probability_of, score_rows

Floats = NDArray[np.float64]

#: Maximum number of refits of a generator, and of one that is a neural network.
_MAX_REFITS = 99
_MAX_NETWORK_REFITS = 19
_NETWORKS = ("tvae", "ctgan")
#: Simulated samples for the p-value of the coefficient of variation.
_N_SIMULATED = 1_999


def top_ups_of(generator: Any) -> TopUps:
    """Return a generator as `TopUps`, with the number of rows to add: by default one top-up."""
    return generator if isinstance(generator, TopUps) else TopUps(generator=generator)


def count_refits(top_ups: TopUps, n_resamples: int) -> int:
    """Return the number of refits of a generator for the intervals."""
    kind = top_ups.generator
    name = kind if isinstance(kind, str) else type(kind).__name__.lower()
    return min(n_resamples, _MAX_NETWORK_REFITS if name in _NETWORKS else _MAX_REFITS)


def check_design(design: ExtremeArguments) -> None:
    """Refuse a generator with arguments for which generated rows cannot be flipped or scored."""
    if design.model is None:
        raise ArgumentError(
            "generator needs model and X, because the model scores the generated rows. Remove "
            "generator, or pass model= and X= instead of y_score= and counterfactual_score=.",
            argument="generator",
            mentions=("model", "X", "y_score", "counterfactual_score"),
            code="missing-argument",
        )
    if design.attribute is None:
        raise ArgumentError(
            "generator needs attribute=, the columns that are flipped in generated rows. Pass "
            "attribute=, or remove generator.",
            argument="generator",
            mentions=("attribute",),
            code="missing-argument",
        )
    if design.upper == ROW_BOUNDS:
        raise ArgumentError(
            "generator cannot be combined with upper='row'. Pass upper= as a number or None, or "
            "remove generator.",
            argument="generator",
            mentions=("upper",),
            code="conflicting-arguments",
        )


def augment_tails(
    design: ExtremeArguments,
    question: ExtremeQuestion,
    top_ups: TopUps,
    *,
    horizon: float,
    n_exceedances: int | None,
    confidence: float,
    problems: dict[Any, TailProblem],
    n_resamples: int,
    seed: int,
    progress: Callable[[int, int], object] | None,
) -> dict[Any, AugmentedTail]:
    """For each group, return the tail of its real and generated rows together.

    Groups whose values lie on a grid are skipped: generated rows have no grid, so their tails would
    not be comparable.
    """
    upper = upper_of(design.upper)
    end = upper if isinstance(upper, float) else None
    probability = probability_of(design.model, design.pos_label)
    groups = {group.name: group for group in question.groups}
    augmentable = [name for name, problem in problems.items() if _is_continuous(problem)]
    # One real row of each group provides the levels that a generated row may be flipped to.
    row_of_each_group = take_rows(design.X, np.array([group.rows[0] for group in groups.values()]))
    n_real = len(groups)

    def differences(frame: Any) -> Floats:
        flipped = replace(
            design,
            X=join_rows(row_of_each_group, frame),
            sensitive_features=None,
            groups=None,
            reference=None,
        ).prepared(upper)
        rows = np.arange(n_real, flipped.feature_table.n_rows)
        if not flipped.flips.has_counterfactual[rows].all():
            raise ArgumentError(
                "flip has no counterfactual for some generated rows. Map every level to another.",
                argument="flip",
            )
        return score_rows(
            probability, flipped.feature_table, flipped.flips, rows, None
        ).discrimination

    def tail(c: Floats) -> TailEstimates:
        problem = TailProblem(
            values=c,
            upper=end,
            n_exceedances=n_exceedances,
            # Resampling repeats rows, so ties say nothing about a grid.
            ties=False,
            confidence=confidence,
        )
        if problem.fit is None:
            raise NotMeasurableError(problem.why_no_fit)
        fit = problem.fit
        return TailEstimates(fit.threshold, fit.shape, fit.level(horizon))

    def pvalue(c: Floats) -> float:
        # Tests whether the excesses vary more than exponential numbers do.
        problem = TailProblem(values=c, upper=end, n_exceedances=n_exceedances, ties=False)
        if problem.fit is None:
            raise NotMeasurableError(problem.why_no_fit)
        excesses = problem.excesses
        variation = excesses.std(ddof=1) / excesses.mean()
        simulated = _simulate_variations(len(excesses))
        return monte_carlo_pvalue(int((simulated >= variation).sum()), len(simulated))

    frames = {name: take_rows(design.X, groups[name].rows) for name in augmentable}
    if not frames:
        raise NotMeasurableError(
            "generator cannot be used: no group has a tail of continuous values, with which "
            "generated rows could be compared. Remove generator.",
            argument="generator",
        )
    return augmented_tails(
        differences,
        frames,
        tail,
        top_ups=top_ups,
        pvalue=pvalue,
        n_resamples=count_refits(top_ups, n_resamples),
        confidence_level=confidence,
        rng=seed,
        progress=progress,
    )


def _is_continuous(problem: TailProblem) -> bool:
    return problem.fit is not None and problem.fit_basis.resolution is None


@lru_cache(maxsize=16)
def _simulate_variations(k: int) -> Floats:
    """Simulate coefficients of variation of k exponential numbers, with a fixed seed."""
    drawn = np.random.default_rng(0).standard_exponential((_N_SIMULATED, k))
    return np.asarray(drawn.std(axis=1, ddof=1) / drawn.mean(axis=1))
