"""The five charts of a workflow benchmark, under the names that FlowAgent gives its plots.

They are kept apart from `workflow` so that commands without charts do not import the chart modules.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from assay.builtin.findings.workflow_summary import ModelSummary
from assay.model import Status
from assay.plugin.charts import (
    Chart,
    Spec,
    agent_colour,
    between,
    build_name_axis,
    build_tips,
    dot,
    draw,
    frame,
    nominal,
    numeric,
    whisker,
)
from assay.plugin.figures import scale_for
from assay.plugin.radar import Corner, draw_radar
from assay.units import percent, seconds, size

_RESUME = {
    "completed_steps_detected_ratio": "detected as complete",
    "steps_skipped_ratio": "skipped",
    "steps_wasted": "done again",
    "steps_wrongly_skipped": "wrongly skipped",
}
_RADAR = {
    "success": "success",
    "speed": "speed",
    "results": "right results",
    "resume": "resume",
    "plan": "plan F1",
    "memory": "memory",
}
_LANES = {"y": build_name_axis(220), "color": agent_colour(None)}
_SPREAD = numeric("spread", scale={"domain": [-6, 6]})
"""Keeps equal runs from hiding each other."""


def build_charts(models: Sequence[ModelSummary]) -> list[Chart]:
    """Build the charts that there are data for.

    A run in which no workflow was completed has no times, and then no radar chart either.
    """
    charts = [
        Chart("execution_time", execution_time(models)) if _has(models, "run_seconds") else None,
        Chart("success_rate", success_rate(models)),
        Chart("smart_resume_metrics", smart_resume(models)) if _has(models, "steps_wasted") else None,
        Chart("resource_usage", resource_usage(models)) if _has(models, "steps_peak_bytes") else None,
        *_build_comparisons(models),
    ]
    return [chart for chart in charts if chart is not None]


def _build_comparisons(models: Sequence[ModelSummary]) -> list[Chart]:
    """Measured and simulated models are ranked apart, so neither is drawn against the best of the other."""
    measured = [model for model in models if not model.is_simulated]
    simulated = [model for model in models if model.is_simulated]
    name = "model_comparison_simulated" if measured else "model_comparison"
    return [
        *([Chart("model_comparison", model_comparison(measured))] if measured else []),
        *([Chart(name, model_comparison(simulated, "Simulated models side by side"))] if simulated else []),
    ]


def _has(models: Sequence[ModelSummary], metric: str) -> bool:
    return any(model.values(metric) for model in models)


def _name(model: ModelSummary) -> str:
    """Return the name of a model for axes and legends; simulated models are marked, unless their name says so."""
    return (
        f"{model.label} (simulated)" if model.is_simulated and "simulated" not in model.label else model.label
    )


def execution_time(models: Sequence[ModelSummary]) -> Spec:
    """Every run is a point, failed ones hollow; the tick is the median of those that succeeded."""
    longest = max(value for model in models for value in model.values("seconds"))
    scale = scale_for("s", longest)
    rows = [
        {
            "trial": _name(model),
            "value": scale.of(e.measurements["seconds"]),
            "outcome": "succeeded" if e.status is Status.OK else "failed",
            "text": seconds(e.measurements["seconds"]),
            "spread": (number % 5) - 2,
        }
        for model in models
        for number, e in enumerate(model.executions)
        if "run_seconds" in e.measurements
    ]
    medians = [
        {"trial": _name(model), **_quartiles([scale.of(value) for value in model.durations()])}
        for model in models
        if model.durations()
    ]
    x = numeric(
        "value",
        title=f"{scale.label} for the plan and one whole run",
        scale={"zero": True, "nice": True},
        axis={"tickCount": 6, "grid": True},
    )
    box = {"type": "bar", "height": {"band": 0.5}, "opacity": 0.2}
    tick = {"type": "tick", "thickness": 3, "size": 30, "opacity": 0.9}
    point = {"type": "point", "size": 60, "filled": True, "opacity": 0.75}
    return {
        **frame("Execution time", "runs, with quartiles and median of those that succeeded"),
        "height": max(90, 54 * len(models)),
        "layer": [
            draw(medians, box, {**between("x", x), **_LANES}),
            draw(medians, tick, {"x": x, **_LANES}),
            draw(rows, point, {"x": x, **_LANES, **_outcome_channels(rows)}),
        ],
    }


def _outcome_channels(rows: Sequence[Mapping[str, Any]]) -> Spec:
    """Crosses for runs that failed; a legend only where there are both, and a spread so that equal runs do not hide each other."""
    outcomes = {str(row["outcome"]) for row in rows}
    return {
        "yOffset": _SPREAD,
        "shape": nominal(
            "outcome",
            scale={"domain": ["succeeded", "failed"], "range": ["circle", "cross"]},
            legend={"title": None, "orient": "top"} if len(outcomes) > 1 else None,
        ),
        "tooltip": build_tips("trial", "text", "outcome"),
    }


def _quartiles(values: Sequence[float]) -> dict[str, float]:
    low, middle, high = (float(value) for value in np.quantile(values, (0.25, 0.5, 0.75)))
    return {"low": low, "value": middle, "high": high}


def _share_axis(title: str) -> Spec:
    axis = {"format": "%", "tickCount": 5, "grid": True}
    return numeric("value", title=title, scale={"domain": [0, 1]}, axis=axis)


def success_rate(models: Sequence[ModelSummary]) -> Spec:
    rows: list[dict[str, Any]] = []
    for model in models:
        low, high = model.success_interval
        text = f"{model.succeeded} of {len(model.executions)}"
        rows.append(
            {"trial": _name(model), "value": model.success_rate, "low": low, "high": high, "text": text}
        )
    x = _share_axis("share of runs that succeeded")
    tips = build_tips(trial="model", text="succeeded")
    return {
        **frame("Success rate", "bars with 95 % intervals (Wilson)"),
        "height": max(70, 40 * len(models)),
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.55}, "opacity": 0.3},
                "encoding": {"x": x, **_LANES, "tooltip": tips},
            },
            whisker("x", {"x": x, **_LANES}),
            dot({"x": x, **_LANES}),
            {
                "mark": {"type": "text", "style": "note", "align": "left", "dx": 6},
                "encoding": {"x": {"datum": 0}, "y": _LANES["y"], "text": {"field": "text"}},
            },
        ],
    }


def smart_resume(models: Sequence[ModelSummary]) -> Spec:
    """Mean shares of all steps of the plan; the last two should be 0."""
    rows = []
    for model in models:
        for metric, name in _RESUME.items():
            pairs = [
                (e.measurements[metric], e.measurements["total_steps"])
                for e in model.executions
                if metric in e.measurements
            ]
            if pairs:
                is_ratio = metric.endswith("_ratio")
                share = statistics.fmean(value if is_ratio else value / total for value, total in pairs)
                rows.append({"trial": _name(model), "metric": name, "value": share, "text": percent(share)})
    y = nominal("metric", sort=list(_RESUME.values()), title=None, axis={"grid": False})
    base = {
        "x": _share_axis("share of the steps of the plan"),
        "y": y,
        "yOffset": {"field": "trial", "sort": None},
    }
    return {
        **frame("Smart resume", "interrupted at a random step and resumed; means over runs"),
        "height": 4 * (22 * len(models) + 16),
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "opacity": 0.85},
                "encoding": {**base, "color": agent_colour({"title": None, "orient": "top"})},
            },
            {
                "mark": {"type": "text", "style": "note", "align": "left", "dx": 4},
                "encoding": {**base, "text": {"field": "text"}},
            },
        ],
    }


def resource_usage(models: Sequence[ModelSummary]) -> Spec:
    """Peak memory and mean CPU of the processes of a run, each run a point."""
    peak = max(value for model in models for value in model.values("steps_peak_bytes"))
    scale = scale_for("bytes", peak)
    memory = _strip(
        models, "steps_peak_bytes", f"peak memory of all processes, {scale.label}", scale.factor, True
    )
    cpu = _strip(models, "steps_cpu_percent", "CPU while steps ran, % of one core", 1.0, False)
    framed = frame("Resource usage", "sampled over the process tree of each step while it ran")
    return {
        **{name: value for name, value in framed.items() if name != "width"},
        "usermeta": {"fixed": True},
        "hconcat": [memory, cpu],
        "spacing": 28,
    }


def _strip(models: Sequence[ModelSummary], metric: str, title: str, factor: float, has_names: bool) -> Spec:
    rows = [
        {"trial": _name(model), "value": value / factor, "spread": number % 5 - 2}
        for model in models
        for number, value in enumerate(model.values(metric))
    ]
    x = numeric("value", title=title, scale={"zero": True, "nice": True}, axis={"tickCount": 5})
    lanes = {"x": x, **_LANES} if has_names else {"x": x, **_LANES, "y": {**_LANES["y"], "axis": None}}
    medians = [
        {"trial": _name(model), "value": statistics.median(model.values(metric)) / factor}
        for model in models
        if model.values(metric)
    ]
    tick = {"type": "tick", "thickness": 3, "size": 26, "opacity": 0.9}
    return {
        "width": 270,
        "height": max(80, 44 * len(models)),
        "layer": [
            draw(medians, tick, lanes),
            {"data": {"values": rows}, **dot({**lanes, "yOffset": _SPREAD})},
        ],
    }


def model_comparison(models: Sequence[ModelSummary], title: str = "Models side by side") -> Spec:
    """A share is drawn as it is; a figure of which less is better as the lowest one ÷ it, so that the best is at the rim."""
    quickest = min(
        (statistics.median(model.durations()) for model in models if model.durations()), default=None
    )
    leanest = min((peak for model in models if (peak := model.mean("steps_peak_bytes"))), default=None)
    corners = {_name(model): _corners(model, quickest, leanest) for model in models}
    names = [
        name
        for place, name in enumerate(_RADAR.values())
        if any(found[place][1] for found in corners.values())
    ]
    kept = {
        label: [found[place] for place, name in enumerate(_RADAR.values()) if name in names]
        for label, found in corners.items()
    }
    note = "shares as they are; speed and memory: best ÷ own"
    return draw_radar(title, note, names, kept)


def _corners(model: ModelSummary, quickest: float | None, leanest: float | None) -> list[Corner]:
    """Compute the corners of a model in the radar chart, in the order of `_RADAR`.

    A corner has a value from 0 to 1 and the text that stands at it; the text is empty where the model has
    no such figure.
    """
    durations, peak = model.durations(), model.mean("steps_peak_bytes")
    time = statistics.median(durations) if durations else None
    shares = [model.mean(name) for name in ("right_results", "resume_detected_share", "plan_f1")]
    right, resume, plan = ((0.0, "") if share is None else (share, percent(share)) for share in shares)
    return [
        (model.success_rate, percent(model.success_rate)),
        (quickest / time, seconds(time)) if time and quickest else (0.0, ""),
        right,
        resume,
        plan,
        (leanest / peak, size(peak)) if peak and leanest else (0.0, ""),
    ]
