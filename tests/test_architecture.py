"""The floor plan: layers, private names, cycles, who may call the native module."""

import shutil

import pytest

import fairaudit_rs as fa

from . import architecture
from .compare_definitions import definitions, differences


def python_violations(root=architecture.PYTHON):
    trees = architecture.modules(root)
    found = architecture.imports(trees, root)
    return {
        "crossings": architecture.crossings(found),
        "private imports": architecture.private_imports(found),
        "private attributes": architecture.private_attributes(trees),
        "cycles": architecture.module_cycles(found, trees),
        "native in words": architecture.native_in_words(found),
        "p-values": architecture.pvalues_elsewhere(trees),
        "homonyms": architecture.homonyms(trees),
        "constructors called of": architecture.constructors_called_of(trees),
        "loops over one": architecture.loops_over_one(trees),
        "participles": architecture.participle_classes(trees),
    }


def public_classes():
    """Classes whose signature users may have written down: they stay as they are."""
    names = set(fa.__all__)
    for room in ("metrics", "models"):
        names |= set(getattr(fa, room).__all__)
    return {*names, "Finding"}


def test_dataclasses_of_many_fields_are_made_by_name():
    found = architecture.positional_dataclasses(architecture.modules())
    assert {value.rpartition(".")[2] for value in found} <= public_classes()


def test_no_line_hides_a_train_of_arguments():
    assert architecture.hidden_trains() == []


def test_packages_of_lenses_export_nothing():
    assert architecture.exports_of_lenses(architecture.modules()) == []


def test_files_are_about_one_topic():
    assert architecture.long_files() == []
    rust = architecture.ROOT / "rust"
    assert architecture.long_files(rust, architecture.MOST_CORE_LINES, "*.rs") == []


def core_violations(root=architecture.CORE):
    found = architecture.core_imports(root)
    return {
        "core crossings": architecture.core_crossings(found),
        "core cycles": architecture.core_cycles(found),
        "rayon": architecture.rayon_outside_of_parallel(root),
    }


@pytest.mark.parametrize("kind", list(python_violations()))
def test_the_package(kind):
    assert python_violations()[kind] == []


@pytest.mark.parametrize("kind", list(core_violations()))
def test_the_core(kind):
    assert core_violations()[kind] == []


@pytest.mark.parametrize(
    ("kind", "file", "line"),
    [
        ("crossings", "errors.py", "from .permutation import permutation_test"),
        ("crossings", "datasets.py", "def f():\n    from .results import Result"),
        ("private imports", "projection/lens.py", "from ..errors import _hidden"),
        (
            "private attributes",
            "projection/lens.py",
            "def f(thing):\n    return thing._hidden_part",
        ),
        ("cycles", "errors.py", "def f():\n    from . import datasets"),
        ("p-values", "projection/lens.py", "def f(x, n):\n    return (1 + x) / (1 + n)"),
        ("p-values", "projection/lens.py", "def f(x, alpha):\n    return x.pvalue <= alpha"),
        ("homonyms", "errors.py", "class Cells:\n    pass"),
        ("homonyms", "errors.py", "class _Policy:\n    pass"),
        (
            "constructors called of",
            "errors.py",
            "class Rows2:\n    @classmethod\n    def of(cls, rows):\n        return cls()",
        ),
        ("loops over one", "errors.py", "def f(rows):\n    return [one for one in rows]"),
        (
            "loops over one",
            "errors.py",
            "def f(rows):\n    for i, one in enumerate(rows):\n        i",
        ),
        ("participles", "errors.py", "class _Given:\n    pass"),
    ],
)
def test_a_planted_violation_is_seen(kind, file, line, tmp_path):
    root = tmp_path / "fairaudit_rs"
    shutil.copytree(architecture.PYTHON, root, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    before = python_violations(root)[kind]
    with (root / file).open("a", encoding="utf-8") as opened:
        opened.write(f"\n\n{line}\n")
    assert len(python_violations(root)[kind]) > len(before)


@pytest.mark.parametrize(
    ("kind", "file", "line"),
    [
        ("core crossings", "error.rs", "use crate::{parallel::Control, permutation};"),
        ("core crossings", "projection/mod.rs", "fn f() { crate::individual::moments(&[]); }"),
        ("core cycles", "error.rs", "use crate::permutation;"),
        ("rayon", "error.rs", "use rayon::prelude::*;"),
    ],
)
def test_a_planted_violation_of_the_core_is_seen(kind, file, line, tmp_path):
    root = tmp_path / "src"
    shutil.copytree(architecture.CORE, root)
    before = core_violations(root)[kind]
    path = root / file
    path.write_text(f"{line}\n{path.read_text(encoding='utf-8')}", encoding="utf-8")
    assert core_violations(root)[kind] != before


def test_a_changed_definition_is_seen():
    before = definitions(
        "import a\n\n\ndef f(x):\n    from .b import c\n    return c(x)\n\n\nD = 1\n"
    )
    moved = definitions(
        "D = 1  # as it was\n\n\ndef f(x):\n    from ..d.b import c\n    return c(x)\n"
    )
    assert differences(before, moved) == {"changed": [], "gone": [], "new": []}
    changed = definitions("def f(x):\n    return c(x + 1)\n\n\nE = 1\n")
    assert differences(before, changed) == {"changed": ["f"], "gone": ["D"], "new": ["E"]}
