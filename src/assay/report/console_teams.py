"""Teams for the terminal: what working at once gained, whom it cost what, and who worked when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Verdict
from assay.model.team import Round, Stint, TeamFinding
from assay.report.screen import NARROW, bullet, joined, literal, new_table
from assay.report.teams import (
    AGENT_COLUMNS,
    agent_row,
    best_text,
    contention_text,
    grades_text,
    heading,
    rows,
    share_text,
    times_text,
    typical_round,
    verdict,
)
from assay.units import seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_IN_FULL = 4
"""More teams than this are told in one table."""
WIDE = 120
_COLOURS = ("blue", "yellow", "green", "magenta", "cyan", "red")


def print_teams(teams: Sequence[TeamFinding], console: Console) -> None:
    if len(teams) > 1:
        console.print(_overview(teams, narrow=console.width < NARROW), "", sep="\n")
        if told := best_text(teams):
            console.print(bullet("★", told, "cyan"), "", sep="\n")
    if len(teams) <= _IN_FULL:
        for team in teams:
            _print_team(team, console)


def _overview(teams: Sequence[TeamFinding], *, narrow: bool) -> object:
    table = new_table()
    table.add_column("Team", overflow="fold", min_width=16)
    for title in ("Speedup", *(() if narrow else ("Efficiency", "Contention")), "Pairs"):
        table.add_column(literal(title), justify="right", no_wrap=True)
    for team in sorted(teams, key=lambda one: -(one.speedup.value if one.speedup else 0.0)):
        wide = (
            []
            if narrow
            else [
                _parts(share_text(team.figures.get("efficiency"))),
                literal(contention_text(team.contention)),
            ]
        )
        table.add_row(
            literal(team.label),
            _parts(times_text(team.speedup)),
            *wide,
            literal(str(len(team.rounds)), "dim"),
        )
    return table


def _print_team(team: TeamFinding, console: Console) -> None:
    mark = literal("  simulated", "yellow") if team.is_simulated else literal("")
    console.print(joined(literal(team.label, "bold"), literal(f"  {heading(team)}", "dim"), mark))
    console.print(literal(verdict(team), _colour(team)))
    console.print()
    if not team.rounds:
        return
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in rows(team):
        value = _parts(row.value, "bold" if row.name == "speedup" else "")
        grid.add_row(
            literal(row.name), value, literal(row.brief if console.width < WIDE else row.note, "dim")
        )
    console.print(grid, "", sep="\n")
    _print_agents(team, console)
    if (one := typical_round(team)) is not None:
        _print_round(one, team, console)
    if team.grades:
        console.print(joined(literal("Targets  ", "dim"), literal(grades_text(team))))
        console.print()


def _colour(team: TeamFinding) -> str:
    ruled = team.comparison.verdict if team.comparison else None
    return {Verdict.BETTER: "green", Verdict.WORSE: "red"}.get(ruled, "yellow") if ruled else "yellow"


def _parts(text: str, style: str = "") -> Text:
    middle, bracket, ends = text.partition(" [")
    return joined(literal(middle, style), literal(bracket + ends, "dim"))


def _print_agents(team: TeamFinding, console: Console) -> None:
    narrow = console.width < NARROW
    left_out = {3, 5} if narrow else set()
    table = new_table()
    for number, title in enumerate(AGENT_COLUMNS):
        if number not in left_out:
            table.add_column(
                literal(title),
                justify="left" if not number else "right",
                no_wrap=bool(number),
                overflow="fold",
            )
    for agent in team.agents:
        cells = agent_row(agent)
        table.add_row(*(_parts(cell) for number, cell in enumerate(cells) if number not in left_out))
    console.print(table)
    deltas = "" if narrow else "; Δ is concurrent − sequential"
    console.print(literal(f"sequential → concurrent{deltas}", "dim"), "", sep="\n")


def _print_round(one: Round, team: TeamFinding, console: Console) -> None:
    """The typical pair of legs: each agent a lane, to one scale, so that the shorter leg is the shorter bar."""
    names = [agent.name for agent in team.agents]
    room = max(20, min(console.width, 110) - 26 - max(map(len, names)))
    longest = max(one.sequential_seconds, one.concurrent_seconds)
    for leg, stints, took in (
        ("sequential", one.sequential, one.sequential_seconds),
        ("concurrent", one.concurrent, one.concurrent_seconds),
    ):
        for number, name in enumerate(names):
            lane = _lane([s for s in stints if s.agent == name], longest, room)
            parts = (
                literal(f"{leg if not number else '':<11}", "dim"),
                literal(f"{name:<{max(map(len, names))}} "),
                literal(lane, _COLOURS[number % len(_COLOURS)]),
                literal(f" {seconds(took)}" if number == len(names) - 1 else "", "dim"),
            )
            console.print(joined(*parts))
    console.print(
        literal(
            f"the typical pair of {len(team.rounds)}: who worked when (█), and waited for a permit (░)", "dim"
        )
    )
    console.print()


def _lane(stints: Sequence[Stint], longest: float, room: int) -> str:
    cells = [" "] * room
    for stint in stints:
        waited = range(_cell(stint.start - stint.waited, longest, room), _cell(stint.start, longest, room))
        for cell in waited:
            cells[cell] = "░"
        for cell in range(
            _cell(stint.start, longest, room),
            max(_cell(stint.end, longest, room), 1 + _cell(stint.start, longest, room)),
        ):
            cells[min(cell, room - 1)] = "█"
    return "".join(cells)


def _cell(moment: float, longest: float, room: int) -> int:
    return max(0, min(room, round(moment / longest * room))) if longest > 0 else 0
