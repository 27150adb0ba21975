"""The function `influence_audit`: checks its arguments and returns the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .. import arguments
from ..data.groups import group_name
from ..data.labels import Label
from ..errors import ArgumentError, ArgumentTypeError
from ..literals import Compatibility, Missing
from ..metrics.metric import AnyMetric
from ..report.notes import Note
from .alignment import audit_alignment
from .known_probabilities import KnownProbabilities
from .marginal_scores import ENOUGH_EVENTS
from .nuisance import check_estimator
from .problem import InfluenceProblem, SimultaneousScore, others_name
from .question import InfluenceArguments, InfluenceQuestion
from .rates import NOT_RATES, measure_of
from .result import InfluenceResult, ProxyScore, rank_scores


def influence_audit(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    X: Any = None,
    model: Any = None,
    sensitive_features: Any = None,
    target: Any,
    data: Any = None,
    metric: AnyMetric | Mapping[str, float] = "false_positive_rate",
    features: Sequence[str] | None = None,
    sets: Mapping[str, Sequence[str]] | None = None,
    p_group: Any = None,
    p_outcome: Mapping[Any, Any] | None = None,
    nuisance: Any = None,
    n_folds: int = 5,
    confidence_level: float = 0.95,
    n_draws: int = 2_000,
    sample_weight: Any = None,
    clusters: Any = None,
    pos_label: Label = None,
    missing: Missing | None = None,
    compat: Compatibility | None = None,
    rng: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> InfluenceResult:
    r"""Find the features that act as proxies for a group in the gap of a metric.

    Parameters
    ----------
    y_true : array, or str with ``data``, optional
        Labels; not needed for the selection rate.
    y_pred, y_score : array, or str with ``data``
        Decisions, or scores from 0 to 1; one of them. With scores a rate is that of decisions drawn
        with these probabilities.
    X : array or frame, optional
        The features, in the order of the rows. Text is categorical, numbers with two values are
        binary, other numbers are continuous. Missing numbers are replaced by the mean (or the more
        frequent of two values) in regressions, and "... is missing" becomes a feature of its own;
        the model gets the rows unchanged.
    model : object, optional
        The fitted model: of this package, or one with ``predict_proba`` (for scores) or
        ``predict`` (for decisions, if ``y_pred`` is given). With it every feature also gets a score
        with all others held fixed; X must then be in the form that the model takes.
    sensitive_features : array, or str with ``data``
        The attribute whose values define the groups.
    target : str, int, ...
        The group to explain; it is compared with all others together.
    data : frame, path or glob, optional
        See `tabulate`; the other arguments are then names of its columns, and ``features`` names
        those of the features.
    metric : str, Metric or dict
        ``"false_positive_rate"``, ``"false_negative_rate"``, ``"true_positive_rate"``,
        ``"true_negative_rate"``, ``"false_discovery_rate"``, ``"positive_predictive_value"``,
        ``"selection_rate"``, or a dict of them with weights: their weighted sum. Also
        ``"calibration"`` and ``"divergence"``, which have no proxy scores: see the notes.
    features : sequence of str, optional
        The columns of X, or of the data, to audit.
    sets : dict of sequences of str, optional
        Columns that form one feature, by the name of that feature. One-hot columns (0 and 1, at
        most one of them 1) are its levels; otherwise each combination of values is a level.
    p_group : array, optional
        For ``metric="divergence"``: the known P(another group than the target | X) of every row;
        fitted by default.
    p_outcome : dict of arrays, optional
        For ``metric="calibration"``: by group, the known P(y = 1 | X) of every row; fitted by
        default. (Scores with all else held fixed need it at rows that are not in the data, and
        always fit it.)
    nuisance : object, optional
        An estimator with ``fit`` and ``predict_proba`` (0 before 1), copied for each fold, that
        replaces the default in all regressions of labels, groups and values of features.
    n_folds : int
        Folds of the regressions.
    confidence_level : float
        Level of the intervals.
    n_draws : int
        Random draws for the simultaneous intervals and the adjusted p-values.
    sample_weight, clusters : None
        Not supported: intervals of proxy scores may fail with weights, or with several rows of one
        person.
    pos_label : optional
        The value of ``y_true`` and ``y_pred`` that is the positive class.
    missing : optional
        See `tabulate`.
    compat : {None, "paper"}
        ``"paper"``: scores with the others held fixed are the plug-in scores of the paper, whose
        intervals do not cover; for comparison only.
    rng : None, int, SeedSequence, Generator or RandomState
        Source of the seed; ``random_state`` is an alias.
    n_threads : int, optional
        None or -1 takes all cores that the process may use. The result does not depend on it.
    progress : bool or callable, optional
        Of the draws: True prints; a callable gets (draws done, draws in all).

    Returns
    -------
    InfluenceResult
        For calibration and divergence it has ``parts``, each with its own interval or limit.

    Notes
    -----
    A row of the target group has the influence :math:`\psi_i = (a_i - R b_i) / B` on a rate
    :math:`R = \sum a / \sum b` with :math:`B` the mean of b: the change of the rate if there were
    slightly more such rows [1]_. The *marginal* proxy score of a binary feature is
    :math:`E[\psi \mid x = 1] - E[\psi \mid x = 0]`. A categorical feature has a score for each
    pair of levels, a continuous feature the slope per standard deviation. The null hypothesis of
    each is that it is 0. Standard errors include the error of estimating the rate and the standard
    deviation; variances are split by cell, with Satterthwaite's t.

    A score needs at least 10 events and 10 non-events of the metric in each cell: with 5 to 10 it
    is marked, below 5 it is refused; levels below 10 are merged. Simultaneous intervals and
    adjusted p-values come from the maximum of normal variables with the correlations of the
    influence values, over the scores that are not refused.

    A marginal score shows that a feature is associated with the gap, not that it causes it. With a
    model a binary feature also has the *ceteris-paribus* score
    :math:`\gamma = E[\psi(1, X_{-j}) - \psi(0, X_{-j})]`: the effect of the feature alone. It
    needs P(Y = 1 | X) and P(x_j = 1 | X_-j), from cross-fitted ridge logistic regressions on main
    effects and pairwise products, with penalties by cross-validated log loss; it is consistent if
    either of them is. A categorical feature has such a score for each pair of levels, or with more
    than 12 levels for each against the most frequent one. The standard error is the larger of that
    of the influence function and the stacked one, which exists for the default regressions only. If
    both regressions are wrong, the interval fails. Without overlap, with fewer than 10 rows of a
    label in an arm, and for continuous features, the *partialled-out* score
    :math:`E[(\psi - l)(x - e)] / E[(x - e)^2]` replaces it, with l and e the conditional means of
    :math:`\psi` and x given the other features.

    The *calibration* error :math:`E|h - f|`, :math:`h = P(y = 1 \mid X)` in the group, is the mean
    of :math:`\mathrm{sgn}(h - f)(y - f)` with h cross-fitted. From 5 standard errors on it has an
    interval; below, it has a one-sided lower limit, or cannot be distinguished from 0. The
    *divergence* in nats has two separate parts. That of the features is a lower bound of
    :math:`KL(P_0 \| P_1)`, with a one-sided limit and no interval, because errors in the regression
    make it smaller; it is refused without overlap (a weight share above 0.05, or a mean weight
    outside 0.9 to 1.1). That of the mean scores has an interval if both groups have at least 10
    rows of either prediction. Calibration and the features need 50 rows in each group.

    References
    ----------
    .. [1] Wang, H., Ustun, B. and Calmon, F. P. (2019). Repairing without Retraining: Avoiding
       Disparate Impact with Counterfactual Distributions. ICML. arXiv:1901.10501

    Examples
    --------
    >>> import numpy as np, fairaudit_rs as fa
    >>> rng = np.random.default_rng(0)
    >>> woman, part_time = rng.random(6_000) < 0.5, rng.random(6_000) < 0.3
    >>> part_time |= woman & (rng.random(6_000) < 0.4)
    >>> X = {"part_time": part_time, "x": rng.normal(size=6_000)}
    >>> y_true = rng.random(6_000) < 0.5
    >>> y_pred = rng.random(6_000) < np.where(X["part_time"], 0.2, 0.5)
    >>> result = fa.influence_audit(
    ...     y_true, y_pred, X=X, sensitive_features=np.where(woman, "woman", "man"), target="woman",
    ...     metric="selection_rate", rng=1)
    >>> [score.feature for score in result.proxy_scores if score.adjusted_pvalue < 0.05]
    ['part_time']
    """
    for name, given in (("sample_weight", sample_weight), ("clusters", clusters)):
        if given is not None:
            raise ArgumentError(
                f"{name} is not supported by influence_audit, whose intervals may fail with it. "
                "Remove it.",
                argument=name,
            )
    measure = measure_of(metric)
    checked = arguments.check(
        confidence_level=confidence_level,
        n_draws=n_draws,
        n_folds=n_folds,
        compat=compat,
        rng=rng,
        random_state=random_state,
        n_threads=n_threads,
        progress=progress,
    )
    level, seed = checked.confidence_level, checked.seed
    if sets is not None and not isinstance(sets, Mapping):
        raise ArgumentTypeError(
            f"sets is {sets!r}; accepted: a dict of lists of column names", argument="sets"
        )
    check_estimator(nuisance)
    design = InfluenceArguments(
        measure=measure,
        y_true=y_true,
        y_pred=y_pred,
        y_score=y_score,
        X=X,
        model=model,
        sensitive_features=sensitive_features,
        target=target,
        data=data,
        features=features,
        sets=sets,
        pos_label=pos_label,
        missing=missing,
        n_threads=checked.n_threads,
        takes_gaps=True,
    )
    question = design.pose()
    audit = InfluenceProblem.from_question(
        question,
        n_folds=checked.n_folds,
        plug_in=checked.compat is not None,
        n_threads=checked.n_threads,
        estimator=nuisance,
    )
    for name, value, needed in (
        ("p_group", p_group, "divergence"),
        ("p_outcome", p_outcome, "calibration"),
    ):
        if value is not None and measure.name != needed:
            raise ArgumentError(
                f"{name} needs metric={needed!r}, but the metric is {measure.name!r}. Remove "
                f"{name}, or change the metric.",
                argument=name,
                mentions=("metric",),
                code="conflicting-arguments",
            )
    given = KnownProbabilities.from_arguments(question, p_group, p_outcome)
    if measure.name in NOT_RATES:
        return audit_alignment(question, audit, given, level, seed)
    scores, fits = audit.scores(level, checked.n_draws, seed, checked.progress)
    gap, error = audit.gap, audit.standard_error
    half = audit.half_width(level)
    own, rest = question.target_name, others_name(question.target_name)
    return InfluenceResult(
        estimate=gap,
        standard_error=error,
        statistic=gap / error if error > 0 else math.nan,
        pvalue=audit.pvalue,
        confidence_interval=(gap - half, gap + half),
        alternative="two-sided",
        n_rows=question.n_rows,
        group_sizes={own: len(question.rows), rest: len(question.other_rows)},
        seed=seed,
        engine="influence values",
        notes=tuple(_result_notes(question, audit, scores, gap, half)),
        metric=measure.name,
        target=own,
        others=question.other_names,
        values={own: audit.target_group.value.value, rest: audit.other_group.value.value},
        proxy_scores=_ordered(scores, level),
        feature_tests={name: pvalue for name, (pvalue, _) in audit.marginal.tests.items()},
        nuisances=fits,
        row=question.rows,
        influence=audit.influence,
        n_missing=question.n_missing,
        attribute=question.attribute,
        of_scores=question.of_scores,
        n_draws=checked.n_draws,
        confidence_level=level,
        problem=audit,
    )


def _ordered(scores: Sequence[SimultaneousScore], level: float) -> tuple[ProxyScore, ...]:
    """Return the scores by significance, refused ones last."""
    defined = [score for score in scores if not math.isnan(score.score.t)]
    defined.sort(key=lambda score: -score.z)
    unknown = [score for score in scores if math.isnan(score.score.t)]
    return rank_scores([_proxy(score, level) for score in [*defined, *unknown]])


def _proxy(found: SimultaneousScore, level: float) -> ProxyScore:
    score = found.score
    low, high = score.interval(level)
    return ProxyScore(
        feature=score.contrast.feature,
        kind=score.contrast.method,
        type=score.contrast.kind,
        levels=score.contrast.levels,
        estimate=score.estimate,
        standard_error=score.standard_error,
        low=low,
        high=high,
        simultaneous_low=found.interval[0],
        simultaneous_high=found.interval[1],
        pvalue=score.pvalue,
        adjusted_pvalue=found.adjusted_pvalue,
        n_events=score.n_events,
        note=score.note,
    )


def _result_notes(
    question: InfluenceQuestion,
    audit: InfluenceProblem,
    scores: Sequence[SimultaneousScore],
    gap: float,
    half: float,
) -> Iterator[Note]:
    """Yield the notes on an audit."""
    for name, group in (
        (group_name(question.target_name, question.attribute), audit.target_group),
        ("the others", audit.other_group),
    ):
        n_events = group.value.fewest_events(group.moments.sums)
        if n_events < ENOUGH_EVENTS:
            yield Note(
                "few-events-in-group",
                f"only {n_events:.3g} events, or non-events, of {question.measure.name} in {name}: "
                "the interval of the gap may be off",
                (name,),
            )
    yield from question.missing_numbers.notes()
    yield from question.row_notes()
    if math.isnan(half):
        yield Note("group-of-one-row", "a group has fewer than two rows: the gap has no interval")
    elif not abs(gap) > half:
        yield Note(
            "direction-of-gap-unknown",
            "the interval of the gap includes 0, so that the direction in which a feature moves it "
            "is not known",
        )
    # A feature has a score if any of its comparisons has one.
    scored = {
        score.score.contrast.feature
        for score in scores
        if not score.score.note.startswith("refused")
    }
    names = [feature.name for feature in question.features if feature.name not in scored]
    if names:
        yield Note(
            "features-without-score",
            f"{len(names)} of {len(question.features)} features have no score in "
            f"{group_name(question.target_name, question.attribute)}: {', '.join(names[:5])}"
            + (f" and {len(names) - 5} more" if len(names) > 5 else ""),
            tuple(names),
        )
