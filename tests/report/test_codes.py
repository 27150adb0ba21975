"""Codes of notes: each is in the list, is used, and belongs to one kind of remark."""

import ast
import re
from pathlib import Path

import fairaudit_rs
from fairaudit_rs.auditing.note_sentences import NOTES
from fairaudit_rs.report.codes import NOTE_CODES
from fairaudit_rs.results.result import UNNAMED

CODE = r"[a-z0-9]+(-[a-z0-9]+)*"
PACKAGE = Path(fairaudit_rs.__file__).parent


def texts_in(node):
    """All texts of an expression, such as those of "a" if x else "b"."""
    return [
        part.value
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def codes_of_calls():
    """The codes that the package passes to `Note` or `fill_note`, where they are written out."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            name = getattr(getattr(node, "func", None), "id", "")
            if name in ("Note", "fill_note") and node.args:
                found |= {text.replace("_", "-") for text in texts_in(node.args[0])}
    return found


def test_every_code_is_listed():
    whole = {code for code in codes_of_calls() if re.fullmatch(CODE, code)}
    assert whole <= NOTE_CODES.keys(), whole - NOTE_CODES.keys()
    assert len(whole) > 100


def test_codes_are_words_with_hyphens():
    for code, meaning in NOTE_CODES.items():
        assert re.fullmatch(CODE, code)
        assert meaning.endswith(".")


def test_every_listed_code_is_used():
    """A code that no source file contains, as text or as name of a template, is left over."""
    source = "\n".join(
        path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
        if path.name != "codes.py"
    )
    templates = {name.replace("_", "-") for name in NOTES}
    unused = [
        code
        for code in NOTE_CODES
        if f'"{code}"' not in source and code not in templates and code != UNNAMED
    ]
    assert [code for code in unused if code.replace("-", "_") not in source] == []
