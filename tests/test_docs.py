"""The examples of docstrings say what they print."""

import doctest
import importlib
import pkgutil

import pytest

import fairaudit_rs as fa

MODULES = ["fairaudit_rs"] + [
    f"fairaudit_rs.{module.name}"
    for module in pkgutil.iter_modules(fa.__path__)
    if module.name != "_native"
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings(name):
    failed, _ = doctest.testmod(importlib.import_module(name))
    assert not failed


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    modules = map(importlib.import_module, MODULES)
    assert sum(len(test.examples) for m in modules for test in finder.find(m)) > 60
