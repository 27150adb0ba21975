"""The chart of a projection: margins near the boundary, and the rows that move."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..results.chart import SCHEMA, Chart
from .moves import Moves

#: The most moves in the chart.
_MOST_MARKS = 2_000


def margins_and_moves(
    names: list[str], histogram: NDArray[np.float64], limit: float, moves: Moves, title: str
) -> Chart:
    """Return a chart of the density of signed margins by group, above the rows that move."""
    n_bins = histogram.shape[1]
    edges = np.linspace(-limit, limit, n_bins + 1)
    share = histogram / np.maximum(histogram.sum(axis=1, keepdims=True), 1e-300)
    density = [
        {"group": name, "from": float(edges[i]), "to": float(edges[i + 1]), "share": float(value)}
        for name, values in zip(names, share, strict=True)
        for i, value in enumerate(values)
    ]
    # If there are too many moves, draw an evenly spaced subset.
    at = np.unique(np.linspace(0, max(len(moves) - 1, 0), _MOST_MARKS).astype(int))
    at = at[: len(moves)]
    sign = np.where(moves.from_decision == 1, 1.0, -1.0)
    moved = [
        {
            "row": int(moves.row[i]),
            "group": moves.names[moves.group[i]],
            "margin": float(sign[i] * moves.distance[i]),
            "fraction": float(moves.fraction[i]),
            "boundary": 0,
        }
        for i in at
    ]
    scale = {"domain": [-limit, limit], "nice": False}
    color = {"field": "group", "type": "nominal", "title": "group", "sort": names}
    boundary = {
        "data": {"values": [{"at": 0}]},
        "mark": {"type": "rule", "strokeDash": [4, 4]},
        "encoding": {"x": {"field": "at", "type": "quantitative"}},
    }
    upper = {
        "width": 480,
        "height": 180,
        "layer": [
            {
                "data": {"values": density},
                "mark": {"type": "area", "interpolate": "step-after", "opacity": 0.4, "line": True},
                "encoding": {
                    "x": {"field": "from", "type": "quantitative", "scale": scale,
                          "title": "signed distance to the boundary (positive: decided 1)"},
                    "y": {"field": "share", "type": "quantitative", "stack": None,
                          "title": "share of the group's rows shown"},
                    "color": color,
                },
            },
            boundary,
        ],
    }  # fmt: skip
    lower = {
        "width": 480,
        "height": {"step": 28},
        "layer": [
            {
                "data": {"values": moved},
                "mark": {"type": "rule", "opacity": 0.35},
                "encoding": {
                    "x": {"field": "margin", "type": "quantitative", "scale": scale,
                          "title": "rows that move to the boundary"},
                    "x2": {"field": "boundary"},
                    "y": {"field": "group", "type": "nominal", "sort": names, "title": None},
                    "color": color,
                },
            },
            {
                "data": {"values": moved},
                "mark": {"type": "tick", "thickness": 1},
                "encoding": {
                    "x": {"field": "margin", "type": "quantitative", "scale": scale},
                    "y": {"field": "group", "type": "nominal", "sort": names, "title": None},
                    "color": color,
                    "tooltip": [{"field": "row"}, {"field": "margin"}, {"field": "fraction"}],
                },
            },
        ],
    }  # fmt: skip
    return Chart({"$schema": SCHEMA, "title": title, "vconcat": [upper, lower]})
