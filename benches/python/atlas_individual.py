"""The individual lens in the validity atlas: its intervals and its test where ratios are skewed.

`python benches/python/atlas_individual.py` measures what is not measured yet (ten minutes on two
cores) and writes docs/atlas/individual.md. Results are kept in
target/atlas_individual.jsonl.
"""

import argparse
import math
import os
import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import optimize, special, stats

import fairaudit_rs as fa
from atlas_tools import ALPHA, COVERAGE, ROOT, band, load, percent, picture, run, write

RESULTS = ROOT / "target" / "atlas_individual.jsonl"
#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 2

AUDITS = 2_000
N_RESAMPLES = 999
SIZES = (100, 300, 1_000, 3_000, 10_000)
RATIOS = ("loss", "error_rate")
INTERVALS = ("normal", "log", "bootstrap-t")
#: Coverage and one-sided errors from which on an interval is called right; twice the noise of
#: 2,000 audits and more lies between these and 95 and 5 %.
RIGHT = (COVERAGE[0], 0.065)
#: A one-sided error that deserves a warning, and one that does not.
WRONG, FINE = 0.07, 0.06
#: What moves along the second feature costs nothing.
METRIC = fa.FairMetric.directions([[0.0, 1.0]])
#: Places of a standard normal score, for sums in place of integrals, and their weights.
NODES = np.linspace(-12, 12, 100_001)
WEIGHTS = stats.norm.pdf(NODES) / stats.norm.pdf(NODES).sum()


# --- populations --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Logistic:
    """Two standard normal features; the model's own labels."""

    name: str
    what: str
    coef: tuple[float, float]
    intercept: float = 0.0
    n_steps: int = 500
    step_size: float = 0.01

    def model(self):
        return fa.LinearModel(self.coef, self.intercept)

    def rows(self, rng, n):
        X = rng.normal(size=(n, 2))
        return X, rng.random(n) < special.expit(X @ self.coef + self.intercept)

    def laws(self):
        """(weights, features, chances of label 1) of places that stand for the population."""
        X = NODES[:, None] * np.array(self.coef) / np.linalg.norm(self.coef)
        return [(WEIGHTS, X, special.expit(X @ self.coef + self.intercept))]

    def flow(self):
        penalty = 0.5 / self.step_size
        return {"penalty": penalty, "n_steps": self.n_steps, "step_size": self.step_size}


@dataclass(frozen=True)
class AppendixE:
    """The simulation of appendix E of the paper, its attack along the first feature."""

    name: str
    what: str
    slope: float
    minority: float = 0.1

    def chances(self, deviation, side):
        """Of the label 1{w.(x - mu) + noise > 0}, given how far x_1 lies from its mean."""
        return stats.norm.cdf(0.2 * side * deviation / math.hypot(0.01 * 0.25, 0.01))

    @cache  # noqa: B019 (a handful of populations)
    def intercept(self):
        """The bias of least expected loss."""
        parts = [(w, X @ (0.0, self.slope), p) for w, X, p in self.laws()]
        weight, score, chance = map(np.concatenate, zip(*parts, strict=True))
        return optimize.brentq(lambda b: weight @ (special.expit(score + b) - chance), -100, 100)

    def model(self):
        return fa.LinearModel([0.0, self.slope], self.intercept())

    def rows(self, rng, n):
        side = np.where(rng.random(n) < self.minority, 1, -1)
        deviation, noise = 0.25 * rng.normal(size=(n, 2)), 0.01 * rng.normal(size=n)
        label = 0.2 * side * deviation[:, 1] - 0.01 * deviation[:, 0] + noise > 0
        return deviation + np.column_stack([np.zeros(n), 1.5 * side]), label

    def laws(self):
        for side, share in ((1, self.minority), (-1, 1 - self.minority)):
            X = np.column_stack([np.zeros(len(NODES)), 0.25 * NODES + 1.5 * side])
            yield share * WEIGHTS, X, self.chances(0.25 * NODES, side)

    def flow(self):
        return {"penalty": 1.0, "n_steps": 400, "step_size": 0.02, "step_decay": 2 / 3}


POPULATIONS = (
    AppendixE("left, rare", "appendix E, theta = (1.2, 0), but a minority of 2 %", 1.2, 0.02),
    AppendixE("left, heavy", "appendix E, theta = (1.2, 0)", 1.2),
    AppendixE("left, medium", "appendix E, theta = (-4, 0)", -4.0),
    Logistic("left, light", "scores N(0, 1.17^2), the model's labels", (1.0, 0.6), n_steps=200),
    Logistic("right, light", "scores N(2, 1.41^2), the model's labels", (1.0, 1.0), 2.0),
    Logistic("right, medium", "scores N(3, 1), the model's labels", (0.5**0.5, 0.5**0.5), 3.0),
    Logistic(
        "right, heavy", "scores N(8, 2^2), the model's labels, fast flow", (0.0, 2.0), 8.0,
        step_size=0.05,
    ),
    Logistic(
        "right, rare", "scores N(8, 1.5^2), the model's labels, fast flow", (0.0, 1.5), 8.0,
        step_size=0.05,
    ),
)  # fmt: skip


def truth(population):
    """Audit values of the population with mean, deviation, skewness of the ratios, error rate.

    The ratio of a row is a function of its score and label: sums over a fine grid of scores.
    """
    weight, ratio, before, after = [], [], [], []
    for share, X, chance in population.laws():
        for label in (0, 1):
            found = fa.individual_test(
                population.model(), X, np.full(len(X), label), fair_metric=METRIC, pos_label=1,
                path_points=2, **population.flow(),
            )  # fmt: skip
            weight.append(share * (chance if label else 1 - chance))
            ratio.append(found.ratios)
            before.append((found.score_start >= 0) != label)
            after.append((found.score_end >= 0) != label)
    weight, ratio, before, after = map(np.concatenate, (weight, ratio, before, after))
    mean = weight @ ratio
    deviation = math.sqrt(weight @ (ratio - mean) ** 2)
    return {
        "loss": mean,
        "error_rate": (weight @ after) / (weight @ before),
        "deviation": deviation,
        "skewness": weight @ ((ratio - mean) / deviation) ** 3,
        "errors": weight @ before,
    }


# --- measuring ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scenario:
    """Audits of n rows of a population."""

    population: int
    n: int

    @property
    def key(self):
        name = POPULATIONS[self.population].name
        return f"{VERSION}:individual:{name}:{self.n}:{AUDITS}:{N_RESAMPLES}"

    @property
    def seed(self):
        return zlib.crc32(self.key.encode())


def scenarios():
    for place in range(len(POPULATIONS)):
        for n in SIZES:
            yield Scenario(place, n)


def of_audit(found, value):
    """Return whether one audit covers the true value: None where it has no interval."""
    low, high = found.confidence_interval
    if math.isnan(low):
        return None
    return {
        "covered": low <= value <= high,
        "rejected": found.lower_bound > value,
        "below": found.upper_bound < value,
        "unbounded": math.isinf(low) or math.isinf(high),
        "warned": any("are skewed" in text for text in found.warnings),
        "dominated": any("one row carries" in text for text in found.warnings),
        "width": (high - low) / found.standard_error if found.standard_error > 0 else 0.0,
    }


def measure(scenario):
    """Coverage, both one-sided errors and warnings of all intervals in one scenario."""
    rng = np.random.default_rng(scenario.seed)
    population = POPULATIONS[scenario.population]
    values, model = truth(population), population.model()
    options = {"fair_metric": METRIC, "path_points": 2, "n_threads": 1, **population.flow()}
    cases = [(ratio, interval) for ratio in RATIOS for interval in INTERVALS]
    seen = {case: [] for case in cases}
    for audit in range(AUDITS):
        X, y = population.rows(rng, scenario.n)
        for ratio, interval in cases:
            found = fa.individual_test(
                model, X, y, ratio=ratio, interval=interval, pos_label=True,
                n_resamples=N_RESAMPLES, rng=audit, **options,
            )  # fmt: skip
            seen[ratio, interval].append(of_audit(found, values[ratio]))
    return {
        "key": scenario.key,
        "name": population.name,
        "what": population.what,
        "n": scenario.n,
        **{name: float(value) for name, value in values.items()},
        "cases": {
            f"{ratio}, {interval}": shares(seen[ratio, interval]) for ratio, interval in cases
        },
    }


def shares(seen):
    """Of the audits that have an interval."""
    known = [audit for audit in seen if audit is not None]
    if not known:
        return {"audits": 0}
    names = ("covered", "rejected", "below", "unbounded", "warned", "dominated")
    means = {name: float(np.mean([audit[name] for audit in known])) for name in names}
    width = float(np.median([audit["width"] for audit in known]))
    return {"audits": len(known), **means, "width": width}


def told(entry):
    return " ".join(percent(entry["cases"][f"loss, {i}"].get("covered")) for i in INTERVALS)


# --- the page -----------------------------------------------------------------------------------


class Measured:
    """The measurements, by population, n, ratio and interval."""

    def __init__(self, entries):
        self.entries = {(entry["name"], entry["n"]): entry for entry in entries}

    def case(self, name, n, ratio, interval):
        return self.entries[name, n]["cases"][f"{ratio}, {interval}"]

    def get(self, what, name, n, ratio, interval):
        return percent(self.case(name, n, ratio, interval)[what])

    def each(self, what, name, n, ratio="loss"):
        """The same of all intervals, as text."""
        parts = [f"{self.get(what, name, n, ratio, i)} % ({i})" for i in INTERVALS]
        return ", ".join(parts)

    def right_from(self, name, ratio, interval):
        """The n from which on coverage and both one-sided errors are right, as text."""
        wrong = [n for n in SIZES if not right(self.case(name, n, ratio, interval))]
        after = [n for n in SIZES if n > max(wrong, default=0)]
        return f"{after[0]:,}" if after else "-"

    def most(self, what, ratio, interval, names=None):
        """The largest share, with its place, where nearly all audits have an interval."""
        found = [
            (case[what], name, n)
            for name, n in self.entries
            if (case := self.case(name, n, ratio, interval))["audits"] >= 0.9 * AUDITS
            and (names is None or name in names)
        ]
        share, name, n = max(found)
        return f"{percent(share)} % ({name}, n = {n:,})"

    def warned_where(self, ratio, interval, above=0.0, most=1.0):
        """How often it warned, on average over scenarios with a worst one-sided error like this."""
        cases = [self.case(*place, ratio, interval) for place in self.entries]
        shares = [
            case["warned"]
            for case in cases
            if case["audits"] >= 0.9 * AUDITS
            and above < max(case["rejected"], case["below"]) <= most
        ]
        return f"{percent(float(np.mean(shares)))} % ({len(shares)})" if shares else "-"


def right(case):
    if case["audits"] < 0.9 * AUDITS:
        return False
    least, most = RIGHT
    return case["covered"] >= least and max(case["rejected"], case["below"]) <= most


def page(entries):
    m = Measured(entries)
    yield from introduction()
    yield from ["", "### What was found", "", *findings(m)]
    yield from ["", "### Populations", "", *populations(m)]
    yield from ["", "### From which n on an interval can be trusted", "", *trusted(m)]
    rows = [(f"{e['name']}, n = {e['n']:,}", dots(e)) for e in entries]
    title = "Coverage of 95 % intervals, loss: normal (orange), log (grey), bootstrap-t (blue)"
    yield from ["", picture(rows, "individual", title, *COVERAGE, (0.8, 1.0))]
    for ratio, title in (("loss", "Mean loss ratio"), ("error_rate", "Ratio of error rates")):
        yield from ["", f"### {title}", "", *table(entries, ratio)]


def dots(entry):
    colours = ("#c2410c", "#777777", "#1a5c9a")
    cases = [entry["cases"][f"loss, {interval}"] for interval in INTERVALS]
    return [(colour, case["covered"]) for colour, case in zip(colours, cases, strict=True)]


def introduction():
    low, high = band(AUDITS, 1 - ALPHA), band(AUDITS)
    yield (
        f"Measured by `benches/python/atlas_individual.py`: {AUDITS:,} audits for each population "
        "and n, of logistic models whose attack is free along one feature. The true audit value "
        "comes from a sum over a fine grid of scores. **Coverage** is that of the two-sided 95 % "
        "interval; **size** is how often the test rejects at the 5 % level when `delta` is the "
        "true value (the lower bound lies above it); **upper** is how often the 95 % upper bound "
        "lies below it. With so many audits an exact procedure has a coverage between "
        f"{100 * low[0]:.2f} and {100 * low[1]:.2f} % and one-sided errors between "
        f"{100 * high[0]:.2f} and {100 * high[1]:.2f} %, but for one time in a million; numbers "
        'that are worse are bold. **Warned** is the share of audits in which `interval="normal"` '
        f"warned of skewed ratios. Bootstrap-t with {N_RESAMPLES} replicates. Audits in which the "
        "model made no error before the flow have no ratio of error rates; the other shares are of "
        "the rest."
    )


def findings(m):
    """Return the advice for auditors, with the measured numbers."""
    yield (
        "- **Skewed to the left** (a few rows that the attack cannot hurt), the normal lower bound "
        "lies too high and the test rejects too often: at n = 100 in "
        f"{m.each('rejected', 'left, heavy', 100)} of audits of the heavy population, at n = 300 "
        f"in {m.each('rejected', 'left, rare', 300)} of the one with a minority of 2 %. The "
        "logarithm does not help: the ratios are spread little around their mean."
    )
    yield (
        "- **Skewed to the right**, the test is conservative, but the interval ends too low: the "
        f"upper bound misses in {m.each('below', 'right, heavy', 100)} at n = 100 and the "
        f"two-sided interval covers in {m.each('covered', 'right, heavy', 100)}. Bootstrap-t pays "
        "with width: at the median "
        f"{wider(m, 'right, heavy', 100)} times that of the normal interval at n = 100, "
        f"{wider(m, 'right, heavy', 300)} times at 300."
    )
    yield (
        "- **Nothing holds where the rows that make the mean are not in the sample.** In the rare "
        "population on the right the mean comes from rows near the edge of what the flow can "
        f"reach: at n = 100 the intervals cover in {m.each('covered', 'right, rare', 100)}, at "
        f"300 in {m.each('covered', 'right, rare', 300)}, at 1,000 in "
        f"{m.each('covered', 'right, rare', 1_000)}, at 3,000 in "
        f"{m.each('covered', 'right, rare', 3_000)}; where bootstrap-t covers, it is "
        f"{wider(m, 'right, rare', 1_000)} (n = 1,000) and {wider(m, 'right, rare', 3_000)} "
        "(n = 3,000) times as wide. In the rare population on the left "
        f"{100 * 0.98**100:.0f} % of samples of 100 have no row of the minority, and its test "
        f"rejects in {m.each('rejected', 'left, rare', 100)}."
    )
    yield (
        "- **The test errs less than the interval** where ratios are skewed to the right: its "
        "largest size there is, for the loss ratio, "
        + ", ".join(f"{m.most('rejected', 'loss', i, RIGHT_SIDE)} with {i}" for i in INTERVALS)
        + "."
    )
    yield (
        "- **Error rates**: what counts is how many rows are wrong before the flow, and how many "
        "decisions it changes. Where nine audits of ten have an interval, the normal upper "
        f"bound misses in up to {m.most('below', 'error_rate', 'normal')} of audits. Bootstrap-t "
        "is studentized on the scale of the logarithm. Largest sizes of the test: "
        f"{m.most('rejected', 'error_rate', 'bootstrap-t')}, "
        f"{m.most('rejected', 'error_rate', 'log')} with log and "
        f"{m.most('rejected', 'error_rate', 'normal')} with normal. Replicates without an "
        "error before the flow are undefined and push an end of the interval to infinity, in "
        f"{m.most('unbounded', 'error_rate', 'bootstrap-t')} of audits at most."
    )
    yield (
        "- **The warnings.** Where a one-sided error of an interval was measured above "
        f"{100 * WRONG:g} %, it warned of skewed ratios in (average over scenarios) "
        f"{m.warned_where('loss', 'normal', above=WRONG)} of audits for the loss ratio and "
        f"{m.warned_where('error_rate', 'normal', above=WRONG)} for error rates with normal, "
        f"{m.warned_where('loss', 'log', above=WRONG)} and "
        f"{m.warned_where('error_rate', 'log', above=WRONG)} with log; where both were at most "
        f"{100 * FINE:g} % in {m.warned_where('loss', 'normal', most=FINE)}, "
        f"{m.warned_where('error_rate', 'normal', most=FINE)}, "
        f"{m.warned_where('loss', 'log', most=FINE)} and "
        f"{m.warned_where('error_rate', 'log', most=FINE)}. The warning that one row carries much "
        "of the variance, the only one that bootstrap-t has, came in "
        f"{m.get('dominated', 'left, rare', 100, 'loss', 'bootstrap-t')} % (left, rare, n = 100), "
        f"{m.get('dominated', 'right, rare', 100, 'loss', 'bootstrap-t')} % and "
        f"{m.get('dominated', 'right, rare', 300, 'loss', 'bootstrap-t')} % (right, rare, n = 100 "
        "and 300) of audits where bootstrap-t fails, and in "
        f"{m.get('dominated', 'right, heavy', 100, 'loss', 'bootstrap-t')} % (right, heavy, n = "
        "100) where it holds at a great width. A sample without any of the rows that decide warns "
        "of nothing."
    )


RIGHT_SIDE = tuple(p.name for p in POPULATIONS if p.name.startswith("right"))


def wider(m, name, n):
    """The median width of bootstrap-t intervals in multiples of the normal one."""
    widths = [m.case(name, n, "loss", interval)["width"] for interval in ("bootstrap-t", "normal")]
    return f"{widths[0] / widths[1]:.1f}"


def populations(m):
    yield (
        "| population | of | mean ratio | its deviation | skewness | ratio of error rates | "
        "wrong before, % |"
    )
    yield "|---|---|---|---|---|---|---|"
    for population in POPULATIONS:
        e = m.entries[population.name, SIZES[0]]
        yield (
            f"| {e['name']} | {e['what']} | {e['loss']:.4g} | {e['deviation']:.3g} | "
            f"{e['skewness']:.1f} | {e['error_rate']:.4g} | {percent(e['errors'])} |"
        )


def trusted(m):
    yield (
        f"The smallest n measured ({', '.join(f'{n:,}' for n in SIZES)}) from which on coverage is "
        f"at least {100 * RIGHT[0]:g} %, both one-sided errors are at most {100 * RIGHT[1]:g} %, "
        "and at least nine audits of ten have an interval; `-` where that is none. A step up or "
        "down in this table is often no more than the noise of the audits (0.5 %)."
    )
    yield ""
    heads = [f"{ratio.replace('_', ' ')}, {i}" for ratio in RATIOS for i in INTERVALS]
    yield f"| population | {' | '.join(heads)} |"
    yield "|---" * (len(heads) + 1) + "|"
    for population in POPULATIONS:
        name = population.name
        cells = [m.right_from(name, ratio, interval) for ratio in RATIOS for interval in INTERVALS]
        yield f"| {name} | {' | '.join(cells)} |"


def table(entries, ratio):
    extra = "warned, % | one row, %" if ratio == "loss" else "warned, % | audits | errors expected"
    heads = [f"{i}: {what}" for i in INTERVALS for what in ("coverage", "size", "upper")]
    yield f"| population | n | {extra} | {' | '.join(heads)} |"
    yield "|---" * (13 if ratio == "loss" else 14) + "|"
    for e in entries:
        cases = [e["cases"][f"{ratio}, {interval}"] for interval in INTERVALS]
        cells = [cell for case in cases for cell in judged(case)]
        errors = e["n"] * e["errors"]
        known = f"{cases[0]['audits']:,} | {errors:,.{0 if errors > 10 else 1}f}"
        more = percent(cases[0]["dominated"]) if ratio == "loss" else known
        first = f"{percent(cases[0]['warned'])} | {more}"
        yield f"| {e['name']} | {e['n']:,} | {first} | {' | '.join(cells)} |"


def judged(case):
    """Coverage, size and upper misses; bold where they are worse than the band."""
    n = case["audits"]
    worse = [
        case["covered"] < band(n, 1 - ALPHA)[0],
        case["rejected"] > band(n)[1],
        case["below"] > band(n)[1],
    ]
    shares = [percent(case[name]) for name in ("covered", "rejected", "below")]
    return [f"**{s}**" if bad else s for s, bad in zip(shares, worse, strict=True)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if not options.page:
        run(RESULTS, scenarios(), measure, told, options.processes)
    measured = load(RESULTS)
    entries = [measured[s.key] for s in scenarios() if s.key in measured]
    if not entries:
        raise SystemExit(f"nothing is measured in {RESULTS.relative_to(ROOT)}: the page stays")
    write("individual", list(page(entries)))


if __name__ == "__main__":
    main()
