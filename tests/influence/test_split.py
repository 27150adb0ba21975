"""Rows in disjoint parts."""

import numpy as np
import pytest

from fairaudit_rs import arguments, errors
from fairaudit_rs.influence.split import deal_at_random

COUNT = np.array([5, 1, 0, 1_000, 3])


@pytest.mark.parametrize("parts", [(0.5, 0.6), (1.0, 0.0), "ab", 0.5, (0.2, 0.3, 0.5), (-1, 2)])
def test_bad_values(parts):
    with pytest.raises(errors.FairAuditError, match=r"accepted: 2 shares .*fit, report"):
        arguments.parts(parts, ("fit", "report"))


def test_every_row_is_in_one_part():
    found = deal_at_random(COUNT, (0.3, 0.3, 0.4), 7)
    assert (found.sum(axis=1) == COUNT).all()
    assert found.sum(axis=0).tolist() == [303, 302, 404]
    assert (found == deal_at_random(COUNT, (0.3, 0.3, 0.4), 7)).all()
    assert (found != deal_at_random(COUNT, (0.3, 0.3, 0.4), 7, series=1)).any()


def test_parts_are_like_hypergeometric_draws():
    first = [deal_at_random(COUNT, (0.5, 0.5), seed)[0, 0] for seed in range(2_000)]
    # 5 of 1,009 rows, 504 of them in the first part.
    assert abs(np.mean(first) - 5 * 504 / 1_009) < 0.12
    assert abs(np.var(first) - 5 * 0.25 * (1_009 - 5) / 1_008) < 0.15
