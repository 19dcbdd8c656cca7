"""Charts of a stress test as a whole: the factors of each score, errors by kind, how good the answers are."""

from __future__ import annotations

from typing import Any

from assay.model.figure import Figure
from assay.model.stress import ErrorDetail, StressFinding
from assay.report import stress as words
from assay.report.gallery import Gallery
from assay.report.stress_timelines import scenario_charts
from assay.report.vega import Chart, Spec, frame

_FACTORS = (
    ("bearing", "unbroken, or load sustained"),
    ("recovering", "recovery, faults that stay"),
    ("value", "score"),
)
"""One that did not break loses nothing by its load, however much of it came back in time: that is the first factor's."""


def stress_view(finding: StressFinding, gallery: Gallery) -> dict[str, Any]:
    """What the page needs: words, rows, and a place for each chart."""
    scored = {score.scenario: score for score in finding.scores}
    scenarios = [
        {
            "finding": one,
            "notes": [] if one.skipped else words.notes(one, scored.get(one.scenario), with_details=False),
            "charts": [] if one.skipped else [gallery.hang(chart) for chart in scenario_charts(one)],
            "details": [_detail(detail) for detail in one.details],
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
        "errors": gallery.hang(Chart("stress-errors", spec)) if (spec := errors_by_kind(finding)) else None,
        "calm": words.calm_text(finding),
        "calm_details": [_detail(detail) for detail in finding.calm_errors.details],
        "scenarios": scenarios,
    }


def _detail(one: ErrorDetail) -> dict[str, Any]:
    """For a row of the table of errors."""
    ended = "" if one.exit_code is None else str(one.exit_code)
    return {"one": one, "exit_code": ended, "stderr": one.stderr.strip()}


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
    colour = {"field": "value", "type": "quantitative", "scale": {"domain": [0, 1]}, "legend": None}
    written = {"field": "value", "type": "quantitative", "format": ".3~f"}
    return {
        **frame("What each score is made of", f"the product of three factors between 0 and 1{simulated}"),
        "height": 28 * len(finding.scores),
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "rect", "style": "cell"}, "encoding": {"color": colour}},
            *(
                {
                    "transform": [{"filter": test}],
                    "mark": {"type": "text", "style": style},
                    "encoding": {"text": written},
                }
                for test, style in (
                    ("datum.value < 0.2 || datum.value > 0.8", "on_strong"),
                    ("datum.value >= 0.2 && datum.value <= 0.8", "on_pale"),
                )
            ),
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
    """Scores of the answers under each pressure, with their intervals, beside those at the base rate; None where nothing was judged."""
    judged = [
        (one.scenario, one.correctness.score) for one in finding.scenarios if one.correctness is not None
    ]
    told = [("at the base rate", finding.calm_score), *judged]
    rows = [
        {"where": where, "value": score.value, "low": _or(score.low, score), "high": _or(score.high, score)}
        for where, score in told
        if score is not None
    ]
    if not judged:
        return None
    simulated = ", simulated" if finding.is_simulated else ""
    place = {"field": "where", "type": "nominal", "sort": None, "title": None}
    colour = {"condition": {"test": "datum.where == 'at the base rate'", "value": "#888"}, "value": "#4c78a8"}
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


def errors_by_kind(finding: StressFinding) -> Spec | None:
    """How many requests of each scenario failed, and as what; None where none did."""
    told = [
        ("at the base rate", finding.calm_errors.kinds),
        *((one.scenario, one.errors) for one in finding.scenarios),
    ]
    rows = [
        {"scenario": name, "kind": kind, "count": count}
        for name, kinds in told
        for kind, count in sorted(kinds.items(), key=lambda one: -one[1])
    ]
    if not rows:
        return None
    places = list(dict.fromkeys(str(row["scenario"]) for row in rows))
    simulated = ", simulated" if finding.is_simulated else ""
    return {
        **frame("Errors by kind", f"requests that failed{simulated}"),
        "height": 30 * len(places),
        "data": {"values": rows},
        "mark": {"type": "bar", "style": "share"},
        "encoding": {
            "y": {
                "field": "scenario",
                "type": "nominal",
                "sort": places,
                "title": None,
                "axis": {"grid": False},
            },
            "x": {
                "field": "count",
                "type": "quantitative",
                "title": "failed requests",
                "axis": {"tickCount": 5},
            },
            "color": {"field": "kind", "type": "nominal", "sort": None, "legend": {"title": None}},
            "tooltip": [{"field": name, "title": name} for name in ("scenario", "kind", "count")],
        },
    }
