"""Values as numbers: as NumPy's unique has them, in any order and of any kind."""

import numpy as np
import pytest

from fairaudit_rs.data import integer_codes
from fairaudit_rs.data.integer_codes import codes_by_unit, differing_rows, number_values

RNG = np.random.default_rng(0)
KINDS = {
    "few": RNG.integers(0, 5, 1_000),
    "negative": RNG.integers(-300, 300, 1_000).astype(np.int16),
    "far apart": RNG.integers(-(2**62), 2**62, 1_000),
    "largest": np.array([2**64 - 1, 0, 2**64 - 1], dtype=np.uint64),
    "truths": RNG.random(1_000) < 0.5,
    "numbered": np.repeat(np.arange(500, dtype=np.uint32), 2)[::-1].copy(),
    "floats": RNG.integers(0, 9, 1_000) / 8,
    "missing": np.where(RNG.random(1_000) < 0.1, np.nan, RNG.integers(0, 9, 1_000)),
    "text": np.array(["b", "a", "", "c", "a"]),
    "one": np.array([7]),
    "none": np.zeros(0, dtype=np.int64),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("part", [3, 1 << 18])
def test_numbers_are_those_of_unique(monkeypatch, kind, part):
    monkeypatch.setattr(integer_codes, "_BLOCK_ROWS", part)
    values = KINDS[kind]
    distinct, place = np.unique(values, return_inverse=True)
    codes, n = number_values(values)
    assert codes.dtype == np.uint32
    assert n == len(distinct)
    np.testing.assert_array_equal(codes, place.ravel())


def test_units_have_the_code_of_their_rows(monkeypatch):
    monkeypatch.setattr(integer_codes, "_BLOCK_ROWS", 2)
    unit = np.array([0, 2, 1, 2, 0], dtype=np.uint32)
    codes = np.array([4, 5, 6, 5, 4], dtype=np.uint16)
    of_unit = codes_by_unit(codes, unit, 3)
    assert of_unit.tolist() == [4, 6, 5]
    assert not differing_rows(codes, unit, of_unit).any()
    assert differing_rows(codes, unit, np.array([4, 6, 9])).tolist() == [
        False,
        True,
        False,
        True,
        False,
    ]
