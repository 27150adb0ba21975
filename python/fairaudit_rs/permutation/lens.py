"""`permutation_test`: tests whether a metric is equal in all groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

from .. import metrics
from ..data.labels import Label
from ..data.tables import AuditTable
from ..literals import (
    Adjustment,
    Alternative,
    Engine,
    GapInterval,
    Missing,
    MixedClusters,
    Studentize,
    Undefined,
)
from ..metrics.metric import AnyMetric
from .comparison import ComparisonSettings, compare_groups
from .question import named_columns, prepare_question, split_strata
from .result import PermutationResult


def permutation_test(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: AnyMetric,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    undefined: Undefined = "raise",
    min_group_size: int | None = None,
    alternative: Alternative = "two-sided",
    studentize: Studentize | bool = "auto",
    strata: Any = "auto",
    clusters: Any = None,
    sample_weight: Any = None,
    adjust: Adjustment = "holm",
    engine: Engine = "auto",
    interval: GapInterval = "auto",
    score_bins: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    mixed_clusters: MixedClusters = "refuse",
    n_resamples: int = 9_999,
    adaptive: bool = False,
    confidence_level: float = 0.95,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> PermutationResult:
    r"""Test whether a metric is equal in all groups.

    Parameters
    ----------
    y_true, y_pred, y_score : array, or str with ``data``, optional
        Labels, decisions (0/1, booleans, or anything with ``pos_label``) and scores; those
        that the metric needs.
    sensitive_features : array, several arrays, or str(s) with ``data``
        The attributes whose values make the groups; several make their intersections. With
        ``data=cells`` the default is all attributes of the cells. For a correlation, one
        attribute of numbers.
    data : frame, path, glob or Cells, optional
        See `tabulate`.
    metric : str or Metric
        A name or alias of the registry (``fairaudit metrics`` lists them), or a metric made by
        `metrics.count_metric`, `ratio_metric`, `joint_metric`, `correlation_metric` or
        `callable_metric`, or a function or scorer of scikit-learn that means one of the registry
        (``recall_score``).
    groups : sequence, optional
        The groups to compare, in this order; all by default, sorted. Intersections are tuples.
    reference : optional
        Compare every other group with this one, as "other minus reference". Without it, two
        groups are compared as "first minus second", more as all pairs.
    undefined : {"raise", "skip"}
        What to do if the metric has no value in some groups, or lacks the variance that a
        studentized test needs: ``"skip"`` excludes these groups, and the result names them.
    min_group_size : int, optional
        Groups with fewer rows are excluded, and the result names them.
    alternative : {"two-sided", "greater", "less"}
        The direction of the test; more than two groups are tested two-sided.
    studentize : {"auto", "pooled", "unpooled", "corrected", "bootstrap", "shared", "none"} or bool
        ``"auto"`` takes the pooled (score) variance for proportions; ``"corrected"`` for means,
        ratios of sums, and rates of weighted rows or of clusters (the larger p-value of two
        statistics: with the linearised variance of each group, and the same corrected for
        skewness); the linearised variance alone (``"unpooled"``) for other metrics; and a bootstrap
        of every replicate for callables.
        ``False`` means ``"none"``, which is not valid when the groups differ in anything but the
        metric; nor is ``"shared"`` (callables), one standard deviation for all replicates.
    strata : "auto", None, array(s), or str(s) with ``data``
        Rows exchange their groups only within a stratum. ``"auto"`` takes what the metric
        conditions on (true positive rate: the positive labels); strata of your own are
        crossed with it, and the test is then about the mean of the gaps within them. ``None``
        exchanges all rows.
    clusters : array(s), or str(s) with ``data``, optional
        Rows of one cluster (the decisions about one person) move together, and standard errors
        are those of sums over clusters. A cluster must belong to one group (see
        ``mixed_clusters``). Clusters are exchanged regardless of their labels: ``strata="auto"``
        then adds no stratum of the metric.
    sample_weight : array, or str with ``data``, optional
        Weight of each row, at least 0. Metrics use weighted sums, and standard errors account for
        unequal weights.
    adjust : {"holm", "bh", "max-t", "none"}
        How p-values of several pairs are adjusted. ``"max-t"`` uses the joint replicates of
        all groups; it controls the family-wise error only if all groups have the same
        distribution, not under the weaker hypothesis that this metric is equal.
    engine : {"auto", "exact", "cells", "stream", "shuffle", "melded", "callable"}
        ``"auto"`` computes the exact permutation distribution if possible and samples it otherwise:
        over cells for counts and for the AUC of scores with few values, over rows for ranks, row
        values, weights and clusters; it shuffles for correlations. Melded limits are used instead
        for weighted rates, for means of a known range with few rows near one end of it, and for
        rates and such means in few clusters.
    interval : {"auto", "inversion", "delta", "studentized", "basic", "percentile"}
        The interval method for gaps; see Notes and `intervals`. ``n_resamples`` also sets the
        number of bootstrap replicates.
    score_bins, pos_label, missing : optional
        See `tabulate`.
    mixed_clusters : {"refuse", "split", "drop"}
        What to do with clusters that have rows in several of the compared groups: raise an error,
        split them into one cluster per group (treated as independent), or drop their rows.
    n_resamples : int
        Replicates of each test that is not exact.
    adaptive : bool
        Stop a test as soon as it is decided at the level ``1 - confidence_level``, shared by the
        pairs: ``n_resamples`` is then the largest number of replicates. The p-value is valid
        whenever the test stops, but it only decides on which side of the level it lies: after an
        early stop it can be far larger than that of all replicates. Do not adjust it further.
    confidence_level : float
        Level of the intervals, and of the wording of the summary.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None or -1 takes all cores that the process may use. The result does not depend on it.
    progress : bool or callable, optional
        True prints; a callable gets (replicates done, replicates in all). By default a long call
        warns once, and a terminal shows progress from then on.

    Returns
    -------
    PermutationResult

    Raises
    ------
    DataError
        When the data cannot be tested as they are; the message names the offending value.

    Notes
    -----
    The null hypothesis is that the metric :math:`\theta` is equal in all groups. The statistic
    :math:`S = (\theta_a - \theta_b) / \sqrt{v_a + v_b}` is recomputed for every replicate with
    its own variances, so the test keeps its level asymptotically even when the groups differ
    in everything else [1]_, and exactly when the exchanged rows have the same distribution.
    For a proportion with ``strata="auto"`` that is the hypothesis itself: the test is exact.
    More than two groups are tested by :math:`\sum_g (\theta_g - \bar\theta)^2 / v_g`, a joint
    criterion by :math:`d^\top V^{-1} d` of the differences of its components.

    :math:`p = (1 + \#\{|S^*| \ge |S|\}) / (1 + B)`; ties are decided on integers or within a
    relative 1e-10, a replicate without a value counts as extreme. Exact engines sum
    probabilities and need no "+ 1".

    With strata of your own the test is about the mean of the gaps within them,
    :math:`\Delta = \sum_s k_s (\theta_{sa} - \theta_{sb}) / \sum_s k_s` with
    :math:`k_s = D_{sa} D_{sb} / (D_{sa} + D_{sb})` (D: the denominator; for F1, AUC and the like
    the effective number of rows); its variance uses variances within strata only. For
    proportions this is the Mantel-Haenszel difference.

    Means, ratios of sums, and rates of weighted rows or of clusters are tested by the larger
    p-value of S and of Hall's statistic, corrected for skewness; if a group has too few rows for
    its skewness, there is no p-value (``inconclusive``). Weighted rates, and means of a
    known range with few rows near one end of it, are compared by melded limits (engine
    ``melded``).

    Intervals: Newcombe's score interval for differences of proportions (within strata of your own
    the inverted score test of Mantel and Haenszel); inversion of the test itself, or melded
    limits, for means, ratios, weighted or clustered rates and Pearson's correlation; MOVER for F1,
    MCC, AUC, balanced accuracy and other metrics with a known range; otherwise the delta method
    (Spearman: Fisher's z; callables: the bootstrap standard error). With more than two groups the
    interval of the largest gap comes from Bonferroni intervals of all pairs, and for a joint
    criterion of all components.

    With ``adaptive`` the p-value after n replicates, x of them extreme, is the smallest 0.9
    quantile of Beta(x + 1, n + 1 - x) so far, over 0.9: betting on the binomial mixture [2]_.
    The test looks at 128, 256, 512, ... replicates. Differences of two groups within the strata
    of a metric are centred at the mean of 512 more replicates, which are not counted.

    References
    ----------
    .. [1] DiCiccio, C., Vasudevan, S., Basu, K., Kenthapadi, K. and Agarwal, D. (2020).
       Evaluating Fairness Using Permutation Tests. KDD. doi:10.1145/3394486.3403199
    .. [2] Fischer, L. and Ramdas, A. (2024). Sequential Monte Carlo testing by betting.
       arXiv:2401.07365

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> result = fa.permutation_test(
    ...     [1, 1, 1, 1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1, 0, 0, 0, 0],
    ...     sensitive_features=list("aaaaabbbbb"), metric="true_positive_rate")
    >>> result.engine, round(result.pvalue, 4)
    ('exact', 0.0476)
    """
    settings = ComparisonSettings.checked(
        alternative=alternative,
        adjust=adjust,
        engine=engine,
        interval=interval,
        n_resamples=n_resamples,
        adaptive=adaptive,
        confidence_level=confidence_level,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    chosen = metrics.get(metric)
    conditional, own_strata = split_strata(strata)
    table = AuditTable.make(
        data=data,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        sensitive_features=sensitive_features,
        strata=own_strata,
        clusters=clusters,
        sample_weight=sample_weight,
        extra=named_columns(chosen),
        missing=missing,
        mixed_clusters=mixed_clusters,
    )
    question = prepare_question(
        table,
        chosen,
        groups=groups,
        reference=reference,
        undefined=undefined,
        min_group_size=min_group_size,
        studentize=studentize,
        conditional=conditional,
        engine=settings.engine,
        score_bins=score_bins,
        pos_label=pos_label,
        n_threads=settings.n_threads,
        seed=settings.seed,
    )
    return compare_groups(question, settings)


def permutation_tests(metric_names: Sequence[AnyMetric], **passed: Any) -> list[PermutationResult]:
    """Test several metrics of the same data, which are read once.

    The arguments are those of `permutation_test`, with its defaults; all tests have the same seed.
    """
    parameters = signature(permutation_test).parameters
    options = {name: parameter.default for name, parameter in parameters.items()} | passed
    settings = ComparisonSettings.checked(
        **{name: options[name] for name in signature(ComparisonSettings.checked).parameters}
    )
    chosen = [metrics.get(name) for name in metric_names]
    conditional, own_strata = split_strata(options["strata"])
    columns = ["data", "y_true", "y_pred", "y_score", "sensitive_features", "clusters"]
    columns += ["sample_weight", "missing", "mixed_clusters"]
    table = AuditTable.make(
        **{name: options[name] for name in columns},
        strata=own_strata,
        extra=list(dict.fromkeys(name for metric in chosen for name in named_columns(metric))),
    )
    shared = table.with_cache() if len(chosen) > 1 else table
    names = ["groups", "reference", "undefined", "min_group_size", "studentize", "score_bins"]
    return [
        compare_groups(
            prepare_question(
                shared,
                metric,
                **{name: options[name] for name in (*names, "pos_label")},
                conditional=conditional,
                engine=settings.engine,
                n_threads=settings.n_threads,
                seed=settings.seed,
            ),
            settings,
        )
        for metric in chosen
    ]
