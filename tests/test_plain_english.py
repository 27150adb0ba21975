"""The guard of plain English: what it finds, what it leaves alone, and a list that only shrinks."""

import pytest

from . import plain_english


def found_in(tmp_path, text, name="module.py"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return plain_english.findings(path)


def test_the_tree_is_as_listed():
    found = plain_english.all_findings()
    assert plain_english.violations(found, plain_english.read_exceptions()) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ('"""What a file holds."""\n', "begins with What"),
        ('def f():\n    """Whether it is so."""\n', "begins with Whether"),
        ('class A:\n    """\n    What it is.\n    """\n', "begins with What"),
        ('"""Return p, which is .05 here."""\n', "decimal without a leading zero"),
        ("x = 1  # at least -.5\n", "decimal without a leading zero"),
        (
            'def f(p):\n    return f"the share is {p} (.1 is tolerated)"\n',
            "decimal without a leading zero",
        ),
        ('x = "too few rows that count"\n', "rows that count"),
        ("# Groups that are left out.\n", "left out"),
        ('"""Return it.\n\nWhat binds is shown.\n"""\n', "what binds"),
    ],
)
def test_planted_wording_is_seen(text, what, tmp_path):
    assert found_in(tmp_path, text) == {what: 1}


@pytest.mark.parametrize(
    "text",
    [
        '"""Return what a file holds."""\n',
        '"""Return 0.05, 1.5 and x.5."""\n',
        '"""Return ``.05`` of the rows.\n\n>>> x = .5\n"""\n',
        'KEY = "left_out"\n',
        "x = values[.5:]\n",
        '"""Read pyproject.toml of version 1.2.3, and the endings .5th and .csv."""\n',
        '"""See `rows that count`."""\n',
    ],
)
def test_code_and_good_wording_are_left_alone(text, tmp_path):
    assert found_in(tmp_path, text) == {}


def test_markdown_is_read_without_its_code(tmp_path):
    text = "A gap of .05 is left out.\n\n```python\nx = .5  # left out\n```\n\nSee `.05`.\n"
    found = found_in(tmp_path, text, "page.md")
    assert found == {"decimal without a leading zero": 1, "left out": 1}


def test_the_list_only_shrinks():
    exceptions = {"a.py": {"left out": 2, "is told": 1}, "b.md": {"left out": 1}}
    assert plain_english.violations(exceptions, exceptions) == []
    more = {**exceptions, "a.py": {"left out": 3, "is told": 1}}
    assert len(plain_english.violations(more, exceptions)) == 1
    assert len(plain_english.violations({**exceptions, "c.py": {"left out": 1}}, exceptions)) == 1
    fewer = {"a.py": {"left out": 1}}
    assert len(plain_english.violations(fewer, exceptions)) == 3
    assert plain_english.lowered(fewer, exceptions) == fewer
    assert plain_english.lowered(more, exceptions) == exceptions
