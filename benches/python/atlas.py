"""The validity atlas: size, coverage and power of every metric, measured by simulation.

`make atlas` runs what is not measured yet, on all cores, and writes docs/atlas/, a page for each
lens: here that of the permutation lens with its pictures (data: atlas_designs.py), in
atlas_<lens>.py those of others. Results are kept one per line in target/atlas.jsonl: a run that was
stopped goes on where it was. Every scenario has a seed of its own, so the numbers do not depend on
how many scenarios run, nor on which core. `--only METRIC` measures one metric, and puts its rows
into the tables of the page.
"""

import argparse
import math
import os
from dataclasses import asdict

import numpy as np
from scipy import stats

import fairaudit_rs as fa
from atlas_designs import AUDITS, DESIGNS, GAP, STRATIFIED, Maker, scenarios
from atlas_tools import (
    ALPHA,
    COVERAGE,
    ROOT,
    band,
    load,
    percent,
    picture,
    pooled_too_often,
    run,
    section,
    write,
)

RESULTS = ROOT / "target" / "atlas.jsonl"

N_RESAMPLES = 199


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
    counts |= {"rejected_at_1": 0, "withheld": 0}
    for audit in range(AUDITS):
        given = arguments(fair.rows(rng), scenario)
        try:
            result = fa.permutation_test(**given, **options, rng=audit)
        except fa.errors.NotMeasurableError:
            counts["skipped"] += 1
            continue
        # What is withheld has no p-value, and rejects nothing.
        counts["rejected"] += result.pvalue <= ALPHA
        counts["rejected_at_1"] += result.pvalue <= 0.01
        counts["withheld"] += result.inconclusive is not None
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
        if scenario.design not in STRATIFIED and family in ("counts", "ranks", "ratio"):
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
        "size_at_1": share("rejected_at_1", tested),
        "withheld": share("withheld", tested),
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


def too_often_at_1(entry):
    return entry["size_at_1"] > band(entry["audits"], 0.01)[1]


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
    over_at_1 = [entry for entry in entries if too_often_at_1(entry)]
    withheld = [entry for entry in entries if entry["withheld"] > 0.1]
    metrics_over = pooled_too_often(entries)
    uncovered = [entry for entry in entries if misses_coverage(entry)]
    short = [entry for entry in uncovered if entry["coverage"] < COVERAGE[0]]
    long = [entry for entry in uncovered if entry not in short]
    near = [entry for entry in entries if outside(entry) and entry not in uncovered]
    lines = [
        "**Size**: two groups have one value of the metric and differ in all else (base rate, "
        "spread, score law); how often does the test at the 5 % level reject? With "
        f"{AUDITS:,} audits a test of exactly 5 % lies between {100 * low:.2f} and "
        f"{100 * high:.2f} % but for one time in a million. A smaller size is no error: exact "
        "tests of few rows cannot use up their 5 %. "
        "**At 1 %**: the same at that level. **No answer**: how often the data are too few for "
        "what they seem to show (`inconclusive`); that rejects nothing. "
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
        f"- Of {len({e['metric'] for e in entries})} metrics over all their scenarios, "
        f"{len(metrics_over)} reject fair groups more often than the band of all their audits"
        + (
            ": "
            + "; ".join(f"{name} ({percent(size)} %)" for name, size in metrics_over.items())
            if metrics_over
            else ""
        )
        + ". A small error in every scenario of a metric shows here alone.",
        f"- At the 1 % level it does so in {len(over_at_1)}"
        + (": " + "; ".join(map(named, over_at_1)) if over_at_1 else "")
        + ".",
        f"- In {len(withheld)} scenarios more than a tenth of the audits get no verdict, because "
        "a group has too few rows for what they seem to show"
        + (": " + "; ".join(map(named, withheld)) if withheld else "")
        + ".",
        f"- With 500 or more rows a group, coverage lies below 93.5 % by more than chance explains "
        f"(one time in a thousand) in {len(short)} scenarios"
        + (": " + "; ".join(map(named, short)) if short else "")
        + f". It lies above 96.5 % in {len(long)}, where melded limits stand in for few events "
        "near an end of a known range, or where a group has few eligible rows"
        + (": " + "; ".join(map(briefly, long)) if long else "")
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
        "a cell of the confusion table (below 5) in a group, few clusters (F1, AUC and the like), "
        "strata of few rows (intervals of metrics that are no proportion, mean or ratio).",
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
    "few rows": "2 % of the rows in the first group (n: half of all rows)",
    "skewed": "Skewed residuals and errors in 2 % of the rows (n: half of all rows)",
    "spread weights": "Weights with a standard deviation of 1.5 times their mean",
    "states": "States as clusters: 25 a group, of very unequal size",
    "sparse strata": "Strata of some four rows",
    "U shape": "A value that follows the attribute in a U, without a correlation",
    "V shape": "A value that follows |attribute|, without a correlation",
    "tied": "Tied scores, values and attributes",
}


def named(entry):
    first, second = entry["base_rates"]
    return (
        f"{entry['metric']} ({entry['design']}, n = {entry['n']}, base rates {first:g}/{second:g}: "
        f"size {percent(entry['size'])}, at 1 % {percent(entry['size_at_1'])}, "
        f"coverage {percent(entry['coverage'])})"
    )


def briefly(entry):
    n, coverage = entry["n"], percent(entry["coverage"])
    return f"{entry['metric']} ({entry['design']}, n = {n}: {coverage})"


def table(entries):
    yield (
        "| metric | n | base rates | size, % | at 1 % | no answer, % | unstudentized, % | "
        "coverage, % | bootstrap-t, % | percentile, % | power, % |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for entry in entries:
        first, second = entry["base_rates"]
        size = percent(entry["size"])
        size = f"**{size}**" if too_often(entry) else size
        at_1 = percent(entry["size_at_1"])
        at_1 = f"**{at_1}**" if too_often_at_1(entry) else at_1
        coverage = percent(entry["coverage"])
        coverage = f"**{coverage}**" if misses_coverage(entry) else coverage
        yield (
            f"| {entry['metric']} | {entry['n']:,} | {first:g} / {second:g} | {size} | "
            f"{at_1} | {percent(entry['withheld'])} | {percent(entry['naive'])} | {coverage} | "
            f"{percent(entry['studentized'])} | {percent(entry['percentile'])} | "
            f"{percent(entry['power'])} |"
        )


# --- rows of some metrics -----------------------------------------------------------------------


def with_rows(lines, entries):
    """The section with the rows of some metrics put into its tables, where the order has them.

    What was found of all scenarios stays as it is, with a line on those that came after it.
    """
    metrics = {entry["metric"] for entry in entries}
    for design in {entry["design"]: None for entry in entries}:
        start = lines.index(f"### {TITLES[design]}") + 4
        end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
        new = list(table([entry for entry in entries if entry["design"] == design]))[2:]
        kept = [row for row in lines[start:end] if cells_of(row)[0] not in metrics]
        lines = [*lines[:start], *sorted([*kept, *new], key=place_of), *lines[end:]]
    told = [later([e for e in entries if e["metric"] == metric]) for metric in sorted(metrics)]
    heads = [line.partition(":")[0] for line in told]
    lines = [line for line in lines if line.partition(":")[0] not in heads]
    last = max(i for i, line in enumerate(lines) if line.startswith("- "))
    return [*lines[: last + 1], *told, *lines[last + 1 :]]


def cells_of(row):
    return [cell.strip() for cell in row.strip("|").split("|")]


def place_of(row):
    """Return the sort key of table rows."""
    metric, n, bases, *_ = cells_of(row)
    return metric, int(n.replace(",", "")), -float(bases.split("/")[1])


def later(entries):
    """The line on a metric that was measured after the other ones."""
    over = [entry for entry in entries if too_often(entry) or too_often_at_1(entry)]
    missed = [entry for entry in entries if misses_coverage(entry)]
    return (
        f"- Measured later ({entries[0]['metric']}), so not in the lines and pictures of this part"
        f": {len(entries)} scenarios; in {len(over)} the test rejects fair groups more often than "
        f"the band allows at 5 or 1 %, and in {len(missed)} coverage lies outside of 93.5 to "
        "96.5 % by more than chance explains"
        + ("".join(f"; {named(entry)}" for entry in (*over, *missed)))
        + "."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="METRIC",
        help="measure these metrics alone, and put their rows into the page as it is",
    )
    options = parser.parse_args()
    wanted = [s for s in scenarios() if options.only is None or s.metric in options.only]
    if not wanted:
        raise SystemExit(f"--only is {' '.join(options.only)}; accepted: metrics of the atlas")
    if not options.page:
        run(RESULTS, wanted, measure, lambda e: f"size {e['size']:.4f}", options.processes)
    measured = load(RESULTS)
    entries = [measured[s.key] for s in wanted if s.key in measured]
    if not entries:
        raise SystemExit(f"nothing is measured in {RESULTS.relative_to(ROOT)}: the page stays")
    if options.only is None:
        page(entries)
    else:
        write("permutation", with_rows(section("permutation"), entries))


if __name__ == "__main__":
    main()
