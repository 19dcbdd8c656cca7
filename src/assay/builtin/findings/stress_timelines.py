"""Charts of one stress scenario: latency, rate, errors and memory over its time, and what each of its steps showed.

Values are drawn as steps, each as wide as the time that it was counted in: a smoothed curve shows what was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from assay.model.load import Moment
from assay.model.stress import LoadPoint, ScenarioFinding
from assay.plugin.charts import Chart, Spec, draw, frame, nominal, numeric, quantity, tip
from assay.plugin.figures import scale_for
from assay.units import size

_SHORTEST = 2.0
"""Seconds: of less there is nothing to see over time, where the steps are drawn."""
_COUNTED = 0.25
_BY_WHAT = nominal("what", sort=None, legend={"title": None})
Row = dict[str, Any]


def scenario_charts(found: ScenarioFinding) -> list[Chart]:
    """Those that there is something to draw for."""
    name = f"stress-{found.scenario}"
    specs: dict[str, Spec | None] = {"steps": steps(found)}
    if _end(found) >= _SHORTEST or specs["steps"] is None:
        specs |= {
            "latency": latency(found),
            "rate": rate(found),
            "errors": errors(found),
            "memory": memory(found),
        }
    return [Chart(f"{name}-{what}", spec) for what, spec in specs.items() if spec is not None]


def _end(found: ScenarioFinding) -> float:
    return max((moment.begin + moment.seconds for moment in found.moments), default=0.0)


def _seconds(found: ScenarioFinding, field: str = "at") -> Spec:
    """The same axis for all charts of a scenario, so that one can look from one to the next."""
    scale = {"nice": False, "domain": [0, round(_end(found), 3)]}
    return numeric(field, title="seconds under load", scale=scale)


def latency(found: ScenarioFinding) -> Spec | None:
    """P50 and P99 of the requests due at each time."""
    moments = [moment for moment in found.moments if moment.latency_p50 is not None]
    if len(moments) < 2:
        return None
    scale = scale_for("s", max(moment.latency_p99 or 0.0 for moment in moments))
    rows = [
        *_step_rows(moments, "P50", lambda moment: moment.latency_p50, scale.factor),
        *_step_rows(moments, "P99", lambda moment: moment.latency_p99, scale.factor),
    ]
    values = np.array([row["value"] for row in rows if row["value"] is not None])
    y = quantity("value", f"latency, {scale.label}", values)
    return _timeline(found, "Latency over time", "by when requests were due", rows, y, scale.label)


def rate(found: ScenarioFinding) -> Spec | None:
    """Requests sent, by when they were due, and answers per second."""
    if len(found.moments) < 2:
        return None
    counted = _wide_enough(found.moments)
    rows = [
        *_step_rows(counted, "sent/s", lambda moment: moment.sent / moment.seconds),
        *_step_rows(counted, "answered/s", lambda moment: moment.completed / moment.seconds),
    ]
    y = numeric("value", title="per second", axis={"tickCount": 4})
    return _timeline(found, "Rate over time", "sent (when due) and answered", rows, y, "per second")


def errors(found: ScenarioFinding) -> Spec | None:
    """Failures per second; None where there are none."""
    if len(found.moments) < 2 or not any(moment.failed for moment in found.moments):
        return None
    rows = [
        *_step_rows(_wide_enough(found.moments), "failed/s", lambda moment: moment.failed / moment.seconds)
    ]
    y = numeric("value", title="failed per second", axis={"tickCount": 3})
    kinds = ", ".join(f"{kind} {n}" for kind, n in sorted(found.errors.items(), key=lambda entry: -entry[1]))
    # Lower than the others: that there are errors and when is what counts, and the kinds are in its subtitle.
    spec = _timeline(found, "Errors over time", kinds, rows, y, "per second", height=90)
    return {**spec, "layer": [_as_errors(layer) for layer in spec["layer"]]}


def memory(found: ScenarioFinding) -> Spec | None:
    """Chart the memory of the agent's processes; None if they are on another machine."""
    samples = found.resources.samples if found.resources is not None else ()
    if len(samples) < 2:
        return None
    scale = scale_for("bytes", max(sample.memory_bytes for sample in samples))
    rows = [
        {
            "at": round(sample.at, 3),
            "value": float(f"{sample.memory_bytes / scale.factor:.5g}"),
            "what": "memory",
        }
        for sample in samples
    ]
    y = numeric("value", title=f"memory, {scale.label}", axis={"tickCount": 4}, scale={"zero": True})
    assert found.resources is not None
    return _timeline(found, "Memory over time", found.resources.process, rows, y, scale.label, height=110)


def _wide_enough(moments: Sequence[Moment]) -> list[Moment]:
    """Put together to a quarter of a second at least: in less, a few answers look like a rate that no client sees."""
    wide: list[Moment] = []
    for moment in moments:
        if not wide or wide[-1].seconds >= _COUNTED - 1e-9:
            wide.append(moment)
            continue
        last = wide[-1]
        wide[-1] = replace(
            last,
            seconds=last.seconds + moment.seconds,
            sent=last.sent + moment.sent,
            completed=last.completed + moment.completed,
            failed=last.failed + moment.failed,
        )
    return wide


def _step_rows(moments: Sequence[Moment], what: str, value: Any, factor: float = 1.0) -> Iterator[Row]:
    """A row where each value begins, and one where the last ends."""
    for moment in moments:
        found = value(moment)
        scaled = None if found is None else float(f"{found / factor:.5g}")
        yield {"at": round(moment.begin, 3), "value": scaled, "what": what}
    if moments:
        yield {"at": round(moments[-1].begin + moments[-1].seconds, 3), "value": scaled, "what": what}


def _timeline(
    found: ScenarioFinding, title: str, note: str, rows: list[Row], y: Spec, unit: str, height: int = 150
) -> Spec:
    """A chart over the time of a scenario: bands of faults behind, the values, and the breaking point in front.

    Colours of bands and of values have scales of their own, or a fault would get the colour of a metric.
    """
    many = len({row["what"] for row in rows}) > 1
    lines: Spec = draw(
        rows,
        {"type": "line", "style": "trace", "interpolate": "step-after"},
        {
            "x": _seconds(found),
            "y": y,
            **({"color": _BY_WHAT} if many else {}),
            "tooltip": [{"field": "what", "title": "what"}, tip("at", "s"), tip("value", unit)],
        },
    )
    layers = [*_bands(found), lines, *_breach(found)]
    simulated = ", simulated" if found.is_simulated else ""
    broke = "; dashed line: breaking point" if found.is_broken else ""
    return {
        **frame(f"{found.scenario}: {title[0].lower()}{title[1:]}", f"{note}{broke}{simulated}"),
        "height": height,
        "layer": layers,
        "resolve": {"scale": {"color": "independent"}},
    }


def _bands(found: ScenarioFinding) -> list[Spec]:
    """Times of faults as coloured bands; steps by their borders and names."""
    faults = [band for band in found.bands if band.is_fault]
    parts = [band for band in found.bands if not band.is_fault]
    layers: list[Spec] = []
    if faults:
        rows = [{"at": band.begin, "to": band.end, "fault": band.label} for band in faults]
        colour = nominal("fault", sort=None, legend={"title": None})
        layers.append(
            draw(
                rows,
                {"type": "rect", "opacity": 0.16, "clip": True},
                {
                    "x": _seconds(found),
                    "x2": {"field": "to"},
                    "color": colour,
                    "tooltip": [{"field": "fault", "title": "fault"}],
                },
            )
        )
    if parts:
        named = [
            {"at": band.begin, "middle": (band.begin + band.end) / 2, "name": band.label} for band in parts
        ]
        layers.append(
            draw(named[1:], {"type": "rule", "strokeWidth": 1, "opacity": 0.25}, {"x": _seconds(found)})
        )
        layers.append(
            draw(
                named,
                {"type": "text", "style": "note", "baseline": "bottom", "fontSize": 10, "dy": -2},
                {"x": _seconds(found, "middle"), "y": {"value": 0}, "text": {"field": "name"}},
            )
        )
    return layers


def _breach(found: ScenarioFinding) -> list[Spec]:
    if found.breach is None or not found.is_broken:
        return []
    return [
        draw(
            [{"at": found.breach.at}],
            {"type": "rule", "style": "median", "strokeDash": [4, 4], "opacity": 0.9},
            {"x": _seconds(found)},
        )
    ]


def _as_errors(layer: Spec) -> Spec:
    """Errors in the colour of what is bad, with the area beneath them."""
    mark = layer["mark"]
    if not isinstance(mark, dict) or mark.get("type") != "line":
        return layer
    return {
        **layer,
        "mark": {"type": "area", "style": "error", "interpolate": "step-after", "line": {"style": "broken"}},
    }


_AXES = {
    "at a time": ("Speedup against concurrency", "requests in flight"),
    "bytes": ("Latency against size of the input", "size of the input"),
    "tokens": ("Latency against length of the context", "tokens"),
    "× memory pressure": ("Latency against memory that is left", "memory that is left"),
}


def steps(found: ScenarioFinding) -> Spec | None:
    """Speedup by level, or latency by size, of a scenario that goes up step by step."""
    points = [point for point in found.points if point.latency_p50 is not None or point.throughput]
    if found.unit not in _AXES or len(points) < 2:
        return None
    title, across = _AXES[found.unit]
    simulated = ", simulated" if found.is_simulated else ""
    notes = ["dashed: without any limit"] if found.unit == "at a time" else []
    notes += ["rings: broke"] if any(point.is_broken for point in points) else []
    notes += ["small: extra steps of the search"] if any(point.is_probe for point in points) else []
    note = "; ".join(notes) or "one point a step"
    spec = _speedup(points) if found.unit == "at a time" else _latency_by(points, found.unit)
    spec["encoding"]["x"] = _across(across, points, found.unit)
    return {
        **frame(f"{found.scenario}: {title[0].lower()}{title[1:]}", f"{note}{simulated}"),
        "height": 200,
        **spec,
    }


def _across(title: str, points: Sequence[LoadPoint], unit: str) -> Spec:
    """The axis of the loads that were tried. Only planned steps have labels: those of a search lie too close together."""
    in_bytes = unit in ("bytes", "× memory pressure")
    ticks = sorted({point.load for point in points if not point.is_probe})
    names = " : ".join(
        f"datum.value == {tick!r} ? '{size(tick) if in_bytes else f'{tick:,.0f}'}'" for tick in ticks
    )
    return numeric(
        "load",
        title=title,
        scale={"type": "log", "nice": False, "padding": 12},
        axis={"values": ticks, "labelExpr": f"{names} : ''", "labelOverlap": True},
    )


def _speedup(points: Sequence[LoadPoint]) -> Spec:
    """Throughput ÷ that of one at a time, beside the line of a server without limits."""
    # The ideal line is cut at twice the highest speedup, or it would press the measured points into the lower edge.
    first = points[0].throughput or 1.0
    rows = [{**_row(point), "value": float(f"{point.throughput / first:.5g}")} for point in points]
    most = max(row["value"] for row in rows)
    ideal = [{"load": point.load, "ideal": point.load / points[0].load} for point in points]
    ideal = [row for row in ideal if row["ideal"] <= 2 * most]
    y = {
        "type": "quantitative",
        "title": "times the throughput of one",
        "scale": {"type": "log", "nice": False},
    }
    return {
        "encoding": {},
        "layer": [
            draw(
                ideal, {"type": "line", "style": "web", "strokeDash": [3, 3]}, {"y": {**y, "field": "ideal"}}
            ),
            *_dots(rows, {**y, "field": "value"}, "×"),
        ],
    }


def _latency_by(points: Sequence[LoadPoint], unit: str) -> Spec:
    scale = scale_for("s", max((point.latency_p95 or 0.0) for point in points))
    rows = [
        {**_row(point), "value": float(f"{point.latency_p50 / scale.factor:.5g}")}
        for point in points
        if point.latency_p50 is not None
    ]
    values = np.array([row["value"] for row in rows] or [1.0])
    return {
        "encoding": {},
        "layer": _dots(rows, quantity("value", f"P50, {scale.label}", values), scale.label),
    }


def _row(point: LoadPoint) -> Row:
    return {
        "load": point.load,
        "state": "broke" if point.is_broken else "held",
        "kind": "probe" if point.is_probe else "step",
        "failed": round(100 * point.error_rate, 2),
    }


def _dots(rows: list[Row], y: Spec, unit: str) -> list[Spec]:
    """The steps in their order, joined by a line. Rings are those in which the agent broke."""
    dots = {"condition": {"test": "datum.kind == 'probe'", "value": 30}, "value": 80}
    layers: list[Spec] = [draw(rows, {"type": "line", "style": "thread"}, {"y": y})]
    for state, mark in (
        ("held", {"style": "dot", "filled": True}),
        ("broke", {"style": "broken", "filled": False}),
    ):
        if points := [row for row in rows if row["state"] == state]:
            layers.append(
                draw(points, {"type": "point", **mark}, {"y": y, "size": dots, "tooltip": _tips(unit)})
            )
    return layers


def _tips(unit: str) -> list[Spec]:
    return [
        tip("load", "load"),
        tip("value", unit),
        {"field": "state", "title": "held or broke"},
        tip("failed", "failed, %"),
    ]
