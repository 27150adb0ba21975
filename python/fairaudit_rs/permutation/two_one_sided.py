"""Two one-sided tests of a pair at both ends of a margin, for equivalence and tolerances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..inference.intervals import Bootstrap, Pair, studentize
from ..report.notes import Note
from .formulas import UNKNOWN_MARGIN_TEST, FormulaMethod, MarginTest, log_ratio, log_ratios
from .problem import Problem
from .strata import share_strata, why_unshared

#: The word for a gap on each scale.
NAMES = {"difference": "gap", "ratio": "ratio"}

#: The sentences of `TwoOneSidedTests.notes_on_untestable`.
SENTENCES = {
    "no_ratio": (
        "{metric} is {values} in {first} and {second}: nothing is shown about their ratio"
    ),
    "nothing_known": "nothing is shown about the {scale} of {first} and {second}: {reason}",
    "no_variation": (
        "{metric} does not vary, or has no standard error, in {first} or {second}: nothing is "
        "shown about their {scale}"
    ),
}


@dataclass(frozen=True, kw_only=True)
class TwoOneSidedTests:
    """The one-sided tests of gaps or ratios at the two ends of a margin."""

    problem: Problem
    scale: str
    #: The method; None for the bootstrap-t.
    formula: FormulaMethod | None
    #: The replicates of the bootstrap-t.
    bootstrap: Bootstrap | None = None

    def test_pair(self, pair: Pair, margin: float) -> MarginTest:
        """Test a pair at -+ margin, or for ratios at the margin and its inverse."""
        problem, replicates = self.problem, self.bootstrap
        of_ratio = self.scale == "ratio"
        allows_zero = self.formula is not None and self.formula.allows_ratio_of_zero
        if of_ratio and not allows_zero and not self._above_zero(pair):
            return UNKNOWN_MARGIN_TEST
        if self.formula is not None:
            return self.formula.margin_test(pair, margin, self.scale)
        assert replicates is not None
        if not all(problem.evaluations[i].variance > 0 for i in pair):
            # A variance of 0 is not precision: a few rows can agree by chance.
            return UNKNOWN_MARGIN_TEST
        if of_ratio:
            estimate, error = log_ratio(problem, pair)
            values, variances = log_ratios(replicates, pair)
            t = studentize(values, estimate, variances)
            return MarginTest.of_replicates(t, estimate, error, -math.log(margin))
        gap = problem.gap(pair)
        i, j = pair
        values = replicates.values[:, i] - replicates.values[:, j]
        variances = replicates.variances[:, i] + replicates.variances[:, j]
        t = studentize(values, gap.estimate, variances)
        return MarginTest.of_replicates(t, gap.estimate, gap.standard_error, margin)

    def _above_zero(self, pair: Pair) -> bool:
        return all(value > 0 for value in self.problem.compared(pair))

    def explain_untestable(self, pair: Pair) -> str:
        """Return why a pair cannot be tested, as a sentence."""
        return self._note_on_untestable(pair).text

    def notes_on_untestable(self, pairs: Sequence[Pair]) -> list[Note]:
        """Return the notes on pairs that cannot be tested."""
        return list(map(self._note_on_untestable, pairs))

    def _note_on_untestable(self, pair: Pair) -> Note:
        """Return the note on a pair that cannot be tested."""
        problem, what = self.problem, NAMES[self.scale]
        first, second = subject = problem.names[pair[0]], problem.names[pair[1]]
        if problem.stratified and not share_strata(problem, pair):
            unshared = why_unshared(problem, pair)
            return Note("no-shared-stratum", unshared.text, subject)
        if self.scale == "ratio" and not self._above_zero(pair):
            values = " and ".join(f"{value:.3g}" for value in problem.compared(pair))
            text = SENTENCES["no_ratio"].format(
                metric=problem.metric.name, values=values, first=first, second=second
            )
            return Note("no-ratio", text, subject)
        unknown = None if self.formula is None else self.formula.reason_unknown(pair)
        if unknown is not None:
            text = SENTENCES["nothing_known"].format(
                scale=what, first=first, second=second, reason=unknown
            )
            return Note("nothing-known", text, subject, reason=unknown.kind)
        text = SENTENCES["no_variation"].format(
            metric=problem.metric.name, first=first, second=second, scale=what
        )
        return Note("no-variation", text, subject)
