"""Charts of a stress test as a whole: the factors of each score, errors by kind, and the quality of the answers.

Charts of single scenarios over time are in `stress_timelines`.
"""

from __future__ import annotations

from assay.model.figure import Figure
from assay.model.stress import StressFinding
from assay.plugin.charts import Chart, Spec, build_tips, frame, nominal, numeric

_FACTORS = (
    ("sustained", "unbroken, or load sustained"),
    ("recovering", "recovery, faults that stay"),
    ("value", "score"),
)
"""One that did not break loses nothing by its load, however much of it came back in time: that is the first factor's."""


def stress_charts(finding: StressFinding) -> list[Chart]:
    """Those that there is something to draw for."""
    specs = {
        "stress-scores": scores(finding) if finding.scores else None,
        "stress-errors": errors_by_kind(finding),
        "stress-quality": quality(finding),
    }
    return [Chart(name, spec) for name, spec in specs.items() if spec is not None]


def scores(finding: StressFinding) -> Spec:
    """Each factor a column of coloured numbers, so that one sees what a score was lost by."""
    answered = "correct and on time" if finding.judged_by else "answered on time"
    factors = (("share", answered), *_FACTORS)
    rows = [
        {"scenario": score.scenario, "factor": title, "value": round(float(getattr(score, name)), 4)}
        for score in finding.scores
        for name, title in factors
    ]
    simulated = ", simulated" if finding.is_simulated else ""
    colour = numeric("value", scale={"domain": [0, 1]}, legend=None)
    written = numeric("value", format=".3~f")
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
            "x": nominal(
                "factor",
                sort=[title for _, title in factors],
                title=None,
                axis={"labelAngle": 0, "orient": "top", "grid": False},
            ),
            "y": nominal("scenario", sort=None, title=None, axis={"grid": False}),
            "tooltip": build_tips("scenario", "factor", "value"),
        },
    }


def quality(finding: StressFinding) -> Spec | None:
    """Scores of the answers under each pressure, with their intervals, beside those at the base rate; None where nothing was judged."""
    judged = [
        (scenario.scenario, scenario.correctness.score)
        for scenario in finding.scenarios
        if scenario.correctness is not None
    ]
    scores = [("at the base rate", finding.calm_score), *judged]
    rows = [
        {
            "where": pressure,
            "value": score.value,
            "low": _or(score.low, score),
            "high": _or(score.high, score),
        }
        for pressure, score in scores
        if score is not None
    ]
    if not judged:
        return None
    simulated = ", simulated" if finding.is_simulated else ""
    place = nominal("where", sort=None, title=None)
    colour = {"condition": {"test": "datum.where == 'at the base rate'", "value": "#888"}, "value": "#4c78a8"}
    return {
        **frame("Answer quality", f"mean score over cases, with 95 % intervals{simulated}"),
        "height": 28 * len(rows),
        "data": {"values": rows},
        "encoding": {"y": place, "color": colour},
        "layer": [
            {
                "mark": {"type": "rule", "strokeWidth": 2},
                "encoding": {
                    "x": numeric("low", scale={"domain": [0, 1]}, title="score of the answers"),
                    "x2": {"field": "high"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 60},
                "encoding": {
                    "x": numeric("value"),
                    "tooltip": build_tips("where", "value", "low", "high"),
                },
            },
        ],
    }


def _or(end: float | None, score: Figure) -> float:
    return score.value if end is None else end


def errors_by_kind(finding: StressFinding) -> Spec | None:
    """How many requests of each scenario failed, and as what; None where none did."""
    errors = [
        ("at the base rate", finding.calm_errors.kinds),
        *((scenario.scenario, scenario.errors) for scenario in finding.scenarios),
    ]
    rows = [
        {"scenario": name, "kind": kind, "count": count}
        for name, kinds in errors
        for kind, count in sorted(kinds.items(), key=lambda entry: -entry[1])
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
            "y": nominal("scenario", sort=places, title=None, axis={"grid": False}),
            "x": numeric("count", title="failed requests", axis={"tickCount": 5}),
            "color": nominal("kind", sort=None, legend={"title": None}),
            "tooltip": build_tips("scenario", "kind", "count"),
        },
    }
