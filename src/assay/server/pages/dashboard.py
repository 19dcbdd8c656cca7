"""The dashboard: the seven components of the specification for the chosen suite and agents, all on one page.

Each component also has a page of its own. A component that has nothing to show says what to do about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from fastapi import Query, Request, Response

from assay.errors import AssayError, PlanError, StoreError
from assay.model.page import Charts, PageSection
from assay.model.regression import HIGH
from assay.model.stress import STRESS
from assay.pipeline.report import report_of
from assay.report.pages.page import Page
from assay.report.pages.timeline import regressions_table, timeline_page
from assay.server.access import READ_PAGE
from assay.server.context import BeingComputed, Context, ServerContext
from assay.server.pages.boards import COMPUTING, describe_age, explain, show_prepared, with_regressions
from assay.server.pages.controls import choose_one, choose_several, write_address
from assay.server.pages.shell import page_router, show, show_page
from assay.server.parameters import Name
from assay.server.questions import AnalysisQuestion, PreparedAnswer
from assay.store.store import Store
from assay.text import shell_command
from assay.units import format_count

router = page_router()

_ROWS = 20
_CHARTS = 4
_IN_A_MOMENT = "These figures are being computed, and appear here in a moment."
_VOLUME = {"agents": [], "volume": 1000, "limit": 20}
"""As the page about costs asks by itself, so that both are computed once."""
Agents = Annotated[list[Name], Query(max_length=20)]


@dataclass(frozen=True, slots=True)
class DashboardChoice:
    """What the dashboard shows: a suite, its agents, and one or two of them that are looked at closely."""

    suite: str
    agents: Sequence[str]
    """All that have results on the suite, the best first."""
    a: str
    b: str
    is_asked: bool = False
    """Whether somebody has named one of the two."""
    is_known: bool = True
    """Whether the two were named or are known to be the best."""

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
        board, notice = _read_board(context, chosen_suite, agent)
    except PlanError as error:  # during its first run, and if that fails, there is nothing to rank
        return show_page(request, explain("Dashboard", error), "Dashboard")
    choice = choose(context, chosen_suite, board, a, b)
    costs, cost_notice = show_prepared(context, "Cost", AnalysisQuestion("cost", chosen_suite, _VOLUME))
    timeline, timeline_notice = _timeline(context, choice)
    head_to_head, pair_notice = _head_to_head(context, choice)
    sections = [
        *_rank(board),
        _costs(costs, cost_notice),
        timeline,
        head_to_head,
        _stress(context, choice),
        _alerts(store),
    ]
    facts = board.page.facts if board and board.page else []
    page = Page(chosen_suite, "dashboard", facts, sections)
    controls = [
        choose_one("suite", "Suite", chosen_suite, suites),
        choose_one("a", "Agent", choice.a, choice.agents),
        choose_one("b", "against", choice.b, choice.agents),
        choose_several("agent", "Radar", agent, choice.agents),
    ]
    return show_page(
        request, page, "Dashboard", "dashboard.html.j2", controls=controls, more=_find_pages(choice, agent),
        computing=notice or cost_notice or timeline_notice or pair_notice,
    )  # fmt: skip


def _read_board(
    context: ServerContext, suite: str, drawn: Sequence[str]
) -> tuple[PreparedAnswer | None, str]:
    """Leaderboard and radar, and what to say of their age; None while they are computed for the first time."""
    try:
        found = context.prepare(AnalysisQuestion("board", suite, {"drawn": drawn} if drawn else {}))
    except BeingComputed:
        return None, COMPUTING
    return found.answer, describe_age(found)


def _find_pages(choice: DashboardChoice, drawn: Sequence[str]) -> dict[str, str]:
    """The page that each component has of its own, for what is chosen."""
    pages: dict[str, tuple[str, dict[str, object]]] = {
        "leaderboard": ("leaderboard", {"suite": choice.suite}),
        "radar": ("radar", {"suite": choice.suite, "agent": drawn}),
        "timeline": ("timeline", {"agent": choice.a, "suite": choice.suite}),
        "head-to-head": ("compare", {"a": choice.a, "b": choice.b, "suite": choice.suite}),
        "cost": ("cost", {"suite": choice.suite}),
        "stress": ("stress", {"agent": choice.a}),
        "alerts": ("alerts", {}),
    }
    return {name: write_address(f"/ui/{page}", **query) for name, (page, query) in pages.items()}


def choose(
    context: ServerContext, suite: str, board: PreparedAnswer | None, a: str | None, b: str | None
) -> DashboardChoice:
    """What was asked for, and where nothing was, the best agents; until these are known, the first by name."""
    names = board.agents if board else context.store.agents_on(suite)
    first = a or (names[0] if names else "")
    second = b or next((name for name in names if name != first), "")
    is_asked = bool(a or b)
    return DashboardChoice(suite, names, first, second, is_asked, is_asked or board is not None)


def _rank(board: PreparedAnswer | None) -> Sequence[PageSection]:
    if board is not None and board.page is not None:
        return board.page.sections
    return [
        PageSection("Leaderboard", finding=COMPUTING, anchor="leaderboard"),
        PageSection("Five dimensions", finding=COMPUTING, anchor="radar"),
    ]


def _timeline(context: ServerContext, choice: DashboardChoice) -> tuple[PageSection, str]:
    title, anchor = f"Timeline of {choice.a}", "timeline"

    def build(answer: PreparedAnswer) -> PageSection:
        assert answer.timeline is not None
        page = timeline_page(with_regressions(context.store, answer.timeline), _CHARTS)
        if not page.sections:
            sentence = f"'{choice.a}' has one run on this suite. A second one begins its history."
            return PageSection(title, finding=sentence, anchor=anchor)
        return PageSection(title, page.sections, ", ".join(page.facts), page.verdict, anchor=anchor)

    question = AnalysisQuestion("timeline", choice.suite, {"agent": choice.a})
    return _look_closer(context, choice, PageSection(title, anchor=anchor), question, build)


def _head_to_head(context: ServerContext, choice: DashboardChoice) -> tuple[PageSection, str]:
    title, anchor = "Head to head", "head-to-head"
    if choice.pair is None:
        needed = "This needs two agents with results on this suite."
        return PageSection(title, finding=needed, anchor=anchor), ""
    a, b = choice.pair

    def build(answer: PreparedAnswer) -> PageSection:
        page = answer.page
        assert page is not None
        return replace(
            page.sections[0], title=page.title, finding=page.verdict, notes=page.reasons, anchor=anchor
        )

    question = AnalysisQuestion("head to head", choice.suite, {"a": a, "b": b})
    return _look_closer(context, choice, PageSection(title, anchor=anchor), question, build)


def _look_closer(
    context: ServerContext,
    choice: DashboardChoice,
    empty: PageSection,
    question: AnalysisQuestion,
    build: Callable[[PreparedAnswer], PageSection],
) -> tuple[PageSection, str]:
    """A component about the chosen agents, and what to say of its age; it is empty until it is known who the best agents are."""
    if not choice.is_known:
        return replace(empty, finding=COMPUTING), COMPUTING
    try:
        found = context.prepare(question, at_once=choice.is_asked)
        return build(found.answer), describe_age(found)
    except BeingComputed:
        return replace(empty, finding=_IN_A_MOMENT), _IN_A_MOMENT
    except StoreError:
        raise
    except AssayError as error:
        return replace(empty, finding=str(error)), ""


def _costs(page: Page, notice: str) -> PageSection:
    title, anchor = "Cost and performance", "cost"
    if not page.sections:
        return PageSection(title, finding=page.verdict or notice, anchor=anchor)
    first = page.sections[0]
    # The picture is what it takes here; the page of its own has the table, which is wide.
    charts = [block for block in first.blocks if isinstance(block, Charts)]
    return replace(first, title=title, anchor=anchor, blocks=charts or first.blocks)


def _stress(context: ServerContext, choice: DashboardChoice) -> PageSection:
    title, anchor = f"Stress test of {choice.a}", "stress"

    def build() -> PageSection:
        finding = report_of(context.store, run_ids[0]).findings[STRESS]
        headline = finding.headline()
        sections = finding.sections(with_charts=True)
        return PageSection(
            title, sections[:1], f"run {run_ids[0]}", headline.title if headline else "", anchor=anchor
        )

    run_ids = context.store.find_runs_of(STRESS, choice.a, 1)
    if not run_ids:
        sentence = f"'{choice.a}' has not been stressed yet: {shell_command('stress', choice.a)} --quick"
        return PageSection(title, finding=sentence, anchor=anchor)
    try:
        return context.keep_of_run(("stress", choice.a), run_ids[0], build)
    except StoreError:
        raise
    except AssayError as error:  # one component that cannot be shown does not keep the others from it
        return PageSection(title, finding=str(error), anchor=anchor)


def _alerts(store: Store) -> PageSection:
    """Open regressions of high severity, of every agent."""
    high = [regression for regression in store.open_regressions() if regression.severity in HIGH]
    if not high:
        return PageSection("Alerts", finding="No open regression is major or critical.", anchor="alerts")
    return PageSection(
        "Alerts",
        [regressions_table(high[:_ROWS])],
        finding=f"{format_count(len(high), 'open regression')} of high severity",
        anchor="alerts",
    )
