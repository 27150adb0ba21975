"""Score tests of low rates: corrected for skewness, of two groups and within strata."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs.inference.mantel_haenszel import keep_shared_strata
from fairaudit_rs.inference.proportions import farrington_manning, ratio_score
from fairaudit_rs.inference.score import ScoreStatistic

from ..reference import proportions as reference

FAMILIES = (1, 10, 50, 200)


class TestScore:
    def test_it_solves_its_equation(self):
        """z = u + g (u^2 - 1), g = 0.02 / (6 0.01^1.5 100): a hundredth of the third moment."""
        found = ScoreStatistic.from_moments(0.2, 0.01, 1e-4)
        g = 1e-4 / (6 * 0.01**1.5)
        assert found.plain == pytest.approx(2.0, rel=1e-12)
        assert found.corrected + g * (found.corrected**2 - 1) == pytest.approx(2.0, rel=1e-12)
        assert found.greater == pytest.approx(stats.norm.sf(found.corrected), rel=1e-12)
        assert found.less == pytest.approx(stats.norm.cdf(found.plain), rel=1e-12)

    def test_without_skewness_it_is_the_score(self):
        assert ScoreStatistic.from_moments(0.2, 0.01, 0.0) == (
            pytest.approx(2.0),
            pytest.approx(2.0),
        )

    def test_an_imaginary_root_is_the_turn_of_the_curve(self):
        """g = -1, z = 3: 1 + 4 g (g + z) = -7."""
        assert ScoreStatistic.from_moments(3.0, 1.0, -6.0) == (3.0, 0.5)
        assert ScoreStatistic.from_moments(-3.0, 1.0, 6.0) == (-3.0, -0.5)

    def test_without_variance(self):
        assert ScoreStatistic.from_moments(0.1, 0.0, 0.0) == (math.inf, math.inf)
        assert ScoreStatistic.from_moments(-0.1, 0.0, 0.0) == (-math.inf, -math.inf)
        assert ScoreStatistic.from_moments(0.0, 0.0, 0.0) == (0.0, 0.0)
        assert ScoreStatistic.from_moments(0.1, 0.0, 0.0).greater > 0

    def test_sides_of_zero(self):
        """A score just above 0 of a skewed law: both one-sided p-values are the larger ones."""
        found = ScoreStatistic(0.1, -0.2)
        assert found.nearer == 0
        assert found.greater == pytest.approx(stats.norm.sf(-0.2))
        assert found.less == pytest.approx(stats.norm.cdf(0.1))

    @pytest.mark.parametrize("rates", [(0, 0), (1, 1), (0, 1), (1, 0)])
    def test_rates_at_their_ends(self, rates):
        x, y = rates[0] * 30, rates[1] * 200
        for end in (-0.999, -0.1, 0.0, 0.1, 0.999):
            assert not math.isnan(farrington_manning(x, 30, y, 200, end).corrected)
        for ratio in (1e-150, 0.8, 1.0, 1.25, 1e150):
            found = ratio_score(x, 30, y, 200, ratio)
            assert math.isnan(found.corrected) == (rates == (0, 0))


class TestBounds:
    def test_p_values_are_monotone(self):
        """Bounds of audits are looked for along tolerances: p may not turn."""
        rng = np.random.default_rng(1)
        for _ in range(60):
            n, m = int(rng.integers(5, 60)), int(rng.integers(5, 3_000))
            x, y = int(rng.integers(0, n + 1)), int(rng.binomial(m, rng.uniform(0, 0.3)))
            ends = np.linspace(-0.99, 0.99, 199)
            scores = [farrington_manning(x, n, y, m, end) for end in ends]
            for side, sign in (("greater", 1), ("less", -1)):
                p = sign * np.array([getattr(score, side) for score in scores])
                assert np.all(np.diff(p) > -1e-9), (x, n, y, m, side)


def decisions(*counts):
    """Arguments of a public call: (selected, rows) of groups "a", "b"."""
    return {
        "y_pred": np.concatenate([(np.arange(n) < x).astype(int) for x, n in counts]),
        "sensitive_features": np.concatenate(
            [np.repeat("ab"[i], n) for i, (_, n) in enumerate(counts)]
        ),
        "metric": "selection_rate",
    }


class TestPublic:
    def test_equivalence_and_its_interval_agree(self):
        """p <= 0.05 where the 90 % interval lies within the margin, to the last digits."""
        rng = np.random.default_rng(2)
        for _ in range(40):
            counts = [(int(rng.integers(0, 12)), 60), (int(rng.integers(0, 40)), 400)]
            result = fa.equivalence_test(**decisions(*counts), margin=0.1)
            low, high = result.confidence_interval
            assert (result.pvalue <= 0.05) == (low >= -0.1 and high <= 0.1)
            at_end = fa.equivalence_test(**decisions(*counts), margin=max(-low, high))
            assert at_end.pvalue == pytest.approx(0.05, abs=1e-9)

    def test_an_audit_of_low_rates(self):
        """8 of 30 and 180 of 6,000 at 0.10: the score alone has p = 0.0131, its correction
        .0218."""
        x, n, y, m = 8, 30, 180, 6_000
        rows = np.repeat([0, 1], [n, m])
        y_pred = np.concatenate([np.arange(n) < x, np.arange(m) < y]).astype(int)
        audit = fa.audit(
            np.zeros(n + m, int),
            y_pred,
            sensitive_features=rows.astype(str),
            policy=fa.Policy(
                name="low", criteria=[fa.Criterion(metric="false_positive_rate", tolerance=0.1)]
            ),
        )
        pvalue = audit.findings["pvalue"][0]
        score = farrington_manning(x, n, y, m, 0.1)
        assert pvalue == pytest.approx(score.greater, rel=1e-6)
        assert pvalue > 1.5 * stats.norm.sf(score.plain)


class TestWithinStrata:
    def tables(self, rng, n_strata=6):
        rows = rng.integers(0, 9, (n_strata, 2)).astype(float)
        rows[0] = (5, 3)
        hits = np.array([[rng.integers(0, n + 1) for n in pair] for pair in rows], dtype=float)
        hits[0, 0] = 2
        return hits, rows

    @pytest.mark.parametrize("end", [-0.3, -0.05, 0.0, 0.1, 0.4])
    def test_differences(self, end):
        rng = np.random.default_rng(3)
        for _ in range(10):
            hits, rows = self.tables(rng)
            found = keep_shared_strata(hits, rows).difference_score(end)
            expected = reference.difference_within(hits, rows, end)
            assert (found.greater, found.less) == pytest.approx(expected, rel=1e-7)

    @pytest.mark.parametrize("ratio", [0.3, 0.8, 1.0, 1.25, 4.0])
    def test_ratios(self, ratio):
        rng = np.random.default_rng(4)
        for _ in range(10):
            hits, rows = self.tables(rng)
            found = keep_shared_strata(hits, rows).ratio_score(ratio)
            expected = reference.ratio_within(hits, rows, ratio)
            assert (found.greater, found.less) == pytest.approx(expected, rel=1e-7)

    def test_one_stratum_at_equality_is_the_pooled_test(self):
        """N / (N - 1) is what the law of a table with fixed sums has."""
        within = keep_shared_strata(np.array([[9.0, 20.0]]), np.array([[40.0, 50.0]]))
        pooled = 29 / 90
        expected = (9 / 40 - 20 / 50) / math.sqrt(
            pooled * (1 - pooled) * (1 / 40 + 1 / 50) * 90 / 89
        )
        assert within.ratio_score(1.0).plain == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize(("n", "m"), [(1, 4), (3, 5), (6, 2)])
    @pytest.mark.parametrize("value", [0.7, 1.3])
    def test_the_variance_of_a_small_stratum_is_unbiased(self, n, m, value):
        """The mean over all tables of a stratum; plugging in pooled rates loses up to a fifth."""
        q = 0.4
        p = value * q
        true = mean = plugged = 0.0
        for x, y in itertools.product(range(n + 1), range(m + 1)):
            weight = stats.binom.pmf(x, n, p) * stats.binom.pmf(y, m, q)
            true += weight * (x / n - value * y / m) ** 2
            pooled = (x + y) / (value * n + m)
            rates = (value * pooled, pooled)
            of_rows = [r * (1 - r) / size for r, size in zip(rates, (n, m), strict=True)]
            plugged += weight * (of_rows[0] + value**2 * of_rows[1])
            spread = n**2 * of_rows[0] + m**2 * of_rows[1]
            square = (value * n + m) ** 2
            of_pooled = spread / (square - value**2 * n - m)
            mean += weight * (of_rows[0] + value**2 * (of_rows[1] + of_pooled * (1 / n + 1 / m)))
        assert mean == pytest.approx(true, rel=1e-9)
        assert plugged < 0.95 * true

    def test_public_ratios_and_intervals(self):
        """Intervals of gaps are what the test of the same strata does not reject."""
        rng = np.random.default_rng(5)
        group, stratum = rng.choice(["a", "b"], 900, p=[0.1, 0.9]), rng.integers(0, 30, 900)
        rows = {
            "y_pred": (rng.random(900) < 0.03 + 0.1 * (group == "a")).astype(int),
            "sensitive_features": group,
            "strata": stratum,
            "metric": "selection_rate",
        }
        result = fa.equivalence_test(**rows, margin=0.2)
        low, high = result.confidence_interval
        at_end = fa.equivalence_test(**rows, margin=max(-low, high))
        assert at_end.pvalue == pytest.approx(0.05, abs=1e-9)


# --- sizes --------------------------------------------------------------------------------------


def exact_sizes(score, n, m, rates, at):
    """m times the size at 5 % / m of both one-sided tests at a true difference or ratio."""
    laws = [stats.binom.pmf(np.arange(k + 1), k, p) for k, p in zip((n, m), rates, strict=True)]
    likely = [np.flatnonzero(law > 1e-9).tolist() for law in laws]
    sizes = {name: np.zeros((2, len(FAMILIES))) for name in ("ours", "plain")}
    levels = 0.05 / np.array(FAMILIES)
    for x, y in itertools.product(*likely):
        weight = laws[0][x] * laws[1][y]
        found = score(x, n, y, m, at)
        both = {
            "ours": (found.greater, found.less),
            "plain": (stats.norm.sf(found.plain), stats.norm.cdf(found.plain)),
        }
        for name, sides in both.items():
            for i, p in enumerate(sides):
                sizes[name][i] += weight * (p <= levels)
    return {name: 100 * found * np.array(FAMILIES) for name, found in sizes.items()}


@pytest.mark.calibration
class TestSizes:
    @pytest.mark.parametrize(
        ("n", "rates"), [(30, (0.06, 0.01)), (30, (0.13, 0.03)), (100, (0.06, 0.01))]
    )
    def test_differences(self, n, rates):
        """Largest of both sides, 30 + 2,000, 0.06 / 0.01: 3.3 / 5.2 / 3.5 / 3.7 for 8.3 / 10.4 /
        36 / 34 of the score alone, at 5 % / m of m = 1, 10, 50, 200."""
        sizes = exact_sizes(farrington_manning, n, 2_000, rates, rates[0] - rates[1])
        assert np.all(sizes["ours"] <= 5.6), sizes
        assert sizes["plain"].max() > 14

    @pytest.mark.parametrize(("n", "rate"), [(40, 0.02), (40, 0.96), (100, 0.05)])
    def test_ratios(self, n, rate):
        """A ratio of 0.8 both ways: at most 6.7 at m = 1, 6.1 beyond; the score alone up to 54."""
        for rates, ratio in (((0.8 * rate, rate), 0.8), ((rate, 0.8 * rate), 1.25)):
            sizes = exact_sizes(ratio_score, n, 800, rates, ratio)
            assert np.all(sizes["ours"][:, 0] <= 6.7), sizes
            assert np.all(sizes["ours"][:, 1:] <= 6.1), sizes
        if rate == 0.02:
            assert sizes["plain"].max() > 14

    def test_a_family_of_low_rates(self):
        """`punitive` with ten attributes, groups of 30, FPR 0.115 and 0.014: 13.6 % failed falsely.

        2,000 audits of ten questions, each gap at the tolerance of .10.
        """
        rng, n_audits, fails = np.random.default_rng(6), 2_000, {"ours": 0, "plain": 0}
        x, y = rng.binomial(30, 0.114, (n_audits, 10)), rng.binomial(6_000, 0.014, (n_audits, 10))
        for of_audit in zip(x.tolist(), y.tolist(), strict=True):
            scores = [
                farrington_manning(a, 30, b, 6_000, 0.1) for a, b in zip(*of_audit, strict=True)
            ]
            fails["ours"] += min(score.greater for score in scores) <= 0.005
            fails["plain"] += max(score.plain for score in scores) >= stats.norm.isf(0.005)
        most = stats.binom.isf(1e-6, n_audits, 0.05)
        assert fails["ours"] <= most < fails["plain"], fails

    @pytest.mark.parametrize(
        ("n_strata", "rows", "rates", "margin", "old"),
        [(3, (20, 300), (0.06, 0.01), 0.05, 0.09), (200, (1, 4), (0.25, 0.15), 0.1, None)],
    )
    def test_differences_within_strata(self, n_strata, rows, rates, margin, old):
        """At least the margin is refuted in at most 5 %; with Sato's variance alone in 10.4 %."""
        rng, n_audits, found = np.random.default_rng(7), 2_000, np.zeros(3)
        sizes = np.tile(np.array(rows, dtype=float), (n_strata, 1))
        for _ in range(n_audits):
            hits = rng.binomial(sizes.astype(int), rates).astype(float)
            within = keep_shared_strata(hits, sizes)
            score = within.difference_score(margin)
            found += (score.less <= 0.05, score.greater <= 0.05, 0)
            found[2] += (within.estimate - margin) / within.standard_error <= stats.norm.ppf(0.05)
        most = stats.binom.isf(1e-6, n_audits, 0.05)
        assert max(found[:2]) <= most, found
        assert old is None or found[2] > old * n_audits > most


class TestRatiosWithinStrata:
    """The Mantel-Haenszel ratio: estimate, standard error, interval, test and policy.

    The frozen ratio is that of statsmodels 0.14.4, which has neither its interval nor its test::

        from statsmodels.stats.contingency_tables import StratifiedTable
        tables = [[[30, 70], [60, 90]], [[8, 12], [15, 65]], [[45, 5], [80, 40]]]
        StratifiedTable([np.array(table, float) for table in tables]).riskratio_pooled
    """

    OF_STATSMODELS = 1.1115250291036087
    HITS = np.array([[30.0, 60.0], [8.0, 15.0], [45.0, 80.0]])
    ROWS = np.array([[100.0, 150.0], [20.0, 80.0], [50.0, 120.0]])

    def rows(self):
        columns = {"y_pred": [], "sensitive_features": [], "strata": []}
        for stratum, (hits, rows) in enumerate(zip(self.HITS, self.ROWS, strict=True)):
            for group, x, n in zip("ab", hits, rows, strict=True):
                columns["y_pred"].append((np.arange(n) < x).astype(int))
                columns["sensitive_features"].append(np.repeat(group, int(n)))
                columns["strata"].append(np.repeat(stratum, int(n)))
        found = {name: np.concatenate(parts) for name, parts in columns.items()}
        return {**found, "metric": "selection_rate"}

    def test_the_estimate_and_its_error(self):
        """sum x_1 n_2 / N over sum x_2 n_1 / N; Greenland and Robins' variance of its logarithm."""
        both = self.ROWS.sum(axis=1)
        (x, y), (n, m) = self.HITS.T, self.ROWS.T
        above, below = (x * m / both).sum(), (y * n / both).sum()
        spread = (n * m * (x + y) / both**2 - x * y / both).sum()
        found = fa.intervals(**self.rows()).ratios[0]
        assert found.estimate == pytest.approx(above / below, rel=1e-12)
        assert found.estimate == pytest.approx(self.OF_STATSMODELS, rel=1e-9)
        error = math.sqrt(spread / (above * below))
        assert found.standard_error == pytest.approx(found.estimate * error, rel=1e-12)
        # Large strata: near the interval of the normal law of the logarithm.
        expected = found.estimate * np.exp(np.array([-1.96, 1.96]) * error)
        assert found.confidence_interval == pytest.approx(tuple(expected), rel=0.02)

    def test_the_interval_is_what_the_test_does_not_reject(self):
        low, high = fa.intervals(**self.rows()).ratios[0].confidence_interval
        for end, side in ((low, 0), (high, 1)):
            found = reference.ratio_within(self.HITS, self.ROWS, end)
            assert found[side] == pytest.approx(0.025, abs=1e-8)

    def test_equivalence(self):
        result = fa.equivalence_test(**self.rows(), margin=0.7, scale="ratio")
        low, high = (reference.ratio_within(self.HITS, self.ROWS, r) for r in (0.7, 1 / 0.7))
        assert result.pvalue == pytest.approx(max(low[0], high[1]), rel=1e-7)
        inside = result.confidence_interval
        assert (result.pvalue <= 0.05) == (inside[0] >= 0.7 and inside[1] <= 1 / 0.7)

    def test_a_policy_decides(self):
        """Rates of 0.1 and 0.3 in one half, 0.6 and 0.9 in the other: four fifths within strata."""
        rng = np.random.default_rng(8)
        n = 6_000
        group, stratum = rng.choice(["a", "b"], n), rng.integers(0, 2, n)
        rates = np.array([[0.1, 0.3], [0.6, 0.9]])
        y_pred = (rng.random(n) < rates[stratum, (group == "b").astype(int)]).astype(int)
        given = {"sensitive_features": {"g": group}, "strata": stratum, "pos_label": 1}
        audit = fa.audit(None, y_pred, **given, policy="four_fifths")
        finding = audit.findings.row(0, named=True)
        assert finding["verdict"] == "fail"
        hits, rows = (
            np.array(
                [
                    [y_pred[(stratum == s) & (group == g)].sum() for g in "ab"]
                    if counts_hits
                    else [((stratum == s) & (group == g)).sum() for g in "ab"]
                    for s in range(2)
                ],
                dtype=float,
            )
            for counts_hits in (True, False)
        )
        assert finding["estimate"] == pytest.approx(keep_shared_strata(hits, rows).ratio, rel=1e-12)
        less = [reference.ratio_within(hits, rows, r)[1] for r in (0.8, 1.25)]
        assert finding["pvalue"] == pytest.approx(sum(less), rel=1e-6)

    def test_a_rate_of_zero(self):
        rows = self.rows()
        rows["y_pred"] = rows["y_pred"] * (rows["sensitive_features"] == "b")
        found = fa.intervals(**rows).ratios[0]
        assert found.estimate == 0
        assert found.confidence_interval[0] == 0
        assert 0 < found.confidence_interval[1] < 0.2
        rows["y_pred"] *= 0
        found = fa.intervals(**rows).ratios[0]
        assert math.isnan(found.estimate)
        test = fa.equivalence_test(**rows, margin=0.8, scale="ratio")
        assert test.pvalue == 1

    @pytest.mark.calibration
    @pytest.mark.parametrize(
        ("n_strata", "rows", "base", "ratio"),
        [
            (200, (1, 4), (0.1, 0.7), 0.8),
            (10, (10, 300), (0.02, 0.1), 0.8),
            (3, (20, 300), (0.9, 0.9), 0.8),
        ],
    )
    def test_sizes(self, n_strata, rows, base, ratio):
        """Both sides at 5 % and 1 %: at most 5.2 and 1.1 % of 20,000 audits of 16 designs.

        The normal law of the logarithm rejects up to 8 % at high rates.
        """
        rng, n_audits, found = np.random.default_rng(9), 2_000, np.zeros((2, 2))
        sizes, levels, broken = np.tile(np.array(rows, float), (n_strata, 1)), (0.05, 0.01), 0
        for _ in range(n_audits):
            second = rng.uniform(*base, n_strata)
            rates = np.stack([ratio * second, second], axis=1)
            within = keep_shared_strata(rng.binomial(sizes.astype(int), rates).astype(float), sizes)
            score = within.ratio_score(ratio)
            found += [[side <= level for level in levels] for side in (score.greater, score.less)]
            if within.ratio > 0:
                z = (math.log(within.ratio) - math.log(ratio)) / within.log_ratio_standard_error
                broken += z >= stats.norm.isf(0.05)
        most = [stats.binom.isf(1e-6, n_audits, level) for level in levels]
        assert np.all(found <= most), found
        if rows == (20, 300):
            assert broken > most[0]


def decided(*tables):
    """Rows of groups "a" and "b" with these (tp, fp, fn, tn)."""
    return {
        "y_true": np.concatenate([np.repeat([1, 0, 1, 0], table) for table in tables]),
        "y_pred": np.concatenate([np.repeat([1, 1, 0, 0], table) for table in tables]),
        "sensitive_features": np.repeat(["a", "b"], [sum(table) for table in tables]),
    }


class TestF1:
    """F1 is known from the share of true positives among tp + fp + fn: these rows exchange."""

    def test_true_negatives_play_no_part(self):
        few, many = ((12, 3, 5, 2), (60, 20, 10, 7)), ((12, 3, 5, 200), (60, 20, 10, 9_000))
        tests = [
            fa.permutation_test(**decided(*part), metric="f1", n_resamples=199, rng=1)
            for part in (few, many)
        ]
        assert tests[0].pvalue == tests[1].pvalue
        assert tests[0].exchanged == "rows with a positive label or decision"

    def test_it_is_exact(self):
        """P-value of "less" by its hypergeometric law, given tp + fp + fn of both groups."""
        tables = (9, 5, 6, 40), (300, 40, 60, 800)
        n, m = (sum(table[:3]) for table in tables)
        law = stats.hypergeom(n + m, tables[0][0] + tables[1][0], n)
        result = fa.permutation_test(**decided(*tables), metric="f1", alternative="less", rng=1)
        assert result.pvalue == pytest.approx(law.cdf(tables[0][0]), abs=0.002)
        old = fa.permutation_test(
            **decided(*tables), metric="f1", alternative="less", strata=None, rng=1
        )
        assert old.pvalue < 0.7 * result.pvalue

    @pytest.mark.parametrize(
        ("formula", "conditions"),
        [
            ("2 * tp / (2 * tp + fp + fn)", "denominator"),
            ("(fp + fn) / (2 * tp + fp + fn)", "denominator"),
            ("tp / (tp + fp + fn)", "denominator"),
            ("5 * tp / (5 * tp + 4 * fn + fp)", None),
            ("tp / (tp + fn) - fp / (fp + tn)", None),
        ],
    )
    def test_which_formulas_condition(self, formula, conditions):
        assert fa.metrics.count_metric("own", formula).conditions_on == conditions

    @pytest.mark.calibration
    def test_size(self):
        """60 + 2,000 rows, "less": 2 to 3.4 % at 5 %; with all rows exchanged 6.5 to 8.3 %."""
        rng, n_audits = np.random.default_rng(10), 700
        laws = (0.45, 0.03, 0.03, 0.49), (0.15, 0.01, 0.01, 0.83)
        found = {"auto": np.zeros(2), None: np.zeros(2)}
        for audit in range(n_audits):
            tables = [rng.multinomial(n, law) for n, law in zip((60, 2_000), laws, strict=True)]
            for strata, counts in found.items():
                result = fa.permutation_test(
                    **decided(*tables), metric="f1", alternative="less", strata=strata,
                    n_resamples=199, rng=audit, n_threads=1,
                )  # fmt: skip
                counts += [result.pvalue <= level for level in (0.05, 0.01)]
        most = [stats.binom.isf(1e-6, n_audits, level) for level in (0.05, 0.01)]
        assert np.all(found["auto"] <= most), found
        assert found[None][0] > 1.5 * found["auto"][0], found
