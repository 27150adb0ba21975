"""Which calls were run, so that the runs of many days add up: `ledger.json`, which is committed.

A batch is done when none of its calls failed; one that fails is run again by the next run, and what
failed counts as mended when its batch comes to its end without it. What a number draws may change
with the generator: a done number says that so many calls were run, each once.
"""

import json
import os
from pathlib import Path

HERE = Path(__file__).with_name("ledger.json")


class Ledger:
    """By seed: ranges of calls without failures, failures with their first call, mended ones."""

    def __init__(self, path=HERE):
        self.path = Path(path)
        self.seeds = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}

    def of(self, seed):
        """Return the record of a seed."""
        return self.seeds.get(seed, {"done": [], "failing": {}, "mended": {}})

    def has(self, seed, first, count):
        """Return whether all these calls were run, and none failed."""
        return any(start <= first and first + count <= end for start, end in self.of(seed)["done"])

    def n_done(self, seed):
        """How many calls were run without a failure."""
        return sum(end - start for start, end in self.of(seed)["done"])

    def add(self, seed, first, count, failures):
        """Write down a batch: by failure its first call."""
        entry = self.seeds.setdefault(seed, self.of(seed))
        here = range(first, first + count)
        entry["failing"] |= failures
        for what in list(entry["failing"]):
            if what not in failures and entry["failing"][what] in here:
                entry["mended"][what] = entry["failing"].pop(what)
        for what in failures:
            entry["mended"].pop(what, None)
        if not failures:
            entry["done"] = joined([*entry["done"], [first, first + count]])
        self._write()

    def _write(self):
        """Whole or not at all: a run may be stopped at any time."""
        new = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        new.write_text(json.dumps(self.seeds, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        new.replace(self.path)


def joined(ranges):
    """The same numbers in as few ranges as there can be."""
    found = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1][1] = max(end, found[-1][1])
        else:
            found.append([start, end])
    return found
