"""Laws whose return levels are known, for simulations of the extremes lens.

A law draws rows and says which level they exceed with a probability. `LAWS` are those of the
promise of section 5; the tests and the validity atlas draw from here.
"""

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats


@dataclass(frozen=True)
class Law:
    """Rows and the level that they exceed with a probability."""

    #: From a generator and a number of rows.
    sample: object
    #: From a probability.
    level: object
    #: The known end.
    upper: float | None = None
    #: The shape of its tail on the scale of the fit, and on its own.
    shapes: tuple = (None, None)

    def times(self, factor, upper=None):
        """The law of a multiple."""
        return Law(
            lambda rng, n: factor * self.sample(rng, n), lambda q: factor * self.level(q), upper
        )

    def with_upper(self, upper):
        return Law(self.sample, self.level, upper, self.shapes)


def beta(a, b, factor=1.0):
    law = stats.beta(a, b)
    shapes = (0.0 if factor == 1 else -1 / b, -1 / b)
    return Law(
        lambda rng, n: factor * rng.beta(a, b, n), lambda q: factor * law.isf(q), 1.0, shapes
    )


def index_model(effect=1.5):
    """Flips of a logistic model in one normal feature: a smooth maximum, shape -2.

    c = s(x + effect) - s(x) is largest in the middle, where it falls off like a square.
    """

    def difference(distance):
        middle = -effect / 2
        return special.expit(middle + distance + effect) - special.expit(middle + distance)

    def level(q):
        def share(distance):
            middle = -effect / 2
            return stats.norm.cdf(middle + distance) - stats.norm.cdf(middle - distance) - q

        return difference(optimize.brentq(share, 0, 12, xtol=1e-15))

    return Law(
        lambda rng, n: difference(rng.standard_normal(n) + effect / 2), level, 1.0, (-2.0, -2.0)
    )


def mixture(share, first, second):
    """Two populations: a share of the first law."""

    def sample(rng, n):
        is_first = rng.random(n) < share
        return np.where(is_first, first.sample(rng, n), second.sample(rng, n))

    return Law(sample, lambda q: level_of(share, first, second, q), 1.0)


def level_of(share, first, second, q):
    """The level of a mixture, by its tails: those of the laws, inverted."""

    def tail(law, x):
        def at(log_q):
            return law.level(np.exp(log_q)) - x

        low, high = np.log(1e-12), np.log(1 - 1e-9)
        if at(high) >= 0:
            return 1.0
        return 0.0 if at(low) <= 0 else np.exp(optimize.brentq(at, low, high))

    def excess(x):
        return share * tail(first, x) + (1 - share) * tail(second, x) - q

    low = min(first.level(0.999), second.level(0.999))
    high = max(first.level(1e-12), second.level(1e-12))
    return optimize.brentq(excess, low, high, xtol=1e-13)


def truncated_t(scale):
    """Student's t with 4 degrees of freedom times a scale, what is above 1 left out."""
    law = stats.t(4)
    inside = law.cdf(1 / scale)
    return Law(
        lambda rng, n: scale * law.ppf(inside * rng.random(n)),
        lambda q: scale * law.ppf(inside * (1 - q)),
        1.0,
    )


EXPONENTIAL = Law(
    lambda rng, n: rng.standard_exponential(n), lambda q: -np.log(q), None, (0.0, 0.0)
)
T4 = Law(lambda rng, n: rng.standard_t(4, n), stats.t(4).isf, None, (0.25, 0.25))
LAWS = {
    "uniform": beta(1, 1),
    "beta(2, 1.2)": beta(2, 1.2),
    "beta(2, 4)": beta(2, 4),
    "exponential": EXPONENTIAL,
    "t4": T4,
}
#: Other smooth tails with a known end, at or above that of the law.
OTHERS = {
    ".2 normal": Law(
        lambda rng, n: 0.2 * rng.standard_normal(n), lambda q: 0.2 * stats.norm.isf(q), 1.0
    ),
    ".05 exponential": EXPONENTIAL.times(0.05, upper=1.0),
    ".6 beta(2, 4)": beta(2, 4, 0.6),
    ".6 uniform": beta(1, 1, 0.6),
    ".03 t4 below 1": truncated_t(0.03),
    "beta(.5, .5)": beta(0.5, 0.5),
}
INDEX = {"index model": index_model()}
MIXTURES = {
    f"{100 * share:g} % of beta(5, 5)": mixture(share, beta(5, 5), EXPONENTIAL.times(0.05))
    for share in (0.02, 0.005)
}
ALL = {**LAWS, **OTHERS, **INDEX, **MIXTURES}
