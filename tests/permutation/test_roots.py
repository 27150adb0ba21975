"""Ends of intervals are those of a bisection to the last bit, found with fewer evaluations."""

import math

import numpy as np
import pytest

from fairaudit_rs.inference import proportions
from fairaudit_rs.inference.proportions import SampleProportion, ratio_interval, ratio_score
from fairaudit_rs.inference.roots import narrowed


def bisected(falling, level, start):
    """Halve until nothing lies between the ends: what `_crossing` did before."""
    low, high, step = start, start, 0.25
    while falling(low) < level:
        if low <= -350.0:
            return -math.inf
        low, step = max(low - step, -350.0), 2 * step
    step = 0.25
    while falling(high) > level:
        if high >= 350.0:
            return math.inf
        high, step = min(high + step, 350.0), 2 * step
    while True:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            return middle
        low, high = (middle, high) if falling(middle) >= level else (low, middle)


def slow_interval(x, n, y, m, z):
    # Counts as they come of a share.
    (p, n), (q, m) = SampleProportion(x / n, n), SampleProportion(y / m, m)

    def score(log):
        return ratio_score(p * n, n, q * m, m, math.exp(log))

    start = math.log(p / q)
    low = math.exp(bisected(lambda log: min(score(log)), z, start))
    high = math.exp(bisected(lambda log: max(score(log)), -z, start))
    return min(low, p / q), max(high, p / q)


def random_counts(rng):
    """Rows of both outcomes in two groups: few or many, rates anywhere, also next to 0 and 1."""
    counts = []
    for _ in range(2):
        n = int(10 ** rng.uniform(1, 7))
        kind = rng.integers(3)
        x = rng.integers(1, n) if kind == 0 else min(int(rng.integers(1, 9)), n - 1)
        counts += [int(n - x if kind == 2 else x), n]
    return counts


class TestRatios:
    @pytest.mark.parametrize("z", [0.5, 1.6448536269514722, 1.959963984540054, 4.4])
    def test_the_last_bits_are_those_of_a_bisection(self, z):
        rng = np.random.default_rng(round(10 * z))
        for _ in range(400):
            x, n, y, m = random_counts(rng)
            found = ratio_interval(SampleProportion(x / n, n), SampleProportion(y / m, m), z)
            assert found == slow_interval(x, n, y, m, z), (x, n, y, m)

    def test_half_the_evaluations(self, monkeypatch):
        seen, original = [], proportions.ratio_score
        monkeypatch.setattr(
            proportions, "ratio_score", lambda *given: seen.append(given) or original(*given)
        )
        ratio_interval(SampleProportion(0.4, 1_000), SampleProportion(0.5, 800), 1.96)
        assert len(seen) <= 2 * 32

    def test_few_rows_of_an_outcome_are_bisected_to_the_end(self, monkeypatch):
        """Their scores bend, and can have a value twice."""
        monkeypatch.setattr(proportions, "narrowed", lambda *given: pytest.fail("narrowed"))
        ratio_interval(SampleProportion(4 / 20, 20), SampleProportion(0.5, 80), 1.96)
        ratio_interval(SampleProportion(16 / 20, 20), SampleProportion(0.5, 80), 1.96)


class TestNarrowed:
    @pytest.mark.parametrize("root", [-2.0, -1e-3, 0.0, 0.3, 4.0])
    @pytest.mark.parametrize(
        "falling", [lambda x: -x, lambda x: -math.sinh(x), lambda x: 1 - math.exp(x)]
    )
    def test_ends_enclose_the_root(self, root, falling):
        def at(x):
            return falling(x - root)

        start, end = root - 1.5, root + 1.1
        low, high = narrowed(at, 0.0, (start, at(start)), (end, at(end)))
        assert low < root < high
        assert high - low <= 2e-12 * max(abs(root), 1) * 1.01

    def test_rising_functions(self):
        low, high = narrowed(math.tanh, 0.5, (0.0, -0.5), (4.0, math.tanh(4.0) - 0.5))
        assert low < math.atanh(0.5) < high < low + 3e-12

    @pytest.mark.parametrize(
        "function",
        [
            # Rounding is larger than the ends are apart.
            lambda x: -x + 1e-12 * math.sin(1e15 * x),
            # A step has no slope.
            lambda x: 1.0 if x < 0.1 else -1.0,
            # Flat at the root.
            lambda x: -(x**3),
        ],
    )
    def test_functions_that_are_no_lines_keep_their_ends(self, function):
        ends = (-1.0, function(-1.0)), (1.5, function(1.5))
        assert narrowed(function, 0.0, *ends) == (-1.0, 1.5)

    def test_without_a_change_of_sign(self):
        assert narrowed(math.exp, 0.0, (0.0, 1.0), (1.0, math.e)) == (0.0, 1.0)
