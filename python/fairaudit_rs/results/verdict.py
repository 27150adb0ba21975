"""p-values against levels, and the verdicts that come of it: the one place where they are given.

The rules of an audit. A question, a metric in the groups of an attribute, *fails* when some pair of
its groups has an adjusted p-value of lying within the tolerance at the level; it *passes* when
every pair is shown to lie within it, and enough people are in groups that were tested; with fewer
than two groups that can be tested it is *not measurable*; otherwise it is *inconclusive*. Under a
policy without a pass the word for "every pair lies within it" is *no fail*, whatever the share of
people in tested groups: no pass could mislead. A lens that binds is judged by limits in the place
of p-values. The worst verdict of several counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, get_args

from ..literals import Verdict

#: Of a level: 1 - 0.9 is a little less than 0.1, and a p-value of exactly 0.1 rejects at it.
_ROUNDING = 1e-9
#: From the worst one on.
WORST_FIRST: tuple[Verdict, ...] = get_args(Verdict)
#: Exit codes of commands.
PASSED, VIOLATED, UNDECIDED = 0, 1, 3


def rejects_at(pvalue: float, alpha: float) -> bool:
    """Return whether a test rejects at a level; a p-value that is not measurable never does."""
    return bool(pvalue <= alpha * (1 + _ROUNDING))


class PairPValues(NamedTuple):
    """The p-values of all pairs of a question that can be tested."""

    #: Of "within the tolerance", adjusted for all pairs of all binding questions.
    adjusted_fail: Sequence[float]
    #: Of "beyond the tolerance", not adjusted: all of them must be small.
    p_pass: Sequence[float]


def of_question(
    pairs: PairPValues,
    *,
    alpha: float,
    coverage: float,
    min_coverage: float,
    withheld: bool = False,
    has_pass: bool = True,
) -> Verdict:
    """Return the verdict of a question.

    Leaving out groups must not buy a pass: ``coverage`` is the share of people who are in the
    groups that were tested, and ``withheld`` says that a policy left out some group that could have
    been tested, however few its people. (With a floor of 200 rows instead of 30, 96 % of audits
    of 3,000 rows would pass a model that disadvantages a group of 4 %.)
    Without a pass (``has_pass``) there is nothing to buy.
    """
    if not len(pairs.p_pass):
        return "not_measurable"
    if any(rejects_at(pvalue, alpha) for pvalue in pairs.adjusted_fail):
        return "fail"
    shown = all(rejects_at(pvalue, alpha) for pvalue in pairs.p_pass)
    if shown and not has_pass:
        return "no_fail"
    if shown and covers_enough(coverage, min_coverage) and not withheld:
        return "pass"
    return "inconclusive"


def of_limits(least: float, most: float, tolerance: float) -> Verdict:
    """Return the verdict of a size that the data limit from both sides.

    *fail* beyond the tolerance, *pass* below it. Of a limit that is not known nothing follows.
    """
    if least > tolerance:
        return "fail"
    return "pass" if most < tolerance else "inconclusive"


def of_lens(
    words: Sequence[Verdict], *, coverage: float, min_coverage: float, has_pass: bool = True
) -> Verdict:
    """Return the verdict of a lens from those of all its comparisons that could be measured."""
    if not words:
        return "not_measurable"
    if "fail" in words:
        return "fail"
    shown = all(map(is_within, words))
    if shown and not has_pass:
        return "no_fail"
    return "pass" if shown and covers_enough(coverage, min_coverage) else "inconclusive"


def is_within(verdict: Verdict) -> bool:
    """Return whether a gap is shown to be tolerated, be that a pass or not."""
    return verdict in ("pass", "no_fail")


def in_policy(verdict: Verdict, has_pass: bool) -> Verdict:
    """Return the verdict of a comparison in the words of its policy, which may have no pass."""
    return "no_fail" if verdict == "pass" and not has_pass else verdict


def covers_enough(coverage: float, min_coverage: float) -> bool:
    """Return whether enough people are in tested groups for a pass."""
    return coverage >= min_coverage * (1 - _ROUNDING)


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict of several questions; "not_asked" if there are none."""
    return min(verdicts, key=WORST_FIRST.index, default="not_asked")


def exit_code(
    verdict: Verdict, *, strict: bool = False, for_all: bool = True, could_fail: bool = True
) -> int:
    """Return the exit code of a command that ends in a verdict.

    1 for a fail; 3 in a strict run for what could not be decided, for a pass or "no fail" that is
    not one for everybody (``for_all``), and for an audit that could not fail although its policy
    should be able to (``could_fail``); 0 otherwise.
    """
    if verdict == "fail":
        return VIOLATED
    decided = (verdict == "not_asked" and could_fail) or (is_within(verdict) and for_all)
    return PASSED if decided or not strict else UNDECIDED
