"""Shared parts of all benches: timing, tables, and the pages they are written to."""

import argparse
import os
import platform
import re
import time
from pathlib import Path

import numpy as np

from memory import peak_above

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "benches" / "README.md", ROOT / "docs" / "performance.md")


def seconds(call, repeats=5):
    """The best of several runs, after one to warm up."""
    call()
    return min(timed(call) for _ in range(repeats))


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def time_table(benchmarks):
    """Rows of (work, baseline, their seconds, our seconds, goal or None)."""
    yield "| work | baseline | baseline, s | ours, s | ratio | goal |"
    yield "|---|---|---|---|---|---|"
    for work, baseline, theirs, mine, goal in benchmarks:
        ratio = theirs / mine
        # The law that cost does not grow with rows has noise on both sides.
        missed = goal is not None and ratio < goal * (0.95 if goal == 1 else 1)
        aim = "" if goal is None else f"{goal:,} x" + (", missed" if missed else "")
        yield f"| {work} | {baseline} | {theirs:.4g} | {mine:.4g} | {ratio:,.3g} x | {aim} |"


def memory_table(calls, set_up):
    """Peak memory of calls, each with what the set-up has too much of."""
    yield "| work on 10^7 rows | input columns, MB | peak above them, MB | ratio | goal |"
    yield "|---|---|---|---|---|"
    for work, (code, rest) in calls.items():
        peak, columns = peak_above(code, set_up + rest)
        ratio = peak / columns
        mark = "" if ratio <= 1.5 else ", missed"
        yield f"| {work} | {columns / 1e6:.0f} | {peak / 1e6:.0f} | {ratio:.2f} | 1.5{mark} |"


def machine():
    return (
        f"{os.cpu_count()} cores, {platform.machine()}, Python "
        f"{platform.python_version()}, NumPy {np.__version__}"
    )


def run(lens, lines, doc):
    """Print the lines of a lens and, with --write, put them where the pages have its section."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--write", action="store_true", help="write the tables to the docs")
    write = parser.parse_args().write
    kept = []
    for line in lines:
        print(line, flush=True)
        kept.append(line)
    if write:
        for page in PAGES:
            write_section(page, lens, kept)


def read_section(page, name):
    """The lines between the two comments of a section."""
    return _section(page, name)[1].group(1).splitlines()


def write_section(page, name, lines):
    """Replace what stands between the two comments of a section."""
    text, found = _section(page, name)
    body = "".join(f"{line}\n" for line in lines)
    page.write_text(text[: found.start(1)] + body + text[found.end(1) :], encoding="utf-8")


def _section(page, name):
    """The text of a page, and where it has a section: group 1 is what stands in it."""
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    text = page.read_text(encoding="utf-8")
    found = re.search(f"{re.escape(begin)}\n(.*?){re.escape(end)}", text, re.DOTALL)
    if not found:
        raise SystemExit(f"{page} has no section {name}: add the comments {begin} and {end}")
    return text, found
