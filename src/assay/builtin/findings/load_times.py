"""Charts of one load over time, and the shapes of its times.

Values over time are those of slices of the load, so they are drawn as steps: between two slices nothing was measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from assay.model.load import UNFINISHED
from assay.plugin.charts import Chart, Spec, draw, frame, nominal, numeric, tip
from assay.report.stored_loads import StoredLoad
from assay.units import count, seconds

_HEIGHT = 180
_MOST_KINDS = 6
"""Kinds of errors with a colour of their own."""
_LATENCIES = (
    ("latency_p50_ms", "latency P50"),
    ("latency_p99_ms", "latency P99"),
    ("ttft_p50_ms", "first token P50"),
    ("ttft_p99_ms", "first token P99"),
)
_SHORTEST_INTERVAL = 0.5
_MARKED = ("p50", "p95", "p99")
_SHAPES = (
    ("ttft", "Time to first token", "answers"),
    ("itl", "Time between tokens (ITL)", "gaps"),
    ("latency", "Latency", "answers"),
)

Row = dict[str, Any]
Moment = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Curve:
    """A series of a chart: its name and the value in a moment, None where there is none."""

    name: str
    value: Callable[[Moment], float | None]


def charts_of(load: StoredLoad, number: int, *, is_brief: bool = False) -> list[Chart]:
    """All charts of one load; in brief, only latency, rate and errors."""
    if not load.document["over_time"]:
        return []
    charts = [("latency", latency_over_time(load)), ("rate", rate_over_time(load))]
    if _find_error_kinds(load.document):
        charts.append(("errors", errors_over_time(load)))
    if not is_brief:
        charts += [*_shapes(load), *_details(load), *_server(load)]
    return [Chart(f"load-{number}-{name}", spec) for name, spec in charts]


def _details(load: StoredLoad) -> list[tuple[str, Spec]]:
    charts = [("in-flight", in_flight_over_time(load))]
    if load.document["output_tokens_per_s"]:
        charts.append(("tokens", tokens_over_time(load)))
    if _has(load, "itl_p50_ms"):
        charts.append(("itl", itl_over_time(load)))
    if _has(load, "lag_p99_ms") or _has(load, "schedule_delay_p99_ms"):
        charts.append(("generator", generator_over_time(load)))
    return charts


def latency_over_time(load: StoredLoad) -> Spec:
    lines = [_field(name, title) for name, title in _LATENCIES if _has(load, name)]
    return _over_time(load, "Latency over time", lines, "ms")


def rate_over_time(load: StoredLoad) -> Spec:
    fields = [("sent", "sent"), ("completed", "answered")]
    fields += [("failed", "failed")] if _find_error_kinds(load.document) else []
    return _over_time(load, "Requests per second", [_per_second(*field) for field in fields], "/s")


def in_flight_over_time(load: StoredLoad) -> Spec:
    """Chart the requests in flight, beside the queue that the server reports if it was asked."""
    spec = _over_time(load, "Requests in flight", [_field("in_flight", "in flight")], "requests")
    own = [_points(line, line["title"]) for line in _series(load.document, "requests")]
    spec["data"]["values"] += [row for rows in own for row in rows]
    return spec


def tokens_over_time(load: StoredLoad) -> Spec:
    return _over_time(
        load, "Output tokens per second", [_per_second("output_tokens", "output tokens")], "tokens/s"
    )


def itl_over_time(load: StoredLoad) -> Spec:
    lines = [_field("itl_p50_ms", "ITL P50"), _field("itl_p99_ms", "ITL P99")]
    return _over_time(load, "Time between tokens over time", lines, "ms")


def generator_over_time(load: StoredLoad) -> Spec:
    """How punctual we ourselves were: what is late here is not the server's fault."""
    lines = [_field("schedule_delay_p99_ms", "schedule delay P99"), _field("lag_p99_ms", "generator lag P99")]
    return _over_time(load, "Schedule delay and generator lag", lines, "ms")


def _server(load: StoredLoad) -> list[tuple[str, Spec]]:
    """What the server told of itself, on the same time axis."""
    charts = []
    for unit, name, title, label in (
        ("share", "server-cache", "KV cache in use, reported by the server", "%"),
        ("tokens", "server-tokens", "Tokens per second, reported by the server", "tokens/s"),
        ("bytes", "server-memory", "Memory of the server process", "MiB"),
        ("cores", "server-cpu", "Processor use of the server process", "cores"),
    ):
        series = _series(load.document, unit)
        if series:
            scale = {"share": 100.0, "bytes": 1 / 2**20}.get(unit, 1.0)
            spec = _over_time(load, title, [], label)
            spec["data"]["values"] += [row for line in series for row in _points(line, line["title"], scale)]
            charts.append((name, spec))
    return charts


def _series(document: Mapping[str, Any], unit: str) -> list[Mapping[str, Any]]:
    metrics = document.get("server_metrics") or {}
    return [line for line in metrics.get("series", ()) if line["unit"] == unit and len(line["points"]) > 1]


def _points(series: Mapping[str, Any], name: str, scale: float = 1.0) -> list[Row]:
    """Return the points of a series; a counter becomes what was added per second since the point before."""
    # A counter that falls was reset because the server restarted: nothing is known of that stretch, so it counts as 0.
    points = series["points"]
    if series["kind"] == "counter":
        points = [
            [before[0], max(0.0, after[1] - before[1]) / (after[0] - before[0])]
            for before, after in pairwise(_far_apart(points))
        ]
    return [{"at": at, "value": value * scale, "what": name} for at, value in points]


def _far_apart(points: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """Drop the earlier one of two readings in quick succession.

    What a counter gained in a moment says little about its rate.
    """
    kept: list[Sequence[float]] = []
    for point in points:
        if len(kept) > 1 and point[0] - kept[-1][0] < _SHORTEST_INTERVAL:
            kept.pop()
        kept.append(point)
    return kept


def errors_over_time(load: StoredLoad) -> Spec:
    """Stacked: the height of all is the rate of errors, each colour a kind."""
    # A single kind beyond the limit gets a colour too, since "other kinds" for one of them would say less with as much ink.
    # Rectangles are stacked here and not by Vega-Lite, whose stacking of steps leaves gaps where a kind is absent.
    kinds = _find_error_kinds(load.document)
    named = kinds[:_MOST_KINDS] if len(kinds) > _MOST_KINDS + 1 else kinds
    rows = []
    for moment in load.document["over_time"]:
        reached = 0.0
        rates = _error_rates(moment, named)
        for kind, rate in rates.items():
            until = moment["at_s"] + moment["seconds"]
            row = {"at": moment["at_s"], "until": until, "low": reached, "high": reached + rate}
            rows.append({**row, "value": rate, "what": kind})
            reached += rate
    x, y = (_time_axis(load), numeric("low", title="failed/s", axis=_few_ticks()))
    bars = {
        "mark": {"type": "rect"},
        "encoding": {
            "x": x,
            "x2": {"field": "until"},
            "y": y,
            "y2": {"field": "high"},
            "color": nominal("what", sort=None, legend={"title": None}),
            "tooltip": [{"field": "what", "title": "kind"}, tip("at", "s"), tip("value", "failed/s")],
        },
    }
    return {
        **frame("Errors by kind over time", "requests that failed, when they ended"),
        "height": _HEIGHT,
        "data": {"values": rows},
        "layer": [*_background(load, x), bars],
    }


def _error_rates(moment: Moment, named: Sequence[str]) -> dict[str, float]:
    found: dict[str, float] = {}
    for kind, number in (moment.get("errors") or {}).items():
        if kind not in UNFINISHED and number:
            name = kind if kind in named else "other kinds"
            found[name] = found.get(name, 0.0) + number / moment["seconds"]
    return {kind: found[kind] for kind in (*named, "other kinds") if kind in found}


def _find_error_kinds(document: Mapping[str, Any]) -> list[str]:
    """The most frequent first; none in documents that do not tell when errors happened."""
    if not any(moment.get("errors") for moment in document["over_time"]):
        return []
    kinds = {kind: number for kind, number in document["errors"].items() if kind not in UNFINISHED}
    return sorted(kinds, key=lambda kind: -kinds[kind])


def _has(load: StoredLoad, field: str) -> bool:
    return any(moment.get(field) is not None for moment in load.document["over_time"])


def _field(field: str, name: str) -> _Curve:
    return _Curve(name, lambda moment: moment.get(field))


def _per_second(field: str, name: str) -> _Curve:
    return _Curve(name, lambda moment: moment[field] / moment["seconds"])


def _over_time(load: StoredLoad, title: str, lines: Sequence[_Curve], unit: str) -> Spec:
    """Curves over the time of a load, on the background that all its charts share. A gap in the values breaks the line."""
    rows = [row for line in lines for row in _steps(load.document["over_time"], line)]
    x = _time_axis(load)
    steps = {
        "mark": {
            "type": "line",
            "style": "trace",
            "interpolate": "step-after",
            "invalid": "break-paths-show-domains",
        },
        "encoding": {
            "x": x,
            "y": numeric("value", title=unit, axis=_few_ticks()),
            "color": nominal("what", sort=None, legend={"title": None}),
            "tooltip": [{"field": "what", "title": "what"}, tip("at", "s"), tip("value", unit)],
        },
    }
    notes = ["warm-up before the dashed line"] if load.document["measured_from_s"] else []
    notes += ["no answers in the shaded part"] if load.document.get("outages") else []
    return {
        **frame(title, ", ".join(notes) or "the whole load"),
        "height": _HEIGHT,
        "data": {"values": rows},
        "layer": [*_background(load, x), steps],
    }


def _steps(moments: Sequence[Moment], line: _Curve) -> list[Row]:
    """A point where each slice begins, and one where the last before a gap ends, so that its step is as wide as the others."""
    rows: list[Row] = []
    values = [line.value(moment) for moment in moments]
    for moment, value, following in zip(moments, values, [*values[1:], None], strict=True):
        rows.append({"at": moment["at_s"], "value": value, "what": line.name})
        if value is not None and following is None:
            end = moment["at_s"] + moment["seconds"]
            rows.append({"at": end, "value": value, "what": line.name})
    return rows


def _few_ticks() -> Spec:
    return {"tickCount": 4}


def _time_axis(load: StoredLoad) -> Spec:
    """The same for all charts of a load, so that they can be read one below the other."""
    last = load.document["over_time"][-1]
    end = last["at_s"] + last["seconds"]
    return numeric(
        "at",
        title="seconds after the start",
        scale={"nice": False, "domain": [0, end]},
        axis={"tickCount": 8},
    )


def _background(load: StoredLoad, x: Spec) -> list[Spec]:
    """Draw the background: where the measured part begins, and where the server answered nothing."""
    layers: list[Spec] = []
    if outages := load.document.get("outages"):
        shades = [{"at": outage["at_s"], "until": outage["at_s"] + outage["seconds"]} for outage in outages]
        layers.append(draw(shades, {"type": "rect", "style": "outage"}, {"x": x, "x2": {"field": "until"}}))
    if begin := load.document["measured_from_s"]:
        layers.append(draw([{"at": begin}], {"type": "rule", "style": "edge"}, {"x": x}))
    return layers


def _shapes(load: StoredLoad) -> list[tuple[str, Spec]]:
    """Histograms of the first token and the gaps; of answers in one piece, of the latency."""
    found = load.document.get("histograms_ms") or {}
    wanted = [
        shape for shape in _SHAPES if shape[0] in found and (shape[0] != "latency" or "ttft" not in found)
    ]
    return [(f"{name}-histogram", time_histogram(load, name, title, of)) for name, title, of in wanted]


def time_histogram(load: StoredLoad, name: str, title: str, of: str) -> Spec:
    """Bars by how often a time occurred, with P50, P95 and P99."""
    shape = load.document["histograms_ms"][name]
    edges, counts = shape["edges"], shape["counts"]
    bars = [
        {"low": low, "high": high, "count": number}
        for low, high, number in zip(edges, edges[1:], counts, strict=False)
        if number
    ]
    x = numeric(
        "low",
        title="ms",
        scale={"type": "log" if shape["log"] else "linear", "nice": False, "domain": [edges[0], edges[-1]]},
        axis={"tickCount": 6, "format": ",.4~r", "grid": False},
    )
    y = numeric("count", title=of, axis=_few_ticks())
    times = load.document[f"{name}_ms"]
    percentiles = " · ".join(
        f"{percentile.upper()} {seconds(times[percentile] / 1e3)}" for percentile in _MARKED
    )
    beyond = f" · {count(shape['beyond'])} longer than shown" if shape["beyond"] else ""
    total = f"{count(sum(counts) + shape['beyond'])} {of}"
    return {
        **frame(title, f"{percentiles} · {total}{beyond}"),
        "height": _HEIGHT,
        "data": {"values": bars},
        "layer": [
            {
                "mark": {"type": "rect", "style": "bin"},
                "encoding": {
                    "x": x,
                    "x2": {"field": "high"},
                    "y": y,
                    "y2": {"datum": 0},
                    "tooltip": [tip("low", "from, ms"), tip("high", "to, ms"), tip("count", of)],
                },
            },
            *_percentile_rules(times, x),
        ],
    }


def _percentile_rules(times: Mapping[str, Any], x: Spec) -> list[Spec]:
    """Each with its name; one below the other, and left of its line where there is room, as they may lie close together."""
    layers: list[Spec] = []
    last, free = x["scale"]["domain"][1], 0.0
    for place, name in enumerate(_MARKED):
        value = times[name]
        if value > last:
            continue
        row = {"at": value, "label": name.upper()}
        at = {**x, "field": "at"}
        share = _share_of_axis(value, x["scale"])
        is_left = share - free > _LABEL_SHARE or share > 1 - _LABEL_SHARE
        side = {"align": "right", "dx": -4} if is_left else {"align": "left", "dx": 4}
        free = share
        layers.append(draw([row], {"type": "rule", "style": "median"}, {"x": at}))
        layers.append(
            draw(
                [row],
                {"type": "text", "style": "note", "baseline": "top", "y": 2 + 14 * place, **side},
                {"x": at, "text": {"field": "label"}},
            )
        )
    return layers


_LABEL_SHARE = 0.1
"""Share of the width of a chart that the name of a percentile takes."""


def _share_of_axis(value: float, scale: Mapping[str, Any]) -> float:
    """How far to the right of an axis a value lies, from 0 to 1."""
    first, last = scale["domain"]
    if scale["type"] == "log":
        first, last, value = math.log(first), math.log(last), math.log(max(value, first))
    return (value - first) / (last - first) if last > first else 0.0
