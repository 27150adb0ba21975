"""Simulates the cuts of the extremes lens that are shipped, and writes them into the core.

    python benches/python/tables_cuts.py            # what is not there yet, then the file (about
    half an hour)

Resumable: what each number of exceedances came to is kept under `target/cuts`. The numbers do not
depend on how many threads there are, nor on what else is simulated, so that the same file comes of
it anywhere.
"""

from pathlib import Path

import numpy as np

from fairaudit_rs import _native

ROOT = Path(__file__).resolve().parents[2]
STORE = ROOT / "target" / "cuts"
FILE = ROOT / "rust" / "fairaudit-core" / "src" / "extremes" / "cuts.txt"
REPLICATES = 20_000
SEED = 20_261_119
HEAD = (
    "# Quantiles of signed roots in thousandths, by benches/python/tables_cuts.py: "
    f"{REPLICATES:,} replicates, seed {SEED}.\n"
    "# For each number of exceedances: return levels at the horizons of the default n, then of n "
    "without end, then the shape;\n"
    "# each with a line for each shape of the simulation. extremes/tables.rs reads it.\n"
)


def tables_of(k, designs):
    """All tables of a number of exceedances, in thousandths: (designs + 1, shapes, quantiles)."""
    store = STORE / f"{k}.npy"
    if not store.exists():
        draws, call = _native.Draws(REPLICATES, seed=SEED, series=k), _native.Call()
        found = _native.simulate_level_cuts(k, designs, draws, call)
        found.append(_native.simulate_shape_cuts(k, draws, call))
        STORE.mkdir(parents=True, exist_ok=True)
        np.save(store, np.rint(1000 * np.array([cuts.values for cuts in found])).astype(int))
        print(f"{k} exceedances", flush=True)
    return np.load(store)


def main():
    lines = [HEAD]
    for k, n, designs in _native.tabled_designs():
        lines.append(f"# {k} exceedances, n = {n:.0f}\n")
        tables = tables_of(k, designs)
        lines += [" ".join(map(str, row)) + "\n" for row in tables.reshape(-1, tables.shape[-1])]
    FILE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
