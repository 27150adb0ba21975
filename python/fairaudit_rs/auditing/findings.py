"""The findings of an audit: one for each question and each lens, with all its comparisons."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from ..data.equality import EqualByValue
from ..inference.required_rows import RequiredRows, rows_of_smaller_group
from ..inference.tolerance import Tolerance
from ..literals import Verdict
from ..permutation.minimum_counts import GroupCount
from ..permutation.tolerance import ToleranceTest
from ..permutation.within_strata import stratum_rows as of_strata
from ..report.notes import Note
from ..results.verdict import is_within


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFinding(EqualByValue):
    """One pair of groups of a question: its test, and its verdict among all comparisons."""

    test: ToleranceTest
    #: The p-value of a gap within the tolerance, adjusted for all pairs that are judged together.
    adjusted: float
    verdict: Verdict
    #: The rows required for a verdict, if there is none yet.
    telling: RequiredRows | None = None

    @property
    def is_within(self) -> bool:
        """Return whether the gap is shown to be within the tolerance, as a pass or as "no fail"."""
        return is_within(self.verdict)

    def with_rows_to_pass(self, times: float) -> PairFinding:
        """Replace the required rows by those with which all pairs pass: so many times the rows."""
        if self.telling is None or self.telling.side != "within":
            return self
        n_smaller = min(group.n_counted for group in self.test.groups)
        return replace(self, telling=rows_of_smaller_group("within", times, n_smaller))

    @property
    def low(self) -> float:
        """The lower bound of the gap."""
        return min(self.test.least, self.test.most)

    @property
    def high(self) -> float:
        """The upper bound of the gap."""
        return max(self.test.least, self.test.most)


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionFinding(EqualByValue):
    """The finding about one metric and one attribute, with its verdict."""

    metric: str
    #: The meaning of the metric in words.
    description: str
    #: Whether values are shares, which people read as percentages.
    is_share: bool
    attribute: str
    #: None for a criterion without threshold.
    tolerance: Tolerance | None
    binding: bool
    verdict: Verdict
    groups: tuple[GroupCount, ...]
    pairs: tuple[PairFinding, ...]
    #: All people, and the share of them who are in groups that were tested.
    n_rows: int
    coverage: float
    #: The sum of all weights; None if rows have no weights.
    weight: float | None = None
    #: Why it could not be tested, or why it did not pass.
    reason: str | None = None
    #: The binding question that has the same gaps and is counted for both.
    same_as: str | None = None
    #: "lower" or "higher": which value is worse for people; None if the metric has no direction.
    worse_off: str | None = None
    #: The p-value of the permutation test of equality, if it was run.
    evidence: float = math.nan
    #: Whether several attributes make the groups.
    is_intersection: bool = False

    @property
    def is_skipped(self) -> bool:
        """Return whether the question is binding but was not tested, which withholds a pass."""
        return self.binding and self.verdict == "not_asked" and not self.pairs

    @property
    def tested(self) -> tuple[GroupCount, ...]:
        """The groups that were compared."""
        return tuple(group for group in self.groups if group.is_tested)

    @property
    def untested(self) -> tuple[GroupCount, ...]:
        """The excluded groups."""
        return tuple(group for group in self.groups if not group.is_tested)

    @property
    def telling_pair(self) -> PairFinding | None:
        """The pair that sentences name: the surest of a fail, else the one with the worst bound."""
        if not self.pairs or self.tolerance is None:
            return None
        if self.verdict == "fail":
            # The failed pair with the largest lower bound.
            failed = [pair for pair in self.pairs if pair.verdict == "fail"]
            return max(failed, key=lambda pair: self._away(pair.test.least))
        undecided = [pair for pair in self.pairs if not pair.is_within] or self.pairs
        return max(undecided, key=lambda pair: self._away(pair.test.most))

    def _away(self, value: float) -> float:
        """Return how far a difference or ratio is from equality."""
        is_ratio = self.tolerance is not None and self.tolerance.scale == "ratio"
        return -value if is_ratio else value

    @property
    def shown_pair(self) -> PairFinding | None:
        """The pair in tables: the one that decides, or without a tolerance the widest."""
        return self.widest_pair if self.tolerance is None else self.telling_pair

    @property
    def widest_pair(self) -> PairFinding | None:
        """The pair with the largest observed gap.

        If ratios are equal, as for rates of 0, the one with the largest difference.
        """

        def size(pair: PairFinding) -> tuple[float, float]:
            test, difference = pair.test, abs(pair.test.first_value - pair.test.second_value)
            return 0.0 if math.isnan(test.estimate) else self._away(test.estimate), difference

        known = [pair for pair in self.pairs if not math.isnan(pair.test.estimate)]
        # Ratios of shares within strata of which one is 0 have no estimate, and yet values.
        known = known or [pair for pair in self.pairs if not math.isnan(size(pair)[1])]
        return max(known, key=size, default=None)

    @property
    def extremes(self) -> tuple[tuple[GroupCount, float], ...]:
        """The groups with the lowest and the highest value, with these values.

        Within strata a value depends on the comparison; then those of the widest pair are taken.
        """
        pair = self.widest_pair
        if pair is not None and pair.test.within is not None:
            return pair.test.by_value
        is_crude = self.tolerance is not None or any(count.is_crude for count in self.tested)
        if is_crude and not self.pairs and len(self.tested) > 1:
            # Groups that could not be compared have only crude values.
            return ()
        known = sorted(
            (count for count in self.tested if not math.isnan(count.value)),
            key=lambda count: count.value,
        )
        return tuple((count, count.value) for count in known[:1] + known[1:][-1:])

    @property
    def reference(self) -> Any:
        """The group that all others are compared with; None if all pairs are compared."""
        groups = [{group.group for group in pair.test.groups} for pair in self.pairs]
        common = set.intersection(*groups) if len(groups) > 1 else set()
        return next(iter(common), None)

    @property
    def share_shown(self) -> float:
        """The share of people in groups whose pairs are all shown to be within the tolerance."""
        people = self.n_rows if self.weight is None else self.weight
        return math.fsum(group.n_people for group in self.shown_groups) / (people or 1)

    @property
    def shown_groups(self) -> tuple[GroupCount, ...]:
        """The groups whose pairs are all shown to be within the tolerance.

        Groups with open pairs are removed one by one, those with the most open pairs first. The
        reference group stays, because every comparison is with it.
        """
        groups, reference = list(self.tested), self.reference
        while len(groups) > 1:
            names = {label.group for label in groups}
            open_pairs = [
                pair
                for pair in self.pairs
                if not pair.is_within and {group.group for group in pair.test.groups} <= names
            ]
            if not open_pairs:
                return tuple(groups)

            def removal_key(count: GroupCount, pairs: list[PairFinding] = open_pairs) -> Any:
                n_open = sum(count in pair.test.groups for pair in pairs)
                return count.group != reference, n_open, -count.n_people

            groups.remove(max(groups, key=removal_key))
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LensTest(EqualByValue):
    """One comparison of a lens with a tolerance; the gap is at least 0."""

    #: The groups, the one with the higher value first; None if the lens compares no groups.
    first: str | None = None
    second: str | None = None
    first_value: float = math.nan
    second_value: float = math.nan
    #: Eligible rows.
    first_n: int | None = None
    second_n: int | None = None
    estimate: float = math.nan
    #: The lower bound of the size, at the level of one of all comparisons, and the upper bound; NaN
    #: for a lens without limits.
    least: float = math.nan
    most: float = math.nan
    #: The p-values of a size of at most the tolerance, and of a larger one, if the lens has them.
    p_fail: float = math.nan
    p_pass: float = math.nan
    #: The p-value of a fail, adjusted for all comparisons that are judged together.
    adjusted: float = math.nan
    verdict: Verdict = "inconclusive"
    #: Why it could not be measured.
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class LensFinding(EqualByValue):
    """The finding of another lens for an attribute, or the reason why the lens was not run.

    It has a verdict if a criterion of the policy names the lens, with a tolerance.
    """

    lens: str
    metric: str
    attribute: str
    estimate: float
    low: float
    high: float
    pvalue: float
    #: Why it was not run, or has no result.
    reason: str | None = None
    #: The compared groups, if there are two.
    first: str | None = None
    second: str | None = None
    #: How the run deviates from the request: on a sample of rows, without the model.
    note: str = ""
    #: The notes in the results of the lens.
    notes: tuple[Note, ...] = ()
    #: The finding in words.
    told: str = ""
    #: The features related to the gap of influence, in words.
    features: str = ""
    #: For the individual lens with limits: the fair metric, in words.
    alike: str = ""
    #: None without a criterion; for the individual lens the largest growth of the loss.
    tolerance: Tolerance | None = None
    binding: bool = False
    verdict: Verdict = "not_asked"
    tests: tuple[LensTest, ...] = ()
    #: The share of people who are in groups that were compared.
    coverage: float = math.nan

    @property
    def is_share(self) -> bool:
        """Return whether values are shares, which people read as percentages."""
        return self.lens in ("influence", "projection")

    @property
    def telling(self) -> LensTest | None:
        """The comparison that sentences name: the surest of a fail, else the most open one."""
        measured = [test for test in self.tests if test.reason is None]
        if not measured:
            return None
        if self.lens == "projection":
            return min(measured, key=lambda test: test.p_fail)
        failed = [test for test in measured if test.verdict == "fail"]
        if failed:
            return max(failed, key=lambda test: test.least)
        return max(measured, key=lambda test: test.most)


@dataclass(frozen=True, kw_only=True, eq=False)
class BaseRate(EqualByValue):
    """The size, base rate and selection rate of a group."""

    attribute: str
    group: Any
    n_rows: int
    #: Shares of positive labels and decisions, by weight if rows have weights; NaN without them.
    base_rate: float
    selection_rate: float
    #: The sum of weights; None without weights.
    weight: float | None = None
    #: Whether the shares are crude (over all rows of the group) while gaps are taken within strata.
    is_crude: bool = False

    @property
    def n_people(self) -> float:
        """The people of the group: the sum of the weights of its rows, or their number."""
        return self.n_rows if self.weight is None else self.weight


#: Returns the name of a group of an attribute.
GroupNamer = Callable[[str, Any], str]


def not_run(lens: str, attribute: str, reason: str, metric: str = "") -> LensFinding:
    """Return the finding of a lens that could not be run."""
    return LensFinding(
        lens=lens,
        metric=metric,
        attribute=attribute,
        estimate=math.nan,
        low=math.nan,
        high=math.nan,
        pvalue=math.nan,
        reason=f"not run: {reason}",
    )


def question_row(finding: QuestionFinding, named: GroupNamer) -> dict[str, Any]:
    """Return a question as a row of the findings."""
    pair, nan = finding.shown_pair, math.nan
    test = None if pair is None else pair.test
    return {
        "lens": "permutation",
        "metric": finding.metric,
        "attribute": finding.attribute,
        "first": None if test is None else named(finding.attribute, test.first.group),
        "second": None if test is None else named(finding.attribute, test.second.group),
        "estimate": nan if test is None else test.estimate,
        "low": nan if pair is None else pair.low,
        "high": nan if pair is None else pair.high,
        "pvalue": nan if test is None else test.p_fail,
        "adjusted_pvalue": nan if pair is None else pair.adjusted,
        "pvalue_equal": nan if test is None else test.p_equal,
        "tolerance": nan if finding.tolerance is None else finding.tolerance.value,
        "scale": None if finding.tolerance is None else finding.tolerance.scale,
        "verdict": finding.verdict,
        "binding": finding.binding,
        "first_value": nan if test is None else test.first_value,
        "second_value": nan if test is None else test.second_value,
        "first_n": None if test is None else test.first.n_counted,
        "second_n": None if test is None else test.second.n_counted,
        "coverage": finding.coverage,
        "evidence": finding.evidence,
        "reason": finding.reason,
        "note": None,
    }


def lens_row(finding: LensFinding) -> dict[str, Any]:
    """Return the finding of another lens as a row of the findings."""
    row = {
        "lens": finding.lens,
        "metric": finding.metric,
        "attribute": finding.attribute,
        "first": finding.first,
        "second": finding.second,
        "estimate": finding.estimate,
        "low": finding.low,
        "high": finding.high,
        "pvalue": finding.pvalue,
        "adjusted_pvalue": math.nan,
        "pvalue_equal": math.nan,
        "tolerance": math.nan,
        "scale": None,
        "verdict": "not_asked",
        "binding": False,
        "first_value": math.nan,
        "second_value": math.nan,
        "first_n": None,
        "second_n": None,
        "coverage": math.nan,
        "evidence": math.nan,
        "reason": finding.reason,
        "note": "; ".join(filter(None, (finding.note, *map(str, finding.notes)))) or None,
    }
    return row | (_judged(finding, finding.tolerance) if finding.tolerance is not None else {})


def _judged(finding: LensFinding, tolerance: Tolerance) -> dict[str, Any]:
    """Return the entries of a row that belong to the verdict of a lens."""
    entries = {
        "tolerance": tolerance.value,
        "scale": "growth" if finding.lens == "individual" else tolerance.scale,
        "verdict": finding.verdict,
        "binding": finding.binding,
        "coverage": finding.coverage,
    }
    test = finding.telling
    if test is None:
        return entries
    return entries | {
        "first": test.first,
        "second": test.second,
        "estimate": test.estimate,
        "low": test.least,
        "high": test.most,
        "pvalue": test.p_fail,
        "adjusted_pvalue": test.adjusted,
        "first_value": test.first_value,
        "second_value": test.second_value,
        "first_n": test.first_n,
        "second_n": test.second_n,
        # The p-value of equality, which does not affect the verdict. The individual lens has none.
        "evidence": math.nan if finding.lens == "individual" else finding.pvalue,
    }


def lens_pair_rows(finding: LensFinding) -> list[dict[str, Any]]:
    """Return the comparisons of a lens as rows; none without a verdict."""
    if finding.tolerance is None:
        return []
    return [
        {
            "metric": finding.metric,
            "attribute": finding.attribute,
            "first": test.first,
            "second": test.second,
            "first_value": test.first_value,
            "second_value": test.second_value,
            "first_n": test.first_n,
            "second_n": test.second_n,
            "estimate": test.estimate,
            "standard_error": math.nan,
            "low": test.least,
            "high": test.most,
            "p_fail": test.p_fail,
            "adjusted_p_fail": test.adjusted,
            "p_pass": test.p_pass,
            "p_equal": math.nan,
            "tolerance": finding.tolerance.value,
            "scale": "growth" if finding.lens == "individual" else finding.tolerance.scale,
            "verdict": "not_measurable" if test.reason else test.verdict,
            "binding": finding.binding,
            "method": finding.lens,
            "reason": test.reason,
        }
        for test in finding.tests
    ]


def pair_rows(finding: QuestionFinding, named: GroupNamer) -> list[dict[str, Any]]:
    """Return the pairs of a question as rows."""
    tolerance = finding.tolerance
    return [
        {
            "metric": finding.metric,
            "attribute": finding.attribute,
            "first": named(finding.attribute, pair.test.first.group),
            "second": named(finding.attribute, pair.test.second.group),
            "first_value": pair.test.first_value,
            "second_value": pair.test.second_value,
            "first_n": pair.test.first.n_counted,
            "second_n": pair.test.second.n_counted,
            "estimate": pair.test.estimate,
            "standard_error": pair.test.standard_error,
            "low": pair.low,
            "high": pair.high,
            "p_fail": pair.test.p_fail,
            "adjusted_p_fail": pair.adjusted,
            "p_pass": pair.test.p_pass,
            "p_equal": pair.test.p_equal,
            "tolerance": math.nan if tolerance is None else tolerance.value,
            "scale": None if tolerance is None else tolerance.scale,
            "verdict": pair.verdict,
            "binding": finding.binding,
            "method": pair.test.method,
            "reason": pair.test.reason,
        }
        for pair in finding.pairs
    ]


def stratum_rows(finding: QuestionFinding, named: GroupNamer) -> list[dict[str, Any]]:
    """Return the strata of a question's comparisons as rows, with the test of homogeneity."""
    within = [pair.test.within for pair in finding.pairs if pair.test.within is not None]
    of_question = {"metric": finding.metric, "attribute": finding.attribute}
    return [
        {**of_question, **row}
        for row in of_strata(within, lambda group: named(finding.attribute, group))
    ]


def group_rows(finding: QuestionFinding, named: GroupNamer) -> list[dict[str, Any]]:
    """Return the groups of a question as rows; excluded groups have the reason.

    Values are crude: over all rows of a group, without strata.
    """
    return [
        {
            "metric": finding.metric,
            "attribute": finding.attribute,
            "group": named(finding.attribute, group.group),
            "value": group.value,
            "is_crude": group.is_crude,
            "n_rows": group.n_rows,
            "n_used": group.n_counted,
            "n_positive": group.n_positive,
            "n_negative": group.n_negative,
            "reason": group.reason,
        }
        for group in finding.groups
    ]
