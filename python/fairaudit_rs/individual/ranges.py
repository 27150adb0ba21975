"""Finds the feature that the attack moves out of its observed range in the most rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .attack import Attack, StoredAttack

#: Departures by less than this share of the range are ignored.
_IGNORED_SHARE = 0.01
_BLOCK_ROWS = 1 << 13


@dataclass(frozen=True, kw_only=True)
class RangeDeparture:
    """A feature, and how many rows leave its observed range."""

    feature: str
    low: float
    high: float
    n_outside: int
    n_rows: int

    @property
    def share(self) -> float:
        """The share of rows outside."""
        return self.n_outside / self.n_rows

    def __str__(self) -> str:
        return (
            f"the attack moves {self.n_outside:,} of {self.n_rows:,} people "
            f"({100 * self.share:.1f} %) out of the observed range of {self.feature} "
            f"({self.low:.4g} to {self.high:.4g})"
        )


def find_range_departure(
    attack: Attack | StoredAttack, feature_names: Sequence[str]
) -> RangeDeparture | None:
    """Return the feature whose range most rows leave; None if no row leaves any.

    Features with the same value in all rows are ignored.
    """
    n = len(attack.rows)
    worst = None
    for column, name in enumerate(feature_names):
        values = attack.rows[:, column]
        low, high = float(values.min()), float(values.max())
        if low == high:
            continue
        slack = _IGNORED_SHARE * (high - low)
        n_outside = 0
        for first in range(0, n, _BLOCK_ROWS):
            moved = attack.feature(slice(first, min(first + _BLOCK_ROWS, n)), column)
            # A value that became NaN is outside too.
            n_outside += int((~((moved >= low - slack) & (moved <= high + slack))).sum())
        if n_outside and (worst is None or n_outside > worst.n_outside):
            worst = RangeDeparture(feature=name, low=low, high=high, n_outside=n_outside, n_rows=n)
    return worst
