"""Writes the parts of docs/ that come from code; with --check it only compares."""

import sys
from pathlib import Path

import fairaudit_rs as fa

DOCS = Path(__file__).resolve().parents[1] / "docs"


def metrics_page():
    rows = fa.metrics.table()
    names = list(rows[0])
    cells = [
        [f"`{row['metric']}`", row["aliases"], f"`{row['formula']}`", *list(row.values())[3:]]
        for row in rows
    ]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in cells]
    lines = [
        "# Metrics",
        "",
        "Written by `make docs` from the registry; `fairaudit metrics` prints the same table. Own",
        'metrics: `fa.metrics.count_metric("name", "fn / (fn + tn)")`, `ratio_metric`,',
        "`joint_metric`, `correlation_metric`, `callable_metric`.",
        "",
        "| " + " | ".join(names) + " |",
        "|" + "---|" * len(names),
        *("| " + " | ".join(row) + " |" for row in cells),
        "",
        "`calibration_error` puts scores into ten bins from 0 to 1 and compares, within each,",
        "the number of positive labels with the sum of the scores. Scores are kept at the",
        "resolution of `score_bins` (100): every row counts with the mean score of its fine bin",
        "over all rows, so that the metric is a function of counts; few distinct scores are exact.",
        "",
    ]
    return "\n".join(lines)


def main():
    stale = []
    for name, text in {"metrics.md": metrics_page()}.items():
        path = DOCS / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(f"docs/{', docs/'.join(stale)} is not what the code says: run `make docs`")


if __name__ == "__main__":
    main()
