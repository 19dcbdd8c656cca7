"""Leaderboard, radar, timeline and cost: the pages that the commands of these names write, with controls."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Annotated, Literal

from fastapi import Query, Request, Response

from assay.errors import AssayError, StoreError
from assay.model.regression import AgentTimeline
from assay.pipeline.leaderboard import METRICS
from assay.pipeline.regressions import timeline_of
from assay.report.pages.page import Page
from assay.report.pages.timeline import timeline_page
from assay.server.access import READ_PAGE
from assay.server.context import BeingComputed, Context, Prepared, ServerContext
from assay.server.pages.controls import choose_number, choose_one, choose_several
from assay.server.pages.shell import page_router, show_page
from assay.server.parameters import Name
from assay.server.questions import AnalysisQuestion
from assay.store.store import Store
from assay.units import seconds

router = page_router()

Metric = Literal["all", "overall", "accuracy", "speed", "efficiency", "cost", "reliability"]
_MOST_BOARDS = 6
COMPUTING = "All pairs of agents are being compared. The figures appear here in a moment."


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
    # A board of each of many suites would be an unreadable page, and takes long to compute.
    board = suite or (known[0] if len(known) > _MOST_BOARDS else None)
    options = {"category": category, "metric": ranked_by, "limit": limit}
    page, notice = show_prepared(context, "Leaderboard", AnalysisQuestion("leaderboard", board, options))
    return show_page(request, page, "Leaderboard", controls=controls, computing=notice)


@router.get("/ui/radar", openapi_extra=READ_PAGE)
def show_radar(
    request: Request,
    context: Context,
    suite: Name | None = None,
    agent: Annotated[list[Name], Query(max_length=20)] = [],  # noqa: B006
) -> Response:
    """The five dimensions of chosen agents on a suite, and the figures behind the picture."""
    store = context.store
    suites = list(store.categories())
    chosen = suite or next(iter(suites), None)
    options = {"drawn": agent} if agent else {}
    page, notice = show_prepared(context, "Five dimensions", AnalysisQuestion("radar", chosen, options))
    controls = [
        choose_one("suite", "Suite", chosen, suites),
        choose_several("agent", "Agents", agent, store.agents_on(chosen) if chosen else []),
    ]
    return show_page(request, page, "Radar", controls=controls, computing=notice)


def _describe_no_suite(suites: Collection[str]) -> str:
    return "all suites" if len(suites) <= _MOST_BOARDS else "the one that ran last"


@router.get("/ui/timeline", openapi_extra=READ_PAGE)
def show_timeline(
    request: Request, context: Context, agent: Name | None = None, suite: Name | None = None
) -> Response:
    store = context.store
    agents = store.agents_with_trials()
    newest = store.newest_trials(suite=next(iter(store.categories()), "")) if agent is None else []
    chosen = agent or next((trial.agent for trial in newest), agents[0] if agents else "")
    suites = store.suites_of(chosen)
    tone, chosen_suite = "", suite or next(iter(suites), "")
    try:
        timeline = read_timeline(context, chosen, chosen_suite or None)
        page = timeline_page(timeline)
        tone = "bad" if any(regression.counts for regression in timeline.regressions) else ""
    except AssayError as error:
        page = explain("Timeline", error)
    controls = [
        choose_one("agent", "Agent", chosen, agents),
        choose_one("suite", "Suite", chosen_suite, suites),
    ]
    return show_page(request, page, "Timeline", controls=controls, verdict_tone=tone)


@router.get("/ui/cost", openapi_extra=READ_PAGE)
def show_costs(
    request: Request,
    context: Context,
    suite: Name | None = None,
    agent: Annotated[list[Name], Query(max_length=20)] = [],  # noqa: B006
    volume: Annotated[int, Query(ge=1, le=10**12)] = 1000,
    limit: Annotated[int, Query(ge=1, le=1000)] = 20,
) -> Response:
    store = context.store
    suites = list(store.categories())
    chosen = suite or next(iter(suites), None)
    controls = [
        choose_one("suite", "Suite", chosen, suites),
        choose_one("agent", "Agent", agent[0] if agent else None, store.agents_with_trials(), none="all"),
        choose_number("volume", "Tasks a month", volume, 1, 10**12),
        choose_number("limit", "Rows", limit, 1, 1000),
    ]
    question = AnalysisQuestion("cost", chosen, {"agents": agent, "volume": volume, "limit": limit})
    page, notice = show_prepared(context, "Cost", question)
    return show_page(request, page, "Cost", controls=controls, computing=notice)


def show_prepared(context: ServerContext, title: str, question: AnalysisQuestion) -> tuple[Page, str]:
    """The page that answers a question, and what to say if it is not up to date; both as far as they are known."""
    try:
        found = context.prepare(question)
    except BeingComputed:
        return Page(title, "explanation"), COMPUTING
    except AssayError as error:
        return explain(title, error), ""
    assert found.answer.page is not None
    return found.answer.page, describe_age(found)


def describe_age(found: Prepared) -> str:
    """What a page says whose figures are older than the results; empty where they are not."""
    if found.outdated_seconds is None:
        return ""
    return f"Newer results exist. These are {seconds(found.outdated_seconds)} old and being recomputed."


def read_timeline(context: ServerContext, agent: str, suite: str | None) -> AgentTimeline:
    """Read the timeline with its regressions in the states that people gave them since it was computed."""
    store = context.store
    found = context.keep(("timeline", agent, suite), suite, lambda: timeline_of(store, agent, suite))
    return with_regressions(store, found)


def with_regressions(store: Store, timeline: AgentTimeline) -> AgentTimeline:
    """A timeline from before with the regressions that are stored now, in the states that people gave them."""
    known = [
        regression for regression in store.regressions(timeline.agent) if regression.suite == timeline.suite
    ]
    return replace(timeline, regressions=tuple(known))


def explain(title: str, error: AssayError) -> Page:
    """Build the page that says why something cannot be shown, and what to do.

    A database that is away is not explained here: the error passes on, so that the request is answered as
    unavailable.
    """
    if isinstance(error, StoreError):
        raise error
    return Page(title, "explanation", verdict=str(error))
