"""The dashboard: the seven components of the specification for the chosen suite and agents, all on one page.

Each component also has a page of its own. A component that has nothing to show says what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Request, Response

from assay.analysis.cost.analyse import Workload
from assay.errors import AssayError, PlanError, StoreError
from assay.model import Leaderboard, Standing
from assay.model.page import Chart, Charts, PageSection
from assay.model.regression import HIGH
from assay.model.stress import STRESS
from assay.pipeline.compare import compare_refs
from assay.pipeline.cost import analyse_stored_costs
from assay.pipeline.leaderboard import filter_of, overview
from assay.pipeline.report import report_of
from assay.report.charts.radar import draw_standings
from assay.report.pages.board import board_sections
from assay.report.pages.comparison import comparison_page
from assay.report.pages.cost import cost_sections
from assay.report.pages.page import Page
from assay.report.pages.timeline import regressions_table, timeline_page, timeline_sections
from assay.server.access import READ_PAGE
from assay.server.context import Context, ServerContext
from assay.server.pages.boards import explain, read_timeline
from assay.server.pages.shell import page_router, show, show_page
from assay.server.parameters import Name
from assay.store.store import Store
from assay.units import format_count

router = page_router()

_ROWS = 20
_CHARTS = 4
_VOLUME = 1000
Agents = Annotated[list[Name], Query(max_length=20)]


@dataclass(frozen=True, slots=True)
class DashboardChoice:
    """What the dashboard shows: a suite, the agents that are drawn, and one or two that are looked at closely."""

    suite: str
    suites: Sequence[str]
    agents: Sequence[str]
    """All that have results on the suite, the best first."""
    drawn: Sequence[str]
    a: str
    b: str

    @property
    def pair(self) -> tuple[str, str] | None:
        return (self.a, self.b) if self.a and self.b and self.a != self.b else None


@router.get("/", openapi_extra=READ_PAGE)
def show_dashboard(
    request: Request,
    context: Context,
    suite: Name | None = None,
    agent: Agents = [],  # noqa: B006
    a: Name | None = None,
    b: Name | None = None,
) -> Response:
    store = context.store
    suites = list(store.categories())
    if not suites:
        return show(request, "welcome.html.j2", "Dashboard", address=str(request.base_url).rstrip("/"))
    chosen_suite = suite or suites[0]
    try:
        board = context.keep(
            ("board", chosen_suite), lambda: overview(store, filter_of(suite=chosen_suite)).each[0]
        )
    except PlanError as error:  # while its first run goes on, and if that fails, there is nothing to rank
        return show_page(request, explain("Dashboard", error), "Dashboard")
    choice = choose(board, suites, agent, a, b)
    sections = [
        _leaderboard(board),
        _radar(board, choice),
        _costs(context, choice),
        _timeline(context, choice),
        _head_to_head(context, choice),
        _stress(context, choice),
        _alerts(store),
    ]
    page = replace(_blank_page(chosen_suite), facts=_facts(board), sections=sections)
    return show_page(request, page, "Dashboard", "dashboard.html.j2", choice=choice, more=_find_pages(choice))


def _find_pages(choice: DashboardChoice) -> dict[str, str]:
    """The page that each component has of its own, for what is chosen."""
    asked = {
        "leaderboard": ("leaderboard", {"suite": choice.suite}),
        "timeline": ("timeline", {"agent": choice.a, "suite": choice.suite}),
        "head-to-head": ("compare", {"a": choice.a, "b": choice.b, "suite": choice.suite}),
        "cost": ("cost", {"suite": choice.suite}),
        "stress": ("stress", {"agent": choice.a}),
        "alerts": ("alerts", {}),
    }
    return {
        name: f"/ui/{page}" + (f"?{urlencode(query)}" if query else "")
        for name, (page, query) in asked.items()
    }


def choose(
    board: Leaderboard, suites: Sequence[str], drawn: Sequence[str], a: str | None, b: str | None
) -> DashboardChoice:
    """What was asked for, and where nothing was, the best agents. Points of a sweep cannot be named as agents."""
    names = [row.contender.agent for row in _rows(board) if "[" not in row.contender.agent]
    first = a or (names[0] if names else "")
    second = b or next((name for name in names if name != first), "")
    return DashboardChoice(board.suite, suites, names, [*drawn] or names[:4], first, second)


def _rows(board: Leaderboard) -> Sequence[Standing]:
    return board.standings or board.simulated


def _blank_page(title: str) -> Page:
    return Page(title, "dashboard", [], "", False, [], [])


def _facts(board: Leaderboard) -> list[str]:
    latest = max((row.contender.latest for row in _rows(board) if row.contender.latest), default=None)
    return [
        *([board.category] if board.category else []),
        format_count(len(board.benchmarks), "benchmark"),
        format_count(len(_rows(board)), "agent"),
        *([f"latest result {latest:%Y-%m-%d %H:%M} UTC"] if latest else []),
    ]


def _leaderboard(board: Leaderboard) -> PageSection:
    first, *others = board_sections(board, _ROWS, has_finding=True)
    return replace(first, title="Leaderboard", anchor="leaderboard", blocks=[*first.blocks, *others])


def _radar(board: Leaderboard, choice: DashboardChoice) -> PageSection:
    spec = draw_standings(board, choice.drawn)
    if spec is None:
        told = "The agents share fewer than three rated dimensions, so there is nothing to draw."
        return PageSection("Five dimensions", finding=told, anchor="radar")
    return PageSection("Five dimensions", [Charts([Chart("radar", spec)])], anchor="radar")


def _timeline(context: ServerContext, choice: DashboardChoice) -> PageSection:
    title, anchor = f"Timeline of {choice.a}", "timeline"

    def build() -> PageSection:
        timeline = read_timeline(context, choice.a, choice.suite)
        sections = timeline_sections(timeline, _CHARTS)
        if not sections:
            told = f"'{choice.a}' has one run on this suite. A second one begins its history."
            return PageSection(title, finding=told, anchor=anchor)
        page = timeline_page(timeline)
        return PageSection(title, sections, ", ".join(page.facts), page.verdict, anchor=anchor)

    return _or_reason(title, anchor, build)


def _head_to_head(context: ServerContext, choice: DashboardChoice) -> PageSection:
    title, anchor = "Head to head", "head-to-head"
    if choice.pair is None:
        return PageSection(title, finding="It takes two agents with results on this suite.", anchor=anchor)
    a, b = choice.pair

    def build() -> PageSection:
        page = comparison_page(compare_refs(context.store, a, b, suite=choice.suite), (a, b))
        ratings = page.sections[0]
        return replace(ratings, title=page.title, finding=page.verdict, notes=page.reasons, anchor=anchor)

    return _or_reason(title, anchor, lambda: context.keep(("head to head", a, b, choice.suite), build))


def _costs(context: ServerContext, choice: DashboardChoice) -> PageSection:
    title, anchor = "Cost and performance", "cost"

    def build() -> PageSection:
        made = analyse_stored_costs(context.store, (), choice.suite, Workload(_VOLUME))
        first = cost_sections(made[0])[0]
        return replace(first, title=title, anchor=anchor)

    return _or_reason(title, anchor, lambda: context.keep(("costs", choice.suite), build))


def _stress(context: ServerContext, choice: DashboardChoice) -> PageSection:
    title, anchor = f"Stress test of {choice.a}", "stress"

    def build() -> PageSection:
        store = context.store
        run_ids = store.find_runs_of(STRESS, choice.a, 1)
        if not run_ids:
            told = f"'{choice.a}' has not been stressed yet: assay stress {choice.a} --quick"
            return PageSection(title, finding=told, anchor=anchor)
        finding = report_of(store, run_ids[0]).findings[STRESS]
        headline = finding.headline()
        sections = finding.sections(with_charts=True)
        return PageSection(
            title, sections[:1], f"run {run_ids[0]}", headline.title if headline else "", anchor=anchor
        )

    return _or_reason(title, anchor, build)


def _alerts(store: Store) -> PageSection:
    """Open regressions of high severity, of every agent."""
    high = [one for one in store.open_regressions() if one.severity in HIGH]
    if not high:
        return PageSection("Alerts", finding="No open regression is major or critical.", anchor="alerts")
    return PageSection(
        "Alerts",
        [regressions_table(high[:_ROWS])],
        finding=f"{format_count(len(high), 'open regression')} of high severity",
        anchor="alerts",
    )


def _or_reason(title: str, anchor: str, build: Callable[[], PageSection]) -> PageSection:
    """The section, or why there is none: one component that cannot be shown does not keep the others from it."""
    try:
        return build()
    except StoreError:
        raise
    except AssayError as error:
        return PageSection(title, finding=str(error), anchor=anchor)
