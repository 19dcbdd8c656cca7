"""Charts that compare several loads: the curve of percentiles, and throughput against latency with its knee.

The knee is the lowest concurrency that reaches at least 95 % of the highest throughput: beyond it, more virtual users add
latency and hardly any throughput.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.plugin.charts import Chart, Spec, between, frame, nominal, numeric, tip
from assay.report.stored_loads import StoredLoad

_FEWEST_LEVELS = 3
_NEARLY = 0.95
_SHARES = (0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)


def load_charts(loads: Sequence[StoredLoad]) -> list[Chart]:
    charts = []
    if len(loads) > 1:
        charts.append(Chart("load-throughput-latency", throughput_against_latency(loads)))
    if loads and any(load.document["latency_curve_ms"] for load in loads):
        charts.append(Chart("load-percentiles", percentiles(loads[-6:])))
    return charts


def percentiles(loads: Sequence[StoredLoad]) -> Spec:
    """The rarer, the farther to the right: the tail is what the picture is for."""
    rows = [
        {"load": load.label, "rarity": 1 / max(1 - share, 1e-6), "value": value, "share": share * 100}
        for load in loads
        for value, share in load.document["latency_curve_ms"]
        if share < 1
    ]
    # The axis is one in how many requests is slower, on a logarithmic scale: P99 is 1 in 100, P99.9 is 1 in 1,000. Percentiles
    # on a linear scale would squeeze the whole tail into the last pixel. Vega's labels are an expression over these numbers.
    ticks = [1 / (1 - share) for share in _SHARES]
    named = " : ".join(
        f"datum.value < {tick * 1.01:.6g} ? 'P{share * 100:g}'"
        for share, tick in zip(_SHARES, ticks, strict=True)
    )
    return {
        **frame(
            "Latency by percentile", "answers of the measured part; the scale is logarithmic towards the tail"
        ),
        "height": 230,
        "data": {"values": rows},
        "mark": {"type": "line", "style": "trace", "interpolate": "step-after"},
        "encoding": {
            "x": numeric(
                "rarity",
                scale={"type": "log", "nice": False},
                title=None,
                axis={"values": ticks, "labelExpr": f"{named} : ''"},
            ),
            "y": numeric("value", title="ms", scale={"zero": False}),
            "color": nominal("load", sort=None, legend={"title": None} if len(loads) > 1 else None),
            "tooltip": [{"field": "load", "title": "load"}, tip("share", "percentile"), tip("value", "ms")],
        },
    }


def throughput_against_latency(loads: Sequence[StoredLoad]) -> Spec:
    """A point for each load, labelled with its concurrency or rate; of closed loops, joined in that order, with the knee."""
    rows = [_point(load) for load in loads if load.document["latency_ms"]]
    knee = knee_of(loads)
    for row in rows:
        row["is_knee"] = knee is not None and row["level"] == knee and row["kind"] == _CLOSED
        row["label"] += " (knee)" if row["is_knee"] else ""
    x = numeric(
        "throughput", title="answers per second", scale={"zero": False, "padding": 24}, axis={"tickCount": 8}
    )
    y = numeric("value", title="latency P95, ms", scale={"zero": False, "padding": 12})
    kinds = {row["kind"] for row in rows}
    legend = {"title": None} if len(kinds) > 1 else None
    colour = nominal("kind", sort=None, legend=legend)
    note = (
        "with 95 % intervals"
        if knee is None
        else f"beyond {knee:g} in flight, throughput grows by less than 5 %"
    )
    return {
        **frame("Throughput against latency", note),
        "height": 260,
        "data": {"values": rows},
        "layer": _knee_layers(x, y, colour),
    }


def _knee_layers(x: Spec, y: Spec, colour: Spec) -> list[Spec]:
    """The line through closed loops, intervals, points, a ring around the knee, and labels."""
    tips = [{"field": "load", "title": "load"}, tip("throughput", "answers/s"), tip("value", "ms")]
    return [
        {
            "transform": [{"filter": f"datum.kind === '{_CLOSED}'"}],
            "mark": {"type": "line", "style": "thread"},
            "encoding": {"x": x, "y": y, "order": numeric("level")},
        },
        {
            "transform": [{"filter": "isValid(datum.low)"}],
            "mark": {"type": "rule", "opacity": 0.5},
            "encoding": {"x": x, **between("y", y), "color": colour},
        },
        {
            "mark": {"type": "point", "filled": True, "size": 70},
            "encoding": {"x": x, "y": y, "color": colour, "tooltip": tips},
        },
        {
            "transform": [{"filter": "datum.is_knee"}],
            "mark": {"type": "point", "style": "knee", "size": 260},
            "encoding": {"x": x, "y": y},
        },
        {
            "mark": {"type": "text", "style": "note", "align": "right", "dx": -9, "dy": -9},
            "encoding": {"x": x, "y": y, "text": {"field": "label"}},
        },
    ]


_CLOSED, _OPEN = "closed loop", "open loop"


def _point(load: StoredLoad) -> dict[str, Any]:
    """One load as a point: a closed loop is known by its concurrency, an open one by its rate."""
    document = load.document
    latency, offered = document["latency_ms"], document["offered_rate"]
    level = level_of(load)
    return {
        "load": load.label,
        "kind": _CLOSED if offered is None else _OPEN,
        "level": level if offered is None else offered,
        "label": f"{level:g}" if offered is None else f"{offered:.3g}/s",
        "throughput": document["throughput_rps"],
        "value": latency["p95"],
        **dict(zip(("low", "high"), latency["intervals"]["p95"] or (None, None), strict=True)),
    }


def level_of(load: StoredLoad) -> float:
    """Requests in flight that a closed loop was asked for; where that is not known, those that there were."""
    return load.concurrency if load.concurrency is not None else round(load.document["concurrency"])


def knee_of(loads: Sequence[StoredLoad]) -> float | None:
    """The lowest concurrency of the closed loops with at least 95 % of the highest throughput; None for fewer than three levels."""
    best: dict[float, float] = {}
    for load in loads:
        if load.document["offered_rate"] is None:
            level = level_of(load)
            best[level] = max(best.get(level, 0.0), load.document["throughput_rps"])
    if len(best) < _FEWEST_LEVELS or not max(best.values()):
        return None
    return min(level for level, found in best.items() if found >= _NEARLY * max(best.values()))
