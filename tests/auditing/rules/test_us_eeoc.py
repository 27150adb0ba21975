"""The four-fifths rule: ratio to the highest rate, four cells of words, shortfall, confidence."""

import math

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs.auditing.rules.us_eeoc import CELLS, impact_ratios, summary
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
        assert row.words == CELLS[cell]
        assert row.words in str(row)

    def test_words_promise_nothing(self):
        for words in (*CELLS.values(), summary(LOANS, impact_ratios(LOANS))):
            assert "pass" not in words.lower()
        even = {"a": (90, 100), "b": (90, 100)}
        assert "The rule has no pass" in summary(even, impact_ratios(even))
        assert summary(LOANS, impact_ratios(LOANS)) == (
            "highest rate: white 93.9 % of 842. 1 of 1 groups below four fifths of it: black 0.736 "
            "(flag: below four fifths, and significant)"
        )

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
        assert [row.reason for row in rows] == ["nobody is selected"]
        assert math.isnan(rows[0].ratio)
        assert str(rows[0]) == "a: nobody is selected"

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


def test_arguments():
    with pytest.raises(ArgumentError, match="alpha is 2; accepted"):
        impact_ratios(LOANS, alpha=2)


@pytest.mark.calibration
def test_the_rule_flags_half_of_what_is_exactly_four_fifths():
    """METHODS 6: at a true ratio of .8 it flags 50 %; confidence is above .95 in 5 %."""
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
