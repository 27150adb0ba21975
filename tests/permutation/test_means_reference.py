"""The reference for means and ratios of unknown range is right: formulas against brute force."""

import itertools
import math

import numpy as np
import pytest
from scipy import linalg, stats

from ..reference import means, means_intervals
from ..reference import permutation as tables
from ..reference import rows as row_reference


def make(seed=0, sizes=(7, 9), ratio=True, zeros=False):
    """(a, d, group) of rows: a skewed numerator, and a denominator that varies or is None."""
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    a = rng.exponential(size=n) + 0.3 * rng.standard_normal(n)
    d = rng.integers(1, 5, n) * 0.5 if ratio else None
    if zeros:
        a[::4], d[::4] = 0.0, 0.0
    return a, d, rng.permutation(np.repeat(["a", "b"], sizes))


def strata_of(seed, sizes):
    """(a, d, group, stratum) with (n_s1, n_s2) units in stratum s."""
    rng = np.random.default_rng(seed)
    group = np.concatenate([np.repeat(["a", "b"], pair) for pair in sizes])
    stratum = np.repeat(np.arange(len(sizes)), [sum(pair) for pair in sizes])
    a = rng.exponential(size=len(group)) + stratum
    return a, rng.integers(1, 5, len(group)) * 0.5, group, stratum


FULL = [(3, 4), (2, 5), (4, 2)]
SPARSE = [(1, 4), (3, 4), (2, 1), (1, 1), (3, 2)]


class TestOneStatistic:
    def test_a_mean_is_welch(self):
        a, _, group = make(ratio=False)
        found = means.linearised(a, None, group)
        expected = stats.ttest_ind(a[group == "a"], a[group == "b"], equal_var=False).statistic
        assert found.studentized == pytest.approx(expected, rel=1e-12)

    def test_third_sums_of_a_mean(self):
        a, _, group = make(ratio=False)
        found = means.linearised(a, None, group)
        third = sum(
            sign * np.sum((own - own.mean()) ** 3) / len(own) ** 3
            for sign, own in ((1, a[group == "a"]), (-1, a[group == "b"]))
        )
        v = sum(np.var(a[group == name], ddof=1) / np.sum(group == name) for name in "ab")
        assert found.skewness == pytest.approx(third / v**1.5, rel=1e-12)

    def test_a_ratio_is_that_of_the_rows(self):
        a, d, group = make()
        found = means.linearised(a, d, group)
        own = [row_reference.ratio_estimate(a[group == name], d[group == name]) for name in "ab"]
        assert found.difference == pytest.approx(own[0][0] - own[1][0], rel=1e-12)
        assert found.variance == pytest.approx(own[0][1] + own[1][1], rel=1e-12)
        plain = means.linearised(a, d, group, clusters=True)
        assert plain.variance == pytest.approx(own[0][1] * 6 / 7 + own[1][1] * 8 / 9, rel=1e-12)
        assert plain.third == found.third

    def test_units_of_nothing_do_not_count(self):
        a, d, group = make(zeros=True)
        keep = (a != 0) | (d != 0)
        assert means.linearised(a, d, group) == means.linearised(a[keep], d[keep], group[keep])
        assert means.counted([0.0, 0.0, 1.0], [0.0, 1.0, 0.0]).tolist() == [False, True, True]

    def test_hall_is_monotone_with_the_derivative_of_the_page(self):
        t = np.linspace(-12, 12, 2001)
        for kappa in (-2.0, -0.3, 0.1, 1.5):
            h = np.array([means.hall(value, kappa) for value in t])
            assert np.all(np.diff(h) >= -1e-12)
            middle = (t[1:] + t[:-1]) / 2
            # The derivative (1 + kappa T/3)^2 is quadratic: the secant of the cubic is its mean.
            mean = (1 + kappa * middle / 3) ** 2 + (kappa * (t[1] - t[0])) ** 2 / 108
            np.testing.assert_allclose(np.diff(h) / np.diff(t), mean, atol=1e-8)
            closed = ((1 + kappa * t / 3) ** 3 - 1) / kappa + kappa / 6
            np.testing.assert_allclose(h, closed, atol=1e-9)
        assert means.hall(1.25, 0.0) == 1.25
        assert means.hall(-math.inf, 0.4) == -math.inf

    def test_without_variance(self):
        group = np.array(list("aabb"))
        equal = means.linearised([0.1, 0.1, 0.1, 0.1], None, group)
        assert (equal.studentized, equal.hall) == (0, 0)
        lower = means.linearised([0.1, 0.1, 0.3, 0.3], None, group)
        assert (lower.studentized, lower.hall) == (-math.inf, -math.inf)

    def test_groups_that_cannot_be_measured(self):
        alone = means.linearised([1.0, 2.0, 4.0], None, np.array(list("abb")))
        assert math.isnan(alone.studentized)
        assert math.isnan(alone.hall)
        none = means.linearised([1.0, 2.0], [0.0, 1.0], np.array(list("ab")))
        assert math.isnan(none.studentized)


class TestStrata:
    @pytest.mark.parametrize("sizes", [FULL, SPARSE])
    def test_both_forms_of_the_gap(self, sizes):
        a, d, group, stratum = strata_of(1, sizes)
        numerator = weight = 0
        for number in range(len(sizes)):
            (a_1, d_1), (a_2, d_2) = (
                (a[rows].sum(), d[rows].sum())
                for rows in ((stratum == number) & (group == label) for label in "ab")
            )
            numerator += (a_1 * d_2 - a_2 * d_1) / (d_1 + d_2)
            weight += d_1 * d_2 / (d_1 + d_2)
        found = means.stratified(a, d, group, stratum)
        assert found.difference == pytest.approx(numerator / weight, rel=1e-12)

    def test_variance_of_means_is_the_sum_of_those_of_the_strata(self):
        a, _, group, stratum = strata_of(2, FULL)
        k = np.array([number * two / (number + two) for number, two in FULL])
        v = sum(
            (k[number] / k.sum()) ** 2
            * np.var(a[(stratum == number) & (group == label)], ddof=1)
            / FULL[number][which]
            for number in range(len(FULL))
            for which, label in enumerate("ab")
        )
        found = means.stratified(a, None, group, stratum)
        assert found.variance == pytest.approx(v, rel=1e-12)
        assert found.n_single == 0

    def test_one_stratum_is_none_but_for_the_third_sum(self):
        """Within strata u holds sqrt(n/(n-1)), so its cubes do; the raw third sums do not."""
        a, d, group = make(3)
        whole = means.linearised(a, d, group)
        found = means.stratified(a, d, group, np.zeros(len(a)))
        assert found.studentized == pytest.approx(whole.studentized, rel=1e-12)
        thirds = [np.sum(means.of_group(a[group == g], d[group == g]).influence ** 3) for g in "ab"]
        factors = (7 / 6) ** 1.5, (9 / 8) ** 1.5
        assert found.third == pytest.approx(thirds[0] * factors[0] - thirds[1] * factors[1])
        assert whole.third == pytest.approx(thirds[0] - thirds[1])

    def test_strata_of_one_unit_are_units(self):
        """All strata 1 + 1, d = 1: a paired test, T of the differences."""
        a, _, group, stratum = strata_of(4, [(1, 1)] * 12)
        found = means.stratified(a, None, group, stratum)
        expected = stats.ttest_1samp(a[group == "a"] - a[group == "b"], 0)
        assert found.studentized == pytest.approx(expected.statistic, rel=1e-12)
        assert found.n_single == 12
        rest = (a[group == "a"] - a[group == "b"] - found.difference) / 12
        assert found.third == pytest.approx(np.sum(rest**3), rel=1e-12)

    def test_one_alone_is_inconclusive(self):
        found = means.stratified(*strata_of(5, [(1, 4), (3, 3)]))
        assert math.isnan(found.variance)
        assert math.isnan(found.studentized)
        assert math.isfinite(found.difference)

    def test_a_stratum_without_one_group_takes_no_part(self):
        a, d, group, stratum = strata_of(6, [*FULL, (3, 0)])
        keep = stratum < 3
        whole = means.stratified(a, d, group, stratum)
        assert whole.n_left_out == 1
        part = means.stratified(a[keep], d[keep], group[keep], stratum[keep])
        assert whole.studentized == part.studentized
        assert whole.hall == part.hall

    def test_weights_and_repeated_rows_agree_on_the_gap(self):
        a, d, group, stratum = strata_of(7, FULL)
        times = np.random.default_rng(7).integers(1, 4, len(a))
        weighted = means.stratified(times * a, times * d, group, stratum)
        repeated = means.stratified(*(np.repeat(value, times) for value in (a, d, group, stratum)))
        assert weighted.difference == pytest.approx(repeated.difference, rel=1e-12)

    @pytest.mark.parametrize("sizes", [FULL, SPARSE])
    def test_general_form_of_a_mean_is_the_mean(self, sizes):
        a, _, group, stratum = strata_of(8, sizes)
        strata = []
        for number in range(len(sizes)):
            pair = []
            for label in "ab":
                own = a[(stratum == number) & (group == label)]
                v = row_reference.clustered_ratio_variance(own, cluster=np.arange(len(own)))
                pair.append(means.Part(own.mean(), v, len(own), means.effective_number(own**0)))
            strata.append(tuple(pair))
        general = means.stratified_general(strata)
        found = means.stratified(a, None, group, stratum)
        assert general.difference == pytest.approx(found.difference, rel=1e-12)
        assert general.variance == pytest.approx(found.variance, rel=1e-12)
        assert general.hall == general.studentized

    def test_general_form_leaves_out_what_is_undefined(self):
        pair = means.Part(0.5, 0.01, 20, 20.0), means.Part(0.4, 0.02, 30, 25.0)
        lost = means.Part(math.nan, math.nan, 4, 4.0), means.Part(0.4, 0.02, 30, 25.0)
        whole = means.stratified_general([pair, lost])
        assert whole.n_left_out == 1
        assert whole.studentized == means.stratified_general([pair]).studentized
        assert whole.variance == pytest.approx(0.01 * 20 / 19 + 0.02 * 30 / 29)

    def test_a_variance_that_is_corrected_gets_no_factor(self):
        rng = np.random.default_rng(9)
        y, score = rng.permutation(np.repeat([0, 1], 15)), rng.random(30)
        v = row_reference.delong_variance(y, score)
        part = means.Part(row_reference.auc(y, score), v, 30, 30.0, corrected=True)
        found = means.stratified_general([(part, part), (part, part)])
        assert found.variance == pytest.approx(v)

    def test_effective_number(self):
        assert means.effective_number([2.0, 2.0, 2.0]) == pytest.approx(3)
        assert means.effective_number([1.0, 2.0]) == pytest.approx(9 / 5)


class TestOmnibus:
    @pytest.mark.parametrize("ratio", [False, True])
    def test_one_stratum_is_wald(self, ratio):
        a, d, _ = make(10, (9, 15), ratio)
        group = np.random.default_rng(10).permutation(np.repeat(list("abcd"), (4, 6, 5, 9)))
        ones = np.ones(24) if d is None else d
        parts = [means.of_group(a[group == name], ones[group == name]) for name in "abcd"]
        expected = tables.wald(
            [part.theta for part in parts],
            [means.variance_of_group(part, clusters=False) for part in parts],
        )
        found = means.omnibus_stratified(a, d, group, np.zeros(24))
        assert found == pytest.approx(expected, rel=1e-10)

    def test_two_groups_are_the_square(self):
        a, d, group, stratum = strata_of(11, FULL)
        found = means.omnibus_stratified(a, d, group, stratum)
        expected = means.stratified(a, d, group, stratum).studentized ** 2
        assert found == pytest.approx(expected, rel=1e-10)

    def test_the_order_of_groups_does_not_matter(self):
        rng = np.random.default_rng(12)
        group, stratum = np.tile(list("abc"), 12), np.repeat([0, 1, 2], 12)
        group[:3] = "b"
        a = rng.exponential(size=36) + stratum
        other = np.array([{"a": "z", "b": "a", "c": "c"}[value] for value in group])
        found = means.omnibus_stratified(a, None, group, stratum)
        assert found == pytest.approx(means.omnibus_stratified(a, None, other, stratum), rel=1e-10)

    def test_strata_of_one_unit_enter_by_their_contribution(self):
        a, _, group, stratum = strata_of(13, [(1, 1)] * 10)
        gap = (a[group == "a"] - a[group == "b"]) / 2
        found = means.omnibus_stratified(a, None, group, stratum)
        assert found == pytest.approx(gap.sum() ** 2 / np.sum(gap**2), rel=1e-10)


class TestPermutation:
    def enumerated(self, values, n_first, level):
        """The share of all labellings of these values that the test with all labellings rejects."""
        n = len(values)
        found = []
        for chosen in itertools.combinations(range(n), n_first):
            group = np.array(["a" if i in chosen else "b" for i in range(n)])
            one = means.linearised(values, None, group)
            found.append((one.studentized, one.hall))
        p = [means.max_pvalues(row, found[:i] + found[i + 1 :]) for i, row in enumerate(found)]
        return [
            np.mean([getattr(value, side) <= level + 1e-12 for value in p])
            for side in ("greater", "less", "two_sided")
        ]

    @pytest.mark.parametrize("seed", range(3))
    def test_exact_under_equal_laws(self, seed):
        """Given the values, every labelling is equally likely: no level is exceeded."""
        values = np.exp(1.5 * np.random.default_rng(seed).standard_normal(8))
        for level in (0.05, 0.1, 0.3):
            rejected = self.enumerated(values, 3, level)
            assert max(rejected) <= level + 1e-12
            assert max(rejected) > 0

    def test_ties_are_extreme(self):
        assert means.is_beyond(1.0 - 1e-13, 1.0, 1)
        assert not means.is_beyond(1.0 - 1e-11, 1.0, 1)
        assert means.is_beyond(-math.inf, -math.inf, -1)
        assert not means.is_beyond(1e300, math.inf, 1)
        p = means.max_pvalues((1.0, 2.0), [(1.0, 0.0), (3.0, 1.0), (0.0, 3.0)])
        assert (p.greater, p.less) == (3 / 4, 3 / 4)
        of_h = means.max_pvalues((2.0, 1.0), [(1.0, 0.0), (3.0, 1.0), (0.0, 3.0)])
        assert (of_h.greater, of_h.less) == (3 / 4, 3 / 4)
        of_t = means.max_pvalues((1.0, 2.0), [(1.0, 3.0), (3.0, 1.0), (2.0, 0.0)])
        assert of_t.greater == 1.0

    def test_undefined_replicates_are_extreme_on_both_sides(self):
        p = means.max_pvalues((5.0, 5.0), [(math.nan, math.nan), (0.0, 0.0), (0.0, 0.0)])
        assert (p.greater, p.less, p.two_sided) == (1 / 2, 1.0, 1.0)

    def test_all_of_it(self):
        a, d, group, stratum = strata_of(14, SPARSE)
        one = means.pvalues(a, d, group, stratum, n_resamples=50, rng=np.random.default_rng(3))
        two = means.pvalues(
            3 * a + d, d, group, stratum, n_resamples=50, rng=np.random.default_rng(3)
        )
        assert one == two


DESIGNS = {
    "mean": lambda: (*make(20, ratio=False), None),
    "ratio": lambda: (*make(21), None),
    "units of nothing": lambda: (*make(22, (9, 11), zeros=True), None),
    "strata": lambda: strata_of(23, FULL),
    "one unit": lambda: strata_of(24, SPARSE),
    "mean, one unit": lambda: tuple(
        None if place == 1 else stratum for place, stratum in enumerate(strata_of(25, SPARSE))
    ),
}


@pytest.mark.parametrize("design", DESIGNS)
class TestStoredSums:
    @pytest.mark.parametrize("clusters", [False, True])
    def test_equal_to_shifting(self, design, clusters):
        a, d, group, stratum = DESIGNS[design]()
        rng = np.random.default_rng(30)
        first = group == "a"
        for column in [group, *means.shuffled_groups(group, stratum, 10, rng)]:
            coefficients = means_intervals.stored_coefficients(
                a, d, column == "a", first, stratum, clusters=clusters
            )
            for delta in (-3.0, 0.0, 0.7, 40.0):
                moved = means_intervals.shifted(a, d, group, delta)
                expected = means.statistic_of(moved, d, column, stratum, clusters=clusters)
                found = coefficients.at(delta)
                assert found.difference == pytest.approx(expected.difference, rel=1e-9, abs=1e-9)
                assert found.variance == pytest.approx(expected.variance, rel=1e-9)
                size = 1e-9 * max(expected.variance**1.5, 1e-3)
                assert found.third == pytest.approx(expected.third, rel=1e-8, abs=size)
                assert found.hall == pytest.approx(expected.hall, rel=1e-7, abs=1e-7)

    def test_only_the_gap_moves_in_the_data(self, design):
        a, d, group, stratum = DESIGNS[design]()
        first = group == "a"
        own = means_intervals.stored_coefficients(a, d, first, first, stratum)
        assert own.difference[1] == pytest.approx(1)
        np.testing.assert_allclose(own.variance[1:], 0, atol=1e-12)
        np.testing.assert_allclose(own.third[1:], 0, atol=1e-12)


class TestIntervals:
    @pytest.mark.parametrize("design", ["mean", "ratio", "strata"])
    def test_equal_to_shifting(self, design):
        a, d, group, stratum = DESIGNS[design]()
        shuffles = means.shuffled_groups(group, stratum, 19, np.random.default_rng(31))
        expected = means_intervals.interval_by_shifting(a, d, group, shuffles, stratum, alpha=0.3)
        found = means_intervals.interval_by_inversion(a, d, group, shuffles, stratum, alpha=0.3)
        assert found == pytest.approx(expected, rel=1e-7)
        low, high = found
        assert low < means.statistic_of(a, d, group, stratum).difference < high

    def test_an_end_is_a_crossing(self):
        a, d, group, _ = DESIGNS["mean"]()
        shuffles = means.shuffled_groups(group, None, 199, np.random.default_rng(32))
        low, high = means_intervals.interval_by_inversion(a, d, group, shuffles)
        se = math.sqrt(means.linearised(a, d, group).variance)

        def p_at(delta):
            return means_intervals.pvalues_at(a, d, group, shuffles, delta)

        assert p_at(low - 1e-6 * se).greater <= 0.025 < p_at(low + 1e-6 * se).greater
        assert p_at(high + 1e-6 * se).less <= 0.025 < p_at(high - 1e-6 * se).less
        for far in (1, 5, 50, 5_000):
            assert p_at(low - far * se).greater <= 0.025
            assert p_at(high + far * se).less <= 0.025

    def test_infinite_where_the_test_cannot_reject(self):
        a, d, group = np.arange(5.0) ** 2, None, np.array(list("aabbb"))
        assert means_intervals.identity_probability(a, d, group) == pytest.approx(1 / 10)
        shuffles = means.shuffled_groups(group, None, 99, np.random.default_rng(33))
        found = means_intervals.interval_by_inversion(a, d, group, shuffles, alpha=0.19)
        assert found == (-math.inf, math.inf)
        low, high = means_intervals.interval_by_inversion(a, d, group, shuffles, alpha=0.6)
        assert math.isfinite(low)
        assert math.isfinite(high)

    def test_identity_within_strata(self):
        a, d, group, stratum = strata_of(34, [(2, 2), (1, 3)])
        assert means_intervals.identity_probability(a, d, group, stratum) == pytest.approx(1 / 24)


class TestGuard:
    def groups(self, seed=40, sizes=(40, 1960), scale=1.0):
        rng = np.random.default_rng(seed)
        small = np.exp(1.5 * rng.standard_normal(sizes[0])) * scale
        return np.concatenate([small, rng.random(sizes[1])]), np.repeat(["a", "b"], sizes)

    def test_by_hand(self):
        a = np.array([1.0, 2.0, 9.0, 4.0, 4.5, 5.0, 5.5])
        group = np.array(list("aaabbbb"))
        found = means_intervals.guard(a, None, group)
        centred = np.concatenate([a[:3] - 4, a[3:] - 4.75])
        own = stats.skew(centred[:3]), stats.skew(centred[3:])
        pooled = np.mean(centred**3) / np.mean(centred**2) ** 1.5
        assert abs(pooled) > abs(own[0])
        assert found.skewness == pytest.approx((pooled, pooled))
        common = np.sum(centred**2) / 5
        v = (np.var(a[:3], ddof=1) / 3, common / 4)
        direction = pooled * (v[0] ** 1.5 / math.sqrt(3) - v[1] ** 1.5 / 2) / sum(v) ** 1.5
        assert found.direction == pytest.approx(direction)
        assert found.needed == pytest.approx(25 * pooled**2)
        assert found.worse == 0

    def test_the_side(self):
        """With a long right tail the small group is wrongly called low, never high."""
        a, group = self.groups()
        found = means_intervals.guard(a, None, group)
        assert found.too_skewed
        assert found.direction > 0
        assert found.withholds_difference(-1.0)
        assert not found.withholds_difference(1.0)
        assert found.withholds_equivalence()
        mirrored = means_intervals.guard(-a, None, group)
        assert mirrored.withholds_difference(1.0)
        assert not mirrored.withholds_difference(-1.0)

    def test_scale_and_shift_do_not_matter(self):
        a, group = self.groups()
        one = means_intervals.guard(a, None, group)
        two = means_intervals.guard(7 * a + 5, None, group)
        assert two.skewness == pytest.approx(one.skewness)
        assert two.direction == pytest.approx(one.direction)

    def test_n_u_is_of_one_scale(self):
        """Both groups normal: not flagged, as it would be with u in place of n u."""
        rng = np.random.default_rng(41)
        group = np.repeat(["a", "b"], (40, 1960))
        flagged, of_u = [], []
        for _ in range(40):
            a = rng.standard_normal(2000)
            flagged.append(means_intervals.guard(a, None, group).too_skewed)
            u = np.concatenate([(own - own.mean()) / len(own) for own in (a[:40], a[40:])])
            of_u.append(abs(stats.skew(u)) / math.sqrt(40) > 0.2)
        assert np.mean(flagged) < 0.03
        assert np.mean(of_u) > 0.3

    def test_without_variance(self):
        a = np.array([1.0, 1.0, 1.0, 2.0, 3.0, 4.0])
        found = means_intervals.guard(a, None, np.array(list("aaabbb")))
        assert found.without_variance == (True, False)
        assert found.withholds_difference(1.0)
        assert found.withholds_difference(-1.0)
        assert found.withholds_equivalence()

    def test_clusters_are_counted_by_their_effective_number(self):
        a, d, group = make(42)
        rows = means_intervals.guard(a, d, group)
        clusters = means_intervals.guard(a, d, group, clusters=True)
        assert clusters.skewness == rows.skewness
        effective = [means_intervals.effective_clusters(d[group == name]) for name in "ab"]
        assert clusters.ratios == pytest.approx(
            [abs(skew) / math.sqrt(n) for skew, n in zip(rows.skewness, effective, strict=True)]
        )


class TestCr2:
    @pytest.mark.parametrize("seed", range(4))
    def test_closed_form_equals_matrices(self, seed):
        a, d, _ = make(50 + seed, (5, 8))
        found = means_intervals.cr2_of_group(a, d)
        assert found == pytest.approx(means_intervals.cr2_by_matrices(a, d), rel=1e-10)

    def test_variance_is_that_of_the_rows(self):
        """The textbook's form: (I - H_cc)^(-1/2) of the rows of each cluster, X = 1."""
        rng = np.random.default_rng(55)
        sizes = np.array([1, 5, 2, 7, 3])
        cluster = np.repeat(np.arange(5), sizes)
        y = rng.exponential(size=18) + cluster
        total = 0.0
        for number, size in enumerate(sizes):
            inverse = np.linalg.inv(linalg.sqrtm(np.eye(size) - np.full((size, size), 1 / 18)))
            total += np.sum(inverse @ (y[cluster == number] - y.mean())) ** 2
        sums = np.bincount(cluster, weights=y)
        _, v, _ = means_intervals.cr2_of_group(sums, sizes.astype(float))
        assert v == pytest.approx(total / 18**2, rel=1e-8)

    def test_equal_sizes_are_welch(self):
        a, _, group = make(56, ratio=False)
        found = means_intervals.cr2(a, None, group)
        welch = stats.ttest_ind(a[group == "a"], a[group == "b"], equal_var=False)
        assert found.df == pytest.approx(welch.df, rel=1e-10)
        assert found.interval == pytest.approx(tuple(welch.confidence_interval()), rel=1e-10)
        assert found.effective == pytest.approx((7, 9))

    def test_few_effective_clusters_have_no_interval(self):
        d = np.array([1.0, 1.0, 1.0, 90.0, 1.0, 1.0, 1.0, 1.0])
        found = means_intervals.cr2(d * np.arange(8.0), d, np.array(list("aaaabbbb")))
        assert found.effective[0] < means_intervals.FEWEST_FOR_TEST
        assert np.isnan(found.interval).all()
