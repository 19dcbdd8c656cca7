"""Specifications of charts before they are drawn: their colours, and data that no renderer stumbles over."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.plugin.charts import Spec, Values, clip_text, is_wide
from assay.report.charts.theme import config
from assay.text import make_line

_LONGEST_TEXT = 1000


def apply_theme(spec: Spec, dark: bool) -> Spec:
    """The specification with fonts and colours, and with data that every renderer can draw."""
    return {**drawable(spec), "config": config(dark)}


def drawable(value: Any) -> Any:
    """Names and other data without what breaks the renderer: it aborts on control characters and hangs on endless words."""
    if isinstance(value, str):
        return clip_text(make_line(value), _LONGEST_TEXT)
    if isinstance(value, dict):
        return {make_line(name): drawable(inner) for name, inner in value.items()}
    return [drawable(inner) for inner in value] if isinstance(value, list | tuple) else value


def label_points(rows: list[dict[str, Any]], x: Spec, y: Spec, most: int) -> list[Spec]:
    """Names (`trial`) beside points (`x`), on the side where there is room; of more than `most`, none."""
    if not rows or len(rows) > most:
        return []
    places = np.array([row["x"] for row in rows])
    along = np.log(places) if is_wide(places) else places
    middle = (along.min() + along.max()) / 2
    sides: dict[str, list[dict[str, Any]]] = {"left": [], "right": []}
    for row, place in zip(rows, along, strict=True):
        sides["right" if place > middle else "left"].append(row)
    return [
        {
            "data": {"values": beside},
            "mark": {
                "type": "text",
                "style": "note",
                "align": side,
                "dx": 12 if side == "left" else -12,
                "dy": -11,
            },
            "encoding": {"x": x, "y": y, "text": {"field": "trial"}},
        }
        for side, beside in sides.items()
        if beside
    ]


def short(values: Values) -> list[float]:
    """Seven significant digits: more than a screen shows, half the size."""
    return [float(f"{value:.7g}") for value in values]
