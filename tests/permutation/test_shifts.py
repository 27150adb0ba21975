"""The native test of two groups at any gap: its replicates, counts and limits."""

import math
import pickle

import numpy as np
import pytest
from scipy import stats

import fairaudit_rs as fa
from fairaudit_rs import _native

from ..reference import means, means_intervals
from . import shifting
from .posing import posed

RATIO = fa.metrics.ratio_metric("cost_per_case", "cost", "cases")
MEAN = fa.metrics.ratio_metric("mean_cost", "cost")
CALL = _native.Call(1)


def make(design, seed=0, n=14, levels=None):
    """A public problem of few units, and (a, d, group, stratum) of its units.

    Clusters are of one to three rows; in "sparse" strata a group has one unit here and there.
    """
    rng = np.random.default_rng(seed)
    parts = design.split()
    n = 14 if "sparse" in parts else n
    clustered = "clusters" in parts
    sizes = rng.integers(1, 4, n) if clustered else np.ones(n, dtype=int)
    unit = np.repeat(np.arange(n), sizes)
    group = np.resize(["a", "b", "b"], n)
    stratum = None
    if "strata" in parts:
        stratum = np.arange(n) * 3 // n
        group = rng.permutation(np.resize(["a", "b"], n))
    if "sparse" in parts:
        stratum = np.repeat([0, 1, 2, 3, 4], [4, 3, 2, 4, 1])
        group = np.array(list("aabbabbababbba"))
    data = {
        "cost": rng.exponential(size=len(unit)) ** 2,
        "cases": rng.integers(1, 4, len(unit)).astype(float),
        "group": group[unit],
    }
    if "zeros" in parts:
        data["cost"][::5], data["cases"][::5] = 0.0, 0.0
    if levels:
        data["cost"] = np.round(data["cost"] * levels) / levels
    options = {"sensitive_features": "group"}
    weight = np.ones(len(unit))
    if "weights" in parts:
        weight = data["weight"] = rng.uniform(0.5, 2, len(unit))
        options["sample_weight"] = "weight"
    if clustered:
        data["unit"] = unit
        options["clusters"] = "unit"
    if stratum is not None:
        data["stratum"] = stratum[unit]
        options["strata"] = "stratum"
    metric = MEAN if "mean" in parts else RATIO
    below = np.ones(len(unit)) if "mean" in parts else data["cases"]
    a, d = (np.bincount(unit, weight * part) for part in (data["cost"], below))
    problem = posed(metric, data=data, **options)
    return problem, (a, d, group, stratum)


def drawn(problem, n, first=0, seed=3):
    draws = _native.Draws(n, seed=seed, series=1, first=first)
    return problem.test((0, 1)).shifts(draws, CALL)


DESIGNS = [
    "mean",
    "ratio",
    "ratio zeros",
    "mean weights",
    "ratio weights",
    "mean clusters",
    "ratio weights clusters",
    "mean strata",
    "ratio strata zeros",
    "ratio weights strata",
    "mean clusters strata",
    "ratio weights clusters strata",
    "mean sparse",
    "ratio weights sparse",
    "mean clusters sparse",
]


def stored(units, column, clusters):
    a, d, group, stratum = units
    first = group == min(group)
    found = means_intervals.stored_coefficients(
        a, d, column == 0, first, stratum, clusters=clusters
    )
    return np.concatenate([found.difference, found.variance, found.third])


@pytest.mark.parametrize("design", DESIGNS)
class TestReplicates:
    def test_the_data(self, design):
        """The gap, v and the third sum of the data; what guard and intervals read."""
        problem, (a, d, group, stratum) = make(design, n=40)
        clusters = "clusters" in design
        shifts = drawn(problem, 1)
        slow = means.statistic_of(a, d, group, stratum, clusters=clusters)
        assert shifts.estimate == pytest.approx(slow.difference, rel=1e-9)
        assert shifts.variance == pytest.approx(slow.variance, rel=1e-9)
        assert shifts.studentized == pytest.approx(slow.studentized, rel=1e-9)
        assert shifts.corrected == pytest.approx(slow.hall, rel=1e-9)
        gap = problem.gap((0, 1))
        assert gap.estimate == pytest.approx(slow.difference, rel=1e-9)
        assert gap.standard_error == pytest.approx(math.sqrt(slow.variance), rel=1e-9)
        own = (group != "a").astype(int)
        expected = stored((a, d, group, stratum), own, clusters)
        found = shifts.__getnewargs__()[0]
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-11 * np.abs(expected).max())

    def test_replicates_are_assignments(self, design):
        """Each has the nine numbers of an assignment of units, all as often as each other."""
        problem, units = make(design, n=9)
        clusters = "clusters" in design
        law = np.array(
            [stored(units, column, clusters) for column in shifting.assignments(units[2], units[3])]
        )
        scale = np.nanmax(np.abs(law), axis=0) + 1e-300
        # Those that hold the same numbers are one; undefined numbers are equal.
        keys = np.round(np.nan_to_num(law / scale, nan=9.0), 7) + 0.0
        n = 6_000
        replicates = drawn(problem, n).__getnewargs__()[2]
        found = np.nan_to_num(replicates / scale, nan=9.0)
        distinct, counts = np.unique(keys, axis=0, return_counts=True)
        distance = np.abs(found[:, None, :] - distinct[None, :, :]).max(axis=2)
        nearest = distance.argmin(axis=1)
        assert distance.min(axis=1).max() < 2e-7
        seen = np.bincount(nearest, minlength=len(distinct))
        expected = n * counts / counts.sum()
        order = np.argsort(expected)
        # Rare ones together, so that each class is expected at least 20 times.
        classes = np.floor(np.cumsum(expected[order]) / max(20, expected.max())).astype(int)
        seen, expected = (np.bincount(classes, part[order]) for part in (seen, expected))
        kept = expected > 5
        assert np.sum((seen - expected)[kept] ** 2 / expected[kept]) < stats.chi2.isf(
            1e-6, max(1, kept.sum() - 1)
        )

    @pytest.mark.parametrize("gap", [0.0, 0.37, -2.5])
    def test_counts(self, design, gap):
        """By T and by h, up to ties, of both sides; NaN is extreme."""
        problem, _ = make(design, n=9, levels=2)
        shifts = drawn(problem, 500)
        observed, *null = shifting.t_and_h(shifts, gap)
        if math.isnan(observed[0]):
            return
        for side, name in ((1, "greater"), (-1, "less")):
            found = shifts.extremes(gap, name, CALL)
            counts = [
                sum(means.is_beyond(replicate[which], observed[which], side) for replicate in null)
                for which in (0, 1)
            ]
            assert [found.studentized, found.corrected] == counts
            assert found.undefined == sum(math.isnan(replicate[0]) for replicate in null)

    def test_limits_are_crossings(self, design):
        """p just inside is above alpha/2, just outside at most that: by the reference's p."""
        problem, _ = make(design, n=24, seed=2)
        shifts = drawn(problem, 399)
        error = math.sqrt(shifts.variance)

        def p(gap, side):
            observed, *null = shifting.t_and_h(shifts, gap)
            return getattr(means.max_pvalues(observed, null), side)

        for level in (0.025, 0.1):
            for side, outwards in (("greater", -1), ("less", 1)):
                limit = shifts.limit(side, level, CALL)
                if math.isinf(limit):
                    assert np.sign(limit) == outwards
                    far = shifts.estimate + outwards * np.array([1e3, 1e5]) * error
                    assert all(p(value, side) > level for value in far)
                    continue
                assert (limit - shifts.estimate) * outwards > 0
                assert p(limit - outwards * 1e-5 * error, side) > level
                assert p(limit + outwards * 1e-5 * error, side) <= level
                for steps in (0.5, 1, 2):
                    assert p(limit + outwards * steps * error, side) <= level

    def test_copies(self, design):
        problem, _ = make(design, n=20)
        shifts = drawn(problem, 70)
        again = pickle.loads(pickle.dumps(shifts))
        for first, second in zip(again.__getnewargs__(), shifts.__getnewargs__(), strict=True):
            assert first.tobytes() == second.tobytes()
        joined = drawn(problem, 33).joined(drawn(problem, 37, first=33))
        assert joined.__getnewargs__()[2].tobytes() == shifts.__getnewargs__()[2].tobytes()
        assert drawn(problem, 33) != shifts
        sixteen = drawn(problem, 16)
        copy = pickle.loads(pickle.dumps(sixteen))
        # Undefined numbers are unlike themselves.
        assert (copy == sixteen) != np.isnan(sixteen.__getnewargs__()[2]).any()
        for n_threads in (2, 7):
            draws = _native.Draws(70, seed=3, series=1)
            other = problem.test((0, 1)).shifts(draws, _native.Call(n_threads))
            assert other.__getnewargs__()[2].tobytes() == shifts.__getnewargs__()[2].tobytes()


class TestIntervals:
    @pytest.mark.parametrize("design", ["mean", "ratio weights", "mean clusters", "ratio strata"])
    def test_as_the_reference_searches(self, design):
        """The same outermost crossings by another search, of the same replicates."""
        problem, _ = make(design, n=30, seed=4)
        shifts = drawn(problem, 199)
        data, *replicates = shifting.coefficients(shifts)

        def pvalues(gap):
            found = [replicate.at(gap) for replicate in (data, *replicates)]
            observed, *null = [(value.studentized, value.hall) for value in found]
            return means.max_pvalues(observed, null)

        slow = means_intervals.invert(
            pvalues,
            data.at(0.0),
            0.0,
            199,
            0.1,
        )
        found = shifts.limit("greater", 0.05, CALL), shifts.limit("less", 0.05, CALL)
        assert found == pytest.approx(slow, abs=1e-5 * math.sqrt(shifts.variance))

    @pytest.mark.parametrize("design", ["mean", "ratio weights", "mean clusters", "ratio strata"])
    def test_limits_are_those_of_shuffled_units(self, design):
        """Units that are really shuffled: the same up to Monte Carlo error."""
        problem, (a, d, group, stratum) = make(design, n=40, seed=5)
        rng = np.random.default_rng(1)
        shuffles = means.shuffled_groups(group, stratum, 999, rng)
        slow = means_intervals.interval_by_inversion(
            a, d, group, shuffles, stratum, clusters="clusters" in design, alpha=0.1
        )
        shifts = drawn(problem, 20_000)
        found = shifts.limit("greater", 0.05, CALL), shifts.limit("less", 0.05, CALL)
        # The density of T at its 0.05 quantile is about 0.1: sqrt(0.05 0.95 / 999) / 0.1 = .07.
        assert found == pytest.approx(slow, abs=5.5 * 0.07 * math.sqrt(shifts.variance))
        assert found != pytest.approx((shifts.estimate,) * 2, abs=math.sqrt(shifts.variance))

    def test_infinite_where_no_assignment_is_rare(self):
        """3 + 3 rows: 1 / C(6, 3) = 1/20 is above 0.025 and not above .05."""
        data = {"cost": np.arange(6.0) ** 2, "group": list("aaabbb")}
        problem = posed(MEAN, data=data, sensitive_features="group")
        shifts = drawn(problem, 4_000)
        assert shifts.limit("greater", 0.025, CALL) == -math.inf
        assert shifts.limit("less", 0.025, CALL) == math.inf
        assert math.isfinite(shifts.limit("greater", 0.1, CALL))

    def test_intervals_and_tests_agree(self):
        """Of the public function: an interval without 0 is a p at most 1 - its level."""
        disagreed, outside = 0, 0
        for seed in range(40):
            rng = np.random.default_rng(seed)
            values = rng.exponential(size=60)
            values[:25] += 0.7
            result = fa.permutation_test(
                data={"cost": values, "group": np.repeat(["a", "b"], [25, 35])},
                sensitive_features="group",
                metric=MEAN,
                n_resamples=399,
                rng=1,
            )
            assert result.interval == "inversion"
            if result.inconclusive:
                continue
            low, high = result.confidence_interval
            outside += low > 0 or high < 0
            disagreed += (low > 0 or high < 0) != (result.pvalue <= 0.05)
        assert outside > 5
        assert disagreed == 0
