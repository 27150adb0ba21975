"""The class `Audit`: the result of an audit, with its verdict, findings and outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from ..data.groups import group_name
from ..errors import AuditFailedError
from ..literals import Verdict
from ..report.document import Document, Section
from ..report.notes import Note
from ..results import verdict as verdicts
from ..results.chart import Chart
from ..results.result import Result
from .chart import audit_chart
from .document import (
    base_rate_section,
    lens_sections,
    question_sections,
    rule_sections,
    shown_questions,
)
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
from .policy import Policy
from .questions import least_coverage
from .request import AuditRequest
from .rules.nyc_ll144 import BiasAudit
from .rules.report import RuleReport
from .sentences import fill_part, fill_sentence
from .wording import Wording, verdict_headline

if TYPE_CHECKING:
    import polars as pl

PassesFor = Literal["all", "tested"]
#: Rules that report numbers without a threshold.
_WITHOUT_THRESHOLD = ("nyc_ll144", "co_insurance_draft")


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
    notes : tuple of Note
        Remarks that a reader needs besides the verdict, each with a code.
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

    _derived: ClassVar[tuple[str, ...]] = ("warnings", "coverage", "passes_for")

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
    notes: tuple[Note, ...]
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
    def _rule_sections(self) -> list[Section]:
        return list(rule_sections(self.policy, self.rule_report, self.bias_audit))

    @property
    def rule_lines(self) -> list[str]:
        """Return the sentences about the policy's rule; an empty list without a rule."""
        return [text for section in self._rule_sections for text in section.sentences]

    def document(self, *, brief: bool = False) -> Document:
        """Return the audit as data for renderers: verdict, questions, groups, the rule, notes.

        With ``brief`` it has only what `to_text` prints.
        """
        first, *rest = self.summary().splitlines()
        headline, _, sentence = first.partition(". ")
        wording = self._wording
        sections = (
            *question_sections(self.questions, self.attributes, wording),
            base_rate_section(self.base_rates, wording),
            *lens_sections(self.others),
            *self._rule_sections,
        )
        return Document(
            title=headline,
            headline=headline,
            sentences=(sentence, *rest),
            sections=tuple(section for section in sections if not (brief and section.is_detail)),
            notes=self.remarks,
            facts={"Seed": str(self.seed)},
        )

    def _remarks(self) -> tuple[Note, ...]:
        """Return the notes that a reader needs besides the sentences."""
        has_labels = any(not math.isnan(rate.base_rate) for rate in self.base_rates)
        return (*self.notes, *self._wording.limits(self.policy, has_labels))

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
        shown = shown_questions(self.questions, self.attributes)
        return audit_chart(title, shown, self.others, _named)

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
