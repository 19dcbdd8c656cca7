"""What charts are made of: Vega-Lite specifications, and their parts.

A specification carries no colours: whatever shows it adds those of its theme. Field names are fixed and texts are literals, so
nothing that a user named is ever read as an expression.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.model.page import Chart as Chart

Spec = dict[str, Any]
Values = NDArray[np.float64]

_WIDE = 30
"""Positive values that span more than this factor get a logarithmic scale."""
_NUMBER = ",.4~r"


def frame(title: str, note: str) -> Spec:
    """What every chart begins with. The description is what a screen reader says in place of the picture.

    The width is that of PNG files; an HTML page replaces it by the width of the column that the chart stands in.
    """
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": f"{title}: {note}",
        "title": {"text": clip_text(title), "subtitle": clip_text(note)},
        "width": 620,
    }


def clip_text(text: str, limit: int = 80) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quantity(field: str, title: str, values: Values) -> Spec:
    """An axis whose scale fits the values that are `shown`: logarithmic where they span orders of magnitude.

    It need not begin at 0. What is drawn along it are positions with intervals, not bars, whose lengths would lie.
    """
    wide = is_wide(values)
    axis = {"values": _log_ticks(values), "format": _NUMBER} if wide else {"tickCount": 5}
    return numeric(field, title=title or "value", scale={**axis_scale(wide=wide), "padding": 8}, axis=axis)


def axis_scale(*, wide: bool) -> Spec:
    return {"type": "log", "nice": False} if wide else {"type": "linear", "zero": False, "nice": False}


def _log_ticks(values: Values) -> list[float]:
    """Powers of ten, with twos and fives between them where there are few."""
    low, high = math.log10(values.min()), math.log10(values.max())
    steps = (1, 2, 5) if high - low < 2.5 else (1,)
    ticks = [step * 10.0**power for power in range(math.floor(low), math.ceil(high) + 1) for step in steps]
    return [tick for tick in ticks if 10**low * 0.9 <= tick <= 10**high * 1.1]


def numeric(field: str, **channel: Any) -> Spec:
    """A channel of numbers; `channel` may give its title, scale, axis, legend and format."""
    return {"field": field, "type": "quantitative", **channel}


def nominal(field: str, **channel: Any) -> Spec:
    """A channel of names. Vega-Lite sorts them by the alphabet unless `sort` is None, which keeps the order of the rows."""
    return {"field": field, "type": "nominal", **channel}


def draw(rows: Sequence[Any], mark: Spec, encoding: Spec) -> Spec:
    """A layer with rows of its own, beside layers that share those of the whole chart."""
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def between(along: str, channel: Spec, low: str = "low", high: str = "high") -> Spec:
    """The channels of a mark that reaches from one field to another along an axis."""
    return {along: {**channel, "field": low}, f"{along}2": {"field": high}}


def whisker(along: str, encoding: Spec) -> Spec:
    """An interval from `low` to `high` as a line. Its name lets tests and pages find it among the layers."""
    return {
        "mark": {"type": "rule", "style": "whisker"},
        "encoding": {**encoding, **between(along, encoding[along])},
        "name": f"interval_{along}",
    }


def dot(encoding: Spec, *, small: bool = False) -> Spec:
    mark = {"type": "point", "style": "dot", "filled": True} | ({"size": 24} if small else {})
    return {"mark": mark, "encoding": encoding}


def tip(field: str, title: str) -> Spec:
    return numeric(field, title=title, format=_NUMBER)


def build_tips(*fields: str, **titles: str) -> list[Spec]:
    """What the pointer shows: fields by their names, then fields with titles of their own."""
    named = {field: field for field in fields} | titles
    return [{"field": field, "title": title} for field, title in named.items()]


def build_name_axis(label_limit: int | None = None) -> Spec:
    """A lane for each trial, whose name may be `label_limit` pixels long."""
    limit = {} if label_limit is None else {"labelLimit": label_limit}
    return nominal("trial", sort=None, title=None, axis={"grid": False, **limit})


def agent_colour(legend: Spec | None) -> Spec:
    """The same colour for an agent in every chart of a contest."""
    return nominal("trial", sort=None, legend=legend)


def is_wide(values: Values) -> bool:
    """Whether values need a logarithmic scale. All must be positive, as the logarithm of 0 lies nowhere on a chart."""
    return bool(len(values) and values.min() > 0 and values.max() / values.min() > _WIDE)
