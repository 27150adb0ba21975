"""Power: which gaps a test can see, and how many rows it takes to see one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native, arguments, metrics
from ._correlation import CorrelationProblem
from ._counts import JointProblem
from ._question import Design, Question
from .data.groups import group_name, label
from .data.labels import Label
from .errors import ArgumentError, ArgumentTypeError
from .inference.pvalues import normal_cdf
from .metrics.metric import Metric
from .results.result import SCHEMA_VERSION, to_plain
from .results.words import number

if TYPE_CHECKING:
    import polars as pl


_MOST = 10**15


@dataclass(frozen=True)
class PowerPlan:
    """A gap, the sizes of the groups, and the power of the test to see the gap.

    ``float(plan)`` is the gap, ``str(plan)`` a sentence.

    Attributes
    ----------
    metric : str
        Name of the metric.
    group_sizes : dict
        Rows of each group (of a correlation: of all).
    standard_deviations : dict
        Of the metric of each group per row: its standard error is this over the root of the rows.
    gap : float
        The gap of two groups; of more, a gap that is seen in any pair.
    power : float
        Probability that the test rejects when the gap is there.
    confidence_level : float
        1 minus the level of the test.
    alternative : str
        ``"two-sided"`` or one of the one-sided ones.
    n_comparisons : int
        Number of pairs among which the level is shared.
    reference : optional
        The group that all others are compared with; None when all are with all.
    """

    metric: str
    group_sizes: dict[Any, int]
    standard_deviations: dict[Any, float]
    gap: float
    power: float
    confidence_level: float
    alternative: str
    n_comparisons: int
    reference: Any = None

    def __float__(self) -> float:
        return self.gap

    def __str__(self) -> str:
        sizes = ", ".join(f"{n:,} of {group_name(g)}" for g, n in self.group_sizes.items())
        what = "gap"
        if len(self.group_sizes) == 1:
            (n,) = self.group_sizes.values()
            sizes, what = f"{n:,} rows", "correlation"
        shared = "" if self.n_comparisons == 1 else f" shared by {self.n_comparisons} pairs"
        return (
            f"{self.metric}: with {sizes} a {what} of {number(self.gap)} is found with probability "
            f"{self.power:.3g} at the {100 * (1 - self.confidence_level):.3g} % level{shared} "
            f"({self.alternative})."
        )

    @property
    def standard_error(self) -> float:
        """Standard error of the gap of the two compared groups that are hardest to tell apart."""
        parts = {
            group: self.standard_deviations[group] ** 2 / size
            for group, size in self.group_sizes.items()
        }
        if self.reference is None:
            return math.sqrt(sum(sorted(parts.values())[-2:]))
        fixed = parts.pop(self.reference)
        return math.sqrt(fixed + max(parts.values()))

    def power_at(self, gap: float) -> float:
        """Return the power to see another gap with these groups."""
        return _power(gap, self.standard_error, self._level, self.alternative)

    @property
    def _level(self) -> float:
        return (1 - self.confidence_level) / self.n_comparisons

    def curve(
        self, gaps: ArrayLike | None = None, n_rows: Sequence[int] | None = None
    ) -> pl.DataFrame:
        """Return the power over gaps and numbers of rows, which keep the shares of the groups.

        Parameters
        ----------
        gaps : array of float, optional
            Gaps; by default from 0 to twice that of the plan.
        n_rows : sequence of int, optional
            Rows in all; by default those of the plan.

        Returns
        -------
        polars.DataFrame
            With columns n_rows, gap, power.
        """
        import polars as pl

        total = sum(self.group_sizes.values())
        chosen = np.linspace(0, 2 * self.gap, 41) if gaps is None else np.atleast_1d(gaps)
        if n_rows is not None and not hasattr(n_rows, "__iter__"):
            raise ArgumentTypeError(f"n_rows is {n_rows!r}; accepted: a sequence of whole numbers")
        rows = []
        for n in [total] if n_rows is None else n_rows:
            n = arguments.count("n_rows", n, 2, _MOST)
            error = self.standard_error * math.sqrt(total / n)
            rows += [
                {
                    "n_rows": n,
                    "gap": float(gap),
                    "power": _power(float(gap), error, self._level, self.alternative),
                }
                for gap in chosen
            ]
        return pl.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values for JSON."""
        head = {"schema_version": SCHEMA_VERSION, "kind": "PowerPlan"}
        return {**head, **to_plain(self), "summary": str(self)}


def minimum_detectable_gap(
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: str | Metric,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    value: float | None = None,
    share: float | Sequence[float] = 1.0,
    group_sizes: Any = None,
    power: float = 0.8,
    alternative: str = "two-sided",
    n_comparisons: int | None = None,
    confidence_level: float = 0.95,
) -> PowerPlan:
    r"""Say how large a gap must be for the permutation test to find it.

    Parameters
    ----------
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference : optional
        Data at hand, as for `permutation_test`; they tell how much the metric varies. Any metric
        but calibration_error and joint criteria.
    clusters, sample_weight, score_bins, pos_label : optional
        See `permutation_test`.
    value : float, optional
        Without data: the value of a proportion in the first group; the others lie the gap away,
        on the side where proportions vary more.
    share : float or sequence of float
        Without data: the share of the rows of a group that are in the denominator, such as the
        base rate for the true positive rate; one for all groups or one for each.
    group_sizes : mapping or sequence of int, optional
        Rows of each group to plan with; by default those of the data.
    power : float
        Probability with which the gap is to be found.
    alternative : {"two-sided", "greater", "less"}
        Against which differences.
    n_comparisons : int, optional
        Number of pairs that share the level (Bonferroni, what Holm starts with); by default all
        pairs that `permutation_test` would compare.
    confidence_level : float
        1 minus the level of the test.

    Returns
    -------
    PowerPlan

    Notes
    -----
    By the normal approximation to the studentized test, whose permutation and normal critical
    values agree in large groups: the gap is :math:`(z_{1-\alpha/2} + z_{power}) \sqrt{v_a + v_b}`
    with the linearised variances, the smallest one with that power. More than two groups: of the
    two that are hardest to tell apart.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> plan = fa.minimum_detectable_gap(
    ...     metric="true_positive_rate", value=0.8, share=0.3, group_sizes=[10_000, 2_000])
    >>> round(plan.gap, 3)
    0.054
    """
    power = arguments.level("power", power)
    plan = _plan(
        Design(
            metric, y_true, y_pred, y_score, sensitive_features, data, groups, reference,
            clusters=clusters, sample_weight=sample_weight, score_bins=score_bins,
            pos_label=pos_label,
        ),
        value, share, group_sizes, True, alternative, n_comparisons, confidence_level, power,
    )  # fmt: skip
    gap = _gap(plan.standard_error, plan._level, power, plan.alternative)
    if value is not None:
        # The gap changes the variance of the other groups, and that the gap.
        for _ in range(100):
            plan = _shifted(plan, value, share, gap)
            before, gap = gap, _gap(plan.standard_error, plan._level, power, plan.alternative)
            if abs(gap - before) <= 1e-12:
                break
    low, high = metrics.get(metric).range
    if gap > high - low:
        raise ArgumentError(
            f"with {sum(plan.group_sizes.values()):,} rows in all no gap of {plan.metric}, which "
            f"is at most {high - low:g}, is found with probability {power:g}; accepted: more rows "
            "in group_sizes or the data, or less power"
        )
    return replace(plan, gap=gap)


def sample_size(
    gap: float,
    y_true: Any = None,
    y_pred: Any = None,
    *,
    y_score: Any = None,
    sensitive_features: Any = None,
    data: Any = None,
    metric: str | Metric,
    groups: Sequence[Any] | None = None,
    reference: Any = None,
    clusters: Any = None,
    sample_weight: Any = None,
    score_bins: Any = None,
    pos_label: Label = None,
    value: float | None = None,
    share: float | Sequence[float] = 1.0,
    group_sizes: Any = None,
    power: float = 0.8,
    alternative: str = "two-sided",
    n_comparisons: int | None = None,
    confidence_level: float = 0.95,
) -> PowerPlan:
    """Say how many rows the permutation test needs to find a gap.

    Parameters
    ----------
    gap : float
        The gap to be found.
    group_sizes : mapping or sequence of number, optional
        Proportions of the groups; by default those of the data, without data equal groups.
    y_true, y_pred, y_score, sensitive_features, data, metric, groups, reference, clusters, \
sample_weight, score_bins, pos_label, value, share, power, alternative, n_comparisons, \
confidence_level : optional
        See `minimum_detectable_gap`.

    Returns
    -------
    PowerPlan
        With the smallest ``group_sizes`` in these proportions that have the power.

    Examples
    --------
    >>> import fairaudit_rs as fa
    >>> plan = fa.sample_size(0.05, metric="selection_rate", value=0.5)
    >>> sum(plan.group_sizes.values())
    3140
    """
    if isinstance(gap, bool) or not isinstance(gap, int | float | np.floating):
        raise ArgumentError(f"gap is {gap!r}; accepted: a number above 0")
    low, high = metrics.get(metric).range
    if not 0 < gap < math.inf or gap >= high - low:
        below = f", below {high - low:g} for {metrics.get(metric).name}"
        bounded = below if math.isfinite(high - low) else ""
        raise ArgumentError(f"gap is {gap!r}; accepted: a number above 0{bounded}")
    power = arguments.level("power", power)
    plan = _plan(
        Design(
            metric, y_true, y_pred, y_score, sensitive_features, data, groups, reference,
            clusters=clusters, sample_weight=sample_weight, score_bins=score_bins,
            pos_label=pos_label,
        ),
        value, share,
        [1, 1] if group_sizes is None and not _has_data(data, sensitive_features) else group_sizes,
        False, alternative, n_comparisons, confidence_level, power,
    )  # fmt: skip
    if value is not None:
        plan = _shifted(plan, value, share, float(gap))
    total = sum(plan.group_sizes.values())
    shares = {group: size / total for group, size in plan.group_sizes.items()}

    def scaled(n: int) -> PowerPlan:
        sizes = {group: max(math.ceil(share * n), 1) for group, share in shares.items()}
        return replace(plan, group_sizes=sizes, gap=float(gap))

    high = 2
    while scaled(high).power_at(gap) < power:
        high *= 2
        if high > _MOST:
            raise ArgumentError(
                f"gap is {gap:g}; accepted: one that can be found with fewer than 1e15 rows"
            )
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if scaled(middle).power_at(gap) >= power else (middle, high)
    found = scaled(high)
    return replace(found, power=found.power_at(gap))


def _has_data(data: Any, sensitive_features: Any) -> bool:
    return data is not None or sensitive_features is not None


def _plan(
    design: Design,
    value: float | None,
    share: float | Sequence[float],
    group_sizes: Any,
    whole: bool,
    alternative: str,
    n_comparisons: int | None,
    confidence_level: float,
    power: float,
) -> PowerPlan:
    """Return a plan without a gap."""
    alternative = arguments.choice("alternative", alternative, ("two-sided", "greater", "less"))
    level = arguments.level("confidence_level", confidence_level)
    metric = metrics.get(design.metric)
    if metric.family in ("joint", "calibration"):
        raise ArgumentError(
            f"metric is {metric.name!r}, whose power has no formula here; accepted: other metrics "
            "(the components of a joint criterion one by one, or calibrate)"
        )
    if _has_data(design.data, design.sensitive_features):
        if value is not None:
            raise ArgumentTypeError("value goes without data; the data have values of their own")
        if not (isinstance(share, int | float) and share == 1):
            raise ArgumentTypeError("share goes without data; the data have shares of their own")
        sizes, deviations, pairs = _from_data(design.pose(0))
        if group_sizes is not None:
            sizes = _sizes(group_sizes, list(sizes), whole)
    else:
        for name in ("y_true", "y_pred", "y_score", "clusters", "sample_weight"):
            if getattr(design, name) is not None:
                raise ArgumentTypeError(
                    f"{name} is given without sensitive_features; accepted: both, or value="
                )
        sizes, deviations = _from_value(metric, value, share, group_sizes, whole)
        pairs = len(sizes) * (len(sizes) - 1) // 2
    n_comparisons = (
        max(pairs, 1)
        if n_comparisons is None
        else arguments.count("n_comparisons", n_comparisons, 1, 10**6)
    )
    # The reference is the last group.
    reference = None if design.reference is None else list(sizes)[-1]
    return PowerPlan(
        metric.name, sizes, deviations, math.nan, power, level, alternative, n_comparisons,
        reference,
    )  # fmt: skip


def _from_data(question: Question) -> tuple[dict[Any, int], dict[Any, float], int]:
    problem = question.problem
    assert not isinstance(problem, JointProblem)
    if isinstance(problem, CorrelationProblem):
        n = problem.n_rows[0]
        error = problem.gap((0, 1)).standard_error
        return {question.features[0]: n}, {question.features[0]: error * math.sqrt(n)}, 1
    names = [label(key) for key in problem.keys]
    sizes = dict(zip(names, problem.n_rows, strict=True))
    deviations = {
        name: math.sqrt(entry[1] * n)
        for name, entry, n in zip(names, problem.evaluations, problem.n_rows, strict=True)
    }
    flat = [group_name(name) for name, deviation in deviations.items() if not deviation > 0]
    if flat:
        raise ArgumentError(
            f"{problem.metric.name} does not vary, or has no standard error, in {flat[0]!r}, so "
            "the data do not tell how large a gap must be; accepted: data in which it varies, or "
            "value="
        )
    return sizes, deviations, len(question.pairs)


def _from_value(
    metric: Metric,
    value: float | None,
    share: float | Sequence[float],
    group_sizes: Any,
    whole: bool,
) -> tuple[dict[Any, int], dict[Any, float]]:
    if value is None:
        raise ArgumentTypeError(
            "there are neither data (sensitive_features, ...) nor a value to plan with; accepted: "
            "one of them"
        )
    if not metric.is_proportion:
        raise ArgumentError(
            f"value goes with proportions; how much {metric.name} varies must come from data"
        )
    value = arguments.level("value", value)
    if group_sizes is None:
        raise ArgumentTypeError("group_sizes is None; without data it says how many rows there are")
    sizes = _sizes(group_sizes, None, whole)
    accepted = "a number above 0, up to 1, or one for each group"
    one_for_all = isinstance(share, int | float | np.number)
    if not one_for_all and (isinstance(share, str) or not hasattr(share, "__iter__")):
        raise ArgumentTypeError(f"share is {share!r}; accepted: {accepted}")
    shares: list[Any] = [share] * len(sizes) if one_for_all else list(share)  # type: ignore[arg-type]
    if len(shares) != len(sizes):
        raise ArgumentError(f"share has {len(shares)} entries for {len(sizes)} groups")
    for one in shares:
        if not isinstance(one, int | float | np.number):
            raise ArgumentTypeError(f"share is {one!r}; accepted: {accepted}")
        if isinstance(one, bool) or not 0 < one <= 1:
            raise ArgumentError(f"share is {one!r}; accepted: {accepted}")
    return sizes, {
        group: math.sqrt(value * (1 - value) / one)
        for group, one in zip(sizes, shares, strict=True)
    }


def _shifted(
    plan: PowerPlan, value: float, share: float | Sequence[float], gap: float
) -> PowerPlan:
    """Return the plan with all groups but the first a gap away, to the side that varies more."""
    other = value + gap if value < 0.5 else value - gap
    # A gap across the middle: no value varies more than one half does.
    other = 0.5 if (other - 0.5) * (value - 0.5) <= 0 else other
    shares: list[Any] = (
        list(share) if hasattr(share, "__iter__") else [share] * len(plan.group_sizes)
    )
    deviations = {
        group: math.sqrt((value * (1 - value) if i == 0 else other * (1 - other)) / one)
        for i, (group, one) in enumerate(zip(plan.group_sizes, shares, strict=True))
    }
    return replace(plan, standard_deviations=deviations)


def _sizes(group_sizes: Any, names: list[Any] | None, whole: bool) -> dict[Any, int]:
    """Return the rows of each group; proportions, if they need not be whole."""
    accepted = "a mapping or sequence with a number for each group, at least two"
    if isinstance(group_sizes, str) or not hasattr(group_sizes, "__iter__"):
        raise ArgumentTypeError(f"group_sizes is {group_sizes!r}; accepted: {accepted}")
    if hasattr(group_sizes, "keys"):
        entries = dict(group_sizes)
        if names is not None and set(entries) != set(names):
            raise ArgumentError(
                f"group_sizes names {list(entries)}; accepted: the groups "
                f"{', '.join(map(group_name, names))}"
            )
        order = list(entries) if names is None else names
    else:
        listed = list(group_sizes)
        order = [f"group {i + 1}" for i in range(len(listed))] if names is None else names
        if len(listed) != len(order):
            raise ArgumentError(
                f"group_sizes has {len(listed)} entries; accepted: one for each of the groups "
                f"{', '.join(map(group_name, order))}"
            )
        entries = dict(zip(order, listed, strict=True))
    if names is None and len(entries) < 2:
        raise ArgumentError(f"group_sizes has {len(entries)} entries; accepted: at least two")
    if whole:
        return {
            group: arguments.count(f"group_sizes of {group_name(group)}", entries[group], 1, _MOST)
            for group in order
        }
    for group, size in entries.items():
        is_number = isinstance(size, int | float | np.number) and not isinstance(size, bool)
        if not is_number or not math.isfinite(size):
            raise ArgumentTypeError(
                f"group_sizes of {group_name(group)} is {size!r}; accepted: a number above 0"
            )
        if size <= 0:
            raise ArgumentError(
                f"group_sizes of {group_name(group)} is {size!r}; accepted: a number above 0"
            )
    return {group: entries[group] for group in order}


def _power(gap: float, error: float, level: float, alternative: str) -> float:
    """Return the power of a normal test; a gap counts in the direction of the alternative."""
    if alternative == "two-sided":
        z = _native.normal_quantile(1 - level / 2)
        return normal_cdf(gap / error - z) + normal_cdf(-gap / error - z)
    return normal_cdf(gap / error - _native.normal_quantile(1 - level))


def _gap(error: float, level: float, power: float, alternative: str) -> float:
    """Return the smallest gap that a test finds with the power."""
    if power <= level:
        return 0.0
    low, high = 0.0, error
    while _power(high, error, level, alternative) < power:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        if _power(middle, error, level, alternative) < power:
            low = middle
        else:
            high = middle
    return high
