"""Teams as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model.team import TeamFinding
from assay.report.marking import table, text
from assay.report.teams import AGENT_COLUMNS, agent_row, best_text, grades_text, heading, rows, verdict


def team_sections(teams: Sequence[TeamFinding]) -> list[str]:
    """Each team, after a word on which gains most."""
    said = best_text(teams)
    return [*([text(said)] if said else []), *map(team_section, teams)]


def team_section(team: TeamFinding) -> str:
    mark = " (simulated)" if team.is_simulated else ""
    parts = [
        f"## {text(team.label)}{mark}",
        f"{text(heading(team))}. {text(verdict(team))}",
        "\n".join(f"> ⚠ {text(doubt)}  " for doubt in team.doubts),
        table(
            ("Figure", "Value [interval]", "What it is"),
            [(row.name, text(row.value), text(row.note)) for row in rows(team)],
            right=(1,),
        ),
        table(
            AGENT_COLUMNS, [tuple(map(text, agent_row(agent))) for agent in team.agents], right=range(1, 7)
        ),
        "Sequential → concurrent; Δ is concurrent − sequential.",
        f"Targets, on these figures: {text(grades_text(team))}" if team.grades else "",
    ]
    return "\n\n".join(part for part in parts if part)
