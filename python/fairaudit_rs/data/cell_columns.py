"""Columns of the frames that store cells: labels, row counts and binned scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import arguments
from ..errors import ArgumentError, DataError
from .arrays import MAX_ROWS
from .labels import Label
from .ranked_labels import RankedLabel, sort_key

if TYPE_CHECKING:
    import polars as pl

DEFAULT_SCORE_BINS = 100


def are_cells(names: Sequence[str]) -> bool:
    """Return whether columns are those of the frame that `Cells.to_frame` makes."""
    return "count" in names and any(name.startswith("group:") for name in names)


def as_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a frame of cells for a text file: the score edges become one text with blanks."""
    import polars as pl

    if "score_edges" not in frame.columns or not len(frame):
        return frame
    edges = " ".join(map(repr, frame["score_edges"][0].to_list()))
    return frame.with_columns(pl.lit(edges).alias("score_edges"))


def score_edges_of(score_bins: int | ArrayLike | None) -> NDArray[np.float64]:
    """Return the edges of the score bins: given edges, or a number of equal bins from 0 to 1."""
    if score_bins is None:
        score_bins = DEFAULT_SCORE_BINS
    if isinstance(score_bins, int | np.integer) and not isinstance(score_bins, bool):
        n = arguments.count("score_bins", score_bins, 1, 10_000)
        return np.arange(n + 1) / n
    edges = np.asarray(score_bins)
    if (
        edges.dtype.kind not in "iuf"
        or edges.ndim != 1
        or len(edges) < 2
        or not bool(np.all(np.isfinite(edges)) and np.all(np.diff(edges) > 0))
    ):
        raise ArgumentError(
            f"score_bins is {score_bins!r}; accepted: a number of bins, or at least two "
            "increasing edges",
            argument="score_bins",
        )
    return edges.astype(np.float64)


def label_series(name: str, labels: list[Label]) -> pl.Series:
    """Return labels as a column in which different labels stay different."""
    import polars as pl

    if any(isinstance(label, RankedLabel) for label in labels):
        known = sorted({label for label in labels if label is not None}, key=sort_key)
        return pl.Series(name, labels, dtype=pl.Enum(list(map(str, known))))
    kinds = {type(label) for label in labels if label is not None}
    dtype = pl.Float64 if kinds == {int, float} else None
    if dtype and any(isinstance(label, int) and abs(label) > MAX_ROWS for label in labels):
        raise DataError(
            f"labels of {name!r} do not fit into one column: some are fractions, and others above "
            "2^53. Use text as labels."
        )
    try:
        series = pl.Series(name, labels, dtype=dtype, strict=dtype is None)
    except (TypeError, OverflowError, UnicodeError, pl.exceptions.PolarsError) as error:
        raise DataError(
            f"labels of {name!r} do not fit into one column: {error}. Use text as labels."
        ) from None
    if series.null_count() != labels.count(None) or series.n_unique() != len(set(labels)):
        raise DataError(
            f"labels of {name!r} do not fit into one column of {series.dtype}. Use text as labels."
        )
    return series


def row_counts(table: pl.DataFrame, name: str) -> NDArray[np.int64]:
    """Return the checked column of row counts."""
    counts = table[name]
    whole = counts.dtype.is_integer() and not counts.null_count()
    if not whole or (len(counts) and (counts.min() < 0 or counts.max() > MAX_ROWS)):  # type: ignore[operator]
        raise DataError(
            f"column {name!r} holds the number of rows; accepted: whole numbers from 0 to 2^53, "
            "none missing",
            argument="count",
        )
    return counts.to_numpy().astype(np.int64)


def own_scores(
    table: pl.DataFrame,
) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the edges, bins and sums of scores from a frame made by `Cells.to_frame`."""
    import polars as pl

    if table["score_edges"].n_unique() != 1:
        raise DataError(
            "column 'score_edges' differs between rows. Pass cells that were made with the same "
            "score_bins.",
            argument="frame",
        )
    first, place = table["score_edges"][0], table["score_bin"]
    if isinstance(first, str):
        # Text files store the edges as text.
        first = pl.Series(first.split()).cast(pl.Float64, strict=False)
    if not isinstance(first, pl.Series) or not place.dtype.is_integer() or place.null_count():
        raise DataError(
            "columns 'score_edges' and 'score_bin' do not hold edges and bins. Pass a frame from "
            "`to_frame`.",
            argument="frame",
        )
    edges = score_edges_of(first.to_list())
    bins = table["score_bin"].to_numpy().astype(np.int64)
    if bins.min() < 0 or bins.max() > len(edges) - 2:
        raise DataError(
            f"column 'score_bin' goes from {bins.min()} to {bins.max()}; accepted: 0 to "
            f"{len(edges) - 2}",
            argument="frame",
        )
    return edges, bins, table["score_sum"].to_numpy().astype(np.int64)
