"""Verdicts in words: who, how much, how sure, and what is not said.

Percentages and points for shares, numbers for the rest; p-values stand in tables only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..literals import Verdict
from ..permutation.floors import CountedGroup
from ..results import verdict as verdicts
from ..results.words import listed, number
from .amounts import Amounts, share
from .findings import LensFinding, PairFinding, QuestionFinding
from .lens_verdicts import LensWording
from .policy import Policy
from .sentences import part, sentence

#: The first word of every output.
HEADLINES: dict[Verdict, str] = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE (not a pass)",
    "not_measurable": "NOT MEASURABLE (not a pass)",
    "no_fail": "NO FAIL (the policy knows no pass)",
    "not_asked": "NOT ASKED",
}
#: Of verdicts that do not cover (almost) all people.
PARTIAL: dict[Verdict, str] = {
    "pass": "PASS for the groups that could be measured, not for all",
    "no_fail": (
        "NO FAIL for the groups that could be measured, not for all (the policy knows no pass)"
    ),
}
#: So many failing or undecided questions are told in sentences.
_MOST_TOLD = 3
#: Who holds up a verdict are few; of many, pairs are counted.
_MAJORITY = 0.5

Named = Callable[[str, Any], str]


def headline(verdict: Verdict, *, for_all: bool) -> str:
    """Return the verdict as the first words of an output."""
    words = HEADLINES[verdict]
    return words if for_all else PARTIAL.get(verdict, words)


class Wording(Amounts):
    """The sentences of an audit."""

    def __init__(
        self,
        findings: Sequence[QuestionFinding],
        alpha: float,
        n_tests: int,
        named: Named,
        lenses: Sequence[LensFinding] = (),
        *,
        adjusts: bool = True,
        has_pass: bool = True,
    ) -> None:
        super().__init__(alpha, n_tests, adjusts)
        self.has_pass = has_pass
        self.binding = [one for one in findings if one.binding]
        self.informing = [one for one in findings if not one.binding]
        self.named = named
        self.lenses = LensWording(lenses, alpha, n_tests, adjusts)

    @property
    def binds(self) -> bool:
        """Whether anything could have failed."""
        return bool(self.binding or self.lenses.binding)

    # -- numbers -----------------------------------------------------------------------------

    def value(self, one: QuestionFinding, value: float) -> str:
        """Return a value of a group."""
        return share(value) if one.is_share else number(value)

    def group(self, one: QuestionFinding, group: CountedGroup, value: float) -> str:
        """Return a group with its value and eligible rows."""
        name = self.named(one.attribute, group.group)
        n = f"{group.n_counted:,}"
        return part("cell", "cell", group=name, value=self.value(one, value), n=n)

    # -- verdicts ----------------------------------------------------------------------------

    def told(self, verdict: Verdict) -> Iterator[str]:
        """Yield the sentences of a verdict."""
        if verdict == "fail":
            yield from self._fails()
        elif verdict == "pass":
            yield from self._passes()
        elif verdict not in ("no_fail", "not_asked"):
            yield from self._shares(verdict)
        if verdict in ("fail", "inconclusive", "not_measurable"):
            undecided, lenses = self._of("inconclusive"), self.lenses.of("inconclusive")
            n = len(undecided) + len(lenses)
            if verdict == "fail" and n:
                yield sentence("besides_one") if n == 1 else sentence("besides", n=n)
            yield from self._undecided(undecided)
            yield from map(self.lenses.undecided, lenses)
        for one in self._of("not_measurable"):
            yield sentence("not_measurable", **self._about(one), reason=self._lacking(one))
        for one in self.binding:
            if one.is_skipped:
                yield sentence("not_asked", **self._about(one), reason=one.reason)
        yield from map(self.lenses.lacking, self.lenses.of("not_measurable"))

    @property
    def _open(self) -> bool:
        """Whether a binding question or lens was asked and is not decided."""
        words = [one.verdict for one in self.binding if not one.is_skipped]
        words += [one.verdict for one in self.lenses.binding]
        return not all(map(verdicts.is_within, words))

    def _of(self, verdict: Verdict) -> list[QuestionFinding]:
        return [one for one in self.binding if one.verdict == verdict]

    def _about(self, one: QuestionFinding) -> dict[str, str]:
        return {"attribute": one.attribute, "metric": one.description}

    def _fails(self) -> Iterator[str]:
        failed = self._of("fail")
        for one in failed[:_MOST_TOLD]:
            pair = one.telling_pair
            assert pair is not None
            yield self._of_pair("fail", one, pair, pair.test.least, worse=self._worse(one, pair))
            yield from self._largest(one, pair)
        left = len(failed) - _MOST_TOLD
        if left > 0:
            yield sentence("more_fail", n=left) if left > 1 else sentence("one_more_fails")
        yield from map(self.lenses.fail, self.lenses.of("fail"))
        yield sentence("fail_is")

    def _of_pair(
        self, name: str, one: QuestionFinding, pair: PairFinding, bound: float, **parts: str
    ) -> str:
        """Return a sentence about a comparison."""
        assert one.tolerance is not None
        (low, low_value), (high, high_value) = pair.test.by_value
        if one.tolerance.scale == "ratio":
            # That of the first to the second, also where it is above 1.
            (low, low_value), (high, high_value) = pair.test.in_order
        return sentence(
            f"{name}_{one.tolerance.scale}",
            **self._about(one),
            low_group=self.named(one.attribute, low.group),
            low_value=self.value(one, low_value),
            low_n=f"{low.n_counted:,}",
            high_group=self.named(one.attribute, high.group),
            high_value=self.value(one, high_value),
            high_n=f"{high.n_counted:,}",
            within=self._within(one, pair),
            gap=self.gap(one, pair.test.estimate),
            tolerance=self.gap(one, one.tolerance.value),
            bound=self.bound(one, bound),
            confidence=self.of_all,
            **parts,
        )

    def _worse(self, one: QuestionFinding, pair: PairFinding) -> str:
        """Say who is worse off, where the metric says so."""
        low, high = (group for group, _ in pair.test.by_value)
        worse = {"lower": low, "higher": high}.get(one.worse_off or "")
        if worse is None:
            return ""
        return part("worse", "worse", group=self.named(one.attribute, worse.group))

    def _within(self, one: QuestionFinding, pair: PairFinding) -> str:
        """Say within which strata groups are compared, and what the strata change."""
        within = pair.test.within
        if within is None:
            return ""
        parts = {"strata": listed(list(within.names), 5)}
        name = "within"
        if within.share_outside > 0:
            parts["outside"] = share(within.share_outside)
            name += "_some"
        low, high = (group for group, _ in pair.test.by_value)
        if low.value > high.value:
            parts |= {
                "first": self.named(one.attribute, low.group),
                "first_crude": self.value(one, low.value),
                "second": self.named(one.attribute, high.group),
                "second_crude": self.value(one, high.value),
            }
            name += "_reversed"
        return part("within", name, **parts)

    def _largest(self, one: QuestionFinding, told: PairFinding) -> Iterator[str]:
        """Name the compared groups that lie farthest apart, where another comparison decides."""
        widest = one.widest_pair
        assert one.tolerance is not None
        if widest is None or widest.test.groups == told.test.groups:
            return
        is_ratio = one.tolerance.scale == "ratio"
        ends = widest.test.in_order if is_ratio else widest.test.by_value
        (low, low_value), (high, high_value) = ends
        gap = widest.test.estimate
        yield sentence(
            "smallest_observed" if is_ratio else "largest_observed",
            **self._about(one),
            gap=self.gap(one, gap),
            low_group=self.named(one.attribute, low.group),
            low_value=self.value(one, low_value),
            high_group=self.named(one.attribute, high.group),
            high_value=self.value(one, high_value),
        )

    def _passes(self) -> Iterator[str]:
        """Say how large a gap the data leave possible, and what else they show."""
        worst: dict[tuple[str, str], QuestionFinding] = {}
        for one in sorted(self.binding, key=_used_up, reverse=True):
            if one.telling_pair and one.tolerance:
                worst.setdefault((one.metric, one.tolerance.scale), one)
        told = list(worst.values())[:_MOST_TOLD]
        for one in told:
            yield self._pass(one)
        left = sum(bool(one.telling_pair and one.tolerance) for one in self.binding) - len(told)
        if left > 0:
            yield sentence("more_pass", n=left) if left > 1 else sentence("one_more_passes")
        yield from map(self.lenses.passed, self.lenses.of("pass"))
        beyond = [f"{one.metric} by {one.attribute}" for one in self.informing if _fails(one)]
        beyond += [f"{one.lens} by {one.attribute}" for one in self.lenses.beyond]
        if beyond:
            yield sentence("not_binding", what=listed(beyond, _MOST_TOLD))
        yield sentence("pass_is")

    def _pass(self, one: QuestionFinding) -> str:
        pair, tolerance = one.telling_pair, one.tolerance
        assert pair is not None
        assert tolerance is not None
        differs = verdicts.rejects(pair.test.p_equal, self._each(one))
        first, second = pair.test.groups
        reference = one.reference
        if reference is not None:
            reference = self.named(one.attribute, reference)
        return sentence(
            f"pass_{tolerance.scale}",
            **self._about(one),
            to="" if reference is None else part("to", "to", reference=reference),
            tolerance=self.gap(one, tolerance.value),
            bound=self.bound(one, pair.test.most),
            first=self.named(one.attribute, first.group),
            second=self.named(one.attribute, second.group),
            confidence=self.confidence,
            within=self._within(one, pair),
            differ=part("differ", "small_gap") if differs else "",
        )

    def _each(self, one: QuestionFinding) -> float:
        """Return the level of one of all comparisons."""
        if not self.adjusts:
            return self.alpha
        return self.alpha / max(self.n_tests if one.binding else len(one.pairs), 1)

    def _differ(self, one: QuestionFinding, pair: PairFinding) -> str:
        """Say whether the groups of an undecided comparison differ at all."""
        test, tolerance = pair.test, one.tolerance
        assert tolerance is not None
        names = self._pair_names(one, pair)
        if math.isnan(test.p_equal):
            return part("differ", "equality_unknown", **names)
        if not verdicts.rejects(test.p_equal, self._each(one)):
            surest = min(
                one.pairs, key=lambda other: (math.isnan(other.test.p_equal), other.test.p_equal)
            )
            if not verdicts.rejects(surest.test.p_equal, self._each(one)):
                return part("differ", "not_shown_to_differ", **names)
            others = self._pair_names(one, surest)
            names |= {"third": others["first"], "fourth": others["second"]}
            return part("differ", "others_differ", **names, confidence=self.of_all)
        beyond = test.estimate > tolerance.value
        exceeds = beyond if tolerance.scale == "difference" else not beyond
        name = "only_tolerance_open" if exceeds else "they_differ"
        return part("differ", name, **names, confidence=self.of_all)

    def _pair_names(self, one: QuestionFinding, pair: PairFinding) -> dict[str, str]:
        low, high = (self.named(one.attribute, group.group) for group, _ in pair.test.by_value)
        return {"first": low, "second": high}

    def _shares(self, verdict: Verdict) -> Iterator[str]:
        """Say first for how many people every gap is shown to be tolerated, and what is open."""
        if any(one.is_skipped for one in self.binding) and not self._open:
            yield sentence("some_not_asked")
        else:
            n = len(self._of("not_measurable")) + len(self.lenses.of("not_measurable"))
            name = "neither" if verdict == "inconclusive" else "no_verdict"
            yield sentence(name, n=n, n_all=len(self.binding) + len(self.lenses.binding))
        n = len(self._of("pass")) + len(self.lenses.of("pass"))
        if n:
            n_all = len(self.binding) + len(self.lenses.binding)
            several = sentence("some_pass", n=n, n_all=n_all)
            yield sentence("one_passes", n_all=n_all) if n == 1 else several
        for one in self._of("inconclusive"):
            still_open = [group for group in one.tested if group not in one.shown_groups]
            shown = sum(pair.is_within for pair in one.pairs)
            if still_open and shown and one.share_shown < _MAJORITY:
                yield sentence("pairs_shown", **self._about(one), n=shown, n_all=len(one.pairs))
            elif one.shown_groups and still_open:
                names = [self.named(one.attribute, group.group) for group in still_open]
                yield sentence(
                    "people_shown",
                    **self._about(one),
                    share=share(one.share_shown),
                    shown=listed(
                        [self.named(one.attribute, group.group) for group in one.shown_groups], 5
                    ),
                    groups=listed(names, 5),
                )

    def _undecided(self, questions: Sequence[QuestionFinding]) -> Iterator[str]:
        for one in questions[:_MOST_TOLD]:
            pair = one.telling_pair
            if pair is None or one.tolerance is None:
                continue
            if pair.test.reason and math.isnan(pair.test.estimate):
                yield sentence("not_measurable", **self._about(one), reason=pair.test.reason)
                continue
            why = one.reason or pair.test.reason
            parts = {
                "differ": self._differ(one, pair),
                "required": part("required", "reason", reason=f"{why[:1].upper()}{why[1:]}")
                if why
                else self._required(one, pair),
            }
            yield self._of_pair("undecided", one, pair, pair.test.most, **parts)
            yield from (f"  {text}" for text in self._largest(one, pair))
        left = len(questions) - _MOST_TOLD
        if left > 0:
            yield sentence("more_undecided", n=left) if left > 1 else sentence("one_more_undecided")

    def _required(self, one: QuestionFinding, pair: PairFinding) -> str:
        """Say how many rows would decide."""
        rows = pair.telling
        if rows is None:
            return part("required", "rows_unknown")
        if rows.n_rows is None:
            return part("required", "no_rows")
        smaller = min(pair.test.groups, key=lambda group: group.n_counted)
        name = "rows_to_pass" if self.has_pass else "rows_to_no_fail"
        return part(
            "required",
            name if rows.side == "within" else "rows_to_fail",
            factor=f"{rows.factor:.1f}",
            n_rows=f"{rows.n_rows:,}",
            group=self.named(one.attribute, smaller.group),
            n_now=f"{smaller.n_counted:,}",
        )

    def _lacking(self, one: QuestionFinding) -> str:
        """Say which count is missing."""
        groups = [
            f"{self.named(one.attribute, group.group)}: {group.reason}" for group in one.untested
        ]
        why = one.reason or "nothing could be tested"
        return f"{why} ({listed(groups, 5)})" if groups else why

    # -- what is not said --------------------------------------------------------------------

    def coverage(self) -> str:
        """Return the share of people in tested groups, by attribute."""
        least: dict[str, float] = {}
        for one in self.binding:
            if one.is_skipped:
                continue
            # A group without another one to compare it with was not tested.
            covered = one.coverage if one.pairs else 0.0
            least[one.attribute] = min(least.get(one.attribute, 1.0), covered)
        # What was not run at all tested nobody, whatever the attribute.
        for lens in sorted(self.lenses.binding, key=lambda lens: not lens.attribute):
            part = 0.0 if math.isnan(lens.coverage) else lens.coverage
            for name in [lens.attribute] if lens.attribute else list(least):
                least[name] = min(least.get(name, 1.0), part)
        return ", ".join(f"{name} {_covered(part)}" for name, part in least.items())

    def limits(self, policy: Policy, has_labels: bool) -> Iterator[str]:
        """Yield what the verdict rests on, and what it says nothing about."""
        if any(one.tolerance is None and len(one.pairs) > 1 for one in self.informing):
            yield sentence("equal_is")
        if not self.binds:
            return
        for one in self.binding:
            if one.untested and one.tested:
                groups = [
                    f"{self.named(one.attribute, group.group)} ({group.reason})"
                    for group in one.untested
                ]
                yield sentence(
                    "not_tested",
                    groups=listed(groups, 10),
                    attribute=one.attribute,
                    metric=one.metric,
                )
        yield from self.lenses.silent()
        if self.n_tests:
            yield sentence("table_is", confidence=self.confidence)
            yield self._errors(policy, has_labels)

    def _errors(self, policy: Policy, has_labels: bool) -> str:
        """Say how often the verdict may be wrong."""
        has_lens, together = bool(self.lenses.binding), ""
        name = "one_lens" if has_lens else "one_pair"
        if self.n_tests > 1:
            name = "comparisons_and_lenses" if has_lens else "comparisons"
            together = part("together", "all" if policy.adjustment == "holm" else "each")
        rate = f"{100 * self.alpha:g} %"
        tests = part("tests", name, n=f"{self.n_tests:,}")
        return sentence(
            "errors_are",
            tests=tests,
            rate=rate,
            together=together,
            false_pass=part("false_pass", "false_pass", rate=rate) if policy.has_pass else "",
            labels=part("labels", "labels") if has_labels else "",
        )


def _covered(part: float) -> str:
    """Return a share of people, which is everybody only where nobody is left out."""
    is_rounded = not verdicts.covers(part, 1.0) and share(part) == share(1)
    return f"more than {share(0.999)}" if is_rounded else share(part)


def verdict_word(one: QuestionFinding) -> str:
    """Return the verdict of a question for the table."""
    word = one.verdict.replace("_", " ")
    return word if one.binding else f"{word}, not binding"


def _fails(one: QuestionFinding) -> bool:
    return one.verdict == "fail"


def _used_up(one: QuestionFinding) -> float:
    """Return how much of its tolerance a question may use up: 1 at the tolerance."""
    if one.telling_pair is None or one.tolerance is None:
        return 0.0
    most, limit = one.telling_pair.test.most, one.tolerance.value
    if one.tolerance.scale == "ratio":
        most, limit = 1 - most, 1 - limit
    return most / limit


#: Columns of the table of questions.
HEADS = (
    "attribute",
    "metric",
    "verdict",
    "lowest",
    "highest",
    "decided by",
    "observed",
    "bound",
    "p equal",
    "adjusted p",
)


def table(
    findings: Sequence[QuestionFinding], wording: Wording
) -> tuple[list[str], list[list[str]]]:
    """Return the questions as a table for people: heads, and rows of text."""
    rows = []
    for one in findings:
        pair = one.shown_pair
        word = verdict_word(one)
        ends = [wording.group(one, group, value) for group, value in one.extremes]
        head = [one.attribute, one.metric, word, *ends, *[""] * (2 - len(ends))]
        if pair is None:
            is_silent = one.verdict == "not_asked" and not one.is_skipped
            why = "" if is_silent else one.reason or ""
            rows.append([*head, "", "", why, "", ""])
            continue
        low, high = (wording.named(one.attribute, group.group) for group, _ in pair.test.by_value)
        bound = adjusted = ""
        if one.tolerance is not None:
            is_gap = one.tolerance.scale == "difference"
            fails = one.verdict == "fail"
            sign = ">" if fails == is_gap else "<"
            bound = f"{sign} {wording.bound(one, pair.test.least if fails else pair.test.most)}"
            adjusted = f"{pair.adjusted:.2g}"
        rows.append(
            [
                *head,
                f"{low}, {high}",
                wording.gap(one, pair.test.estimate),
                bound,
                "" if math.isnan(pair.test.p_equal) else f"{pair.test.p_equal:.2g}",
                adjusted,
            ]
        )
    return list(HEADS), [*rows, *map(wording.lenses.row, wording.lenses.judged)]
