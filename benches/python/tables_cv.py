"""Makes the critical values of the residual coefficient of variation.

    python benches/python/tables_cv.py          # a minute; rewrites the table beside the source

The excesses of exponential rows over their (k+1)-th largest are k independent exponential
numbers, whatever the rows were: the null law of sd / mean depends on k alone. Sequences of
exponential numbers are lengthened one by one, so that one set of them serves every k.
"""

import sys
from pathlib import Path

import numpy as np

SMALLEST, LARGEST = 10, 499
LEVELS = (0.90, 0.95, 0.99)
SEQUENCES = 2_000_000
SEED = 20_251_119
TABLE = Path(__file__).parents[2] / "rust/fairaudit-core/src/extremes/cv_critical.txt"


def rows():
    """Yield k and the quantiles of the coefficient of variation, denominator k - 1."""
    rng = np.random.default_rng(SEED)
    mean, squares = np.zeros(SEQUENCES), np.zeros(SEQUENCES)
    for k in range(1, LARGEST + 1):
        number = rng.standard_exponential(SEQUENCES)
        step = number - mean
        mean += step / k
        squares += step * (number - mean)
        if k >= SMALLEST:
            yield k, np.quantile(np.sqrt(squares / (k - 1)) / mean, LEVELS)


def main():
    """Write the table."""
    levels = " ".join(f"{level:.2f}" for level in LEVELS)
    lines = [
        "# Critical values of the residual coefficient of variation by k; made by"
        f" benches/python/tables_cv.py: {SEQUENCES} sequences, seed {SEED}, numpy {np.__version__}",
        f"# k {levels}",
    ]
    for k, quantiles in rows():
        lines.append(" ".join([str(k), *(f"{quantile:.5f}" for quantile in quantiles)]))
        if k % 50 == 0:
            sys.stderr.write(f"k = {k}\n")
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
