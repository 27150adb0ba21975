"""Charts of the influence lens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..results.chart import SCHEMA, Chart

_ROW = 18
_MOST_ROWS = 60
_KINDS = {
    "marginal": "marginal",
    "ceteris_paribus": "all else held fixed",
    "partialled_out": "partialled out",
}


def proxy_chart(rows: Sequence[dict[str, Any]], metric: str, target: str) -> Chart:
    """Return a chart of proxy scores with simultaneous intervals, the largest first."""
    records = [
        {
            "feature": _label(row),
            "kind": _KINDS[row["kind"]],
            "score": row["estimate"],
            "low": row["simultaneous_low"],
            "high": row["simultaneous_high"],
            "shown": bool(row["simultaneous_low"] > 0 or row["simultaneous_high"] < 0),
        }
        for row in rows
    ]
    records.sort(key=lambda record: -abs(record["score"]))
    names = list(dict.fromkeys(row["feature"] for row in records))[:_MOST_ROWS]
    records = [row for row in records if row["feature"] in names]
    kinds = [kind for kind in _KINDS.values() if any(row["kind"] == kind for row in records)]
    y = {"field": "feature", "type": "nominal", "sort": names, "title": None}
    color = {"field": "kind", "type": "nominal", "title": "score", "sort": kinds}
    offset = {"field": "kind", "type": "nominal", "sort": kinds}
    return Chart(
        {
            "$schema": SCHEMA,
            "title": f"{metric}: what the influence of rows of {target} goes with",
            "width": 420,
            "height": {"step": _ROW + 8 * (len(kinds) - 1), "for": "position"},
            "data": {"values": records},
            "encoding": {"y": y, "yOffset": offset, "color": color},
            "layer": [
                {
                    "mark": {"type": "rule"},
                    "encoding": {
                        "x": {"field": "low", "type": "quantitative",
                              "title": "proxy score, with intervals that hold together"},
                        "x2": {"field": "high"},
                    },
                },
                {
                    "mark": {"type": "point", "size": 50, "filled": True, "strokeWidth": 2},
                    "encoding": {
                        "x": {"field": "score", "type": "quantitative"},
                        "stroke": {**color, "legend": None},
                        "fillOpacity": {
                            "condition": {"test": "datum.shown", "value": 1},
                            "value": 0,
                        },
                    },
                },
                _zero("x"),
            ],
        }
    )  # fmt: skip


def _label(row: dict[str, Any]) -> str:
    """Return the feature of a row, with the levels compared if it has more than two."""
    feature, compared = str(row["feature"]), str(row["compared"])
    plain = compared in ("1 against 0", "True against False", "one standard deviation more")
    return feature if plain else f"{feature}: {compared}"


def _zero(channel: str) -> dict[str, Any]:
    """Return a line at 0."""
    return {
        "data": {"values": [{"at": 0}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "gray"},
        "encoding": {
            channel: {"field": "at", "type": "quantitative"},
            "y": None,
            "yOffset": None,
            "color": None,
        },
    }


def descent_chart(path: Sequence[dict[str, Any]], tolerance: float, metric: str) -> Chart:
    """Return a chart of the gap along a descent with its bound, above the effective sample size.

    A row has step, gap, bound (of the absolute gap) and share (effective rows / rows).
    """
    gap = {"field": "gap", "type": "quantitative", "title": f"gap of {metric}, part that stops"}
    step = {"field": "step", "type": "quantitative", "title": "step"}
    bound = [
        {"step": row["step"], "bound": sign * row["bound"], "side": side}
        for row in path
        for sign, side in ((1, "upper"), (-1, "lower"))
    ]
    rules = [{"at": tolerance}, {"at": -tolerance}]
    upper = {
        "width": 480,
        "height": 220,
        "layer": [
            {
                "data": {"values": list(path)},
                "mark": {"type": "line", "point": True},
                "encoding": {"x": step, "y": gap},
            },
            {
                "data": {"values": bound},
                "mark": {"type": "line", "strokeDash": [2, 2], "color": "gray"},
                "encoding": {
                    "x": step,
                    "y": {"field": "bound", "type": "quantitative"},
                    "detail": {"field": "side", "type": "nominal"},
                },
            },
            {
                "data": {"values": rules},
                "mark": {"type": "rule", "strokeDash": [4, 4], "color": "firebrick"},
                "encoding": {"y": {"field": "at", "type": "quantitative"}},
            },
        ],
    }
    lower = {
        "width": 480,
        "height": 70,
        "data": {"values": list(path)},
        "mark": {"type": "area", "opacity": 0.5},
        "encoding": {
            "x": step,
            "y": {
                "field": "share",
                "type": "quantitative",
                "scale": {"domain": [0, 1]},
                "title": "effective rows",
            },
        },
    }
    title = "gap along the descent; dashed: its bound, red: the tolerance"
    return Chart({"$schema": SCHEMA, "title": title, "vconcat": [upper, lower]})  # fmt: skip


def marginals_chart(rows: Sequence[dict[str, Any]], target: str, others: str) -> Chart:
    """Return a chart of feature means before, after, and in the others (Table 2 of the paper).

    A row has feature, before, after, low, high (of after) and others.
    """
    names = [str(row["feature"]) for row in rows][:_MOST_ROWS]
    lines = [
        {"feature": str(row["feature"]), "group": group, "share": row[field]}
        for row in rows[:_MOST_ROWS]
        for group, field in (
            (f"{target}, as it is", "before"),
            (f"{target}, counterfactual", "after"),
            (others, "others"),
        )
    ]
    intervals = [
        {"feature": str(row["feature"]), "low": row["low"], "high": row["high"]}
        for row in rows[:_MOST_ROWS]
    ]
    y = {"field": "feature", "type": "nominal", "sort": names, "title": None}
    return Chart(
        {
            "$schema": SCHEMA,
            "title": "features before and after the descent",
            "width": 420,
            "height": {"step": _ROW},
            "layer": [
                {
                    "data": {"values": intervals},
                    "mark": {"type": "rule", "color": "gray"},
                    "encoding": {
                        "y": y,
                        "x": {"field": "low", "type": "quantitative", "title": "mean"},
                        "x2": {"field": "high"},
                    },
                },
                {
                    "data": {"values": lines},
                    "mark": {"type": "point", "filled": True, "size": 45},
                    "encoding": {
                        "y": y,
                        "x": {"field": "share", "type": "quantitative"},
                        "color": {"field": "group", "type": "nominal", "title": None},
                        "shape": {"field": "group", "type": "nominal", "title": None},
                    },
                },
            ],
        }
    )


def moves_chart(moves: Sequence[dict[str, Any]], n_rows: float) -> Chart:
    """Return a chart of the share of rows whose features a repair changes, the largest first.

    A row has feature, change (the new value) and rows.
    """
    records = [
        {"feature": str(row["feature"]), "change": row["change"], "share": row["rows"] / n_rows}
        for row in moves
    ]
    total: dict[str, float] = {}
    for record in records:
        total[record["feature"]] = total.get(record["feature"], 0.0) + record["share"]
    names = sorted(total, key=lambda name: -total[name])[:_MOST_ROWS]
    return Chart(
        {
            "$schema": SCHEMA,
            "title": "what the repair changes",
            "width": 420,
            "height": {"step": _ROW},
            "data": {"values": [row for row in records if row["feature"] in names]},
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": "feature", "type": "nominal", "sort": names, "title": None},
                "x": {"field": "share", "type": "quantitative", "title": "share of the rows"},
                "color": {"field": "change", "type": "nominal", "title": "becomes"},
            },
        }
    )
