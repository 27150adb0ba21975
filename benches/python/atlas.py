"""The validity atlas: size, coverage and power of every metric, measured by simulation.

`make atlas` runs what is not measured yet, on all cores, and writes docs/validity.md with its
pictures: here the section of the permutation lens, in atlas_<lens>.py those of others. Results are
kept one per line in target/atlas.jsonl: a run that was stopped goes on where it was. Every
scenario has a seed of its own, so the numbers do not depend on how many scenarios run, nor on
which core.
"""

import argparse
import math
import os
import zlib
from dataclasses import asdict, dataclass

import numpy as np
from scipy import optimize, stats

import fairaudit_rs as fa
from atlas_tools import ALPHA, COVERAGE, ROOT, band, load, percent, picture, run, write

RESULTS = ROOT / "target" / "atlas.jsonl"
#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 1

N_RESAMPLES = 199
#: Audits of a scenario.
AUDITS = 2_000
SIZES = (200, 500, 2_000)
BASE_RATES = ((0.5, 0.5), (0.5, 0.2), (0.5, 0.05))
DESIGNS = ("plain", "weights", "clusters", "strata")
GAP = 0.1

CONFUSION = [
    metric for metric in fa.metrics.names() if fa.metrics.get(metric).family in ("counts", "joint")
]
SCORED = ["auc", "calibration_error"]
ERRORS = ["mean_absolute_error", "mean_squared_error", "log_loss"]
VALUES = ["mean_prediction", "mean_residual"]
CORRELATIONS = ["pearson", "spearman", "residual_pearson", "residual_spearman"]


@dataclass(frozen=True)
class Scenario:
    metric: str
    design: str
    n: int
    base_rates: tuple[float, float]

    @property
    def key(self):
        first, second = self.base_rates
        return f"{VERSION}:{self.metric}:{self.design}:{self.n}:{first:g}:{second:g}:{AUDITS}"

    @property
    def seed(self):
        return zlib.crc32(self.key.encode())


def scenarios():
    """All metrics plainly; those of each family in other designs."""
    for n in SIZES:
        for base_rates in BASE_RATES:
            for metric in (*CONFUSION, *SCORED, *ERRORS, *VALUES):
                yield Scenario(metric, "plain", n, base_rates)
        for metric in CORRELATIONS:
            yield Scenario(metric, "plain", n, (0.5, 0.5))
    for design in ("weights", "clusters"):
        for metric in ("true_positive_rate", "accuracy", "f1", "mcc", "auc", "mean_squared_error"):
            for n in SIZES:
                yield Scenario(metric, design, n, (0.5, 0.2))
    for metric in ("true_positive_rate", "accuracy", "f1", "equalized_odds", "auc"):
        for n in SIZES:
            yield Scenario(metric, "strata", n, (0.5, 0.2))


# --- groups with one value of a metric, and little else, in common ------------------------------


def value_of(metric, base_rate, found, wrong):
    """The metric of a group with these rates of true and false positives."""
    tp, fn = base_rate * found, base_rate * (1 - found)
    fp, tn = (1 - base_rate) * wrong, (1 - base_rate) * (1 - wrong)
    return fa.metrics.get(metric).evaluate(tp=tp, fp=fp, fn=fn, tn=tn)


def confusion_rates(metric, base_rates, gap):
    """(base rate, true positive rate, false positive rate) of two groups, `gap` apart."""
    first = (base_rates[0], 0.7, 0.3)
    if metric == "base_rate":
        return first, (base_rates[0] - gap, 0.6, 0.2)
    if metric == "equalized_odds":
        return first, (base_rates[1], 0.7 - gap, 0.3)
    if metric == "conditional_use_accuracy":
        return first, None
    for rates in ((0.7, 0.3), (0.5, 0.5), (0.3, 0.6)):
        first = (base_rates[0], *rates)
        # Both the fair and the unfair second group must exist.
        seconds = [solve(metric, base_rates[1], value_of(metric, *first) - g) for g in (0.0, GAP)]
        if all(seconds):
            return first, seconds[0 if gap == 0 else 1]
    raise ValueError(f"{metric} cannot be equal with base rates of {base_rates}")


def solve(metric, base, wanted):
    """Rates with this value of the metric: true positives, false positives or both are moved."""
    roads = (lambda x: (base, x, 0.3), lambda x: (base, 0.7, x), lambda x: (base, x, x / 3))
    for road in roads:
        grid = np.linspace(0.02, 0.98, 97)
        off = np.array([value_of(metric, *road(x)) - wanted for x in grid])
        turn = np.flatnonzero(np.sign(off[:-1]) * np.sign(off[1:]) <= 0)
        if len(turn):
            low, high = grid[turn[0]], grid[turn[0] + 1]

            def excess(x, road=road):
                return value_of(metric, *road(x)) - wanted

            return road(optimize.brentq(excess, low, high))
    return None


def error_shapes(metric, gap):
    """Beta laws of the error of two groups: (2, 4) and (1, b), their means `gap` apart."""
    of = {
        "mean_absolute_error": lambda e: e,
        "mean_squared_error": lambda e: e**2,
        "log_loss": lambda e: -np.log1p(-e),
    }[metric]
    nodes = (np.arange(20_000) + 0.5) / 20_000

    def mean(a, b):
        return of(stats.beta.ppf(nodes, a, b)).mean()

    wanted = mean(2, 4) + gap
    return (2, 4), (1, optimize.brentq(lambda b: mean(1, b) - wanted, 0.3, 50))


class Maker:
    """Draws the rows of a scenario; `gap` is the true difference."""

    def __init__(self, scenario, gap):
        self.scenario, self.gap, self.metric = scenario, gap, scenario.metric
        if self.metric in CONFUSION:
            self.rates = confusion_rates(self.metric, scenario.base_rates, gap)
        elif self.metric in ERRORS:
            self.shapes = error_shapes(self.metric, gap)
        elif self.metric == "auc":
            # Positives N(m, s^2), negatives N(0, 1): AUC = Phi(m / sqrt(1 + s^2)).
            z = stats.norm.ppf([0.75, 0.75 - gap])
            self.normal = [(z[0] * math.sqrt(2), 1.0), (z[1] * math.sqrt(5), 2.0)]

    def rows(self, rng):
        n, design = self.scenario.n, self.scenario.design
        if self.metric in CORRELATIONS:
            return self.correlated(rng, 2 * n)
        parts = [self.group(rng, g, n) for g in (0, 1)]
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        columns["group"] = np.repeat([0, 1], n)
        if design == "weights":
            first, second = rng.random(n) + 0.5, rng.exponential(1.0, n) + 0.1
            columns["weight"] = np.concatenate([first, second])
        return columns

    def group(self, rng, g, n):
        metric, design = self.metric, self.scenario.design
        base = self.scenario.base_rates[g]
        columns = {}
        shift = np.zeros(n)
        if design == "clusters":
            # Clusters of 5 rows; the second group's rows belong to other clusters.
            cluster = np.arange(n) // 5
            columns["cluster"] = cluster + g * 10**6
            shift = rng.normal(size=n // 5 + 1)[cluster]
        if design == "strata":
            # One law within a stratum, whatever the group; the groups mix the strata differently.
            stratum = rng.random(n) < (0.3, 0.7)[g]
            columns["stratum"] = stratum.astype(int)
            shift = np.where(stratum, 0.8, -0.8)
            base = np.where(stratum, *self.scenario.base_rates)
        if metric == "conditional_use_accuracy":
            decision = rng.random(n) < (0.5, 0.5 * base / 0.5 + 0.05)[g]
            shown = (0.7 - self.gap * g, 0.25)
            label = rng.random(n) < np.where(decision, *shown)
            return columns | {"y_true": label.astype(int), "y_pred": decision.astype(int)}
        if metric in CONFUSION:
            group_base, found, wrong = self.rates[g]
            if design == "strata":
                found, wrong = 0.7 - self.gap * g, 0.3 + self.gap * g
            else:
                base = group_base
            label = rng.random(n) < base
            noise = rng.normal(size=n)
            # What clusters share leaves the law of a row as it is; what strata share does not.
            spread = math.sqrt(2) if design == "clusters" else 1.0
            chance = stats.norm.cdf((noise + shift) / spread)
            decision = chance < np.where(label, found, wrong)
            return columns | {"y_true": label.astype(int), "y_pred": decision.astype(int)}
        if metric == "auc":
            label = rng.random(n) < base
            mean, spread = self.normal[g if design != "strata" or self.gap else 0]
            noise = rng.normal(size=n)
            if design == "clusters":
                noise = (noise + shift) / math.sqrt(2)
            score = np.where(label, mean + spread * noise, noise) + shift * (design == "strata")
            return columns | {"y_true": label.astype(int), "y_score": score}
        if metric in ERRORS:
            chance = rng.random(n)
            if design == "clusters":
                chance = stats.norm.cdf((rng.normal(size=n) + shift) / math.sqrt(2))
            error = np.clip(stats.beta.ppf(chance, *self.shapes[g]), 1e-9, 1 - 1e-9)
            label = rng.random(n) < base
            score = np.where(label, 1 - error, error)
            return columns | {"y_true": label.astype(int), "y_score": score}
        # Calibrated scores of another shape; a gap is a shift of the score or of the labels.
        shape = ((2, 2), (1, 1 / max(base, 0.05) - 1))[g]
        if metric == "mean_prediction":
            mean = 0.5 - self.gap * g
            shape = ((2, 2), (mean * 1.2, (1 - mean) * 1.2))[g]
        score = rng.beta(*shape, n)
        label = rng.random(n) < np.clip(score - self.gap * g, 0, 1)
        return columns | {"y_true": label.astype(int), "y_score": score}

    def correlated(self, rng, n):
        """No correlation, but a spread that grows with the attribute; or a slope."""
        attribute = rng.random(n)
        noise = rng.normal(size=n) * (0.2 + attribute**2)
        score = noise + 3 * self.gap * (attribute - 0.5)
        return {"y_true": np.zeros(n), "y_score": -score, "group": attribute}


# --- measuring ----------------------------------------------------------------------------------


def arguments(columns, scenario):
    taken = {name: columns[name] for name in ("y_true", "y_pred", "y_score") if name in columns}
    needs = fa.metrics.get(scenario.metric).needs
    given = {name: value for name, value in taken.items() if name in needs}
    given |= {"sensitive_features": columns["group"], "metric": scenario.metric}
    if "weight" in columns:
        given["sample_weight"] = columns["weight"]
    if "cluster" in columns:
        given["clusters"] = columns["cluster"]
    if "stratum" in columns:
        given["strata"] = columns["stratum"]
    return given


def measure(scenario):
    """Size, coverage and power of ours, and of what others do, in one scenario."""
    rng = np.random.default_rng(scenario.seed)
    family = fa.metrics.get(scenario.metric).family
    fair, unfair = Maker(scenario, 0.0), Maker(scenario, GAP)
    options = {"n_resamples": N_RESAMPLES, "n_threads": 1}
    counts = dict.fromkeys(
        ("rejected", "naive", "found", "covered", "studentized", "percentile", "intervals"), 0
    )
    counts |= {"skipped": 0, "naive_tests": 0, "bootstraps": 0, "warned": 0}
    for audit in range(AUDITS):
        given = arguments(fair.rows(rng), scenario)
        try:
            result = fa.permutation_test(**given, **options, rng=audit)
        except fa.errors.NotMeasurableError:
            counts["skipped"] += 1
            continue
        counts["rejected"] += result.pvalue <= ALPHA
        counts["warned"] += any("few" in text for text in result.warnings)
        low, high = result.confidence_interval
        if not math.isnan(low):
            counts["intervals"] += 1
            counts["covered"] += low <= 0 <= high
        if scenario.design == "plain" and family not in ("joint", "callable"):
            plain = fa.permutation_test(
                **given, **options, rng=audit, studentize=False, strata=None
            )
            counts["naive_tests"] += 1
            counts["naive"] += plain.pvalue <= ALPHA
        if scenario.design != "strata" and family in ("counts", "ranks", "ratio"):
            counts["bootstraps"] += 1
            for method in ("studentized", "percentile"):
                low, high = fa.intervals(
                    **given, **options, rng=audit, method=method
                ).confidence_interval
                counts[method] += low <= 0 <= high
    powered = AUDITS // 4
    for audit in range(powered):
        try:
            given = arguments(unfair.rows(rng), scenario)
            counts["found"] += fa.permutation_test(**given, **options, rng=audit).pvalue <= ALPHA
        except fa.errors.NotMeasurableError:
            pass

    def share(name, of):
        return counts[name] / of if of else None

    tested = AUDITS - counts["skipped"]
    return {
        "key": scenario.key,
        **asdict(scenario),
        "audits": tested,
        "skipped": counts["skipped"],
        "size": share("rejected", tested),
        "naive": share("naive", counts["naive_tests"]),
        "coverage": share("covered", counts["intervals"]),
        "n_intervals": counts["intervals"],
        "studentized": share("studentized", counts["bootstraps"]),
        "percentile": share("percentile", counts["bootstraps"]),
        "power": counts["found"] / powered,
        "warned": share("warned", tested),
    }


# --- the page -----------------------------------------------------------------------------------


def too_often(entry):
    return entry["size"] > band(entry["audits"])[1]


def misses_coverage(entry):
    """Coverage outside of 93.5 to 96.5 % by more than chance explains, at n of 500 or more."""
    if entry["coverage"] is None or entry["n"] < 500:
        return False
    n, hits = entry["n_intervals"], round(entry["coverage"] * entry["n_intervals"])
    low = stats.binom.cdf(hits, n, COVERAGE[0])
    high = stats.binom.sf(hits - 1, n, COVERAGE[1])
    return low < 1e-3 or high < 1e-3


def outside(entry):
    """Coverage measured outside of 93.5 to 96.5 %, at n of 500 or more."""
    coverage = entry["coverage"]
    return coverage is not None and entry["n"] >= 500 and not COVERAGE[0] <= coverage <= COVERAGE[1]


def dots(entries, ours, other):
    """For every metric what others found in its scenarios, and what we did, in colours."""
    by_metric = {}
    for entry in entries:
        row = by_metric.setdefault(entry["metric"], [])
        pairs = [("#c2410c", entry[other]), ("#1a5c9a", entry[ours])]
        row.extend((colour, value) for colour, value in pairs if value is not None)
    return list(by_metric.items())


def page(entries):
    entries = sorted(
        entries,
        key=lambda e: (DESIGNS.index(e["design"]), e["metric"], e["n"], -e["base_rates"][1]),
    )
    plain = [entry for entry in entries if entry["design"] == "plain"]
    low, high = band(AUDITS)
    over = [entry for entry in entries if too_often(entry)]
    uncovered = [entry for entry in entries if misses_coverage(entry)]
    near = [entry for entry in entries if outside(entry) and entry not in uncovered]
    lines = [
        "**Size**: two groups have one value of the metric and differ in all else (base rate, "
        "spread, score law); how often does the test at the 5 % level reject? With "
        f"{AUDITS:,} audits a test of exactly 5 % lies between {100 * low:.2f} and "
        f"{100 * high:.2f} % but for one time in a million. A smaller size is no error: exact "
        "tests of few rows cannot use up their 5 %. "
        "**Unstudentized**: the permutation test without scaling, which exchanges all rows. "
        "Dividing by one standard deviation for all replicates (LiFT) gives the same p-values. "
        "**Coverage** of the 95 % interval of the gap that the test gives, of the bootstrap-t "
        "interval and of the percentile bootstrap. **Power**: how often a true gap of "
        f"{GAP} (correlations: a slope) is found, {AUDITS // 4:,} audits.",
        "",
        f"{N_RESAMPLES} replicates each. n is the number of rows of each group; base rates are "
        "those of the two groups. `-` means that there is no such test or interval.",
        "",
        "### What was found",
        "",
        f"- {len(entries)} scenarios; in {len(over)} of them the test rejects fair groups more "
        "often than the band allows"
        + (": " + "; ".join(map(named, over)) if over else "")
        + ".",
        f"- With 500 or more rows a group, coverage lies outside of 93.5 to 96.5 % by more than "
        f"chance explains (one time in a thousand) in {len(uncovered)} scenarios"
        + (": " + "; ".join(map(named, uncovered)) if uncovered else "")
        + ".",
        f"- In {len(near)} more it was measured outside, by no more than the noise of the audits"
        + (": " + "; ".join(map(named, near)) if near else "")
        + ".",
        f"- The unstudentized test rejects up to "
        f"{percent(max(e['naive'] for e in plain if e['naive'] is not None))} % of fair groups.",
        f"- The percentile bootstrap covers between "
        f"{percent(min(e['percentile'] for e in plain if e['percentile'] is not None))} and "
        f"{percent(max(e['percentile'] for e in plain if e['percentile'] is not None))} %.",
        "",
        "Results warn about data of the kind that missed: few rows of a label (below 20) or of "
        "a cell of the confusion table (below 5) in a group, or an interval within strata of a "
        "metric that is no proportion.",
        "",
        "In the pictures a dot is one scenario of the table *Rows* (n and base rates); the green "
        "band is where it should lie. Dots beyond an axis are drawn at its end.",
        "",
        picture(
            dots(plain, "size", "naive"), "size",
            "Rejections of fair groups: ours (blue), unstudentized (orange)", low, high, (0, 0.4),
        ),
        "",
        picture(
            dots(plain, "coverage", "percentile"), "coverage",
            "Coverage of 95 % intervals: ours (blue), percentile (orange)", *COVERAGE, (0.8, 1.0),
        ),
    ]  # fmt: skip
    for design in DESIGNS:
        part = [entry for entry in entries if entry["design"] == design]
        if not part:
            continue
        lines += ["", f"### {TITLES[design]}", "", *table(part)]
    write("permutation", lines)


TITLES = {
    "plain": "Rows",
    "weights": "Weighted rows: weights of another law in each group",
    "clusters": "Clusters of five correlated rows",
    "strata": "Strata of the user's, unequally mixed",
}


def named(entry):
    first, second = entry["base_rates"]
    return (
        f"{entry['metric']} ({entry['design']}, n = {entry['n']}, base rates {first:g}/{second:g}: "
        f"size {percent(entry['size'])}, coverage {percent(entry['coverage'])})"
    )


def table(entries):
    yield (
        "| metric | n | base rates | size, % | unstudentized, % | coverage, % | bootstrap-t, % | "
        "percentile, % | power, % |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for entry in entries:
        first, second = entry["base_rates"]
        size = percent(entry["size"])
        size = f"**{size}**" if too_often(entry) else size
        coverage = percent(entry["coverage"])
        coverage = f"**{coverage}**" if misses_coverage(entry) else coverage
        yield (
            f"| {entry['metric']} | {entry['n']:,} | {first:g} / {second:g} | {size} | "
            f"{percent(entry['naive'])} | {coverage} | {percent(entry['studentized'])} | "
            f"{percent(entry['percentile'])} | {percent(entry['power'])} |"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    if not options.page:
        run(RESULTS, scenarios(), measure, lambda e: f"size {e['size']:.4f}", options.processes)
    measured = load(RESULTS)
    entries = [measured[s.key] for s in scenarios() if s.key in measured]
    if not entries:
        raise SystemExit(f"nothing is measured in {RESULTS.relative_to(ROOT)}: the page stays")
    page(entries)


if __name__ == "__main__":
    main()
