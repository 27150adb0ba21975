"""Keys of rows by their content: the same for any order, and fair to rows with equal values."""

import numpy as np
import pytest
from scipy import stats

from fairaudit_rs.data.columns import column_array
from fairaudit_rs.data.row_keys import content_order, hashes_of_units_by_row, row_hashes, row_keys


def table(n=1_000, seed=0):
    rng = np.random.default_rng(seed)
    columns = [rng.normal(size=n), rng.integers(0, 3, n), rng.choice(["a", "b", None], n)]
    return [column_array("x", column) for column in columns]


def taken(column, order):
    if isinstance(column, np.ndarray):
        return column[order]
    return type(column)(column.codes[order], column.labels)


def test_keys_belong_to_rows_whatever_their_order():
    columns, order = table(), np.random.default_rng(1).permutation(1_000)
    keys = row_keys(row_hashes(columns), seed=7)
    moved = row_keys(row_hashes([taken(column, order) for column in columns]), seed=7)
    assert (moved == keys[order]).all()
    assert len(set(keys.tolist())) == 1_000
    assert (row_keys(row_hashes(columns), seed=8) != keys).all()


def test_labels_count_and_not_their_places():
    first = column_array("x", np.array(["b", "a", None, "a"], dtype=object))
    other = column_array("x", np.array(["a", None, "a", "b"], dtype=object))
    assert (row_hashes([first])[[1, 2, 3, 0]] == row_hashes([other])).all()


def test_equal_numbers_have_one_hash():
    column = np.array([0.0, -0.0, np.nan, -np.nan, 1.0])
    zero, minus, nan, other, one = row_hashes([column])
    assert zero == minus != one
    assert nan == other


@pytest.mark.parametrize("place", range(3))
def test_every_column_counts(place):
    columns = table()
    changed = [column.copy() if isinstance(column, np.ndarray) else column for column in columns]
    changed[place] = taken(changed[place], np.roll(np.arange(1_000), 1))
    assert (row_hashes(columns) != row_hashes(changed)).mean() > 0.5


def test_copies_are_drawn_one_by_one():
    """Of 50 kinds of 40 rows a tenth is drawn: of each kind about four, as by chance."""
    kind = np.repeat(np.arange(50), 40)
    drawn = np.zeros((40, 50))
    for seed in range(40):
        keys = row_keys(row_hashes([kind]), seed)
        assert len(set(keys.tolist())) == 2_000
        drawn[seed] = np.bincount(kind[np.argsort(keys)[:200]], minlength=50)
    law = stats.hypergeom(2_000, 40, 200)
    assert abs(drawn.mean() - law.mean()) < 1e-12
    assert drawn.var() == pytest.approx(law.var(), rel=0.2)


def test_units_are_known_by_their_rows():
    """Whatever clusters are called: rows of a cluster of other rows differ."""
    hashes = row_hashes([np.array([1.0, 2.0, 1.0, 3.0])])
    first = hashes_of_units_by_row(np.array([0, 0, 1, 1]), hashes)
    renamed = hashes_of_units_by_row(np.array([1, 1, 0, 0]), hashes)
    assert (first == renamed).all()
    assert first[0] != first[2]


def test_an_order_of_content():
    columns, order = table(), np.random.default_rng(1).permutation(1_000)
    moved = [taken(column, order) for column in columns]
    first, other = (row[0][content_order(row)] for row in (columns, moved))
    assert (first == other).all()
