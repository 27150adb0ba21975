"""Substitutes for arguments: wrong, extreme and odd, drawn from a `random.Random`."""

import datetime
import decimal
import fractions
import math
from unittest.mock import MagicMock

import numpy as np
import pandas as pd
import polars as pl

NUMBERS = (
    *(0, 1, -1, 2, 3, 7, 0.5, -0.5, 0.05, 0.95, 1.0, 1e-9, 1 - 2**-53),
    *(math.nan, math.inf, -math.inf, 1e308, -1e308, 1e153, 1e76, 1e-120, 1e-320, 5e-324, -0.0),
    *(2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**400, -(10**400)),
)
ODD_NUMBERS = (
    *(np.float16(0.1), np.float32(1e38), np.float64(np.nan), np.int8(3), np.uint64(2**64 - 1)),
    *(np.bool_(True), np.longdouble(0.3), np.array(0.5), np.array([0.5]), np.array([1, 2])),
    *(decimal.Decimal("0.1"), fractions.Fraction(1, 3), 1 + 1j, True, False),
)
TEXTS = (
    *("", " ", "x", "a", "b", "0", "1", "nan", "None", "tpr", "auto", "greater", "holm", "\0"),
    *("\ud800", "\x1b[31mred", "two\nlines", "\u202e", "a" * 3_000, "é", "日本", "tp / (tp + fn)"),
)
OBJECTS = (
    None,
    b"x",
    object(),
    object,
    [],
    (),
    {},
    set(),
    [None],
    [[]],
    [1, "a", None],
    {"a": 1},
    {"a": [1, 2], "b": [1]},
    {1: 2},
    {"\ud800": [1]},
    range(3),
    slice(3),
    Ellipsis,
    NotImplemented,
    datetime.date(2024, 2, 29),
    datetime.timedelta(1),
    np.datetime64("NaT"),
    pd.NA,
    pd.NaT,
    print,
    len,
    ValueError("x"),
    MagicMock(),
)


def scalar(r):
    """Anything that is no column."""
    kind = r.random()
    if kind < 0.45:
        return r.choice(NUMBERS)
    if kind < 0.6:
        return r.choice(ODD_NUMBERS)
    if kind < 0.8:
        return r.choice(TEXTS)
    if kind < 0.97:
        return r.choice(OBJECTS)
    return [scalar(r) for _ in range(r.randrange(5))]


def column(r, n):
    """Something that could be meant as a column of about `n` rows."""
    n = max(0, n + r.choice((0, 0, 0, 0, 0, 1, -1, -n, 5)))
    kind = r.random()
    if kind < 0.3:
        return _floats(r, n)
    if kind < 0.45:
        return np.array([r.choice(NUMBERS) for _ in range(n)], dtype=object)
    if kind < 0.65:
        return _typed(r, n)
    if kind < 0.8:
        return _foreign(r, n)
    if kind < 0.9:
        texts = [r.choice((*TEXTS, None)) for _ in range(n)]
        return r.choice((list, tuple, lambda found: np.array(found, dtype=object)))(texts)
    return _odd(r, n)


def _floats(r, n):
    few = [r.choice(NUMBERS[:-6]) for _ in range(r.choice((1, 2, 3, 8)))]
    return np.array([float(r.choice(few)) for _ in range(n)])


def _typed(r, n):
    dtype = r.choice(("?", "i1", "u1", "i8", "u8", "f2", "f4", "f8", ">f8", "S2", "U3", "M8[D]"))
    array = np.array([r.randrange(3) for _ in range(n)]).astype(dtype)
    shape = r.randrange(9)
    if shape == 0:
        return np.repeat(array, 2)[::2]
    if shape == 1:
        return array[::-1]
    if shape == 2:
        return array[:, None]
    if shape == 3 and n:
        return np.asfortranarray(np.stack([array, array], axis=1))
    if shape == 4 and dtype == "?":
        return np.full(n, 200, np.uint8).view(bool)
    if shape == 5 and dtype[-1] in "18" and dtype[0] in "iu":
        return np.full(n, np.iinfo(dtype).max, dtype)
    return array


def _foreign(r, n):
    """Columns of polars and pandas."""
    numbers = [r.randrange(3) for _ in range(n)]
    some = [r.choice((0, 1, None)) for _ in range(n)]
    texts = [r.choice(("a", "b", "\x1b", "")) for _ in range(n)]
    makers = (
        lambda: pl.Series(some),
        lambda: pl.Series(texts, dtype=pl.Categorical),
        lambda: pl.Series(numbers, dtype=pl.Int128),
        lambda: pl.Series(numbers, dtype=pl.Float32).cast(getattr(pl, "Float16", pl.Float32)),
        lambda: pl.Series([decimal.Decimal(number) for number in numbers]),
        lambda: pl.Series([[number] for number in numbers]),
        lambda: pl.Series([{"a": number} for number in numbers]),
        lambda: pl.Series([None] * n),
        lambda: pl.Series([object() for _ in numbers], dtype=pl.Object),
        lambda: pl.Series([datetime.date(2024, 1, 1 + number) for number in numbers]),
        lambda: pl.Series([math.nan, *[0.5] * n][:n]),
        lambda: pl.Series([b"\xff"] * n, dtype=pl.Binary),
        lambda: pd.Series(some, dtype="Int64"),
        lambda: pd.Series(texts, dtype="category"),
        lambda: pd.Series(some, dtype="boolean"),
        lambda: pd.Series(numbers, index=numbers),
        lambda: pd.Series(pd.date_range("2024", periods=n)),
        lambda: pd.cut(pd.Series(numbers, dtype=float), 2) if n else pd.Series(dtype=float),
        lambda: pd.DataFrame({"a": numbers, "b": texts}),
        lambda: pd.DataFrame([[1, 2]] * n, columns=["a", "a"]),
        lambda: pl.DataFrame({"a": numbers, "b": some}),
        lambda: pl.DataFrame({"a": numbers}).lazy(),
    )
    return r.choice(makers)()


def _odd(r, n):
    makers = (
        lambda: np.ma.masked_array(np.zeros(n), np.ones(n, bool)),
        lambda: np.zeros(n, dtype=[("a", float), ("b", int)]),
        lambda: np.zeros(n, dtype=complex),
        lambda: np.zeros((n, 0)),
        lambda: np.zeros((n, 2, 2)),
        lambda: np.zeros(n, dtype="V3"),
        lambda: iter([0.5] * n),
        lambda: range(n),
        lambda: set(range(n)),
        lambda: dict.fromkeys(range(n)),
        lambda: {"a": [0, 1] * (n // 2), "b": ["x"] * n},
        lambda: {"a": [0.5] * n, "\x1b": [0.5] * (n + 1)},
        lambda: [[0.5] * (i % 3) for i in range(n)],
        lambda: [1, *["a"] * n][:n],
        lambda: [np.zeros(2)] * n,
        lambda: "a" * n,
        lambda: bytes(n),
        lambda: memoryview(bytes(n)),
        lambda: MagicMock(),
    )
    return r.choice(makers)()
