"""The machinery of `make mutants`, on a text and on tests that are made up."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHES = Path(__file__).resolve().parents[1] / "benches" / "python"
TEXT = """\
/// Adds; `{}` is nothing.
#[inline]
fn add(a: u8, b: u8) -> u8 {
    a + b
}

fn other() {}
"""


@pytest.fixture
def bench(monkeypatch):
    """Imports a module of the benches, and forgets it and what it imports."""
    known = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHES))
    yield importlib.import_module
    for name in set(sys.modules) - known:
        if str(BENCHES) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def mutant(columns, replacement):
    start, end = columns
    place = {"start": {"line": 4, "column": start}, "end": {"line": 4, "column": end}}
    function = {"span": {"start": {"line": 1, "column": 1}, "end": {"line": 5, "column": 2}}}
    text = f"lib.rs:4:{start}: replace with {replacement} in add"
    return {
        "name": text,
        "file": "lib.rs",
        "span": place,
        "replacement": replacement,
        "function": function,
    }


def test_one_text_has_the_function_and_its_mutants(bench):
    text, lines = bench("mutants_tree").with_switches(
        TEXT, {3: mutant((7, 8), "*"), 5: mutant((5, 10), "0")}
    )
    assert text == TEXT.replace(
        "{\n    a + b\n}",
        "{ if crate::mutant(3) {\n    a * b\n} else  if crate::mutant(5) {\n    0\n} "
        "else {\n    a + b\n}}",
    )
    assert lines == {3: range(3, 6), 5: range(5, 8)}


def test_a_mutant_outside_of_its_function_is_refused(bench):
    wrong = mutant((7, 8), "*")
    wrong["span"] = {"start": {"line": 7, "column": 4}, "end": {"line": 7, "column": 5}}
    with pytest.raises(SystemExit, match=r"the body of lib\.rs:4:7: .* was not found"):
        bench("mutants_tree").with_switches(TEXT, {1: wrong})


def test_the_first_failure_is_told(bench, tmp_path, monkeypatch):
    mutants = bench("mutants")
    monkeypatch.setattr(mutants.tree, "TREE", tmp_path)
    monkeypatch.setattr(mutants, "BUSY", 0.5)

    def told(code):
        return mutants.first_failure([sys.executable, "-c", code], 7)

    assert told("import os; assert os.environ['MUTANT'] == '7'; print('test a ... ok')") is None
    assert told("print('test a::b ... ok'); print('test a::c ... FAILED')") == "a::c"
    assert told("print('tests/test_a.py::test_b[c d] FAILED      [ 12%]')") == (
        "tests/test_a.py::test_b[c d]"
    )
    assert told("raise SystemExit(1)") == mutants.ENDED
    assert told("while True: pass") == mutants.HANGS


def test_what_fails_anyway_catches_nothing(bench, monkeypatch, capsys):
    """A test that fails without the mutant is left out, and the others are asked again."""
    mutants = bench("mutants")
    fails = {None: {"tests/a.py::broken"}, 1: {"tests/a.py::broken", "tests/a.py::good"}}

    def first_failure(command, number=None):
        asked = command[-1:] if number is None else ["tests/a.py::broken", "tests/a.py::good"]
        return next((name for name in asked if name in fails[number] - set(mutants.BROKEN)), None)

    monkeypatch.setattr(mutants, "first_failure", first_failure)
    command = (*mutants.PYTEST, "tests/a.py")
    found = mutants.noticed([command], 1, mutants.LIVES)
    assert found == {"outcome": mutants.CAUGHT, "by": "pytest: tests/a.py::good"}
    assert "tests/a.py::broken" in capsys.readouterr().out
    fails[1] = {"tests/a.py::broken"}
    assert mutants.noticed([command], 1, mutants.LIVES)["outcome"] == mutants.LIVES


def test_the_figure_counts_what_can_be_noticed(bench, monkeypatch):
    mutants = bench("mutants")
    monkeypatch.setattr(mutants, "EQUIVALENT", {"c": "the same"})
    tried = [
        {"name": "a", "outcome": mutants.CAUGHT, "by": "cargo test: x"},
        {"name": "b", "outcome": mutants.CAUGHT, "by": "pytest: tests/test_golden.py::y"},
        {"name": "c", "outcome": mutants.LIVES, "by": ""},
        {"name": "d", "outcome": mutants.LIVES, "by": ""},
        {"name": "e", "outcome": mutants.UNVIABLE, "by": "an error"},
    ]
    figure, _, *living = mutants.report(tried, 60, 1_000, 1)
    assert figure.startswith("5 changes of 1,000 were tried (60 drawn with seed 1); 1 do not")
    assert "Of the other 3, 2 are caught (67 %): 1 by the Rust tests, then 0 by" in figure
    assert "left out" not in figure
    assert living == ["- `c`: the same", "- `d`: lives"]
