"""Charts of teams: the speedup with its interval, and who worked when.

They are kept apart from `team` so that commands without charts do not import the chart modules.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.builtin.findings.team_text import times_text, typical_round
from assay.model.team import Round, Stint, TeamFinding
from assay.plugin.charts import (
    Chart,
    Spec,
    between,
    build_name_axis,
    build_tips,
    dot,
    draw,
    frame,
    nominal,
    numeric,
    quantity,
    whisker,
)
from assay.plugin.figures import scale_for


def speedup_charts(teams: Sequence[TeamFinding]) -> list[Chart]:
    """The speedups of all teams in one chart; none where no team has one."""
    known = [team for team in teams if team.speedup is not None]
    return [Chart("team-speedup", speedups(known))] if known else []


def timeline_charts(team: TeamFinding) -> list[Chart]:
    """Who worked when, in the typical pair of legs; none where no pair is whole."""
    typical = typical_round(team)
    return [Chart(f"team-timeline-{team.label}", timeline(team, typical))] if typical is not None else []


def speedups(teams: Sequence[TeamFinding]) -> Spec:
    rows = []
    for team in teams:
        figure = team.speedup
        assert figure is not None
        low, high = (figure.value if end is None else end for end in (figure.low, figure.high))
        row = {"trial": team.label, "value": figure.value, "low": low, "high": high}
        rows.append({**row, "text": times_text(figure), "ideal": team.at_once})
    rows.sort(key=lambda row: -float(str(row["value"])))
    ends = [float(str(row[key])) for row in rows for key in ("low", "high", "ideal")]
    x = quantity("value", "sequential ÷ concurrent wall time", np.array([1.0, *ends]))
    x["axis"]["grid"] = True
    lanes = {"y": build_name_axis(360), "tooltip": build_tips(trial="team", text="speedup")}
    simulated = ", simulated" if any(team.is_simulated for team in teams) else ""
    return {
        **frame(
            "True speedup", f"95 % intervals over pairs of legs{simulated}; ticks: as many as work at once"
        ),
        "height": max(60, 26 * len(rows)),
        "data": {"values": rows},
        "layer": [
            draw(
                [{"value": 1}],
                {"type": "rule", "strokeDash": [4, 4], "opacity": 0.6},
                {"x": numeric("value")},
            ),
            {
                "mark": {"type": "tick", "thickness": 2, "size": 14, "opacity": 0.5},
                "encoding": {"x": {**x, "field": "ideal"}, "y": lanes["y"]},
            },
            whisker("x", {"x": x, **lanes}),
            dot({"x": x, **lanes}),
        ],
    }


def timeline(team: TeamFinding, team_round: Round) -> Spec:
    """A lane for each agent and leg, one scale for both legs; the tick within a bar is the first token."""
    scale = scale_for("s", max(team_round.sequential_seconds, team_round.concurrent_seconds))
    rows = [
        _bar(leg, stint, scale.factor)
        for leg, stints in (("sequential", team_round.sequential), ("concurrent", team_round.concurrent))
        for stint in stints
    ]
    lanes = [f"{leg} · {agent.name}" for leg in ("sequential", "concurrent") for agent in team.agents]
    longest = max(team_round.sequential_seconds, team_round.concurrent_seconds) / scale.factor
    x = numeric(
        "start",
        title=f"{scale.label} after the leg began",
        scale={"domain": [0, longest], "nice": False},
    )
    y = nominal("lane", sort=lanes, title=None, axis={"grid": False, "labelLimit": 260})
    colour = nominal("agent", sort=None, legend=None)
    tips = build_tips("agent", "case", "took", "first_token")
    firsts = [row for row in rows if row["first"] is not None]
    simulated = ", simulated" if team.is_simulated else ""
    return {
        **frame(
            f"Who worked when: {team.label}",
            f"the pair of legs with the middle speedup, {team_round.speedup:.3g} ×{simulated}",
        ),
        "height": 30 * len(lanes),
        "layer": [
            draw(
                rows,
                {"type": "bar", "height": {"band": 0.62}, "stroke": "white", "strokeWidth": 0.6},
                {**between("x", x, "start", "end"), "y": y, "color": colour, "tooltip": tips},
            ),
            draw(
                firsts,
                {"type": "tick", "thickness": 1.5, "size": 18, "color": "white"},
                {"x": {**x, "field": "first"}, "y": y},
            ),
        ],
    }


def _bar(leg: str, stint: Stint, factor: float) -> dict[str, object]:
    first = None if stint.ttft is None else (stint.start + stint.ttft) / factor
    return {
        "lane": f"{leg} · {stint.agent}",
        "agent": stint.agent,
        "case": stint.case,
        "start": round(stint.start / factor, 6),
        "end": round(stint.end / factor, 6),
        "first": None if first is None else round(first, 6),
        "took": f"{(stint.end - stint.start) / factor:.4g}",
        "first_token": "–" if stint.ttft is None else f"{stint.ttft / factor:.4g}",
    }
