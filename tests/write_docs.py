"""Write the parts of docs/ that come from code; with --check only compare."""

import ast
import json
import re
import sys
from pathlib import Path
from typing import get_args

import fairaudit_rs as fa
from fairaudit_rs import literals
from fairaudit_rs.auditing.presets import PRESETS
from fairaudit_rs.auditing.schema import policy_schema
from fairaudit_rs.report.codes import NOTE_CODES

from .hostile.ledger import Ledger

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"


def metrics_page():
    """Return the page of metrics with its table from the registry."""
    return with_part("metrics.md", "table of metrics", metrics())


def metrics():
    rows = fa.metrics.table()
    names = list(rows[0])
    cells = [
        [f"`{row['metric']}`", row["aliases"], f"`{row['formula']}`", *list(row.values())[3:]]
        for row in rows
    ]
    cells = [[cell.replace("|", "\\|") for cell in row] for row in cells]
    lines = [
        "",
        "| " + " | ".join(names) + " |",
        "|" + "---|" * len(names),
        *("| " + " | ".join(row) + " |" for row in cells),
        "",
        "",
    ]
    return "\n".join(lines)


def with_part(page, name, content):
    """Return a page with its generated part between the two lines that mark it."""
    first, last = f"<!-- {name}, written by `make docs` -->", f"<!-- end of {name} -->"
    before, _, rest = (DOCS / page).read_text(encoding="utf-8").partition(first)
    after = rest.partition(last)[2]
    return f"{before}{first}\n{content}{last}{after}"


def policy_page():
    """Return the page of policies with its presets."""
    return with_part("policy.md", "presets", presets())


def tests_page():
    """Return the page of the tests with the number of hostile calls."""
    return with_part("atlas/tests.md", "hostile calls", hostile_calls())


def hostile_calls():
    ledger = Ledger()
    lines = [
        "",
        "| seed | calls done | kinds that fail | kinds found and mended |",
        "|" + "---|" * 4,
    ]
    for seed in sorted(ledger.seeds):
        entry = ledger.of(seed)
        found = len(entry["failing"]), len(entry["mended"])
        lines.append(f"| {seed} | {ledger.n_done(seed):,} | {found[0]} | {found[1]} |")
    return "\n".join([*lines, "", ""])


def presets():
    rules = get_args(literals.RuleName)
    lines = [
        "",
        "| policy | binding | informational | meaning | limits |",
        "|" + "---|" * 5,
    ]
    for name, preset in PRESETS.items():
        if name not in rules:
            criteria = [fa.Criterion(**entry) for entry in preset["criteria"]]
            binds, informs = (
                "; ".join(str(c) for c in criteria if c.binding is binding)
                for binding in (True, False)
            )
            lines.append(
                f"| `{name}` | {binds} | {informs or '-'} | {preset['description']} | "
                f"{preset['is_not'].removesuffix(NOT_LAW).strip()} |"
            )
    lines += ["", NOT_LAW, ""]
    for name in rules:
        one = PRESETS[name]
        lines += [f"### `{name}`", "", one["description"], ""]
        facts = {"in force since": "in_force", "status": "status", "source": "source"}
        facts |= {"looked up": "as_of", "limits": "is_not"}
        lines += [f"- *{word}*: {one[key]}" for word, key in facts.items() if one.get(key)]
        lines.append("")
    return "\n".join(lines)


def modules_page():
    """Return the list of all modules, each with the first sentence of its docstring."""
    lines = [MODULES]
    for title, folder, ending in SOURCES:
        lines += [f"## {title}: `{folder}`", ""]
        docs = {file: doc_of(file) for file in sorted((ROOT / folder).rglob(f"*{ending}"))}
        docs = {file: doc for file, doc in docs.items() if doc}
        for parent in sorted({file.parent for file in docs}):
            if parent != ROOT / folder:
                lines += [f"### `{parent.relative_to(ROOT / folder).as_posix()}`", ""]
            inside = {file.stem: doc for file, doc in docs.items() if file.parent == parent}
            own = [inside.pop(name) for name in ("__init__", "mod", "lib") if name in inside]
            lines += [part for doc in own for part in (doc, "")]
            lines += [*(f"- `{name}`: {doc}" for name, doc in inside.items()), ""]
    return "\n".join(lines)


def notes_page():
    """Return the list of all codes of notes, with their meanings."""
    rows = [f"| `{code}` | {meaning} |" for code, meaning in sorted(NOTE_CODES.items())]
    return "\n".join([CODES, "| code | meaning |", "|---|---|", *rows, ""])


def doc_of(file):
    """Return the first sentence of the docstring of a module, without links."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".py":
        doc = ast.get_docstring(ast.parse(text)) or ""
    else:
        doc = "\n".join(
            line[3:].strip() for line in text.splitlines() if line.startswith("//!")
        ).strip()
    first = re.split(r"(?<=[.?]) ", " ".join(doc.partition("\n\n")[0].split()))[0]
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", first)


#: Titles, folders and endings of the modules that are listed.
SOURCES = [
    ("Python package", "python/fairaudit_rs", ".py"),
    ("Rust core", "rust/fairaudit-core/src", ".rs"),
    ("Rust binding", "rust/fairaudit-py/src", ".rs"),
]

MODULES = """\
# Modules

*For anyone who looks for a piece of code.* `make docs` writes this page from the docstrings;
[CONTRIBUTING](../CONTRIBUTING.md) explains how the parts work together.
"""

CODES = """\
# Codes of notes

*For anyone who processes results by a program.* Each note of a result has one of these codes
(`note.code`). Codes stay; the texts of notes may be reworded. `make docs` writes this page.
"""

NOT_LAW = "Not a rule of law: a tolerance is a choice of those who answer for the model."


def pages():
    return {
        "metrics.md": metrics_page(),
        "policy.md": policy_page(),
        "atlas/tests.md": tests_page(),
        "modules.md": modules_page(),
        "note_codes.md": notes_page(),
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
