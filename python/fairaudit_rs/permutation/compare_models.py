"""`compare_models`: tests whether a second model has a smaller gap than a first one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, get_args

from .. import arguments, metrics
from ..data.groups import attribute_name, group_label
from ..data.labels import Label
from ..data.tables import AuditTable
from ..inference.intervals import clip_interval
from ..inference.multiplicity import adjust_pvalues
from ..literals import Alternative, Missing, PlainAdjustment, Undefined
from ..metrics.metric import AnyMetric
from ..progress import Progress
from ..report.notes import Note
from .model_comparison import GapChange, ModelComparison, ModelValue, clearest_pair
from .paired_question import PairedQuestion, ReplicateOptions, prepare_paired_question


def compare_models(
    y_true: Any = None,
    first: Any = None,
    second: Any = None,
    *,
    sensitive_features: Any = None,
    data: Any = None,
    metric: AnyMetric,
    counts: Any = None,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    undefined: Undefined = "raise",
    min_group_size: int | None = None,
    alternative: Alternative = "two-sided",
    adjust: PlainAdjustment = "holm",
    pos_label: Label = None,
    missing: Missing | None = None,
    n_resamples: int = 9_999,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> ModelComparison:
    r"""Test whether a second model has a smaller gap than a first one, on the same rows.

    Parameters
    ----------
    y_true, sensitive_features, data, metric, groups, reference : optional
        See `permutation_test`. Metrics of counts, the AUC, means, ratios of sums and callables of
        decisions or of scores. Correlations, joint criteria, calibration_error, and cells (which
        contain the decisions of one model) raise an error.
    first, second : array, or str with ``data``
        The decisions of each model, or its scores for metrics of scores.
    counts : array or str, optional
        How many people each row stands for, for metrics of counts; see `tabulate`.
    undefined, min_group_size : optional
        See `permutation_test`. A metric has a value in a group when it has one with both models.
    alternative : {"two-sided", "greater", "less"}
        Whether the size of the gap changes, becomes smaller, or becomes larger.
    adjust : {"holm", "bh", "none"}
        How p-values of several pairs are adjusted; see `adjust_pvalues`.
    pos_label, missing : optional
        See `permutation_test`.
    n_resamples : int
        Replicates of each test of the AUC, of means and of ratios; rates and other metrics of
        counts need none, and callables take the samples of their metric.
    confidence_level : float
        Level of the intervals.
    rng, random_state, n_threads, progress : optional
        See `permutation_test`.

    Returns
    -------
    ModelComparison

    Notes
    -----
    Of two groups a and b the gaps are :math:`g_k = \theta_k(a) - \theta_k(b)`, with the same sign
    for both models. Two differences are tested, :math:`D = g_2 - g_1` and :math:`S = g_2 + g_1`,
    because :math:`|g_2| < |g_1|` means :math:`D < 0 < S` or :math:`D > 0 > S`. Two-sided both
    :math:`D = 0` and :math:`S = 0` must be rejected; one-sided one of the two pairs of one-sided
    tests, whose larger p-value is used. A second gap of the same size but the opposite sign is
    therefore not smaller, and nothing is claimed while both gaps may be 0. The signed change,
    :math:`D = 0`, has its own p-value (``change_pvalue``). The interval of
    :math:`|g_2| - |g_1|` excludes 0 exactly when the two-sided test rejects.

    Rows are paired: only changes within rows are compared. Rates whose
    denominator is the same for both models (selection rate, TPR, FPR, accuracy; ``"score"``) have
    score tests: in each group a row goes up, down, or stays, and the shares are estimated by
    maximum likelihood under the hypothesis; of the p-values of the score and of the score corrected
    for skewness, the larger one is used. A group without changes has an interval too. Other metrics
    of counts (``"delta"``) have the linearised variance of the table of labels and both decisions,
    with one more row in each cell of rows that are decided differently. For the AUC, means and
    ratios (``"inversion"``) the contribution of each row is compared by permutations, as
    `permutation_test` compares means, and the interval inverts that test. Callables use the normal
    distribution with their bootstrap standard error (``"bootstrap-se"``).
    docs/compare_models.md has the measured error rates.

    Weights and clusters are not supported: the size of the tests was not measured for them.

    References
    ----------
    .. [1] Tango, T. (1998). Equivalence test and confidence interval for the difference in
       proportions for the paired-sample design. Statistics in Medicine 17.
    .. [2] Gail, M. and Simon, R. (1985). Testing for qualitative interactions between treatment
       effects and patient subsets. Biometrics 41. doi:10.2307/2530862

    Examples
    --------
    >>> import numpy as np
    >>> import fairaudit_rs as fa
    >>> group = np.repeat(["a", "b"], 1000)
    >>> row = np.arange(2000) % 1000
    >>> before = row < np.where(group == "a", 500, 700)
    >>> after = row < np.where(group == "a", 620, 700)
    >>> result = fa.compare_models(
    ...     first=before, second=after, sensitive_features=group, metric="selection_rate")
    >>> round(result.estimate, 2), result.pvalue < 0.05
    (-0.12, True)
    """
    adjust = arguments.choice("adjust", adjust, get_args(PlainAdjustment))
    checked = arguments.check(
        undefined=undefined,
        min_group_size=min_group_size,
        alternative=alternative,
        n_resamples=n_resamples,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    level = checked.confidence_level
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        first=first,
        second=second,
        counts=counts,
        sensitive_features=sensitive_features,
        rows_for="compare_models",
        missing=missing,
    )
    question = prepare_paired_question(
        table,
        metrics.get(metric),
        ReplicateOptions(
            n_resamples=checked.n_resamples,
            seed=checked.seed,
            n_threads=checked.n_threads,
            progress=Progress(callback=checked.progress, n_resamples=checked.n_resamples),
        ),
        groups=groups,
        reference=reference,
        undefined=checked.undefined,
        min_group_size=checked.min_group_size,
        pos_label=pos_label,
    )
    problem = question.problem
    names = [group_label(key) for key in problem.keys]
    gaps = [problem.compare(pair, level) for pair in question.pairs]
    pvalues = [getattr(gap.size, checked.alternative.replace("-", "_")) for gap in gaps]
    comparisons = tuple(
        GapChange(
            first=names[i],
            second=names[j],
            gap_of_first=gap.gaps[0],
            gap_of_second=gap.gaps[1],
            change=gap.change.estimate,
            change_standard_error=gap.change.standard_error,
            change_interval=gap.change.interval,
            change_pvalue=gap.change.two_sided,
            estimate=gap.size.estimate,
            confidence_interval=gap.size.interval,
            statistic=gap.size.statistic,
            pvalue=pvalue,
            adjusted_pvalue=float(adjusted),
        )
        for (i, j), gap, pvalue, adjusted in zip(
            question.pairs, gaps, pvalues, adjust_pvalues(pvalues, adjust), strict=True
        )
    )
    clearest = clearest_pair(comparisons)
    return ModelComparison(
        estimate=clearest.estimate,
        standard_error=clearest.change_standard_error,
        statistic=clearest.statistic,
        pvalue=clearest.adjusted_pvalue,
        confidence_interval=clearest.confidence_interval,
        alternative=checked.alternative,
        n_rows=sum(problem.n_rows),
        group_sizes={names[i]: problem.n_rows[i] for i in question.order},
        seed=checked.seed,
        engine=problem.engine,
        notes=tuple(_comparison_notes(question, comparisons)),
        metric=problem.metric.name,
        comparisons=comparisons,
        values=tuple(_value(question, i, level) for i in question.order),
        overall=problem.overall(level),
        adjust=adjust,
        method=problem.method,
        n_resamples=problem.n_resamples,
        n_missing=question.n_missing,
        confidence_level=level,
        attribute=attribute_name(question.features),
        left_out=question.left_out,
    )


def _value(question: PairedQuestion, position: int, level: float) -> ModelValue:
    problem = question.problem
    first, second = problem.values[:, position].tolist()
    change = problem.change(position, level)
    return ModelValue(
        group=group_label(problem.keys[position]),
        n_rows=problem.n_rows[position],
        n_used=problem.n_used(position),
        n_changed=problem.n_changed(position),
        of_first=first,
        of_second=second,
        change=change.estimate,
        confidence_interval=clip_interval(change.interval, problem.bound),
    )


def _comparison_notes(
    question: PairedQuestion,
    comparisons: Sequence[GapChange],
) -> Iterator[Note]:
    """Yield the remarks on the numbers."""
    problem = question.problem
    name_of = dict(zip(map(group_label, problem.keys), problem.names, strict=True))
    yield from question.notes_of_rows()
    for comparison in comparisons:
        pair = name_of[comparison.first], name_of[comparison.second]
        who = " minus ".join(pair)
        if comparison.turned:
            yield Note(
                "gap-changes-sign",
                f"the gap of {who} changes its sign: the sizes of gaps on two sides are compared",
                pair,
            )
        if math.isnan(comparison.pvalue):
            yield Note(
                "change-does-not-vary",
                f"nothing is shown about the gap of {who}: {problem.metric.name}, or its change, "
                "does not vary within one of them",
                pair,
            )
    yield from problem.notes()
