"""The extremes lens against scipy, in one run on one machine.

Fits of the generalised Pareto law, with intervals by the shipped cuts, and an audit of all pairs of
ten groups. Baselines take the same cuts. With --write the table goes to benches/README.md and
docs/performance.md.
"""

import math

import numpy as np
from scipy import optimize, stats

import fairaudit_rs as fa
from fairaudit_rs import _native
from report import machine, memory_table, run, seconds, time_table, timed

SAMPLES, K = 1_000, 50
GROUPS, ROWS = 10, 100_000
CUT = stats.norm.ppf(0.975)

TEXT = f"""
A baseline fits with `scipy.stats.genpareto.fit`, profiles the likelihood at a level with
`scipy.optimize.minimize_scalar`, and finds limits with `brentq`. Where the table says *scaled*, it
was timed on as many samples or pairs as it says. For a difference of levels it looks at a grid
around both, as the test needs; a plain search for the least misfit is faster, and wrong for some
tails.

A fit with its interval, {K} exceedances and the call from Python included:
"""

MEMORY_TEXT = """
Cuts are shipped up to 4,200 exceedances, the default of 1.1 million rows: beyond, they are
simulated once in a process (tens of seconds on one thread at 10^7 rows), or fewer exceedances
asked for, as here. Peak memory of a call above its input columns of 10^7 rows, in multiples of
these columns:
"""

SET_UP = """
import numpy as np, fairaudit_rs as fa
_rng = np.random.default_rng(0)
_n = 10_000_000
score = 0.4 * _rng.random(_n)
flipped = score + 0.6 * _rng.random(_n) ** 3
group = _rng.integers(0, 2, _n, dtype=np.int8)
_few = slice(0, 2_000)
fa.extreme_test(y_score=score[_few], counterfactual_score=flipped[_few],
                sensitive_features=group[_few], rng=1)
values = flipped - score
"""
MEMORY = {
    "extreme_test, two columns of scores, two groups": (
        "fa.extreme_test(y_score=score, counterfactual_score=flipped, sensitive_features=group,"
        " n_exceedances=4_000, horizon=1e6, rng=1)",
        "del values",
    ),
    "fit_tail": (
        "fa.fit_tail(values, upper=1.0, n_exceedances=4_000).level(1e7)",
        "del score, flipped, group",
    ),
}


# -- baselines -------------------------------------------------------------------------------------


class ByScipy:
    """The fit of excesses, and z of levels from the same cuts, as a careful user writes it."""

    def __init__(self, y, horizon, cuts):
        self.y, self.k, self.largest = y, len(y), y.max()
        self.log_horizon, self.cuts = math.log(horizon), cuts
        self.shape, _, self.scale = stats.genpareto.fit(y, floc=0)
        self.top = self.likelihood(self.shape, self.scale)
        self.level = self.scale * self.growth(self.shape)

    def growth(self, shape):
        if abs(shape) < 1e-9:
            return self.log_horizon
        return math.expm1(shape * self.log_horizon) / shape

    def likelihood(self, shape, scale):
        if abs(shape) < 1e-9:
            return -self.k * math.log(scale) - self.y.sum() / scale
        if 1 + shape * self.largest / scale <= 0:
            return -math.inf
        logs = np.log1p(self.y * (shape / scale)).sum()
        return -self.k * math.log(scale) - (1 + 1 / shape) * logs

    def z(self, level):
        """Phi^-1 of the null probability of the signed root at a level."""
        if level <= 0:
            return 1e3
        low = -1.0
        if level < self.largest:
            low = max(low, math.log1p(-level / self.largest) / self.log_horizon)
        found = optimize.minimize_scalar(
            lambda shape: -self.likelihood(shape, level / self.growth(shape)),
            bounds=(low, 3.0),
            method="bounded",
            options={"xatol": 1e-6},
        )
        root = math.sqrt(2 * max(self.top + found.fun, 0.0))
        return self.cuts.z(math.copysign(root, self.level - level), found.x)

    def limits(self):
        """The interval of the level: |z| within its cut."""
        low, high = 0.0, 2 * self.level
        while self.z(high) > -CUT:
            high *= 2
        return (
            optimize.brentq(lambda x: self.z(x) - CUT, low, self.level, xtol=1e-6 * self.level),
            optimize.brentq(lambda x: self.z(x) + CUT, self.level, high, xtol=1e-6 * self.level),
        )


def excesses(values, k):
    """Excesses over the (k + 1)-th largest value on the scale of -log(1 - c), and that value."""
    top = -np.log1p(-np.sort(values)[::-1][: k + 1])
    return top[:k] - top[k], top[k]


def difference_by_scipy(first, second, careful):
    """(Q, low, high) of the difference of two levels, each a fit with its threshold.

    The least misfit: by a grid around both levels, as the test needs it (a plain search rejects
    half of all equal pairs where a tail is that of a logistic model), or by a plain search.
    """
    intervals = [[at + x for x in value.limits()] for value, at in (first, second)]

    def misfit(group, level):
        fit, threshold = group
        if level >= 1:
            return 1e6
        return min(fit.z(-math.log1p(-level) - threshold), 1e3) ** 2

    on_values = [[-math.expm1(-x) for x in interval] for interval in intervals]
    levels = [-math.expm1(-at - value.level) for value, at in (first, second)]

    def least(delta):
        ours, theirs = levels[0] - delta, levels[1]
        low, high = min(ours, theirs), max(ours, theirs)
        if high - low < 1e-9:
            return misfit(first, low + delta) + misfit(second, low)

        def total(x):
            return misfit(first, x + delta) + misfit(second, x)

        bounds = low, high
        if careful:
            steps = 0.5 * (high - low) * 10 ** (-np.arange(15) / 2)
            around = [x + side * steps for x in bounds for side in (-1, 1)]
            grid = np.unique(np.concatenate([*around, np.linspace(low, high, 41)]))
            best = int(np.argmin([total(x) for x in grid]))
            bounds = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
        return optimize.minimize_scalar(
            total, bounds=bounds, method="bounded", options={"xatol": 1e-4 * (high - low)}
        ).fun

    centre = levels[0] - levels[1]
    span = sum(high - low for low, high in on_values)
    limits = [
        optimize.brentq(
            lambda delta: least(delta) - CUT**2,
            *sorted((centre, centre + side * span)),
            xtol=1e-5 * span,
        )
        for side in (-1, 1)
    ]
    return least(0.0), *limits


# -- rows ------------------------------------------------------------------------------------------


def batch():
    call = _native.Call(1)
    samples = np.random.default_rng(0).standard_exponential((SAMPLES, K + 1))
    n = SAMPLES
    cuts = _native.Cuts.of_level(K, float(n), float(n))

    def fits():
        return [_native.TailValues(row, call).fit(K, None, None) for row in samples]

    # K + 1 values stand for the largest of n: M = m k / n is that of the level of horizon m.
    m = n * (K + 1) / n

    def with_intervals():
        return [fit.interval(m * 1.0, 0.95, cuts, call) for fit in fits()]

    ours = with_intervals()
    few = [np.sort(row)[1:] - row.min() for row in samples]
    horizon = m * K / (K + 1)
    for y, (low, high), row in zip(few[:10], ours, samples, strict=False):
        theirs = ByScipy(y, horizon, cuts).limits()
        assert abs(theirs[0] - low + row.min()) < 2e-3
        assert abs(theirs[1] - high + row.min()) < 2e-2

    def scipy_fits():
        for y in few[:50]:
            stats.genpareto.fit(y, floc=0)

    def scipy_intervals():
        for y in few[:10]:
            ByScipy(y, horizon, cuts).limits()

    work = f"GPD fit, {K} exceedances, batch of {SAMPLES:,}, one thread"
    theirs = SAMPLES / 50 * seconds(scipy_fits, 3)
    yield work, "scipy genpareto.fit (50 samples, scaled)", theirs, seconds(fits), 300
    theirs = SAMPLES / 10 * seconds(scipy_intervals, 2)
    baseline = "scipy genpareto.fit and a profile loop of the same cuts (10, scaled)"
    yield f"{work}, with interval", baseline, theirs, seconds(with_intervals, 3), 100


def audit():
    rng = np.random.default_rng(0)
    group = rng.permutation(np.repeat(np.arange(GROUPS), ROWS))
    score = 0.4 * rng.random(GROUPS * ROWS)
    gain = (0.3 + 0.03 * group) * rng.beta(2, 4, GROUPS * ROWS)
    m = float(ROWS)

    def ours():
        result = fa.extreme_test(
            y_score=score,
            counterfactual_score=score + gain,
            sensitive_features=group,
            horizon=m,
            rng=1,
        )
        return result, [tail.level(m) for tail in result.tails.values()]

    k = _native.default_exceedances(ROWS)
    cuts = _native.Cuts.of_level(k, float(ROWS), m)
    found = {
        (comparison.first, comparison.second): comparison for comparison in ours()[0].comparisons
    }
    mine = seconds(ours, 3)

    def tail(name):
        y, threshold = excesses(gain[group == name], k)
        return ByScipy(y, m * k / ROWS, cuts), threshold

    def scipy_tails():
        for name in range(2):
            tail(name)[0].limits()

    of_tails = GROUPS / 2 * seconds(scipy_tails, 1)
    work = (
        f"extreme_test, {GROUPS} groups of 10^5 rows, tails with intervals, all {len(found)} "
        "pairs, from arrays"
    )
    baseline = "scipy genpareto.fit and a profile loop of the same cuts, from tails"
    for careful, every, goal in ((True, 30, 100), (False, 15, None)):
        pairs = list(found)[::every]
        tails = {name: tail(name) for pair in pairs for name in pair}
        answers = []
        taken = timed(
            lambda tails=tails, pairs=pairs, careful=careful, answers=answers: answers.extend(
                difference_by_scipy(tails[value], tails[other], careful) for value, other in pairs
            )
        )
        for pair, (statistic, low, high) in zip(pairs, answers, strict=True):
            one = found[pair]
            assert abs(statistic - one.statistic) < 1e-2 * max(statistic, 1), (statistic, one)
            assert max(abs(low - one.low), abs(high - one.high)) < 1e-2 * (high - low), (low, one)
        theirs = taken / len(pairs) * len(found) + of_tails
        search = "" if careful else ", a plain search over levels"
        yield work, f"{baseline}{search} ({len(pairs)} pairs, scaled)", theirs, mine, goal


def single():
    """Milliseconds of a fit with the interval of a level, by shipped cuts."""
    values, call = np.random.default_rng(0).beta(2, 4, 2_000), _native.Call(1)

    def kernel():
        fit = _native.TailValues(values, call).fit(78, 1.0, None)
        return fit.interval(2_000.0, 0.95, _native.Cuts.of_level(78, 2_000.0, 2_000.0), call)

    yield "fit and interval of a level, 78 of 2,000 rows, sort included", kernel, 0.5
    yield (
        "fit_tail and level(2,000), 2,000 rows: with type, half as many exceedances, lower_free",
        lambda: fa.fit_tail(values, upper=1.0).level(2_000.0),
        None,
    )


def lines():
    yield from time_table([*batch(), *audit()])
    yield from ["", machine()]
    yield from TEXT.splitlines()
    yield from ["", "| work | ms | goal, at most |", "|---|---|---|"]
    for work, call, goal in single():
        milliseconds = 1e3 * seconds(call, 50)
        missed = ", missed" if goal is not None and milliseconds > goal else ""
        yield f"| {work} | {milliseconds:.3g} | {'' if goal is None else f'{goal}{missed}'} |"
    yield from MEMORY_TEXT.splitlines()
    yield ""
    yield from memory_table(MEMORY, SET_UP)


if __name__ == "__main__":
    run("extremes", lines(), __doc__)
