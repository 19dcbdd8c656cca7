"""Charts of agents side by side on a benchmark."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from assay.plugin.charts import (
    Chart,
    Spec,
    agent_colour,
    between,
    build_name_axis,
    build_tips,
    draw,
    frame,
    nominal,
    numeric,
    quantity,
    tip,
)
from assay.plugin.figures import scale_for
from assay.report.cases import CaseRow, CaseTally
from assay.report.charts.radar import radar
from assay.report.charts.vega import label_points
from assay.report.side_by_side import (
    OUTCOMES,
    UNKNOWN,
    Contest,
    ContestRow,
    estimate_text,
    heading,
    outcome_numbers,
    rating_text,
    usd_text,
)
from assay.units import count

CASES = 300
"""More cases than this are thinned out in the matrix."""
_NAMED_CASES = 40
_LABELLED = 12


def contest_charts(contest: Contest, rows: Sequence[CaseRow]) -> list[Chart]:
    """What the contest has data for: ratings, quality against time and cost, outcomes, cases."""
    charts = [Chart(f"outcomes-{contest.key}", outcomes(contest))]
    if len(contest.shared) >= 3:
        charts.append(Chart(f"ratings-{contest.key}", radar(contest)))
    if sum(_has_place(entry) for entry in contest.entries) > 1:
        charts.append(Chart(f"tradeoff-{contest.key}", tradeoff(contest)))
    if rows:
        charts.append(Chart(f"cases-{contest.key}", matrix(contest, rows)))
    return charts


def _has_place(entry: ContestRow) -> bool:
    return entry.rating("accuracy").value is not None and entry.estimate("seconds") is not None


def tradeoff(contest: Contest) -> Spec:
    """Accuracy against time, with the cost of a solved case as size: up and to the left is better."""
    placed = [entry for entry in contest.entries if _has_place(entry)]
    times = [time.median for entry in placed if (time := entry.estimate("seconds"))]
    scale = scale_for("s", float(np.median(times)))
    rows = [_place(entry, scale.factor) for entry in placed]
    reach = np.array([row[end] for row in rows for end in ("low", "high")])
    x = quantity("x", f"median time ({scale.label})", reach)
    x["scale"]["padding"] = 40
    y = numeric(
        "y", title="accuracy", scale={"domain": [0, 1], "nice": False}, axis={"tickCount": 5, "format": ".1f"}
    )
    return {
        **frame(f"Accuracy, time and cost, {heading(contest)}", _cost_note(placed)),
        "height": 260,
        "data": {"values": rows},
        "layer": [*_marks(x, y), *label_points(rows, x, y, _LABELLED)],
    }


def _place(entry: ContestRow, factor: float) -> dict[str, Any]:
    """One agent as a point.

    Where there is no interval, both its ends are the point itself, so that the line has no length.
    """
    time, accuracy = entry.estimate("seconds"), entry.rating("accuracy")
    assert time is not None
    assert accuracy.value is not None
    cost = entry.ratings.usd_per_solved
    return {
        "trial": entry.label,
        "x": time.median / factor,
        "low": (time.median if time.low is None else time.low) / factor,
        "high": (time.median if time.high is None else time.high) / factor,
        "y": accuracy.value,
        "from": accuracy.value if accuracy.low is None else accuracy.low,
        "to": accuracy.value if accuracy.high is None else accuracy.high,
        "usd": cost if cost is not None and math.isfinite(cost) else 0.0,
        "known": usd_text(entry.ratings) != UNKNOWN,
        "accuracy": rating_text(accuracy),
        "seconds": estimate_text(entry, "seconds"),
        "cost": usd_text(entry.ratings),
    }


def _cost_note(placed: Sequence[ContestRow]) -> str:
    costs = [usd_text(entry.ratings) for entry in placed]
    if all(cost == UNKNOWN for cost in costs):
        return "the cost is unknown"
    if all(cost == "free" for cost in costs):
        return "all agents are free"
    return "larger points cost more per solved case" + (
        "; diamonds: cost unknown" if UNKNOWN in costs else ""
    )


def _marks(x: Spec, y: Spec) -> list[Spec]:
    """Intervals first, points on top of them.

    Agents of unknown cost are diamonds, so that unknown does not look cheap.
    """
    tips = build_tips(trial="agent", accuracy="accuracy", seconds="median time", cost="cost per solved case")
    colour = agent_colour(None)
    line = {"type": "rule", "style": "reach"}
    size = numeric("usd", scale={"domainMin": 0, "range": [110, 800]}, legend=None)
    shape = nominal("known", scale={"domain": [True, False], "range": ["circle", "diamond"]}, legend=None)
    return [
        {"mark": line, "encoding": {**between("x", x), "y": y, "color": colour}},
        {"mark": line, "encoding": {"x": x, **between("y", y, "from", "to"), "color": colour}},
        {
            "mark": {"type": "point", "style": "place", "filled": True},
            "encoding": {"x": x, "y": y, "color": colour, "size": size, "shape": shape, "tooltip": tips},
        },
    ]


def outcomes(contest: Contest) -> Spec:
    """What became of each agent's executions, as shares of them."""
    rows = [row for entry in contest.entries for row in _shares(contest, entry)]
    return {
        **frame(f"Outcomes, {heading(contest)}", "share of the measured executions"),
        "height": 32 * len(contest.entries),
        "data": {"values": rows},
        "mark": {"type": "bar", "style": "share", "height": 18},
        "encoding": {
            "y": build_name_axis(),
            "x": numeric(
                "from", title=None, scale={"domain": [0, 1]}, axis={"format": ".0%", "tickCount": 4}
            ),
            "x2": {"field": "to"},
            "color": nominal(
                "outcome",
                scale={"domain": [*OUTCOMES.values(), "unscored"], "range": "outcomes"},
                legend={"title": None},
            ),
            "tooltip": [
                {"field": "trial", "title": "agent"},
                {"field": "outcome", "title": "outcome"},
                tip("count", "executions"),
                tip("total", "of"),
            ],
        },
    }


def _shares(contest: Contest, entry: ContestRow) -> list[dict[str, Any]]:
    """The parts of one agent's bar, each from where the one before it ends."""
    numbers = outcome_numbers(contest, entry)
    whole = sum(number for _, number in numbers)
    rows, before = [], 0
    for name, number in numbers:
        if number:
            ends = {"from": before / whole, "to": (before + number) / whole}
            rows.append({"trial": entry.label, "outcome": name, "count": number, "total": whole} | ends)
        before += number
    return rows


def select_cases(rows: Sequence[CaseRow]) -> Sequence[CaseRow]:
    """All of them, or so many at even distances from the hardest to the easiest.

    Cases are sorted by difficulty, so an even choice keeps the shape of the picture, which the first 300 would not.
    """
    if len(rows) <= CASES:
        return rows
    places = np.linspace(0, len(rows) - 1, CASES).round().astype(int)
    return [rows[place] for place in places]


def matrix(contest: Contest, rows: Sequence[CaseRow]) -> Spec:
    """Mean score of every agent on every case, hardest case first."""
    picked = select_cases(rows)
    values = [
        _cell(row.case, entry.label, tally)
        for row in picked
        for entry, tally in zip(contest.entries, row.tallies, strict=True)
    ]
    thinned = (
        f"{count(len(picked))} of {count(len(rows))} cases, evenly picked, "
        if len(picked) < len(rows)
        else ""
    )
    judged = [value for value in values if value["score"] is not None]
    unjudged = [value for value in values if value["score"] is None]
    layers = [_cells(judged, len(picked), {"color": _score_colour()}, "cell")] if judged else []
    layers += [_cells(unjudged, len(picked), {}, "unjudged")] if unjudged else []
    return {
        **frame(f"Cases, {heading(contest)}", f"{thinned}mean score of each, hardest first"),
        "height": max(60, 30 * len(contest.entries)),
        "usermeta": {"labels": "wide"},
        "layer": layers,
    }


def _cell(case: str, agent: str, tally: CaseTally | None) -> dict[str, Any]:
    outcomes = (
        ", ".join(f"{n} {OUTCOMES.get(name, name)}" for name, n in tally.outcomes.items())
        if tally
        else "not done"
    )
    score = None if tally is None or tally.mean is None else round(tally.mean, 4)
    return {"case": case, "trial": agent, "score": score, "told": outcomes}


def _cells(values: list[dict[str, Any]], cases: int, colour: Spec, style: str) -> Spec:
    """The cells of the matrix.

    Those that were not judged are a layer of their own, as the colour scale has no place for "no score".
    """
    labels: Spec = (
        {"labels": True, "labelAngle": -55, "labelLimit": 90} if cases <= _NAMED_CASES else {"labels": False}
    )
    tips = [
        {"field": "case", "title": "case"},
        {"field": "trial", "title": "agent"},
        tip("score", "mean score"),
        {"field": "told", "title": "executions"},
    ]
    return draw(
        values,
        {"type": "rect", "style": style, "cursor": "pointer"},
        {
            "x": nominal(
                "case",
                sort=None,
                title=f"{count(cases)} cases",
                axis={**labels, "ticks": False, "domain": False},
            ),
            "y": build_name_axis(),
            "tooltip": tips,
            **colour,
        },
    )


def _score_colour() -> Spec:
    return numeric(
        "score",
        scale={"domain": [0, 1], "interpolate": "rgb"},
        legend={"title": "mean score", "gradientLength": 160, "tickCount": 3, "format": ".1f"},
    )
