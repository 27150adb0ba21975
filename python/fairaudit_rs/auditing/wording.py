"""Verdicts in words: who, how much, how sure, and what is not said.

Percentages and points for shares, numbers for the rest; p-values stand in tables only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..inference.tolerance import Tolerance
from ..literals import Verdict
from ..permutation.floors import CountedGroup
from ..results.words import listed, number
from .amounts import Amounts, share
from .findings import LensFinding, PairFinding, QuestionFinding
from .lens_verdicts import LensWording

#: The first word of every output.
HEADLINES: dict[Verdict, str] = {
    "pass": "PASS",
    "fail": "FAIL",
    "inconclusive": "INCONCLUSIVE (not a pass)",
    "not_measurable": "NOT MEASURABLE (not a pass)",
    "not_asked": "NOT ASKED",
}
NO_PASS = "NO FAIL (the policy knows no pass)"
PARTIAL = "PASS for the groups that could be measured, not for all"
#: So many failing or undecided questions are told in sentences.
_MOST_TOLD = 3
#: Who holds up a verdict are few; of many, pairs are counted.
_MAJORITY = 0.5

Named = Callable[[str, Any], str]


def headline(verdict: Verdict, *, for_all: bool, binds: bool) -> str:
    """Return the verdict as the first words of an output.

    ``binds`` says whether anything could have failed.
    """
    if verdict == "not_asked" and binds:
        return NO_PASS
    return PARTIAL if verdict == "pass" and not for_all else HEADLINES[verdict]


class Wording(Amounts):
    """The sentences of an audit."""

    def __init__(
        self,
        findings: Sequence[QuestionFinding],
        alpha: float,
        n_tests: int,
        named: Named,
        lenses: Sequence[LensFinding] = (),
    ) -> None:
        super().__init__(alpha, n_tests)
        self.binding = [one for one in findings if one.binding]
        self.informing = [one for one in findings if not one.binding]
        self.named = named
        self.lenses = LensWording(lenses, alpha, n_tests)

    @property
    def binds(self) -> bool:
        """Whether anything could have failed."""
        return bool(self.binding or self.lenses.binding)

    # -- numbers -----------------------------------------------------------------------------

    def value(self, one: QuestionFinding, value: float) -> str:
        """Return a value of a group."""
        return share(value) if one.is_share else number(value)

    def group(self, one: QuestionFinding, group: CountedGroup, counts: bool = True) -> str:
        """Return a group with its value and rows that count."""
        name = self.named(one.attribute, group.group)
        rows = f" of {group.n_counted:,}" if counts else ""
        return f"{name} {self.value(one, group.value)}{rows}"

    def both(self, one: QuestionFinding, pair: PairFinding) -> str:
        """Return both groups, the lower value first."""
        low, high = sorted(pair.test.groups, key=lambda group: group.value)
        return f"{self.group(one, low)}, {self.group(one, high)}"

    def about(self, one: QuestionFinding) -> str:
        """Return what a question is about."""
        return f"{one.attribute}, {one.description}"

    # -- verdicts ----------------------------------------------------------------------------

    def told(self, verdict: Verdict) -> Iterator[str]:
        """Yield the sentences of a verdict."""
        if verdict == "fail":
            yield from self._fails()
        elif verdict == "pass":
            yield from self._passes()
        elif verdict != "not_asked":
            yield from self._shares(verdict)
        if verdict in ("fail", "inconclusive", "not_measurable"):
            undecided, lenses = self._of("inconclusive"), self.lenses.of("inconclusive")
            if verdict == "fail" and (undecided or lenses):
                n = len(undecided) + len(lenses)
                yield f"Besides, {n} question{' is' if n == 1 else 's are'} not decided:"
            yield from self._undecided(undecided)
            yield from map(self.lenses.undecided, lenses)
        for one in self._of("not_measurable"):
            yield f"- {self.about(one)}: not measurable: {self._lacking(one)}."
        for one in self.binding:
            if one.is_skipped:
                yield f"- {self.about(one)}: not asked: {one.reason}, so that there is no pass."
        yield from map(self.lenses.lacking, self.lenses.of("not_measurable"))

    @property
    def _open(self) -> bool:
        """Whether a binding question or lens was asked and is not decided."""
        words = [one.verdict for one in self.binding if not one.is_skipped]
        words += [one.verdict for one in self.lenses.binding]
        return any(word != "pass" for word in words)

    def _of(self, verdict: Verdict) -> list[QuestionFinding]:
        return [one for one in self.binding if one.verdict == verdict]

    def _fails(self) -> Iterator[str]:
        failed = self._of("fail")
        for one in failed[:_MOST_TOLD]:
            pair = one.telling_pair
            assert pair is not None
            assert one.tolerance is not None
            yield self._fail(one, pair, one.tolerance)
        left = len(failed) - _MOST_TOLD
        if left > 0:
            yield f"{left} more question{'s fail' if left > 1 else ' fails'}; see the table."
        yield from map(self.lenses.fail, self.lenses.of("fail"))
        yield "A failed audit is evidence of a gap, not of its cause or its legality."

    def _fail(self, one: QuestionFinding, pair: PairFinding, tolerance: Tolerance) -> str:
        low, high = sorted(pair.test.groups, key=lambda group: group.value)
        names = [self.named(one.attribute, group.group) for group in (low, high)]
        values = [self.value(one, group.value) for group in (low, high)]
        worse = {"lower": low, "higher": high}.get(one.worse_off or "")
        who = "" if worse is None else f", to the disadvantage of {names[worse is high]}"
        if tolerance.scale == "ratio":
            return (
                f"{one.attribute}: the {one.description} of {names[0]} is "
                f"{pair.test.estimate:.2f} times that of {names[1]} ({values[0]} of "
                f"{low.n_counted:,} and {values[1]} of {high.n_counted:,} rows that count). That "
                f"is below {tolerance.value:g} even after allowing for chance (at most "
                f"{self.bound(one, pair.test.least)}, {self.of_all}){who}."
            )
        return (
            f"{one.attribute}: the {one.description} is {values[0]} for {names[0]} "
            f"({low.n_counted:,} rows that count) and {values[1]} for {names[1]} "
            f"({high.n_counted:,}). The gap of {self.gap(one, pair.test.estimate)} is larger than "
            f"the tolerated {self.gap(one, tolerance.value)} even after allowing for chance (at "
            f"least {self.bound(one, pair.test.least)}, {self.of_all}){who}."
        )

    def _passes(self) -> Iterator[str]:
        """Say how much the data leave possible of what binds, and what else they show."""
        worst: dict[tuple[str, str], QuestionFinding] = {}
        for one in sorted(self.binding, key=_used_up, reverse=True):
            if one.telling_pair and one.tolerance:
                worst.setdefault((one.metric, one.tolerance.scale), one)
        told = list(worst.values())
        for one in told[:_MOST_TOLD]:
            yield self._pass(one, alone=len(told) == 1)
        left = len(told) - _MOST_TOLD
        if left > 0:
            yield f"{left} more lie{'s' if left == 1 else ''} within tolerance; see the table."
        yield from map(self.lenses.passed, self.lenses.of("pass"))
        beyond = [f"{one.metric} by {one.attribute}" for one in self.informing if _fails(one)]
        beyond += [f"{one.lens} by {one.attribute}" for one in self.lenses.beyond]
        if beyond:
            yield f"Beyond tolerance, but not binding: {listed(beyond, _MOST_TOLD)}."
        yield "A pass is about what binds here and the groups that were tested, and nothing else."

    def _pass(self, one: QuestionFinding, alone: bool) -> str:
        pair, tolerance = one.telling_pair, one.tolerance
        assert pair is not None
        assert tolerance is not None
        first, second = (self.named(one.attribute, group.group) for group in pair.test.groups)
        what = "" if alone else f" of the {one.description}"
        described = f"{one.description}, " if alone else ""
        who = f"{described}{first} and {second} by {one.attribute}"
        most = self.bound(one, pair.test.most)
        if tolerance.scale == "ratio":
            return (
                f"Every ratio{what} is shown to be at least {tolerance.value:g}: the lowest that "
                f"the data leave possible is {most} ({who}; {self.confidence})."
            )
        return (
            f"Every gap{what} is shown to be within its tolerance: the largest that the data leave "
            f"possible is {most} ({who}; tolerated: {self.gap(one, tolerance.value)}; "
            f"{self.confidence})."
        )

    def _shares(self, verdict: Verdict) -> Iterator[str]:
        """Say first for whom everything is shown, and who holds it up."""
        is_open = verdict == "inconclusive"
        why = "these rows show neither" if is_open else "nothing could be measured"
        if any(one.is_skipped for one in self.binding) and not self._open:
            why = "what could be asked passes, and some questions could not be asked"
        yield f"This is not a pass, and not a fail: {why}."
        n = len(self._of("pass")) + len(self.lenses.of("pass"))
        if n:
            of_all = len(self.binding) + len(self.lenses.binding)
            yield f"{n} of {of_all} questions pass{'es' if n == 1 else ''}."
        for one in self._of("inconclusive"):
            held_up = [group for group in one.tested if group not in one.shown_groups]
            shown = sum(pair.verdict == "pass" for pair in one.pairs)
            if held_up and shown and one.share_shown < _MAJORITY:
                yield (
                    f"{self.about(one)}: {shown} of {len(one.pairs)} pairs of groups "
                    f"{'is' if shown == 1 else 'are'} shown to be within the tolerance."
                )
            elif one.shown_groups and held_up:
                names = listed([self.named(one.attribute, group.group) for group in held_up])
                yield (
                    f"{self.about(one)}: all is shown for {share(one.share_shown)} of people; "
                    f"{names} hold{'s' if len(held_up) == 1 else ''} it up."
                )

    def _undecided(self, questions: Sequence[QuestionFinding]) -> Iterator[str]:
        for one in questions[:_MOST_TOLD]:
            pair, tolerance = one.telling_pair, one.tolerance
            if pair is None or tolerance is None:
                continue
            possible = self.bound(one, pair.test.most)
            what = "gap" if tolerance.scale == "difference" else "ratio"
            limit = "up to" if tolerance.scale == "difference" else "down to"
            text = (
                f"- {self.about(one)}: {what} seen {self.gap(one, pair.test.estimate)} "
                f"({self.both(one, pair)}); the data allow {limit} {possible}; tolerated "
                f"{self.gap(one, tolerance.value)}."
            )
            why = one.reason or pair.test.reason
            yield f"{text} {_sentence(why) if why else self._telling(one, pair)}"
        left = len(questions) - _MOST_TOLD
        if left > 0:
            yield f"- {left} more cannot be decided; see the table."

    def _telling(self, one: QuestionFinding, pair: PairFinding) -> str:
        """Say how many rows would tell."""
        telling = pair.telling
        is_gap = one.tolerance is None or one.tolerance.scale == "difference"
        stays = "the gap stays" if is_gap else "the ratio stays"
        if telling is None:
            return "How many rows would tell is not known."
        if telling.n_rows is None:
            return (
                f"If {stays} as it is seen, no realistic number of rows will tell: decide whether "
                "this tolerance is right, or reduce the gap."
            )
        smaller = min(pair.test.groups, key=lambda group: group.n_counted)
        name = self.named(one.attribute, smaller.group)
        side = "a PASS" if telling.side == "within" else "a FAIL"
        # Why it is no fail, though the sentence says that more is seen than is tolerated.
        beyond = "More is seen than tolerated, perhaps by chance. "
        chance = "" if telling.side == "within" else beyond
        rows = f"about {telling.n_rows:,} that count from {name}, now {smaller.n_counted:,}"
        return (
            f"{chance}If {stays} as it is seen, {telling.factor:.1f} times as many rows of each "
            f"group ({rows}) would show {side} in 8 of 10 audits."
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
            part = one.coverage if len(one.tested) > 1 else 0.0
            least[one.attribute] = min(least.get(one.attribute, 1.0), part)
        for lens in self.lenses.binding:
            part = 0.0 if math.isnan(lens.coverage) else lens.coverage
            least[lens.attribute] = min(least.get(lens.attribute, 1.0), part)
        return ", ".join(f"{name} {_covered(part)}" for name, part in least.items())

    def limits(self, adjusted: bool) -> Iterator[str]:
        """Yield what the verdict rests on, and what it says nothing about."""
        if not self.binds:
            return
        for one in self.binding:
            if one.untested and one.tested:
                groups = [
                    f"{self.named(one.attribute, group.group)} ({group.reason})"
                    for group in one.untested
                ]
                yield (
                    f"nothing is said about {listed(groups, 10)}: not tested for "
                    f"{one.attribute}, {one.metric}"
                )
        yield from self.lenses.silent()
        if self.n_tests:
            rate = f"{100 * self.alpha:g} %"
            if self.n_tests == 1:
                is_lens = bool(self.lenses.binding)
                pairs = "1 other lens is asked" if is_lens else "1 pair of groups is compared"
                together = ""
            else:
                pairs = f"{self.n_tests:,} comparisons of pairs of groups{self.lenses.counted}"
                all_or_each = "all of them together (Holm)" if adjusted else "each of them alone"
                together = f" for {all_or_each}"
            yield (
                'in the table "seen" is the gap in these rows, and "shown" what holds with '
                f"{self.confidence}: < at most, > at least"
            )
            yield (
                f"{pairs}; a false FAIL in at most {rate} of audits{together}, a false PASS in "
                f"at most {rate}. Only what binds makes the verdict. Labels are taken as true"
            )


def _covered(part: float) -> str:
    """Return a share of people, which is everybody only where nobody is left out."""
    return share(part) if part == 1 or share(part) != share(1) else f"more than {share(0.999)}"


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


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def table(
    findings: Sequence[QuestionFinding], wording: Wording
) -> tuple[list[str], list[list[str]]]:
    """Return the questions as a table for people: heads, and rows of text."""
    heads = ["attribute", "metric", "verdict", "lowest", "highest", "seen", "shown", "adjusted p"]
    rows = []
    for one in findings:
        pair = one.telling_pair
        word = one.verdict.replace("_", " ") + ("" if one.binding else ", not binding")
        if pair is None:
            known = sorted((g for g in one.tested if g.value == g.value), key=lambda g: g.value)
            ends = [wording.group(one, group) for group in known[:1] + known[1:][-1:]]
            ends += [""] * (2 - len(ends))
            is_silent = one.verdict == "not_asked" and not one.is_skipped
            why = "" if is_silent else one.reason or ""
            rows.append([one.attribute, one.metric, word, *ends, "", why, ""])
            continue
        low, high = sorted(pair.test.groups, key=lambda group: group.value)
        assert one.tolerance is not None
        is_gap = one.tolerance.scale == "difference"
        fails = one.verdict == "fail"
        sign = ">" if fails == is_gap else "<"
        bound = pair.test.least if fails else pair.test.most
        rows.append(
            [
                one.attribute,
                one.metric,
                word,
                wording.group(one, low),
                wording.group(one, high),
                wording.gap(one, pair.test.estimate),
                f"{sign} {wording.bound(one, bound)}",
                f"{pair.adjusted:.2g}",
            ]
        )
    return heads, [*rows, *map(wording.lenses.row, wording.lenses.judged)]
