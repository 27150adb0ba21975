"""Adverse impact ratios to a fixed reference, and standardized mean differences."""

import math

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs.auditing.rules.co_insurance_draft import approval_gaps
from fairaudit_rs.auditing.rules.fair_lending import adverse_impact, standardized_differences
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, DataError

COUNTS = {"black": (65, 94), "white": (791, 842), "other": (49, 51)}


def impact(counts=COUNTS, **options):
    rows = adverse_impact(counts, "white", **{"threshold": 0.8, **options})
    return {row.group: row for row in rows}


class TestAdverseImpact:
    def test_the_reference_is_fixed(self):
        rows = impact()
        assert set(rows) == {"black", "other"}
        # The others have the highest rate, and the ratio is still to whites.
        assert rows["other"].ratio > 1
        assert rows["black"].ratio == pytest.approx(0.736, abs=5e-4)
        assert rows["black"].interval == pytest.approx((0.63, 0.83), abs=5e-3)
        assert rows["black"].odds_ratio == pytest.approx(65 * 51 / (29 * 791))

    def test_shortfall_is_to_the_rate_of_the_reference(self):
        assert impact()["black"].shortfall == math.ceil(791 * 94 / 842) - 65 == 24
        assert impact()["other"].shortfall == 0

    def test_a_flag_takes_all_three(self):
        assert impact()["black"].flagged
        assert not impact(threshold=0.7)["black"].flagged
        assert not impact(least_difference=0.25)["black"].flagged
        assert impact(least_difference=0.24)["black"].flagged
        few = impact({"black": (2, 4), "white": (8, 10)})["black"]
        assert (few.ratio, few.significant, few.flagged) == (0.625, False, False)
        assert not impact()["other"].flagged

    def test_exactly_the_threshold_is_not_below(self):
        row = impact({"black": (3_600, 10_000), "white": (4_500, 10_000)})["black"]
        assert (row.significant, row.flagged) == (True, False)

    def test_fisher_below_a_size(self):
        assert impact()["black"].method == "Fisher's exact test"
        assert impact()["black"].pvalue == pytest.approx(
            stats.fisher_exact([[65, 29], [791, 51]]).pvalue
        )
        chi = impact(fisher_below=936)["black"]
        assert chi.method == "chi-squared test"
        assert chi.pvalue == pytest.approx(
            stats.chi2_contingency([[65, 29], [791, 51]], correction=False).pvalue
        )
        assert impact(fisher_below=937)["black"].method == "Fisher's exact test"

    def test_arguments(self):
        with pytest.raises(ArgumentError, match="threshold of the ratio is 80; accepted"):
            impact(threshold=80)
        with pytest.raises(DataError, match="reference is 'white', which is no group"):
            impact({"a": (1, 2), "b": (1, 2)})
        with pytest.raises(TypeError, match="threshold"):
            adverse_impact(COUNTS, "white")


def moments(**groups):
    return {
        name: (len(rows), float(np.mean(rows)), float(np.sum((rows - np.mean(rows)) ** 2)))
        for name, rows in groups.items()
    }


class TestMeans:
    def rows(self, shift=1.0):
        rng = np.random.default_rng(5)
        return rng.normal(0, 1, 400), rng.normal(-shift, 2, 300), rng.normal(1, 1, 200)

    def test_population_and_pooled(self):
        white, black, other = self.rows()
        given = moments(white=white, black=black, other=other)
        gap = black.mean() - white.mean()
        [row, _] = standardized_differences(given, "white")
        sd = np.concatenate([white, black, other]).std(ddof=1)
        assert row.smd == pytest.approx(gap / sd, rel=1e-12)
        [row, _] = standardized_differences(given, "white", denominator="pooled")
        pooled = math.sqrt((399 * white.var(ddof=1) + 299 * black.var(ddof=1)) / 698)
        assert row.smd == pytest.approx(gap / pooled, rel=1e-12)
        welch = stats.ttest_ind(black, white, equal_var=False)
        assert (row.t, row.pvalue) == pytest.approx((welch.statistic, welch.pvalue), rel=1e-9)

    def test_flags_go_to_the_disadvantage(self):
        white, black, _ = self.rows()
        given = moments(white=white, black=black)
        [low] = standardized_differences(given, "white", threshold=0.3)
        [high] = standardized_differences(given, "black", threshold=0.3)
        assert (low.flagged, high.flagged) == (True, False)
        bad = {"threshold": 0.3, "higher_is_favourable": False}
        [low] = standardized_differences(given, "white", **bad)
        [high] = standardized_differences(given, "black", **bad)
        assert (low.flagged, high.flagged) == (False, True)
        assert standardized_differences(given, "white")[0].flagged is None
        assert not standardized_differences(given, "white", threshold=0.9)[0].flagged

    def test_few_rows_are_not_flagged(self):
        white, black, _ = self.rows()
        [row] = standardized_differences(
            moments(white=white[:5], black=black[:5]), "white", threshold=0.01
        )
        assert (row.significant, row.flagged) == (False, False)

    def test_nothing_varies(self):
        [same] = standardized_differences({"a": (5, 1.0, 0.0), "b": (5, 1.0, 0.0)}, "a")
        assert (same.smd, same.pvalue) == (0, 1)
        [other] = standardized_differences({"a": (5, 1.0, 0.0), "b": (5, 2.0, 0.0)}, "a")
        assert other.significant

    def test_arguments(self):
        with pytest.raises(ArgumentTypeError, match="moments is 3; accepted"):
            standardized_differences(3, "a")
        with pytest.raises(ArgumentError, match="n of 'a' is 1; accepted"):
            standardized_differences({"a": (1, 0.0, 0.0), "b": (5, 1.0, 0.0)}, "a")
        with pytest.raises(ArgumentError, match="denominator is 'sd'; accepted: 'population'"):
            standardized_differences(moments(a=np.arange(3), b=np.arange(4)), "a", denominator="sd")
        with pytest.raises(DataError, match="reference is 'c', which is no group"):
            standardized_differences(moments(a=np.arange(3), b=np.arange(4)), "c")


class TestInsuranceDraft:
    def gap(self, group, base=(900, 1_000)):
        return approval_gaps({"a": group, "white": base}, "white")[0]

    def test_five_points_and_significant(self):
        assert self.gap((800, 1_000)).triggered
        few = self.gap((8, 10))
        assert few.gap == pytest.approx(0.1)
        assert (few.significant, few.triggered) == (False, False)
        many = approval_gaps({"a": (88_000, 100_000), "white": (90_000, 100_000)}, "white")[0]
        assert (many.significant, many.triggered) == (True, False)

    def test_exactly_five_points_are_five(self):
        # As floats they are less.
        assert 0.95 - 0.9 < 0.05
        assert self.gap((9_000, 10_000), (9_500, 10_000)).triggered
        assert not self.gap((9_001, 10_000), (9_500, 10_000)).triggered

    def test_a_gap_the_other_way_triggers_nothing(self):
        row = self.gap((950, 1_000), (800, 1_000))
        assert (row.gap, row.triggered) == (pytest.approx(-0.15), False)
        assert row.interval[0] < -0.15 < row.interval[1]

    def test_words_say_that_it_is_not_in_force(self):
        assert str(self.gap((800, 1_000))) == (
            "a: approved 80.0 % of 1,000, white 90.0 %; by the draft, which is not in force, this "
            "would be looked into"
        )
