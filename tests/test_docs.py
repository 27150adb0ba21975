"""The examples of docstrings and pages run and print what they show; links lead somewhere."""

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


ROOT = Path(__file__).resolve().parents[1]
#: Written by hand; the others hold no examples.
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if "```python" in page.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run(page, tmp_path, monkeypatch, capsys):
    """Run all examples of a page: the output below one is printed, and no file is left behind."""
    monkeypatch.chdir(tmp_path)
    names = {}
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```\n\n?((?:    [^\n]*\n)*)", text, flags=re.DOTALL)
    for code, output in blocks:
        exec(code, names)
        printed = capsys.readouterr().out.split()
        assert printed[: len(output.split())] == output.split()
    assert not list(tmp_path.iterdir())


def test_examples_show_what_they_print():
    shown = [page.stem for page in PAGES if "```\n\n    " in page.read_text(encoding="utf-8")]
    assert {"README", "projection"} <= set(shown)


def test_every_page_is_in_the_index():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.name != "index.md"]
    missing = [page.name for page in pages if f"({page.relative_to(ROOT / 'docs')})" not in index]
    assert not missing


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))],
    ids=lambda page: page.stem,
)
def test_links_between_pages(page):
    """Links lead to a file that exists, and to a heading that it has."""
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
        name, _, heading = target.partition("#")
        file = page.parent / name if name else page
        assert file.exists(), target
        if heading:
            assert heading in headings(file), target


def headings(page):
    """Return the anchors of a page, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def test_files_that_contributing_names():
    folders = ("docs", "python", "rust", "tests")
    files = [file.as_posix() for folder in folders for file in (ROOT / folder).rglob("*.*")]
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = [name for name in re.findall(r"`([\w/.]+\.(?:py|rs|pyi|md))`", text) if "/" in name]
    missing = [name for name in named if not any(file.endswith(f"/{name}") for file in files)]
    assert not missing
    assert len(named) > 40


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = map(importlib.import_module, MODULES)
    assert sum(len(test.examples) for m in modules for test in finder.find(m)) > 60
