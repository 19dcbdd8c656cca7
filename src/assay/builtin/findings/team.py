"""The finding of `team`: what agents gained by working at the same time, what it cost each of them, and who worked when.

Each team was measured in pairs of legs, sequential and concurrent, which `assay.builtin.findings.team_pairs` compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.builtin.findings.team_pairs import is_team, team_findings, without_unit_doubts
from assay.builtin.findings.team_text import (
    agent_table,
    best_text,
    contention_brief,
    contention_text,
    figure_text,
    grades_text,
    heading,
    rows,
    share_text,
    team_document,
    times_text,
    typical_round,
    verdict,
)
from assay.model import Doubt, TrialReport, Verdict
from assay.model.page import Bar, Cell, Charts, Lane, PageSection, Table, Tile, Timeline
from assay.model.report import mark_simulated
from assay.model.team import Round, Stint, TeamFinding, options_asked
from assay.plugin import Column, Finding, build_table
from assay.units import seconds

_IN_FULL = 4
"""More teams than this are shown in one table in a terminal."""
_TONES = {Verdict.BETTER: "good", Verdict.WORSE: "bad"}


@dataclass(frozen=True, slots=True)
class TeamResults(Finding):
    """The teams of a run, one for each point, with both legs compared pair by pair.

    A pair has a sequential and a concurrent leg that ran back to back, so that slow changes of the
    machine and the server cancel. A pair with a failed leg is left out as a whole.
    """

    is_swept: ClassVar[bool] = False
    """The two legs of a team are compared pair by pair; to a sweep they would be one axis among others."""
    can_rerun: ClassVar[bool] = False
    is_listed_in_terminal: ClassVar[bool] = False

    teams: tuple[TeamFinding, ...]

    @classmethod
    def read(cls, trials: Sequence[TrialReport]) -> Finding | None:
        teams = team_findings(trials)
        return cls(teams) if teams else None

    @classmethod
    def adjust(cls, trial: TrialReport) -> TrialReport:
        return without_unit_doubts(mark_simulated(trial)) if is_team(trial) else trial

    @classmethod
    def asked_settings(cls, params: Mapping[str, object]) -> Mapping[str, object]:
        """The params of a team say what its agents are, of which the options can be read back."""
        agents = params.get("agents")
        if not isinstance(agents, Sequence):
            return params
        others = {name: value for name, value in params.items() if name != "agents"}
        return {**others, **options_asked(agents)}

    def document(self) -> Mapping[str, Any]:
        return {"teams": [team_document(team) for team in self.teams]}

    def doubts(self) -> Sequence[Doubt]:
        return [Doubt("team", text, trial=team.label) for team in self.teams for text in team.doubts]

    def sections(self, *, with_charts: bool) -> Sequence[PageSection]:
        several = len(self.teams) > 1
        speedup = Charts(())
        timelines: list[list[Charts]] = [[] for _ in self.teams]
        if with_charts:
            from assay.builtin.findings.team_charts import speedup_charts, timeline_charts

            speedup = Charts(speedup_charts(self.teams))
            timelines = [[Charts(timeline_charts(team))] for team in self.teams]
        overview = [
            PageSection(
                "Teams", [_overview(self.teams), speedup], finding=best_text(self.teams), anchor="teams"
            )
        ]
        return [
            *(overview if several else ()),
            *(
                team_section(
                    team,
                    [*([] if several else [speedup]), *timelines[number - 1]],
                    anchor=f"team-{number}",
                    is_detail=len(self.teams) > _IN_FULL,
                )
                for number, team in enumerate(self.teams, 1)
            ),
        ]

    def tiles(self) -> Sequence[Tile]:
        return list(_tiles(self.teams))


def team_section(
    team: TeamFinding, charts: Sequence[Charts] = (), *, anchor: str = "", is_detail: bool = False
) -> PageSection:
    figures = build_table(
        rows(team),
        Column("Figure", lambda row: row.name),
        Column("Value [interval]", lambda row: row.value),
        Column("What it is", lambda row: Cell(row.note, tone="quiet", brief=row.brief), is_words=True),
    )
    typical = typical_round(team)
    return PageSection(
        team.label,
        [*charts, figures, agent_table(team.agents), *([_timeline(typical, team)] if typical else [])]
        if team.rounds
        else [],
        subtitle=heading(team),
        finding=verdict(team),
        notes=[f"Targets on these figures: {grades_text(team)}"] if team.grades else (),
        tone=_TONES.get(team.comparison.verdict, "warn")
        if team.comparison and team.comparison.verdict
        else "warn",
        is_simulated=team.is_simulated,
        warnings=team.doubts,
        anchor=anchor,
        is_detail=is_detail,
    )


def _overview(teams: Sequence[TeamFinding]) -> Table:
    ordered = sorted(teams, key=lambda team: -(team.speedup.value if team.speedup else 0.0))
    return build_table(
        ordered,
        Column("Team", lambda team: team.label),
        Column("Speedup", lambda team: times_text(team.speedup)),
        Column("Efficiency", lambda team: share_text(team.figures.get("efficiency")), is_minor=True),
        Column("Contention", lambda team: contention_text(team.contention), is_minor=True),
        Column("Pairs", lambda team: Cell(str(len(team.rounds)), tone="quiet")),
    )


def _timeline(typical: Round, team: TeamFinding) -> Timeline:
    """The typical pair of legs: a lane for each agent and leg."""
    names = [agent.name for agent in team.agents]
    legs = (
        ("sequential", typical.sequential, typical.sequential_seconds),
        ("concurrent", typical.concurrent, typical.concurrent_seconds),
    )
    lanes = [
        Lane(leg, name, list(_bars(stints, name)), seconds(duration) if name == names[-1] else "")
        for leg, stints, duration in legs
        for name in names
    ]
    return Timeline(
        lanes,
        max(typical.sequential_seconds, typical.concurrent_seconds),
        f"the typical pair of {len(team.rounds)}: who worked when (█), and waited for a permit (░)",
    )


def _bars(stints: Sequence[Stint], name: str) -> Iterator[Bar]:
    for stint in stints:
        if stint.agent == name:
            yield Bar(stint.start - stint.waited, stint.start, is_waiting=True)
            yield Bar(stint.start, stint.end)


def _tiles(teams: Sequence[TeamFinding]) -> Iterator[Tile]:
    """Show the key figures of the team with the highest speedup."""
    best = max(teams, key=lambda team: team.speedup.value if team.speedup else 0.0)
    mark = " (simulated)" if best.is_simulated else ""
    name = best.label if len(teams) > 1 else f"{len(best.agents)} agents"
    most = "highest " if len(teams) > 1 else ""
    yield Tile(f"{most}true speedup", times_text(best.speedup), name + mark)
    yield Tile(
        "parallel efficiency",
        share_text(best.figures.get("efficiency")),
        f"of {best.at_once} at work at once",
    )
    if best.contention is not None:
        yield Tile("contention", share_text(best.contention.rate), contention_brief(best.contention))
    elif (throughput := best.figures.get("throughput_concurrent")) is not None:
        yield Tile("throughput of the team", figure_text(throughput), "all agents together")
