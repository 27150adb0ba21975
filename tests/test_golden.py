"""Public calls give what they gave before; see `golden`."""

import pytest

from . import golden


@pytest.fixture(scope="module")
def stored():
    return golden.read()


def check(expected, found, tolerance=0.0):
    lines = golden.differences(expected, found, tolerance)
    if lines:
        more = [f"and {len(lines) - 30} more"] if len(lines) > 30 else []
        pytest.fail("\n".join(["differs from golden.json:", *lines[:30], *more]), pytrace=False)


@pytest.mark.parametrize("name", golden.CASES)
def test_results(name, stored):
    case = golden.CASES[name]
    for module in case.needs:
        pytest.importorskip(module)
    assert name in stored["cases"], "not in golden.json: python -m tests.golden --write"
    check(stored["cases"][name], case.result(), case.tolerance)


def test_signatures(stored):
    check(stored["signatures"], golden.signatures())


def test_nothing_is_stored_that_is_not_compared(stored):
    assert sorted(stored["cases"]) == sorted(golden.CASES)


def test_differences_are_found():
    old = {"a": [1.0, {"b": 2}], "c": "x"}
    assert golden.differences(old, {"a": [1.0, {"b": 2}], "c": "x"}) == []
    assert golden.differences(old, {"a": [1.0, {"b": 2.0}], "d": 1}) == [
        ".c is gone",
        ".d is new",
        ".a[1].b was 2 and is 2.0",
    ]
    assert golden.differences([1.0, 2.0], [1.0 + 1e-15]) == [
        " had 2 entries and has 1",
        "[0] was 1.0 and is 1.000000000000001",
    ]
    assert golden.differences([1.0], [1.0 + 1e-13], 1e-12) == []
    assert golden.differences([1.0], [1.0 + 1e-11], 1e-12)
