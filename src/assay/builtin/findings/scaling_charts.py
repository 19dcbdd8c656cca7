"""Charts of growth: each metric against the number of entities, a line for each index.

They are kept apart from `scaling` so that commands without charts do not import the chart modules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.model import Estimate, Metric
from assay.plugin.charts import Chart, Spec, axis_scale, dot, frame, nominal, numeric, quantity, whisker
from assay.plugin.figures import scale_for, with_interval

if TYPE_CHECKING:
    from assay.builtin.findings.scaling import SizeSeries

_MOST = 12
"""Lines that can be told apart."""


def growth_charts(series: Sequence[SizeSeries]) -> list[Chart]:
    metrics = {growth.metric.name: growth.metric for size_series in series for growth in size_series.growths}
    return [
        Chart(f"growth-{metric.name}", _growth(series[:_MOST], metric, is_cut=len(series) > _MOST))
        for metric in metrics.values()
    ]


def _growth(series: Sequence[SizeSeries], metric: Metric, *, is_cut: bool) -> Spec:
    known: list[tuple[str, int, Estimate]] = [
        (size_series.label, size, estimate)
        for size_series in series
        for size, trial in zip(size_series.sizes, size_series.trials, strict=True)
        for estimate in trial.estimates
        if estimate.metric.name == metric.name
    ]
    scale = scale_for(metric.unit, float(np.median([estimate.median for _, _, estimate in known])))
    rows: list[dict[str, Any]] = [
        {
            "index": label,
            "size": size,
            "value": scale.of(estimate.median),
            "low": scale.of(estimate.median if estimate.low is None else estimate.low),
            "high": scale.of(estimate.median if estimate.high is None else estimate.high),
            "text": with_interval(estimate),
        }
        for label, size, estimate in known
    ]
    sizes = sorted({row["size"] for row in rows})
    x = numeric(
        "size",
        title="entities",
        scale=axis_scale(wide=True),
        axis={"values": sizes, "labelExpr": "format(datum.value, '~s')"},
    )
    y = quantity("value", scale.label, np.array([row[end] for row in rows for end in ("low", "high")]))
    colour = nominal("index", sort=None, legend={"title": None, "orient": "bottom", "columns": 2})
    common = {
        "x": x,
        "y": y,
        "color": colour,
        "tooltip": [{"field": "index"}, {"field": "text", "title": metric.name}],
    }
    note = "median with its interval" + (f", the first {_MOST} series" if is_cut else "")
    return {
        **frame(f"{metric.name} by number of entities", note),
        "height": 240,
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "line", "style": "thread"}, "encoding": common},
            whisker("y", common),
            dot(common),
        ],
    }
