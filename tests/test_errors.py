"""Errors: each names the argument and a code, and travels whole between processes."""

import ast
import copy
import pickle
import re
from pathlib import Path

import numpy as np
import pytest

import fairaudit_rs as fa
from fairaudit_rs import _native, errors

PACKAGE = Path(fa.__file__).parent
CLASSES = [getattr(errors, name) for name in errors.__all__]
#: What a class is made with besides the message.
MORE = {
    errors.NotMeasurableError: {"reasons": {"a": "too few rows"}},
    errors.TooManyValuesError: {"details": (2, 1_000)},
}


def without_argument(source):
    """Return how many ArgumentErrors and ArgumentTypeErrors a source makes without argument=."""
    return sum(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr)
        in ("ArgumentError", "ArgumentTypeError")
        and not any(keyword.arg in ("argument", None) for keyword in node.keywords)
        for node in ast.walk(ast.parse(source))
    )


def test_every_argument_error_names_its_argument():
    found = {
        path.relative_to(PACKAGE).as_posix(): without_argument(path.read_text("utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }
    assert not {name: n for name, n in found.items() if n}


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ("raise ArgumentError('x is 1')", 1),
        ("raise errors.ArgumentTypeError('x is 1', mentions=('y',))", 1),
        ("raise ArgumentError('x is 1', argument='x')", 0),
        ("raise ArgumentError('x is 1', **about)", 0),
        ("raise DataError('no rows')", 0),
    ],
)
def test_planted_errors_are_seen(source, number):
    assert without_argument(source) == number


def test_codes_are_unique_and_kebab_case():
    codes = [vars(kind).get("code") for kind in CLASSES]
    assert None not in codes
    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


def test_all_codes_are_documented():
    given = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                given |= {
                    keyword.value.value
                    for keyword in node.keywords
                    if name.endswith("Error")
                    and keyword.arg == "code"
                    and isinstance(keyword.value, ast.Constant)
                }
    assert {"conflicting-arguments", "missing-argument"} <= given
    page = (Path(__file__).parents[1] / "docs" / "results.md").read_text("utf-8")
    documented = set(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE))
    assert documented == given | {kind.code for kind in CLASSES} - {"error"}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_errors_are_copied_whole(kind):
    if kind is errors.AuditFailedError:
        error = kind("the audit ended in 'inconclusive'", "inconclusive")
    else:
        about = {"argument": "alpha", "mentions": ["power"], "code": "of-its-own"}
        error = kind("alpha is 2", **about, **MORE.get(kind, {}))
        assert (error.argument, error.mentions, error.code) == ("alpha", ("power",), "of-its-own")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is kind
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_defaults(kind):
    error = kind("something is wrong")
    assert (error.argument, error.mentions, error.code) == (None, (), kind.code)
    assert str(error) == "something is wrong"


class TestArgument:
    """The argument that is to blame, as the call has it."""

    @pytest.mark.parametrize(
        ("call", "argument", "code"),
        [
            ({"y_pred": [1, 0, 2, 1]}, "y_pred", "invalid-data"),
            ({"y_pred": ["a", 1, 2, 1]}, "y_pred", "invalid-type"),
            ({"sensitive_features": None}, "sensitive_features", "missing-argument"),
            ({"sensitive_features": {"sex": ["a", 1, 2, 1]}}, "sensitive_features", "invalid-type"),
            ({"strata": {"region": ["a", None, "b", "b"]}}, "strata", "invalid-data"),
            ({"counts": [1, -1, 1, 1]}, "counts", "invalid-data"),
            ({"n_threads": 5_000}, "n_threads", "invalid-value"),
        ],
    )
    def test_of_a_call(self, call, argument, code):
        arguments = {"y_pred": [1, 0, 1, 0], "sensitive_features": list("aabb")} | call
        with pytest.raises(errors.FairAuditError) as caught:
            fa.tabulate(**arguments)
        assert (caught.value.argument, caught.value.code) == (argument, code)

    def test_of_columns_of_data(self):
        frame = {"sex": list("aabb"), "y": [1, 0, 1, "0"]}
        with pytest.raises(errors.ArgumentTypeError) as caught:
            fa.tabulate(frame, y_pred="y", sensitive_features="sex")
        assert caught.value.argument == "data"

    def test_of_the_core(self):
        with pytest.raises(errors.ArgumentError, match="n_threads is 0; accepted: ") as caught:
            _native.Call(0)
        assert (caught.value.argument, caught.value.code) == ("n_threads", "invalid-value")
        again = pickle.loads(pickle.dumps(caught.value))
        assert (again.argument, str(again)) == ("n_threads", str(caught.value))

    def test_of_a_limit_of_the_core(self):
        with pytest.raises(errors.TooManyValuesError) as caught:
            _native.tabulate([np.arange(5)], [2], _native.Call())
        assert (caught.value.column, caught.value.limit) == (0, 2)
        with pytest.raises(errors.TooManyValuesError) as caught:
            fa.tabulate(y_pred=[1, 0] * 600, sensitive_features=range(1_200))
        assert caught.value.argument == "sensitive_features"
