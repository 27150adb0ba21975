"""Adverse impact ratios to a fixed reference, and standardized mean differences."""

import json
import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
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
        with pytest.raises(DataError, match="reference is 'white', which is not a group"):
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
        with pytest.raises(DataError, match="reference is 'c', which is not a group"):
            standardized_differences(moments(a=np.arange(3), b=np.arange(4)), "c")


def lent(counts, reference, scores=None, **options):
    """An audit of lenders: of each group how many have the favourable decision, of how many."""
    group = np.repeat(list(counts), [n for _, n in counts.values()])
    granted = np.concatenate([np.arange(n) < x for x, n in counts.values()]).astype(int)
    policy = fa.Policy.preset("fair_lending", ratio=0.8, references={"race": reference})
    given = {"y_pred": granted, "sensitive_features": {"race": group}, "policy": policy, "rng": 1}
    if scores is not None:
        given["y_score"] = scores(group)
    return fa.audit(**{**given, **options})


class TestSentences:
    """Every line says who, how much, against whom, and why it is flagged or not."""

    def line(self, audit, name):
        [found] = [line for line in audit.rule_lines if line.startswith(f"race: {name}")]
        return found

    def test_too_few_people_to_flag_a_ratio_below_the_threshold(self):
        audit = lent({"black": (15, 40), "white": (20, 40)}, "white")
        assert self.line(audit, "black") == (
            "race: black: favourable decision for 37.5 % of 40, white (reference) 50.0 % of 40: "
            "adverse impact ratio 0.750. Not flagged: the ratio is below 0.8, but the rates do not "
            "differ significantly (Fisher's exact test, p = 0.3675, level 0.05). 5 more favourable "
            "decisions would make the rates equal"
        )

    def test_a_group_that_is_flagged(self):
        line = self.line(lent(COUNTS, "white"), "black")
        assert "Flagged: the ratio is below 0.8, and the rates differ significantly (Fisher" in line
        assert "unadjusted, 2 comparisons" in line
        assert line.endswith("24 more favourable decisions would make the rates equal")

    def test_a_favoured_minority_is_not_at_a_disadvantage(self):
        audit = lent({"asian": (77, 100), "white": (50, 100)}, "white")
        line = self.line(audit, "asian")
        assert "Not flagged: asian has the favourable decision more often than white; the" in line
        assert "disadvantage" not in "".join(audit.rule_lines)
        assert "more favourable decisions would" not in line

    @pytest.mark.parametrize(
        ("counts", "options", "why"),
        [
            ({"a": (85, 100), "white": (90, 100)}, {}, "Not flagged: the ratio is not below 0.8; "),
            (
                {"a": (600, 1_000), "white": (900, 1_000)},
                {"least_difference": 0.4},
                "below 0.8, but the difference of 30.0 points does not exceed 40 points; the rates",
            ),
            ({"a": (3, 10), "white": (0, 10)}, {}, "no ratio, as nobody in the reference group"),
        ],
    )
    def test_other_reasons(self, counts, options, why):
        assert why in str(impact(counts, **options)["a"])

    def test_bare_numbers_are_named_and_found(self):
        audit = lent({1: (15, 40), 0: (20, 40)}, "0")
        assert self.line(audit, "race=1").startswith("race: race=1: favourable decision for 37.5 %")

    @pytest.mark.parametrize("policy", [None, "co_insurance_draft"])
    def test_groups_below_our_minimum_have_their_line(self, policy):
        options = {} if policy is None else {"policy": policy}
        audit = lent({"a": (2, 20), "white": (90, 100)}, "white", **options)
        assert any(
            "race: a has fewer than 30 rows and no verdict here" in x for x in audit.warnings
        )
        assert "a has 20 rows, below the 30 that this audit needs for a verdict" in self.line(
            audit, "a"
        )

    def test_an_attribute_without_a_reference(self):
        both = {"race": np.repeat(["a", "white"], 50), "sex": np.tile(["f", "m"], 50)}
        audit = lent({"a": (20, 50), "white": (30, 50)}, "white", sensitive_features=both)
        assert "sex: the policy names no reference group of this attribute" in audit.rule_lines


class TestMeansInAudits:
    """The preset promises standardized mean differences: audits print and store them."""

    def scores(self, group):
        rng = np.random.default_rng(3)
        shift = np.where(group == "black", -0.15, np.where(group == "other", -0.03, 0))
        return np.clip(rng.normal(0.6, 0.1, len(group)) + shift, 0, 1)

    def test_they_are_those_of_the_scores(self):
        audit = lent(COUNTS, "white", self.scores)
        group = np.repeat(list(COUNTS), [n for _, n in COUNTS.values()])
        scores = self.scores(group)
        [found] = audit.rule_report.attributes
        row = {difference.group: difference for difference in found.mean_differences}["black"]
        black, white = scores[group == "black"], scores[group == "white"]
        assert row.smd == pytest.approx((black.mean() - white.mean()) / scores.std(ddof=1))
        welch = stats.ttest_ind(black, white, equal_var=False)
        assert (row.t, row.pvalue) == pytest.approx((welch.statistic, welch.pvalue), rel=1e-9)
        assert (row.n, row.reference_n) == (94, 842)

    def test_they_stand_in_text_markdown_and_dict(self):
        audit = lent(COUNTS, "white", self.scores)
        [row] = [
            difference
            for difference in audit.rule_report.attributes[0].mean_differences
            if difference.smd < -1
        ]
        head = f"standardized mean difference {row.smd:.3f} (in standard deviations of all people)"
        tail = "to the disadvantage of black (Welch's t test, p = "
        for text in (str(audit), audit.to_markdown()):
            assert f"race: black: mean score {row.mean:.3f} of 94, white (reference)" in text
            assert head in text
            assert tail in text
            assert "No threshold is set, so nothing is flagged" in text
        content = json.loads(json.dumps(audit.to_dict()))
        [stored, _] = content["rule_report"]["attributes"][0]["mean_differences"]
        assert (stored["smd"], stored["method"]) == (row.smd, "Welch's t test")
        assert fa.from_dict(content).rule_lines == audit.rule_lines

    def test_a_favoured_group_and_one_that_does_not_differ(self):
        audit = lent(COUNTS, "black", self.scores)
        lines = [line for line in audit.rule_lines if "mean score" in line]
        assert "The means differ significantly, to the advantage of white (Welch" in lines[1]
        [other] = [
            line for line in lent(COUNTS, "white", self.scores).rule_lines
            if line.startswith("race: other: mean")
        ]  # fmt: skip
        assert "The means do not differ significantly (Welch's t test" in other

    def test_a_threshold(self):
        given = moments(a=np.arange(50.0), white=np.arange(50.0) + 30)
        [row] = standardized_differences(given, "white", threshold=0.3)
        assert "Flagged at a threshold of 0.3 to the disadvantage of a group" in str(row)

    def test_what_is_missing_is_named(self):
        without = lent(COUNTS, "white")
        assert (
            "race: no standardized mean differences, as no scores were given (y_score)"
            in without.rule_lines
        )
        absent = lent(COUNTS, "white", lambda group: np.full(len(group), np.nan))
        assert any(
            "no standardized mean differences: y_score is nan" in x for x in absent.rule_lines
        )

    def test_a_group_of_one_row(self):
        audit = lent({**COUNTS, "rare": (1, 1)}, "white", self.scores)
        [found] = audit.rule_report.attributes
        assert [difference.group for difference in found.mean_differences] == ["black", "other"]
        assert "no standardized mean difference of rare, which has 1 row" in found.missing
        for counts in ({"white": (1, 1), "a": (20, 50)}, {"white": (20, 50), "a": (1, 1)}):
            [found] = lent(counts, "white", self.scores).rule_report.attributes
            assert found.mean_differences == ()
            assert found.missing == (
                "no standardized mean differences, as the reference or all other groups have 1 row",
            )

    def test_people_of_unknown_group_are_in_no_mean(self):
        counts = {**COUNTS, "Unknown": (3, 40)}
        audit = lent(counts, "white", self.scores)
        [found] = audit.rule_report.attributes
        assert [difference.group for difference in found.mean_differences] == ["black", "other"]


class TestWeights:
    def test_lines_that_count_rows_say_so(self):
        """A verdict by weight beside lines by row: each of the lines names the difference."""
        counts = {"a": (150, 160), "white": (150, 150)}
        group = np.repeat(["a", "white"], [160, 150])
        weight = np.where((group == "a") & ~(np.arange(310) < 150), 20.0, 1.0)
        for policy in ("us_eeoc", None, "co_insurance_draft", "nyc_ll144"):
            options = {} if policy is None else {"policy": policy}
            audit = lent(counts, "white", sample_weight=weight, **options)
            words = (" a: ", " white: ", "ratios are to")
            by_row = [line for line in audit.rule_lines if any(word in line for word in words)]
            assert by_row
            for line in by_row:
                assert "(rows, without the weights): " in line
            assert any("do not use the weights" in line for line in audit.rule_lines)
            plain = lent(counts, "white", **options)
            assert "without the weights" not in str(plain)

    def test_strata_and_clusters_too(self):
        given = {
            "strata": np.arange(200) % 2,
            "clusters": np.arange(200) % 50 + 50 * (np.arange(200) >= 100),
        }
        audit = lent({"a": (50, 100), "white": (60, 100)}, "white", **given)
        assert "race (rows, without the strata and clusters): a: favourable" in str(audit)


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
            "a: 80.0 % of 1,000 approved, white (reference) 90.0 % of 1,000. The gap of 10.0 "
            "points is one of 5 points or more, and the rates differ significantly (pooled z test, "
            "p = 3.8e-10, level 0.05): the draft, which is not in force, would look into this"
        )

    @pytest.mark.parametrize(
        ("group", "base", "why"),
        [
            ((8, 10), (900, 1_000), "is one of 5 points or more, but the rates do not differ sig"),
            ((880, 1_000), (900, 1_000), "The gap of 2.0 points is below 5 points; the rates do "),
            ((950, 1_000), (800, 1_000), "The gap of 15.0 points is in favour of the group; the "),
        ],
    )
    def test_words_say_why_nothing_is_looked_into(self, group, base, why):
        text = str(self.gap(group, base))
        assert why in text
        assert text.endswith("would not look into this")
