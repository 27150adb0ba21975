"""The headings and kinds of the columns of results, by the name of the column in data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from .document import Column, Kind, Table

#: Tables with more rows show the first few of them, the clearest first if rows have p-values.
MOST_ROWS, SHORTENED_TO = 15, 5
#: Tables that are shown whole unless they are longer than this.
_WHOLE, _MOST_OF_WHOLE = frozenset({"return_levels", "path", "features"}), 40

_COLUMNS: dict[str, tuple[str, Kind]] = {
    "metric": ("metric", "text"),
    "attribute": ("attribute", "text"),
    "group": ("group", "text"),
    "first": ("group", "text"),
    "second": ("compared with", "text"),
    "n_rows": ("rows", "count"),
    "n_used": ("eligible rows", "count"),
    "n_changed": ("changed rows", "count"),
    "n_audits": ("audits", "count"),
    "n_events": ("events", "count"),
    "n_exceedances": ("rows in the tail", "count"),
    "horizon": ("1 row in", "count"),
    "first_value": ("value", "value"),
    "second_value": ("other value", "value"),
    "of_first": ("first model", "value"),
    "of_second": ("second model", "value"),
    "gap_of_first": ("gap, first model", "value"),
    "gap_of_second": ("gap, second model", "value"),
    "adjusted_pvalue": ("adjusted p", "pvalue"),
    "change_pvalue": ("p of the change", "pvalue"),
    "pvalue": ("p", "pvalue"),
    "interval": ("interval", "interval"),
    "simultaneous": ("interval of all", "interval"),
    "change_interval": ("interval of the change", "interval"),
    "inconclusive": ("why no p", "text"),
    "left_out": ("why excluded", "text"),
    "reason": ("reason", "text"),
}
#: Pairs of columns that are shown as one interval.
_LIMITS = {
    ("low", "high"): "interval",
    ("simultaneous_low", "simultaneous_high"): "simultaneous",
    ("change_low", "change_high"): "change_interval",
}
#: Columns of data that readers of a document do not need.
_OMITTED = frozenset(
    {
        "comparison",
        "engine",
        "fitted",
        "fitted_high",
        "fitted_low",
        "fitted_pvalue",
        "first_n_rows",
        "half",
        "half_high",
        "half_low",
        "interval",
        "n_undefined",
        "pvalue_is_bound",
        "rank",
        "distance",
        "highest_rank",
        "lower_free",
        "lowest_rank",
        "mass",
        "notion",
        "rows_over_horizon",
        "second_n_rows",
        "standard_error",
        "statistic",
    }
)
#: What one row of a table is.
_NOUNS = {"pairs": "pairs", "groups": "groups", "moved": "kinds of rows"}


def known_table(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    level: float | None = None,
    metric: str | None = None,
) -> Table:
    """Return the rows of a table of a result as typed columns.

    Columns without any value are omitted, and the metric if all rows have the one of the result;
    limits become one column, with the confidence level of the result. Of many rows the first few
    are shown, those with the smallest p-values.
    """
    rows = [_with_intervals(row) for row in rows]
    is_long = len(rows) > (_MOST_OF_WHOLE if name in _WHOLE else MOST_ROWS)
    if is_long:
        rows = sorted(rows, key=_clarity)
    names = dict.fromkeys(key for row in rows for key in row)
    keys = [key for key in names if _is_shown(key, rows, metric)]
    columns = tuple(_column(key, rows, level) for key in keys)
    return Table(
        name=name,
        columns=columns,
        rows=tuple(tuple(row.get(key) for key in keys) for row in rows),
        noun=_NOUNS.get(name, "rows"),
        n_shown=SHORTENED_TO if is_long else None,
    )


def _with_intervals(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with pairs of limits as intervals, and without columns that nobody needs."""
    shown = {}
    ends = {low: (high, name) for (low, high), name in _LIMITS.items()}
    seconds = {high for _, high in _LIMITS}
    for key, value in row.items():
        if key in ends and ends[key][0] in row:
            high, name = ends[key]
            shown[name] = (value, row[high])
        elif key not in seconds and key not in _OMITTED:
            shown[key] = value
    if row.get("n_used") == row.get("n_rows"):
        shown.pop("n_used", None)
    return shown


def _is_shown(key: str, rows: Sequence[Mapping[str, Any]], metric: str | None) -> bool:
    """Return whether a column says anything: it has values, and not one that all rows share."""
    values = [row.get(key) for row in rows]
    if all(map(_is_missing, values)):
        return False
    if key == "metric":
        return set(values) != {metric}
    is_setting = key in ("attribute", "kind", "scale", "margin", "horizon", "null")
    return not (is_setting and len(rows) > 1 and len(set(values)) == 1)


def _is_missing(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_missing, value))
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))


def _column(key: str, rows: Sequence[Mapping[str, Any]], level: float | None) -> Column:
    heading, kind = _COLUMNS.get(key, (key.replace("_", " "), None))
    if kind is None:
        values = [row.get(key) for row in rows if not _is_missing(row.get(key))]
        kind = _kind_of(values)
    if key == "interval" and level is not None and not math.isnan(level):
        heading = f"{100 * level:g} % interval"
    return Column(key=key, heading=heading, kind=kind)


def _kind_of(values: Sequence[Any]) -> Kind:
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        return "count"
    return "value" if all(isinstance(value, int | float) for value in values) else "text"


def _clarity(row: Mapping[str, Any]) -> tuple[bool, float, float]:
    """Return the sort key of a row: the smallest p-values first, rows without one last."""
    adjusted, alone = (row.get(key) for key in ("adjusted_pvalue", "pvalue"))
    value = alone if adjusted is None else adjusted
    if value is None or math.isnan(value):
        return True, 0.0, 0.0
    return False, value, value if alone is None else alone
