"""Write the sentences and table rows about lenses that have a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..literals import Verdict
from ..report.document import Cell
from ..report.notes import Note
from ..report.words import number
from .findings import LensFinding, LensTest
from .lens_sentences import OF_POLICY, OF_ROWS
from .number_style import NumberStyle, share
from .sentences import fill_note, fill_part, fill_sentence


class LensWording(NumberStyle):
    """The sentences of lenses with a tolerance."""

    def __init__(
        self,
        findings: Sequence[LensFinding],
        alpha: float,
        n_tests: int,
        adjusts: bool = True,
    ) -> None:
        super().__init__(alpha, n_tests, adjusts)
        #: The findings with a tolerance, the binding ones first.
        self.with_tolerance = sorted(
            (finding for finding in findings if finding.tolerance is not None),
            key=lambda finding: not finding.binding,
        )

    @property
    def binding(self) -> list[LensFinding]:
        """The binding findings."""
        return [finding for finding in self.with_tolerance if finding.binding]

    @property
    def beyond(self) -> list[LensFinding]:
        """The informational findings beyond their tolerance."""
        return [
            finding
            for finding in self.with_tolerance
            if not finding.binding and finding.verdict == "fail"
        ]

    def binding_with_verdict(self, verdict: Verdict) -> list[LensFinding]:
        """Return the binding findings with a verdict."""
        return [criterion for criterion in self.binding if criterion.verdict == verdict]

    # -- verdicts ----------------------------------------------------------------------------

    def fail(self, finding: LensFinding) -> str:
        """Return the sentence about a fail."""
        test, limit = self._deciding_test_and_limit(finding)
        parts = {
            "attribute": finding.attribute,
            "tolerance": limit,
            "confidence": self.of_all,
            "lens_note": _note(finding),
        }
        if finding.lens == "projection":
            return fill_sentence(
                "fail_projection",
                notion=_plain(finding.metric),
                first=test.first,
                second=test.second,
                gap=self.gap(finding, test.estimate),
                **parts,
            )
        parts["bound"] = self._bound(finding, test.least)
        if finding.lens == "individual":
            return fill_sentence(
                "fail_individual",
                who_are=fill_part(
                    "who_are", "of_policy" if finding.alike == OF_POLICY else "fitted"
                ),
                growth=number(test.estimate),
                of_rows=fill_part("of_rows", "of_rows") if finding.alike == OF_ROWS else "",
                **parts,
            )
        return fill_sentence(
            "fail_gap",
            quantity=fill_part("quantity", finding.lens, rate=_plain(finding.metric)),
            gap=self.gap(finding, test.estimate),
            goes_with=_features(finding, test),
            **_sides(finding, test),
            **parts,
        )

    def passed(self, finding: LensFinding) -> str:
        """Return the sentence about a pass, with the upper bound."""
        test, limit = self._deciding_test_and_limit(finding)
        between = ""
        if test.first is not None:
            between = fill_part("between", "between", first=test.first, second=test.second)
        return fill_sentence(
            "pass_lens",
            attribute=finding.attribute,
            lens_title=self._title(finding),
            bound=self._bound(finding, test.most),
            alone=fill_part("alone", "alone", alike=finding.alike)
            if finding.lens == "individual"
            else "",
            between=between,
            same_attribute=finding.attribute,
            tolerance=limit,
            confidence=self.confidence,
            lens_note=_note(finding),
        )

    def undecided(self, finding: LensFinding) -> str:
        """Return the sentence about an inconclusive lens, with the estimate and the upper bound."""
        test, limit = self._deciding_test_and_limit(finding)
        parts = {
            "attribute": finding.attribute,
            "lens_title": self._title(finding),
            "tolerance": limit,
        }
        if finding.lens == "projection":
            return fill_sentence(
                "undecided_projection",
                notion=_plain(finding.metric),
                gap=self.gap(finding, test.estimate),
                first=test.first,
                second=test.second,
                lens_note=_note(finding),
                **parts,
            )
        unknown = fill_part("why_not_shown", "unknown_rows")
        why = finding.reason or ("" if finding.lens == "extremes" else unknown)
        why = "; ".join(filter(None, (why, finding.note))) or unknown
        return fill_sentence(
            "undecided_lens",
            gap=self._size(finding, test.estimate),
            seen_of=""
            if test.first is None
            else fill_part("seen_of", "seen_of", **_sides(finding, test)),
            bound=self._bound(finding, test.most),
            alike_as=fill_part("alike_as", "alike_as", alike=finding.alike)
            if finding.alike
            else "",
            remark=f"{why[:1].upper()}{why[1:]}",
            **parts,
        )

    def lacking(self, finding: LensFinding) -> str:
        """Return the sentence about a lens that could not be measured, with the reason."""
        about = fill_part("of_attribute", "of_attribute", attribute=finding.attribute)
        return fill_sentence(
            "lacking_lens",
            of_attribute=about if finding.attribute else "",
            lens_title=self._title(finding),
            reason=(finding.reason or "").removeprefix("not run: "),
        )

    def silent(self) -> Iterator[Note]:
        """Yield a sentence about untested groups for each lens that tested other groups."""
        for finding in self.binding:
            compared = [test for test in finding.tests if test.reason is None]
            measured = {name for test in compared for name in (test.first, test.second)}
            lacks = {
                test.reason
                for test in finding.tests
                if test.reason and not {test.first, test.second} <= measured
            }
            if measured and lacks:
                yield fill_note(
                    "silent_lens",
                    scope=f"{finding.lens}, {finding.attribute}",
                    attribute=finding.attribute,
                    lens=finding.lens,
                    reasons="; ".join(sorted(filter(None, lacks))),
                )

    def row(self, finding: LensFinding) -> list[Cell]:
        """Return a row of the table of questions."""
        word = finding.verdict.replace("_", " ") + ("" if finding.binding else ", not binding")
        head, test = [*map(Cell, (finding.attribute, finding.lens, word))], finding.telling
        if test is None:
            why = (finding.reason or "").removeprefix("not run: ")
            return [*head, *map(Cell, ("", "", "", "", why, "", ""))]
        groups = [Cell("")] * 3
        if test.first is not None:
            groups = [
                Cell(self._group_text(finding, test, 1), test.second_value),
                Cell(self._group_text(finding, test, 0), test.first_value),
                Cell(f"{test.second}, {test.first}"),
            ]
        fails = finding.verdict == "fail"
        bound = test.least if fails else test.most
        shown = (
            "" if math.isnan(bound) else f"{'>' if fails else '<'} {self._bound(finding, bound)}"
        )
        size = Cell(self._size(finding, test.estimate), test.estimate)
        return [*head, *groups, size, Cell(shown, bound), Cell(""), pvalue_cell(test.adjusted)]

    # -- parts -------------------------------------------------------------------------------

    def _deciding_test_and_limit(self, finding: LensFinding) -> tuple[LensTest, str]:
        """Return the comparison that decides the verdict, and its tolerance in words."""
        test = finding.telling
        assert test is not None
        assert finding.tolerance is not None
        limit = finding.tolerance.value
        times = " times" if finding.lens == "individual" else ""
        return test, self.gap(finding, limit) if finding.is_share else f"{limit:g}{times}"

    def _size(self, finding: LensFinding, value: float) -> str:
        return self.gap(finding, value) + (" times" if finding.lens == "individual" else "")

    def _bound(self, finding: LensFinding, value: float) -> str:
        return self.bound(finding, value) + (" times" if finding.lens == "individual" else "")

    def _title(self, finding: LensFinding) -> str:
        """Return the title of a lens: its name and what it measures."""
        if finding.lens == "influence" and finding.metric:
            return fill_part("lens_title", "influence_of_rate", rate=_plain(finding.metric))
        return fill_part("lens_title", finding.lens)

    def _group_text(self, finding: LensFinding, test: LensTest, position: int) -> str:
        """Return a group with its value and rows, as in tables."""
        name, value, n = _side(finding, test, position)
        return f"{name} {value}" if n is None else f"{name} {value} of {n:,}"


def _side(
    finding: LensFinding, test: LensTest, position: int
) -> tuple[str | None, str, int | None]:
    """Return the name, value and rows of the first or the second group."""
    name, value, n = (
        (test.first, test.first_value, test.first_n),
        (test.second, test.second_value, test.second_n),
    )[position]
    return name, share(value) if finding.is_share else number(value), n


def _sides(finding: LensFinding, test: LensTest) -> dict[str, str]:
    """Return both groups of a comparison as parts of a sentence, first the one of higher value."""
    parts: dict[str, str] = {}
    for position, end in enumerate(("high", "low")):
        name, value, n = _side(finding, test, position)
        assert n is not None
        parts |= {f"{end}_group": str(name), f"{end}_value": value, f"{end}_n": f"{n:,}"}
    return parts


def _features(finding: LensFinding, test: LensTest) -> str:
    """Return the features related to the gap of influence, if the test is about its group."""
    if not finding.features or finding.first not in (test.first, test.second):
        return ""
    return fill_part(
        "goes_with", "goes_with", features=f"{finding.features[:1].upper()}{finding.features[1:]}"
    )


def _plain(metric: str) -> str:
    return metric.replace("_", " ")


def _note(finding: LensFinding) -> str:
    """Return the note on how the run of a lens deviates from the request."""
    return fill_part("lens_note", "lens_note", note=finding.note) if finding.note else ""


def pvalue_cell(pvalue: float) -> Cell:
    """Return a p-value for a table; empty if there is none."""
    return Cell("" if math.isnan(pvalue) else f"{pvalue:.2g}", pvalue)
