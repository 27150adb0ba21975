"""The four-fifths rule: ratio to the highest rate, its tests for all comparisons, its sentences."""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.auditing.rules.us_eeoc import OUTCOMES, impact_ratios
from fairaudit_rs.errors import ArgumentError

#: Of loanapp, logistic regression: verdicts 5.1.
LOANS = {"black": (65, 94), "white": (791, 842)}


def flags_as_floats(x, n, y, m):
    """The broken variant: rates and ratios with rounding."""
    return (x / n) / (y / m) < 0.8


class TestKnownValues:
    def test_the_published_example(self):
        [row] = impact_ratios(LOANS)
        assert (row.group, row.reference, row.total) == ("black", "white", 94)
        assert row.ratio == pytest.approx(0.736, abs=5e-4)
        assert row.interval == pytest.approx((0.63, 0.83), abs=5e-3)
        assert row.pvalue == pytest.approx(3e-16, rel=0.2)
        assert 1 - row.confidence_below == pytest.approx(0.09, abs=5e-3)
        assert (row.flagged, row.significant) == (True, True)
        assert row.shortfall == math.ceil(4 * 791 * 94 / (5 * 842)) - 65 == 6

    def test_mending_the_shortfall_mends_the_ratio(self):
        [row] = impact_ratios({"black": (65 + 6, 94), "white": (791, 842)})
        assert not row.flagged
        assert row.shortfall == 0
        [row] = impact_ratios({"black": (65 + 5, 94), "white": (791, 842)})
        assert row.flagged
        assert row.shortfall == 1

    @pytest.mark.parametrize(
        ("counts", "cell"),
        [
            ({"a": (30, 100), "b": (50, 100)}, (True, True)),
            ({"a": (3, 10), "b": (5, 10)}, (True, False)),
            ({"a": (8_500, 10_000), "b": (9_000, 10_000)}, (False, True)),
            ({"a": (85, 100), "b": (90, 100)}, (False, False)),
        ],
    )
    def test_four_cells_of_words(self, counts, cell):
        [row] = impact_ratios(counts)
        assert (row.flagged, row.significant) == cell
        assert row.words == OUTCOMES[cell]
        assert row.words in str(row)

    def test_words_promise_nothing(self):
        for words in (*OUTCOMES.values(), str(impact_ratios(LOANS)[0])):
            assert "pass" not in words.lower()

    def test_exactly_four_fifths_is_not_below(self):
        # 4/5 of 3/7 is 12/35: as floats it is below.
        [row] = impact_ratios({"a": (12, 35), "b": (3, 7)})
        assert not row.flagged
        assert row.shortfall == 0
        broken = [
            (4 * x * k, 5 * n * k, x, n)
            for n in range(1, 60) for x in range(1, n + 1) for k in (1, 3)
            if flags_as_floats(4 * x * k, 5 * n * k, x, n)
        ]  # fmt: skip
        assert broken
        for x, n, y, m in broken[:20]:
            [row] = impact_ratios({"a": (x, n), "b": (y, m)})
            assert not row.flagged

    def test_nobody_is_selected(self):
        rows = impact_ratios({"a": (0, 40), "b": (0, 50)})
        assert [row.reason for row in rows] == ["nobody is selected in any group"]
        assert math.isnan(rows[0].ratio)
        assert math.isnan(rows[0].adjusted_pvalue)
        assert math.isnan(rows[0].confidence_below)
        assert not rows[0].rules_out
        assert str(rows[0]) == "a: nobody is selected in any group"

    def test_a_group_without_selections(self):
        [row] = impact_ratios({"a": (0, 40), "b": (25, 50)})
        assert (row.ratio, row.flagged, row.interval[0]) == (0, True, 0)
        assert row.confidence_below > 0.999
        assert row.shortfall == 16

    def test_all_groups_go_against_the_highest(self):
        rows = impact_ratios({"a": (10, 50), "b": (30, 50), "c": (20, 50)})
        assert [(row.group, row.reference) for row in rows] == [("a", "b"), ("c", "b")]

    def test_few_rows_are_tested_exactly(self):
        [row] = impact_ratios({"a": (1, 6), "b": (5, 8)})
        assert row.method == "Fisher's exact test"
        assert row.pvalue == pytest.approx(stats.fisher_exact([[1, 5], [5, 3]]).pvalue)


#: Of four groups, the third with the highest rate.
FOUR = {"a": (20, 33), "b": (45, 60), "c": (50, 62), "d": (40, 60)}


class TestAllComparisons:
    """The highest rate is known only after looking: k groups make C(k, 2) comparisons."""

    def test_pvalues_are_adjusted_for_all_pairs(self):
        rows = impact_ratios(FOUR)
        assert {row.n_comparisons for row in rows} == {6}
        alone = impact_ratios({name: FOUR[name] for name in "ac"})
        first, unadjusted = rows[0], alone[0]
        assert (first.group, first.pvalue) == ("a", unadjusted.pvalue)
        assert first.adjusted_pvalue == pytest.approx(6 * unadjusted.pvalue)
        assert (first.significant, unadjusted.significant) == (False, True)
        # The score test of a true ratio of 0.8 or more, adjusted: 1 - min(1, C(k, 2) p).
        p = 1 - impact_ratios(LOANS)[0].confidence_below
        [loans] = impact_ratios(LOANS, n_comparisons=3)
        assert loans.confidence_below == pytest.approx(1 - 3 * p)
        assert impact_ratios(LOANS, n_comparisons=100)[0].confidence_below == 0

    def test_what_is_ruled_out_is_a_bound_and_no_probability(self):
        counts = {"a": (35, 100), "b": (62, 100)}
        [alone] = impact_ratios(counts)
        [among] = impact_ratios(counts, n_comparisons=28)
        assert (alone.rules_out, among.rules_out) == (True, False)
        assert str(alone).endswith(
            "The data rule out a true ratio of 0.80 or more (95 % confidence)"
        )
        assert str(among).endswith(
            "The data do not rule out a true ratio of 0.80 or more (95 % confidence, adjusted for "
            "28 comparisons)"
        )
        assert "99 % confidence" in str(impact_ratios(counts, alpha=0.01)[0])
        for row in (alone, among):
            assert "with a confidence of" not in str(row)

    def test_a_line_names_the_test_and_its_numbers(self):
        text = str(impact_ratios(FOUR)[0])
        for part in (
            "a: 60.6 % of 33 selected, 0.752 times the highest rate, that of c (80.6 % of 62)",
            "below four fifths, but the rates do not differ significantly: flag by the ratio alone",
            "z = -2.11, p = 0.0347 by the pooled z test, unadjusted; p = 0.2082 adjusted for 6 "
            "comparisons (Bonferroni, all pairs of groups)",
            "2 more selections would make it four fifths",
        ):
            assert part in text
        assert (
            "p = 1.0000 by Fisher's exact test, as equal rates expect fewer than 5 people in"
            in (str(impact_ratios({"a": (1, 6), "b": (2, 8)})[0]))
        )


def audited(counts, name="sex", **options):
    group = np.repeat(list(counts), [n for _, n in counts.values()])
    hired = np.concatenate([np.arange(n) < x for x, n in counts.values()]).astype(int)
    given = {"y_pred": hired, "sensitive_features": {name: group}, "policy": "us_eeoc", "rng": 1}
    return fa.audit(**{**given, **options})


class TestAudit:
    def test_groups_below_our_minimum_are_in_the_lines_of_the_rule(self):
        """The verdict needs 30 rows, the rule does not: one page must not contradict itself."""
        audit = audited({"female": (5, 20), "male": (18, 25)})
        assert audit.verdict == "not_measurable"
        own = (
            "sex: female and male have fewer than 30 rows and no verdict here. This minimum is our "
            "own: us_eeoc has none, and its own lines are about all groups"
        )
        assert own in audit.warnings
        [line] = [line for line in audit.rule_lines if line.startswith("sex: female")]
        assert "significantly: flag" in line
        assert line.endswith(
            "female has 20 rows and male has 25 rows, below the 30 that this audit needs for a "
            "verdict; us_eeoc has no such minimum"
        )
        large = audited({"female": (50, 200), "male": (180, 250)})
        assert "minimum" not in str(large)

    def test_the_highest_rate_is_named(self):
        audit = audited({"female": (150, 200), "male": (180, 250), 1: (9, 40)})
        assert audit.rule_lines[0] == (
            "sex: female (75.0 % of 200) has the highest rate: the others are compared with it"
        )
        numbers = audited({0: (50, 200), 1: (180, 250)}, "male")
        assert numbers.rule_lines[0].startswith("male: male=1 (72.0 % of 250) has the highest")
        assert numbers.rule_lines[1].startswith("male: male=0: 25.0 % of 200 selected")

    def test_comparisons_are_those_of_all_attributes(self):
        rng = np.random.default_rng(0)
        by = {"sex": rng.choice(["f", "m"], 900), "race": rng.choice(list("abcd"), 900)}
        audit = audited(LOANS, sensitive_features=by, y_pred=rng.integers(0, 2, 900))
        assert audit.n_comparisons == 7
        rows = [
            row for attribute in audit.rule_report.attributes for row in attribute.impact_ratios
        ]
        assert [row.n_comparisons for row in rows] == [7] * 4

    def test_it_is_a_rule_about_the_selection_of_employees(self):
        policy = fa.Policy.preset("us_eeoc")
        assert "Employee Selection" in policy.description
        assert "about the selection of employees" in policy.is_not
        assert any("selection of employees" in line for line in audited(LOANS).rule_lines)

    def test_numbers_are_stored(self):
        audit = audited(LOANS)
        content = json.loads(json.dumps(audit.to_dict()))
        [row] = content["rule_report"]["attributes"][0]["impact_ratios"]
        assert (row["group"], row["method"], row["flagged"]) == ("black", "pooled z test", True)
        again = fa.from_dict(content)
        assert again.rule_report == audit.rule_report
        assert again.rule_lines == audit.rule_lines
        assert audited(LOANS, policy="parity").rule_report is None


def test_arguments():
    with pytest.raises(ArgumentError, match="alpha is 2; accepted"):
        impact_ratios(LOANS, alpha=2)


@pytest.mark.calibration
def test_the_rule_flags_half_of_what_is_exactly_four_fifths():
    """METHODS 6: at a true ratio of 0.8 it flags 50 %; confidence is above 0.95 in 5 %."""
    rng = np.random.default_rng(18)
    n, m, rate, sims = 2_000, 20_000, 0.6, 2_000
    x, y = rng.binomial(n, 0.8 * rate, sims), rng.binomial(m, rate, sims)
    rows = [impact_ratios({"a": (a, n), "b": (b, m)})[0] for a, b in zip(x, y, strict=True)]
    flagged = sum(row.flagged for row in rows)
    sure = sum(row.confidence_below > 0.95 for row in rows)
    assert stats.binomtest(flagged, sims, 0.5).pvalue > 1e-6
    assert stats.binomtest(sure, sims, 0.05).pvalue > 1e-6
    # The flag does not keep 5 %.
    assert stats.binomtest(flagged, sims, 0.05).pvalue < 1e-6


#: Groups that are all equal: how many, people of each, and the rate (audit page 1.7).
EQUAL = [(5, 60, 0.4), (8, 60, 0.4), (8, 200, 0.2), (12, 40, 0.5)]


@pytest.mark.calibration
@pytest.mark.parametrize(("k", "n", "rate"), EQUAL)
def test_equal_groups_are_rarely_called_unequal(k, n, rate):
    """At most 5 % of audits of equal groups have a significant flag, or a ratio ruled out.

    Without the adjustment (the old rule, which is one comparison) far more have.
    """
    rng = np.random.default_rng(28)
    audits = 2_000
    counts = {"flag": 0, "sure": 0, "old flag": 0, "old sure": 0}
    for x in rng.binomial(n, rate, (audits, k)).tolist():
        groups = {i: (hits, n) for i, hits in enumerate(x)}
        lowest = min(groups, key=lambda i: groups[i][0])
        # Of groups of one size the lowest decides: its p-values are the smallest.
        highest = max(groups, key=lambda i: groups[i][0])
        pair = {0: groups[lowest], 1: groups[highest]}
        if groups[lowest] == groups[highest]:
            continue
        for name, m in (("", len(list(combinations(groups, 2)))), ("old ", 1)):
            [row] = impact_ratios(pair, n_comparisons=m)
            counts[f"{name}flag"] += row.flagged and row.significant
            counts[f"{name}sure"] += row.confidence_below >= 0.95
            assert row.rules_out == (row.confidence_below >= 0.95)
    most = stats.binom.isf(1e-6, audits, 0.05)
    assert max(counts["flag"], counts["sure"]) <= most
    assert counts["old flag"] > most
    if k > 5:
        assert counts["old sure"] > most / 2


@pytest.mark.calibration
def test_a_ratio_of_four_fifths_is_rarely_ruled_out():
    """Seven groups at exactly four fifths of the highest rate: 5 % of audits, all together."""
    rng = np.random.default_rng(29)
    audits, k, n, rate = 300, 8, 400, 0.6
    wrong, old = 0, 0
    for x in rng.binomial(n, 0.8 * rate, (audits, k - 1)).tolist():
        counts = dict(enumerate([(hits, n) for hits in x]))
        counts[k] = (int(rng.binomial(20_000, rate)), 20_000)
        rows = impact_ratios(counts)
        wrong += any(row.rules_out for row in rows)
        alone = impact_ratios(counts, n_comparisons=1)
        old += any(row.rules_out for row in alone)
    most = stats.binom.isf(1e-6, audits, 0.05)
    assert wrong <= most < old
