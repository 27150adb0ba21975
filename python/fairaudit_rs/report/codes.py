"""The list of all codes of notes, from which `make docs` writes docs/note_codes.md."""

from __future__ import annotations

#: By code, in plain words; `Note.code` never changes its meaning.
NOTE_CODES: dict[str, str] = {
    # -- audits --
    "base-rates-differ": (
        "Groups have different shares of positive labels, so not all kinds of equality can hold."
    ),
    "decides-alike": "Nearly everybody gets the same decision, so equal rates mean little.",
    "equal-is": "How to read the p-value of a question without a threshold.",
    "errors-are": "How often audits fail or pass falsely, and what the rates assume.",
    "flag": "An attribute of 0 and 1 compares one group with everybody else.",
    "lenses-silent": "Lenses that were not run; the findings have the reasons.",
    "not-tested": "Groups that the verdict does not cover, with the reason for each.",
    "own-minimum": "Groups below our minimum size; the rule itself reports them.",
    "refusals": (
        "Approval rates look similar, but one group is refused many times as often as another."
    ),
    "refusals-of-one": "Only one group has refusals; the ratio of approvals does not show it.",
    "several-flags": "Attributes of 0 and 1 that exclude each other can be combined into one.",
    "silent-lens": "Groups that a lens could not compare, with the reasons.",
    "small-intersection": "One intersection of attributes is too small to be compared.",
    "small-intersections": "Intersections of attributes that are too small to be compared.",
    "stops-early": "A long permutation test stopped as soon as it was decided.",
    "table-is": "How to read the columns of the table of questions.",
    "unnamed": "The result was stored by an older version, whose notes had no codes.",
    # -- extremes --
    "accuracy-floor-from-selection-part": (
        "You set no accuracy floor, so it was found on the rows on which the setting was chosen."
    ),
    "block-fit-at-highest-shape": (
        "The fit to block maxima ended at the largest shape that is fitted; its numbers may be "
        "wrong."
    ),
    "block-fit-at-lowest-shape": (
        "The fit to block maxima ended at the smallest shape that is fitted: the law ends at the "
        "largest maximum."
    ),
    "block-fit-not-converged": (
        "The fit to block maxima found no maximum of the likelihood; do not use its numbers."
    ),
    "columns-read-as-one-attribute": (
        "Several columns of X were read as the levels of one attribute; pass a dict to change that."
    ),
    "difference-without-error": (
        "The difference of return levels has an interval but no standard error."
    ),
    "equal-scores": (
        "The two scores are the same in every row, so there is no discrimination to measure."
    ),
    "extrapolated-levels": (
        "The horizon is longer than the data of these groups, so their return levels rest on the "
        "fitted tail."
    ),
    "few-rows-in-tail-test": (
        "These groups have so few rows that the test often misses large differences."
    ),
    "generated-rows-apart": (
        "Tails with generated rows are reported separately and change no other number; use the "
        "interval of the real rows."
    ),
    "generated-rows-are-no-data": (
        "Generated rows are not observations, and tests that use them are not tests of new data."
    ),
    "group-not-compared": "A group has no return level and was not compared; the text says why.",
    "incomplete-block": "The last rows did not fill a block and were excluded.",
    "largest-of-several-flips": (
        "Rows have several counterfactuals, and the largest difference of each row counts. Do not "
        "compare the result with that of a single flip."
    ),
    "levels-of-row-shares": (
        "Return levels are shares of the largest possible increase of each row (1 - score); their "
        "limits cover less often than stated."
    ),
    "limits-beyond-simulation": (
        "The confidence level per pair is higher than those that were simulated, so its limits "
        "are approximate."
    ),
    "many-equal-differences": (
        "Many rows have the same difference. If rows are copies, or several rows belong to one "
        "person, the limits are wrong."
    ),
    "model-ignores-attribute": (
        "No flip of the attribute changes a score. Features that stand in for the attribute were "
        "not flipped."
    ),
    "no-ecd-on-report-part": (
        "The chosen setting could not be measured on the rows kept for the report; the text says "
        "why."
    ),
    "no-generated-rows": "No rows were generated for these groups.",
    "no-interval-with-generated-rows": (
        "The spread of a return level with generated rows is not a confidence interval; use that "
        "of the real rows."
    ),
    "no-tail-fit": (
        "No tail could be fitted to these groups; the text says why. Limits come from order "
        "statistics alone."
    ),
    "pairs-not-measurable": (
        "Some pairs of groups could not be measured on the rows kept for the report."
    ),
    "pvalue-of-equal-laws": (
        "The p-value tests whether the groups have equal distributions, not only equal return "
        "levels."
    ),
    "pvalues-are-bounds": (
        "The true p-values of these pairs are at most the ones shown, which are the smallest that "
        "were simulated."
    ),
    "real-rows-fail-test": (
        "The real rows do not fit the assumed tail; generated rows cannot change that."
    ),
    "replicates-without-tail": "Some bootstrap replicates had no tail and were excluded.",
    "rows-without-flip": (
        "Rows with this level of the attribute have no counterfactual and were excluded."
    ),
    "settings-failed": (
        "Some settings could not be fitted or measured; each has a note in the table of trials."
    ),
    "tail-fit-at-lowest-shape": (
        "The tail fit ended at the smallest shape that is fitted; its limits are too wide if the "
        "distribution ends more abruptly."
    ),
    "tied-exceedances": (
        "Some of the largest differences are equal. If these rows belong to one person, the "
        "limits are wrong."
    ),
    "uneven-blocks": "Blocks have different numbers of rows; return levels use the mean size.",
    "values-at-upper-end": (
        "Some values lie at the upper end, so the tail was fitted to the values themselves."
    ),
    "values-on-grid": "Values lie on a regular grid, and the fit takes that into account.",
    # -- individual --
    "attack-from-imputed-values": (
        "Rows have missing values; their attack starts at the values that the imputer of the "
        "model fills in."
    ),
    "equal-ratios": "All rows have the same ratio, so there is nothing to test.",
    "features-repeat-each-other": (
        "Features of the fair metric determine one another (one-hot columns, for example), so its "
        "sensitive directions are not unique; the shortest ones were used."
    ),
    "few-degrees-of-freedom": (
        "There are few clusters, or weights are very unequal: the test can reject too often. "
        "interval='bootstrap-t' helps."
    ),
    "losses-below-floor": (
        "Rows have a loss near 0. The floor is used instead, and their ratios depend on it."
    ),
    "no-error-before-flow": (
        "The model makes no errors on these rows, so the ratio of error rates is undefined."
    ),
    "no-one-hot-features": (
        "one_hot='keep' had no effect, because no one-hot features were found; pass "
        "one_hot_groups=."
    ),
    "one-hot-features-leave-range": (
        "The attack gives one-hot features values that no person can have; one_hot='keep' "
        "prevents that."
    ),
    "one-row": "A single row has no standard error.",
    "ratios-not-finite": (
        "Rows have a ratio that is infinite or undefined; the text says what became of them."
    ),
    "repeated-rows": (
        "Rows repeat others. If they are the same people, pass clusters=, or the test rejects too "
        "often."
    ),
    "replicates-without-audit-value": (
        "Bootstrap replicates have no value and count as extreme, which makes the bounds wide."
    ),
    "rows-of-weight-0": "Rows of weight 0 do not count.",
    "scores-not-finite": "Some scores after the attack are not finite, so there is no error rate.",
    "skewed-ratios": (
        "The ratios are skewed, so a bound is off; interval='bootstrap-t' corrects that."
    ),
    "steps-too-large": (
        "The steps of the attack are too large for its solver, so it may be wrong; use a smaller "
        "step_size."
    ),
    "too-few-independent-units": (
        "There are too few clusters or weighted rows for a standard error."
    ),
    "variance-in-one-unit": (
        "A single row or cluster decides the result: no interval is reliable without more data."
    ),
    # -- influence --
    "descent-ended-at-max-steps": (
        "The descent used all its steps before the gap was shown to be below the tolerance; raise "
        "max_steps."
    ),
    "descent-ended-at-sample-size": (
        "The descent stopped because too few rows would have carried the weight; the gap was not "
        "shown to be below the tolerance."
    ),
    "direction-of-descent-unknown": (
        "The gap may be 0, so it is not known in which direction it should change."
    ),
    "direction-of-gap-unknown": (
        "The gap may be 0, so it is not known whether a feature makes it larger or smaller."
    ),
    "features-not-in-fit-part": (
        "Many rows have features that the repair did not see; they are treated like the nearest "
        "rows that it saw."
    ),
    "features-without-score": (
        "These features have no proxy score; the table of scores has the reasons."
    ),
    "few-events-in-group": (
        "A group has few events, or few non-events, of the metric: the interval of the gap may be "
        "wrong."
    ),
    "few-events-in-part": (
        "A part of the rows has few events, or few non-events, of the metric in a group: its "
        "standard errors may be too small."
    ),
    "few-rows-in-denominator": (
        "The rows kept for the report have few eligible rows of the metric: the interval may be "
        "wrong."
    ),
    "few-weighted-rows": (
        "The weights leave few effective rows for the report: its intervals may be too short."
    ),
    "group-of-one-row": "A group has fewer than two rows, so the gap has no interval.",
    "input-part-is-lower-bound": (
        "The divergence of the features is at least the number shown: the regression can miss "
        "differences."
    ),
    "input-part-refused": "The divergence of the features was not estimated; the text says why.",
    "missing-numbers-filled": (
        "A feature has missing numbers. Its usual value is used for them, with an indicator as "
        "another feature."
    ),
    "no-proxy-scores": "This metric has no proxy scores of features.",
    "output-part-without-interval": (
        "The divergence of the scores has no interval, because a group has too few positive or "
        "negative predictions."
    ),
    "regression-may-miss-calibration-error": (
        "The calibration error is at least the number shown: the regression can miss some of it."
    ),
    "scores-differ-at-equal-features": (
        "Rows with equal features have different scores, so the repair looks better than it is; "
        "pass model=, or all features of the model."
    ),
    "tolerance-below-reach": (
        "The data are too few to show that a gap is below this tolerance; use a larger tolerance "
        "or more rows."
    ),
    "transport-keeps-labels": (
        "This repair does not change labels, so a gap in this metric remains; method='direct' "
        "aims at 0."
    ),
    # -- projection --
    "distances-are-upper-bounds": (
        "Distances to the decision boundary were found by a search and may be too large, and so "
        "may the statistic."
    ),
    "largest-of-gaps-without-error": (
        "The estimate is the largest of several gaps, which has no standard error; its interval "
        "is simultaneous for all criteria."
    ),
    "limit-law-may-not-fit": (
        "The formula behind the p-value may not fit these data, but the error is on the safe "
        "side; the text says why."
    ),
    "p-is-upper-bound": (
        "The true p-value is at most the one shown, because tolerances are ignored in its formula."
    ),
    "plan-not-optimal": (
        "The numerical solution may not be the best one, so the statistic may be too large."
    ),
    "verdict-depends-on-bandwidth": (
        "Another bandwidth would change the verdict; the text has the p-values."
    ),
    # -- data --
    "clusters-dropped": "Clusters with rows in several groups were removed, with their rows.",
    "clusters-split": (
        "Clusters with rows in several groups were split into one cluster per group; the parts "
        "count as independent."
    ),
    "missing-texts": (
        'Texts such as "nan" or "none" in a sensitive feature were read as missing values; '
        "missing='keep_texts' makes them a group."
    ),
    # -- metrics --
    "biased-in-small-groups": (
        "The metric is too high in small groups, so its gap has no interval; the test is valid."
    ),
    # -- permutation --
    "audits-without-value": (
        "In some simulated audits a group had no value of the metric; they count as not rejected."
    ),
    "binned-scores": (
        "Scores within one bin count as equal; more bins, or the scores themselves, say more."
    ),
    "change-does-not-vary": (
        "The metric or its change does not vary within a group, so nothing is known about how the "
        "gap of this pair changes."
    ),
    "constant-metric": (
        "The metric does not vary within a group: its standard error is 0 and means nothing, and "
        "the test can have little power."
    ),
    "constant-metric-and-intervals": (
        "The metric does not vary within a group: some gaps have no interval, and the intervals of "
        "others are too short."
    ),
    "effect-varies": (
        "The gap differs between strata. The test is about these strata only; if they are a sample "
        "of others, it rejects too often."
    ),
    "excluded-groups": "Groups were not compared; the text has the reason for each.",
    "few-clusters": (
        "A group has too few clusters to permute them. Test and interval assume a range of values, "
        "and their error rate was simulated, not proved."
    ),
    "few-events": (
        "A group has few events. Test and interval treat the scores as probabilities, apart from "
        "one shift per group."
    ),
    "few-false-negatives": (
        "A group has few false negatives: the test can reject too often and the interval can be "
        "too short."
    ),
    "few-false-positives": (
        "A group has few false positives: the test can reject too often and the interval can be "
        "too short."
    ),
    "few-negative-labels": (
        "A group has few rows with a negative label: the test can reject too often and the "
        "interval can be too short."
    ),
    "few-positive-labels": (
        "A group has few rows with a positive label: the test can reject too often and the "
        "interval can be too short."
    ),
    "few-replicates": (
        "With this few replicates no p-value can be small enough to reject; raise n_resamples."
    ),
    "few-replicates-for-intervals": (
        "There are too few replicates for intervals of this confidence level; raise n_resamples."
    ),
    "few-true-negatives": (
        "A group has few true negatives: the test can reject too often and the interval can be "
        "too short."
    ),
    "few-true-positives": (
        "A group has few true positives: the test can reject too often and the interval can be "
        "too short."
    ),
    "gap-changes-sign": (
        "The gap has opposite signs with the two models; the sizes of the gaps are compared."
    ),
    "gap-differs": "The gap differs between strata, so read the strata one by one.",
    "gap-may-be-one": (
        "The test found no difference of the gap between strata, which does not show that there is "
        "none."
    ),
    "gap-not-tested": "It was not tested whether the gap is the same in all strata.",
    "gap-without-standard-error": (
        "A gap within strata has no standard error: the groups share no stratum, or one of them "
        "has a single row in the only stratum."
    ),
    "if-clusters-vary-alike": (
        "The p-value of another test, which is valid if the clusters of both groups vary alike."
    ),
    "ignored-strata": "The data have strata that were not used: gaps are those of all rows.",
    "interval-and-test-disagree": (
        "The interval and the test disagree about 0, because they are different methods and the "
        "gap is on the borderline of both."
    ),
    "interval-unknown": "The interval of a pair is unknown or open on one side; the text says why.",
    "known-range": (
        "Test and interval use the known range of values. Their error rate was simulated, not "
        "proved."
    ),
    "largest-gap-without-standard-error": (
        "The estimate is the largest gap of several groups, which has no standard error; its "
        "interval, if any, is simultaneous for all pairs."
    ),
    "many-strata": (
        "There are many strata with few rows each. If they are queries (ranked lists), or the gap "
        "differs between strata, the test rejects too often."
    ),
    "no-changed-decisions": "Both models make the same decisions in a group.",
    "no-limits": (
        "The metric does not vary in a group or is at an end of its range, so it has no interval "
        "there, nor has a gap from this group."
    ),
    "no-pvalue": "A test has no p-value; the text says why and, where known, what would help.",
    "no-ratio": "A group has a value of 0 or below, so the ratio of the pair could not be tested.",
    "no-shared-stratum": "No stratum contains both groups, so they were not compared.",
    "no-standard-error": (
        "The metric has no value in some bootstrap samples of a group, so there is no standard "
        "error."
    ),
    "no-variation": (
        "The metric does not vary, or has no standard error, in a group of the pair, which could "
        "not be tested."
    ),
    "not-studentized": (
        "The test statistic does not use the variance of each group, so the test can reject too "
        "often when groups differ in anything but the metric."
    ),
    "nothing-known": "A pair could not be tested; the text says why.",
    "odds-differ": "The odds ratio differs between strata, so read the strata one by one.",
    "odds-may-be-one": (
        "The test found no difference of the odds ratio between strata; gaps can differ all the "
        "same."
    ),
    "omnibus-not-corrected": (
        "The test of all groups together has no correction for skewed values; the tests of pairs "
        "have one."
    ),
    "p-below-smallest-number": "The p-value is smaller than the smallest number that can be shown.",
    "percentile-intervals": "Percentile intervals are too short; use them for comparison only.",
    "permutations-without-value": (
        "In some permutations a group has no value of the metric; they count as extreme."
    ),
    "ratio-without-interval": "Ratios with a value of 0 or below have no interval.",
    "ratio-without-standard-error": "Ratios with a value of 0 have no standard error.",
    "replicates-without-value": (
        "In some bootstrap replicates a group has no value of the metric, which makes intervals "
        "wider."
    ),
    "replicates-without-variation": (
        "In some bootstrap replicates the metric does not vary within a group: intervals can be "
        "too wide, and p-values cannot become small. Use another method."
    ),
    "rows-without-group": (
        "Rows have no value of a sensitive feature and were excluded from the comparison."
    ),
    "short-intervals-of-clusters": (
        "A group has few clusters: its standard error is too small and the interval too short; the "
        "test is not affected."
    ),
    "small-strata": (
        "Strata have few rows per group: the interval of the gap within strata is too short; the "
        "test is not affected."
    ),
    "smallest-of-pairs": (
        "The p-value of all groups together is the smallest one of all pairs, times their number."
    ),
    "strata-without-every-group": (
        "Some strata lack a group and are not used: each must contain every compared group."
    ),
    "tested-by-permutations": (
        "The simulated audits use permutation tests; permutation_test uses another method for "
        "these data, which rejects less often."
    ),
    "unequal-clusters": (
        "The clusters of a group differ so much in size that they count as only a few clusters of "
        "equal size."
    ),
    "unused-strata": "Some strata contain only one group of a pair and are not used in its gap.",
    "values-of-all-rows": (
        "Gaps are within strata, but the values of groups are those of all rows, so a gap need not "
        "be their difference."
    ),
    "weak-null-is-shuffle": (
        "For this proportion, groups with equal values are exchangeable, so both null hypotheses "
        "are the same."
    ),
}
