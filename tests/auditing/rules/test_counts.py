"""Counts of groups, and tests of equal rates."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs.auditing.rules import counts
from fairaudit_rs.errors import ArgumentError, ArgumentTypeError, DataError
from fairaudit_rs.inference import exact_tests

S = counts.SelectionCount


class TestArguments:
    @pytest.mark.parametrize(
        ("given", "error", "message"),
        [
            (3, ArgumentTypeError, "counts is 3; accepted: a dict with .selected, total."),
            ({"a": 3, "b": 4}, ArgumentTypeError, "counts of 'a' is 3; accepted"),
            ({"a": "12", "b": (1, 2)}, ArgumentTypeError, "counts of 'a' is '12'"),
            ({"a": (3, 2), "b": (1, 2)}, ArgumentError, "selected of 'a' is 3; accepted: a whole"),
            ({"a": (0, 0), "b": (1, 2)}, ArgumentError, "total of 'a' is 0"),
            ({"a": (0.5, 2), "b": (1, 2)}, ArgumentTypeError, "selected of 'a' is 0.5"),
            ({"a": (1, 2)}, DataError, "counts has 1 groups; accepted: 2 or more"),
        ],
    )
    def test_counts(self, given, error, message):
        with pytest.raises(error, match=message):
            counts.check_counts(given)

    def test_whole_floats_and_integers_of_numpy(self):
        made = counts.check_counts({"a": (np.int64(1), 2.0), "b": np.array([1, 3])})
        assert made == {"a": (1, 2), "b": (1, 3)}

    def test_a_reference_that_there_is_not(self):
        with pytest.raises(
            DataError, match="reference is 'x', which is not a group; accepted: 'a'"
        ):
            counts.found_in({"a": S(1, 2)}, "x")


class TestReference:
    @pytest.mark.parametrize("seed", range(30))
    def test_fisher_is_that_of_scipy(self, seed):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(1, 60, 2)
        x, y = rng.integers(0, n + 1), rng.integers(0, m + 1)
        wanted = stats.fisher_exact([[x, n - x], [y, m - y]]).pvalue
        assert exact_tests.fisher_pvalue(x, n, y, m) == pytest.approx(wanted, rel=1e-9)

    def test_fisher_of_few_among_many(self):
        wanted = stats.fisher_exact([[1, 7], [500_000, 500_000]]).pvalue
        assert exact_tests.fisher_pvalue(1, 8, 500_000, 1_000_000) == pytest.approx(
            wanted, rel=1e-7
        )

    @pytest.mark.parametrize("seed", range(10))
    def test_chi_squared_is_that_of_scipy_without_correction(self, seed):
        rng = np.random.default_rng(seed)
        n, m = rng.integers(20, 900, 2)
        x, y = rng.integers(1, n), rng.integers(1, m)
        table = [[x, n - x], [y, m - y]]
        wanted = stats.chi2_contingency(table, correction=False)
        assert exact_tests.pooled_z(x, n, y, m) ** 2 == pytest.approx(wanted.statistic)
        assert exact_tests.two_sided(exact_tests.pooled_z(x, n, y, m)) == pytest.approx(
            wanted.pvalue
        )
        assert exact_tests.least_expected(x, n, y, m) == pytest.approx(wanted.expected_freq.min())


class TestKnownValues:
    def test_few_rows_take_the_exact_test(self):
        assert counts.equal_rates_test(S(4, 10), S(6, 10)).method == "pooled z test"
        assert counts.equal_rates_test(S(3, 10), S(6, 10)).method == "Fisher's exact test"
        assert counts.equal_rates_test(S(4, 10), S(6, 10), 21).method == "Fisher's exact test"
        assert counts.equal_rates_test(S(4, 10), S(6, 10), 20).method == "chi-squared test"

    def test_nothing_varies(self):
        assert counts.equal_rates_test(S(0, 900), S(0, 900)).pvalue == 1
        assert counts.equal_rates_test(S(900, 900), S(900, 900), 0).pvalue == 1

    @pytest.mark.parametrize("seed", range(40))
    def test_a_shortfall_is_the_least_that_mends_it(self, seed):
        rng = np.random.default_rng(seed)
        n, m = (int(v) for v in rng.integers(1, 300, 2))
        one = S(int(rng.integers(0, n + 1)), n)
        top = S(int(rng.integers(1, m + 1)), m)
        missing = counts.selection_shortfall(one, top, Fraction(4, 5))
        enough = [k for k in range(n + 1) if 5 * (one.selected + k) * m >= 4 * top.selected * n]
        assert missing == enough[0]
        rounded = math.ceil(0.8 * top.rate * n) - one.selected
        assert missing in (max(rounded, 0), max(rounded - 1, 0))

    def test_the_highest_rate(self):
        assert counts.highest_rate_group({"a": S(1, 2), "b": S(10, 20), "c": S(3, 7)}) == "b"
