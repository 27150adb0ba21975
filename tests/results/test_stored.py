"""Values as JSON holds them, and back, exactly."""

import json
import math
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from fairaudit_rs.errors import DataError
from fairaudit_rs.results.stored import decode_value, encode_value

LABELS = [
    0, 1, -3, True, False, None, 0.5, -0.0, 1e300, math.inf, -math.inf, "", "a", "a & b", "0",
    "1.0", "true", "null", "NaN", "Infinity", " 0 ", '"a"', "[", "[" * 100_000, "{}", "$float",
    "é\n\x1b",
    (), ("a",), ("a", 1, None), (True, ("b", 0.5)), date(2026, 1, 31), datetime(2026, 1, 31, 12, 5),
    ("a", date(2026, 1, 31)), "1" * 5_000,
]  # fmt: skip


@dataclass(frozen=True)
class Inner:
    group: Any
    value: float
    limit: float | None


class Named(NamedTuple):
    first: float
    second: Any


def there_and_back(value, hint):
    return decode_value(json.loads(json.dumps(encode_value(value, hint), allow_nan=False)), hint)


@pytest.mark.parametrize("label", LABELS, ids=lambda label: repr(label)[:20])
def test_labels_as_values_and_as_keys(label):
    for hint in (Any, Hashable):
        again = there_and_back(label, hint)
        assert repr(again) == repr(label)
    for hint in (dict[Any, int], Any):
        (again,) = there_and_back({label: 3}, hint)
        assert repr(again) == repr(label)


def test_labels_that_look_alike_stay_apart():
    labels = [0, "0", False, "false", None, "null", ("a", "b"), "a & b", '["a", "b"]']
    labels = {label: i for i, label in enumerate(labels) if label is not False}
    assert there_and_back(labels, dict[Any, int]) == labels


def test_names_stay_readable():
    plain = encode_value({"a": 1, "b & c": 2, 0: 3, True: 4}, dict[Any, int])
    assert plain == {"a": 1, "b & c": 2, "0": 3, "true": 4}


@pytest.mark.parametrize("value", [0.1, math.nan, math.inf, -math.inf, 3, np.float64(2.5)])
def test_numbers(value):
    for hint in (float, float | None, Any, tuple[float, ...], dict[str, float]):
        entry = {"k": value} if hint == dict[str, float] else value
        entry = (value,) if hint == tuple[float, ...] else entry
        assert str(there_and_back(entry, hint)) == str(entry).replace("np.float64(2.5)", "2.5")
    assert there_and_back(None, float | None) is None


def test_nan_is_null_where_a_number_must_be():
    assert encode_value(math.nan, float) is None
    assert encode_value((math.nan, math.inf), tuple[float, float]) == [None, "Infinity"]


def test_dataclasses_within_dataclasses():
    value = {("a", 0): (Inner(None, math.nan, None), Inner((1,), math.inf, math.nan))}
    again = there_and_back(value, dict[Any, tuple[Inner, ...]])
    assert repr(again) == repr(value)


@pytest.mark.parametrize(
    ("array", "hint"),
    [
        (np.array([1, 2], dtype=np.int8), NDArray[np.int8]),
        (np.array([[0.1, math.nan], [math.inf, -1.0]]), NDArray[np.float64]),
        (np.zeros((0, 3)), NDArray[np.float64]),
        (np.zeros(0), NDArray[np.float64]),
        (np.array([True, False]), NDArray[np.bool_]),
    ],
)
def test_arrays(array, hint):
    again = there_and_back(array, hint)
    assert again.dtype == array.dtype
    assert again.shape == array.shape
    assert np.array_equal(again, array, equal_nan=array.dtype.kind == "f")


def test_named_tuples():
    value = (Named(math.nan, (0,)), Named(math.inf, None))
    assert repr(there_and_back(value, tuple[Named, ...])) == repr(value)


def test_lists_are_no_tuples():
    for value in ([1, (2, [3])], {"a": [1], "$list": (2,)}):
        assert there_and_back(value, Any) == value


def test_what_is_no_plain_value_goes_by_its_text():
    assert encode_value(1 + 2j) == "(1+2j)"


@pytest.mark.parametrize(
    ("content", "hint", "message"),
    [
        ("a", float, "holds 'a'; accepted: a number"),
        (None, str, "holds None; accepted: str"),
        ({}, tuple[int, ...], "holds {}; accepted: a list"),
        (3, NDArray[np.float64], "holds 3; accepted: a list of numbers"),
        ([], Inner, r"holds \[\]; accepted: an object"),
        ({"group": 1, "value": 2}, Inner, "limit is missing. Pass an unchanged dict of `to_dict`"),
    ],
)
def test_refusals(content, hint, message):
    with pytest.raises(DataError, match=message):
        decode_value(content, hint)
