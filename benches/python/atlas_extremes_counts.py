"""Counts of the extremes atlas: interval errors on both sides, by level."""

import zlib
from dataclasses import fields

import numpy as np
from scipy import stats

from atlas_tools import ALPHA
from fairaudit_rs import _native
from fairaudit_rs.extremes.problem import TailProblem

#: Levels of intervals; the last is where the p-values of the shipped cuts end.
LEVELS = (0.9, 0.95, 0.99, 0.998)
#: The place of the level that is promised.
AT = LEVELS.index(1 - ALPHA)
CUTS = stats.norm.isf((1 - np.array(LEVELS)) / 2)
#: Samples of which the intervals themselves are computed.
INTERVALS = 300


def tail_of_rows(law, rng, n, **options):
    """The tail of a sample of a law, with its known end."""
    return TailProblem(values=law.sample(rng, n), **{"upper": law.upper, **options})


def chi_square():
    """Cuts in whose place the root itself stands: what chi-square would have."""
    nodes, probabilities = _native.cut_grid()
    return _native.Cuts(np.tile(stats.norm.ppf(probabilities), (len(nodes), 1)))


class Scenario:
    """Simulations of one design: what a dataclass of its parameters measures."""

    part = ""

    @property
    def key(self):
        named = (f"{field.name}={getattr(self, field.name)}" for field in fields(self))
        return f"{self.part}: {', '.join(named)}"

    def rng(self):
        """Randomness that depends on the design alone."""
        return np.random.default_rng(zlib.crc32(self.key.encode()))


class Scores:
    """Normal scores of a truth: errors of the intervals on both sides, by level."""

    def __init__(self):
        self.found = []
        self.refused = 0

    def add(self, fit, m, truth, cuts, call):
        self.found.append(fit.z(m, np.array([truth]), cuts, call)[0])

    def entry(self):
        z = np.array(self.found)
        return {
            "of": len(z),
            "refused": self.refused,
            # A truth below the lower limit has an estimate too far above it.
            "low": [int((z > cut).sum()) for cut in CUTS],
            "high": [int((z < -cut).sum()) for cut in CUTS],
        }


class Limits:
    """Limits and a truth: how often it lies below or above them, and how wide they are."""

    def __init__(self):
        self.of = self.low = self.high = self.refused = 0
        self.widths = []

    def add(self, low, high, truth):
        if np.isnan(low) or np.isnan(high):
            self.refused += 1
            return
        self.of += 1
        self.low += bool(truth < low)
        self.high += bool(truth > high)
        if truth:
            self.widths.append((high - low) / abs(truth))

    def entry(self):
        widths = [width for width in self.widths if np.isfinite(width)]
        return {
            "of": self.of,
            "refused": self.refused,
            "low": self.low,
            "high": self.high,
            "width": float(np.median(widths)) if widths else None,
        }
