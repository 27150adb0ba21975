"""The projection lens in the validity atlas: when its limit law is trusted, and whether rightly.

`python benches/python/atlas_projection.py` measures what is not measured yet (some ten minutes on
two cores) and writes docs/atlas/projection.md. Results are kept in
target/atlas_projection.jsonl.
"""

import argparse
import os
import zlib
from dataclasses import dataclass

import numpy as np
from scipy import stats

import fairaudit_rs as fa
from atlas_tools import ROOT, band, load, run, write

RESULTS = ROOT / "target" / "atlas_projection.jsonl"
#: Raise it when a change of the package or of this file changes what is measured.
VERSION = 1

AUDITS = 4_000
LEVELS = (0.05, 0.01, 0.001)
SIZES = ((1_000, 1_000), (1_900, 100), (1_960, 40), (190, 10))
#: How many times as wide the margins of the two groups are.
FACTORS = ((1, 1), (1, 3), (3, 1), (1, 10), (10, 1))
#: Shares of positive decisions, the same in both groups.
RATES = (0.5, 0.2)


@dataclass(frozen=True)
class Scenario:
    """Fair decisions of two groups, whose margins are normal and differ in width."""

    sizes: tuple[int, int]
    factors: tuple[int, int]
    rate: float

    @property
    def n(self):
        return sum(self.sizes)

    @property
    def key(self):
        return f"{VERSION}:projection:{self.sizes}:{self.factors}:{self.rate}:{AUDITS}"


def scenarios():
    return [Scenario(*row) for row in ((s, f, r) for r in RATES for s in SIZES for f in FACTORS)]


def measure(scenario):
    """How often p by the law, and p as it is answered, is at most each level."""
    rng = np.random.default_rng(zlib.crc32(scenario.key.encode()))
    group = np.repeat([0, 1], scenario.sizes)
    factor = np.repeat(scenario.factors, scenario.sizes)
    found = np.full((AUDITS, 3), np.nan)
    for audit in range(AUDITS):
        score = rng.normal(stats.norm.ppf(scenario.rate), size=scenario.n) * factor
        result = fa.projection_test(
            y_pred=score >= 0, distance=np.abs(score), sensitive_features=group,
            notion="statistical_parity", n_threads=1,
        )  # fmt: skip
        by_law = result.sensitivity[1][1] if result.sensitivity else result.pvalue
        found[audit] = by_law, result.pvalue, result.effective_rows
    by_law, pvalue, rows = found.T
    answered = pvalue[~np.isnan(pvalue)]
    return {
        "key": scenario.key,
        "n_answered": len(answered),
        "by_law": [float(np.mean(by_law <= level)) for level in LEVELS],
        "answered": [float(np.mean(answered <= level)) for level in LEVELS],
        "rows": float(np.nanmedian(rows)),
    }


def told(entry):
    return f"answered {100 * entry['n_answered'] / AUDITS:.0f} %: {entry['answered']}"


def page(done):
    yield (
        f"Measured by `benches/python/atlas_projection.py`: {AUDITS:,} audits of fair decisions "
        "for each design (statistical parity of two groups; margins are normal, in one group so "
        "many times as wide), asymptotic test. **By the law** is how often its p-value is at most "
        "5, 1 and 0.1 %, whatever the conditions say of it; **answered** the share of audits that "
        "got a p-value, with or without a note; **of these rejected** how often that is at most "
        "5, 1 and 0.1 %. Shares that a valid test would exceed one time in a million are bold; "
        "a dash stands for fewer than 200 answers. **Rows** is the median of the effective rows "
        "near the boundary."
    )
    yield ""
    columns = ["groups", "margins", "positive", "rows", "by the law, %", "answered, %"]
    yield " | ".join(["|", *columns, "of these rejected, % |"]).replace("| |", "|", 1)
    yield "|---|---|---|---|---|---|---|"
    for scenario in scenarios():
        entry = done[scenario.key]
        n = entry["n_answered"]
        yield " | ".join(
            [
                f"| {scenario.sizes[0]:,} + {scenario.sizes[1]:,}",
                f"x {scenario.factors[0]}, x {scenario.factors[1]}",
                f"{100 * scenario.rate:g} %",
                f"{entry['rows']:.3g}",
                shares(entry["by_law"], AUDITS),
                f"{100 * n / AUDITS:.0f}",
                (shares(entry["answered"], n) if n >= 200 else "-") + " |",
            ]
        )


def shares(found, n):
    texts = []
    for share, level, digits in zip(found, LEVELS, (1, 2, 2), strict=True):
        text = f"{100 * share:.{digits}f}"
        texts.append(f"**{text}**" if share > band(n, level)[1] else text)
    return " / ".join(texts)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    run(RESULTS, scenarios(), measure, told, parser.parse_args().processes)
    write("projection", page(load(RESULTS)))
