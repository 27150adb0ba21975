"""The examples of docstrings say what they print."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import fairaudit_rs as fa

MODULES = ["fairaudit_rs"] + [
    module.name
    for module in pkgutil.walk_packages(fa.__path__, "fairaudit_rs.")
    if not module.name.endswith("._native")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed


@pytest.mark.parametrize(
    "page",
    [
        "data.md",
        "projection.md",
        "individual.md",
        "influence.md",
        "extremes.md",
        "results.md",
        "policy.md",
        "audit.md",
    ],
)
def test_pages_run(page, tmp_path, monkeypatch):
    """What they print is checked where the page shows it (`test_projection`)."""
    text = (Path(__file__).resolve().parents[1] / "docs" / page).read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec(text.partition("```python\n")[2].partition("```")[0], {})


def test_the_readme_prints_what_it_shows(capsys):
    text = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n((?:    [^\n]*\n)*)", text, flags=re.DOTALL)
    names = {}
    shown = 0
    for code, output in blocks:
        exec(code, names)
        if output:
            assert capsys.readouterr().out.split() == output.split()
            shown += 1
        capsys.readouterr()
    assert shown == 3


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = map(importlib.import_module, MODULES)
    assert sum(len(test.examples) for m in modules for test in finder.find(m)) > 60
