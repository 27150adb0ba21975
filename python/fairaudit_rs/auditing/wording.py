"""The sentences of a verdict: who, how much, how certain, and what remains open.

Shares are percentages and their gaps points; p-values appear only in tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..literals import Verdict
from ..permutation.minimum_counts import GroupCount
from ..report.document import Cell
from ..report.notes import Note
from ..report.words import join_names, number
from ..results import verdict as verdicts
from .findings import GroupNamer, LensFinding, PairFinding, QuestionFinding
from .lens_verdicts import LensWording, pvalue_cell
from .number_style import NumberStyle, share
from .policy import Policy
from .sentences import fill_note, fill_part, fill_sentence

#: The first word of every output.
HEADLINES: dict[Verdict, str] = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE (not a pass)",
    "not_measurable": "NOT MEASURABLE (not a pass)",
    "no_fail": "NO FAIL (the policy knows no pass)",
    "not_asked": "NOT ASKED",
}
#: The first words of verdicts that do not cover (almost) all people.
PARTIAL: dict[Verdict, str] = {
    "pass": "PASS for the groups that could be measured, not for all",
    "no_fail": (
        "NO FAIL for the groups that could be measured, not for all (the policy knows no pass)"
    ),
}
#: Maximum number of failing or undecided questions with their own sentences.
_MOST_TOLD = 3
#: Groups with open pairs are named if most people are in other groups; else pairs are counted.
_MAJORITY = 0.5


def verdict_headline(verdict: Verdict, *, for_all: bool) -> str:
    """Return the verdict as the first words of an output."""
    words = HEADLINES[verdict]
    return words if for_all else PARTIAL.get(verdict, words)


class Wording(NumberStyle):
    """The sentences of an audit."""

    def __init__(
        self,
        findings: Sequence[QuestionFinding],
        alpha: float,
        n_tests: int,
        named: GroupNamer,
        lenses: Sequence[LensFinding] = (),
        *,
        adjusts: bool = True,
        has_pass: bool = True,
    ) -> None:
        super().__init__(alpha, n_tests, adjusts)
        self.has_pass = has_pass
        self.binding = [finding for finding in findings if finding.binding]
        self.informing = [finding for finding in findings if not finding.binding]
        self.named = named
        self.lenses = LensWording(lenses, alpha, n_tests, adjusts)

    @property
    def binds(self) -> bool:
        """Return whether any question or lens is binding."""
        return bool(self.binding or self.lenses.binding)

    # -- numbers -----------------------------------------------------------------------------

    def value(self, finding: QuestionFinding, value: float) -> str:
        """Return a value of a group."""
        return share(value) if finding.is_share else number(value)

    def group(self, finding: QuestionFinding, group: GroupCount, value: float) -> str:
        """Return a group with its value and eligible rows."""
        name = self.named(finding.attribute, group.group)
        n = f"{group.n_counted:,}"
        return fill_part("cell", "cell", group=name, value=self.value(finding, value), n=n)

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
            undecided, lenses = (
                self._of("inconclusive"),
                self.lenses.binding_with_verdict("inconclusive"),
            )
            n = len(undecided) + len(lenses)
            if verdict == "fail" and n:
                yield fill_sentence("besides_one") if n == 1 else fill_sentence("besides", n=n)
            yield from self._undecided(undecided)
            yield from map(self.lenses.undecided, lenses)
        for finding in self._of("not_measurable"):
            yield fill_sentence(
                "not_measurable", **self._about(finding), reason=self._lacking(finding)
            )
        for criterion in self.binding:
            if criterion.is_skipped:
                yield fill_sentence("not_asked", **self._about(criterion), reason=criterion.reason)
        yield from map(self.lenses.lacking, self.lenses.binding_with_verdict("not_measurable"))

    @property
    def _open(self) -> bool:
        """Return whether a binding question or lens that was tested is undecided."""
        words = [criterion.verdict for criterion in self.binding if not criterion.is_skipped]
        words += [finding.verdict for finding in self.lenses.binding]
        return not all(map(verdicts.is_within, words))

    def _of(self, verdict: Verdict) -> list[QuestionFinding]:
        return [criterion for criterion in self.binding if criterion.verdict == verdict]

    def _about(self, finding: QuestionFinding) -> dict[str, str]:
        return {"attribute": finding.attribute, "metric": finding.description}

    def _fails(self) -> Iterator[str]:
        failed = self._of("fail")
        for finding in failed[:_MOST_TOLD]:
            pair = finding.telling_pair
            assert pair is not None
            yield self._of_pair(
                "fail", finding, pair, pair.test.least, worse=self._worse(finding, pair)
            )
            yield from self._largest(finding, pair)
        n_more = len(failed) - _MOST_TOLD
        if n_more > 0:
            yield (
                fill_sentence("more_fail", n=n_more)
                if n_more > 1
                else fill_sentence("one_more_fails")
            )
        yield from map(self.lenses.fail, self.lenses.binding_with_verdict("fail"))
        yield fill_sentence("fail_is")

    def _of_pair(
        self, name: str, finding: QuestionFinding, pair: PairFinding, bound: float, **parts: str
    ) -> str:
        """Return a sentence about a comparison."""
        assert finding.tolerance is not None
        (low, low_value), (high, high_value) = pair.test.by_value
        if finding.tolerance.scale == "ratio":
            # The ratio is that of the first to the second, even if it is above 1.
            (low, low_value), (high, high_value) = pair.test.in_order
        return fill_sentence(
            f"{name}_{finding.tolerance.scale}",
            **self._about(finding),
            low_group=self.named(finding.attribute, low.group),
            low_value=self.value(finding, low_value),
            low_n=f"{low.n_counted:,}",
            high_group=self.named(finding.attribute, high.group),
            high_value=self.value(finding, high_value),
            high_n=f"{high.n_counted:,}",
            within=self._within(finding, pair),
            gap=self.gap(finding, pair.test.estimate),
            tolerance=self.gap(finding, finding.tolerance.value),
            bound=self.bound(finding, bound),
            confidence=self.of_all,
            **parts,
        )

    def _worse(self, finding: QuestionFinding, pair: PairFinding) -> str:
        """Name the worse-off group, if the metric has a direction."""
        low, high = (group for group, _ in pair.test.by_value)
        worse = {"lower": low, "higher": high}.get(finding.worse_off or "")
        if worse is None:
            return ""
        return fill_part("worse", "worse", group=self.named(finding.attribute, worse.group))

    def _within(self, finding: QuestionFinding, pair: PairFinding) -> str:
        """Name the strata within which groups are compared, and say if they reverse the gap."""
        within = pair.test.within
        if within is None:
            return ""
        parts = {"strata": join_names(list(within.names), 5)}
        name = "within"
        if within.share_outside > 0:
            parts["outside"] = share(within.share_outside)
            name += "_some"
        low, high = (group for group, _ in pair.test.by_value)
        if low.value > high.value:
            parts |= {
                "first": self.named(finding.attribute, low.group),
                "first_crude": self.value(finding, low.value),
                "second": self.named(finding.attribute, high.group),
                "second_crude": self.value(finding, high.value),
            }
            name += "_reversed"
        return fill_part("within", name, **parts)

    def _largest(self, finding: QuestionFinding, told: PairFinding) -> Iterator[str]:
        """Yield the largest observed gap, if another comparison decides."""
        widest = finding.widest_pair
        assert finding.tolerance is not None
        if widest is None or widest.test.groups == told.test.groups:
            return
        is_ratio = finding.tolerance.scale == "ratio"
        ends = widest.test.in_order if is_ratio else widest.test.by_value
        (low, low_value), (high, high_value) = ends
        gap = widest.test.estimate
        yield fill_sentence(
            "smallest_observed" if is_ratio else "largest_observed",
            **self._about(finding),
            gap=self.gap(finding, gap),
            low_group=self.named(finding.attribute, low.group),
            low_value=self.value(finding, low_value),
            high_group=self.named(finding.attribute, high.group),
            high_value=self.value(finding, high_value),
        )

    def _passes(self) -> Iterator[str]:
        """Yield the sentences of a pass, with the largest gap that the data allow."""
        worst: dict[tuple[str, str], QuestionFinding] = {}
        for finding in sorted(self.binding, key=_used_up, reverse=True):
            if finding.telling_pair and finding.tolerance:
                worst.setdefault((finding.metric, finding.tolerance.scale), finding)
        told = list(worst.values())[:_MOST_TOLD]
        for finding in told:
            yield self._pass(finding)
        n_more = sum(
            bool(criterion.telling_pair and criterion.tolerance) for criterion in self.binding
        ) - len(told)
        if n_more > 0:
            yield (
                fill_sentence("more_pass", n=n_more)
                if n_more > 1
                else fill_sentence("one_more_passes")
            )
        yield from map(self.lenses.passed, self.lenses.binding_with_verdict("pass"))
        beyond = [
            f"{finding.metric} by {finding.attribute}"
            for finding in self.informing
            if _has_failed(finding)
        ]
        beyond += [f"{finding.lens} by {finding.attribute}" for finding in self.lenses.beyond]
        if beyond:
            yield fill_sentence("not_binding", what=join_names(beyond, _MOST_TOLD))
        yield fill_sentence("pass_is")

    def _pass(self, finding: QuestionFinding) -> str:
        pair, tolerance = finding.telling_pair, finding.tolerance
        assert pair is not None
        assert tolerance is not None
        differs = verdicts.rejects_at(pair.test.p_equal, self._each(finding))
        first, second = pair.test.groups
        reference = finding.reference
        if reference is not None:
            reference = self.named(finding.attribute, reference)
        return fill_sentence(
            f"pass_{tolerance.scale}",
            **self._about(finding),
            to="" if reference is None else fill_part("to", "to", reference=reference),
            tolerance=self.gap(finding, tolerance.value),
            bound=self.bound(finding, pair.test.most),
            first=self.named(finding.attribute, first.group),
            second=self.named(finding.attribute, second.group),
            confidence=self.confidence,
            within=self._within(finding, pair),
            differ=fill_part("differ", "small_gap") if differs else "",
        )

    def _each(self, finding: QuestionFinding) -> float:
        """Return the level of a single comparison."""
        if not self.adjusts:
            return self.alpha
        return self.alpha / max(self.n_tests if finding.binding else len(finding.pairs), 1)

    def _differ(self, finding: QuestionFinding, pair: PairFinding) -> str:
        """Return the sentence on whether the groups of an undecided comparison differ at all."""
        test, tolerance = pair.test, finding.tolerance
        assert tolerance is not None
        names = self._pair_names(finding, pair)
        if math.isnan(test.p_equal):
            return fill_part("differ", "equality_unknown", **names)
        if not verdicts.rejects_at(test.p_equal, self._each(finding)):
            surest = min(
                finding.pairs,
                key=lambda other: (math.isnan(other.test.p_equal), other.test.p_equal),
            )
            if not verdicts.rejects_at(surest.test.p_equal, self._each(finding)):
                return fill_part("differ", "not_shown_to_differ", **names, confidence=self.of_all)
            others = self._pair_names(finding, surest)
            names |= {"third": others["first"], "fourth": others["second"]}
            return fill_part("differ", "others_differ", **names, confidence=self.of_all)
        beyond = test.estimate > tolerance.value
        exceeds = beyond if tolerance.scale == "difference" else not beyond
        name = "only_tolerance_open" if exceeds else "they_differ"
        return fill_part("differ", name, **names, confidence=self.of_all)

    def _pair_names(self, finding: QuestionFinding, pair: PairFinding) -> dict[str, str]:
        low, high = (self.named(finding.attribute, group.group) for group, _ in pair.test.by_value)
        return {"first": low, "second": high}

    def _shares(self, verdict: Verdict) -> Iterator[str]:
        """Yield what is settled, and then that the verdict is open."""
        n = len(self._of("pass")) + len(self.lenses.binding_with_verdict("pass"))
        if n:
            n_all = len(self.binding) + len(self.lenses.binding)
            several = fill_sentence("some_pass", n=n, n_all=n_all)
            yield fill_sentence("one_passes", n_all=n_all) if n == 1 else several
        for finding in self._of("inconclusive"):
            still_open = [group for group in finding.tested if group not in finding.shown_groups]
            shown = sum(pair.is_within for pair in finding.pairs)
            if still_open and shown and finding.share_shown < _MAJORITY:
                yield fill_sentence(
                    "pairs_shown", **self._about(finding), n=shown, n_all=len(finding.pairs)
                )
            elif finding.shown_groups and still_open:
                names = [self.named(finding.attribute, group.group) for group in still_open]
                yield fill_sentence(
                    "people_shown",
                    **self._about(finding),
                    share=share(finding.share_shown),
                    shown=join_names(
                        [
                            self.named(finding.attribute, group.group)
                            for group in finding.shown_groups
                        ],
                        5,
                    ),
                    groups=join_names(names, 5),
                )
        if any(criterion.is_skipped for criterion in self.binding) and not self._open:
            yield fill_sentence("some_not_asked")
        else:
            n = len(self._of("not_measurable")) + len(
                self.lenses.binding_with_verdict("not_measurable")
            )
            name = "neither" if verdict == "inconclusive" else "no_verdict"
            yield fill_sentence(name, n=n, n_all=len(self.binding) + len(self.lenses.binding))

    def _undecided(self, questions: Sequence[QuestionFinding]) -> Iterator[str]:
        for question in questions[:_MOST_TOLD]:
            pair = question.telling_pair
            if pair is None or question.tolerance is None:
                continue
            if pair.test.reason and math.isnan(pair.test.estimate):
                yield fill_sentence(
                    "undecided_reason", **self._about(question), reason=pair.test.reason
                )
                continue
            why = question.reason or pair.test.reason
            parts = {
                "differ": self._differ(question, pair),
                "required": fill_part("required", "reason", reason=f"{why[:1].upper()}{why[1:]}")
                if why
                else self._required(question, pair),
            }
            yield self._of_pair("undecided", question, pair, pair.test.most, **parts)
            yield from (f"  {text}" for text in self._largest(question, pair))
        n_more = len(questions) - _MOST_TOLD
        if n_more > 0:
            yield (
                fill_sentence("more_undecided", n=n_more)
                if n_more > 1
                else fill_sentence("one_more_undecided")
            )

    def _required(self, finding: QuestionFinding, pair: PairFinding) -> str:
        """Return the sentence on the rows required for a verdict."""
        rows = pair.telling
        if rows is None:
            return fill_part("required", "rows_unknown")
        if rows.n_rows is None:
            return fill_part("required", "no_rows")
        smaller = min(pair.test.groups, key=lambda group: group.n_counted)
        name = "rows_to_pass" if self.has_pass else "rows_to_no_fail"
        return fill_part(
            "required",
            name if rows.side == "within" else "rows_to_fail",
            factor=f"{rows.factor:.{1 if rows.factor < 10 else 0}f}",
            n_rows=f"{rows.n_rows:,}",
            group=self.named(finding.attribute, smaller.group),
            n_now=f"{smaller.n_counted:,}",
        )

    def _lacking(self, finding: QuestionFinding) -> str:
        """Return why a question has no verdict, with the reasons of its groups."""
        groups = [
            f"{self.named(finding.attribute, group.group)}: {group.reason}"
            for group in finding.untested
        ]
        why = finding.reason or "nothing could be tested"
        return f"{why} ({join_names(groups, 5)})" if groups else why

    # -- limits of the verdict ---------------------------------------------------------------

    def coverage(self) -> str:
        """Return the share of people in tested groups, by attribute."""
        least: dict[str, float] = {}
        for criterion in self.binding:
            if criterion.is_skipped:
                continue
            # Without pairs, no group was tested.
            covered = criterion.coverage if criterion.pairs else 0.0
            least[criterion.attribute] = min(least.get(criterion.attribute, 1.0), covered)
        # A lens that was not run covers 0 %, of every attribute.
        for lens in sorted(self.lenses.binding, key=lambda lens: not lens.attribute):
            part = 0.0 if math.isnan(lens.coverage) else lens.coverage
            for name in [lens.attribute] if lens.attribute else list(least):
                least[name] = min(least.get(name, 1.0), part)
        return ", ".join(f"{name} {_covered(part)}" for name, part in least.items())

    def limits(self, policy: Policy, has_labels: bool) -> Iterator[Note]:
        """Yield the assumptions of the verdict, and the groups that it does not cover."""
        if any(finding.tolerance is None and len(finding.pairs) > 1 for finding in self.informing):
            yield fill_note("equal_is")
        if not self.binds:
            return
        for criterion in self.binding:
            if criterion.untested and criterion.tested:
                groups = [
                    f"{self.named(criterion.attribute, group.group)} ({group.reason})"
                    for group in criterion.untested
                ]
                yield fill_note(
                    "not_tested",
                    scope=f"{criterion.attribute}, {criterion.metric}",
                    groups=join_names(groups, 10),
                    attribute=criterion.attribute,
                    metric=criterion.metric,
                )
        yield from self.lenses.silent()
        if self.n_tests:
            yield fill_note("table_is", confidence=self.confidence)
            yield self._errors(policy, has_labels)

    def _errors(self, policy: Policy, has_labels: bool) -> Note:
        """Return the sentence on the error rates of the verdict."""
        has_lens, together = bool(self.lenses.binding), ""
        name = "one_lens" if has_lens else "one_pair"
        if self.n_tests > 1:
            name = "comparisons_and_lenses" if has_lens else "comparisons"
            together = fill_part("together", "all" if policy.adjustment == "holm" else "each")
        rate = f"{100 * self.alpha:g} %"
        tests = fill_part("tests", name, n=f"{self.n_tests:,}")
        return fill_note(
            "errors_are",
            tests=tests,
            rate=rate,
            together=together,
            false_pass=fill_part("false_pass", "false_pass", rate=rate) if policy.has_pass else "",
            labels=fill_part("labels", "labels") if has_labels else "",
        )


def _covered(part: float) -> str:
    """Return a share of people; 100 % only if everybody is covered."""
    is_rounded = not verdicts.covers_enough(part, 1.0) and share(part) == share(1)
    return f"more than {share(0.999)}" if is_rounded else share(part)


def verdict_word(finding: QuestionFinding) -> str:
    """Return the verdict of a question for the table."""
    word = finding.verdict.replace("_", " ")
    return word if finding.binding else f"{word}, not binding"


def _has_failed(finding: QuestionFinding) -> bool:
    return finding.verdict == "fail"


def _used_up(finding: QuestionFinding) -> float:
    """Return the bound of a question in units of its tolerance."""
    if finding.telling_pair is None or finding.tolerance is None:
        return 0.0
    most, limit = finding.telling_pair.test.most, finding.tolerance.value
    if finding.tolerance.scale == "ratio":
        most, limit = 1 - most, 1 - limit
    return most / limit


#: Columns of the table of questions.
HEADS = (
    "attribute",
    "metric",
    "verdict",
    "lowest",
    "highest",
    "compared",
    "observed gap",
    "bound",
    "p: no gap",
    "p: tolerated",
)


def question_rows(
    findings: Sequence[QuestionFinding], wording: Wording, *, with_lenses: bool = True
) -> list[list[Cell]]:
    """Return questions, and lenses with a verdict, as rows under `HEADS`; numbers keep values."""
    rows = []
    for finding in findings:
        pair = finding.shown_pair
        word = verdict_word(finding)
        ends = [
            Cell(wording.group(finding, group, value), value) for group, value in finding.extremes
        ]
        names = map(Cell, (finding.attribute, finding.metric, word))
        head = [*names, *ends, *[Cell("")] * (2 - len(ends))]
        if pair is None:
            is_silent = finding.verdict == "not_asked" and not finding.is_skipped
            why = "" if is_silent else finding.reason or ""
            rows.append([*head, *map(Cell, ("", "", why, "", ""))])
            continue
        low, high = (
            wording.named(finding.attribute, group.group) for group, _ in pair.test.by_value
        )
        bound = adjusted = Cell("")
        if finding.tolerance is not None:
            is_gap = finding.tolerance.scale == "difference"
            fails = finding.verdict == "fail"
            sign = ">" if fails == is_gap else "<"
            limit = pair.test.least if fails else pair.test.most
            bound = Cell(f"{sign} {wording.bound(finding, limit)}", limit)
            adjusted = Cell(f"{pair.adjusted:.2g}", pair.adjusted)
        rows.append(
            [
                *head,
                Cell(f"{low}, {high}"),
                Cell(wording.gap(finding, pair.test.estimate), pair.test.estimate),
                bound,
                pvalue_cell(pair.test.p_equal),
                adjusted,
            ]
        )
    lenses = wording.lenses.with_tolerance if with_lenses else ()
    return [*rows, *map(wording.lenses.row, lenses)]
