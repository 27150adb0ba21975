"""Cut numbers into bands, such as "up to 25", "above 25 up to 45" and "above 45"."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .columns import Column, EncodedColumn
from .ranked_labels import rank_labels

if TYPE_CHECKING:
    import polars as pl


def band_names(cuts: Sequence[float]) -> list[str]:
    """Return the names of the bands between cuts, in their order."""
    ends = [f"{cut:g}" for cut in cuts]
    between = [f"above {low} up to {high}" for low, high in pairwise(ends)]
    return rank_labels([f"up to {ends[0]}", *between, f"above {ends[-1]}"])


def cut_column(column: Column, cuts: Sequence[float]) -> Column:
    """Return the bands of a column, or the column itself if no cut has numbers on both sides."""
    if isinstance(column, EncodedColumn):
        labels = list(column.labels)
        if not labels or not all(isinstance(label, int | float) for label in labels):
            return column
        bands = cut_column(np.array([float(label) for label in labels] or [np.nan]), cuts)
        if not isinstance(bands, EncodedColumn):
            return column
        band_of_label = np.append(bands.codes, len(bands.labels)).astype(np.uint32)
        return EncodedColumn(band_of_label[column.codes], bands.labels)
    if column.dtype.kind not in "iuf" or not _crosses(column, cuts):
        return column
    codes = np.searchsorted(np.asarray(cuts, dtype=np.float64), column, side="left")
    names = band_names(cuts)
    codes = np.where(np.isnan(column), len(names), codes)
    return EncodedColumn(codes.astype(np.uint32), names)


def _crosses(values: NDArray[Any], cuts: Sequence[float]) -> bool:
    """Return whether some cut has numbers on both sides; codes of 0 and 1 are not ages, say."""
    known = values[~np.isnan(values)]
    return bool(len(known)) and any(known.min() <= cut < known.max() for cut in cuts)


def cut_lazily(
    frame: pl.LazyFrame, column: str, cuts: Sequence[float], name: str
) -> pl.LazyFrame | None:
    """Return a frame with the bands of a column as a new column; None if no cut applies."""
    import polars as pl

    if not frame.collect_schema()[column].is_numeric():
        return None
    number = pl.col(column).cast(pl.Float64).fill_nan(None)
    ends = frame.select(number.min().alias("low"), number.max().alias("high")).collect()
    low, high = ends.row(0)
    if low is None or not any(low <= cut < high for cut in cuts):
        return None
    names = [str(text) for text in band_names(cuts)]
    band: pl.Expr = pl.lit(names[-1])
    for cut, name_below in reversed(list(zip(cuts, names[:-1], strict=True))):
        band = pl.when(number <= cut).then(pl.lit(name_below)).otherwise(band)
    known = pl.when(number.is_not_null()).then(band).otherwise(None)
    return frame.with_columns(known.cast(pl.Enum(names)).alias(name))
