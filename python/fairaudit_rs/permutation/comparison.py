"""Runs the permutation tests of one metric in all groups, adjusts p-values and makes the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np

from .. import arguments
from ..data.groups import attribute_name, group_label
from ..errors import ArgumentError
from ..inference.intervals import Pair
from ..inference.multiplicity import adjust_pvalues
from ..inference.pvalues import SMALLEST_PVALUE, anytime_pvalue, monte_carlo_pvalue
from ..literals import Adjustment, Engine, GapInterval
from ..progress import ADVICE, Progress
from ..report.notes import Note
from ..report.shared_notes import no_pvalue_note, smallest_pvalue_note
from ..results.verdict import rejects_at
from .gap_intervals import GapIntervals
from .outcome import OMNIBUS_SERIES, Outcome, Procedure, run_test
from .problem import Problem
from .question import PermutationQuestion
from .result import Comparison, GroupValue, PermutationResult

ADJUSTMENTS: tuple[Adjustment, ...] = get_args(Adjustment)
ENGINES: tuple[Engine, ...] = get_args(Engine)
INTERVALS: tuple[GapInterval, ...] = get_args(GapInterval)
_ADVICE = (
    "Pass a smaller n_resamples, adaptive=True (tests stop once they are decided), or "
    "progress=True to see how far it is"
)
#: A result has a note if the share of undefined replicates is larger.
_MANY_UNDEFINED = 0.01


@dataclass(frozen=True, kw_only=True)
class ComparisonSettings:
    """The options of a comparison that do not depend on the metric; see `permutation_test`."""

    alternative: str
    adjust: Adjustment
    engine: Engine
    interval: GapInterval
    n_resamples: int
    adaptive: bool
    level: float
    seed: int
    n_threads: int | None
    progress: Callable[[int, int], object] | None

    @classmethod
    def checked(
        cls,
        *,
        alternative: str,
        adjust: str,
        engine: str,
        interval: str,
        n_resamples: int,
        adaptive: bool,
        confidence_level: float,
        rng: Any,
        random_state: Any,
        n_threads: int | None,
        progress: Any,
    ) -> ComparisonSettings:
        """Check the arguments of a public call."""
        adaptive = arguments.flag("adaptive", adaptive)
        checked = arguments.check(
            alternative=alternative,
            n_resamples=n_resamples,
            confidence_level=confidence_level,
            rng=rng,
            random_state=random_state,
            n_threads=n_threads,
            progress=progress,
        )
        return cls(
            alternative=checked.alternative,
            adjust=arguments.choice("adjust", adjust, ADJUSTMENTS),
            engine=arguments.choice("engine", engine, ENGINES),
            interval=arguments.choice("interval", interval, INTERVALS),
            n_resamples=checked.n_resamples,
            adaptive=adaptive,
            level=checked.confidence_level,
            n_threads=checked.n_threads,
            progress=checked.progress,
            seed=checked.seed,
        )


def compare_groups(
    question: PermutationQuestion, settings: ComparisonSettings, advice: str = _ADVICE
) -> PermutationResult:
    """Test whether the metric of a question is equal in all groups.

    ``advice`` is printed when the call takes long: how to make it shorter.
    """
    alternative, level, adjust = settings.alternative, settings.level, settings.adjust
    problem, pairs = question.problem, question.pairs
    n_groups = len(problem.keys)
    one_sided = alternative != "two-sided"
    if one_sided and problem.why_undirected is not None:
        raise ArgumentError(
            f"alternative is {alternative!r}, which is not defined for {problem.why_undirected}. "
            "Pass alternative='two-sided', or compare two groups (groups=) by a single metric.",
            argument="alternative",
            mentions=("groups",),
        )
    if one_sided and level <= 0.5:
        raise ArgumentError(
            f"confidence_level is {level:g}; accepted: above 0.5 for a one-sided alternative",
            argument="confidence_level",
            mentions=("alternative",),
        )
    joint = adjust == "max-t" and len(pairs) > 1
    ticker = Progress(callback=settings.progress, n_resamples=settings.n_resamples)
    ticker.total = settings.n_resamples * (len(pairs) + (n_groups != 2) + joint)
    pair_alpha = (1 - level) / (1 if adjust == "none" else max(len(pairs), 1))
    plan = Procedure(
        engine=settings.engine,
        alternative=alternative,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
        n_threads=settings.n_threads,
        level=level,
        progress=ticker,
        adaptive=settings.adaptive,
        pair_alpha=pair_alpha,
    )
    intervals = GapIntervals.prepare(problem, settings.interval, plan, alternative, level)
    ticker.shares = _shares(problem, pairs, ticker)
    ticker.advice = ADVICE if settings.adaptive else advice
    tests, gaps = [], []
    for pair, series in zip(pairs, question.series_of_pairs, strict=True):
        test = run_test(problem, plan, series, pair)
        intervals.add_test(pair, test)
        # Drop the replicates: many pairs would take too much memory.
        tests.append(replace(test, shifts=None, melded=None))
        gaps.append(problem.gap(pair))
    limits = [intervals.one_sided(pair) for pair in pairs]
    # Inconclusive tests enter the adjustment with p = 1.
    raw = [1.0 if test.inconclusive is not None else test.pvalue for test in tests]
    if n_groups > 2:
        test = run_test(problem, plan, OMNIBUS_SERIES)
        estimate, confidence_interval = intervals.largest()
        standard_error = math.nan
    else:
        test = tests[0] if tests else run_test(problem, plan, OMNIBUS_SERIES)
        if not tests:
            intervals.add_test((0, 1), test)
        gap = problem.gap((0, 1))
        estimate, standard_error = gap.estimate, gap.standard_error
        confidence_interval = limits[0] if limits else intervals.one_sided((0, 1))
    if joint:
        # Pairs are tested on their own rows, the family on all: keep the larger p-value.
        counts = problem.step_down(pairs, plan.draws(OMNIBUS_SERIES), plan.call())
        of_all = problem.adjusted(pairs, counts, settings.n_resamples)
        ticker.finish(drawn=True)
        adjusted = np.maximum(of_all, raw).tolist()
    elif len(raw) > 1 and adjust != "max-t":
        adjusted = adjust_pvalues(raw, adjust).tolist()
    else:
        # One test needs no adjustment.
        adjusted = raw
    comparisons = tuple(
        Comparison(
            first=group_label(problem.keys[pair[0]]),
            second=group_label(problem.keys[pair[1]]),
            estimate=gap.estimate,
            standard_error=gap.standard_error,
            statistic=outcome.statistic,
            pvalue=math.nan if outcome.inconclusive else outcome.pvalue,
            adjusted_pvalue=math.nan if outcome.inconclusive else adjusted_pvalue,
            confidence_interval=interval,
            engine=outcome.engine,
            n_undefined=outcome.n_undefined,
            inconclusive=outcome.inconclusive,
        )
        for pair, gap, interval, outcome, adjusted_pvalue in zip(
            pairs, gaps, limits, tests, adjusted, strict=True
        )
    )
    return PermutationResult(
        estimate=estimate,
        standard_error=standard_error,
        statistic=test.statistic,
        pvalue=math.nan if test.inconclusive else test.pvalue,
        confidence_interval=confidence_interval,
        alternative=alternative,
        n_rows=sum(problem.n_rows),
        group_sizes=dict(zip(map(group_label, problem.keys), problem.n_rows, strict=False)),
        seed=settings.seed,
        engine=test.engine,
        notes=(
            *question.notes_of_rows(),
            *problem.notes,
            *question.notes_of_strata(),
            *intervals.notes,
            *_notes_of_tests(question, test, tests, plan),
            *_notes_of_numbers(question, test, tests, adjust, confidence_interval, plan),
        ),
        metric=problem.metric.name,
        values=group_values(problem, level),
        comparisons=comparisons,
        pvalue_interval=(math.nan, math.nan) if test.inconclusive else test.pvalue_interval,
        n_resamples=test.n_resamples,
        n_undefined=test.n_undefined,
        n_missing=question.n_missing,
        adjust=adjust,
        studentize=problem.scaling,
        interval=intervals.shown_method,
        exchanged=question.exchanged,
        attribute=attribute_name(question.features),
        confidence_level=level,
        inconclusive=test.inconclusive,
        null_distribution=test.null,
        null_probabilities=test.probabilities,
        left_out=question.left_out,
        within=question.within,
    )


def _shares(problem: Problem, pairs: Sequence[Pair], ticker: Progress) -> list[float]:
    """Return the relative duration of each test, measured in rows visited per replicate."""
    of_pairs, of_all = visited_rows(problem, pairs)
    n_before = ticker.done // ticker.n_resamples
    n_after = ticker.total // ticker.n_resamples - n_before - len(pairs)
    return [of_all] * n_before + of_pairs + [of_all] * n_after


def visited_rows(problem: Problem, pairs: Sequence[Pair]) -> tuple[list[float], float]:
    """Return the rows that a replicate visits for each pair, and for all groups together.

    As measured for the AUC, a row takes (1 + G) / 2 times as long with G groups as with two.
    """
    n_rows, n_groups = problem.n_rows, len(problem.keys)
    of_pairs = [float(sum(n_rows[i] for i in pair)) for pair in pairs]
    return of_pairs, sum(n_rows) * (1 + n_groups) / 2


def group_values(problem: Problem, level: float) -> tuple[GroupValue, ...]:
    """Return the metric of each group, or of a joint criterion all components."""
    of_values = {
        (part.metric.name, i): part.value_interval(i, level)
        for part in problem.components
        for i in range(len(part.keys))
    }
    return tuple(
        GroupValue(
            group=group_label(key),
            value=part.evaluations[i].value,
            standard_error=math.sqrt(part.evaluations[i].variance),
            n_rows=part.n_rows[i],
            n_used=part.n_used(i),
            metric=part.metric.name,
            interval=of_values[part.metric.name, i][0],
            confidence_interval=of_values[part.metric.name, i][1],
        )
        for part in problem.components
        for i, key in enumerate(part.keys)
    )


def _notes_of_tests(
    question: PermutationQuestion, test: Outcome, tests: Sequence[Outcome], plan: Procedure
) -> list[Note]:
    """Return the notes on the methods of tests, and on missing p-values."""
    problem = question.problem
    outcomes = (*tests, test)
    notes = list(dict.fromkeys(note for outcome in outcomes for note in outcome.notes))
    reasons = dict.fromkeys(o.withheld for o in outcomes if o.withheld is not None)
    notes += [
        replace(no_pvalue_note(reason.text), subject=reason.subject, reason=reason.kind)
        for reason in reasons
    ]
    if problem.scaling == "corrected" and len(problem.keys) > 2 and test.engine != "melded":
        notes.append(
            Note(
                "omnibus-not-corrected",
                "the test of all groups together is not corrected for skewness; those of pairs are",
            )
        )
    if problem.scaling in ("none", "shared"):
        notes.append(
            Note(
                "not-studentized",
                "the statistic is not studentized in every replicate: the test can reject far too "
                "often when the groups differ in anything but the metric",
            )
        )
    return notes


def _notes_of_numbers(
    question: PermutationQuestion,
    test: Outcome,
    tests: Sequence[Outcome],
    adjust: str,
    interval: tuple[float, float],
    plan: Procedure,
) -> Iterator[Note]:
    """Yield the notes on the estimate, the p-value and the number of replicates."""
    problem = question.problem
    name, alpha = problem.metric.name, 1 - plan.level
    if len(problem.keys) > 2:
        yield Note(
            "largest-gap-without-standard-error",
            "the largest gap of several groups has no standard error"
            + (
                ""
                if math.isnan(interval[0])
                else "; its interval comes from Bonferroni intervals of all pairs, those of single "
                "pairs are not simultaneous"
            ),
        )
    if problem.metric.kind.caveat is not None:
        yield problem.metric.kind.caveat
    certain = problem.certain_groups()
    if certain and problem.is_studentized:
        yield Note(
            "constant-metric",
            f"{name} does not vary at all within {', '.join(certain[:5])}: its standard error is 0 "
            "and says nothing, and the test can have little power",
            tuple(certain),
        )
    share = max(outcome.undefined_share for outcome in (test, *tests))
    if share > _MANY_UNDEFINED:
        yield Note(
            "permutations-without-value",
            f"{100 * share:.3g} % of the permutations give {name} no value in some group and "
            "count as extreme",
        )
    if test.pvalue == SMALLEST_PVALUE:
        yield smallest_pvalue_note()
    yield from _notes_of_few_replicates(test, tests, adjust, plan)
    low, high = interval
    outside = low > 0 or high < 0
    differ = outside != rejects_at(test.pvalue, alpha) and test.withheld is None
    if len(problem.keys) == 2 and not math.isnan(low) and differ:
        yield Note(
            "interval-and-test-disagree",
            "the interval and the test disagree about 0: they are different methods, and this "
            "gap lies at the margin of both",
        )


def _notes_of_few_replicates(
    test: Outcome, tests: Sequence[Outcome], adjust: str, plan: Procedure
) -> Iterator[Note]:
    """Yield the note that the replicates are too few for any test to reject."""
    alpha = 1 - plan.level
    drawn = [outcome for outcome in tests if outcome.engine != "exact"]
    n = plan.n_resamples
    alone = anytime_pvalue(0, n) if plan.adaptive else monte_carlo_pvalue(0, n)
    alone *= max(outcome.n_sides for outcome in (test, *tests))
    many = len(tests) if drawn and adjust in ("holm", "bh") else 1
    least = many * alone
    # If all pairs are exact, only the test of all groups has replicates.
    drawn = drawn or ([test] if test.engine != "exact" else [])
    if not drawn or rejects_at(least, alpha):
        return
    enough = math.ceil((1 + n) * least / alpha)
    of_pairs = len(tests) > 1 and drawn[0] is not test
    pairs = f"{len(tests):,} pairs with " if of_pairs else ""
    each = " each" if pairs else ""
    after = " after adjustment" if pairs else ""
    yield Note(
        "few-replicates",
        f"{pairs}{n:,} replicates{each}: no drawn test alone can reach {alpha:.3g}{after}; "
        f"raise n_resamples to {enough:,} or more",
    )
