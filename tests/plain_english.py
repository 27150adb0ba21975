"""Finds wording that readers had to decode: `python -m tests.plain_english [--write]`.

Docstrings that begin with "What" or "Whether", decimals without a leading zero, and phrases for
which the glossary has better ones. Public names, policy keys, verdict values and code are exempt.
`plain_english.json` lists how many are known in each file. The list only shrinks: a count that
grew fails, and so does an entry that is larger than what is found. `--write` lowers the entries.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXCEPTIONS = Path(__file__).with_suffix(".json")
PHRASES = (
    "rows that count",
    "rows that would tell",
    "what binds",
    "what informs",
    "left out",
    "is told",
)
PHRASE = re.compile(rf"\b({'|'.join(PHRASES)})\b", re.IGNORECASE)
OPENING = re.compile(r"\s*(What|Whether)\b")
#: Digits after a point without a digit, letter or bracket before it: .05, and not x[.5:] or 1..5.
DECIMAL = re.compile(r"(?<![\w.\])}\"'/*\\-])-?\.\d+\b(?![.\w])")
#: Code inside of prose, which is exempt.
CODE = re.compile(r"``.*?``|`[^`\n]*`|^\s*(?:>>>|\.\.\.) .*$", re.MULTILINE | re.DOTALL)
FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
#: History and generated texts, and what talks about the phrases themselves.
EXEMPT = {"CHANGELOG.md", "tests/plain_english.py", "tests/test_plain_english.py"}


def texts(path):
    """Yield (kind, text) of a file: docstring, comment, message or prose."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield "prose", CODE.sub("", FENCED.sub("", content))
        return
    tree = ast.parse(content)
    docstrings = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        text = ast.get_docstring(node, clean=False)
        if text is not None:
            docstrings.add(id(node.body[0].value))
            yield "docstring", CODE.sub("", text)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Constant) and isinstance(node.value, str)):
            continue
        # A single word, a key or a pattern is not prose.
        if id(node) not in docstrings and " " in node.value.strip():
            yield "message", CODE.sub("", node.value)
    for token in tokenize.generate_tokens(io.StringIO(content).readline):
        if token.type == tokenize.COMMENT:
            yield "comment", CODE.sub("", token.string)


def findings(path):
    """Count what is found in a file, by name."""
    found = Counter()
    for kind, text in texts(path):
        if kind == "docstring" and (opening := OPENING.match(text)):
            found[f"begins with {opening[1]}"] += 1
        found["decimal without a leading zero"] += len(DECIMAL.findall(text))
        for phrase in PHRASE.findall(text):
            found[phrase.lower()] += 1
    return {name: number for name, number in sorted(found.items()) if number}


def files(root=ROOT):
    """Return the Python and Markdown files that are read."""
    found = [*root.glob("*.md")]
    for folder in ("docs", "python", "tests", "benches"):
        found += [*(root / folder).rglob("*.md"), *(root / folder).rglob("*.py")]
    names = sorted(str(path.relative_to(root)) for path in found)
    return [name for name in names if name not in EXEMPT and "target" not in name.split("/")]


def all_findings(root=ROOT):
    """Return what is found by file; files without anything are not listed."""
    found = {name: findings(root / name) for name in files(root)}
    return {name: entry for name, entry in found.items() if entry}


def violations(found, exceptions):
    """List counts that grew, and exceptions that are larger than what is found."""
    lines = []
    for name in sorted({*found, *exceptions}):
        here, known = found.get(name, {}), exceptions.get(name, {})
        for what in sorted({*here, *known}):
            number, most = here.get(what, 0), known.get(what, 0)
            if number > most:
                lines.append(
                    f"{name}: {what}: {number}, and {most} are known. Reword the new ones."
                )
            elif number < most:
                lines.append(
                    f"{name}: {what}: {number}, but the list has {most}. "
                    "Run `python -m tests.plain_english --write`."
                )
    return lines


def lowered(found, exceptions):
    """Return the exceptions with every count as low as what is found; none is added or raised."""
    least = {
        name: {
            what: min(number, found.get(name, {}).get(what, 0)) for what, number in entry.items()
        }
        for name, entry in exceptions.items()
    }
    kept = {
        name: {what: number for what, number in entry.items() if number}
        for name, entry in least.items()
    }
    return {name: entry for name, entry in sorted(kept.items()) if entry}


def read_exceptions():
    return json.loads(EXCEPTIONS.read_text(encoding="utf-8"))


def write_exceptions(exceptions):
    EXCEPTIONS.write_text(json.dumps(exceptions, indent=1) + "\n", encoding="utf-8")


def totals(found):
    """Return the counts of all files together."""
    together = Counter()
    for entry in found.values():
        together.update(entry)
    return dict(together)


def main(words):
    found = all_findings()
    if "--write" in words:
        write_exceptions(lowered(found, read_exceptions()))
    elif "--begin" in words:
        # Only for a new kind of finding, and after files were moved.
        write_exceptions(found)
    lines = violations(found, read_exceptions())
    print("\n".join(lines) or f"as listed: {totals(found)}")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
