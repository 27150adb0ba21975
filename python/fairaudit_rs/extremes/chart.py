"""Builds the charts of the extremes lens as Vega-Lite specifications."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.groups import group_name
from ..results.chart import SCHEMA, Chart
from .diagnostics import QuantileRow, StabilityRow

Floats = NDArray[np.float64]

_SIZE = {"width": 420, "height": 280}
#: Quantile charts with more points are thinned, but for the largest excesses.
_MOST_POINTS = 400
_BINS = 40


def level_chart(curves: Mapping[Any, Sequence[Any]]) -> Chart:
    """Chart return levels over horizons with their limits, by group."""
    rows = [
        {
            "group": group_name(group),
            "horizon": point.horizon,
            "level": _finite_or_none(point.value),
            "low": _finite_or_none(point.low),
            "high": _finite_or_none(point.high),
            "free": _finite_or_none(point.lower_free),
            "standing": point.standing,
        }
        for group, curve in curves.items()
        for point in curve
    ]
    x = {
        "field": "horizon",
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": "horizon: one row in ... exceeds the level",
    }
    color = _color(curves)
    band = {"x": x, "y": _y("low", "level"), "y2": {"field": "high"}, "color": color}
    return _chart(
        rows,
        [
            {"mark": {"type": "area", "opacity": 0.15, "clip": True}, "encoding": band},
            {
                "mark": {"type": "line", "clip": True},
                "encoding": {"x": x, "y": _y("level", "level"), "color": color},
            },
            {
                "mark": {"type": "line", "strokeDash": [2, 3], "clip": True},
                "encoding": {"x": x, "y": _y("free", "level"), "color": color},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 30, "clip": True},
                "encoding": {
                    "x": x,
                    "y": _y("level", "level"),
                    "color": color,
                    "shape": {"field": "standing", "type": "nominal"},
                },
            },
        ],
        "Return levels, their limits (band) and the lower limit that holds for every law (dashes)",
    )


def quantile_chart(tails: Mapping[Any, Sequence[QuantileRow]]) -> Chart:
    """Chart excesses against quantiles of the fit, with a band for each excess."""
    rows = []
    for group, points in tails.items():
        kept = _thinned_positions(len(points))
        rows += [
            {
                "group": group_name(group),
                "observed": points[i].observed,
                "fitted": _finite_or_none(points[i].fitted),
                "low": _finite_or_none(points[i].low),
                "high": _finite_or_none(points[i].high),
            }
            for i in kept
        ]
    x = {"field": "fitted", "type": "quantitative", "title": "quantile of the fit"}
    color = _color(tails)
    y = _y("observed", "excess over the threshold")
    return _chart(
        rows,
        [
            {
                "mark": {"type": "area", "opacity": 0.15},
                "encoding": {
                    "x": x,
                    "y": _y("low", "excess over the threshold"),
                    "y2": {"field": "high"},
                    "color": color,
                },
            },
            {
                "mark": {"type": "line", "strokeWidth": 1},
                "encoding": {
                    "x": x,
                    "y": _y("fitted", "excess over the threshold"),
                    "color": color,
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 18},
                "encoding": {"x": x, "y": y, "color": color},
            },
        ],
        "Excesses against the fit; the band is for each excess alone",
    )


def stability_chart(tails: Mapping[Any, tuple[Sequence[StabilityRow], int]]) -> Chart:
    """Chart the shape over the number of exceedances, with a line at the number that is used."""
    rows = [
        {
            "group": group_name(group),
            "k": point.n_exceedances,
            "shape": _finite_or_none(point.shape),
            "used": used,
        }
        for group, (points, used) in tails.items()
        for point in points
    ]
    x = {
        "field": "k",
        "type": "quantitative",
        "scale": {"type": "log"},
        "title": "number of exceedances",
    }
    color = _color(tails)
    return _chart(
        rows,
        [
            {
                "mark": {"type": "line", "point": True},
                "encoding": {"x": x, "y": _y("shape", "shape"), "color": color},
            },
            {
                "mark": {"type": "rule", "strokeDash": [4, 4]},
                "encoding": {"x": {**x, "field": "used", "aggregate": "max"}, "color": color},
            },
        ],
        "Shape over the number of exceedances; dashes at the one used",
    )


def density_chart(
    tails: Mapping[Any, tuple[Floats, Sequence[tuple[float, float]]]],
) -> Chart:
    """Chart the density of the values and that of the fitted tail."""
    bars: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for group, (values, curve) in tails.items():
        name = group_name(group)
        counts, edges = np.histogram(values, bins=_BINS)
        density = counts / (len(values) * np.diff(edges))
        bars += [
            {"group": name, "from": float(low), "to": float(high), "density": float(each)}
            for low, high, each in zip(edges[:-1], edges[1:], density, strict=True)
            if each
        ]
        lines += [{"group": name, "value": x, "density": _finite_or_none(y)} for x, y in curve]
    color = _color(tails)
    x = {"type": "quantitative", "title": "value"}
    return _chart(
        [],
        [
            {
                "data": {"values": bars},
                "mark": {"type": "bar", "opacity": 0.3},
                "encoding": {
                    "x": {**x, "field": "from"},
                    "x2": {"field": "to"},
                    "y": _y("density", "density (root scale)", root=True),
                    "color": color,
                },
            },
            {
                "data": {"values": lines},
                "mark": {"type": "line"},
                "encoding": {
                    "x": {**x, "field": "value"},
                    "y": _y("density", "density (root scale)", root=True),
                    "color": color,
                },
            },
        ],
        "Density of the values, and of the fitted tail",
    )


def _chart(rows: list[dict[str, Any]], layer: list[dict[str, Any]], title: str) -> Chart:
    return Chart(
        {"$schema": SCHEMA, "title": title, **_SIZE, "data": {"values": rows}, "layer": layer}
    )


def _color(groups: Mapping[Any, Any]) -> dict[str, Any]:
    names = [group_name(group) for group in groups]
    shown = {} if len(names) > 1 else {"legend": None}
    return {"field": "group", "type": "nominal", "title": None, "sort": names, **shown}


def _y(field: str, title: str, *, root: bool = False) -> dict[str, Any]:
    scale = {"scale": {"type": "sqrt"}, "stack": None} if root else {"scale": {"zero": False}}
    return {"field": field, "type": "quantitative", "title": title, **scale}


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _thinned_positions(n: int) -> list[int]:
    """Return positions in an ascending list: all, or the largest and every few of the others."""
    if n <= _MOST_POINTS:
        return list(range(n))
    last = _MOST_POINTS // 2
    even = np.linspace(0, n - last - 1, _MOST_POINTS - last).astype(int)
    return [*even.tolist(), *range(n - last, n)]
