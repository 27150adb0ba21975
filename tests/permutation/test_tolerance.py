"""p_fail, p_pass and bounds of one pair: against the slow reference, symmetric, and with an end."""

import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference import mover
from fairaudit_rs.inference.proportions import farrington_manning, ratio_score
from fairaudit_rs.inference.tolerance import (
    MAX_LOG_RATIO,
    UNKNOWN,
    TolerancePValues,
    fewest_resamples,
    gap_lower_bound,
    gap_upper_bound,
)
from fairaudit_rs.permutation.formulas import MarginTest

from ..reference import tolerance as reference


def both(tails, is_above):
    return tails.p_fail(is_above), tails.p_pass


def of_shares(x_1, n_1, x_2, n_2, tol):
    ends = (farrington_manning(x_1, n_1, x_2, n_2, end) for end in (-tol, tol))
    return both(MarginTest.of_scores(*ends).tails, x_1 / n_1 >= x_2 / n_2)


def of_ratio(x_1, n_1, x_2, n_2, rho):
    ends = (ratio_score(x_1, n_1, x_2, n_2, end) for end in (rho, 1 / rho))
    return both(MarginTest.of_scores(*ends).tails, x_1 / n_1 >= x_2 / n_2)


def of_logits(theta_1, se_1, theta_2, se_2, tol):
    one, other = (mover.by_logit(t, se, (0.0, 1.0)) for t, se in ((theta_1, se_1), (theta_2, se_2)))
    ends = (mover.margin_statistic(one, other, end) for end in (-tol, tol))
    return both(MarginTest.of_normal(*ends).tails, theta_1 >= theta_2)


class TestKnownValues:
    def test_at_a_tolerance_of_zero_it_is_the_two_sided_test(self):
        p_fail, p_pass = of_shares(60, 100, 45, 100, 0.0)
        pooled = 0.15 / math.sqrt(0.525 * 0.475 * 2 / 100)
        assert p_fail == pytest.approx(2 * stats.norm.sf(pooled), rel=1e-9)
        assert p_pass == pytest.approx(stats.norm.cdf(pooled), rel=1e-9)

    def test_far_from_zero_it_is_one_sided(self):
        p_fail, _ = of_shares(900, 1_000, 600, 1_000, 0.2)
        found = farrington_manning(900, 1_000, 600, 1_000, 0.2)
        assert p_fail == pytest.approx(stats.norm.sf(min(found)), rel=1e-9)

    def test_loanapp_race(self):
        """65 of 94 against 791 of 842, ratio 0.736: below 0.8 is not shown, p = 0.09 alone."""
        p_fail, p_pass = of_ratio(65, 94, 791, 842, 0.8)
        assert p_fail == pytest.approx(0.09, abs=0.005)
        assert p_pass > 0.5

    def test_law_race(self):
        """208 of 212 against 9,327 of 9,339: shown to be at least 0.8, p = 2e-11."""
        assert of_ratio(208, 212, 9_327, 9_339, 0.8)[1] == pytest.approx(2e-11, abs=5e-12)

    def test_dutch_sex(self):
        """.757 of 4,874 against 0.855 of 9,405 at 0.10, rounded counts: p_pass was .396."""
        assert of_shares(3_690, 4_874, 8_041, 9_405, 0.1)[1] == pytest.approx(0.39, abs=0.01)

    def test_where_nothing_is_known_both_are_one(self):
        assert both(UNKNOWN, True) == both(UNKNOWN, False) == (1.0, 1.0)
        assert of_ratio(0, 20, 0, 30, 0.8) == (1.0, 1.0)
        assert of_logits(1.0, 0.1, 0.5, 0.1, 0.1) == (1.0, 1.0)
        assert of_logits(0.4, 0.0, 0.5, 0.1, 0.1) == (1.0, 1.0)

    def test_simulated_ones_have_floors(self):
        """99 replicates, all at 0, a gap far beyond the tolerance, then far within it."""
        t = np.zeros(99)
        beyond = MarginTest.of_replicates(t, 10.0, 1.0, 1.0).tails
        within = MarginTest.of_replicates(t, 0.0, 1.0, 10.0).tails
        assert both(beyond, True) == (2 / 100, 1.0)
        assert both(within, True) == (1.0, 1 / 100)

    def test_so_many_replicates_let_a_family_fail(self):
        assert fewest_resamples(50, 0.05) == 2_000
        assert fewest_resamples(1_225, 0.05) == 49_000
        assert fewest_resamples(1, 0.01) == 200


class TestReference:
    def test_shares(self):
        rng = np.random.default_rng(1)
        for _ in range(60):
            n_1, n_2 = (int(n) for n in rng.integers(20, 300, 2))
            x_1, x_2 = int(rng.integers(0, n_1 + 1)), int(rng.integers(0, n_2 + 1))
            tol = float(rng.choice([0.02, 0.05, 0.1, 0.3]))
            found = of_shares(x_1, n_1, x_2, n_2, tol)
            assert found == pytest.approx(reference.of_shares(x_1, n_1, x_2, n_2, tol), abs=2e-5)

    def test_ratios(self):
        rng = np.random.default_rng(2)
        for _ in range(60):
            n_1, n_2 = (int(n) for n in rng.integers(20, 300, 2))
            x_1, x_2 = int(rng.integers(0, n_1 + 1)), int(rng.integers(1, n_2 + 1))
            rho = float(rng.choice([0.5, 0.8, 0.9]))
            found = of_ratio(x_1, n_1, x_2, n_2, rho)
            assert found == pytest.approx(reference.of_ratio(x_1, n_1, x_2, n_2, rho), abs=2e-5)

    def test_logits(self):
        rng = np.random.default_rng(3)
        for _ in range(5):
            values, errors = rng.uniform(0.05, 0.95, 2), rng.uniform(0.01, 0.1, 2)
            args = (values[0], errors[0], values[1], errors[1], float(rng.uniform(0, 0.2)))
            assert of_logits(*args) == pytest.approx(reference.of_logits(*args), abs=3e-4)

    def test_melded_limits(self):
        rng = np.random.default_rng(4)
        for gap in (-0.2, 0.0, 0.3):
            lower = [rng.normal(value, 0.05, 199) for value in (gap, 0.0)]
            upper = [part + rng.exponential(0.05, 199) for part in lower]
            (l_1, l_2), (u_1, u_2) = lower, upper
            for tol in (0.05, 0.15):
                tails = [
                    (1 + np.sum(extreme)) / 200
                    for m in (-tol, tol)
                    for extreme in (l_1 - u_2 <= m, u_1 - l_2 >= m)
                ]
                expected = reference.of_limits(l_1, u_1, l_2, u_2, gap, tol)
                assert both(TolerancePValues(*tails), gap >= 0) == pytest.approx(expected)


class TestProperties:
    PAIRS = ((65, 94, 791, 842), (0, 40, 12, 60), (40, 40, 30, 60), (5, 50, 60, 500))

    @pytest.mark.parametrize("counts", PAIRS)
    def test_groups_in_either_order(self, counts):
        x_1, n_1, x_2, n_2 = counts
        for test, tol in ((of_shares, 0.1), (of_ratio, 0.8)):
            swapped = test(x_2, n_2, x_1, n_1, tol)
            assert test(x_1, n_1, x_2, n_2, tol) == pytest.approx(swapped, rel=1e-9)

    @pytest.mark.parametrize("counts", PAIRS)
    def test_what_fails_cannot_pass(self, counts):
        for tol in (0.01, 0.05, 0.1, 0.2, 0.4):
            p_fail, p_pass = of_shares(*counts, tol)
            assert p_fail + p_pass >= 1 - 1e-12

    @pytest.mark.parametrize("level", [0.05, 0.001])
    @pytest.mark.parametrize("counts", PAIRS)
    def test_bounds_are_those_of_the_reference(self, counts, level):
        seen = abs(counts[0] / counts[1] - counts[2] / counts[3])
        shown = gap_lower_bound(lambda t: of_shares(*counts, t)[0], level, seen)
        by_grid = reference.shown_gap(lambda t: of_shares(*counts, t)[0], level, seen)
        assert by_grid <= shown + 1e-8 <= by_grid + seen / 1_000 + 2e-8
        most = 1 - 1e-9
        possible = gap_upper_bound(lambda t: of_shares(*counts, t)[1], level, seen, most)
        by_grid = reference.possible_gap(lambda t: of_shares(*counts, t)[1], level, most)
        assert by_grid >= possible - 1e-8 >= by_grid - 1 / 1_000
        assert shown <= seen <= possible

    def test_bounds_agree_with_the_tests(self):
        """Refuted at a tolerance if and only if the bound lies beyond it."""
        counts = (65, 94, 791, 842)
        seen = 791 / 842 - 65 / 94
        shown = gap_lower_bound(lambda t: of_shares(*counts, t)[0], 0.05, seen)
        assert of_shares(*counts, shown)[0] <= 0.05 < of_shares(*counts, shown + 1e-7)[0]
        possible = gap_upper_bound(lambda t: of_shares(*counts, t)[1], 0.05, seen, 1.0)
        assert of_shares(*counts, possible)[1] <= 0.05 < of_shares(*counts, possible - 1e-7)[1]

    def test_steps_of_replicates_are_found_too(self):
        values = np.sort(np.random.default_rng(5).normal(0.3, 0.1, 999))

        def p_fail(tol):
            return min(1.0, (2 + np.sum(values <= tol) + np.sum(values <= -tol)) / 1_000)

        shown = gap_lower_bound(p_fail, 0.05, 0.3)
        assert p_fail(shown) <= 0.05 < p_fail(shown + 1e-8)

    def test_bounds_where_nothing_is_shown(self):
        assert gap_lower_bound(lambda t: 1.0, 0.05, 0.3) == 0
        assert gap_upper_bound(lambda t: 1.0, 0.05, 0.3, 1.0) == 1
        assert gap_upper_bound(lambda t: 1.0, 0.05, 0.3, math.inf) == math.inf
        assert gap_upper_bound(lambda t: 1.0, 0.05, math.inf, math.inf) == math.inf

    def test_bounds_of_an_infinite_gap(self):
        """No one of 20 against 15 of 20: the ratio is at most 0.2 or so, and can be 0."""

        def p_fail(distance):
            return of_ratio(0, 20, 15, 20, math.exp(-distance))[0]

        shown = gap_lower_bound(p_fail, 0.05, MAX_LOG_RATIO)
        assert p_fail(shown) == pytest.approx(0.05, rel=1e-6)
        assert 0.1 < math.exp(-shown) < 0.25


class TestAdviceOfEquivalence:
    """Sentences without proof of equality: the gap is beyond, or the required rows."""

    def sentence(self, counts, **options):
        groups = np.repeat(list(counts), [n for _, n in counts.values()])
        decided = np.concatenate([np.repeat([1, 0], [k, n - k]) for k, n in counts.values()])
        options = {"metric": "selection_rate", "margin": 0.1} | options
        return fa.equivalence_test(y_pred=decided, sensitive_features=groups, **options).summary()

    def test_a_ratio_that_is_far_beyond_needs_no_rows(self):
        found = self.sentence({"f": (652, 8_050), "m": (4_240, 16_371)}, margin=0.8, scale="ratio")
        assert "More rows are not needed: its 90 % interval, 0.293 to 0.334, lies beyond" in found
        assert "would show" not in found

    def test_of_several_pairs_the_interval_is_of_one_alone(self):
        found = self.sentence({"a": (100, 900), "b": (800, 900), "c": (450, 900)})
        assert "of this one of 3 pairs alone, lies beyond these bounds" in found

    def test_a_few_rows_do_not_tell_by_a_formula_for_many(self):
        found = self.sentence({"a": (2, 2), "b": (58, 98)})
        assert found.endswith("(p = 0.8262).")

    def test_rows_that_would_tell_stay(self):
        found = self.sentence({"a": (30, 100), "b": (33, 100)})
        assert "would show with probability 0.8 that it lies within these bounds" in found
