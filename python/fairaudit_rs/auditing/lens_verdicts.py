"""Verdicts of lenses in words: the same four, of what each lens measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..literals import Verdict
from ..results.words import number
from .amounts import Amounts, share
from .criterion import LENS_WORDS
from .findings import LensFinding, LensTest

_CHANCE = "even after allowing for chance"
_ALONE = ", for this attack alone"
#: Under which metric the individual lens has its limits.
OF_POLICY = "under the metric of this policy"
OF_ROWS = "under every metric that the rows allow"


class LensWording(Amounts):
    """The sentences of lenses that are held to a tolerance."""

    def __init__(self, findings: Sequence[LensFinding], alpha: float, n_tests: int) -> None:
        super().__init__(alpha, n_tests)
        #: Those that a criterion with a tolerance names, the binding ones first.
        self.judged = sorted(
            (one for one in findings if one.tolerance is not None), key=lambda one: not one.binding
        )

    @property
    def binding(self) -> list[LensFinding]:
        """Those that the verdict depends on."""
        return [one for one in self.judged if one.binding]

    @property
    def beyond(self) -> list[LensFinding]:
        """Those beyond their tolerance that do not bind."""
        return [one for one in self.judged if not one.binding and one.verdict == "fail"]

    def of(self, verdict: Verdict) -> list[LensFinding]:
        """Return the binding ones with a verdict."""
        return [one for one in self.binding if one.verdict == verdict]

    # -- verdicts ----------------------------------------------------------------------------

    def fail(self, one: LensFinding) -> str:
        """Say what is shown to be too large."""
        test, limit = self._known(one)
        if one.lens == "projection":
            return (
                f"{one.attribute}: scores depart from {_plain(one.metric)} by more than the "
                f"tolerated {limit} between {test.first} and {test.second}, {_CHANCE} (a gap of "
                f"{self.gap(one, test.estimate)} is seen; {self.of_all}){_note(one)}."
            )
        least = f"at least {self._bound(one, test.least)}, {self.of_all}"
        if one.lens == "individual":
            return (
                f"{one.attribute}: {_growth(one, test)}. That is more than the tolerated {limit} "
                f"{_CHANCE} ({least}{_of_rows(one)}){_note(one)}."
            )
        return (
            f"{one.attribute}: {self._what(one)} is {self._for(one, test, 1)} and "
            f"{self._for(one, test, 0)}. The difference of {self.gap(one, test.estimate)} is "
            f"larger than the tolerated {limit} {_CHANCE} ({least}){_note(one)}."
            f"{_features(one, test)}"
        )

    def passed(self, one: LensFinding) -> str:
        """Say how much the data leave possible."""
        test, limit = self._known(one)
        most = self._bound(one, test.most)
        who = "" if test.first is None else f"{test.first} and {test.second} "
        alone = f"{_ALONE}, {one.alike}" if one.lens == "individual" else ""
        return (
            f"{one.attribute}, {self._title(one)}: shown to be within its tolerance: the most that "
            f"the data leave possible is {most}{alone} ({who}by {one.attribute}; tolerated: "
            f"{limit}; {self.confidence}){_note(one)}."
        )

    def undecided(self, one: LensFinding) -> str:
        """Say what is seen, and what stays possible."""
        test, limit = self._known(one)
        about = f"- {one.attribute}, {self._title(one)}"
        if one.lens == "projection":
            return (
                f"{about}: that scores depart from {_plain(one.metric)} by more than the tolerated "
                f"{limit} is not shown (gap seen {self.gap(one, test.estimate)}, {test.first} and "
                f"{test.second}). The projection never shows that they do not, so it cannot "
                f"pass{_note(one)}."
            )
        seen = f"{self._size(one, test.estimate)} seen"
        if test.first is not None:
            seen += f" ({self._of(one, test, 0)}, {self._of(one, test, 1)})"
        alike = f" {one.alike}" if one.alike else ""
        why = one.reason or (
            "" if one.lens == "extremes" else "how many rows would tell is not known"
        )
        why = "; ".join(filter(None, (why, one.note))) or "how many rows would tell is not known"
        return (
            f"{about}: {seen}; the data allow up to {self._bound(one, test.most)}{alike}; "
            f"tolerated {limit}. {why[:1].upper()}{why[1:]}."
        )

    def lacking(self, one: LensFinding) -> str:
        """Say why it could not be measured."""
        reason = (one.reason or "").removeprefix("not run: ")
        about = f"{one.attribute}, " if one.attribute else ""
        return f"- {about}{self._title(one)}: not measurable: {reason}."

    def silent(self) -> Iterator[str]:
        """Say of which groups nothing is said, though others have tests."""
        for one in self.binding:
            compared = [test for test in one.tests if test.reason is None]
            measured = {name for test in compared for name in (test.first, test.second)}
            lacks = {
                test.reason
                for test in one.tests
                if test.reason and not {test.first, test.second} <= measured
            }
            if measured and lacks:
                yield (
                    f"nothing is said about some groups of {one.attribute} by the lens {one.lens}: "
                    f"{'; '.join(sorted(filter(None, lacks)))}"
                )

    def row(self, one: LensFinding) -> list[str]:
        """Return a row of the table of questions."""
        word = one.verdict.replace("_", " ") + ("" if one.binding else ", not binding")
        head, test = [one.attribute, one.lens, word], one.telling
        if test is None:
            why = (one.reason or "").removeprefix("not run: ")
            return [*head, "", "", "", "", why, "", ""]
        groups = ["", "", ""]
        if test.first is not None:
            ends = [self._of(one, test, 1), self._of(one, test, 0)]
            groups = [*ends, f"{test.second}, {test.first}"]
        fails = one.verdict == "fail"
        bound = test.least if fails else test.most
        shown = "" if math.isnan(bound) else f"{'>' if fails else '<'} {self._bound(one, bound)}"
        p = "" if math.isnan(test.adjusted) else f"{test.adjusted:.2g}"
        return [*head, *groups, self._size(one, test.estimate), shown, "", p]

    # -- parts -------------------------------------------------------------------------------

    def _known(self, one: LensFinding) -> tuple[LensTest, str]:
        """Return the comparison to tell of, and what is tolerated."""
        test = one.telling
        assert test is not None
        assert one.tolerance is not None
        limit = one.tolerance.value
        times = " times" if one.lens == "individual" else ""
        return test, self.gap(one, limit) if one.is_share else f"{limit:g}{times}"

    def _size(self, one: LensFinding, value: float) -> str:
        return self.gap(one, value) + (" times" if one.lens == "individual" else "")

    def _bound(self, one: LensFinding, value: float) -> str:
        return self.bound(one, value) + (" times" if one.lens == "individual" else "")

    def _title(self, one: LensFinding) -> str:
        """Return what a lens measures, with its name."""
        words = LENS_WORDS[one.lens].partition(",")[0]
        what = f" of the {_plain(one.metric)}" if one.lens == "influence" else ""
        return f"{words}{what} ({one.lens})"

    def _what(self, one: LensFinding) -> str:
        if one.lens == "influence":
            return f"the {_plain(one.metric)}"
        return "what the worst cases would gain at least by a flip"

    def _of(self, one: LensFinding, test: LensTest, place: int) -> str:
        """Return a group with its value and rows, as in tables."""
        name, value, n = _side(one, test, place)
        return f"{name} {value}" if n is None else f"{name} {value} of {n:,}"

    def _for(self, one: LensFinding, test: LensTest, place: int) -> str:
        """Return a value with its group and rows, as in sentences."""
        name, value, n = _side(one, test, place)
        return f"{value} for {name}" if n is None else f"{value} for {name} ({n:,} rows that count)"


def _side(one: LensFinding, test: LensTest, place: int) -> tuple[str | None, str, int | None]:
    """Return the name, value and rows of the first or the second group."""
    name, value, n = (
        (test.first, test.first_value, test.first_n),
        (test.second, test.second_value, test.second_n),
    )[place]
    return name, share(value) if one.is_share else number(value), n


def _features(one: LensFinding, test: LensTest) -> str:
    """Return what goes with the gap of influence, where it is that of the group it looked at."""
    if not one.features or one.first not in (test.first, test.second):
        return ""
    return f" {one.features[:1].upper()}{one.features[1:]}."


def _growth(one: LensFinding, test: LensTest) -> str:
    who = (
        f"are alike {OF_POLICY}"
        if one.alike == OF_POLICY
        else "differ in little but what tells groups apart"
    )
    return f"between people who {who} the loss grows to {number(test.estimate)} times itself"


def _of_rows(one: LensFinding) -> str:
    """Return under which metrics a limit holds, where they are several."""
    return f", {one.alike}" if one.alike == OF_ROWS else ""


def _plain(metric: str) -> str:
    return metric.replace("_", " ")


def _note(one: LensFinding) -> str:
    """Return how a lens was run otherwise than asked for."""
    return f" ({one.note})" if one.note else ""
