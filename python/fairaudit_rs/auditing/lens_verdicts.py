"""Verdicts of lenses in words: the same four, of what each lens measures."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..literals import Verdict
from ..results.words import number
from .amounts import Amounts, share
from .findings import LensFinding, LensTest
from .lens_sentences import OF_POLICY, OF_ROWS
from .sentences import part, sentence


class LensWording(Amounts):
    """The sentences of lenses that are held to a tolerance."""

    def __init__(
        self,
        findings: Sequence[LensFinding],
        alpha: float,
        n_tests: int,
        adjusts: bool = True,
    ) -> None:
        super().__init__(alpha, n_tests, adjusts)
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
        parts = {
            "attribute": one.attribute,
            "tolerance": limit,
            "confidence": self.of_all,
            "lens_note": _note(one),
        }
        if one.lens == "projection":
            return sentence(
                "fail_projection",
                notion=_plain(one.metric),
                first=test.first,
                second=test.second,
                gap=self.gap(one, test.estimate),
                **parts,
            )
        parts["bound"] = self._bound(one, test.least)
        if one.lens == "individual":
            return sentence(
                "fail_individual",
                who_are=part("who_are", "of_policy" if one.alike == OF_POLICY else "fitted"),
                growth=number(test.estimate),
                of_rows=part("of_rows", "of_rows") if one.alike == OF_ROWS else "",
                **parts,
            )
        return sentence(
            "fail_gap",
            quantity=part("quantity", one.lens, rate=_plain(one.metric)),
            gap=self.gap(one, test.estimate),
            goes_with=_features(one, test),
            **_sides(one, test),
            **parts,
        )

    def passed(self, one: LensFinding) -> str:
        """Say how much the data leave possible."""
        test, limit = self._known(one)
        between = ""
        if test.first is not None:
            between = part("between", "between", first=test.first, second=test.second)
        return sentence(
            "pass_lens",
            attribute=one.attribute,
            lens_title=self._title(one),
            bound=self._bound(one, test.most),
            alone=part("alone", "alone", alike=one.alike) if one.lens == "individual" else "",
            between=between,
            same_attribute=one.attribute,
            tolerance=limit,
            confidence=self.confidence,
            lens_note=_note(one),
        )

    def undecided(self, one: LensFinding) -> str:
        """Say what is seen, and what stays possible."""
        test, limit = self._known(one)
        parts = {
            "attribute": one.attribute,
            "lens_title": self._title(one),
            "tolerance": limit,
        }
        if one.lens == "projection":
            return sentence(
                "undecided_projection",
                notion=_plain(one.metric),
                gap=self.gap(one, test.estimate),
                first=test.first,
                second=test.second,
                lens_note=_note(one),
                **parts,
            )
        unknown = part("why_not_shown", "unknown_rows")
        why = one.reason or ("" if one.lens == "extremes" else unknown)
        why = "; ".join(filter(None, (why, one.note))) or unknown
        return sentence(
            "undecided_lens",
            gap=self._size(one, test.estimate),
            seen_of="" if test.first is None else part("seen_of", "seen_of", **_sides(one, test)),
            bound=self._bound(one, test.most),
            alike_as=part("alike_as", "alike_as", alike=one.alike) if one.alike else "",
            remark=f"{why[:1].upper()}{why[1:]}",
            **parts,
        )

    def lacking(self, one: LensFinding) -> str:
        """Say why it could not be measured."""
        about = part("of_attribute", "of_attribute", attribute=one.attribute)
        return sentence(
            "lacking_lens",
            of_attribute=about if one.attribute else "",
            lens_title=self._title(one),
            reason=(one.reason or "").removeprefix("not run: "),
        )

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
                yield sentence(
                    "silent_lens",
                    attribute=one.attribute,
                    lens=one.lens,
                    reasons="; ".join(sorted(filter(None, lacks))),
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
        if one.lens == "influence" and one.metric:
            return part("lens_title", "influence_of_rate", rate=_plain(one.metric))
        return part("lens_title", one.lens)

    def _of(self, one: LensFinding, test: LensTest, place: int) -> str:
        """Return a group with its value and rows, as in tables."""
        name, value, n = _side(one, test, place)
        return f"{name} {value}" if n is None else f"{name} {value} of {n:,}"


def _side(one: LensFinding, test: LensTest, place: int) -> tuple[str | None, str, int | None]:
    """Return the name, value and rows of the first or the second group."""
    name, value, n = (
        (test.first, test.first_value, test.first_n),
        (test.second, test.second_value, test.second_n),
    )[place]
    return name, share(value) if one.is_share else number(value), n


def _sides(one: LensFinding, test: LensTest) -> dict[str, str]:
    """Return both groups of a comparison as parts of a sentence; the first has the higher value."""
    parts: dict[str, str] = {}
    for place, end in enumerate(("high", "low")):
        name, value, n = _side(one, test, place)
        assert n is not None
        parts |= {f"{end}_group": str(name), f"{end}_value": value, f"{end}_n": f"{n:,}"}
    return parts


def _features(one: LensFinding, test: LensTest) -> str:
    """Return what goes with the gap of influence, where it is that of the group it looked at."""
    if not one.features or one.first not in (test.first, test.second):
        return ""
    return part("goes_with", "goes_with", features=f"{one.features[:1].upper()}{one.features[1:]}")


def _plain(metric: str) -> str:
    return metric.replace("_", " ")


def _note(one: LensFinding) -> str:
    """Return how a lens was run otherwise than asked for."""
    return part("lens_note", "lens_note", note=one.note) if one.note else ""
