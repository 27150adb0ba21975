"""How many rows would tell on which side of a tolerance a gap lies."""

import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference.required_rows import (
    rows_that_tell,
    times_to_show_all_within,
    times_to_show_beyond,
    times_to_show_within,
)


def decisions(*counts):
    """Counts of groups "a", "b", ... with (selected, rows) each."""
    rows = [(name, y, n) for name, (x, size) in zip("abcdef", counts, strict=False)
            for y, n in ((1, x), (0, size - x))]  # fmt: skip
    names, y, count = (list(column) for column in zip(*rows, strict=True))
    return fa.Cells.from_frame(
        {"group": names, "y": y, "count": count}, sensitive_features="group", y_pred="y"
    )


def equivalent(*counts, margin=0.1, **options):
    cells = decisions(*counts)
    return fa.equivalence_test(data=cells, metric="selection_rate", margin=margin, **options)


class TestKnownValues:
    def test_within_without_a_gap(self):
        """Phi(sqrt(f) tol / se - z) = 0.9: f = ((1.644854 + 1.281552) se / tol)^2."""
        found = times_to_show_within(0.0, 0.05, 0.1, 0.05)
        assert found == pytest.approx(((1.6448536 + 1.2815516) * 0.5) ** 2, rel=1e-6)

    def test_within_next_to_the_tolerance(self):
        """One side decides: f = ((1.644854 + 0.841621) se / (tol - |d|))^2."""
        found = times_to_show_within(-0.099, 0.02, 0.1, 0.05)
        assert found == pytest.approx(((1.6448536 + 0.8416212) * 20) ** 2, rel=1e-6)

    def test_beyond(self):
        """f = ((z(1 - alpha / m) + z(0.8)) se / (|d| - tol))^2, three tests."""
        z = stats.norm.isf(0.05 / 3) + stats.norm.ppf(0.8)
        found = times_to_show_beyond(0.15, 0.03, 0.1, 0.05, 3)
        assert found == pytest.approx((z * 0.03 / 0.05) ** 2, rel=1e-9)

    def test_at_the_tolerance_nothing_tells(self):
        for gap in (0.1, -0.1):
            assert times_to_show_within(gap, 0.02, 0.1, 0.05) == math.inf
            assert times_to_show_beyond(gap, 0.02, 0.1, 0.05) == math.inf
            assert rows_that_tell(gap, 0.02, 0.1, 0.05, 100).n_rows is None

    def test_the_rows_of_a_small_group_are_realistic(self):
        """39 rows that must become 2,400: a factor of 61 is none for who can ask more of them."""
        small = rows_that_tell(0.0, 0.1 / 2.9264 * math.sqrt(61), 0.1, 0.05, 39)
        assert small.factor == pytest.approx(61, rel=1e-4)
        assert small.n_rows == pytest.approx(2_400, rel=0.01)
        assert rows_that_tell(0.0, 0.1 / 2.9264 * math.sqrt(61), 0.1, 0.05, 3_900).n_rows is None

    def test_in_results(self):
        shown = equivalent((500, 1_000), (500, 1_000))
        assert shown.rows_that_tell is None
        within = equivalent((50, 100), (150, 310))
        assert within.rows_that_tell.side == "within"
        assert f"({within.rows_that_tell.n_rows:,} of a) would show" in str(within)
        beyond = equivalent((65, 100), (150, 300))
        assert beyond.rows_that_tell.side == "beyond"
        assert "would show with probability 0.8 that it lies beyond these bounds" in str(beyond)
        shown_beyond = equivalent((70, 100), (150, 300))
        assert "its 90 % interval, 0.108 to 0.286, lies beyond these bounds" in str(shown_beyond)
        near = equivalent((600, 1_000), (5_010, 10_000))
        assert near.rows_that_tell.n_rows is None
        assert "no realistic number of rows would tell" in str(near)
        ratio = equivalent((45, 100), (150, 310), margin=0.8, scale="ratio")
        assert ratio.rows_that_tell.side == "within"
        nothing = equivalent((0, 100), (0, 310), margin=0.8, scale="ratio")
        assert nothing.rows_that_tell is None


class TestProperties:
    def test_more_of_everything(self):
        by_gap = [times_to_show_within(gap, 0.05, 0.1, 0.05) for gap in (0, 0.02, 0.05, 0.09)]
        assert by_gap == sorted(by_gap)
        by_error = [times_to_show_within(0.03, error, 0.1, 0.05) for error in (0.01, 0.02, 0.04)]
        assert by_error == sorted(by_error)
        assert times_to_show_within(-0.03, 0.05, 0.1, 0.05) == times_to_show_within(
            0.03, 0.05, 0.1, 0.05
        )


@pytest.mark.calibration
class TestCalibration:
    """Promised 80 %, kept 77 to 83 (METHODS, 6), if the gap seen is the true one."""

    @pytest.mark.parametrize("rates", [(0.5, 0.5), (0.2, 0.23), (0.5, 0.45), (0.3, 0.45)])
    def test_what_is_promised(self, rates):
        n, margin, n_audits = (60, 180), 0.1, 3_000
        first = equivalent(
            *((round(rate * size), size) for rate, size in zip(rates, n, strict=True)),
            margin=margin,
        )
        telling = first.rows_that_tell
        more = [math.ceil(telling.factor * size) for size in n]
        rng = np.random.default_rng(1)
        hits = rng.binomial(more, rates, (n_audits, 2))
        p = hits / more
        gap, error = p[:, 0] - p[:, 1], np.sqrt((p * (1 - p) / more).sum(axis=1))
        if telling.side == "within":
            found = (gap + margin > 1.6448536 * error) & (margin - gap > 1.6448536 * error)
        else:
            found = np.abs(gap) - margin > 1.6448536 * error
        assert 0.77 <= found.mean() <= 0.83
        # As many as to find a gap as large as the margin: another question, another answer.
        other = fa.sample_size(
            margin, metric="selection_rate", value=rates[0], group_sizes=n
        ).group_sizes
        assert abs(sum(other.values()) / sum(more) - 1) > 0.05


def pairs_of(shares, sizes):
    """Variances of shares, and all pairs with the standard error of their gap."""
    variances = [p * (1 - p) / n for p, n in zip(shares, sizes, strict=True)]
    return variances, [
        (i, j, math.sqrt(variances[i] + variances[j]))
        for i in range(len(shares))
        for j in range(i + 1, len(shares))
    ]


class TestAllPairs:
    def test_one_pair_is_the_formula(self):
        variances, pairs = pairs_of([0.5, 0.46], [300, 200])
        found = times_to_show_all_within([0.5, 0.46], variances, pairs, 0.1, 0.05)
        wanted = times_to_show_within(0.04, pairs[0][2], 0.1, 0.05)
        assert found == pytest.approx(wanted, rel=0.03)

    def test_several_pairs_take_more_than_the_hardest(self):
        variances, pairs = pairs_of([0.5] * 5, [300] * 5)
        found = times_to_show_all_within([0.5] * 5, variances, pairs, 0.1, 0.05)
        assert found > 1.15 * times_to_show_within(0.0, pairs[0][2], 0.1, 0.05)
        at_tolerance = times_to_show_all_within([0.52, 0.4], [1e-4] * 2, [(0, 1, 0.014)], 0.1, 0.05)
        assert at_tolerance == math.inf

    @pytest.mark.parametrize("scale", ["difference", "ratio"])
    def test_equivalence_counts_as_an_audit_does(self, scale):
        """It took the formula of one pair, whose rows show all pairs in 65 to 72 % of tests."""
        counts = [(50, 100), (50, 100), (51, 100), (50, 100)]
        margin = 0.1 if scale == "difference" else 0.8
        found = equivalent(*counts, margin=margin, scale=scale)
        tolerance = {"tolerance": margin} if scale == "difference" else {"ratio": margin}
        policy = fa.Policy(
            name="own", criteria=[fa.Criterion(metric="selection_rate", **tolerance)]
        )
        audit = fa.audit(data=decisions(*counts), policy=policy, rng=1)
        wanted = audit.questions[0].telling_pair.telling
        assert found.rows_that_tell.side == wanted.side == "within"
        assert found.rows_that_tell.factor == pytest.approx(wanted.factor, rel=1e-3)
        what = "gap" if scale == "difference" else "ratio"
        assert f"would show with probability 0.8 that every {what} lies within" in str(found)
        assert "If all values stay as they are, " in str(found)

    def test_equivalence_of_a_reference_and_of_strata(self):
        """Pairs with one group share its noise; within strata each pair has values of its own."""
        counts = [(50, 100), (50, 100), (50, 100)]
        every = equivalent(*counts).rows_that_tell.factor
        with_one = equivalent(*counts, reference="a").rows_that_tell.factor
        assert 1.2 < with_one < every
        group = np.repeat(["a", "b", "c"], 100)
        decided = np.tile([0, 1], 150)
        within = fa.equivalence_test(
            y_pred=decided, sensitive_features=group, metric="selection_rate", margin=0.1,
            strata=np.tile([0, 0, 1, 1], 75),
        )  # fmt: skip
        assert within.rows_that_tell.factor == pytest.approx(every, rel=0.15)
        values = dict(zip("abc", (0.59, 0.5, 0.5), strict=True))
        unequal = equivalent(*((round(100 * p), 100) for p in values.values()), margin=0.08)
        assert unequal.rows_that_tell.side == "beyond"

    @pytest.mark.calibration
    @pytest.mark.parametrize(
        ("shares", "sizes"),
        [([0.5] * 5, [300] * 5), ([0.5, 0.45, 0.45, 0.45], [2_000] + [150] * 3)],
    )
    def test_eight_of_ten_audits_pass(self, shares, sizes):
        """By the formula of one pair 72 % and 65 % did."""
        variances, pairs = pairs_of(shares, sizes)
        factor = times_to_show_all_within(shares, variances, pairs, 0.1, 0.05)
        of_pair = max(
            times_to_show_within(shares[i] - shares[j], error, 0.1, 0.05) for i, j, error in pairs
        )
        rng, n_audits, passed = np.random.default_rng(1), 400, {factor: 0, of_pair: 0}
        for times in passed:
            larger = [math.ceil(times * n) for n in sizes]
            for _ in range(n_audits):
                hits = [int(rng.binomial(n, p)) for n, p in zip(larger, shares, strict=True)]
                cells = decisions(*zip(hits, larger, strict=True))
                passed[times] += fa.audit(data=cells, policy="parity", rng=1).verdict == "pass"
        assert abs(passed[factor] / n_audits - 0.8) < 0.08
        assert passed[of_pair] / n_audits < 0.77
