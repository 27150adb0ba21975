"""Files with some of their bytes changed: CSV, Parquet and cells."""

import io
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl

import fairaudit_rs as fa

PIECES = (
    *(b",", b"\n", b"\r\n", b'"', b'""', b"\0", b"\xff", b"\xef\xbb\xbf", b" ", b"nan", b"1e999"),
    *(b"9" * 400, b"-", b"true", b"2024-01-01", b"\xed\xa0\x80", b",,,,", b"\n\n", b"PAR1"),
)


@cache
def folder():
    """A folder of this process, and gone with it."""
    made = tempfile.TemporaryDirectory(prefix="fairaudit-hostile-")
    _ALIVE.append(made)
    return Path(made.name)


_ALIVE = []


@cache
def originals():
    """The files that are changed, by name."""
    n = 40
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "y": rng.integers(0, 2, n),
            "p": rng.integers(0, 2, n),
            "s": rng.random(n).round(3),
            "g": rng.choice(["a", "b", "c, d"], n),
        }
    )
    found = {"rows.csv": frame.write_csv().encode(), "empty.csv": b"", "header.csv": b"y,p,s,g\n"}
    for name, compression in (("rows.parquet", "uncompressed"), ("packed.parquet", "zstd")):
        buffer = io.BytesIO()
        frame.write_parquet(buffer, compression=compression)
        found[name] = buffer.getvalue()
    cells = fa.tabulate(frame, y_true="y", y_pred="p", y_score="s", sensitive_features="g")
    cells.write_parquet(folder() / "cells.parquet")
    found["cells.parquet"] = (folder() / "cells.parquet").read_bytes()
    return found


def changed(r, content, pieces):
    """The bytes with some of them changed, left out or put in."""
    content = bytearray(content)
    for _ in range(r.choice((0, 1, 1, 1, 2, 5, 20))):
        at = r.randrange(len(content) + 1)
        kind = r.randrange(5)
        if kind == 0 and at < len(content):
            content[at] = r.randrange(256)
        elif kind == 1:
            del content[at : at + r.choice((1, 2, 30))]
        elif kind == 2:
            content[at:at] = r.choice(pieces)
        elif kind == 3:
            content[at : at + 4] = r.choice((b"\xff\xff\xff\x7f", bytes(4), b"\xff\xff\xff\xff"))
        elif r.random() < 0.3:
            del content[at:]
    return bytes(content)


def crafted_cells(r):
    """A frame that looks like one of cells, with other columns."""
    counts = ([5, 6], [0, 0], [-1, 5], [2**62, 2**62], [0.5, 1.0], [None, 3], ["a", "b"])
    edges = ([[0.0, 1.0]] * 2, [[1.0, 0.0]] * 2, [[]] * 2, [1.0, 2.0], [None, None])
    columns = {
        "group:g": r.choice((["a", "b"], [None, "a"], [1, 2], [0.5, 2.0], [["a"], ["b"]])),
        "y_true": r.choice(([0, 1], [None, 1], [True, False], ["x", "y"], [2, 3])),
        "y_pred": r.choice(([0, 1], [1, 1], [0.5, 0.1], [-1, 2**40])),
        "count": r.choice(counts),
        "score_bin": r.choice(([0, 1], [-1, 99], [2**40, 0], [0.5, 1.0])),
        "score_sum": r.choice(([0, 1], [2**62, -(2**62)], [None, 1])),
        "score_edges": r.choice(edges),
    }
    kept = {name: column for name, column in columns.items() if r.random() < 0.8}
    return pl.DataFrame(kept, strict=False)


def make(r):
    """Draw a file and a function that reads it."""
    name = r.choice(
        [original for original in originals() for _ in range(1 if "rows" not in original else 4)]
    )
    path = folder() / name
    if name == "cells.parquet" and r.random() < 0.5:
        crafted_cells(r).write_parquet(path)
    else:
        path.write_bytes(changed(r, originals()[name], PIECES))
    readers = [tabulate, permute, project] if name != "cells.parquet" else [cells, cells, tabulate]
    return "file", r.choice(readers), {"path": path}


def tabulate(path):
    return fa.tabulate(path, y_true="y", y_pred="p", y_score="s", sensitive_features="g")


def permute(path):
    roles = {"y_true": "y", "y_pred": "p", "sensitive_features": "g"}
    return fa.permutation_test(data=path, **roles, metric="tpr", n_resamples=9, rng=1)


def project(path):
    return fa.projection_test("y", y_score="s", data=path, sensitive_features="g", rng=1)


def cells(path):
    found = fa.Cells.read_parquet(path)
    found.marginalize(found.sensitive_features[:1])
    try:
        fa.permutation_test(data=found, metric="selection_rate", n_resamples=9, rng=1)
        fa.permutation_test(data=found, metric="auc", n_resamples=9, rng=1)
    finally:
        str(found)
        found.to_frame()
    return found
