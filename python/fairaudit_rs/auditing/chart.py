"""The chart of an audit: observed gaps, their bounds, and the tolerances."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..data.groups import escape_controls
from ..literals import Verdict
from ..results.chart import SCHEMA, Chart
from .findings import GroupNamer, LensFinding, QuestionFinding

#: From the best to the worst verdict; the colours suit colour-blind readers.
_LOOKS: dict[Verdict, tuple[str, str]] = {
    "pass": ("#0072b2", "circle"),
    "no_fail": ("#56b4e9", "circle"),
    "inconclusive": ("#8c8c8c", "diamond"),
    "fail": ("#d55e00", "square"),
    "not_measurable": ("#8c8c8c", "cross"),
    "not_asked": ("#c8c8c8", "circle"),
}
_WIDTH, _ROW = 420, 24
#: The panel of an audit without tolerances.
_NOTHING = {
    "data": {"values": [{"text": "nothing is held to a tolerance"}]},
    "mark": {"type": "text", "align": "left"},
    "encoding": {"x": {"value": 0}, "text": {"field": "text"}},
}
#: Room beyond the largest number of a panel.
_MARGIN = 1.05


@dataclass(frozen=True, kw_only=True)
class ChartRow:
    """A question or a lens in an attribute."""

    label: str
    #: The title of the axis, and its scale: ratio, difference or growth.
    unit: str
    scale: str
    binding: bool
    verdict: Verdict
    tolerance: float
    groups: str
    seen: float
    #: The bounds.
    low: float
    high: float

    def values(self, end: float) -> dict[str, Any]:
        """Return the values that are drawn; an unbounded line ends at the end of the axis."""
        known = math.isfinite(self.seen)
        low, high = self.low, min(self.high, end)
        return {
            "question": self.label,
            "verdict": self.verdict.replace("_", " "),
            "groups": self.groups,
            "tolerated": self.tolerance,
            "seen": self.seen if known else None,
            "low": low if known and math.isfinite(low) else None,
            "high": high if known and math.isfinite(high) else None,
            "text": self.groups if known else "not measurable",
        }


def audit_chart(
    title: str,
    questions: Sequence[QuestionFinding],
    lenses: Sequence[LensFinding],
    named: GroupNamer,
) -> Chart:
    """Return a row for each question and lens with a tolerance, the binding ones first."""
    rows = _with_unique_labels([*_of_questions(questions, named), *_of_lenses(lenses)])
    panels: dict[tuple[bool, str], list[ChartRow]] = {}
    for row in sorted(rows, key=lambda row: not row.binding):
        panels.setdefault((row.binding, row.unit), []).append(row)
    ends = {unit: _end([row for row in rows if row.unit == unit]) for _, unit in panels}
    seen = [word for word in _LOOKS if any(row.verdict == word for row in rows)]
    drawn = [_panel(of, ends[unit], seen) for (_, unit), of in panels.items()]
    for binds, heading in ((True, "binding"), (False, "told beside, not binding")):
        first = next((i for i, (binding, _) in enumerate(panels) if binding is binds), None)
        if first is not None:
            drawn[first]["title"] = {
                "text": heading,
                "anchor": "start",
                "frame": "group",
                "fontSize": 12,
                "color": "black" if binds else "gray",
            }
    return Chart(
        {
            "$schema": SCHEMA,
            "title": {
                "text": escape_controls(title),
                "subtitle": "dot: seen; line: what the data allow; black mark: tolerated",
                "anchor": "start",
                "offset": 12,
            },
            "vconcat": drawn or [_NOTHING],
            "config": {"view": {"stroke": None}, "axis": {"gridColor": "#eeeeee"}},
        }
    )


def _with_unique_labels(rows: Sequence[ChartRow]) -> list[ChartRow]:
    """Return the rows with numbers on labels that an axis has twice, as those of two references."""
    found: list[ChartRow] = []
    for row in rows:
        n = sum(other.unit == row.unit and other.label == row.label for other in rows[: len(found)])
        found.append(replace(row, label=f"{row.label} ({n + 1})") if n else row)
    return found


def _of_questions(questions: Sequence[QuestionFinding], named: GroupNamer) -> Iterator[ChartRow]:
    for question in questions:
        if question.tolerance is None:
            continue
        is_ratio = question.tolerance.scale == "ratio"
        times = 100.0 if question.is_share and not is_ratio else 1.0
        unit = "gap, percentage points" if question.is_share else f"gap of {question.metric}"
        pair, names, numbers = question.telling_pair, "", (math.nan,) * 3
        if pair is not None:
            names = " and ".join(named(question.attribute, each.group) for each in pair.test.groups)
            numbers = (pair.test.estimate, pair.low, pair.high)
        yield _row(
            f"{question.metric} by {question.attribute}",
            question,
            "ratio of the lower to the higher share" if is_ratio else unit,
            (question.tolerance.scale, names, times),
            numbers,
        )


def _of_lenses(lenses: Sequence[LensFinding]) -> Iterator[ChartRow]:
    for lens in lenses:
        if lens.tolerance is None:
            continue
        growth = lens.lens == "individual"
        unit = "growth of the loss, times" if growth else "difference of worst cases"
        test, names, numbers = lens.telling, "", (math.nan,) * 3
        if test is not None:
            names = "" if test.first is None else f"{test.first} and {test.second}"
            numbers = (test.estimate, test.least, test.most)
        yield _row(
            f"{lens.lens} by {lens.attribute}" if lens.attribute else lens.lens,
            lens,
            "gap, percentage points" if lens.is_share else unit,
            ("growth" if growth else lens.tolerance.scale, names, 100.0 if lens.is_share else 1.0),
            numbers,
        )


def _row(
    label: str,
    finding: QuestionFinding | LensFinding,
    unit: str,
    look: tuple[str, str, float],
    numbers: tuple[float, ...],
) -> ChartRow:
    scale, names, times = look
    assert finding.tolerance is not None
    seen, low, high = (times * number for number in numbers)
    return ChartRow(
        label=escape_controls(label),
        unit=unit,
        scale=scale,
        binding=finding.binding,
        verdict=finding.verdict,
        tolerance=times * finding.tolerance.value,
        groups=escape_controls(names),
        seen=seen,
        low=low,
        high=high,
    )


def _end(rows: Sequence[ChartRow]) -> float:
    """Return the end of an axis: 1 for ratios, else a little beyond the largest number."""
    if rows[0].scale == "ratio":
        return 1.0
    numbers = [number for row in rows for number in (row.seen, row.high, row.tolerance)]
    return _MARGIN * max(number for number in numbers if math.isfinite(number))


def _panel(rows: Sequence[ChartRow], end: float, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return the panel of rows of one unit, all binding or all informational."""
    start = 0.0
    if rows[0].scale == "growth":
        start = min(1.0, *(row.low for row in rows if math.isfinite(row.low)))
    x = {
        "type": "quantitative",
        "title": rows[0].unit,
        "scale": {"domain": [start, end], "nice": False},
        "axis": {"tickCount": 6},
    }
    y = {
        "field": "question",
        "type": "nominal",
        "sort": [row.label for row in rows],
        "title": None,
        "axis": {"labelLimit": 320, "ticks": False, "domain": False},
    }
    color, shape = (
        {
            "field": "verdict",
            "type": "nominal",
            "title": "verdict",
            "scale": {
                "domain": [word.replace("_", " ") for word in verdicts],
                "range": [_LOOKS[word][place] for word in verdicts],
            },
            "legend": {"symbolOpacity": 1},
        }
        for place in range(2)
    )
    return {
        "width": _WIDTH,
        "height": {"step": _ROW},
        "data": {"values": [row.values(end) for row in rows]},
        "encoding": {"y": y},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 3, "opacity": 0.55, "clip": True},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "color": color},
            },
            {
                "mark": {"type": "tick", "thickness": 2, "size": 18, "color": "black"},
                "encoding": {"x": {**x, "field": "tolerated"}},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": {**x, "field": "seen"},
                    "color": color,
                    "shape": shape,
                    "tooltip": [
                        {"field": name}
                        for name in ("question", "groups", "verdict", "seen", "low", "high",
                                     "tolerated")
                    ],
                },
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 10, "color": "gray"},
                "encoding": {"x": {"value": _WIDTH}, "text": {"field": "text"}},
            },
        ],
    }  # fmt: skip
