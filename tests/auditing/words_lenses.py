"""The sentences that lenses of a random audit must print, from rows and slow references."""

from collections import namedtuple
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import combinations
from math import comb

import numpy as np
from scipy import stats

from ..reference import extremes, individual, projection, tolerance

NAMES = ("projection", "individual", "influence", "extremes")
#: The parts of a design that a lens takes.
TAKES = {"projection": {"weights"}, "individual": {"weights", "clusters"}}
RATES = (
    "selection_rate", "true_positive_rate", "false_negative_rate", "false_positive_rate",
    "true_negative_rate", "positive_predictive_value", "false_discovery_rate",
)  # fmt: skip
HORIZON, FEWEST_ROWS, GROUP_ROWS = 1_000, 100, 30

#: Two groups of a lens: the one with the higher value first; p of a gap within the tolerance.
Gap = namedtuple("Gap", "high low high_value low_value high_n low_n size p_fail p_pass")


def kept(method):
    """Keep what a method found: text, page and content of an audit all ask for it."""

    @wraps(method)
    def found(self, *given):
        key = method.__name__, *given
        if key not in self.known:
            self.known[key] = method(self, *given)
        return self.known[key]

    return found


@dataclass(frozen=True)
class LensAsked:
    """A lens that a criterion holds to a tolerance, asked of an attribute."""

    lens: str
    attribute: str
    criterion: object

    @property
    def binding(self):
        return self.criterion.binding

    @property
    def tolerance(self):
        return self.criterion.tolerance


class Lenses:
    """The lenses of a `World`."""

    def __init__(self, world):
        self.world, self.policy = world, world.policy
        self.alpha = self.policy.alpha
        self.known = {}

    # -- what is asked -----------------------------------------------------------------------

    @property
    def wanted(self):
        return [name for name in self.policy.lenses if name in NAMES]

    def lacks(self, lens):
        """Return whether a lens has no scores, no model or no features."""
        world = self.world
        has_model = world.coef is not None and world.X is not None
        return {
            "projection": world.s is None,
            "individual": not has_model,
            "influence": world.X is None,
            "extremes": not has_model and world.flipped is None,
        }[lens]

    def refused(self, lens):
        """The parts of the design that a lens does not take."""
        there = {"weights": self.world.weighted, "clusters": self.world.clusters is not None}
        there["strata"] = bool(self.world.strata)
        return [name for name, has in there.items() if has and name not in TAKES.get(lens, ())]

    def attributes(self, lens):
        """Return the subjects that a lens is run for."""
        names = list(self.world.attributes)
        if lens != "projection" and self.lacks(lens):
            return [""]
        return [" and ".join(names)] if lens == "individual" else names

    def criterion(self, lens, attribute):
        about = [
            criterion
            for criterion in self.policy.criteria
            if criterion.lens == lens
            and (lens == "individual" or not attribute or criterion.covers(attribute))
        ]
        return min(about, key=lambda entry: not entry.binding, default=None)

    @cached_property
    def asked(self):
        """Those that have a verdict, the binding ones first."""
        found = [
            LensAsked(lens, name, criterion)
            for lens in self.wanted
            for name in self.attributes(lens)
            if (criterion := self.criterion(lens, name)) is not None
            and criterion.tolerance is not None
        ]
        return sorted(found, key=lambda entry: not entry.binding)

    @property
    def binding(self):
        return [value for value in self.asked if value.binding]

    # -- how many tests ----------------------------------------------------------------------

    def n_tests_of(self, lens, attribute):
        if self.lacks(lens) or self.refused(lens):
            return 0
        if lens == "individual":
            return 1
        if lens == "influence":
            n = len(self.rated(attribute))
            return 1 if n == 2 else n
        return comb(
            len(self.large(attribute, FEWEST_ROWS if lens == "extremes" else GROUP_ROWS)), 2
        )

    @cached_property
    def n_tests(self):
        """The tests of lenses that bind."""
        return sum(
            self.n_tests_of(criterion.lens, criterion.attribute) for criterion in self.binding
        )

    def n_adjusted(self, entry):
        """How many comparisons a fail of a lens is adjusted for."""
        own = self.n_tests_of(entry.lens, entry.attribute)
        n = self.world.n_tests if entry.binding else own
        return max(n, 1) if self.policy.adjustment == "holm" else 1

    def large(self, attribute, least):
        """The groups that are worth so many rows of equal weight."""
        found = []
        for name, rows in self.world.groups[attribute].items():
            w = self.world.w[rows]
            if w.sum() and w.sum() ** 2 / (w @ w) >= least:
                found.append(name)
        return found

    def rate_of(self, attribute):
        """The first rate that is asked by an attribute, those that bind first."""
        asked = [criterion for criterion in self.policy.criteria if criterion.metric]
        asked.sort(key=lambda entry: not entry.binding)
        names = [value.metric for value in asked if value.covers(attribute)]
        return next((name for name in names if name in RATES), "")

    def rated(self, attribute):
        """The groups whose rate a question can test, whatever the floor of the policy."""
        metric = self.rate_of(attribute)
        if not metric:
            return []
        groups = self.world.groups[attribute]
        return [name for name, rows in groups.items() if self.world.is_large(metric, rows, 30)]

    # -- gaps --------------------------------------------------------------------------------

    def gaps(self, entry):
        """All comparisons of a lens in an attribute."""
        return {"projection": self.departures, "influence": self.of_others}[entry.lens](entry)

    @property
    def notion(self):
        return "statistical_parity" if self.world.y is None else "equal_opportunity"

    @kept
    def departures(self, entry):
        """Pairs of groups whose scores are projected to rates that are nearly equal."""
        found = []
        for pair in combinations(self.large(entry.attribute, GROUP_ROWS), 2):
            p, gap, sides = self.projected(entry.attribute, pair, entry.tolerance)
            if np.isnan(p):
                continue
            sides = sides if gap >= 0 else sides[::-1]
            (high, a, n), (low, b, m) = sides
            found.append(Gap(high, low, a, b, n, m, abs(gap), p, np.nan))
        return found

    def projected(self, attribute, groups, epsilon=None):
        """p, the gap of the first two groups, and name, rate and rows of each."""
        world, of_groups = self.world, self.world.groups[attribute]
        rows = np.any([of_groups[name] for name in groups], axis=0)
        place = np.zeros(world.n, dtype=int)
        for i, name in enumerate(groups):
            place[of_groups[name]] = i
        label = None if world.y is None else world.y[rows]
        used = rows if world.y is None else rows & (world.y == 1)
        if any(not world.w[used & of_groups[name]].sum() for name in groups):
            return np.nan, np.nan, []
        weight = world.w[rows] if world.weighted else None
        decision = (world.s >= 0.5).astype(float)
        order = [*range(1, len(groups)), 0][: len(groups)]
        phi, influence = projection.criteria(
            self.notion, place[rows], label, order, 0, decision[rows], weight
        )
        found = projection.projection_test(
            np.abs(world.s[rows] - 0.5), decision[rows], phi, influence, weight, epsilon
        )
        sides = []
        for name in groups:
            mine = used & of_groups[name]
            w = world.w[mine]
            sides.append((name, float(w @ decision[mine] / w.sum()), int((w > 0).sum())))
        p = np.nan if found is None else found["pvalue"]
        return p, sides[0][1] - sides[1][1], sides

    @kept
    def of_others(self, entry):
        """The gap of every group to all others together, by the score test of two shares."""
        metric, attribute = self.rate_of(entry.attribute), entry.attribute
        groups, tested = self.world.groups[attribute], self.rated(attribute)
        found = []
        for name in tested if len(tested) > 2 else tested[:1]:
            rest = [other for other in groups if other != name]
            others = np.any([groups[other] for other in rest], axis=0)
            sides = []
            for who, rows in ((name, groups[name]), (self.rest(rest), others)):
                above, below = self.world.terms(metric)
                x, n = int(above[rows].sum()), int(below[rows].sum())
                sides.append((x / n if n else np.nan, who, x, n, rows))
            if not all(self.world.is_large(metric, rows, 30) for *_, rows in sides):
                continue
            (b, low, y, m, _), (a, high, x, n, _) = sorted(sides, key=lambda side: side[0])
            p = tolerance.of_shares(x, n, y, m, entry.tolerance) if entry.tolerance else (1, 1)
            found.append(Gap(high, low, a, b, n, m, a - b, *p))
        return found

    @staticmethod
    def rest(names):
        return names[0] if len(names) == 1 else "all others"

    # -- the individual lens -----------------------------------------------------------------

    @kept
    def growth(self, dropped=()):
        """The growth of the loss; None where the metric is fitted to groups of several levels."""
        world, criterion = self.world, self.criterion("individual", "")
        X, coef = world.X.to_numpy(float), np.array(world.coef)
        units, rows = np.ones(X.shape[1]), np.ones(world.n, dtype=bool)
        given = None if criterion is None else criterion.fair_metric
        if given is not None:
            metric = np.eye(len(coef))
            for name in given.features:
                at = list(world.X.columns).index(name)
                metric[at, at] = 0.0
        else:
            columns = []
            for name, groups in world.groups.items():
                if name not in world.attributes:
                    continue
                if len(groups) != 2:
                    return None
                rows &= np.any(list(groups.values()), axis=0)
                if name not in dropped:
                    columns.append(list(groups.values())[1])
            continuous = [len(np.unique(column)) > 2 for column in X.T]
            units = np.where(continuous, X[rows].std(axis=0), 1.0)
            coded = [np.where(column[rows], "1", "0") for column in columns]
            metric = individual.subspace_metric(X[rows] / units, coded)
        model = individual.Linear(coef * units, world.intercept)
        start = X[rows] / units
        _, end = individual.closed_flow(model, start, world.y[rows], metric)
        before = individual.log_loss(model.score(start), world.y[rows])
        ratios, *_ = individual.loss_ratios(before, end)
        return float(np.average(ratios, weights=world.w[rows]))

    # -- extremes ----------------------------------------------------------------------------

    @cached_property
    def discrimination(self):
        """Return the gain of every row by a flip of sex, or by the flips that were given."""
        world = self.world
        if world.flipped is not None:
            return world.flipped - world.s
        flipped = world.X.assign(sex=1 - world.X["sex"]).to_numpy(float)
        score = flipped @ np.array(world.coef) + world.intercept
        return 1 / (1 + np.exp(-score)) - world.s

    def flips(self, attribute):
        """Return whether there is a flip of an attribute."""
        world = self.world
        if world.flipped is not None:
            return world.s is not None
        if attribute != "sex" or "sex" not in world.X:
            return False
        return bool(world.coef[list(world.X.columns).index("sex")])

    @kept
    def level(self, attribute, group):
        """The least and the largest value that the level of a group may be told with."""
        if not self.flips(attribute):
            return None
        values = np.sort(self.discrimination[self.world.groups[attribute][group]])[::-1]
        n = len(values)
        if n < FEWEST_ROWS or 5 * n < HORIZON:
            return None
        if extremes.is_measured(n, HORIZON, 1 - self.alpha):
            k = int(n / HORIZON)
            return values[k], values[k - 1]
        k = extremes.default_k(n)
        fitted = extremes.fitted_level(values, HORIZON, k, 1.0)
        return fitted - 2e-4, fitted + 2e-4

    @kept
    def limits(self, attribute, first, second, confidence):
        """Limits of the first level less the second that hold for every law."""
        groups = self.world.groups[attribute]
        samples = [np.sort(self.discrimination[groups[name]])[::-1] for name in (first, second)]
        most = max(60, int(6 * max(map(len, samples)) / HORIZON))
        counts = [np.arange(min(len(sample), most) + 1) for sample in samples]
        each = [
            extremes.deviance(count, len(sample), HORIZON)
            for count, sample in zip(counts, samples, strict=True)
        ]
        chances = [
            stats.binom.pmf(count, len(sample), 1 / HORIZON)
            for count, sample in zip(counts, samples, strict=True)
        ]
        sums, chance = np.add.outer(*each), np.multiply.outer(*chances)
        order = np.argsort(-sums, axis=None)
        beyond = np.cumsum(chance.ravel()[order])
        cut = sums.ravel()[order][np.argmax(beyond > 1 - confidence)]
        highest = [np.append(np.inf, sample) for sample in samples]
        lowest = [np.append(sample, -np.inf) for sample in samples]
        i, j = np.nonzero(sums <= cut + 1e-9)
        low = (lowest[0][i] - highest[1][j]).min()
        high = (highest[0][i] - lowest[1][j]).max()
        free = [extremes.lower_free(sample, HORIZON, confidence) for sample in samples]
        low = free[0] - 1.0 if np.isinf(low) else low
        high = 1.0 - free[1] if np.isinf(high) else high
        return low, high

    # -- coverage ----------------------------------------------------------------------------

    @kept
    def coverage(self, entry):
        """The share of people in groups that a lens compared."""
        world, lens, name = self.world, entry.lens, entry.attribute
        if self.lacks(lens) or self.refused(lens):
            return 0.0
        if lens == "individual":
            if world.y is None:
                return 0.0
            rows = np.ones(world.n, dtype=bool)
            if entry.criterion.fair_metric is None:
                for each in world.attributes:
                    rows &= np.any(list(world.groups[each].values()), axis=0)
            return world.w[rows].sum() / world.w.sum()
        groups = world.groups[name]
        if lens == "extremes":
            able = [group for group in groups if self.level(name, group) is not None]
            able = able if len(able) > 1 and self.flips(name) else []
        elif lens == "influence":
            found, tested = self.of_others(entry), self.rated(name)
            able = [group for group in tested if len(tested) == 2 and found]
            able = able or [
                group for group in tested if any(group in (gap.high, gap.low) for gap in found)
            ]
        else:
            able = {group for gap in self.departures(entry) for group in (gap.high, gap.low)}
        return sum(world.w[groups[group]].sum() for group in able) / world.w.sum()
