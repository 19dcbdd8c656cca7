"""The chart of a metric over the runs of an agent, with the levels between its change points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.model.metric import Better
from assay.model.regression import MetricHistory, Shift
from assay.plugin.charts import Chart, Spec, Values, draw, frame, nominal, numeric, quantity
from assay.plugin.figures import UnitScale, scale_for
from assay.units import show

_TICKS = 12
RUNS = 120
"""Only the newest runs are drawn: more would not be told apart."""
KINDS = ("worse", "better")
_LEAST_SPAN = 0.2


def timeline_chart(history: MetricHistory, shifts: Sequence[Shift]) -> Chart | None:
    """A point for each run, in the order of time; None with fewer than two runs."""
    points = history.points[-RUNS:]
    if len(points) < 2:
        return None
    scale = scale_for(history.metric.unit, max(abs(point.value) for point in points))
    rows = [
        {
            "number": number,
            "version": point.version or "–",
            "value": scale.of(point.value),
            "text": show(point.value, history.metric.unit),
            "run": point.run_id,
            "when": f"{point.started:%Y-%m-%d %H:%M} UTC",
        }
        for number, point in enumerate(points, 1)
    ]
    y = _build_axis(history.metric.name, scale, np.array([scale.of(point.value) for point in points]))
    first_of_version = {row["version"]: row["number"] for row in reversed(rows)}
    x = numeric(
        "number",
        title="run",
        scale={"nice": False, "padding": 12},
        axis={"values": list(range(1, len(points) + 1, -(-len(points) // _TICKS))), "format": "d"},
    )
    better = {Better.HIGHER: "higher is better", Better.LOWER: "lower is better"}.get(
        history.metric.better, ""
    )
    title = f"{history.benchmark}: {history.metric.name}"
    note = ", ".join(filter(None, (f"{len(points)} runs", better, "labels are versions")))
    spec: Spec = {
        **frame(title, note),
        "height": 190,
        "layer": [
            draw(rows, {"type": "line", "style": "thread"}, {"x": x, "y": y}),
            *_shift_layers(points, shifts, scale, {"x": x, "y": y}),
            draw(
                rows,
                {"type": "point", "style": "dot", "filled": True},
                {"x": x, "y": y, "tooltip": _tips(history)},
            ),
            draw(
                [{"number": number, "version": version} for version, number in first_of_version.items()],
                {"type": "text", "style": "note", "baseline": "top", "align": "left", "dx": 2},
                {"x": x, "y": {"value": 0}, "text": nominal("version")},
            ),
        ],
    }
    return Chart(f"timeline-{history.benchmark}-{history.metric.name}", spec)


def _build_axis(name: str, scale: UnitScale, values: Values) -> Spec:
    """Build an axis that spans at least a fifth of the level: a wobble of one percent should not look
    like a cliff.
    """
    y = quantity("value", f"{name} ({scale.label})" if scale.label else name, values)
    middle = float(values.min() + values.max()) / 2
    room = _LEAST_SPAN * abs(middle) / 2
    if y["scale"]["type"] == "linear" and values.max() - values.min() < 2 * room:
        y["scale"] |= {"domain": [middle - room, middle + room]}
    return y


def _tips(history: MetricHistory) -> list[Spec]:
    return [
        {"field": "version", "type": "nominal", "title": "version"},
        {"field": "text", "type": "nominal", "title": history.metric.name},
        {"field": "run", "type": "nominal", "title": "run"},
        {"field": "when", "type": "nominal", "title": "started"},
    ]


def _shift_layers(
    points: Sequence[Any], shifts: Sequence[Shift], scale: UnitScale, axes: Mapping[str, Spec]
) -> list[Spec]:
    """An upright line where the level changed, and the two levels beside it."""
    numbers = {point.run_id: number for number, point in enumerate(points, 1)}
    rules, levels = [], []
    for shift in shifts:
        at = numbers.get(shift.after.run_id)
        if at is None:
            continue
        kind = KINDS[shift.loss.value < 0]
        before = numbers.get(shift.before.run_id, max(1, at - 1))
        rules.append({"number": (before + at) / 2, "kind": kind, "text": f"{kind}, {shift.kind}"})
        levels += [
            {"number": max(1, before - 3), "to": before, "value": scale.of(shift.level_before), "kind": kind},
            {
                "number": at,
                "to": min(len(points), at + 3),
                "value": scale.of(shift.level_after),
                "kind": kind,
            },
        ]
    if not rules:
        return []
    colour = nominal("kind", scale={"domain": list(KINDS), "range": "changes"}, legend={"title": None})
    return [
        draw(
            rules,
            {"type": "rule", "strokeDash": [4, 3], "strokeWidth": 1.5},
            {"x": axes["x"], "color": colour},
        ),
        draw(
            levels,
            {"type": "rule", "strokeWidth": 3, "opacity": 0.55},
            {"x": axes["x"], "x2": {"field": "to"}, "y": axes["y"], "color": colour},
        ),
    ]
