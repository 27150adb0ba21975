"""The rules for verdicts: compare p-values and confidence limits with levels and tolerances.

A question is one metric and one attribute. It *fails* if for some pair of groups the hypothesis
"the gap lies within the tolerance" is rejected at the level, after adjustment. It *passes* if every
pair is shown to lie within the tolerance, and enough people are in tested groups. With fewer than
two groups that can be tested it is *not measurable*; otherwise it is *inconclusive*. Under a policy
without a pass, "every pair lies within the tolerance" is called *no fail*, whatever the share of
people in tested groups. A binding lens is judged by confidence limits instead of p-values. Several
verdicts combine to the worst one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, get_args

from ..literals import Verdict

#: Tolerance of a level: 1 - 0.9 is slightly below 0.1, and a p-value of exactly 0.1 must reject.
_ROUNDING = 1e-9
#: From worst to best.
WORST_FIRST: tuple[Verdict, ...] = get_args(Verdict)
#: Exit codes of the command line.
PASSED, VIOLATED, UNDECIDED = 0, 1, 3


def rejects_at(pvalue: float, alpha: float) -> bool:
    """Return whether a test rejects at a level; NaN never rejects."""
    return bool(pvalue <= alpha * (1 + _ROUNDING))


class PairPValues(NamedTuple):
    """The p-values of all testable pairs of a question."""

    #: Small if a gap exceeds the tolerance; adjusted for all pairs of all binding questions.
    adjusted_fail: Sequence[float]
    #: Small if a gap lies within the tolerance; not adjusted, since all must be small.
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

    Excluding groups must not lead to a pass: ``coverage`` is the share of people in tested groups,
    and ``withheld`` is True if the policy excluded a testable group of any size. (With a minimum
    group size of 200 rows instead of 30, 96 % of audits of 3,000 rows would pass a model that
    disadvantages a group of 4 %.) Neither matters for a policy without a pass (``has_pass``).
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
    """Return the verdict of a quantity with a lower and an upper confidence limit.

    *fail* if it exceeds the tolerance, *pass* if it is below; an unknown limit (NaN) decides
    nothing.
    """
    if least > tolerance:
        return "fail"
    return "pass" if most < tolerance else "inconclusive"


def of_lens(
    words: Sequence[Verdict], *, coverage: float, min_coverage: float, has_pass: bool = True
) -> Verdict:
    """Return the verdict of a lens from the verdicts of its measurable comparisons."""
    if not words:
        return "not_measurable"
    if "fail" in words:
        return "fail"
    shown = all(map(is_within, words))
    if shown and not has_pass:
        return "no_fail"
    return "pass" if shown and covers_enough(coverage, min_coverage) else "inconclusive"


def is_within(verdict: Verdict) -> bool:
    """Return whether a gap is shown to lie within the tolerance, as a pass or as "no fail"."""
    return verdict in ("pass", "no_fail")


def in_policy(verdict: Verdict, has_pass: bool) -> Verdict:
    """Replace "pass" by "no fail" under a policy without a pass."""
    return "no_fail" if verdict == "pass" and not has_pass else verdict


def covers_enough(coverage: float, min_coverage: float) -> bool:
    """Return whether the share of people in tested groups is large enough for a pass."""
    return coverage >= min_coverage * (1 - _ROUNDING)


def worst_verdict(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the worst verdict of several questions; "not_asked" if there are none."""
    return min(verdicts, key=WORST_FIRST.index, default="not_asked")


def exit_code(
    verdict: Verdict, *, strict: bool = False, for_all: bool = True, could_fail: bool = True
) -> int:
    """Return the exit code of a command that ends in a verdict.

    1 for a fail. 3 in a strict run if the verdict is undecided, if a pass or "no fail" does not
    cover everybody (``for_all`` is False), or if the audit could not fail although its policy
    should be able to (``could_fail`` is False). 0 otherwise.
    """
    if verdict == "fail":
        return VIOLATED
    decided = (verdict == "not_asked" and could_fail) or (is_within(verdict) and for_all)
    return PASSED if decided or not strict else UNDECIDED
