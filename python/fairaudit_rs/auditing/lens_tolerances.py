"""The tolerances of lenses: the number of their tests, and the levels of their verdicts.

A test of a lens fails at the level alpha / m, with m the number of comparisons of all binding
questions and lenses. Holm's adjustment of the questions counts these tests as comparisons that are
not rejected. Holm's method on all comparisons together would reject whatever is rejected here, so
a false fail occurs in at most a share alpha of audits. A pass needs every comparison at the level
alpha, without adjustment.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import metrics
from ..data.groups import attribute_name, group_label
from ..errors import ArgumentError
from ..extremes.problem import FEWEST_ROWS
from ..inference.tolerance import Tolerance, fewest_resamples
from ..influence.rates import RATES
from ..literals import Verdict
from ..permutation.minimum_counts import ROWS, GroupCount
from ..results import verdict
from .criterion import Criterion
from .findings import LensFinding, LensTest
from .policy import Policy
from .questions import AuditedAttribute, PreparedCriterion
from .sentences import fill_part

#: Replicates of the individual lens, unless the number of comparisons requires more.
_USUAL_RESAMPLES = 999


@dataclass(frozen=True, kw_only=True, eq=False)
class LensTolerance:
    """The tolerance of a lens for an attribute, and the levels of its verdict."""

    criterion: Criterion
    policy: Policy
    #: Number of comparisons that share the level alpha.
    n_tests: int

    @property
    def tolerance(self) -> float:
        """The largest tolerated size."""
        assert self.criterion.tolerance is not None
        return self.criterion.tolerance

    @property
    def n_adjusted(self) -> int:
        """The number of comparisons that a fail is adjusted for."""
        return max(self.n_tests, 1) if self.policy.adjustment == "holm" else 1

    @property
    def comparison_alpha(self) -> float:
        """The level at which one comparison fails."""
        return self.policy.alpha / self.n_adjusted

    @property
    def fail_level(self) -> float:
        """The confidence level of the interval by which a gap of either sign fails.

        Both sides together have the error rate alpha / m. With one-sided limits at alpha / m and a
        small tolerance there would be twice as many false fails: below -tol and above tol.
        """
        return 1 - self.comparison_alpha

    @property
    def pass_level(self) -> float:
        """The confidence level of the interval by which a gap passes.

        Order statistics are discrete: nearly all errors of an interval may lie on one side (up to
        7.5 % at a confidence of 90 %), so a pass needs 1 - alpha and not 1 - 2 alpha.
        """
        return 1 - self.policy.alpha

    def n_resamples(self, given: int, n_parts: int = 1) -> int:
        """Return the number of replicates of a test; refuse too few.

        ``n_parts`` is the number of equal parts into which the level of a comparison is split.
        """
        needed = fewest_resamples(self.n_adjusted * n_parts, self.policy.alpha)
        if given < needed:
            raise ArgumentError(
                f"n_resamples is {given:,}; the lens {self.criterion.name} is tested by "
                f"replicates, and {self.n_adjusted:,} comparisons at {self.policy.alpha:g} need at "
                f"least {needed:,}",
                argument="n_resamples",
            )
        return min(given, max(needed, _USUAL_RESAMPLES))

    def give_verdict(self, found: LensFinding) -> LensFinding:
        """Return a finding with its verdict; a lens that was not run is not measurable."""
        measured = [test.verdict for test in found.tests if test.reason is None]
        word = verdict.of_lens(
            measured,
            coverage=found.coverage,
            min_coverage=self.policy.min_coverage,
            has_pass=self.policy.has_pass,
        )
        reason = found.reason or self._why(found, word)
        has_pass = self.policy.has_pass
        tests = [
            replace(test, verdict=verdict.in_policy(test.verdict, has_pass)) for test in found.tests
        ]
        return replace(
            found,
            tolerance=Tolerance(value=self.tolerance),
            binding=self.criterion.binding,
            verdict=word,
            reason=reason,
            tests=tuple(tests),
        )

    def _why(self, found: LensFinding, word: str) -> str | None:
        """Return why nothing was measured or why there is no pass; else None."""
        if word == "not_measurable":
            reasons = dict.fromkeys(test.reason for test in found.tests if test.reason)
            return "; ".join(reasons) or "fewer than two groups with enough rows"
        shown = all(test.verdict == "pass" for test in found.tests if test.reason is None)
        if word == "inconclusive" and shown:
            return fill_part(
                "why_not_shown",
                "few_people",
                share=f"{100 * found.coverage:.1f}",
                needed=f"{100 * self.policy.min_coverage:g}",
            )
        return None

    def test_by_limits(self, test: LensTest) -> LensTest:
        """Return a comparison with the verdict from its limits."""
        if test.reason is not None:
            return test
        return replace(test, verdict=verdict.of_limits(test.least, test.most, self.tolerance))

    def test_by_pvalues(self, test: LensTest) -> LensTest:
        """Return a comparison with the verdict from its p-values."""
        if test.reason is not None:
            return test
        word: Verdict = "inconclusive"
        if verdict.rejects_at(test.p_fail, self.comparison_alpha):
            word = "fail"
        elif verdict.rejects_at(test.p_pass, self.policy.alpha):
            word = "pass"
        return replace(test, adjusted=min(1.0, self.n_adjusted * test.p_fail), verdict=word)


@dataclass(frozen=True, kw_only=True, eq=False)
class LensTolerances:
    """The tolerances of all lenses of an audit."""

    policy: Policy
    #: Number of tests by lens and attribute, for criteria with a tolerance.
    counts: Mapping[tuple[str, str], int]
    #: Number of comparisons of all binding questions and lenses.
    n_tests: int = 0

    @classmethod
    def from_questions(
        cls,
        policy: Policy,
        attributes: Sequence[AuditedAttribute],
        prepared_criteria: Sequence[PreparedCriterion],
        runnable: Collection[str],
    ) -> LensTolerances:
        """Count the tests beforehand, by the sizes of groups and not by their values.

        ``runnable`` are the lenses that can run.
        """
        counts: dict[tuple[str, str], int] = {}
        for criterion in policy.criteria:
            lens = criterion.lens
            if lens is None or criterion.tolerance is None or lens not in runnable:
                continue
            if lens == "individual":
                counts[lens, attribute_name([attribute.name for attribute in attributes])] = 1
                continue
            for attribute in attributes:
                if criterion.covers(attribute.name):
                    counts[lens, attribute.name] = _n_tests(
                        lens, attribute, policy, prepared_criteria
                    )
        return cls(policy=policy, counts=counts)

    @property
    def n_binding(self) -> int:
        """The number of tests of binding lenses."""
        criteria = {key: self._criterion(*key) for key in self.counts}
        return sum(
            n
            for key, n in self.counts.items()
            if (criterion := criteria[key]) and criterion.binding
        )

    def find(self, lens: str, attribute: str) -> LensTolerance | None:
        """Return the tolerance of a lens for an attribute; None if it has none."""
        criterion = self._criterion(lens, attribute)
        if criterion is None or criterion.tolerance is None:
            return None
        own = self.counts.get((lens, attribute), 0)
        n_tests = self.n_tests if criterion.binding else own
        return LensTolerance(criterion=criterion, policy=self.policy, n_tests=n_tests)

    def _criterion(self, lens: str, attribute: str) -> Criterion | None:
        """Return the criterion of a lens for an attribute; "" stands for all attributes."""
        about = [
            criterion
            for criterion in self.policy.criteria
            if criterion.lens == lens
            and (lens == "individual" or not attribute or criterion.covers(attribute))
        ]
        return min(about, key=lambda criterion: not criterion.binding, default=None)


def _n_tests(
    lens: str,
    attribute: AuditedAttribute,
    policy: Policy,
    prepared_criteria: Sequence[PreparedCriterion],
) -> int:
    """Return the maximum number of comparisons of a lens for an attribute."""
    if lens == "influence":
        n = len(
            comparable_groups(prepared_criteria, first_supported_rate(policy, attribute), attribute)
        )
        # Two groups share one gap.
        return 1 if n == 2 else n
    return math.comb(len(large_groups(attribute, FEWEST_ROWS if lens == "extremes" else ROWS)), 2)


def first_supported_rate(policy: Policy, attribute: AuditedAttribute) -> str:
    """Return the first metric about an attribute that influence supports, binding ones first.

    "" if there is none.
    """
    criteria = [criterion for criterion in policy.criteria if criterion.metric is not None]
    criteria.sort(key=lambda criterion: not criterion.binding)
    names = [
        metrics.get(criterion.name).name
        for criterion in criteria
        if criterion.covers(attribute.name)
    ]
    return next((name for name in names if name in RATES), "")


def comparable_groups(
    prepared_criteria: Sequence[PreparedCriterion], metric: str, attribute: AuditedAttribute
) -> list[Any]:
    """Return the groups that a question about a metric can test in an attribute."""
    for criterion in prepared_criteria:
        if (criterion.metric.name, criterion.attribute.name) == (metric, attribute.name):
            return groups_of_eligible_size(criterion.question.groups)
    return []


def groups_of_eligible_size(groups: Sequence[GroupCount]) -> list[Any]:
    """Return the groups with enough eligible rows, including those that a higher minimum excludes.

    A lens compares them all, so that excluding groups cannot turn a verdict into a pass.
    """
    return [group.group for group in groups if group.is_tested or group.withheld]


def large_groups(attribute: AuditedAttribute, floor: int = ROWS) -> list[Any]:
    """Return the groups whose effective size is at least the floor."""
    sizes = {group_label(key): n for key, n in attribute.table.people.n_effective.items()}
    return [group for group in attribute.groups if sizes[group] >= floor]
