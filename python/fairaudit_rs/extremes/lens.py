"""Holds `extreme_test`, which checks its arguments, measures the tails and builds the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from typing import Any, get_args

from .. import arguments
from ..data.groups import attribute_name, group_name
from ..data.labels import Label
from ..errors import NotMeasurableError
from ..literals import Auto, ExtremeNull, Missing, UpperByRow
from ..report.notes import Note, reason_without_numbers
from .augment import NO_INTERVAL
from .fit_tail import exceedances_of
from .generated_tails import augment_tails, check_design, top_ups_of
from .pairs import TailMeasurements, describe_refusals, measure_tails
from .problem import FEWEST_ROWS
from .question import ROW_BOUNDS, ExtremeArguments, ExtremeQuestion
from .result import ExtremeResult, find_clearest
from .tail import check_horizon, make_tail_fit

#: With fewer rows in the smaller group, the result warns of low power.
_LITTLE = 200
#: The confidence level of the outermost simulated quantiles.
LAST_CONFIDENCE = 0.999
_NULLS: tuple[ExtremeNull, ...] = get_args(ExtremeNull)


def extreme_test(
    model: Any = None,
    X: Any = None,
    *,
    attribute: Any = None,
    y_score: Any = None,
    counterfactual_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    flip: Any = None,
    upper: float | UpperByRow | None = 1.0,
    horizon: float = 1_000,
    null: ExtremeNull = "equal_levels",
    n_exceedances: int | Auto = "auto",
    generator: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    pos_label: Label = None,
    missing: Missing | None = None,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> ExtremeResult:
    r"""Test how bad counterfactual discrimination gets: worst cases by group, and their difference.

    Parameters
    ----------
    model : object, optional
        An object with ``predict_proba``, a torch module, a model of this package, or a function of
        X that returns probabilities of the favourable label.
    X : frame or array, optional
        The rows, in the form that the model takes.
    attribute : str, int, or list of them, optional
        The attribute to flip: a column of X, one-hot columns together, or several attributes.
    y_score, counterfactual_score : array, or str with ``data``
        Instead of a model: the probability of the favourable label for every row, unchanged and
        with its attribute flipped.
    sensitive_features : array, or str with ``data``
        The feature or features that define the groups; with a model, by default the attribute.
    data : frame, path or glob, optional
        See `tabulate`; the two scores and the sensitive features are then names of its columns.
    groups : sequence, optional
        The groups to compare; all by default.
    reference : optional
        The privileged group: every other group is compared with it. All pairs by default.
    flip : dict, level or callable, optional
        How rows are flipped: ``{from: to}`` or ``{from: [to, ...]}``, one level for all rows, or a
        function of (rows, their levels) that returns the counterfactual rows; a function can also
        change features that depend on the attribute. By default a row is flipped to every other
        level, and the largest difference counts.
    upper : float, None or "row"
        The known upper end of the differences, 1 for probabilities; None if none is known. With
        ``"row"`` it is 1 - score in each row; levels are then those of difference / (1 - score),
        and their intervals cover as little as 91.5 %.
    horizon : float
        Number of rows (interactions) of which the worst is estimated.
    null : {"equal_levels", "equal_laws"}
        The null hypothesis of the p-value: equal return levels, or, by permuting rows, equal
        distributions. The latter is a stronger hypothesis, and is rejected too if levels are equal
        but distributions differ.
    n_exceedances : int or "auto"
        How many of the largest differences of a group are fitted: see `fit_tail`.
    generator : str, object or None
        ``"bootstrap"``, ``"copula"``, ``"tvae"``, ``"ctgan"``, an object with ``fit`` and
        ``sample``, or `TopUps`: adds tails with generated rows to the result, separate from those
        of the real rows. Needs a model.
    confidence_level : float
        Level of the intervals.
    n_resamples : int
        Replicates of ``null="equal_laws"``. A generator is refitted as often, but at most 99
        times, or 19 times if it is a network.
    pos_label : optional
        The favourable class of ``predict_proba``; the second by default.
    missing : optional
        See `tabulate`; it needs ``sensitive_features``.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None or -1 takes all cores that the process may use. The result does not depend on it.
    progress : bool or callable, optional
        True prints; a callable gets (rows and replicates done, rows and replicates in all).

    Returns
    -------
    ExtremeResult
        With ``ecd``, ``comparisons``, ``tails`` by group, ``return_levels``, ``acd`` and ``cvar``.

    Notes
    -----
    The counterfactual discrimination of a row is :math:`c = f(x, z') - f(x, z)`, with f the
    probability of the favourable label: the gain from flipping the attribute. The *extreme*
    counterfactual discrimination (ECD) is the difference of two groups' return levels, the levels
    that one row in ``horizon`` exceeds [1]_. Each tail is fitted by `fit_tail`, whose notes explain
    the limits. Groups of fewer than 100 rows are not compared, and horizons beyond 5 times a
    group's rows are refused.

    *Null hypothesis*: the return levels are equal, if both tails go on as they began. With
    :math:`z_g(x)` the normal score of the null probability of group g's signed root at the level x,
    :math:`Q = \min_x z_1(x)^2 + z_2(x)^2` is compared with chi-square of one degree of freedom. The
    interval consists of the differences d with :math:`\min_x z_1(x + d)^2 + z_2(x)^2` within its
    quantile. At 5 % the test rejects 3.6 to 6.5 % of equal pairs, and 0.8 to 4 % if a tail is
    nearly uniform. With two populations in a tail, which no fit can detect, it rejected 22 to 37 %,
    and 81 % in the worst of our designs.

    If order statistics limit the level of a group, its binomial deviance replaces its :math:`z^2`,
    and Q is compared with the exact law of the sum at the common level, which is valid for every
    law of that group. Permuting rows would reject 10 to 67 % of pairs with equal levels and
    different laws. P-values of several pairs are adjusted by Holm's method. The estimate, p-value
    and interval (Bonferroni's) of the result are those of the pair with the smallest p-value.

    Rows must be independent; several rows per person are not supported.

    References
    ----------
    .. [1] Monjezi, V., Trivedi, A., Kreinovich, V. and Tizpaz-Niari, S. (2025). Fairness Testing
       through Extreme Value Theory. ICSE.

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> rng = np.random.default_rng(0)
    >>> sex, score = np.repeat(["f", "m"], 2_000), rng.random(4_000) * 0.4
    >>> gain = np.where(sex == "f", 0.5 * rng.beta(2, 4, 4_000), 0.2 * rng.beta(2, 4, 4_000))
    >>> result = fa.extreme_test(
    ...     y_score=score, counterfactual_score=score + gain, sensitive_features=sex, rng=1)
    >>> low, high = result.confidence_interval
    >>> low > 0.1, result.pvalue <= 0.001
    (True, True)
    """
    null = arguments.choice("null", null, _NULLS)
    m = check_horizon("horizon", horizon)
    checked = arguments.check(
        confidence_level=confidence_level,
        n_resamples=n_resamples,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    level, seed, callback = checked.confidence_level, checked.seed, checked.progress
    design = ExtremeArguments(
        model=model,
        X=X,
        attribute=attribute,
        y_score=y_score,
        counterfactual_score=counterfactual_score,
        sensitive_features=sensitive_features,
        data=data,
        groups=groups,
        reference=reference,
        flip=flip,
        upper=upper,
        pos_label=pos_label,
        missing=missing,
    )
    top_ups = None if generator is None else top_ups_of(generator)
    if top_ups is not None:
        check_design(design)
    question = design.pose(callback)
    if question.nothing_changes:
        raise NotMeasurableError(question.notes[-1].text)
    # Smaller groups have no tail, so they do not limit the number of exceedances.
    sizes = [group.n_rows for group in question.groups if group.n_rows >= FEWEST_ROWS]
    fewest = min(sizes, default=FEWEST_ROWS)
    n_largest = exceedances_of(n_exceedances, fewest)
    measurements = measure_tails(
        question,
        horizon=m,
        null=null,
        n_exceedances=n_largest,
        confidence=level,
        n_resamples=checked.n_resamples,
        seed=seed,
        n_threads=checked.n_threads,
        progress=callback,
    )
    _require_measurable_pair(measurements, m, null)
    augmented: dict[Any, Any] = {}
    if top_ups is not None:
        augmented = augment_tails(
            design,
            question,
            top_ups,
            horizon=m,
            n_exceedances=n_largest,
            confidence=level,
            problems={group.name: group.problem for group in measurements.groups},
            n_resamples=checked.n_resamples,
            seed=seed,
            progress=callback,
        )
    clearest = find_clearest(measurements.comparisons)
    name_of = partial(group_name, attribute=attribute_name(question.features))
    return ExtremeResult(
        estimate=clearest.estimate,
        standard_error=math.nan,
        statistic=clearest.statistic,
        pvalue=clearest.adjusted_pvalue,
        confidence_interval=measurements.interval,
        alternative="two-sided",
        n_rows=question.n_rows,
        group_sizes=question.group_sizes,
        seed=seed,
        engine=clearest.method if null == "equal_levels" else "permutation",
        notes=tuple(
            _result_notes(
                question,
                measurements,
                m,
                null,
                level,
                generated=augmented if top_ups is not None else None,
            )
        ),
        comparisons=measurements.comparisons,
        tails={
            group.name: make_tail_fit(group.problem, name=f"the tail of {name_of(group.name)}")
            for group in measurements.groups
        },
        acd={group.name: group.acd for group in measurements.groups},
        cvar={group.name: group.cvar for group in measurements.groups},
        horizon=m,
        null=null,
        attribute=question.attribute or attribute_name(question.features),
        grouped_by=attribute_name(question.features),
        upper=question.upper,
        n_no_room={group.name: group.n_no_room for group in measurements.groups if group.n_no_room},
        augmented=augmented,
        n_resamples=checked.n_resamples if null == "equal_laws" else 0,
        n_missing=question.n_missing,
        confidence_level=level,
    )


def _require_measurable_pair(found: TailMeasurements, m: float, null: str) -> None:
    """Raise an error if no pair of groups is measurable."""
    if any(not math.isnan(comparison.pvalue) for comparison in found.comparisons):
        return
    if null == "equal_laws" and any(not comparison.reason for comparison in found.comparisons):
        reasons = [
            f"group {group.name!r}: "
            + (group.problem.why_no_fit or "the level is below the threshold")
            for group in found.groups
            if not group.problem.reaches(m)
        ]
        raise NotMeasurableError(
            f"null='equal_laws' needs fitted levels, but {'; '.join(reasons)}. Pass "
            "null='equal_levels'.",
            argument="null",
        )
    refused = describe_refusals([(group.name, group.problem) for group in found.groups], m)
    raise NotMeasurableError(refused or found.comparisons[0].reason)


def _result_notes(
    question: ExtremeQuestion,
    found: TailMeasurements,
    m: float,
    null: str,
    level: float,
    *,
    generated: Collection[Any] | None,
) -> Iterator[Note]:
    """Yield the notes on a comparison of tails."""
    name_of = partial(group_name, attribute=attribute_name(question.features))
    yield from (*question.notes, *found.notes)
    sizes = question.group_sizes
    refused = [
        (name_of(group.name), reason)
        for group in found.groups
        if (reason := group.problem.why_refused(m))
    ]
    for name, reason in refused:
        text = f"{name} is not compared: {reason}"
        kind = reason_without_numbers(reason)
        yield Note("group-not-compared", text, (name,), reason=kind)
    small = {name_of(name): n for name, n in sizes.items() if FEWEST_ROWS <= n < _LITTLE}
    if small:
        named = ", ".join(f"{name} ({n:,})" for name, n in small.items())
        yield Note(
            "few-rows-in-tail-test",
            f"with so few rows in {named} the test says little: at 100 rows against 500 it finds "
            "levels that differ by half in 3.5 to 26.5 % of all cases",
            tuple(small),
        )
    extrapolated = [
        (name_of(group.name), group.problem.n / m)
        for group in found.groups
        if not group.problem.why_refused(m) and not group.problem.is_measured(m)
    ]
    if extrapolated:
        named = ", ".join(f"{name} ({share:.2g} times the horizon)" for name, share in extrapolated)
        yield Note(
            "extrapolated-levels",
            f"levels are extrapolated from the rows of {named}: right where the "
            "tail goes on as it began; two populations in the tail cannot be seen",
            tuple(name for name, _ in extrapolated),
        )
    if question.upper == ROW_BOUNDS:
        yield Note(
            "levels-of-row-shares",
            "levels are of the share of each row's own room; their limits cover down to 91.5 %",
        )
    if null == "equal_laws":
        yield Note(
            "pvalue-of-equal-laws",
            "the p-value is of equal laws: a difference anywhere in the laws counts, not only "
            "that of the return levels",
        )
    if generated is not None:
        yield Note(
            "generated-rows-apart",
            f"tails with generated rows stand apart, in augmented; {NO_INTERVAL}",
        )
        left = [name_of(name) for name in question.group_sizes if name not in generated]
        if left:
            yield Note(
                "no-generated-rows",
                f"no rows were generated for {', '.join(left)}: its real rows have no fit of "
                "single values",
                tuple(left),
            )
    bounds = [
        f"{name_of(comparison.first)} and {name_of(comparison.second)}"
        for comparison in found.comparisons
        if comparison.pvalue_is_bound
    ]
    if bounds:
        yield Note(
            "pvalues-are-bounds",
            f"the p-value of {', of '.join(bounds)} is a bound: cuts are simulated up to there",
            tuple(bounds),
        )
    each = 1 - (1 - level) / max(1, sum(not comparison.reason for comparison in found.comparisons))
    if each > LAST_CONFIDENCE:
        yield Note(
            "limits-beyond-simulation",
            f"limits at a level beyond {LAST_CONFIDENCE:g} (many pairs, or the level asked for) "
            "go on from the last quantile that was simulated",
        )
    yield Note(
        "difference-without-error",
        "a difference of return levels has no standard error: its interval comes from likelihoods",
    )
