"""Charts of a stress test: the factors of each score, and latency over the time of each scenario."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.model.figure import Figure
from assay.model.stress import ScenarioFinding, StressFinding
from assay.report import stress as words
from assay.report.figures import scale_for
from assay.report.gallery import Gallery
from assay.report.vega import Chart, Spec, frame, quantity

_FACTORS = (("bearing", "unbroken, or load borne"), ("recovering", "recovery"), ("value", "score"))
"""One that did not break loses nothing by its load, however much of it came back in time: that is the first factor's."""


def stress_view(finding: StressFinding, gallery: Gallery) -> dict[str, Any]:
    """What the page needs: words, rows, and a place for each chart."""
    scenarios = [
        {
            "finding": one,
            "notes": [] if one.skipped else words.notes(one),
            "chart": gallery.hang(Chart(f"stress-{one.scenario}", over_time(one)))
            if len(one.moments) > 1
            else None,
        }
        for one in finding.scenarios
    ]
    return {
        "finding": finding,
        "headline": words.headline(finding),
        "setting": words.setting_text(finding),
        "columns": words.columns(finding),
        "rows": words.rows(finding),
        "scores": gallery.hang(Chart("stress-scores", scores(finding))) if finding.scores else None,
        "quality": gallery.hang(Chart("stress-quality", told)) if (told := quality(finding)) else None,
        "scenarios": scenarios,
    }


def scores(finding: StressFinding) -> Spec:
    """Each factor a column of coloured numbers, so that one sees what a score was lost by."""
    answered = "right and in time" if finding.judged_by else "answered in time"
    factors = (("share", answered), *_FACTORS)
    rows = [
        {"scenario": score.scenario, "factor": title, "value": round(float(getattr(score, name)), 4)}
        for score in finding.scores
        for name, title in factors
    ]
    simulated = ", simulated" if finding.is_simulated else ""
    scale = {"domain": [0, 1], "scheme": "redyellowgreen"}
    colour = {"field": "value", "type": "quantitative", "scale": scale, "title": None}
    is_dark = {"test": "datum.value < 0.15 || datum.value > 0.85", "value": "white"}
    ink = {"condition": is_dark, "value": "#222"}
    written = {"field": "value", "type": "quantitative", "format": ".3~f"}
    return {
        **frame("What each score is made of", f"the product of three factors between 0 and 1{simulated}"),
        "height": 28 * len(finding.scores),
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "rect", "stroke": "white", "strokeWidth": 2}, "encoding": {"color": colour}},
            {"mark": {"type": "text", "fontSize": 11}, "encoding": {"text": written, "color": ink}},
        ],
        "encoding": {
            "x": {
                "field": "factor",
                "type": "nominal",
                "sort": [title for _, title in factors],
                "title": None,
                "axis": {"labelAngle": 0, "orient": "top", "grid": False},
            },
            "y": {
                "field": "scenario",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {"grid": False},
            },
            "tooltip": [{"field": name, "title": name} for name in ("scenario", "factor", "value")],
        },
    }


def quality(finding: StressFinding) -> Spec | None:
    """Scores of the answers under each pressure, with their intervals, beside those in calm; None where nothing was judged."""
    judged = [
        (one.scenario, one.correctness.score) for one in finding.scenarios if one.correctness is not None
    ]
    told = [("in calm", finding.calm_score), *judged]
    rows = [
        {"where": where, "value": score.value, "low": _or(score.low, score), "high": _or(score.high, score)}
        for where, score in told
        if score is not None
    ]
    if not judged:
        return None
    simulated = ", simulated" if finding.is_simulated else ""
    place = {"field": "where", "type": "nominal", "sort": None, "title": None}
    colour = {"condition": {"test": "datum.where == 'in calm'", "value": "#888"}, "value": "#4c78a8"}
    return {
        **frame("How good the answers are", f"mean score over cases, with 95 % intervals{simulated}"),
        "height": 28 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": place, "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": {
                        "field": "low",
                        "type": "quantitative",
                        "scale": {"domain": [0, 1]},
                        "title": "score of the answers",
                    },
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {
                    "x": {"field": "value", "type": "quantitative"},
                    "tooltip": [{"field": name, "title": name} for name in ("where", "value", "low", "high")],
                },
            },
        ],
    }


def _or(end: float | None, score: Figure) -> float:
    return score.value if end is None else end


def over_time(found: ScenarioFinding) -> Spec:
    """P50 and P99 of the requests due at each time; a rule where it broke."""
    told = [one for one in found.moments if one.latency_p50 is not None]
    highest = max((one.latency_p99 or 0.0 for one in told), default=1.0)
    scale = scale_for("s", highest)
    rows = [
        {"at": round(one.begin, 3), "value": float(f"{value / scale.factor:.5g}"), "figure": figure}
        for one in told
        for figure, value in (("P50", one.latency_p50), ("P99", one.latency_p99))
        if value is not None
    ]
    shown = np.array([row["value"] for row in rows if isinstance(row["value"], float)] or [1.0])
    simulated = ", simulated" if found.is_simulated else ""
    layers: list[Spec] = [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 1.6},
            "encoding": {
                "x": {"field": "at", "type": "quantitative", "title": "seconds under load"},
                "y": quantity("value", f"latency, {scale.label}", shown),
                "color": {"field": "figure", "type": "nominal", "title": None},
            },
        }
    ]
    if found.breach is not None and found.breach.is_theirs:
        layers.append(
            {
                "data": {"values": [{"at": found.breach.at}]},
                "mark": {"type": "rule", "strokeDash": [4, 4], "opacity": 0.7},
                "encoding": {"x": {"field": "at", "type": "quantitative"}},
            }
        )
    note = (
        "by when requests were due; broken line: where it broke"
        if len(layers) > 1
        else "by when requests were due"
    )
    return {
        **frame(f"{found.scenario}: latency over time", f"{note}{simulated}"),
        "height": 160,
        "layer": layers,
    }
