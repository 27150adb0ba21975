"""The codes of notes, with what each of them means for a reader."""

from __future__ import annotations

#: By code, in plain words; `Note.code` never changes its meaning.
NOTE_CODES: dict[str, str] = {
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
