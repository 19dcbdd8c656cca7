"""What takes long for suites with many agents, since every two of them are compared: leaderboards and costs.

A question is plain data and its answer can be sent as JSON, so that a process beside the server can work it out
(`analysis_worker.py`); with few agents the server does so itself. A request gets what `analyst.py` knows by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from assay.analysis.cost.analyse import Workload
from assay.model import Leaderboard, Standing
from assay.model.codec import from_plain
from assay.model.page import Chart, Charts, PageSection, Points, Table
from assay.model.regression import AgentTimeline
from assay.model.standing import Boards
from assay.pipeline.compare import compare_refs
from assay.pipeline.cost import analyse_stored_costs
from assay.pipeline.leaderboard import filter_of, matrices, overview
from assay.pipeline.regressions import timeline_of
from assay.plugin.json_data import format_strict_json, to_json_data
from assay.report.charts.radar import draw_standings
from assay.report.documents.cost import cost_document
from assay.report.pages.board import board_sections, leaderboard_page, matrix_page
from assay.report.pages.comparison import comparison_page
from assay.report.pages.cost import cost_page
from assay.report.pages.page import Page, page_from_plain
from assay.store.store import Store
from assay.units import format_count

_ROWS = 20
_DRAWN = 4
_MOST_IN_MATRIX = 30
"""Every two agents are compared in it, so it grows with the square of their number."""


@dataclass(frozen=True, slots=True)
class AnalysisQuestion:
    """What is asked of the results of a suite, or of all suites."""

    kind: str
    suite: str | None
    options: Mapping[str, object]

    @property
    def key(self) -> str:
        return format_strict_json([self.kind, self.suite, dict(self.options)])


@dataclass(frozen=True, slots=True)
class PreparedAnswer:
    """The answer: a page, or a JSON document for programs."""

    page: Page | None = None
    agents: Sequence[str] = ()
    """All that were ranked, the best first."""
    document: str = ""
    timeline: AgentTimeline | None = None


def answer_question(store: Store, question: AnalysisQuestion) -> PreparedAnswer:
    return QUESTIONS[question.kind](store, question.suite, **question.options)


def answer_from_plain(data: Mapping[str, object]) -> PreparedAnswer:
    built: dict[str, Any] = {**data}
    for name, build in (("page", page_from_plain), ("timeline", partial(from_plain, AgentTimeline))):
        if built.get(name) is not None:
            built[name] = build(built[name])
    return PreparedAnswer(**built)


def rank(store: Store, suite: str | None, *, category: str | None, metric: str, limit: int) -> PreparedAnswer:
    """The page of a leaderboard, with every dimension and every duel where one suite is looked at and agents are few."""
    boards = overview(store, filter_of(suite, category), metric)
    page = leaderboard_page(boards, limit, is_whole=not suite)
    if len(boards.each) == 1:
        page = replace(page, sections=[*page.sections, *_build_matrix(store, boards)])
    return PreparedAnswer(page)


def _build_matrix(store: Store, boards: Boards) -> list[PageSection]:
    board = boards.each[0]
    if len(boards.contenders[board.suite]) > _MOST_IN_MATRIX:
        return []
    return [
        replace(part, title=f"{part.title} · by dimension") if part.blocks[0].bars else part
        for part in matrix_page(matrices(store, filter_of(board.suite))).sections
        if isinstance(part.blocks[0], Table)
    ]


def show_board(store: Store, suite: str | None, *, drawn: Sequence[str] = ()) -> PreparedAnswer:
    """Leaderboard and radar for the dashboard; the best agents are drawn if none are named."""
    board = overview(store, filter_of(suite)).each[0]
    # Points of a sweep cannot be named as agents.
    names = [row.contender.agent for row in _rows(board) if "[" not in row.contender.agent]
    sections = [_build_leaderboard(board), _build_radar(board, list(drawn) or names[:_DRAWN])]
    return PreparedAnswer(Page(board.suite, "dashboard", _facts(board), sections), names)


def show_radar(store: Store, suite: str | None, *, drawn: Sequence[str] = ()) -> PreparedAnswer:
    """The radar on a page of its own, with the figures of all agents beneath."""
    found = show_board(store, suite, drawn=drawn)
    assert found.page is not None
    table, radar = found.page.sections
    title = f"Five dimensions on {found.page.title}"
    return replace(found, page=replace(found.page, title=title, kind="radar", sections=[radar, table]))


def _rows(board: Leaderboard) -> Sequence[Standing]:
    return board.standings or board.simulated


def _facts(board: Leaderboard) -> list[str]:
    latest = max((row.contender.latest for row in _rows(board) if row.contender.latest), default=None)
    return [
        *([board.category] if board.category else []),
        format_count(len(board.benchmarks), "benchmark"),
        format_count(len(_rows(board)), "agent"),
        *([f"latest result {latest:%Y-%m-%d %H:%M} UTC"] if latest else []),
    ]


def _build_leaderboard(board: Leaderboard) -> PageSection:
    first, *others = board_sections(board, _ROWS, has_finding=True)
    return replace(first, title="Leaderboard", anchor="leaderboard", blocks=[*first.blocks, *others])


def _build_radar(board: Leaderboard, agents: Sequence[str]) -> PageSection:
    spec = draw_standings(board, agents)
    if spec is None:
        sentence = "The agents share fewer than three rated dimensions, so there is nothing to draw."
        return PageSection("Five dimensions", finding=sentence, anchor="radar")
    return PageSection("Five dimensions", [Charts([Chart("radar", spec)])], anchor="radar")


def price(
    store: Store, suite: str | None, *, agents: Sequence[str] = (), volume: int = 1000, limit: int = 20
) -> PreparedAnswer:
    """The page about costs, with so many rows of each table: hundreds of agents would make it a megabyte."""
    page = cost_page(analyse_stored_costs(store, agents, suite, Workload(volume)))
    return PreparedAnswer(replace(page, sections=[_shorten(section, limit) for section in page.sections]))


def _shorten(section: PageSection, limit: int) -> PageSection:
    blocks = [
        replace(block, rows=block.rows[:limit])
        if isinstance(block, Table)
        else replace(block, points=block.points[:limit])
        if isinstance(block, Points)
        else _shorten(block, limit)
        if isinstance(block, PageSection)
        else block
        for block in section.blocks
    ]
    listed = [
        block.rows if isinstance(block, Table) else block.points
        for block in section.blocks
        if isinstance(block, Table | Points)
    ]
    omitted = sum(max(0, len(rows) - limit) for rows in listed)
    notes = [f"{format_count(omitted, 'more row')} left out: ask for more rows above"] if omitted else []
    return replace(section, blocks=blocks, notes=[*section.notes, *notes])


def price_document(
    store: Store, suite: str | None, *, agents: Sequence[str] = (), volume: int = 1000
) -> PreparedAnswer:
    found = analyse_stored_costs(store, agents, suite, Workload(volume))
    return PreparedAnswer(document=format_strict_json(to_json_data(cost_document(found))))


def trace(store: Store, suite: str | None, *, agent: str) -> PreparedAnswer:
    return PreparedAnswer(timeline=timeline_of(store, agent, suite))


def compare_pair(store: Store, suite: str | None, *, a: str, b: str) -> PreparedAnswer:
    """The page about two agents with its ratings alone, which is what the dashboard shows of it."""
    page = comparison_page(compare_refs(store, a, b, suite=suite), (a, b))
    return PreparedAnswer(replace(page, sections=page.sections[:1]))


QUESTIONS: Mapping[str, Callable[..., PreparedAnswer]] = {
    "leaderboard": rank,
    "board": show_board,
    "radar": show_radar,
    "timeline": trace,
    "head to head": compare_pair,
    "cost": price,
    "cost document": price_document,
}
