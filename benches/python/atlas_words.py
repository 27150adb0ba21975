"""The words of 2,000 random audits: text, Markdown and JSON are compared with NumPy and SciPy.

The audits and the checks are those of `tests/auditing/words.py`, of other seeds. Goes on where it
was stopped; the results are in target/atlas_words.jsonl. Ends with 1 where a sentence is false.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from atlas_tools import ROOT, load, run
from tests.auditing.test_words_random import errors_of_seed

#: Raise it when a change of the package or of the audits changes what is said.
VERSION = 2
RESULTS = ROOT / "target" / "atlas_words.jsonl"
AUDITS, IN_ONE = 2_000, 50
#: The seeds of the tests come before.
FIRST_SEED = 1_000


@dataclass(frozen=True)
class Seeds:
    """Some audits in a row."""

    first: int
    n: int = IN_ONE

    @property
    def key(self):
        return f"{VERSION}:words:{self.first}:{self.n}"


def measure(seeds):
    """Return what is false in the words of some audits."""
    errors = []
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(seeds.first, seeds.first + seeds.n):
            errors += [f"{seed}: {error}" for error in errors_of_seed(seed, Path(folder))]
    return {"key": seeds.key, "audits": seeds.n, "errors": errors}


def scenarios():
    """The audits, in parts."""
    return [Seeds(FIRST_SEED + first) for first in range(0, AUDITS, IN_ONE)]


def told(entry):
    """Return what is printed of a part."""
    return f"{len(entry['errors'])} false sentences"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    run(RESULTS, scenarios(), measure, told, parser.parse_args().processes)
    found = load(RESULTS)
    errors = [text for scenario in scenarios() for text in found[scenario.key]["errors"]]
    print(f"{AUDITS:,} audits, {len(errors):,} false sentences")
    for text in errors[:20]:
        print(f"- {text}")
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
