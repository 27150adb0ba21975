"""What other lenses found, in words: what is shown, how large it is, and what is not said.

They inform beside the verdict. P-values stand in tables only.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from ..results.verdict import rejects
from ..results.words import limits_text, listed, number, numbers

if TYPE_CHECKING:
    from ..extremes.result import ExtremeResult
    from ..individual.result import IndividualResult
    from ..influence.result import InfluenceResult
    from ..projection.result import ProjectionResult


def _level(confidence: float) -> str:
    return f"{100 * confidence:g} % confidence"


def of_projection(result: ProjectionResult) -> str:
    """Return what the projection of scores shows; it never shows that there is no gap."""
    shown = rejects(result.pvalue, 1 - result.confidence_level)
    what = f"that scores depart from {result.notion}"
    return f"{what} is shown" if shown else f"{what} is not shown, which is no evidence of none"


def of_individual(result: IndividualResult, metric: str) -> str:
    """Return how much larger losses get for people who are alike, under which metric."""
    value, low, high = numbers(result.estimate, result.lower_bound, result.upper_bound)
    level = _level(result.confidence_level)
    seen = (
        "between people who differ in little but what tells groups apart the loss grows to "
        f"{value} times itself under {metric}"
    )
    if result.lower_bound > result.delta:
        return f"{seen}, at least {low} ({level}): more than {result.delta:g} times is shown"
    if result.upper_bound < result.delta:
        return (
            f"{seen}, at most {high} ({level}): less than {result.delta:g} times is shown, for "
            "this attack alone"
        )
    return (
        f"{seen}, and the data allow {low} to {high} ({level}): neither more nor less than "
        f"{result.delta:g} times is shown"
    )


def of_influence(result: InfluenceResult, first: str, second: str) -> str:
    """Return the gap of a group and the features that are shown to go with it."""
    low, high = result.confidence_interval
    value, *ends = numbers(result.estimate, low, high)
    gap = (
        f"the {result.metric.replace('_', ' ')} of {first} less that of {second} is {value}, and "
        f"the data allow {ends[0]} to {ends[1]} ({_level(result.confidence_level)})"
    )
    if not (low > 0 or high < 0):
        return f"{gap}: no direction is shown, and so no feature that goes with it"
    return f"{gap}: {of_features(result)}"


def of_features(result: InfluenceResult) -> str:
    """Return the features that are shown to go with a gap whose direction is shown."""
    alpha = 1 - result.confidence_level

    def shown(held: bool) -> str:
        found = [
            one.feature
            for one in result.proxy_scores
            if (one.kind == "ceteris_paribus") is held and rejects(one.adjusted_pvalue, alpha)
        ]
        return listed(list(dict.fromkeys(found)))

    own, alone = shown(False), shown(True)
    text = f"shown to go with it: {own}" if own else "no feature is shown to go with it"
    if alone:
        text += f"; with all else held fixed the decisions move with {alone}"
    return f"{text}. Not that they cause it" if own else text


def of_extremes(result: ExtremeResult) -> str:
    """Return what the worst flips gain in the worst group, and the clearest difference of two."""
    pair = result.clearest
    low, high = result.confidence_interval
    groups, estimate = [pair.first, pair.second], pair.estimate
    known = {group: one.value for group, one in result.levels.items() if not math.isnan(one.value)}
    if len(known) > 2 and estimate < 0:
        groups.reverse()
        estimate, low, high = -estimate, -high, -low
    values = [result.levels[one].value for one in groups]
    first, second, gap, *ends = numbers(*values, estimate, low, high)
    names = [result.name_of(one) for one in groups]
    limits = limits_text(low, high, (ends[0], ends[1]))
    shown = rejects(result.pvalue, 1 - result.confidence_level)
    what = f"what one row in {result.horizon:,.0f} would gain at least by a flip is"
    told = f"{what} {first} in {names[0]} and {second} in {names[1]}, a difference of"
    if len(known) > 2:
        worst = max(known, key=lambda group: known[group])
        told = (
            f"{what} highest in {result.name_of(worst)}, {number(known[worst])}; of {len(known)} "
            f"groups {names[0]} ({first}) and {names[1]} ({second}) differ most clearly, by"
        )
    return (
        f"{told} {gap} ({limits}, {_level(result.confidence_level)}): that worst cases differ is "
        f"{'shown' if shown else 'not shown, which is no evidence of equality'}"
    )
