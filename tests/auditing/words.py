"""Random audits, and what their words must say: computed from the rows with NumPy alone.

`World` holds the rows and the request of an audit. Its methods are the definitions: a value is a
ratio of sums, two groups are compared in the strata that hold both, with the weights
k = D1 D2 / (D1 + D2), and everything else follows from values. `words_read` reads a text and
compares it with them.
"""

from collections import Counter, namedtuple
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy import stats

from .words_lenses import Lenses

#: Of each metric: its words, numerator and denominator of a row (label, decision, score), whether
#: it is a share of rows, and the columns that it needs.
Metric = namedtuple("Metric", "words above below is_share needs")
ONE = np.ones_like
METRICS = {
    "selection_rate": Metric(
        "share of positive decisions", lambda y, p, s: p, lambda y, p, s: ONE(p), True, "p"
    ),
    "rejection_rate": Metric(
        "share of negative decisions", lambda y, p, s: 1 - p, lambda y, p, s: ONE(p), True, "p"
    ),
    "true_positive_rate": Metric(
        "share of positive decisions among positive labels",
        lambda y, p, s: y * p, lambda y, p, s: y, True, "yp",
    ),
    "false_positive_rate": Metric(
        "share of positive decisions among negative labels",
        lambda y, p, s: (1 - y) * p, lambda y, p, s: 1 - y, True, "yp",
    ),
    "false_negative_rate": Metric(
        "share of negative decisions among positive labels",
        lambda y, p, s: y * (1 - p), lambda y, p, s: y, True, "yp",
    ),
    "true_negative_rate": Metric(
        "share of negative decisions among negative labels",
        lambda y, p, s: (1 - y) * (1 - p), lambda y, p, s: 1 - y, True, "yp",
    ),
    "positive_predictive_value": Metric(
        "share of positive labels among positive decisions",
        lambda y, p, s: y * p, lambda y, p, s: p, True, "yp",
    ),
    "negative_predictive_value": Metric(
        "share of negative labels among negative decisions",
        lambda y, p, s: (1 - y) * (1 - p), lambda y, p, s: 1 - p, True, "yp",
    ),
    "accuracy": Metric(
        "share of decisions that equal the label",
        lambda y, p, s: y * p + (1 - y) * (1 - p), lambda y, p, s: ONE(p), True, "yp",
    ),
    "base_rate": Metric(
        "share of positive labels", lambda y, p, s: y, lambda y, p, s: ONE(y), True, "y"
    ),
    "mean_residual": Metric(
        "mean of label minus score", lambda y, p, s: y - s, lambda y, p, s: ONE(y), False, "ys"
    ),
    "auc": Metric(
        "share of pairs of a positive and a negative label that the score puts in order",
        None, None, False, "ys",
    ),
    "calibration_error": Metric(
        "mean distance of label share and score over ten bins of the score",
        None, None, False, "ys",
    ),
}  # fmt: skip
#: Who is worse off where the positive decision is the good one.
WORSE = dict.fromkeys(("selection_rate", "true_positive_rate", "false_positive_rate"), "lower")
WORSE |= dict.fromkeys(("rejection_rate", "false_negative_rate", "true_negative_rate"), "higher")
#: Metrics with the gaps of another one.
SAME_GAPS = {
    "false_negative_rate": "true_positive_rate",
    "true_negative_rate": "false_positive_rate",
    "rejection_rate": "selection_rate",
}
#: Where low values are errors, and where high ones are right.
ERRORS = ("false_positive_rate", "false_negative_rate")
_OTHER = {"lower": "higher", "higher": "lower", None: None}
UNKNOWN = {"unknown", "none", "nan", "na", "?", "n/a", "not known", "not stated", ""}

Pair = namedtuple("Pair", "first second outside strata")


@dataclass(frozen=True)
class Asked:
    """A criterion, asked of an attribute."""

    criterion: object
    attribute: str

    @property
    def metric(self):
        return self.criterion.metric

    @property
    def scale(self):
        return "ratio" if self.criterion.ratio is not None else "difference"

    @property
    def tolerance(self):
        return self.criterion.ratio if self.scale == "ratio" else self.criterion.tolerance


@dataclass(frozen=True, eq=False)
class World:
    """The rows of an audit, and what was asked."""

    y: object
    p: object
    s: object
    #: 1 where rows have no weights.
    w: object
    weighted: bool
    attributes: dict
    strata: dict
    clusters: object
    policy: object
    #: The two values of labels and decisions, negative and positive, as the data hold them.
    values: tuple = (0, 1)
    #: The names of columns and of the data, and which rows were kept, as the audit should say.
    names: dict = None
    data: str = "arrays"
    where: str = ""
    n_before: int = 0
    #: What is done with clusters that have rows in several groups: "", "split" or "drop".
    mixed: str = ""
    #: What lenses are run with: features with their names, the coefficients and the intercept of
    #: a linear model, and scores after a flip of the attribute.
    X: object = None
    coef: tuple = None
    intercept: float = 0.0
    flipped: object = None

    @property
    def n(self):
        return len(self.w)

    @cached_property
    def roles(self):
        return {name for name in "yps" if getattr(self, name) is not None}

    # -- groups ------------------------------------------------------------------------------

    @cached_property
    def groups(self):
        """Rows of each known group that take part, by attribute: without dropped clusters."""
        if self.mixed != "drop":
            return self.people
        return {
            attribute: {
                name: rows & ~np.isin(self.clusters, self.mixed_clusters(attribute))
                for name, rows in groups.items()
            }
            for attribute, groups in self.people.items()
        }

    def mixed_clusters(self, attribute):
        """The clusters with rows in several known groups of an attribute."""
        found = [set(self.clusters[rows]) for rows in self.people[attribute].values()]
        counts = Counter(name for clusters in found for name in clusters)
        return [name for name, n in counts.items() if n > 1]

    @cached_property
    def people(self):
        """Rows of each known group by attribute, also of pairs of attributes."""
        found = {}
        for n in (1, 2):
            for names in combinations(self.attributes, n):
                columns = [self.attributes[name] for name in names]
                known = np.array(
                    [all(is_known(v) for v in row) for row in zip(*columns, strict=True)]
                )
                keys = [
                    " & ".join(named(v, name) for v, name in zip(row, names, strict=True))
                    for row in zip(*columns, strict=True)
                ]
                keys = np.array(keys, dtype=object)
                found[" and ".join(names)] = {
                    key: known & (keys == key) for key in sorted(set(keys[known]))
                }
        return found

    # -- values ------------------------------------------------------------------------------

    @cached_property
    def _terms(self):
        return {}

    def terms(self, metric):
        """Numerator and denominator of every row, without weights."""
        if metric not in self._terms:
            one = METRICS[metric]
            rows = [None if c is None else c.astype(float) for c in (self.y, self.p, self.s)]
            ones = np.ones(self.n)
            self._terms[metric] = (
                (ones, ones) if one.above is None else (one.above(*rows), one.below(*rows))
            )
        return self._terms[metric]

    def value(self, metric, rows):
        """The metric of some rows; NaN without eligible rows."""
        if metric == "auc":
            return self._auc(rows)
        above, below = self.terms(metric)
        w = self.w * rows
        total = float(w @ below)
        return float(w @ above) / total if total else np.nan

    def _auc(self, rows):
        high, low = rows & (self.y == 1), rows & (self.y == 0)
        w = self.w[high][:, None] * self.w[low]
        beats = self.s[high][:, None] - self.s[low]
        total = w.sum()
        return float((w * ((beats > 0) + 0.5 * (beats == 0))).sum() / total) if total else np.nan

    def eligible(self, metric, rows):
        """Rows in the denominator, of positive weight."""
        return rows & (self.terms(metric)[1] > 0) & (self.w > 0)

    def n_eligible(self, metric, rows):
        return int(self.eligible(metric, rows).sum())

    @property
    def takes_replicates(self):
        """Return whether rows are no plain counts."""
        return self.weighted or self.clusters is not None

    @cached_property
    def lenses(self):
        return Lenses(self)

    def is_large(self, metric, rows, floor=None):
        """Return whether a group has enough rows for a verdict."""
        eligible = self.eligible(metric, rows)
        least = 50 if metric == "auc" else 30
        w = self.w[eligible]
        if len(w) == 0:
            return False
        if metric == "auc":
            # The AUC needs so many rows of each label.
            positive = int(self.y[eligible].sum())
            if min(positive, len(w) - positive) < 20:
                return False
        worth = w.sum() ** 2 / (w @ w)
        return min(len(w), worth + 1e-9) >= max(least, floor or self.policy.floor)

    def tested(self, metric, attribute):
        """The groups that have enough rows, if two have: without another one nothing is tested."""
        groups = self.groups[attribute]
        return [name for name, rows in groups.items() if self.is_large(metric, rows)]

    @cached_property
    def stratum(self):
        """The name of the stratum of every row; None without strata."""
        if not self.strata:
            return None
        parts = [
            np.char.add(f"{name}=", column.astype(str)) for name, column in self.strata.items()
        ]
        found = parts[0]
        for part in parts[1:]:
            found = np.char.add(np.char.add(found, ", "), part)
        return found

    def compared(self, metric, attribute, first, second):
        """The values of two groups as they are compared, and the share of people left out."""
        one, two = (self.groups[attribute][name] for name in (first, second))
        if self.stratum is None:
            return Pair(self.value(metric, one), self.value(metric, two), 0.0, {})
        below = self.terms(metric)[1] * self.w
        sums, total, everyone, outside, strata = [0.0, 0.0], 0.0, 0.0, 0.0, {}
        for name in np.unique(self.stratum[one | two]):
            at = self.stratum == name
            d1, d2 = float(below @ (one & at)), float(below @ (two & at))
            eligible = self.eligible(metric, (one | two) & at)
            people = float(self.w[eligible].sum())
            everyone += people
            v1, v2 = self.value(metric, one & at), self.value(metric, two & at)
            k = d1 * d2 / (d1 + d2) if d1 and d2 else 0.0
            ns = [self.n_eligible(metric, rows & at) for rows in (one, two)]
            if sum(ns):
                strata[str(name)] = (v1, ns[0], v2, ns[1], k)
            if not k:
                outside += people
                continue
            sums[0] += k * v1
            sums[1] += k * v2
            total += k
        if not total:
            return Pair(np.nan, np.nan, 1.0, strata)
        strata = {name: (*row[:4], row[4] / total) for name, row in strata.items()}
        return Pair(sums[0] / total, sums[1] / total, outside / everyone, strata)

    def size(self, asked, first, second):
        """The gap of two groups, or their ratio."""
        found = self.compared(asked.metric, asked.attribute, first, second)
        if asked.scale == "difference":
            return abs(found.first - found.second)
        low, high = sorted([found.first, found.second])
        if self.one_sided(asked):
            bad, good = (found.first, found.second)
            if asked.criterion.reference == self.plain(first):
                bad, good = good, bad
            if self.better(asked.metric) == "lower":
                bad, good = good, bad
            return bad / good if good else np.nan
        return low / high if high else np.nan

    def plain(self, group):
        """The label of a group as policies name it."""
        return int(group.rpartition("=")[2]) if "=" in group else group

    def worse_off(self, metric):
        """Which values are bad for people; None where decisions do not say so."""
        worse = WORSE.get(metric)
        return _OTHER[worse] if self.policy.punitive else worse

    def better(self, metric):
        """Which values are better; None where errors and people's interest disagree."""
        errors = "lower" if metric in ERRORS else "higher"
        errors = None if metric in ("selection_rate", "rejection_rate", "base_rate") else errors
        people = _OTHER[self.worse_off(metric)]
        return None if errors and people and errors != people else errors or people

    def one_sided(self, asked):
        """Return whether a ratio to a fixed group counts in one direction."""
        fixed = asked.criterion.is_fixed_reference
        return asked.scale == "ratio" and fixed and self.better(asked.metric) is not None

    # -- questions ---------------------------------------------------------------------------

    @cached_property
    def questions(self):
        """All questions about single attributes: the binding ones, then the others."""
        all_of_them = [
            Asked(criterion, name)
            for criterion in self.policy.criteria
            for name in self.attributes
            if criterion.metric is not None and criterion.covers(name)
        ]
        first = [asked for asked in all_of_them if asked.criterion.binding]
        return first + [asked for asked in all_of_them if not asked.criterion.binding]

    @property
    def binding(self):
        return [question for question in self.questions if question.criterion.binding]

    def has_test(self, asked):
        """Return whether there are columns for a question, and a test."""
        needs = set(METRICS[asked.metric].needs) <= self.roles
        if not needs or asked.tolerance is None or asked.metric == "calibration_error":
            return False
        is_rate = METRICS[asked.metric].is_share and asked.metric != "auc"
        return not self.strata or is_rate or (asked.metric != "auc" and asked.scale != "ratio")

    def pairs(self, asked):
        """The pairs of groups that are compared."""
        return self.pairs_of_tested(asked) if self.has_test(asked) else []

    def pairs_of_tested(self, asked):
        """The pairs of groups with enough rows."""
        able = self.tested(asked.metric, asked.attribute)
        if asked.criterion.is_fixed_reference:
            fixed = [name for name in able if self.plain(name) == asked.criterion.reference]
            return [(value, fixed[0]) for value in able if fixed and value != fixed[0]]
        return list(combinations(able, 2))

    @cached_property
    def n_tests(self):
        """How many comparisons are judged together; equal gaps count once."""
        seen = {}
        for value in self.binding:
            criterion = value.criterion
            chosen = criterion.reference in ("highest", "best")
            mirrored = value.scale == "difference" and not chosen
            metric = SAME_GAPS.get(value.metric, value.metric) if mirrored else value.metric
            key = metric, value.scale, value.tolerance, value.attribute, criterion.reference
            seen.setdefault(key, len(self.pairs(value)))
        return sum(seen.values()) + self.lenses.n_tests

    def each(self, asked):
        """The level at which one of all comparisons fails."""
        policy = self.policy
        n = self.n_tests if asked.criterion.binding else len(self.pairs(asked))
        return policy.alpha / max(n, 1) if policy.adjustment == "holm" else policy.alpha

    def extremes(self, asked):
        """The groups farthest apart with their values, the lower one first."""
        sizes = {pair: self.size(asked, *pair) for pair in self.pairs_shown(asked)}
        sizes = {pair: size for pair, size in sizes.items() if not np.isnan(size)}
        sign = 1 if asked.scale == "ratio" else -1
        if self.strata and not sizes:
            # No ratio is known, as one of two shares is 0: the pair with the largest difference.
            sign, differences = -1, {}
            for pair in self.pairs_shown(asked):
                found = self.compared(asked.metric, asked.attribute, *pair)
                differences[pair] = abs(found.first - found.second)
            sizes = {pair: size for pair, size in differences.items() if not np.isnan(size)}
        if self.strata and sizes:
            pair = min(sizes, key=lambda pair: sign * sizes[pair])
            found = self.compared(asked.metric, asked.attribute, *pair)
            both = sorted(zip((found.first, found.second), pair, strict=True))
            return [(name, value) for value, name in both]
        able = self.tested(asked.metric, asked.attribute)
        groups = self.groups[asked.attribute]
        known = [(self.value(asked.metric, groups[name]), name) for name in able]
        known = sorted(row for row in known if not np.isnan(row[0]))
        return [(name, value) for value, name in known[:1] + known[1:][-1:]]

    def pairs_shown(self, asked):
        """The pairs among which the widest is looked for.

        A rule without a pass compares with the highest group alone: within strata, where each pair
        has values of its own, with the group whose smallest lead over another one is largest.
        """
        pairs = self.pairs(asked)
        if self.policy.has_pass or asked.criterion.reference != "highest":
            return pairs

        def lead(name, other):
            found = self.compared(asked.metric, asked.attribute, name, other)
            return found.first - found.second

        able = self.tested(asked.metric, asked.attribute)
        leads = {a: min(lead(a, b) for b in able if b != a) for a in able}
        highest = max(leads, key=leads.get)
        return [pair for pair in pairs if highest in pair]

    def coverage(self, attribute):
        """The least share of people in tested groups, over the binding questions."""
        shares = [1.0]
        shares += [
            self.lenses.coverage(value)
            for value in self.lenses.binding
            if value.attribute in (attribute, "")
        ]
        for criterion in self.binding:
            if criterion.attribute == attribute:
                able = self.tested(criterion.metric, attribute) if self.pairs(criterion) else []
                shares.append(self.covered(criterion.metric, attribute, able))
        return min(shares)

    def covered(self, metric, attribute, able):
        """The share of people in some groups, and within strata in strata that hold two of them."""
        groups = [self.groups[attribute][name] for name in able]
        share = sum(self.w[rows].sum() for rows in groups) / self.w.sum()
        if self.stratum is None or not able:
            return share
        inside = everyone = 0.0
        for name in np.unique(self.stratum):
            eligible = [self.eligible(metric, rows & (self.stratum == name)) for rows in groups]
            people = sum(self.w[rows].sum() for rows in eligible)
            everyone += people
            inside += people if sum(rows.any() for rows in eligible) > 1 else 0.0
        return share * inside / everyone

    def counts(self, attribute):
        """Positive decisions and rows of each group, as rules count them."""
        groups = self.people[attribute]
        return {name: (int(self.p[rows].sum()), int(rows.sum())) for name, rows in groups.items()}


def is_known(value):
    return value is not None and str(value).strip().casefold() not in UNKNOWN


def named(value, attribute):
    """The name of a group: numbers are named after their attribute."""
    return str(value) if isinstance(value, str) else f"{attribute}={value}"


# -- tests of rules ----------------------------------------------------------------------------


def pooled_z(x, n, y, m):
    pooled = (x + y) / (n + m)
    error = np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    return (x / n - y / m) / error if error else 0.0


def least_expected(x, n, y, m):
    share = (x + y) / (n + m)
    return min(n, m) * min(share, 1 - share)


def fisher(x, n, y, m):
    return float(stats.fisher_exact([[x, n - x], [y, m - y]])[1])


def breslow_day(strata):
    """p of one odds ratio in all strata (x1, n1, x2, n2), with Tarone's correction; or NaN."""
    tables = [t for t in strata if t[1] and t[3] and 0 < t[0] + t[2] < t[1] + t[3]]
    if len(tables) < 2:
        return np.nan
    above = sum(x * (m - y) / (n + m) for x, n, y, m in tables)
    below = sum(y * (n - x) / (n + m) for x, n, y, m in tables)
    if not (above and below):
        return np.nan
    odds, found, off, spread = above / below, 0.0, 0.0, 0.0
    for x, n, y, m in tables:
        t = x + y
        a, b, c = 1 - odds, m - t + odds * (n + t), -odds * n * t
        roots = np.roots([a, b, c]) if abs(a) > 1e-12 else np.array([-c / b])
        [e] = [r for r in roots.real if max(0, t - m) - 1e-9 <= r <= min(n, t) + 1e-9][:1]
        v = 1 / (1 / e + 1 / (t - e) + 1 / (n - e) + 1 / (m - t + e))
        found, off, spread = found + (x - e) ** 2 / v, off + x - e, spread + v
    return float(stats.chi2.sf(max(found - off**2 / spread, 0), len(tables) - 1))
