"""The class `Audit`: the result of an audit, with its verdict, findings and outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..data.groups import escape_controls, group_name
from ..errors import AuditFailedError
from ..literals import Verdict
from ..results import verdict as verdicts
from ..results.chart import Chart
from ..results.result import Result
from ..results.tables import table_lines
from ..results.words import numbers
from .chart import audit_chart
from .findings import (
    BaseRate,
    LensFinding,
    QuestionFinding,
    group_rows,
    lens_pair_rows,
    lens_row,
    pair_rows,
    question_row,
    stratum_rows,
)
from .markdown import escape_markdown, markdown_table
from .policy import Policy
from .questions import least_coverage
from .request import AuditRequest
from .rules.lines import rule_facts, rule_lines
from .rules.nyc_ll144 import BiasAudit
from .rules.report import RuleReport
from .sentences import fill_part, fill_sentence
from .strata_tables import stratum_tables
from .wording import HEADS, Wording, question_table, verdict_headline

if TYPE_CHECKING:
    import polars as pl

PassesFor = Literal["all", "tested"]
#: Rules that report numbers without a threshold.
_WITHOUT_THRESHOLD = ("nyc_ll144", "co_insurance_draft")
#: The column of the table of questions that is empty if nothing was compared.
_OBSERVED = HEADS.index("observed")


@dataclass(frozen=True, repr=False, eq=False)
class Audit(Result):
    """The result of `audit`: a verdict and its findings.

    Attributes
    ----------
    verdict : {"pass", "fail", "inconclusive", "not_measurable", "no_fail", "not_asked"}
        The worst verdict of the binding questions and lenses. Only ``"pass"`` means that all gaps
        are shown to be within their tolerances; ``"inconclusive"`` means that the data do not
        decide. ``"no_fail"`` replaces ``"pass"`` under a policy without a pass.
    policy : Policy
        The policy.
    questions : tuple
        A finding for each criterion and attribute, with all pairs and groups.
    others : tuple
        The findings of other lenses, or the reasons why they were not run; with a verdict if the
        policy has a tolerance for the lens.
    base_rates : tuple
        Size, base rate and selection rate of each group.
    attributes : tuple of str
        The sensitive attributes.
    n_rows : int
        Number of people.
    n_comparisons : int
        Number of pairs of groups and tests of binding lenses that are judged together.
    seed : int
        Pass it as ``rng=`` to repeat the audit bit for bit.
    n_resamples : int
        Replicates of tests that use replicates.
    warnings : tuple of str
        Notes that a reader needs besides the verdict.
    results : dict
        The results of other lenses and of permutation tests by name.
    bias_audit : object, optional
        For the rule ``nyc_ll144``: the tables to publish, and what they lack.
    rule_report : object, optional
        The numbers of the policy's rule by attribute; None without a rule.
    request : AuditRequest, optional
        The request: data, columns, attributes, strata, clusters, favourable values, filters,
        excluded rows, and the version of this package.
    """

    _derived: ClassVar[tuple[str, ...]] = ("coverage", "passes_for")

    verdict: Verdict
    policy: Policy
    questions: tuple[QuestionFinding, ...]
    others: tuple[LensFinding, ...]
    base_rates: tuple[BaseRate, ...]
    attributes: tuple[str, ...]
    n_rows: int
    n_comparisons: int
    seed: int
    n_resamples: int
    warnings: tuple[str, ...]
    results: dict[str, Result] = field(default_factory=dict)
    bias_audit: BiasAudit | None = None
    request: AuditRequest | None = None
    rule_report: RuleReport | None = None

    def __hash__(self) -> int:
        return hash((type(self), self.verdict, self.seed, self.n_rows))

    # -- the verdict -------------------------------------------------------------------------

    @cached_property
    def coverage(self) -> float:
        """The smallest share of people in tested groups, over all binding questions and lenses."""
        return least_coverage([*self.questions, *self.others])

    @property
    def covers_all(self) -> bool:
        """Return whether (almost) all people are in tested groups: see `Policy.strict_coverage`."""
        skipped = any(question.is_skipped for question in self.questions)
        return not skipped and verdicts.covers_enough(self.coverage, self.policy.strict_coverage)

    @cached_property
    def passes_for(self) -> PassesFor | None:
        """The people for whom a pass holds: "all", or those in "tested" groups; else None."""
        if self.verdict != "pass":
            return None
        return "all" if self.covers_all else "tested"

    def exit_code(self, *, strict: bool = False) -> int:
        """Return the exit code of a command that ends here: 0, 1 for a fail.

        Parameters
        ----------
        strict : bool
            Return 3 if the data do not decide, if a pass or "no fail" covers fewer people than
            ``strict_coverage`` of the policy requires, and if no binding question could be posed.
            A rule without a threshold (``nyc_ll144``) ends with 0.
        """
        return verdicts.exit_code(
            self.verdict,
            strict=strict,
            for_all=self.covers_all,
            could_fail=self._wording.binds or self.policy.rule in _WITHOUT_THRESHOLD,
        )

    def raise_for_verdict(self, *, strict: bool = False) -> Audit:
        """Raise `AuditFailedError` when the audit fails; return the audit otherwise.

        Parameters
        ----------
        strict : bool
            Raise also if the data do not decide, or if the audit passes for some groups only.

        Returns
        -------
        Audit
            This one, so that a test can go on with it.
        """
        if self.exit_code(strict=strict):
            raise AuditFailedError(self.summary(), self.verdict)
        return self

    # -- in words ----------------------------------------------------------------------------

    @property
    def _wording(self) -> Wording:
        return Wording(
            self.questions,
            self.policy.alpha,
            self.n_comparisons,
            _named,
            self.others,
            adjusts=self.policy.adjustment == "holm",
            has_pass=self.policy.has_pass,
        )

    @property
    def _request_lines(self) -> list[str]:
        """Return the sentences that describe the request."""
        return [] if self.request is None else list(self.request.lines(self.n_rows))

    def _first_line(self) -> str:
        wording = self._wording
        covered = wording.coverage()
        return fill_sentence(
            "headline",
            verdict=verdict_headline(self.verdict, for_all=self.covers_all),
            n_rows=f"{self.n_rows:,}",
            policy=self.policy.binding_text(),
            covered=fill_part("covered", "covered", shares=covered) if covered else "",
        )

    def summary(self) -> str:
        """Return the verdict in sentences that an auditor can quote."""
        lines = [self._first_line(), *self._request_lines, *self._wording.told(self.verdict)]
        told = [_told(finding) for finding in self.others if finding.told and not finding.binding]
        if told:
            lines += [fill_sentence("others_inform"), *told]
        return "\n".join(lines)

    @property
    def rule_lines(self) -> list[str]:
        """Return the lines of the policy's rule; an empty list without a rule."""
        return rule_lines(self.policy, self.rule_report, self.bias_audit)

    def to_text(self, width: int | None = None) -> str:
        """Return the printed text: the verdict, the table, notes, and the numbers of the rule.

        Parameters
        ----------
        width : int, optional
            Longer rows of the table continue on the next line; None does not wrap them.

        Returns
        -------
        str
            Sentences are not wrapped.
        """
        told = [f"  {escape_controls(line)}" for line in self.rule_lines]
        rule = ["", "What the rule says:", *told] if told else []
        return "\n".join([super().to_text(width), *rule])

    def _remarks(self) -> tuple[str, ...]:
        """Return the notes that a reader needs besides the sentences."""
        has_labels = any(not math.isnan(rate.base_rate) for rate in self.base_rates)
        return (*self.warnings, *self._wording.limits(self.policy, has_labels))

    def _group_names(self) -> Sequence[str]:
        names = [_named(rate.attribute, rate.group) for rate in self.base_rates]
        return list(dict.fromkeys(names))

    def _group_lines(self, width: int | None = None) -> list[str]:
        heads, rows = question_table(self._shown(), self._wording)
        # A reason replaces missing numbers and may be longer than its column.
        cells = [
            row if row[_OBSERVED] else [*row[:3], "  ".join(filter(None, row[3:]))] for row in rows
        ]
        lines = ["", *table_lines([heads, *cells], width), ""] if rows else []
        for title, heads, rows in stratum_tables(self.questions, self._wording):
            lines += [f"{title}:", *table_lines([heads, *rows], width), ""]
        return lines

    def _shown(self) -> list[QuestionFinding]:
        """Return the questions to show; of informational intersections only those that fail."""
        binding = [question for question in self.questions if question.binding]
        others = [question for question in self.questions if not question.binding]
        single = [finding for finding in others if finding.attribute in self.attributes]
        crossed = [
            finding
            for finding in others
            if finding.attribute not in self.attributes and finding.verdict == "fail"
        ]
        return [*binding, *single, *crossed]

    def to_markdown(self) -> str:
        """Return the audit as a page of Markdown.

        Returns
        -------
        str
            The verdict, the table of all questions, base rates, notes.
        """
        first, *rest = self.summary().splitlines()
        head, _, told = first.partition(". ")
        parts = [
            f"# {escape_markdown(head)}",
            escape_markdown(told),
            "\n".join(map(escape_markdown, rest)),
        ]
        heads, rows = question_table(self.questions, self._wording)
        parts += ["## Questions", markdown_table(heads, rows)]
        for title, of_strata, strata in stratum_tables(self.questions, self._wording):
            parts += [f"## Strata: {escape_markdown(title)}", markdown_table(of_strata, strata)]
        parts += self._base_rate_parts()
        others = [finding for finding in self.others if not finding.binding]
        if others:
            lines = [
                [
                    finding.lens,
                    finding.attribute,
                    finding.metric,
                    *_shown(finding.estimate, finding.low, finding.high),
                    "" if math.isnan(finding.pvalue) else f"{finding.pvalue:.2g}",
                    "; ".join(filter(None, [finding.reason, finding.note])),
                ]
                for finding in others
            ]
            heads = ["lens", "attribute", "metric", "estimate", "low", "high", "p", "note"]
            parts += ["## Other lenses", markdown_table(heads, lines)]
        notes = "\n".join(f"- {escape_markdown(text)}." for text in self.remarks)
        parts += ["## Notes", notes, f"Seed: {self.seed}", *self._rule_parts()]
        return "\n\n".join(part for part in parts if part) + "\n"

    def _base_rate_parts(self) -> list[str]:
        """Return the title and the table of base rates."""
        is_crude = any(rate.is_crude for rate in self.base_rates)
        is_weighted = any(rate.weight is not None for rate in self.base_rates)
        how = ["crude values: all rows, without strata"] if is_crude else []
        how += ["shares by weight"] if is_weighted else []
        title = f"## Groups ({'; '.join(how)})" if how else "## Groups"
        people = ["people by weight"] if is_weighted else []
        heads = ["attribute", "group", "rows", *people, "positive labels", "positive decisions"]
        rates = [
            [
                rate.attribute,
                _named(rate.attribute, rate.group),
                f"{rate.n_rows:,}",
                *([f"{rate.n_people:,.1f}"] if is_weighted else []),
                _percent(rate.base_rate),
                _percent(rate.selection_rate),
            ]
            for rate in self.base_rates
        ]
        return [title, markdown_table(heads, rates)]

    def _rule_parts(self) -> list[str]:
        """Return the numbers of the rule as parts of a page."""
        if self.rule_report is None:
            return []
        tables, lines = [], self.rule_lines
        if self.bias_audit is not None:
            tables, lines = (
                [self.bias_audit.to_markdown().rstrip()],
                rule_facts(self.policy, self.rule_report),
            )
        told = "\n".join(f"- {escape_markdown(line)}" for line in lines)
        return ["## What the rule says", *tables, told]

    def plot(self) -> Chart:
        """Return a chart with a row for each question and each lens that has a tolerance.

        Returns
        -------
        Chart
            The observed gap, its bounds and the tolerance, coloured by the verdict, in separate
            panels for binding and informational questions. Intersections are shown if they bind or
            fail. Charts display in notebooks; ``save`` writes a file.
        """
        head, _, _ = self._first_line().partition(". ")
        title = f'{head}: policy "{self.policy.name}", {self.n_rows:,} rows'
        return audit_chart(title, self._shown(), self.others, _named)

    # -- as tables ---------------------------------------------------------------------------

    @property
    def findings(self) -> pl.DataFrame:
        """All findings as a polars frame, a row for each question and each other lens."""
        return self.to_frame("findings")

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables that `to_frame` returns, its default first."""
        compared = any(question.pairs for question in self.questions) or any(
            lens_pair_rows(finding) for finding in self.others
        )
        pairs = ("pairs",) if compared else ()
        ratios = ("impact_ratios",) if self.bias_audit and self.bias_audit.tables else ()
        within = any(pair.test.within for question in self.questions for pair in question.pairs)
        strata = ("strata",) if within else ()
        return ("findings", *pairs, *strata, "groups", "base_rates", *ratios)

    def _rows_of(self, table: str) -> Sequence[dict[str, Any]]:
        if table == "findings":
            return self.rows()
        if table == "impact_ratios" and self.bias_audit is not None:
            return self.bias_audit.rows()
        if table == "base_rates":
            return [
                {
                    "attribute": rate.attribute,
                    "group": _named(rate.attribute, rate.group),
                    "n_rows": rate.n_rows,
                    "weight": math.nan if rate.weight is None else rate.weight,
                    "base_rate": rate.base_rate,
                    "selection_rate": rate.selection_rate,
                    "is_crude": rate.is_crude,
                }
                for rate in self.base_rates
            ]
        make = {"pairs": pair_rows, "strata": stratum_rows}.get(table, group_rows)
        lenses = self.others if table == "pairs" else ()
        return [
            *(row for question in self.questions for row in make(question, _named)),
            *(row for lens in lenses for row in lens_pair_rows(lens)),
        ]

    def rows(self) -> list[dict[str, Any]]:
        """Return one row for each question, then one for each other lens."""
        questions = [question_row(question, _named) for question in self.questions]
        return [*questions, *map(lens_row, self.others)]

    def group_rows(self) -> list[dict[str, Any]]:
        """Return one row for each group of each question."""
        return list(self._rows_of("groups"))

    def _repr_html_(self) -> str:
        import html

        first, *rest = self.summary().splitlines()
        heads, rows = question_table(self._shown(), self._wording)
        cells = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(escape_controls(cell))}</td>" for cell in row)
            + "</tr>"
            for row in rows
        )
        head = "".join(f"<th>{name}</th>" for name in heads)
        told = "".join(f"<p>{html.escape(escape_controls(text))}</p>" for text in rest)
        notes = "".join(
            f"<p>Note: {html.escape(escape_controls(text))}.</p>" for text in self.remarks
        )
        return (
            f"<div><p><b>{html.escape(escape_controls(first))}</b></p>{told}<table><thead><tr>{head}"
            f"</tr></thead><tbody>{cells}</tbody></table>{notes}</div>"
        )

    def __repr__(self) -> str:
        return (
            f"Audit(verdict={self.verdict!r}, policy={self.policy.name!r}, n_rows={self.n_rows}, "
            f"attributes={list(self.attributes)!r})"
        )


def _named(attribute: str, group: Any) -> str:
    return group_name(group, attribute)


def _told(finding: LensFinding) -> str:
    """Return the finding of a lens as a line."""
    note = fill_part("lens_note", "lens_note", note=finding.note) if finding.note else ""
    return fill_sentence(
        "lens_told",
        lens=finding.lens,
        attribute=finding.attribute,
        lens_found=finding.told,
        lens_note=note,
    )


def _shown(*values: float) -> list[str]:
    """Return numbers for a table, with enough digits for unequal ones to differ."""
    known = iter(numbers(*(value for value in values if not math.isnan(value))))
    return ["" if math.isnan(value) else next(known) for value in values]


def _percent(part: float) -> str:
    return "" if math.isnan(part) else f"{100 * part:.1f} %"
