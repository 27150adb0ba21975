"""Reads the labels of a search, and splits the rows into parts to fit, select and report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.columns import EncodedColumn, column_array, list_some
from ..data.labels import Label, label_matches
from ..errors import ArgumentError, ArgumentTypeError, DataError
from .distinct_rows import row_hashes
from .feature_tables import FeatureTable, RowNumbers, wrap_features
from .question import FlippedRows
from .space import stream_of

#: The stream of random numbers for the split, beyond those of the trials.
_DEALING = 1 << 40


@dataclass(frozen=True, eq=False)
class SearchLabels:
    """The labels as given, and which rows have the favourable one."""

    given: Any
    #: 0 and 1, in the order of the labels.
    code: NDArray[np.int64]
    favourable: NDArray[np.bool_]

    @classmethod
    def from_values(cls, y: Any, feature_table: FeatureTable, pos_label: Label) -> SearchLabels:
        """Check labels of two classes, one for each row."""
        if y is None:
            raise ArgumentTypeError(
                "y is None. Pass a label for every row of X.",
                argument="y",
                code="missing-argument",
            )
        column = column_array("y", y)
        if len(column) != feature_table.n_rows:
            raise DataError(
                f"y has {len(column):,} rows; X has {feature_table.n_rows:,}", argument="y"
            )
        if isinstance(column, EncodedColumn):
            values = [*map(_item, column.labels), None]
            used = np.unique(column.codes)
            if len(values) - 1 in used:
                raise DataError(
                    "y is missing in some rows. Remove these rows, or fill in their labels.",
                    argument="y",
                )
            labels, code = [values[at] for at in used.tolist()], np.searchsorted(used, column.codes)
        else:
            distinct, code = np.unique(column, return_inverse=True)
            code = code.ravel()
            labels = distinct.tolist()
        if len(labels) != 2 or any(label != label for label in labels):
            raise DataError(
                f"y holds {list_some(labels)}; accepted: labels of two classes", argument="y"
            )
        wanted = _item(pos_label)
        matching = [at for at, label in enumerate(labels) if label_matches(label, wanted)]
        if pos_label is not None and not matching:
            raise ArgumentError(
                f"pos_label is {pos_label!r}, which does not occur in y; it holds "
                f"{list_some(labels)}",
                argument="pos_label",
            )
        # The second class of scikit-learn is the larger label.
        at = matching[0] if matching else labels.index(max(labels))
        return cls(y, (code == labels.index(max(labels))).astype(np.int64), code == at)


def _item(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def deal_rows(
    prepared: FlippedRows, labels: SearchLabels, shares: Sequence[float], seed: int
) -> tuple[RowNumbers, ...]:
    """Deal the rows of each group into parts at random, independent of the order of the rows."""
    place = prepared.chosen.place
    labelled = wrap_features({"label": labels.code, "group": place})
    hashes = row_hashes([prepared.feature_table, labelled], np.arange(len(place), dtype=np.int64))
    order = np.lexsort((*hashes[::-1], place))
    stream = stream_of(seed, _DEALING)
    parts: list[list[RowNumbers]] = [[] for _ in shares]
    for group in np.unique(place):
        rows = order[place[order] == group]
        ends = np.round(np.cumsum(shares) * len(rows)).astype(np.int64)
        pieces = np.split(stream.permutation(rows), ends[:-1])
        for part, piece in zip(parts, pieces, strict=True):
            part.append(piece)
    return tuple(stream.permutation(np.concatenate(part)).astype(np.int64) for part in parts)
