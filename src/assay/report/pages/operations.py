"""Coverage, schedules, success and what a search found, as sections."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from urllib.parse import urlencode

from assay.model.coverage import STALE_DAYS, CoverageAges, CoverageCounts, find_coverage_state
from assay.model.figure import Share
from assay.model.page import Cell, ListItem, PageSection, Points, Table, Tile
from assay.model.schedule import ScheduleStatus
from assay.model.search import SearchResult
from assay.model.success import BENCHMARKED_GOAL, DETECTION_GOAL, SuccessFigures, SuccessReport
from assay.report.cron_words import describe_schedule
from assay.report.figures import NOTHING
from assay.report.pages.review import format_share
from assay.report.side_by_side import as_text
from assay.spec.cron import Schedule
from assay.units import format_count, percent, significant

_COVERAGE_TONES = {"fresh": "good", "stale": "warn", "never": "quiet"}
_AGE_NOTE = f"Age of the latest result; stale after {STALE_DAYS} days. {NOTHING}: never run."
_OUTCOME_TONES = {"completed": "good", "failed": "bad", "cancelled": "warn", "running": ""}
_NEXT_TIMES = 3
_SHOWN = 160
_HOURS = 24
_STATE_TONES = {
    "completed": "good",
    "failed": "bad",
    "running": "",
    "incomplete": "warn",
    "interrupted": "warn",
}


def coverage_section(ages: CoverageAges, agents: Sequence[str]) -> PageSection:
    """The agents as rows and the suites as columns; each cell says how old the latest result is."""
    rows = [
        [
            Cell(agent, ref=f"agents/{agent}"),
            *(_build_age_cell(ages.read_age(agent, suite)) for suite in ages.suites),
        ]
        for agent in agents
    ]
    table = Table(["Agent", *ages.suites], rows, words=range(1, len(ages.suites) + 1))
    return PageSection("Agents and suites", [table], notes=[_AGE_NOTE], anchor="coverage")


def coverage_counts_section(
    rows: Sequence[CoverageCounts], by: Literal["suite", "agent"], number: int
) -> PageSection:
    """A row for each suite or agent; `number` says of how many agents or suites each row counts the states."""
    others = "agent" if by == "suite" else "suite"
    table = Table(
        [by.title(), "Fresh", "Stale", "Never run", "Latest result"],
        [
            [
                Cell(row.name, ref=f"coverage?{urlencode([(by, row.name)])}"),
                *(
                    Cell(f"{count:,}", tone="" if count else "quiet")
                    for count in (row.fresh, row.stale, row.never)
                ),
                _build_plain_age_cell(row.latest_days),
            ]
            for row in rows
        ],
        words=(4,),
    )
    notes = [
        f"Of {format_count(number, others)}; stale after {STALE_DAYS} days. The rows that need the most runs come first."
    ]
    return PageSection(f"By {by}", [table], notes=notes, anchor="coverage")


def covered_section(title: str, kind: str, cells: Sequence[tuple[str, float | None]]) -> PageSection:
    """The agents on one suite, or the suites of one agent, with the age of their latest results."""
    rows = [
        [
            Cell(name, ref=f"{kind}s/{name}"),
            Cell(state := find_coverage_state(age), tone=_COVERAGE_TONES[state]),
            _build_plain_age_cell(age),
        ]
        for name, age in cells
    ]
    table = Table([kind.title(), "State", "Latest result"], rows, words=(1, 2))
    return PageSection(title, [table], notes=[_AGE_NOTE], anchor="coverage")


def _build_plain_age_cell(age: float | None) -> Cell:
    return Cell(NOTHING, tone="quiet") if age is None else Cell(format_age(age), sort=age)


def _build_age_cell(age: float | None) -> Cell:
    if age is None:
        return Cell(NOTHING, tone="quiet")
    state = find_coverage_state(age)
    return Cell(format_age(age), tone=_COVERAGE_TONES[state], note="stale" if state == "stale" else "")


def format_age(days: float) -> str:
    """
    >>> format_age(0.01), format_age(0.5), format_age(3.4)
    ('14 min', '12 h', '3 d')
    """
    if days >= 1:
        return f"{int(days)} d"
    hours = days * _HOURS
    return f"{int(hours)} h" if hours >= 1 else f"{int(60 * max(0.0, hours))} min"


def schedules_section(schedules: Sequence[ScheduleStatus], now: datetime) -> PageSection:
    """What is due next comes first."""
    rows = []
    for schedule in schedules:
        times = _find_next_times(schedule, now)
        rows.append(
            [
                Cell(schedule.suite, ref=f"suites/{schedule.suite}"),
                Cell(_describe(schedule.expression), note=f"{schedule.expression} ({schedule.zone})"),
                Cell(f"{times[0]:%a %d %b %Y %H:%M}" if times else "never", note=", ".join(f"{time:%a %d %b %H:%M}" for time in times[1:])),
                Cell(", ".join(schedule.agents) or "none", tone="" if schedule.agents else "warn"),
                Cell(schedule.outcome or "not yet", tone=_OUTCOME_TONES.get(schedule.outcome or "", "quiet"), note=f"{schedule.latest[0].due:%Y-%m-%d %H:%M} UTC" if schedule.latest else ""),
            ]
        )  # fmt: skip
    table = Table(["Suite", "When", "Next", "Agents", "Last outcome"], rows, words=(1, 2, 3, 4))
    return PageSection("Schedules", [table], format_count(len(schedules), "schedule"), anchor="schedules")


def scheduled_runs_section(schedules: Sequence[ScheduleStatus]) -> PageSection | None:
    """What was started for the latest time of each schedule."""
    rows = [
        [
            Cell(run.agent or "nothing", ref=f"agents/{run.agent}" if run.agent else ""),
            Cell(schedule.suite, ref=f"suites/{schedule.suite}"),
            Cell(f"{run.due:%Y-%m-%d %H:%M} UTC"),
            Cell(run.run_id or NOTHING, ref=f"runs/{run.run_id}" if run.run_id else ""),
            Cell(run.outcome or "running", tone=_OUTCOME_TONES.get(run.outcome or "running", "bad"), note=run.error),
        ]
        for schedule in schedules
        for run in schedule.latest
    ]  # fmt: skip
    if not rows:
        return None
    table = Table(["Agent", "Suite", "Due", "Run", "Outcome"], rows, words=(1, 2, 3, 4))
    return PageSection("Latest runs", [table], anchor="runs")


def _describe(expression: str) -> str:
    try:
        return describe_schedule(expression)
    except ValueError as error:
        return f"not a schedule: {error}"


def _find_next_times(schedule: ScheduleStatus, now: datetime) -> list[datetime]:
    times: list[datetime] = []
    due = schedule.next_due
    while due is not None and len(times) < _NEXT_TIMES:
        times.append(due)
        due = Schedule.parse(schedule.expression).next_after(due)
    return times


def success_tiles(figures: SuccessFigures) -> list[Tile]:
    """The figures of the last 30 days, those with a goal first."""
    return [
        _build_goal_tile("Agents benchmarked", figures.benchmarked, BENCHMARKED_GOAL, "agents"),
        _build_goal_tile("Regressions confirmed", figures.detection, DETECTION_GOAL, "judged regressions"),
        _build_tile("Caught by a gate", figures.caught, "regressions"),
        _build_tile("Opportunities resolved", figures.resolved, "found"),
    ]


def _build_goal_tile(label: str, share: Share, goal: float, of: str) -> Tile:
    tile = _build_tile(label, share, of)
    met = "" if share.value is None else " · met" if share.value >= goal else " · missed"
    return Tile(tile.label, tile.value, f"{tile.note} · goal {percent(goal)}{met}")


def _build_tile(label: str, share: Share, of: str) -> Tile:
    return Tile(label, format_share(share), f"{share.count} of {share.of} {of}")


def success_sections(report: SuccessReport) -> list[PageSection]:
    """The months, the current one first, and which agents are missing from the last 30 days."""
    rows = [
        [
            Cell(f"{month.begins:%B %Y}", note="so far" if month.ends >= report.now else ""),
            _build_share_cell(month.benchmarked),
            _build_share_cell(month.detection),
            _build_share_cell(month.caught),
            Cell(str(month.regressions)),
            Cell(_count(month.gates)),
            Cell(str(month.opportunities)),
            _build_share_cell(month.resolved),
        ]
        for month in report.months
    ]
    titles = ["Month", "Benchmarked", "Confirmed", "Caught by a gate", "Regressions", "Gates failed", "Opportunities", "Resolved"]  # fmt: skip
    notes = [
        "Confirmed: of the regressions that a person judged, those that were not false positives. Percentages have 95 % intervals (Wilson)."
    ]
    sections = [PageSection("Month by month", [Table(titles, rows)], notes=notes, anchor="months")]
    missing = [
        ListItem("has no result at all", "bad", name) for name in report.never_benchmarked
    ] + [
        ListItem("has no result in the last 30 days", "warn", name)
        for name in report.not_benchmarked
        if name not in report.never_benchmarked
    ]  # fmt: skip
    if missing:
        subtitle = format_count(len(missing), "agent")
        sections.append(PageSection("Not benchmarked", [Points(missing)], subtitle, anchor="missing"))
    return sections


def _build_share_cell(share: Share) -> Cell:
    return Cell(format_share(share), note=_count(share)) if share.of else Cell(NOTHING, tone="quiet")


def _count(share: Share) -> str:
    return f"{significant(share.count)} of {significant(share.of)}" if share.of else NOTHING


def search_sections(found: SearchResult, limit: int) -> list[PageSection]:
    """Each kind of thing that was found, under a heading of its own; at most `limit` of each were asked for."""
    sections = []

    def describe(things: Sequence[object]) -> str:
        return f"the first {limit}" if len(things) >= limit else ""

    for title, kind, names in (("Agents", "agents", found.agents), ("Suites", "suites", found.suites)):
        if names:
            rows = [[Cell(name, ref=f"{kind}/{name}")] for name in names]
            sections.append(PageSection(title, [Table([title[:-1]], rows)], describe(names), anchor=kind))
    if found.runs:
        run_rows = [
            [
                Cell(run.id, ref=f"runs/{run.id}"),
                Cell(run.name, note=run.label),
                Cell(run.state, tone=_STATE_TONES.get(run.state, "quiet")),
                Cell(f"{run.started:%Y-%m-%d %H:%M} UTC", tone="quiet"),
            ]
            for run in found.runs
        ]
        table = Table(["Run", "Name", "State", "Started"], run_rows, words=(1, 2, 3))
        sections.append(PageSection("Runs", [table], describe(found.runs), anchor="runs"))
    if found.cases:
        case_rows = [
            [
                Cell(case.case, ref=f"suites/{case.suite}"),
                Cell(case.suite, note=case.benchmark),
                Cell(as_text(case.input, _SHOWN), is_output=True),
            ]
            for case in found.cases
        ]
        table = Table(["Case", "Suite", "Input"], case_rows, words=(1, 2))
        sections.append(PageSection("Cases", [table], describe(found.cases), anchor="cases"))
    return sections
