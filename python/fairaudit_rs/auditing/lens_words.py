"""Write the sentences about informational lenses: the effect, its size, and what it does not show.

P-values appear only in tables.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..report.words import join_names, limits_text, number, numbers
from ..results.verdict import rejects_at
from .sentences import fill_part

if TYPE_CHECKING:
    from ..extremes.result import ExtremeResult
    from ..individual.result import IndividualResult
    from ..influence.result import InfluenceResult
    from ..projection.result import ProjectionResult


def _confidence_text(confidence: float) -> str:
    return f"{100 * confidence:g} % confidence"


def _lens_sentence(name: str, **parts: object) -> str:
    return fill_part("lens_found", name, **parts)


def describe_projection(result: ProjectionResult) -> str:
    """Return the result of the projection; it can never show that there is no gap."""
    shown = rejects_at(result.pvalue, 1 - result.confidence_level)
    return _lens_sentence("departs" if shown else "departs_not_shown", notion=result.notion)


def describe_growth(result: IndividualResult, metric: str) -> str:
    """Return the growth of the loss between similar people, with the fair metric."""
    value, low, high = numbers(result.estimate, result.lower_bound, result.upper_bound)
    name = "grows_open"
    if result.lower_bound > result.delta:
        name = "grows_more"
    elif result.upper_bound < result.delta:
        name = "grows_less"
    return _lens_sentence(
        name,
        growth=value,
        likeness=metric,
        low=low,
        high=high,
        level=_confidence_text(result.confidence_level),
        delta=f"{result.delta:g}",
    )


def describe_influence(result: InfluenceResult, first: str, second: str) -> str:
    """Return the gap of a group and the features that are significantly related to it."""
    low, high = result.confidence_interval
    value, *ends = numbers(result.estimate, low, high)
    has_direction = low > 0 or high < 0
    return _lens_sentence(
        "influence",
        rate=result.metric.replace("_", " "),
        first=first,
        second=second,
        gap=value,
        low=ends[0],
        high=ends[1],
        level=_confidence_text(result.confidence_level),
        features_found=describe_features(result)
        if has_direction
        else fill_part("features_found", "no_direction"),
    )


def describe_features(result: InfluenceResult) -> str:
    """Return the features that are significantly related to a gap of known sign."""
    alpha = 1 - result.confidence_level

    def shown(ceteris_paribus: bool) -> str:
        found = [
            score.feature
            for score in result.proxy_scores
            if (score.kind == "ceteris_paribus") is ceteris_paribus
            and rejects_at(score.adjusted_pvalue, alpha)
        ]
        return join_names(list(dict.fromkeys(found)))

    marginal, held_fixed = shown(False), shown(True)
    name = (
        ("both" if held_fixed else "features") if marginal else ("moving" if held_fixed else "none")
    )
    return fill_part("features_found", name, features=marginal, moving=held_fixed)


def describe_extremes(result: ExtremeResult) -> str:
    """Return the worst cases of the worst group, and the clearest difference of two groups."""
    pair = result.clearest
    low, high = result.confidence_interval
    groups, estimate = [pair.first, pair.second], pair.estimate
    known = {
        group: level.value for group, level in result.levels.items() if not math.isnan(level.value)
    }
    if len(known) > 2 and estimate < 0:
        groups.reverse()
        estimate, low, high = -estimate, -high, -low
    values = [result.levels[label].value for label in groups]
    first, second, gap, *ends = numbers(*values, estimate, low, high)
    names = [result.name_of(label) for label in groups]
    parts = {}
    if len(known) > 2:
        worst = max(known, key=lambda group: known[group])
        parts = {
            "worst": result.name_of(worst),
            "worst_level": number(known[worst]),
            "n_groups": f"{len(known)}",
        }
    shown = rejects_at(result.pvalue, 1 - result.confidence_level)
    return _lens_sentence(
        "extremes_of_several" if parts else "extremes_of_two",
        horizon=f"{result.horizon:,.0f}",
        first=names[0],
        first_level=first,
        second=names[1],
        second_level=second,
        gap=gap,
        limits=limits_text(low, high, (ends[0], ends[1])),
        level=_confidence_text(result.confidence_level),
        differ_shown=fill_part("differ_shown", "shown" if shown else "not_shown"),
        **parts,
    )
