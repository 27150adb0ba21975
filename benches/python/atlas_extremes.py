"""The extremes lens in the validity atlas: return levels, shapes and tests of equal levels.

`python benches/python/atlas_extremes.py` measures what is not measured yet (about an hour on two
cores) and writes the section "Extremes lens" of docs/validity.md. What is simulated stands in
atlas_extremes_levels.py, _pairs.py and _rows.py, what is counted in _counts.py, the tables in
_tables.py, the laws in tests/reference/extremes_designs.py.
Results are kept in target/atlas_extremes.jsonl.
"""

import argparse
import os
from dataclasses import asdict

import atlas_extremes_levels as levels
import atlas_extremes_pairs as pairs
import atlas_extremes_rows as rows
from atlas_tools import ROOT, run

RESULTS = ROOT / "target" / "atlas_extremes.jsonl"


def scenarios():
    yield from levels.scenarios()
    yield from pairs.scenarios()
    yield from rows.scenarios()


def measure(scenario):
    named = {"key": scenario.key, "part": scenario.part, **asdict(scenario)}
    return {**named, "audits": scenario.audits, **scenario.measure()}


def told(entry):
    """What is printed of an entry."""
    return f"{entry['audits']:,} audits"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--page", action="store_true", help="only write the page")
    parser.add_argument("--parts", nargs="*", help="only these parts")
    options = parser.parse_args()
    if not options.page:
        wanted = [s for s in scenarios() if not options.parts or s.part in options.parts]
        run(RESULTS, wanted, measure, told, options.processes)


if __name__ == "__main__":
    main()
