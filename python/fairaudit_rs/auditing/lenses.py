"""Other lenses of an audit: what they find, and why they were not run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, get_args

from ..errors import FairAuditError
from ..literals import Evidence, LensName, NotionName
from ..permutation.comparison import Settings, compare
from ..permutation.question import pose
from ..projection.lens import project
from .findings import LensFinding, QuestionFinding
from .policy import Policy
from .questions import Asked, Attribute, Computing
from .seeds import seed_of

#: Lenses that no audit runs yet, and the function that does.
_BY_THEMSELVES: dict[LensName, str] = {
    "individual": "needs a model, its rows and a metric of likeness: see individual_test",
    "influence": "needs features and a group to explain: see influence_audit",
    "extremes": "needs a model and an attribute to flip: see extreme_test",
}

Found = tuple[list[LensFinding], dict[str, Any]]


def wanted(policy: Policy) -> tuple[LensName, ...]:
    """Return the lenses that a policy asks for."""
    return get_args(LensName) if policy.lenses == "auto" else tuple(policy.lenses)


def run(
    policy: Policy, attributes: Sequence[Attribute], computing: Computing, threshold: float
) -> Found:
    """Run the lenses that a policy asks for, beside the questions."""
    findings, results = [], {}
    for lens in wanted(policy):
        if lens in _BY_THEMSELVES:
            findings.append(_not_run(lens, "", _BY_THEMSELVES[lens]))
        elif lens == "projection":
            single = [one for one in attributes if not one.is_intersection]
            for finding, result in _projections(single, computing, threshold):
                findings.append(finding)
                if result is not None:
                    results[f"projection: {finding.metric} by {finding.attribute}"] = result
    return findings, results


def _projections(
    attributes: Sequence[Attribute], computing: Computing, threshold: float
) -> Iterator[tuple[LensFinding, Any]]:
    """Project the scores of each attribute to the nearest ones that are fair."""
    for one in attributes:
        roles = one.table.roles
        notion: NotionName = "equal_opportunity" if "y_true" in roles else "statistical_parity"
        why = None
        if not one.table.source.holds_rows:
            why = "counts have no distance to the boundary"
        elif "y_score" not in roles:
            why = "needs scores, whose distance to the threshold is what it costs to move"
        elif "sample_weight" in roles and "clusters" in roles:
            why = "has no clusters"
        if why is not None:
            yield _not_run("projection", one.name, why, notion), None
            continue
        try:
            result = project(
                one.table,
                notion,
                threshold=threshold,
                groups=one.groups,
                pos_label=computing.pos_label,
                seed=seed_of(computing.seed, "projection", notion, one.name),
                n_threads=computing.n_threads,
            )
        except FairAuditError as error:
            yield _not_run("projection", one.name, str(error), notion), None
            continue
        low, high = result.confidence_interval
        finding = LensFinding(
            lens="projection",
            metric=notion,
            attribute=one.name,
            estimate=result.estimate,
            low=low,
            high=high,
            pvalue=result.pvalue,
            reason=result.inconclusive,
        )
        yield finding, result


def _not_run(lens: str, attribute: str, reason: str, metric: str = "") -> LensFinding:
    return LensFinding(
        lens=lens,
        metric=metric,
        attribute=attribute,
        estimate=math.nan,
        low=math.nan,
        high=math.nan,
        pvalue=math.nan,
        reason=f"not run: {reason}",
    )


def with_evidence(
    asked: Sequence[Asked],
    findings: Sequence[QuestionFinding],
    evidence: Evidence,
    computing: Computing,
) -> tuple[tuple[QuestionFinding, ...], dict[str, Any]]:
    """Add permutation tests of equality: of binding questions that fail, or of all questions."""
    results: dict[str, Any] = {}
    found = []
    for one, finding in zip(asked, findings, strict=True):
        fails = finding.binding and finding.verdict == "fail"
        if not (evidence == "permutation" or (fails and evidence == "failures")):
            found.append(finding)
            continue
        name = f"permutation: {one.metric.name} by {one.attribute.name}"
        if name not in results:
            result = _permuted(one, finding, computing)
            if result is not None:
                results[name] = result
        pvalue = results[name].pvalue if name in results else math.nan
        found.append(replace(finding, evidence=pvalue))
    return tuple(found), results


def _permuted(one: Asked, finding: QuestionFinding, computing: Computing) -> Any:
    """Return the permutation test of the groups that were compared; None where there is none."""
    groups = [group.group for group in finding.tested]
    if len(groups) < 2 or one.question.posed is None:
        return None
    seed = seed_of(computing.seed, "evidence", one.metric.name, one.attribute.name)
    settings = Settings.checked(
        alternative="two-sided",
        adjust="holm",
        engine="auto",
        interval="auto",
        n_resamples=computing.n_resamples,
        adaptive=False,
        confidence_level=0.95,
        rng=seed,
        random_state=None,
        n_threads=computing.n_threads,
        progress=computing.callback,
    )
    posed = pose(
        one.attribute.table,
        one.metric,
        groups=groups,
        score_bins=computing.score_bins if one.metric.kind.takes_bins else None,
        pos_label=computing.pos_label,
        n_threads=settings.n_threads,
        seed=settings.seed,
    )
    return compare(posed, settings)
