"""The chart of cost against quality, with the Pareto front."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.model.cost import ConfigurationCost, CostAnalysis, FrontStatus
from assay.plugin.charts import (
    Chart,
    Spec,
    between,
    build_tips,
    draw,
    frame,
    is_wide,
    nominal,
    numeric,
    quantity,
)
from assay.report.charts.vega import label_points
from assay.report.cost import amount_text

_DRAWN, _LABELLED = 60, 20
"""More names than this would cover each other."""
STATUSES = {
    FrontStatus.FRONT: "on the front",
    FrontStatus.TIED: "tied with the front",
    FrontStatus.DOMINATED: "off the front",
}


def front_chart(analysis: CostAnalysis) -> Chart | None:
    """Accuracy against cost per task, with intervals: up and to the left is better. None with fewer than two points."""
    found = [
        _point(configuration) for configuration in analysis.configurations if configuration.place is not None
    ]
    if len(found) < 2:
        return None
    rows = _choose(found)
    reach = np.array([row[end] for row in rows for end in ("low", "high", "x")])
    x = quantity("x", "cost per task ($)", reach)
    x["scale"]["padding"] = 40
    x["axis"] |= {"format": "~g"}
    if not is_wide(reach):
        # A free agent stands at 0, where everybody sees it.
        x["scale"]["zero"] = bool(reach.min() <= 0)
    y = numeric(
        "y",
        title="accuracy",
        scale={"zero": False, "nice": True},
        axis={"tickCount": 5, "format": ".0%"},
    )
    kind = "simulated agents, " if analysis.is_simulated else ""
    if len(rows) < len(found):
        kind += f"{len(rows)} of {len(found):,}, those on the front first; "
    title = f"Cost and quality, {analysis.suite}"
    spec: Spec = {
        **frame(title, f"{kind}lines are 95 % intervals; the dashed line is the Pareto front"),
        "height": 300,
        "layer": [*_front_line(rows, x, y), *_marks(rows, x, y), *label_points(rows, x, y, _LABELLED)],
    }
    return Chart(f"front-{analysis.suite}{'-simulated' if analysis.is_simulated else ''}", spec)


def _choose(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Choose as many points as a reader can tell apart.

    The front comes first, then what is tied with it; within these the most accurate, then the cheapest.
    """
    ranks = list(STATUSES.values())
    ordered = sorted(rows, key=lambda row: (ranks.index(row["status"]), -row["y"], row["x"]))
    kept = {row["trial"] for row in ordered[:_DRAWN]}
    return [row for row in rows if row["trial"] in kept]


def _point(configuration: ConfigurationCost) -> dict[str, Any]:
    cost, accuracy = configuration.whole.cost_per_task, configuration.whole.accuracy
    assert configuration.place is not None
    assert cost.value is not None
    assert accuracy.value is not None
    return {
        "trial": configuration.name,
        "x": cost.value,
        "low": cost.value if cost.low is None else cost.low,
        "high": cost.value if cost.high is None else cost.high,
        "y": accuracy.value,
        "from": accuracy.value if accuracy.low is None else accuracy.low,
        "to": accuracy.value if accuracy.high is None else accuracy.high,
        "status": STATUSES[configuration.place.status],
        "cost": amount_text(cost),
        "success": amount_text(configuration.whole.cost_per_success),
        "accuracy": amount_text(accuracy, is_share=True),
    }


def _front_line(rows: list[dict[str, Any]], x: Spec, y: Spec) -> list[Spec]:
    """Steps through the points that are on the front by their figures."""
    front = sorted(
        (row for row in rows if row["status"] == STATUSES[FrontStatus.FRONT]), key=lambda r: r["x"]
    )
    if len(front) < 2:
        return []
    return [draw(front, {"type": "line", "style": "edge", "interpolate": "step-after"}, {"x": x, "y": y})]


def _marks(rows: list[dict[str, Any]], x: Spec, y: Spec) -> list[Spec]:
    statuses = list(STATUSES.values())
    colour = nominal("status", scale={"domain": statuses, "range": "outcomes"}, legend={"title": None})
    shape = nominal("status", scale={"domain": statuses, "range": ["circle", "diamond", "cross"]})
    line = {"type": "rule", "style": "reach"}
    tips = build_tips(
        trial="configuration",
        cost="cost per task",
        success="cost per solved task",
        accuracy="accuracy",
        status="Pareto front",
    )
    point = {"type": "point", "style": "place", "filled": True, "size": 160}
    return [
        draw(rows, line, {**between("x", x), "y": y, "color": colour}),
        draw(rows, line, {"x": x, **between("y", y, "from", "to"), "color": colour}),
        draw(rows, point, {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tips}),
    ]
