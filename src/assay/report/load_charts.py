"""Pictures of loads: latency and rate over time, the curve of percentiles, throughput against latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model import Report
from assay.report.load import document_of
from assay.report.vega import Chart, Spec, frame, tip
from assay.units import significant

_MOST = 24
"""Loads of a run that are shown one by one."""
_TIMES = {
    "latency_p50_ms": "latency P50",
    "latency_p99_ms": "latency P99",
    "ttft_p50_ms": "first token P50",
    "ttft_p99_ms": "first token P99",
}
_SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)


@dataclass(frozen=True, slots=True)
class StoredLoad:
    """What an execution of a load told, and which one it was."""

    label: str
    document: Mapping[str, Any]


def stored_loads(report: Report) -> list[StoredLoad]:
    """Every load of the run, in order."""
    return list(_loads(report))


def _loads(report: Report) -> Iterator[StoredLoad]:
    trials = [trial for trial in report.trials if trial.stored.trial.experiment == "load"]
    number = 0
    for trial in trials:
        for execution in trial.executions:
            document = document_of(execution.output)
            if document is not None:
                number += 1
                axes = trial.stored.trial.axes if len(trials) > 1 else {}
                yield StoredLoad(_label(number, axes, document), document)


def _label(number: int, axes: Mapping[str, object], document: Mapping[str, Any]) -> str:
    offered = document["offered_rate"]
    asked = (
        f"{significant(document['concurrency'])} at once" if offered is None else f"{offered:.4g}/s offered"
    )
    named = [f"{name} {value}" for name, value in axes.items() if name != "concurrency"]
    return ", ".join([f"{number}: {asked}", *named])


def load_charts(loads: Sequence[StoredLoad]) -> list[Chart]:
    charts = []
    if len(loads) > 1:
        charts.append(Chart("load-throughput-latency", throughput_against_latency(loads)))
    if loads and any(load.document["latency_curve_ms"] for load in loads):
        charts.append(Chart("load-percentiles", percentiles(loads[-6:])))
    return charts


def charts_of(load: StoredLoad, number: int) -> list[Chart]:
    """The two pictures of one load over time."""
    if not load.document["over_time"]:
        return []
    return [
        Chart(f"load-{number}-latency", latency_over_time(load)),
        Chart(f"load-{number}-rate", rate_over_time(load)),
    ]


def latency_over_time(load: StoredLoad) -> Spec:
    rows = [
        {"at": moment["at_s"], "value": moment[field], "what": name}
        for moment in load.document["over_time"]
        for field, name in _TIMES.items()
        if moment[field] is not None
    ]
    return _over_time(rows, "Latency over time", load, "ms")


def rate_over_time(load: StoredLoad) -> Spec:
    rows = []
    for moment in load.document["over_time"]:
        for field, name in (("sent", "sent/s"), ("completed", "answered/s"), ("failed", "failed/s")):
            if field != "failed" or load.document["errors"]:
                rows.append({"at": moment["at_s"], "value": moment[field] / moment["seconds"], "what": name})
        rows.append({"at": moment["at_s"], "value": moment["in_flight"], "what": "in flight"})
    return _over_time(rows, "Rate and requests in flight", load, "")


def _over_time(rows: list[dict[str, Any]], title: str, load: StoredLoad, unit: str) -> Spec:
    begin = load.document["measured_from_s"]
    x = {"field": "at", "type": "quantitative", "title": "seconds after the start", "scale": {"nice": False}}
    lines = {
        "mark": {"type": "line", "style": "trace", "interpolate": "monotone"},
        "encoding": {
            "x": x,
            "y": {"field": "value", "type": "quantitative", "title": unit or None, "axis": {"tickCount": 4}},
            "color": {"field": "what", "type": "nominal", "sort": None, "legend": {"title": None}},
            "tooltip": [{"field": "what", "title": "what"}, tip("at", "s"), tip("value", unit or "value")],
        },
    }
    layers = [lines]
    if begin:
        layers.append(
            {
                "data": {"values": [{"at": begin}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "opacity": 0.6},
                "encoding": {"x": x},
            }
        )
    note = "what comes before the dashed line does not count" if begin else "all of it counts"
    return {**frame(title, note), "height": 190, "data": {"values": rows}, "layer": layers}


def percentiles(loads: Sequence[StoredLoad]) -> Spec:
    """The rarer, the farther to the right: the tail is what the picture is for."""
    rows = [
        {"load": load.label, "rarity": 1 / max(1 - share, 1e-6), "value": value, "share": share * 100}
        for load in loads
        for value, share in load.document["latency_curve_ms"]
        if share < 1
    ]
    ticks = [1 / (1 - share) for share in _SHARES]
    named = " : ".join(
        f"datum.value < {tick * 1.01:.6g} ? 'P{share * 100:g}'"
        for share, tick in zip(_SHARES, ticks, strict=True)
    )
    return {
        **frame("Latency by percentile", "of answers in the measured part; a logarithmic scale of rarity"),
        "height": 230,
        "data": {"values": rows},
        "mark": {"type": "line", "style": "trace", "interpolate": "step-after"},
        "encoding": {
            "x": {
                "field": "rarity",
                "type": "quantitative",
                "scale": {"type": "log", "nice": False},
                "title": None,
                "axis": {"values": ticks, "labelExpr": f"{named} : ''"},
            },
            "y": {"field": "value", "type": "quantitative", "title": "ms", "scale": {"zero": False}},
            "color": {
                "field": "load",
                "type": "nominal",
                "sort": None,
                "legend": {"title": None} if len(loads) > 1 else None,
            },
            "tooltip": [{"field": "load", "title": "load"}, tip("share", "percentile"), tip("value", "ms")],
        },
    }


def throughput_against_latency(loads: Sequence[StoredLoad]) -> Spec:
    rows = [
        {
            "load": load.label,
            "kind": "closed loop" if load.document["offered_rate"] is None else "timetable",
            "throughput": load.document["throughput_rps"],
            "value": load.document["latency_ms"]["p95"],
            "low": load.document["latency_ms"]["intervals"]["p95"][0],
            "high": load.document["latency_ms"]["intervals"]["p95"][1],
        }
        for load in loads
        if load.document["latency_ms"]
    ]
    x = {
        "field": "throughput",
        "type": "quantitative",
        "title": "answers per second",
        "scale": {"zero": False},
    }
    y = {"field": "value", "type": "quantitative", "title": "latency P95, ms", "scale": {"zero": False}}
    colour = {"field": "kind", "type": "nominal", "sort": None, "legend": {"title": None}}
    return {
        **frame(
            "Throughput against latency",
            "one point a load, with 95 % intervals; the knee is where it turns up",
        ),
        "height": 240,
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "rule", "opacity": 0.5},
                "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "tooltip": [
                        {"field": "load", "title": "load"},
                        tip("throughput", "answers/s"),
                        tip("value", "ms"),
                    ],
                },
            },
        ],
    }


def shown(loads: Sequence[StoredLoad]) -> Sequence[StoredLoad]:
    """Those that get pictures of their own: the last ones of many."""
    return loads[-_MOST:]
