"""Radar charts: figures from 0 to 1 as polygons on a web.

Vega-Lite has no polar axes, so the corners, rings and spokes are computed here and drawn on a plane whose centre is (0, 0) and
whose outermost ring has the radius 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from assay.plugin.charts import Spec, agent_colour, draw, frame, nominal, numeric

_POLYGONS = 6
"""More agents than this would hide each other."""
_RINGS = (0.25, 0.5, 0.75, 1.0)
_WIDTH = 330
_MARGIN = 0.28
"""Room around a web of radius 1, for the names."""

Rows = list[dict[str, Any]]
Corner = tuple[float, str]
"""A value from 0 to 1, and its text."""


def draw_radar(title: str, note: str, names: Sequence[str], corners: Mapping[str, Sequence[Corner]]) -> Spec:
    """A polygon for each agent, with a corner on each dimension; only the first few agents, which the note says."""
    agents = list(corners)[:_POLYGONS]
    rows = [
        {
            **_place_corner(place, len(names), value),
            "trial": agent,
            "dimension": names[place],
            "text": text,
            "order": place,
        }
        for agent in agents
        for place, (value, text) in enumerate(corners[agent])
    ]
    more = f", the first {len(agents)} of {len(corners)} agents" if len(corners) > len(agents) else ""
    bottom = min(_place_corner(place, len(names), 1.0)["y"] for place in range(len(names))) - _MARGIN
    plane = _plane(bottom)
    return {
        **frame(title, f"{note}{more}"),
        "width": _WIDTH,
        "height": round(_WIDTH * (1 + _MARGIN - bottom) / (2 + 2 * _MARGIN)),
        "usermeta": {"fixed": True},
        "layer": [*_web(names, plane), *_polygons(rows, plane)],
    }


def _place_corner(place: int, of: int, radius: float) -> dict[str, Any]:
    angle = math.pi / 2 - 2 * math.pi * place / of
    return {"x": round(radius * math.cos(angle), 4), "y": round(radius * math.sin(angle), 4)}


def _plane(bottom: float) -> Spec:
    """Positions with equal units both ways, as long as the chart keeps its shape."""
    domains = {"x": [-1 - _MARGIN, 1 + _MARGIN], "y": [bottom, 1 + _MARGIN]}
    return {
        end: numeric(end, axis=None, scale={"domain": domain, "nice": False})
        for end, domain in domains.items()
    }


def _web(names: Sequence[str], plane: Spec) -> list[Spec]:
    """Rings, spokes and the names of the dimensions."""
    of = len(names)
    rings = [
        {**_place_corner(p, of, radius), "ring": radius, "order": p} for radius in _RINGS for p in range(of)
    ]
    spokes = [
        {**_place_corner(p, of, radius), "ring": p, "order": radius} for p in range(of) for radius in (0, 1)
    ]
    layers = [_thread(rings, "linear-closed", plane), _thread(spokes, "linear", plane)]
    across = [_place_corner(p, of, 1.0)["x"] for p in range(of)]
    sides = ["center" if abs(x) < 0.05 else "left" if x > 0 else "right" for x in across]
    for side in ("left", "center", "right"):
        at_side = [
            {**_place_corner(p, of, 1.1), "name": name} for p, name in enumerate(names) if sides[p] == side
        ]
        if at_side:
            layers.append(
                draw(
                    at_side,
                    {"type": "text", "style": "note", "align": side, "baseline": "middle"},
                    {**plane, "text": {"field": "name"}},
                )
            )
    return layers


def _thread(rows: Rows, interpolate: str, plane: Spec) -> Spec:
    return draw(
        rows,
        {"type": "line", "style": "web", "interpolate": interpolate},
        {**plane, "detail": nominal("ring"), "order": numeric("order")},
    )


def _polygons(rows: Rows, plane: Spec) -> list[Spec]:
    """Filled polygons, their outlines and their corners, in this order, so that no fill covers the line of another agent."""
    order = numeric("order")
    encoding = {**plane, "color": agent_colour({"title": None}), "order": order}
    tips = [
        {"field": "trial", "title": "agent"},
        {"field": "dimension", "title": "dimension"},
        {"field": "text", "title": "rating"},
    ]
    closed = {"type": "line", "interpolate": "linear-closed"}
    corner = {"type": "point", "style": "corner", "filled": True}
    # A scale of its own, or the legend would be as faint as the filled polygons.
    filled = {**plane, "fill": agent_colour(None), "detail": {"field": "trial"}, "order": order}
    return [
        draw(rows, {**closed, "style": "fill"}, filled),
        draw(rows, {**closed, "style": "outline"}, encoding),
        draw(rows, corner, {**encoding, "tooltip": tips}),
    ]
