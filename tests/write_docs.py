"""Writes the parts of docs/ that come from code; with --check it only compares."""

import json
import sys
from pathlib import Path
from typing import get_args

import fairaudit_rs as fa
from fairaudit_rs import literals
from fairaudit_rs.auditing.presets import PRESETS
from fairaudit_rs.auditing.schema import policy_schema

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


#: Between these lines of a page stands what comes from code.
MARKS = ("<!-- presets, written by `make docs` -->", "<!-- end of presets -->")


def policy_page():
    """The page of policies with its parts that come from the presets."""
    before, _, rest = (DOCS / "policy.md").read_text(encoding="utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    return f"{before}{MARKS[0]}\n{presets()}{MARKS[1]}{after}"


def presets():
    rules = get_args(literals.RuleName)
    lines = ["", "| policy | binds | informs | what it is | what it is not |", "|" + "---|" * 5]
    for name, one in PRESETS.items():
        if name not in rules:
            criteria = [fa.Criterion(**entry) for entry in one["criteria"]]
            binds, informs = (
                "; ".join(str(c) for c in criteria if c.binding is binding)
                for binding in (True, False)
            )
            lines.append(
                f"| `{name}` | {binds} | {informs or '-'} | {one['description']} | "
                f"{one['is_not'].removesuffix(NOT_LAW).strip()} |"
            )
    lines += ["", NOT_LAW, ""]
    for name in rules:
        one = PRESETS[name]
        lines += [f"### `{name}`", "", one["description"], ""]
        facts = {"in force since": "in_force", "status": "status", "source": "source"}
        facts |= {"looked up": "as_of", "what it is not": "is_not"}
        lines += [f"- *{word}*: {one[key]}" for word, key in facts.items() if one.get(key)]
        lines.append("")
    return "\n".join(lines)


NOT_LAW = "Not a rule of law: a tolerance is a choice of those who answer for the model."


def pages():
    return {
        "metrics.md": metrics_page(),
        "policy.md": policy_page(),
        "policy.schema.json": json.dumps(policy_schema(), indent=2) + "\n",
    }


def main():
    stale = []
    for name, text in pages().items():
        path = DOCS / name
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
    if stale:
        sys.exit(f"docs/{', docs/'.join(stale)} is not what the code says: run `make docs`")


if __name__ == "__main__":
    main()
