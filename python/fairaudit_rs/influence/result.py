"""The result of an influence audit."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import NDArray

from .. import arguments
from ..literals import DescentMethod, RepairMethod, ScoreKind
from ..report.words import number, p_text, row_count
from ..results.chart import Chart
from ..results.result import Finding
from ..results.verdict import rejects_at
from .chart import proxy_chart
from .counterfactual import Counterfactual, find_counterfactual
from .problem import InfluenceProblem
from .regression_quality import NuisanceFit

if TYPE_CHECKING:
    from .repair import Repair

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ProxyScore:
    r"""The proxy score of a feature: the mean influence of rows with it minus that of the others.

    Attributes
    ----------
    feature, kind : str
        The feature and the kind of score: ``"marginal"``; with a model also ``"ceteris_paribus"``
        (all others held fixed) or its substitute ``"partialled_out"``.
    type : str
        ``"binary"``, ``"categorical"`` or ``"continuous"``.
    levels : tuple of str
        The levels compared, first minus second; () for a slope.
    estimate, standard_error, low, high, pvalue : float
        The score, its standard error, and its unadjusted interval and p-value; NaN with too few
        events.
    simultaneous_low, simultaneous_high, adjusted_pvalue : float
        The interval and p-value adjusted for all scores of its kind; NaN with few events.
    n_events : float
        The smallest number of events, or non-events, of the metric among rows with one value of
        the feature.
    note : str
        Why there is no interval, or why it may be unreliable.
    rank : int or None
        Rank by \|estimate\| among the scores of its kind, 1 the largest.
    highest_rank, lowest_rank : int or None
        The range of ranks that the true size of the score can have, if every simultaneous interval
        contains its true score. Ranks within this range cannot be distinguished.
    """

    feature: str
    kind: str
    type: str
    levels: tuple[str, ...]
    estimate: float
    standard_error: float
    low: float
    high: float
    simultaneous_low: float
    simultaneous_high: float
    pvalue: float
    adjusted_pvalue: float
    n_events: float
    note: str
    rank: int | None = None
    highest_rank: int | None = None
    lowest_rank: int | None = None


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class InfluenceResult(Finding):
    """The result of `influence_audit`; see there for how to read the numbers.

    Attributes
    ----------
    estimate : float
        The gap: the metric of the target group minus that of the others.
    metric : str
        The metric that is compared.
    target : object
        The target group.
    others : tuple
        The groups that the target is compared with, taken together.
    values : dict
        The metric of the target and of the others.
    proxy_scores : tuple of ProxyScore
        The scores of all features, by |estimate| / standard error, the largest first.
    feature_tests : dict
        For each categorical feature, the p-value of the hypothesis that all its levels have the
        same influence.
    nuisances : tuple of NuisanceFit
        The regressions behind scores with all else held fixed, with their quality on held-out rows
        (AUC, calibration, overlap); () if there are none.
    row : ndarray of int
        Positions of the rows of the target group in the data.
    influence : ndarray
        The influence of each row of the target group on its metric; their mean is 0.
    n_missing : int
        Rows that belong to no group because a sensitive feature is missing.
    attribute : str
        The sensitive feature.
    of_scores : bool
        Whether scores were used as probabilities of a positive decision, rather than decisions.
    n_draws : int
        Random draws for the simultaneous intervals.
    confidence_level : float
        Level of the intervals.
    """

    metric: str
    target: Any
    others: tuple[Any, ...]
    values: dict[Any, float]
    proxy_scores: tuple[ProxyScore, ...]
    feature_tests: dict[str, float]
    nuisances: tuple[NuisanceFit, ...]
    row: NDArray[np.int64]
    influence: Floats
    n_missing: int
    attribute: str
    of_scores: bool
    n_draws: int
    confidence_level: float
    #: The rows and the model, for `descend` and `repair`.
    problem: InfluenceProblem

    _not_in_dict = Finding._not_in_dict | {"row", "influence", "problem"}
    _not_compared = frozenset({"problem"})

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        return ("features", "groups")

    @property
    def correction(self) -> Floats:
        """The change of row weights that shrinks the gap fastest: -sign(gap) psi / sd(psi).

        psi is the influence.
        """
        spread = float(self.influence.std())
        sign = math.copysign(1.0, self.estimate)
        return np.asarray(-sign * self.influence / spread if spread > 0 else 0.0 * self.influence)

    def plot(self, kind: ScoreKind | None = None) -> Chart:
        """Return a chart of the proxy scores with their simultaneous intervals.

        Parameters
        ----------
        kind : {"marginal", "held_fixed"}, optional
            Marginal scores, or those with all other features held fixed; both by default.

        Returns
        -------
        Chart
            The chart.
        """
        if kind is not None:
            kind = arguments.choice("kind", kind, get_args(ScoreKind))
        rows = [
            row
            for row in self.rows()
            if not math.isnan(row["simultaneous_low"])
            and kind in (None, "marginal" if row["kind"] == "marginal" else "held_fixed")
        ]
        return proxy_chart(rows, self.metric, self.name_of(self.target))

    def descend(
        self,
        *,
        tolerance: float,
        parts: Sequence[float] = (1 / 3, 1 / 3, 1 / 3),
        step: float = 0.1,
        method: DescentMethod = "reweight",
        max_steps: int = 100,
        nuisance: Any = None,
        confidence_level: float | None = None,
        rng: Any = None,
        random_state: Any = None,
    ) -> Counterfactual:
        r"""Find row weights of the target group that make its gap small.

        Parameters
        ----------
        tolerance : float
            The descent stops at the first step where the upper bound of the absolute gap is below
            it.
        parts : three floats
            Shares of the rows for the fit part (which gives the direction), the stop part (which
            ends the descent), and the report part (which measures the result).
        step : float
            The length of a step; shorter if a weight of the fit part would fall below 0.
        method : str
            ``"reweight"``, or ``"resample"``: rows are resampled in every step, as printed in the
            paper; each step then leaves fewer distinct rows, so use few and long steps.
        max_steps : int
            The maximal number of steps.
        nuisance : estimator, optional
            Fits P(Y = 1 | X) on the fit part, with ``fit`` and ``predict_proba``; columns of
            categorical features are 0 and 1. None: that of the audit, or a ridge logistic
            regression with main effects and pairwise products. Not used by metrics without labels.
        confidence_level : float, optional
            Level of the intervals and of the one-sided bound; None uses that of the audit.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed; ``random_state`` is an alias.

        Returns
        -------
        Counterfactual

        Notes
        -----
        Rows are split into three parts at random. In every step the weight of a row is multiplied
        by :math:`1 - \epsilon \, s \, \psi(x)`, with s the sign of the gap and :math:`\psi` the
        influence in the weighted fit part [1]_. After each step the gap and its standard error are
        computed on the stop part. The descent ends when :math:`|gap| + z \, se` is below the
        tolerance, when the effective sample size is below a tenth of the rows, or after
        ``max_steps``. The reported gap and feature means are those of the report part, which the
        descent does not use, so their intervals are valid no matter how good the nuisance
        regression is. Each part needs 80 rows in the denominator of the metric in both groups.

        The weights describe a target distribution of X. Moving rows there is a separate problem,
        because a moved row keeps its label: see `repair`.

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
        >>> y_pred = rng.random(6_000) < np.where(part_time, 0.2, 0.5)
        >>> result = fa.influence_audit(
        ...     y_pred=y_pred, X={"part_time": part_time}, sensitive_features=woman, target=True,
        ...     metric="selection_rate", rng=1)
        >>> fair = result.descend(tolerance=0.05, rng=1)
        >>> fair.reached, bool(fair.marginals[0].after < fair.marginals[0].before)
        (True, True)
        """
        return find_counterfactual(
            self.problem,
            row=self.row,
            attribute=self.attribute,
            tolerance=tolerance,
            parts=parts,
            step=step,
            method=method,
            max_steps=max_steps,
            nuisance=nuisance,
            confidence_level=self.confidence_level
            if confidence_level is None
            else confidence_level,
            rng=rng,
            random_state=random_state,
        )

    def repair(
        self,
        *,
        method: RepairMethod = "direct",
        counterfactual: Any = None,
        cost: Mapping[str, float] | Callable[..., Any] | None = None,
        immovable: Sequence[str] = (),
        parts: Sequence[float] = (0.5, 0.5),
        floor: float | None = None,
        nuisance: Any = None,
        rng: Any = None,
        random_state: Any = None,
        n_threads: int | None = None,
    ) -> Repair:
        r"""Find which features of the target group must change for the gap to close.

        Parameters
        ----------
        method : str
            ``"direct"``: the cheapest randomised map of features with an expected gap of 0.
            ``"transport"``: the cheapest map to the distribution of a counterfactual; it does not
            close the gap of metrics that use labels, because moved rows keep their labels.
        counterfactual : Counterfactual, optional
            For ``method="transport"``: the result of `descend`.
        cost : dict or callable, optional
            The cost of changes. By default changing a binary or categorical feature costs 1, a
            continuous one 1 per standard deviation. A dict gives other weights by feature. A
            callable gets the rows before and the rows after, each a dict of columns, and returns
            the costs of all pairs: at least 0, and 0 for a row that does not change. It supports
            at most 2,000 distinct rows.
        immovable : sequence of str
            Features that must not change. A row can only take the features of a row that occurs in
            the data, so an immovable feature with many values leaves few destinations: bin it
            first.
        parts : sequence of float
            For ``method="direct"``: shares of the rows for the fit part and the report part. A
            counterfactual has its own parts.
        floor : float, optional
            For ``method="direct"``: the minimum of the group's mean score after the repair. The
            default is half the current mean for rates whose denominator contains the score (false
            discovery rate, predictive value), because setting all scores to 0 would close such a
            gap trivially; for other metrics there is none.
        nuisance : estimator, optional
            For ``method="direct"``: with ``fit`` and ``predict_proba``, for P(Y = 1 | X) in the
            target group; it gets encoded features, with levels as columns of 0 and 1. By default
            that of the audit, or a ridge logistic regression with a penalty by cross-validated log
            loss.
        rng : None, int, SeedSequence, Generator or RandomState
            Source of the seed of the parts, and of the draws of `Repair.transform`;
            ``random_state`` is an alias.
        n_threads : int, optional
            None takes that of the audit.

        Returns
        -------
        Repair
            The map, with the gap, accuracy and all rates before and after on the report part.

        Raises
        ------
        NotMeasurableError
            If no map closes the gap, or none with the floor. The message has the smallest gap.

        Notes
        -----
        A row with features x that is moved to x' and keeps its label adds
        :math:`v(x, x') = E[a(Y, f(x')) - R_1 b(Y, f(x')) \mid x]` to the gap, with
        :math:`R_1` the rate of the others; the sum must be 0. With one multiplier
        :math:`\lambda` every row moves to the features x' that minimise cost :math:`+ \lambda v`;
        among ties, one is drawn at random with equal probabilities. The cost of the map and its
        dual bound are in ``certificate``. The gap is 0 on the fit part under the regression; on the
        report part it is measured, and its interval need not contain 0. Metrics that are sums of
        rates are supported only if no denominator depends on the score.

        Examples
        --------
        >>> import numpy as np, fairaudit_rs as fa
        >>> rng = np.random.default_rng(0)
        >>> woman, part_time = rng.random(4_000) < 0.5, rng.random(4_000) < 0.3
        >>> part_time |= woman & (rng.random(4_000) < 0.4)
        >>> result = fa.influence_audit(
        ...     None, ~part_time, X={"part_time": part_time}, target="woman", rng=1, n_draws=99,
        ...     sensitive_features=np.where(woman, "woman", "man"), metric="selection_rate")
        >>> repair = result.repair(rng=1)
        >>> abs(repair.certificate["expected_gap"]) < 1e-9
        True
        """
        from .repair_fit import RepairArguments

        design = RepairArguments(
            method=method,
            counterfactual=counterfactual,
            cost=cost,
            immovable=immovable,
            parts=parts,
            floor=floor,
            nuisance=nuisance,
            rng=rng,
            random_state=random_state,
            n_threads=n_threads,
        )
        return design.fit(self.problem, self.attribute, self.others, self.confidence_level)

    def summary(self) -> str:
        """Return a sentence that an auditor can quote."""
        own, rest = self.values.values()
        low, high = self.confidence_interval
        what = f"{self.metric} of scores" if self.of_scores else self.metric
        level = f"{100 * self.confidence_level:g} %"
        gap = (
            f"{what} is {number(own)} for {self.sized(self.target)} and {number(rest)} for "
            f"the others{self._of_others()}, a gap of {number(self.estimate)} ({level} "
            f"interval {number(low)} to {number(high)})"
        )
        if math.isnan(low):
            return (
                f"{gap}. Too few rows for an interval: no feature is significantly related to it."
            )
        if not (low > 0 or high < 0):
            return (
                f"{gap}. The interval includes 0: which features widen or narrow the gap cannot be "
                "said (inconclusive)."
            )
        alpha = 1 - self.confidence_level
        shown = [score for score in self.proxy_scores if rejects_at(score.adjusted_pvalue, alpha)]
        names = list(dict.fromkeys(score.feature for score in shown))
        all_names = {score.feature for score in self.proxy_scores}
        if not names:
            return (
                f"{gap}. What rows add to it is not shown to differ with any of {len(all_names)} "
                "features."
            )
        first = shown[0]
        widens = first.estimate * self.estimate > 0
        compared = _compared(first)
        held = "" if first.kind == "marginal" else ", all else held fixed,"
        effect = "widens" if widens else "narrows"
        who, p = self.name_of(self.target), p_text(first.adjusted_pvalue)
        return (
            f"{gap}. What rows of {who} add to it differs with {len(names)} of {len(all_names)} "
            f"features; the clearest is {first.feature}: {compared}{held} {effect} the gap (score "
            f"{number(first.estimate)}, {p} adjusted for all)."
        )

    def _of_others(self) -> str:
        """Return " (n rows)" with the number of rows of the others, or "" if it is unknown."""
        sizes = [n for group, n in self.group_sizes.items() if group != self.target]
        return f" ({row_count(sizes[0])})" if sizes else ""

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row for the target group and one for the others together."""
        return [
            {
                "metric": self.metric,
                "group": self.name_of(group),
                "n_rows": n,
                "value": self.values.get(group, math.nan),
            }
            for group, n in self.group_sizes.items()
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row per proxy score."""
        return [
            {
                "feature": score.feature,
                "kind": score.kind,
                "compared": _compared(score),
                "estimate": score.estimate,
                "low": score.low,
                "high": score.high,
                "simultaneous_low": score.simultaneous_low,
                "simultaneous_high": score.simultaneous_high,
                "pvalue": score.pvalue,
                "adjusted_pvalue": score.adjusted_pvalue,
                "rank": score.rank,
                "highest_rank": score.highest_rank,
                "lowest_rank": score.lowest_rank,
                "n_events": score.n_events,
                "note": score.note,
            }
            for score in self.proxy_scores
        ]


def rank_scores(scores: Sequence[ProxyScore]) -> tuple[ProxyScore, ...]:
    """Return scores with their ranks by |estimate| among the scores of their kind.

    A score ranks above another with simultaneous confidence if the smallest |value| in its
    simultaneous interval exceeds the largest one in that of the other.
    """
    places: dict[int, tuple[int, int, int]] = {}
    for kind in {score.kind for score in scores}:
        known = [
            place
            for place, score in enumerate(scores)
            if score.kind == kind and not math.isnan(score.simultaneous_low)
        ]
        size = np.array([abs(scores[place].estimate) for place in known])
        low = np.array([_least(scores[place]) for place in known])
        high = np.array([_most(scores[place]) for place in known])
        for i, place in enumerate(known):
            larger, smaller = int((low > high[i]).sum()), int((high < low[i]).sum())
            places[place] = (1 + int((size > size[i]).sum()), 1 + larger, len(known) - smaller)
    return tuple(
        replace(score, rank=ranks[0], highest_rank=ranks[1], lowest_rank=ranks[2])
        if (ranks := places.get(place))
        else score
        for place, score in enumerate(scores)
    )


def _least(score: ProxyScore) -> float:
    """Return the smallest |value| in the simultaneous interval."""
    return max(score.simultaneous_low, -score.simultaneous_high, 0.0)


def _most(score: ProxyScore) -> float:
    return max(-score.simultaneous_low, score.simultaneous_high)


def _compared(score: ProxyScore) -> str:
    """Return the levels that a score compares, for texts."""
    if score.type == "continuous":
        return "one standard deviation more"
    return " against ".join(score.levels)
