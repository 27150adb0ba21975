"""Two models on the same rows in the validity atlas: size and coverage of `fa.compare_models`.

`python benches/python/atlas_compare.py` measures what is not measured yet (some ten minutes on one
core) and writes docs/atlas/comparisons.md, of which
docs/compare_models.md takes its figures. Rates are in atlas_compare_rates.py, other metrics in
atlas_compare_others.py. Results are kept in target/atlas_compare.jsonl.
"""

import argparse
import os
from itertools import product

import numpy as np

import atlas_compare_others as others
import atlas_compare_rates as rates
from atlas_tools import ROOT, band, load, run, write

RESULTS = ROOT / "target" / "atlas_compare.jsonl"


def scenarios():
    return [*rates.scenarios(), *others.scenarios()]


def measure(scenario):
    return scenario.measure()


def told(entry):
    return f"of {entry['audits']:,}: {entry['counts']}"


# --- the page -----------------------------------------------------------------------------------


def page(measured):
    def of(kind):
        return [
            (scenario, measured[scenario.key])
            for scenario in scenarios()
            if isinstance(scenario, kind)
        ]

    yield (
        "Measured by `benches/python/atlas_compare.py`. Both groups change by as much from the "
        "first model to the second, so that D = 0: how often is it rejected? Shares that a test of "
        "that level would exceed one time in a million are bold."
    )
    yield ""
    yield from rates_table(of(rates.EqualChanges))
    yield from apart_table(of(rates.AsSamplesOfTheirOwn))
    yield from covered_table(of(rates.Covered))
    yield from sides_table(of(others.OneSided))
    yield from counts_table(of(others.OfCounts))
    yield from scores_table(of(others.OfScores))


def share(count, audits, level, digits=None):
    """A percentage; bold when it is more than a test of the level would reject."""
    digits = 1 + (level < 0.01) if digits is None else digits
    text = f"{100 * count / audits:.{digits}f}"
    return f"**{text}**" if count / audits > band(audits, level)[1] else text


def rates_table(entries):
    yield "### Rates"
    yield ""
    n_laws = len(rates.laws())
    yield (
        f"{n_laws} pairs of laws with equal changes, {rates.AUDITS:,} audits each: 1 to 98 % of "
        "the rows change, to both sides or all one way, in both groups as many or not. **Worst** "
        "and **mean** are of all laws, two-sided; **side** is the worst share of rejections to one "
        "side, of which half the level is due. *Both* is ours: of the score and of the score "
        "corrected for skewness the larger p-value counts. *Wald* takes variances as observed. "
        "The statistics are computed for all audits at once; on the first "
        f"{rates.CHECKED} audits of every law they are those of the library."
    )
    yield ""
    names = [f"{100 * level:g} %: worst, side, mean" for level in rates.LEVELS]
    yield f"| rows | test | {' | '.join(names)} |"
    yield "|---|---|---|---|---|"
    for rows, rule in product(rates.SIZES, rates.RULES):
        part = [entry for record, entry in entries if record.rows == rows]
        cells = []
        for i, level in enumerate(rates.LEVELS):
            n = part[0]["audits"]
            below, above = np.array([entry["counts"][rule][i] for entry in part]).T
            both, digits = below + above, 2 if level < 0.01 else 1
            cells.append(
                f"{share(both.max(), n, level, digits)}, "
                f"{share(max(below.max(), above.max()), n, level / 2, digits)}, "
                f"{100 * both.mean() / n:.{digits}f}"
            )
        yield f"| {rows[0]} + {rows[1]:,} | {rule} | {' | '.join(cells)} |"
    yield ""


def apart_table(entries):
    yield (
        f"Taken for samples of their own, models that decide nine of ten rows alike (100 + 2,000 "
        f"rows, {rates.AUDITS:,} audits at 5 %):"
    )
    yield ""
    yield "| change of the gap | ours rejects, % | samples of their own, % |"
    yield "|---|---|---|"
    for record, entry in entries:
        n, counts = entry["audits"], entry["counts"]
        shares = [f"{100 * counts[rule] / n:.2f}" for rule in ("both", "apart")]
        yield f"| {record.change:g} | {' | '.join(shares)} |"
    yield ""


def covered_table(entries):
    yield "### Coverage"
    yield ""
    yield (
        f"95 % intervals of selection rates of 40 + 40 rows, {rates.AUDITS_OF_INTERVALS:,} calls "
        "each: of the change of the gap with its sign (D), and of the change of its size."
    )
    yield ""
    yield "| gap | first, second | of D, % | of the size, % |"
    yield "|---|---|---|---|"
    for record, entry in entries:
        n, counts = entry["audits"], entry["counts"]
        gaps = ", ".join(f"{gap:g}" for gap in record.gaps)
        yield (
            f"| {record.name} | {gaps} | {100 * counts['change'] / n:.1f} | "
            f"{100 * counts['size'] / n:.1f} |"
        )
    yield ""


def sides_table(entries):
    yield "### One-sided tests of a size"
    yield ""
    yield (
        f"Normal gaps that are both 0, {others.AUDITS_OF_SIDES:,} audits at 5 %, by the standard "
        "error of the second gap where that of the first is 1. *Sign of the first* tests in the "
        "direction that the first gap has, and corrects nothing."
    )
    yield ""
    yield "| standard error | correlation of D and S | ours, % | sign of the first, % |"
    yield "|---|---|---|---|"
    for record, entry in entries:
        n, counts = entry["audits"], entry["counts"]
        shares = [share(counts[rule], n, 0.05) for rule in ("ours", "sign")]
        yield f"| {record.error:g} | {record.correlation:.2f} | {' | '.join(shares)} |"
    yield ""


def counts_table(entries):
    yield "### Other metrics of counts"
    yield ""
    yield (
        f"PPV and F1, {len(others.LAWS)} pairs of laws, up to {others.AUDITS_OF_COUNTS:,} audits "
        "each (those in which both groups have a value): the worst share of rejections at "
        f"{levels(others.LEVELS_OF_COUNTS)} %. *Plain* is the variance without one more row in "
        "each cell of rows that are decided differently."
    )
    yield ""
    yield from worst_table(entries, others.LEVELS_OF_COUNTS, ("ours", "plain"))


def scores_table(entries):
    yield "### Scores"
    yield ""
    yield (
        f"AUC and Brier score, {len(others.DESIGNS)} designs, up to {others.AUDITS_OF_SCORES:,} "
        f"calls each with {others.N_RESAMPLES} replicates: the worst share of rejections at "
        f"{levels(others.LEVELS_OF_SCORES)} %. *Normal* and *Welch* take what rows add to the "
        "change for a mean, by the normal law and by Student's."
    )
    yield ""
    rules = ("ours", "normal", "welch")
    yield from worst_table(entries, others.LEVELS_OF_SCORES, rules)


def levels(found):
    return ", ".join(f"{100 * level:g}" for level in found)


def worst_table(entries, at, rules):
    """By metric and rows the worst share of each rule over all laws, at each level."""
    yield f"| metric | rows | {' | '.join(f'{rule}, %' for rule in rules)} |"
    yield "|---" * (2 + len(rules)) + "|"
    for metric in dict.fromkeys(record.metric for record, _ in entries):
        for rows in dict.fromkeys(record.rows for record, _ in entries):
            part = [e for record, e in entries if (record.metric, record.rows) == (metric, rows)]
            cells = []
            for rule in rules:
                worst = [
                    max(part, key=lambda e, i=i, rule=rule: e["counts"][rule][i] / e["audits"])
                    for i in range(len(at))
                ]
                shares = [
                    share(entry["counts"][rule][i], entry["audits"], level)
                    for i, (entry, level) in enumerate(zip(worst, at, strict=True))
                ]
                cells.append(" / ".join(shares))
            yield f"| {metric} | {rows[0]} + {rows[1]:,} | {' | '.join(cells)} |"
    yield ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    run(RESULTS, scenarios(), measure, told, parser.parse_args().processes)
    write("comparisons", page(load(RESULTS)))


if __name__ == "__main__":
    main()
