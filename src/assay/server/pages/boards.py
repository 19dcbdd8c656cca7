"""Leaderboard, timeline and cost: the pages that the commands of these names write, with controls."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from assay.analysis.cost.analyse import Workload
from assay.errors import AssayError, StoreError
from assay.model.page import PageSection, Table
from assay.model.regression import AgentTimeline
from assay.pipeline.cost import analyse_stored_costs
from assay.pipeline.leaderboard import METRICS, Boards, filter_of, matrices, overview
from assay.pipeline.timeline import timeline_of
from assay.report.pages.board import leaderboard_page, matrix_page
from assay.report.pages.cost import cost_page
from assay.report.pages.page import Page
from assay.report.pages.timeline import timeline_page
from assay.server.access import READ_PAGE
from assay.server.context import Context, ServerContext
from assay.server.pages.controls import choose_number, choose_one
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.store.standings import Filter
from assay.store.store import Store

router = page_router()

Metric = Literal["all", "overall", "accuracy", "speed", "efficiency", "cost", "reliability"]
_MOST_BOARDS = 6
_MOST_IN_MATRIX = 30
"""Every two agents are compared in it, so it grows with the square of their number."""


@router.get("/ui/leaderboard", openapi_extra=READ_PAGE)
def show_leaderboard(
    request: Request,
    context: Context,
    suite: Name | None = None,
    category: Name | None = None,
    metric: Metric = "overall",
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    store, ranked_by = context.store, "overall" if metric == "all" else metric
    categories = store.categories()
    controls = [
        choose_one("suite", "Suite", suite, categories, none=_describe_no_suite(categories)),
        choose_one("category", "Category", category, sorted(set(categories.values())), none="all"),
        choose_one("metric", "Ranked by", ranked_by, METRICS),
        choose_number("limit", "Agents", limit, 1, 1000),
    ]
    known = [name for name, kind in categories.items() if category in (None, kind)]
    # A board of each of many suites would be a page that nobody reads, and takes long to compute.
    shown = suite or (known[0] if len(known) > _MOST_BOARDS else None)
    key = ("leaderboard", shown, category, ranked_by, limit)
    try:
        page = context.keep(key, lambda: _rank(store, filter_of(shown, category), ranked_by, limit))
    except AssayError as error:
        page = explain("Leaderboard", error)
    return show_page(request, page, "Leaderboard", controls=controls)


def _rank(store: Store, chosen: Filter, metric: str, limit: int) -> Page:
    boards = overview(store, chosen, metric)
    page = leaderboard_page(boards.each, None if chosen.suite else boards.across, limit)
    if len(boards.each) > 1:
        return page
    return replace(page, sections=[*page.sections, *_matrix(store, boards)])


def _describe_no_suite(suites: Collection[str]) -> str:
    return "all suites" if len(suites) <= _MOST_BOARDS else "the one that ran last"


def _matrix(store: Store, boards: Boards) -> list[PageSection]:
    """Every dimension and every duel, where one suite is looked at and there are not too many agents."""
    board = boards.each[0]
    if len(boards.contenders[board.suite]) > _MOST_IN_MATRIX:
        return []
    return [
        replace(part, title=f"{part.title} · by dimension") if part.blocks[0].bars else part
        for part in matrix_page(matrices(store, filter_of(board.suite))).sections
        if isinstance(part.blocks[0], Table)
    ]


@router.get("/ui/timeline", openapi_extra=READ_PAGE)
def show_timeline(
    request: Request, context: Context, agent: Name | None = None, suite: Name | None = None
) -> Response:
    store = context.store
    agents = store.agents_with_trials()
    newest = store.newest_trials(suite=next(iter(store.categories()), "")) if agent is None else []
    chosen = agent or next((trial.agent for trial in newest), agents[0] if agents else "")
    suites = list(dict.fromkeys(trial.suite for trial in reversed(store.agent_trials(chosen)) if trial.suite))
    tone, shown = "", suite or next(iter(suites), "")
    try:
        timeline = read_timeline(context, chosen, shown or None)
        page = timeline_page(timeline)
        tone = "bad" if any(one.counts for one in timeline.regressions) else ""
    except AssayError as error:
        page = explain("Timeline", error)
    controls = [choose_one("agent", "Agent", chosen, agents), choose_one("suite", "Suite", shown, suites)]
    return show_page(request, page, "Timeline", controls=controls, verdict_tone=tone)


@router.get("/ui/cost", openapi_extra=READ_PAGE)
def show_costs(
    request: Request,
    context: Context,
    suite: Name | None = None,
    agent: Annotated[list[Name], Query(max_length=20)] = [],  # noqa: B006
    volume: Annotated[int, Query(ge=1, le=10**12)] = 1000,
) -> Response:
    store = context.store
    suites = list(store.categories())
    chosen = suite or next(iter(suites), None)
    controls = [
        choose_one("suite", "Suite", chosen, suites),
        choose_one("agent", "Agent", agent[0] if agent else None, store.agents_with_trials(), none="all"),
        choose_number("volume", "Tasks a month", volume, 1, 10**12),
    ]
    try:
        key = ("cost", chosen, tuple(agent), volume)
        page = context.keep(
            key, lambda: cost_page(analyse_stored_costs(store, agent, chosen, Workload(volume)))
        )
    except AssayError as error:
        page = explain("Cost", error)
    return show_page(request, page, "Cost", controls=controls)


def read_timeline(context: ServerContext, agent: str, suite: str | None) -> AgentTimeline:
    """With regressions in the states that people gave them since."""
    store = context.store
    found = context.keep(("timeline", agent, suite), lambda: timeline_of(store, agent, suite))
    return replace(
        found, regressions=tuple(one for one in store.regressions(agent) if one.suite == found.suite)
    )


def explain(title: str, error: AssayError) -> Page:
    """In place of what cannot be shown: why, and what to do. A database that is away is no such reason."""
    if isinstance(error, StoreError):
        raise error
    return Page(title, "explanation", [], str(error), False, [], [])
