"""The sections of the document of an audit: questions, strata, groups, lenses, and the rule."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ..report.document import Cell, Column, Remainder, Section, Table
from ..report.words import numbers
from .findings import BaseRate, LensFinding, QuestionFinding
from .lens_verdicts import pvalue_cell
from .policy import Policy
from .rules.lines import attribute_lines, rule_facts
from .rules.nyc_ll144 import BiasAudit
from .rules.report import RuleReport
from .strata_tables import stratum_tables
from .wording import HEADS, Wording, question_rows

#: The column of the table of questions that is empty if nothing was compared.
_OBSERVED = HEADS.index("observed gap")


def question_sections(
    questions: Sequence[QuestionFinding], attributes: Sequence[str], wording: Wording
) -> Iterator[Section]:
    """Yield the table of questions, and the tables of strata."""
    shown = shown_questions(questions, attributes)
    hidden = [question for question in questions if question not in shown]
    yield from _questions("Questions", question_rows(shown, wording))
    yield from _questions(
        "Intersections within their tolerances, not binding",
        question_rows(hidden, wording, with_lenses=False),
        is_detail=True,
    )
    for title, table in stratum_tables(questions, wording):
        yield Section(title=f"Strata: {title}", tables=(table,))


def shown_questions(
    questions: Sequence[QuestionFinding], attributes: Sequence[str]
) -> list[QuestionFinding]:
    """Return the questions that every output shows.

    These are all but the intersections that do not bind and do not fail.
    """
    binding = [question for question in questions if question.binding]
    others = [question for question in questions if not question.binding]
    single = [finding for finding in others if finding.attribute in attributes]
    crossed = [
        finding
        for finding in others
        if finding.attribute not in attributes and finding.verdict == "fail"
    ]
    return [*binding, *single, *crossed]


def _questions(title: str, rows: list[list[Cell]], *, is_detail: bool = False) -> Iterator[Section]:
    if rows:
        columns = tuple(Column(key=head.replace(" ", "_"), heading=head) for head in HEADS)
        cells = tuple(
            # A reason replaces missing numbers and may be longer than its column.
            tuple(row)
            if row[_OBSERVED].text
            else (*row[:3], Remainder("  ".join(cell.text for cell in row[3:] if cell.text)))
            for row in rows
        )
        table = Table(name="findings", columns=columns, rows=cells, noun="questions")
        yield Section(title=title, tables=(table,), is_detail=is_detail)


def base_rate_section(rates: Sequence[BaseRate], wording: Wording) -> Section:
    """Return the size, base rate and selection rate of each group."""
    is_weighted = any(rate.weight is not None for rate in rates)
    how = ["crude values: all rows, without strata"] if any(rate.is_crude for rate in rates) else []
    how += ["shares by weight"] if is_weighted else []
    people = [Column(key="weight", heading="people by weight", kind="count")] if is_weighted else []
    columns = (
        Column(key="attribute", heading="attribute"),
        Column(key="group", heading="group"),
        Column(key="n_rows", heading="rows", kind="count"),
        *people,
        Column(key="base_rate", heading="positive labels", kind="value"),
        Column(key="selection_rate", heading="positive decisions", kind="value"),
    )
    rows = tuple(
        (
            rate.attribute,
            wording.named(rate.attribute, rate.group),
            rate.n_rows,
            *([Cell(f"{rate.n_people:,.1f}", rate.n_people)] if is_weighted else []),
            _percent(rate.base_rate),
            _percent(rate.selection_rate),
        )
        for rate in rates
    )
    return Section(
        title=f"Groups ({'; '.join(how)})" if how else "Groups",
        tables=(Table(name="base_rates", columns=columns, rows=rows, noun="groups"),),
        is_detail=True,
    )


def lens_sections(findings: Sequence[LensFinding]) -> Iterator[Section]:
    """Yield the table of the informational lenses, if there are any."""
    others = [finding for finding in findings if not finding.binding]
    if others:
        yield Section(title="Other lenses", tables=(_lens_table(others),), is_detail=True)


def _lens_table(findings: Sequence[LensFinding]) -> Table:
    """Return the informational lenses: their values, limits, and why one was not run."""
    columns = (
        *(Column(key=name, heading=name) for name in ("lens", "attribute", "metric")),
        *(Column(key=name, heading=name, kind="value") for name in ("estimate", "low", "high")),
        Column(key="pvalue", heading="p", kind="pvalue"),
        Column(key="note", heading="note"),
    )
    rows = tuple(
        (
            finding.lens,
            finding.attribute,
            finding.metric,
            *_distinct(finding.estimate, finding.low, finding.high),
            pvalue_cell(finding.pvalue),
            "; ".join(filter(None, [finding.reason, finding.note])),
        )
        for finding in findings
    )
    return Table(name="other_lenses", columns=columns, rows=rows, noun="lenses")


def _distinct(*values: float) -> list[Cell]:
    """Return numbers for a table, with enough digits for unequal ones to differ."""
    known = iter(numbers(*(value for value in values if not math.isnan(value))))
    return [Cell("" if math.isnan(value) else next(known), value) for value in values]


def _percent(part: float) -> Cell:
    return Cell("" if math.isnan(part) else f"{100 * part:.1f} %", part)


def rule_sections(
    policy: Policy, report: RuleReport | None, published: BiasAudit | None
) -> Iterator[Section]:
    """Yield the numbers of the policy's rule, and the tables that it requires to be published."""
    if report is None:
        return
    head = [] if published is None else published.head
    lines = (*head, *attribute_lines(policy, report), *rule_facts(policy, report))
    yield Section(title="What the rule says", sentences=lines)
    for table in () if published is None else published.tables:
        yield table.section(report.unused)
