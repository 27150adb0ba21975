"""Clusters with rows in several groups: report them as an error, split them or drop them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..report.notes import Note
from .groups import group_label, group_name
from .integer_codes import split_ranges
from .labels import GroupKey
from .rows import Rows

#: Maximum number of groups in a message.
_SHOWN = 5
#: The texts of notes.
SENTENCES = {
    "clusters_dropped": "{found} and are excluded, with their {n_rows} rows",
    "clusters_split": (
        "{found} and are split into a cluster for each group ({n_rows} rows): the pieces of one "
        "cluster count as independent"
    ),
}


@dataclass(frozen=True, kw_only=True)
class MixedClusterResolution:
    """The changes after which each cluster has rows in one group only."""

    #: The new cluster of each row; None if unchanged.
    cluster: NDArray[np.uint32] | None = None
    #: A mask of the rows to keep; None to keep all.
    keep: NDArray[np.bool_] | None = None
    #: Remarks for the reader of a result.
    notes: tuple[Note, ...] = ()


def resolve_mixed_clusters(
    rows: Rows, keys: Sequence[GroupKey], how: str, name_of: Callable[[int], str]
) -> MixedClusterResolution:
    """Find clusters with rows in several of the compared groups; refuse, split or drop them.

    ``name_of`` returns the name of the cluster of a row.
    """
    cluster = rows.cluster
    if cluster is None:
        return MixedClusterResolution()
    place = {key: i for i, key in enumerate(keys)}
    code_of = np.array([place.get(key, -1) for key in rows.cells.groups], dtype=np.int32)
    # The smallest and the largest group code in each cluster.
    n = int(cluster.max(initial=0)) + 1
    low, high = np.full(n, len(keys), dtype=np.int32), np.full(n, -1, dtype=np.int32)
    for part in split_ranges(len(cluster)):
        code = code_of[rows.group[part]]
        compared = code >= 0
        np.minimum.at(low, cluster[part][compared], code[compared])
        np.maximum.at(high, cluster[part][compared], code[compared])
    mixed = low < high
    n_mixed = int(mixed.sum())
    if not n_mixed:
        return MixedClusterResolution()
    code = code_of[rows.group]
    n_clusters = int((high >= 0).sum())
    inside = mixed[cluster] & (code >= 0)
    if how == "refuse":
        row = int(inside.argmax())
        mixed_groups = np.unique(code[inside & (cluster == cluster[row])]).tolist()
        groups = ", ".join(repr(group_name(group_label(keys[at]))) for at in mixed_groups[:_SHOWN])
        raise DataError(
            f"{n_mixed:,} of {n_clusters:,} clusters have rows in more than one group: cluster "
            f"{name_of(row)} has rows in {groups}. Pass "
            "mixed_clusters='split' (a cluster for each group) or 'drop' (without these rows). To "
            "compare the groups within each cluster, pass this column as strata= instead.",
            argument="clusters",
            mentions=("mixed_clusters", "strata"),
        )
    found = f"{n_mixed:,} of {n_clusters:,} clusters have rows in more than one group"
    n_rows = int(inside.sum())
    if how == "drop":
        dropped = SENTENCES["clusters_dropped"].format(found=found, n_rows=f"{n_rows:,}")
        return MixedClusterResolution(keep=~inside, notes=(Note("clusters-dropped", dropped),))
    pieces = cluster.astype(np.int64) * (len(keys) + 1) + np.where(inside, code + 1, 0)
    note = Note(
        "clusters-split", SENTENCES["clusters_split"].format(found=found, n_rows=f"{n_rows:,}")
    )
    split = np.unique(pieces, return_inverse=True)[1].ravel().astype(np.uint32)
    return MixedClusterResolution(cluster=split, notes=(note,))
