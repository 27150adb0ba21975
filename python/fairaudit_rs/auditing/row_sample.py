"""Sample rows for lenses that cannot use all rows, independently of the order of the rows."""

from __future__ import annotations

import numpy as np

from ..data.columns import EncodedColumn
from ..data.row_keys import hashes_of_units_by_row, row_hashes, row_keys
from .context import AuditContext, GroupMembership, Positions
from .seeds import seed_of


def sampled_rows(context: AuditContext, name: str, rows: Positions, most: int) -> Positions:
    """Return a sample of at most ``most`` rows, in their order.

    Rows are chosen by a hash of the seed and of their content: features, label, groups, weight, and
    the content of their cluster.
    """
    if len(rows) <= most:
        return rows
    feature_table = context.model_inputs.feature_table
    assert feature_table is not None
    seed = seed_of(context.compute_options.seed, "individual", name, "sample")
    roles = [role for role in ("y_true",) if role in context.roles]
    pos_label = context.compute_options.pos_label
    found = context.attributes[0].table.rows(columns=roles, pos_label=pos_label)
    columns = [feature_table.column(place) for place in range(feature_table.n_columns)]
    columns += [found.columns[role] for role in roles]
    columns += [
        _groups(context, place, feature_table.n_rows) for place in range(len(context.attributes))
    ]
    if found.weight is not None:
        columns.append(found.weight)
    hashes = row_hashes(columns)
    if found.cluster is not None:
        hashes = row_hashes([hashes, hashes_of_units_by_row(found.cluster, hashes)])
    keys = row_keys(hashes[rows], seed)
    return np.sort(rows[np.argsort(keys, kind="stable")[:most]])


def _groups(context: AuditContext, place: int, n_rows: int) -> EncodedColumn:
    """Return the group of every row for an attribute; missing if it is not known."""
    people = GroupMembership.from_attribute(context.attributes[place])
    codes = np.full(n_rows, len(people.groups), dtype=np.uint32)
    codes[people.rows] = people.code
    return EncodedColumn(codes, list(people.groups))
