"""What an audit finds: one finding for each question, with all its pairs and groups."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..data.equality import Value
from ..inference.rows_that_tell import RowsThatTell
from ..inference.tolerance import Tolerance
from ..literals import Verdict
from ..permutation.floors import CountedGroup
from ..permutation.tolerance import ToleranceTest


@dataclass(frozen=True, kw_only=True, eq=False)
class PairFinding(Value):
    """Two groups of a question: the test, and what it says among all others."""

    test: ToleranceTest
    #: p of lying within the tolerance, adjusted for all pairs that are judged together.
    adjusted: float
    verdict: Verdict
    #: When neither is shown: how many rows would tell.
    telling: RowsThatTell | None = None

    @property
    def low(self) -> float:
        """The smaller end of what the data allow."""
        return min(self.test.least, self.test.most)

    @property
    def high(self) -> float:
        """The larger end of what the data allow."""
        return max(self.test.least, self.test.most)


@dataclass(frozen=True, kw_only=True, eq=False)
class QuestionFinding(Value):
    """A metric in the groups of an attribute, and whether its gaps are tolerated."""

    metric: str
    #: What the metric is, in words.
    description: str
    #: Whether values are shares, which people read as percentages.
    is_share: bool
    attribute: str
    #: None where nothing is asked.
    tolerance: Tolerance | None
    binding: bool
    verdict: Verdict
    groups: tuple[CountedGroup, ...]
    pairs: tuple[PairFinding, ...]
    #: All people, and the share of them who are in groups that were tested.
    n_rows: int
    coverage: float
    #: Why it could not be tested, or what stands in the way of a pass.
    reason: str | None = None
    #: The binding question that has the same gaps and is counted for both.
    same_as: str | None = None
    #: Whether the group with the lower or the higher value is worse off, where decisions say so.
    worse_off: str | None = None
    #: Of the permutation test of equality, where it was asked for.
    evidence: float = math.nan

    @property
    def tested(self) -> tuple[CountedGroup, ...]:
        """The groups that were compared."""
        return tuple(one for one in self.groups if one.is_tested)

    @property
    def untested(self) -> tuple[CountedGroup, ...]:
        """The groups about which nothing is said."""
        return tuple(one for one in self.groups if not one.is_tested)

    @property
    def telling_pair(self) -> PairFinding | None:
        """The pair that a sentence names: of a fail the surest, else that with the worst bound."""
        if not self.pairs or self.tolerance is None:
            return None
        if self.verdict == "fail":
            # The largest gap among those that are shown to be too large.
            failed = [pair for pair in self.pairs if pair.verdict == "fail"]
            return max(failed, key=lambda pair: self._away(pair.test.least))
        undecided = [pair for pair in self.pairs if pair.verdict != "pass"] or self.pairs
        return max(undecided, key=lambda pair: self._away(pair.test.most))

    def _away(self, value: float) -> float:
        """Return how far a difference or ratio is from equality."""
        assert self.tolerance is not None
        return value if self.tolerance.scale == "difference" else -value

    @property
    def share_shown(self) -> float:
        """The share of people in groups among which every pair is shown to be within tolerance."""
        return sum(one.n_rows for one in self.shown_groups) / max(self.n_rows, 1)

    @property
    def shown_groups(self) -> tuple[CountedGroup, ...]:
        """Groups among which every pair is shown: without those that hold it up."""
        groups = list(self.tested)
        while len(groups) > 1:
            names = {one.group for one in groups}
            open_pairs = [
                pair
                for pair in self.pairs
                if pair.verdict != "pass" and {one.group for one in pair.test.groups} <= names
            ]
            if not open_pairs:
                return tuple(groups)

            def held_up(one: CountedGroup, pairs: list[PairFinding] = open_pairs) -> Any:
                n_open = sum(one in pair.test.groups for pair in pairs)
                return n_open, -one.n_rows

            groups.remove(max(groups, key=held_up))
        return ()


@dataclass(frozen=True, kw_only=True, eq=False)
class LensFinding(Value):
    """What another lens found for an attribute, or why it was not run; it has no verdict."""

    lens: str
    metric: str
    attribute: str
    estimate: float
    low: float
    high: float
    pvalue: float
    #: Why it was not run, or says nothing.
    reason: str | None = None
    #: The groups that are compared, where they are two.
    first: str | None = None
    second: str | None = None
    #: How it was run otherwise than asked for: on a sample of rows, without the model.
    note: str = ""
    #: What it found, in words.
    told: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class BaseRate(Value):
    """People, labels and decisions of a group, whatever is asked of it."""

    attribute: str
    group: Any
    n_rows: int
    #: Shares of positive labels and decisions; NaN where there are none.
    base_rate: float
    selection_rate: float


Named = Callable[[str, Any], str]


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


def question_row(one: QuestionFinding, named: Named) -> dict[str, Any]:
    """Return a question as a row of the findings."""
    pair, nan = one.telling_pair, math.nan
    test = None if pair is None else pair.test
    return {
        "lens": "permutation",
        "metric": one.metric,
        "attribute": one.attribute,
        "first": None if test is None else named(one.attribute, test.first.group),
        "second": None if test is None else named(one.attribute, test.second.group),
        "estimate": nan if test is None else test.estimate,
        "low": nan if pair is None else pair.low,
        "high": nan if pair is None else pair.high,
        "pvalue": nan if test is None else test.p_fail,
        "adjusted_pvalue": nan if pair is None else pair.adjusted,
        "tolerance": nan if one.tolerance is None else one.tolerance.value,
        "scale": None if one.tolerance is None else one.tolerance.scale,
        "verdict": one.verdict,
        "binding": one.binding,
        "first_value": nan if test is None else test.first.value,
        "second_value": nan if test is None else test.second.value,
        "first_n": None if test is None else test.first.n_counted,
        "second_n": None if test is None else test.second.n_counted,
        "coverage": one.coverage,
        "evidence": one.evidence,
        "reason": one.reason,
        "note": None,
    }


def lens_row(one: LensFinding) -> dict[str, Any]:
    """Return what another lens says as a row of the findings."""
    return {
        "lens": one.lens,
        "metric": one.metric,
        "attribute": one.attribute,
        "first": one.first,
        "second": one.second,
        "estimate": one.estimate,
        "low": one.low,
        "high": one.high,
        "pvalue": one.pvalue,
        "adjusted_pvalue": math.nan,
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
        "reason": one.reason,
        "note": one.note or None,
    }


def pair_rows(one: QuestionFinding, named: Named) -> list[dict[str, Any]]:
    """Return the pairs of a question as rows."""
    tolerance = one.tolerance
    return [
        {
            "metric": one.metric,
            "attribute": one.attribute,
            "first": named(one.attribute, pair.test.first.group),
            "second": named(one.attribute, pair.test.second.group),
            "first_value": pair.test.first.value,
            "second_value": pair.test.second.value,
            "first_n": pair.test.first.n_counted,
            "second_n": pair.test.second.n_counted,
            "estimate": pair.test.estimate,
            "standard_error": pair.test.standard_error,
            "low": pair.low,
            "high": pair.high,
            "p_fail": pair.test.p_fail,
            "adjusted_p_fail": pair.adjusted,
            "p_pass": pair.test.p_pass,
            "tolerance": math.nan if tolerance is None else tolerance.value,
            "scale": None if tolerance is None else tolerance.scale,
            "verdict": pair.verdict,
            "binding": one.binding,
            "method": pair.test.method,
            "reason": pair.test.reason,
        }
        for pair in one.pairs
    ]


def group_rows(one: QuestionFinding, named: Named) -> list[dict[str, Any]]:
    """Return the groups of a question as rows, those that were not tested with the reason."""
    return [
        {
            "metric": one.metric,
            "attribute": one.attribute,
            "group": named(one.attribute, group.group),
            "value": group.value,
            "n_rows": group.n_rows,
            "n_used": group.n_counted,
            "n_positive": group.n_positive,
            "n_negative": group.n_negative,
            "reason": group.reason,
        }
        for group in one.groups
    ]
