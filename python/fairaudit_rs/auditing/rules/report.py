"""The numbers of the policy's rule by attribute, which an audit computes once and stores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ...data.groups import group_label, group_name
from ...data.labels import label_matches
from ...data.sums import sums_of
from ...errors import FairAuditError
from ..refusals import reason_of
from ..sentences import fill_sentence
from .co_insurance_draft import ApprovalGap, approval_gaps
from .counts import Counts, pair_count
from .fair_lending import AdverseImpact, MeanDifference, adverse_impact, standardized_differences
from .us_eeoc import ImpactRatio, impact_ratios

if TYPE_CHECKING:
    from ..findings import BaseRate
    from ..policy import Policy
    from ..questions import AuditedAttribute

#: A comparison of two groups by their counts.
CountRow: TypeAlias = ImpactRatio | AdverseImpact | ApprovalGap
#: The fewest rows with a variance.
_LEAST = 2


@dataclass(frozen=True, kw_only=True)
class AttributeReport:
    """The numbers of a rule for the groups of one attribute; fields of other rules are empty."""

    attribute: str
    impact_ratios: tuple[ImpactRatio, ...] = ()
    adverse_impact: tuple[AdverseImpact, ...] = ()
    mean_differences: tuple[MeanDifference, ...] = ()
    approval_gaps: tuple[ApprovalGap, ...] = ()
    #: What could not be computed, with the reason.
    missing: tuple[str, ...] = ()

    @property
    def rows_of_counts(self) -> tuple[CountRow, ...]:
        """The comparisons of two groups by their counts."""
        return (*self.impact_ratios, *self.adverse_impact, *self.approval_gaps)


@dataclass(frozen=True, kw_only=True)
class RuleReport:
    """The numbers of a rule, which count rows."""

    attributes: tuple[AttributeReport, ...]
    #: Parts of the audit's design that these numbers ignore: weights, strata, clusters.
    unused: tuple[str, ...] = ()


def rule_report(
    policy: Policy, attributes: Sequence[AuditedAttribute], rates: Sequence[BaseRate]
) -> RuleReport | None:
    """Return the numbers of the policy's rule for single attributes; None without a rule.

    The numbers of Local Law 144 are those of `bias_audit`.
    """
    if policy.rule is None:
        return None
    table = attributes[0].table
    used = {
        "weights": "sample_weight" in table.roles,
        "strata": bool(table.strata),
        "clusters": bool(table.clusters),
    }
    found: list[AttributeReport] = []
    if policy.rule != "nyc_ll144":
        counts = {
            attribute.name: _counts(policy, attribute.name, rates) for attribute in attributes
        }
        n_comparisons = _n_comparisons(policy, counts)
        found = [
            _of_attribute(policy, attribute, counts[attribute.name], n_comparisons)
            for attribute in attributes
        ]
    unused = tuple(part for part, is_used in used.items() if is_used)
    return RuleReport(attributes=tuple(found), unused=unused)


def _counts(policy: Policy, attribute: str, rates: Sequence[BaseRate]) -> dict[Any, Any] | None:
    """Return positive decisions and rows of each known group; None without decisions."""
    of_groups = [rate for rate in rates if rate.attribute == attribute]
    known = [group for group in of_groups if not policy.is_unknown(group.group)]
    if any(math.isnan(rate.selection_rate) for rate in known):
        return None
    return {rate.group: (round(rate.selection_rate * rate.n_rows), rate.n_rows) for rate in known}


def _n_comparisons(policy: Policy, counts: dict[str, dict[Any, Any] | None]) -> int:
    """Return the number of comparisons of a rule in all attributes together."""
    sizes = [len(found) for found in counts.values() if found is not None and len(found) > 1]
    is_after_looking = policy.rule == "us_eeoc"
    return max(1, sum(pair_count(k) if is_after_looking else k - 1 for k in sizes))


def _of_attribute(
    policy: Policy, attribute: AuditedAttribute, counts: Counts | None, n_comparisons: int
) -> AttributeReport:
    if counts is None:
        return AttributeReport(attribute=attribute.name, missing=(fill_sentence("no_decisions"),))
    if len(counts) < 2:
        return AttributeReport(attribute=attribute.name, missing=(fill_sentence("one_group"),))
    alpha = policy.alpha
    given: Any = {"alpha": alpha, "n_comparisons": n_comparisons}
    if policy.rule == "us_eeoc":
        ratios = impact_ratios(counts, **given)
        return AttributeReport(attribute=attribute.name, impact_ratios=tuple(ratios))
    if policy.rule == "fair_lending":
        return _lending(policy, attribute, counts, given)
    # The draft names no reference group, so each group is compared with the largest.
    largest = max(counts, key=lambda group: counts[group][1])
    gaps = approval_gaps(counts, largest, **given)
    return AttributeReport(attribute=attribute.name, approval_gaps=tuple(gaps))


def _lending(
    policy: Policy, attribute: AuditedAttribute, counts: Counts, given: Any
) -> AttributeReport:
    """Return the ratios and mean differences of the groups of an attribute to its reference."""
    criterion = next((found for found in policy.criteria if found.covers(attribute.name)), None)
    if criterion is None:
        return AttributeReport(attribute=attribute.name, missing=(fill_sentence("no_reference"),))
    reference = next((count for count in counts if label_matches(count, criterion.reference)), None)
    if criterion.ratio is None or reference is None:
        return AttributeReport(attribute=attribute.name, missing=(fill_sentence("no_reference"),))
    impact = adverse_impact(counts, reference, threshold=criterion.ratio, **given)
    means, missing = _means(policy, attribute, reference, given)
    return AttributeReport(
        attribute=attribute.name,
        adverse_impact=tuple(impact),
        mean_differences=tuple(means),
        missing=tuple(missing),
    )


def _means(
    policy: Policy, attribute: AuditedAttribute, reference: Any, given: Any
) -> tuple[list[MeanDifference], list[str]]:
    """Return the mean differences of scores, and the reasons for those not computed."""
    if "y_score" not in attribute.table.roles:
        return [], [fill_sentence("no_means")]
    try:
        moments = _moments(attribute)
    except FairAuditError as error:
        return [], [fill_sentence("means_refused", reason=reason_of(error))]
    enough = {group: found for group, found in moments.items() if found[0] >= _LEAST}
    if reference not in enough or len(enough) == 1:
        return [], [fill_sentence("no_means_of_few")]
    missing = [
        fill_sentence("no_mean_of_group", group=group_name(group, attribute.name))
        for group in moments
        if group not in enough
    ]
    means = standardized_differences(
        enough, reference, higher_is_favourable=not policy.punitive, **given
    )
    return means, missing


def _moments(attribute: AuditedAttribute) -> dict[Any, tuple[int, float, float]]:
    """Return the rows, the mean score and the sum of squares about it, for each known group."""
    rows = attribute.table.rows(columns=("y_score",), needed_by="the mean of scores")
    scores = rows.columns["y_score"]
    n_groups = len(rows.cells.groups)
    n = np.bincount(rows.group, minlength=n_groups)
    total = sums_of(rows.group, scores, n_groups)
    mean = total / np.maximum(n, 1)
    squares = sums_of(rows.group, (scores - mean[rows.group]) ** 2, n_groups)
    return {
        group_label(key): (int(n[i]), float(mean[i]), float(squares[i]))
        for i, key in enumerate(rows.cells.groups)
        if group_label(key) in attribute.groups
    }
