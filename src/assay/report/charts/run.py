"""Charts as Vega-Lite specifications: one definition for PNG files, the HTML page and any dashboard.

A specification is one view or layers of one, so that a page may set its width; it carries no colours: `themed`
adds them. Field names are fixed and texts are literals, so nothing that a user named is ever read as an expression.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from assay.model import AxisEffect, Estimate, Report, Series, TrialReport
from assay.plugin.charts import (
    Chart,
    Spec,
    Values,
    axis_scale,
    between,
    build_name_axis,
    dot,
    draw,
    frame,
    is_wide,
    nominal,
    numeric,
    quantity,
    tip,
    whisker,
)
from assay.plugin.figures import UnitScale, interval_text, scale_for, with_interval
from assay.report.charts.vega import short
from assay.report.figures import leading
from assay.units import show

POINTS = 2000
"""More executions than this are drawn as buckets of minimum, median and maximum."""

_STRIP = 60
"""Fewer values than this are shown one by one; a histogram of them would be guesswork."""
_NAMED = 60
"""More trials than this are drawn by rank, for their names would not be legible."""
_ROLLED = 5
"""Fewer places than this on the x axis get no rolling median."""


def run_charts(report: Report) -> list[Chart]:
    """Charts of the run as a whole: trials side by side, axes of a sweep, failures; contests have charts of their own."""
    axes = report.axes
    # Trials can share an axis only if they lead with the same metric: seconds and bytes have no common scale.
    report = replace(report, trials=tuple(trial for trial in report.trials if trial.ratings is None))
    metrics = [estimate.metric for trial in report.trials if (estimate := leading(trial))]
    is_comparable = len(metrics) > 1 and len(set(metrics)) == 1
    charts = [Chart("overview", overview(report))] if is_comparable else []
    charts += [Chart(f"axis-{effect.axis}-{effect.metric.name}", axis(effect)) for effect in axes]
    if any(trial.ok < sum(trial.counts.values()) for trial in report.trials):
        charts.append(Chart("status", statuses(report)))
    return charts


def trial_charts(trial: TrialReport, points: int = POINTS) -> list[Chart]:
    """Charts of one trial: its leading metric in full, the others' distributions, resources over time."""
    first = leading(trial)
    charts = []
    if first is not None and _drawable(trial, first):
        name = f"{trial.name}-{first.metric.name}"
        charts.append(Chart(f"distribution-{name}", distribution(trial, first)))
        if trial.ratings is None:  # cases stand in no order
            charts.append(Chart(f"iterations-{name}", iterations(trial, first, points)))
    varied = [e for e in trial.estimates if e is not first and _drawable(trial, e) and e.min != e.max]
    if trial.ratings is not None:  # of scores the matrix of cases tells more
        varied = [e for e in varied if not e.metric.name.startswith("score")]
    charts += [Chart(f"distribution-{trial.name}-{e.metric.name}", distribution(trial, e)) for e in varied]
    return charts + resources(trial, points)


def _drawable(trial: TrialReport, estimate: Estimate) -> bool:
    series = trial.series.get(estimate.metric.name)
    return series is not None and len(_finite(series.values)) > 1


def distribution(trial: TrialReport, estimate: Estimate) -> Spec:
    """Every value, or for many an exact histogram, with the median and its interval."""
    values = _finite(trial.series[estimate.metric.name].values)
    scale = scale_for(estimate.metric.unit, float(np.median(values)))
    scaled = values / scale.factor
    x = quantity("value", scale.label, scaled)
    body = _strip(scaled, x) if len(scaled) < _STRIP else _histogram(scaled, x)
    return {
        **frame(f"Distribution of {estimate.metric.name}", _behind(trial, estimate)),
        "height": 110 if len(scaled) < _STRIP else 200,
        "layer": [*_interval_band(estimate, scale, x), body, _median_rule(estimate, scale, x)],
    }


def _strip(scaled: Values, x: Spec) -> Spec:
    """Every value as a dot at a made-up height, which only keeps equal values from hiding each other."""
    # The sequence of the golden ratio keeps equal values apart, at the same heights in every rendering.
    rows = [
        {"value": value, "height": round(0.12 + 0.76 * ((number * 0.6180339887) % 1), 3)}
        for number, value in enumerate(short(scaled))
    ]
    return draw(
        rows,
        {"type": "point", "style": "sample", "filled": True},
        {
            "x": x,
            "y": numeric("height", axis=None, scale={"domain": [0, 1], "zero": False}),
            "tooltip": [tip("value", x["title"])],
        },
    )


def _histogram(scaled: Values, x: Spec) -> Spec:
    """Counts in bins. Empty bins get no rectangle, which on a logarithmic axis would be drawn as a hairline."""
    counts, edges = _bins(scaled, wide=x["scale"]["type"] == "log")
    rows = [
        {"value": low, "to": high, "count": int(count), "floor": 0}
        for low, high, count in zip(short(edges[:-1]), short(edges[1:]), counts, strict=True)
        if count
    ]
    return draw(
        rows,
        {"type": "rect", "style": "bin"},
        {
            "x": x,
            "x2": {"field": "to"},
            "y": numeric("count", title="executions", axis={"tickCount": 4, "tickMinStep": 1}),
            "y2": {"field": "floor"},
            "tooltip": [tip("value", "from"), tip("to", "to"), tip("count", "executions")],
        },
    )


def _bins(scaled: Values, *, wide: bool) -> tuple[NDArray[np.intp], Values]:
    """Counts of all values in 12 to 60 equal bins, equal in ratio where the scale is logarithmic.

    Twice as many bins as Sturges (1926) proposes, since his number assumes a normal distribution and hides a second mode,
    which is what people look for in the times of a program.
    """
    axis = np.log(scaled) if wide else scaled
    by_sturges = 2 * (math.ceil(math.log2(len(axis))) + 2)
    edges = np.linspace(axis.min(), axis.max(), min(60, max(12, by_sturges)) + 1)
    if not (np.diff(edges) > 0).all():  # equal, or but for the last digits: there is nothing between them
        margin = abs(axis.min()) / 2 or 0.5
        edges = np.linspace(axis.min() - margin, axis.max() + margin, 4)
    counts, edges = np.histogram(axis, bins=edges)
    return counts, np.exp(edges) if wide else edges


def _interval_band(estimate: Estimate, scale: UnitScale, x: Spec) -> list[Spec]:
    if estimate.low is None or estimate.high is None:
        return []
    row = {"value": scale.of(estimate.low), "to": scale.of(estimate.high), "text": with_interval(estimate)}
    level = show(estimate.level * 100, "%")
    return [
        draw(
            [row],
            {"type": "rect", "style": "interval"},
            {
                "x": x,
                "x2": {"field": "to"},
                "y": {"value": 0},
                "y2": {"value": "height"},
                "tooltip": [{"field": "text", "title": f"median [{level} interval]"}],
            },
        )
    ]


def _median_rule(estimate: Estimate, scale: UnitScale, x: Spec) -> Spec:
    row = {"value": scale.of(estimate.median), "text": with_interval(estimate)}
    return draw(
        [row],
        {"type": "rule", "style": "median"},
        {"x": x, "tooltip": [{"field": "text", "title": "median"}]},
    )


def iterations(trial: TrialReport, estimate: Estimate, points: int = POINTS) -> Spec:
    """Values in their order, so that warming up, drift and stragglers are seen."""
    order, processes, values = _in_order(trial.series[estimate.metric.name])
    scale = scale_for(estimate.metric.unit, float(np.median(values)))
    scaled = values / scale.factor
    y = quantity("value", scale.label, scaled)
    several = len(np.unique(order)) > 1
    x = numeric(
        "order",
        title="repetition" if several else "execution",
        scale={"zero": False, "nice": False, "padding": 6},
        axis={"tickMinStep": 1, "format": "d"},
    )
    if not several:
        order = np.arange(len(values))
    layers, note = (
        (_buckets(order, scaled, x, y, points), f"minimum, median and maximum of {len(values):,} executions")
        if len(values) > points
        else (
            _dots(order, processes, scaled, x, y),
            "each execution, with the rolling median"
            if len(np.unique(order)) >= _ROLLED
            else "each execution",
        )
    )
    return {
        **frame(f"{estimate.metric.name} by {x['title']}", note),
        "height": 200,
        "layer": [layer for layer in layers if layer],
    }


def _in_order(series: Series) -> tuple[NDArray[np.int64], NDArray[np.int64], Values]:
    """Repetitions, processes and values, sorted by repetition. The sort is stable, so within a repetition processes stay in
    the order in which they were stored."""
    values = np.asarray(series.values, dtype=float)
    kept = np.isfinite(values)
    repetitions = np.asarray(series.repetitions, dtype=np.int64)[kept]
    processes = np.asarray(series.processes, dtype=np.int64)[kept]
    by_repetition = np.argsort(repetitions, kind="stable")
    return repetitions[by_repetition], processes[by_repetition], values[kept][by_repetition]


def _dots(
    order: NDArray[np.int64], processes: NDArray[np.int64], scaled: Values, x: Spec, y: Spec
) -> list[Spec]:
    rows = [
        {"order": int(at), "process": int(process), "value": value}
        for at, process, value in zip(order, processes, short(scaled), strict=True)
    ]
    tips = [tip("value", y["title"]), tip("order", x["title"]), tip("process", "process")]
    encoding = {"x": x, "y": y, "tooltip": tips, **_process_colour(processes)}
    mark = {"type": "point", "style": "sample", "filled": True, "size": 26 if len(rows) < 400 else 14}
    return [draw(rows, mark, encoding), _rolling_line(order, scaled, x, y)]


def _process_colour(processes: NDArray[np.int64]) -> Spec:
    """A colour for each of a few processes, a ramp for many, none for one."""
    count = len(np.unique(processes))
    if count == 1:
        return {}
    few = count <= 8
    legend = {"title": "process"} if few else None
    return {"color": {"field": "process", "type": "nominal" if few else "ordinal", "legend": legend}}


def _rolling_line(order: NDArray[np.int64], scaled: Values, x: Spec, y: Spec) -> Spec:
    """The rolling median over repetitions, which shows warming up and drift that single dots hide."""
    places = np.unique(order)
    middles = np.array([np.median(scaled[order == place]) for place in places])
    if len(places) < _ROLLED:
        return {}
    rows = [
        {"order": int(place), "value": value}
        for place, value in zip(places, short(_rolling_median(middles)), strict=True)
    ]
    return draw(rows, {"type": "line", "style": "median", "interpolate": "monotone"}, {"x": x, "y": y})


def _rolling_median(values: Values) -> Values:
    """Compute the rolling median over a twentieth of the values, at least five; the window shrinks at both ends."""
    half = max(2, len(values) // 40)
    return np.array(
        [np.median(values[max(0, at - half) : at + half + 1]) for at in range(len(values))], dtype=float
    )


def _buckets(order: NDArray[np.int64], scaled: Values, x: Spec, y: Spec, points: int) -> list[Spec]:
    """Many executions as a band from minimum to maximum with the median in it.

    A sample of the points would be as small, but would drop exactly the rare slow executions that one looks for.
    """
    parts = np.array_split(np.arange(len(scaled)), max(50, min(400, points // 4)))
    rows = []
    for part in parts:
        if len(part):
            values = scaled[part]
            low, middle, high = short(np.array([values.min(), np.median(values), values.max()]))
            rows.append({"order": int(order[part[0]]), "low": low, "value": middle, "high": high})
    tips = [
        tip("order", f"{x['title']}, from"),
        *(
            tip(field, title)
            for field, title in (("low", "minimum"), ("value", "median"), ("high", "maximum"))
        ),
    ]
    return [
        draw(
            rows,
            {"type": "area", "style": "band"},
            {"x": x, **between("y", y), "tooltip": tips},
        ),
        draw(rows, {"type": "line", "style": "median"}, {"x": x, "y": y, "tooltip": tips}),
    ]


def resources(trial: TrialReport, points: int = POINTS) -> list[Chart]:
    """CPU, memory and I/O over time, from the samples that the psutil instrument left."""
    rows = _samples(trial)
    if len(rows) < 2:
        return []
    kinds = (
        ("cpu", "CPU use of the process tree", {"cpu_percent": "CPU"}, "%"),
        ("memory", "Memory of the process tree", {"rss_bytes": "resident"}, "bytes"),
        ("io", "Bytes read and written", {"read_bytes": "read", "write_bytes": "written"}, "bytes"),
    )
    return [
        Chart(f"resources-{trial.name}-{name}", spec)
        for name, title, fields, unit in kinds
        if (spec := _over_time(rows, title, fields, unit, points))
    ]


def _samples(trial: TrialReport) -> list[dict[str, Any]]:
    """Sample rows of all artifacts with seconds since the first; a broken line is left out, not fatal."""
    rows = [
        {**row, "file": number}
        for number, artifact in enumerate(a for a in trial.artifacts if a.type == "psutil")
        for row in _json_lines(artifact.content)
        if isinstance(row.get("ts"), int | float)
    ]
    start = min((row["ts"] for row in rows), default=0.0)
    return sorted(({**row, "at": row["ts"] - start} for row in rows), key=lambda row: float(row["at"]))


def _json_lines(content: bytes) -> Iterable[Mapping[str, Any]]:
    for line in content.decode(errors="replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, Mapping):
            yield row


def _over_time(
    rows: list[dict[str, Any]], title: str, fields: Mapping[str, str], unit: str, points: int
) -> Spec | None:
    """One kind of samples over time; None where it was never more than 0, as I/O on some systems."""
    found = [
        {"at": row["at"], "value": row[field], "what": name, "file": row["file"]}
        for field, name in fields.items()
        for row in rows
        if isinstance(row.get(field), int | float) and math.isfinite(row[field])
    ]
    if not any(row["value"] for row in found):
        return None
    # Every n-th sample is drawn: resources change slowly between samples, unlike the times of executions above.
    every = math.ceil(len(found) / points)
    value, time = (scale_for(unit, max(row["value"] for row in found)), scale_for("s", rows[-1]["at"]))
    values = [
        {**row, "at": round(time.of(row["at"]), 6), "value": round(value.of(row["value"]), 6)}
        for row in found[::every]
    ]
    note = f"every {every}th of {len(found):,} samples" if every > 1 else f"{len(found):,} samples"
    return {
        **frame(title, note),
        "height": 150,
        "data": {"values": values},
        "mark": {"type": "line", "style": "trace", "interpolate": "monotone"},
        "encoding": _time_encoding(value.label, time.label, several=len(fields) > 1),
    }


def _time_encoding(value: str, time: str, *, several: bool) -> Spec:
    encoding: Spec = {
        "x": numeric("at", title=f"time ({time})", scale={"nice": False}),
        "y": numeric("value", title=value, axis={"tickCount": 4}),
        "detail": nominal("file"),
        "tooltip": [tip("at", time), tip("value", value)],
    }
    if several:
        encoding["color"] = nominal("what", legend={"title": None})
    return encoding


def axis(effect: AxisEffect) -> Spec:
    """The median with its interval at each value of one sweep axis."""
    scale = scale_for(effect.metric.unit, float(np.median(np.abs(effect.medians))))
    is_numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in effect.values
    )
    rows = [_axis_row(effect, number, scale, is_numeric) for number in range(len(effect.values))]
    x = _axis_x(effect, is_numeric)
    y = quantity("value", scale.label, np.array([row[end] for row in rows for end in ("low", "high")]))
    tips = [{"field": "label", "title": effect.axis}, {"field": "text", "title": effect.metric.name}]
    return {
        **frame(f"{effect.metric.name} by {effect.axis}", _axis_note(effect)),
        "height": 220,
        "data": {"values": rows},
        "layer": [
            *(
                [{"mark": {"type": "line", "style": "thread"}, "encoding": {"x": x, "y": y}}]
                if is_numeric
                else []
            ),
            whisker("y", {"x": x, "y": y, "tooltip": tips}),
            dot({"x": x, "y": y, "tooltip": tips}),
        ],
    }


def _axis_note(effect: AxisEffect) -> str:
    if effect.is_pooled:
        return "median of all points with each value, whatever the other axes"
    return _interval_note(effect.lows) + ", at each value"


def _interval_note(lows: Iterable[float | None]) -> str:
    return (
        "median with its interval"
        if any(low is not None for low in lows)
        else "median, too few units for intervals"
    )


def _axis_row(effect: AxisEffect, number: int, scale: UnitScale, is_numeric: bool) -> dict[str, Any]:
    value, median = effect.values[number], effect.medians[number]
    low, high = effect.lows[number], effect.highs[number]
    return {
        "at": value if is_numeric else str(value),
        "label": str(value),
        "value": scale.of(median),
        "low": scale.of(median if low is None else low),
        "high": scale.of(median if high is None else high),
        "text": interval_text(median, low, high, effect.metric.unit),
    }


def _axis_x(effect: AxisEffect, is_numeric: bool) -> Spec:
    if not is_numeric:
        return nominal("at", title=effect.axis, sort=None, axis={"labelAngle": 0})
    values = np.array([value for value in effect.values if isinstance(value, int | float)], dtype=float)
    scale = {**axis_scale(wide=is_wide(values)), "padding": 24}
    # By an expression: the format of an axis would write 300 as 0k, in the unit of its largest value.
    label = {"labelExpr": "format(datum.value, '~s')"}
    axis = {"values": sorted(values.tolist()), **label} if len(values) <= 10 else label
    return numeric("at", title=effect.axis, scale=scale, axis={**axis, "labelOverlap": True})


def overview(report: Report) -> Spec:
    """All trials on one axis, lowest first: a dot for the median, a line for its interval."""
    leads = [(label, e) for label, t in zip(labels(report), report.trials, strict=True) if (e := leading(t))]
    leads.sort(key=lambda pair: pair[1].median)
    metric = leads[0][1].metric
    scale = scale_for(metric.unit, float(np.median([abs(e.median) for _, e in leads])))
    rows = [_overview_row(rank, label, e, scale) for rank, (label, e) in enumerate(leads, 1)]
    x = quantity("value", scale.label, np.array([row[end] for row in rows for end in ("low", "high")]))
    x["axis"]["grid"] = True
    named = len(rows) <= _NAMED
    y = build_name_axis() if named else _build_rank_axis(len(rows))
    tips = [{"field": "trial", "title": "trial"}, {"field": "text", "title": metric.name}]
    return {
        **frame(f"{metric.name}, all trials", _interval_note(e.low for _, e in leads) + ", lowest first"),
        "height": 26 * len(rows) if named else 460,
        "data": {"values": rows},
        "layer": [
            whisker("x", {"x": x, "y": y, "tooltip": tips}),
            dot({"x": x, "y": y, "tooltip": tips}, small=not named),
        ],
    }


def _overview_row(rank: int, label: str, estimate: Estimate, scale: UnitScale) -> dict[str, Any]:
    low, high = estimate.low, estimate.high
    return {
        "rank": rank,
        "trial": label,
        "value": scale.of(estimate.median),
        "low": scale.of(estimate.median if low is None else low),
        "high": scale.of(estimate.median if high is None else high),
        "text": with_interval(estimate),
    }


def _build_rank_axis(count: int) -> Spec:
    return numeric(
        "rank",
        title="trials by rank",
        scale={"reverse": True, "domain": [0, count + 1], "nice": False},
        axis={"grid": False},
    )


def statuses(report: Report) -> Spec:
    """Executions that were not ok, by what became of them."""
    failing = [
        (label, trial)
        for label, trial in zip(labels(report), report.trials, strict=True)
        if trial.ok < sum(trial.counts.values())
    ]
    rows = [
        {"trial": label, "status": str(status), "count": count, "total": sum(trial.counts.values())}
        for label, trial in failing[:_NAMED]
        for status, count in trial.counts.items()
        if count and status != "ok"
    ]
    more = f", the first {_NAMED} of {len(failing)} trials" if len(failing) > _NAMED else ""
    most = max(sum(trial.counts.values()) - trial.ok for _, trial in failing)
    return {
        **frame("Failures", f"executions that were not ok{more}"),
        "height": 30 * min(len(failing), _NAMED),
        "data": {"values": rows},
        "mark": {"type": "bar", "height": 14},
        "encoding": _status_encoding(most),
    }


def _status_encoding(most: int) -> Spec:
    # A scale of few executions would otherwise be marked at halves.
    ticks: Spec = {"values": list(range(most + 1))} if most < 8 else {"tickCount": 6}
    return {
        "y": build_name_axis(),
        "x": numeric("count", title="executions", axis={**ticks, "format": ",d"}),
        "color": nominal("status", scale={"range": "diverging"}, legend={"title": None}),
        "tooltip": [
            {"field": "trial", "title": "trial"},
            {"field": "status", "title": "status"},
            tip("count", "executions"),
            tip("total", "of"),
        ],
    }


def labels(report: Report) -> list[str]:
    """The trials' names, told apart by their number where two are alike."""
    names = [trial.name for trial in report.trials]
    return [
        name if names.count(name) == 1 else f"{name} (trial {trial.stored.id})"
        for name, trial in zip(names, report.trials, strict=True)
    ]


def _behind(trial: TrialReport, estimate: Estimate) -> str:
    series = trial.series[estimate.metric.name]
    units = len(set(series.processes))
    place = {"case": "of {:,} cases", "load": ""}.get(series.unit, "in {:,} processes")
    sample_text = f"{estimate.n:,} executions" + (f" {place.format(units)}" if units > 1 and place else "")
    simulated = ", simulated" if estimate.metric.kind == "simulated" else ""
    return f"median {with_interval(estimate)}, {sample_text}{simulated}"


def _finite(values: Sequence[float]) -> Values:
    numbers: Values = np.asarray(values, dtype=float)
    kept: Values = numbers[np.isfinite(numbers)]
    return kept
