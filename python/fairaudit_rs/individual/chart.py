"""The charts of the individual lens: the path of the audit value, and the loss ratios."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..results.chart import SCHEMA, Chart
from .attack import FlowPath

_BINS = 40
#: Ratios beyond this quantile are counted in the last bin.
_LARGEST = 0.995


def path_chart(path: FlowPath, ratio: str, delta: float) -> Chart:
    """Return a chart of S_n and T_n along the flow, as in Figure 2 of the paper."""
    points = [
        {"time": float(time), "value": float(value), "line": line}
        for line, values in (
            ("audit value", path.estimate),
            ("lower bound", path.lower_bound),
        )
        for time, value in zip(path.time, values, strict=True)
        if math.isfinite(value)
    ]
    lines = {
        "data": {"values": points},
        "mark": {"type": "line"},
        "encoding": {
            "x": {"field": "time", "type": "quantitative", "title": "time of flow"},
            "y": {
                "field": "value",
                "type": "quantitative",
                "title": f"{ratio} ratio",
                "scale": {"zero": False},
            },
            "strokeDash": {"field": "line", "type": "nominal", "title": None},
        },
    }
    return _chart(f"{ratio} ratio along the flow", lines, _rule("y", delta))


def ratio_chart(
    ratios: NDArray[np.float64],
    ratio: str,
    delta: float,
    weight: NDArray[np.float64] | None = None,
) -> Chart:
    """Return a histogram of the ratios of the rows, with the tolerated value.

    With weights, the height of a bar is the total weight of its rows.
    """
    finite = np.isfinite(ratios)
    ratios, weight = ratios[finite], None if weight is None else weight[finite]
    bins = []
    if len(ratios):
        largest = max(float(np.quantile(ratios, _LARGEST)), delta)
        edges = np.linspace(min(float(ratios.min()), 1.0), largest, _BINS + 1)
        if edges[0] == edges[-1]:
            edges = edges + np.linspace(-0.005, 0.005, _BINS + 1)
        counts = np.histogram(np.minimum(ratios, edges[-1]), edges, weights=weight)[0]
        bins = [
            {"from": float(edges[i]), "to": float(edges[i + 1]), "rows": counts[i].item()}
            for i in range(_BINS)
        ]
    bars = {
        "data": {"values": bins},
        "mark": {"type": "bar"},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": "loss after / loss before (the last bar holds all beyond)",
            },
            "x2": {"field": "to"},
            "y": {
                "field": "rows",
                "type": "quantitative",
                **({} if weight is None else {"title": "weight of the rows"}),
            },
        },
    }
    # The tolerated value of error rates does not apply to the loss ratios of single rows.
    rules = [_rule("x", delta)] if ratio == "loss" else []
    return _chart("loss ratios of the rows", bars, *rules)


def _rule(channel: str, value: float) -> dict[str, Any]:
    """Return the tolerated value as a line."""
    return {
        "data": {"values": [{"delta": value}]},
        "mark": {"type": "rule", "strokeDash": [4, 4], "color": "firebrick"},
        "encoding": {channel: {"field": "delta", "type": "quantitative"}},
    }


def _chart(title: str, *layers: dict[str, Any]) -> Chart:
    return Chart(
        {"$schema": SCHEMA, "title": title, "width": 480, "height": 240, "layer": list(layers)}
    )
