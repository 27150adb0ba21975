"""Shared parts of the validity atlas: stored results, bands, pictures, sections."""

import json
import os
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from scipy import stats

from report import read_section, write_section

ROOT = Path(__file__).resolve().parents[2]
# Parts of the atlas take their populations, with the truth of each, from the tests' references.
sys.path.insert(0, str(ROOT))
#: A page for each lens.
PAGES = ROOT / "docs" / "atlas"

ALPHA = 0.05
#: Levels at which one simulated audit is counted. The last one is for closed forms, and for tests
#: by at least 3,999 replicates.
LEVELS = (0.05, 0.01, 0.001)
#: Chance that a test of exactly 5 % lies outside of the band.
BAND = 1e-6
COVERAGE = (0.935, 0.965)


def load(results):
    """Return the earlier measurements by key."""
    if not results.exists():
        return {}
    lines = results.read_text(encoding="utf-8").splitlines()
    return {entry["key"]: entry for entry in map(json.loads, lines)}


def run(results, scenarios, measure, told, n_processes):
    """Measure what is not measured yet; `told` says what is printed of an entry."""
    done = load(results)
    wanted = [scenario for scenario in scenarios if scenario.key not in done]
    # Large ones first: none is left over at the end.
    wanted.sort(key=lambda scenario: -scenario.n)
    results.parent.mkdir(exist_ok=True)
    # Of a core each: threads of linear algebra would wait for each other.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with (
        ProcessPoolExecutor(n_processes, get_context("spawn")) as pool,
        results.open("a", encoding="utf-8") as file,
    ):
        running = [pool.submit(measure, scenario) for scenario in wanted]
        for i, future in enumerate(as_completed(running)):
            entry = future.result()
            file.write(json.dumps(entry) + "\n")
            file.flush()
            print(f"{i + 1} of {len(wanted)}: {entry['key']} {told(entry)}", flush=True)


def band(n, p=ALPHA):
    """Shares that a binomial of this probability leaves with probability 1e-6."""
    return stats.binom.ppf(BAND / 2, n, p) / n, stats.binom.isf(BAND / 2, n, p) / n


def counted(audits, levels):
    """Count by rule in how many audits it rejects, as a list with a count for each level.

    An audit gives each rule a p-value, or a list with an answer for each level. A rule that has no
    level gives True or False, and has one count.
    """
    counts = {}
    for audit in audits:
        for rule, answer in audit.items():
            if isinstance(answer, float):
                answers = [answer <= level for level in levels]
            else:
                answers = answer if isinstance(answer, list) else [answer]
            found = counts.setdefault(rule, [0] * len(answers))
            counts[rule] = [n + bool(value) for n, value in zip(found, answers, strict=True)]
    return counts


def pooled_too_often(entries):
    """Metrics whose test rejects too often over all their scenarios together, with how often.

    The counts of all audits of a metric against their band: a small error in every scenario stays
    within the band of each.
    """
    counts = {}
    for entry in entries:
        rejected, audits = counts.get(entry["metric"], (0, 0))
        found = round(entry["size"] * entry["audits"])
        counts[entry["metric"]] = (rejected + found, audits + entry["audits"])
    return {
        metric: rejected / audits
        for metric, (rejected, audits) in counts.items()
        if rejected / audits > band(audits)[1]
    }


def percent(value):
    return "-" if value is None else f"{100 * value:.1f}"


def picture(rows, name, title, low, high, scale):
    """A strip of dots for every (label, [(colour, value)]) as SVG, and the band for them."""
    left, width, step, top = 190, 560, 17, 46
    height = top + step * len(rows) + 34

    def x(value):
        inside = min(max(value, scale[0]), scale[1])
        return left + width * (inside - scale[0]) / (scale[1] - scale[0])

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 30}" height="{height}" '
        f'font-family="sans-serif" font-size="11" role="img" aria-label="{title}">',
        f'<rect width="100%" height="100%" fill="#ffffff"/><text x="10" y="18" font-size="13">'
        f"{title}</text>",
        f'<rect x="{x(low):.1f}" y="{top - 8}" width="{x(high) - x(low):.1f}" '
        f'height="{step * len(rows)}" fill="#dcebd7"/>',
    ]
    for tick in np.linspace(*scale, 6):
        parts.append(
            f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{top - 8}" '
            f'y2="{top - 8 + step * len(rows)}" stroke="#cccccc"/><text x="{x(tick):.1f}" '
            f'y="{height - 18}" text-anchor="middle">{100 * tick:.3g} %</text>'
        )
    for row, (label, dots) in enumerate(rows):
        y = top + step * row
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{label}</text>')
        for colour, value in dots:
            parts.append(
                f'<circle cx="{x(value):.1f}" cy="{y}" r="3.5" fill="{colour}" '
                f'fill-opacity="0.75"/>'
            )
    parts.append("</svg>")
    target = ROOT / "docs" / "images" / f"{name}.svg"
    target.parent.mkdir(exist_ok=True)
    target.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return f"![{title}](../images/{name}.svg)"


def write(lens, lines):
    """Put the lines of a lens into its page."""
    write_section(PAGES / f"{lens}.md", lens, lines)


def section(lens):
    """Return the lines of a lens on its page."""
    return read_section(PAGES / f"{lens}.md", lens)
