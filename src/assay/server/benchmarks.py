"""The endpoints of the performance specification, section 9.1."""

from __future__ import annotations

import asyncio
from pathlib import Path as FilePath
from time import monotonic
from typing import Annotated, Literal

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from assay.errors import LookupFailed, PlanError, format_unknown_name
from assay.model.queue import QueuedRun, QueueState
from assay.pipeline import compare as comparing
from assay.pipeline.agent_results import trials_of
from assay.pipeline.registry import find_registered, find_registered_agents, find_registered_suites
from assay.pipeline.regressions import Inquiry, regressions_of
from assay.report.documents.regressions import regressions_document
from assay.report.documents.specification import (
    head_to_head_document,
    multi_agent_document,
    time_series_document,
)
from assay.server.access import READ, RUN
from assay.server.answers import describe_errors, describe_route, respond
from assay.server.boards import BoardsNotReady
from assay.server.configuration import RunConfiguration
from assay.server.context import Context, ServerContext
from assay.server.parameters import Before, Name, PageSize, Timeframe, find_start
from assay.server.run_status import RunStatus, read_status
from assay.server.schemas import (
    AgentResults,
    ComparisonAnswer,
    LeaderboardAnswer,
    RegressionsAnswer,
    RunAnswer,
)
from assay.store.results import ResultFilter
from assay.store.store import Store

router = APIRouter(prefix="/benchmarks", tags=["benchmarks"])


class RunRequestBody(BaseModel):
    """Which suite to run with which agent; both are known by name to the operator."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"agent_id": "good", "suite_id": "desk", "configuration": {"limit": 5}}
        },
    )

    agent_id: Name
    suite_id: Name
    configuration: RunConfiguration = Field(default_factory=RunConfiguration)
    async_execution: bool = Field(False, description="Answer at once, with the id of the run.")


@router.post(
    "/run",
    openapi_extra=RUN,
    response_model=RunAnswer,
    responses={
        202: {"model": RunStatus, "description": "The run is queued or running."},
        **describe_errors(404),
    },
    summary="Run a suite with an agent",
)
async def run_benchmark(context: Context, body: RunRequestBody) -> Response:
    """The run is queued and executed by a separate process.

    Without `async_execution` the answer has its results, or is 202 with its id if that takes more than 60 seconds.
    """
    queued = await run_sync(submit_run, context, body)
    # Sleeps grow with the run: a short one is answered soon, a long one is not asked about all the time.
    begun, pause = monotonic(), 0.05
    while not body.async_execution and monotonic() - begun < context.sync_seconds:
        await asyncio.sleep(pause)
        pause = min(1.0, pause * 1.3)
        found = await run_sync(context.store.read_queued_run, queued.id)
        if found is not None and not found.state.is_open:
            return await run_sync(_answer_run, context.store, found)
    status = await run_sync(read_status, context.store, queued.id)
    return respond(status, 202, {"location": f"/runs/{queued.id}"})


def submit_run(context: ServerContext, body: RunRequestBody) -> QueuedRun:
    """Queue the run, if it may be run and there is room."""
    find_registered(context.settings, context.store, body.agent_id, body.suite_id)
    body.configuration.check(tuple(context.settings.server.get("agent_options", ())))
    if len(context.store.whole_queue()) >= context.max_queue:
        raise HTTPException(429, f"The queue is full ({context.max_queue} runs). Try again later.")
    configuration = body.configuration.model_dump(exclude_defaults=True)
    return context.queue.submit(context.store, body.agent_id, body.suite_id, configuration)


def _answer_run(store: Store, queued: QueuedRun) -> Response:
    """The results of a run that has ended; what could not be planned is a mistake in the request."""
    if queued.state is QueueState.REFUSED:
        raise PlanError(queued.error)
    status = read_status(store, queued.id)
    return respond(
        {
            "run_id": queued.id,
            "status": status["status"],
            "agent_id": queued.agent,
            "suite_id": queued.suite,
            "error": queued.error,
            "results": store.results(ResultFilter(run=queued.id), limit=1000),
        }
    )


@router.get(
    "/agents/{agent_id:path}/results", **describe_route(READ, AgentResults, "Results of an agent", 404)
)
def read_agent_results(
    context: Context,
    agent_id: Name,
    suite_id: Name | None = None,
    timeframe: Timeframe = "latest",
    limit: PageSize = 100,
    cursor: Before = None,
) -> Response:
    """The results of an agent, the newest first: the latest on each benchmark, or all of a period."""
    chosen = ResultFilter(agent_id, suite_id, since=find_start(timeframe), is_latest=timeframe == "latest")
    found = context.store.results(chosen, cursor, limit)
    if not found:
        _require_names(context, agent_id, suite_id)
    return respond(
        {
            "agent_id": agent_id,
            "suite_id": suite_id,
            "timeframe": timeframe,
            "results": found,
            "next_cursor": found[-1]["id"] if len(found) == limit else None,
        }
    )


def _require_names(context: ServerContext, agent: str, suite: str | None) -> None:
    """LookupFailed for names that are neither registered nor in any result."""
    store, settings = context.store, context.settings
    agents = {*store.agents_with_trials(), *find_registered_agents(settings, store)}
    if agent not in agents:
        raise LookupFailed(format_unknown_name(agent, "agents", agents))
    if suite is not None and suite not in (
        known := {*store.categories(), *find_registered_suites(settings, store)}
    ):
        raise LookupFailed(format_unknown_name(suite, "suites", known))


@router.get(
    "/leaderboard", **describe_route(READ, LeaderboardAnswer, "Agents ranked by their latest results", 404)
)
async def read_leaderboard(
    context: Context,
    request: Request,
    category: Annotated[
        Name, Query(description="A category of suites; `overall` means all suites.")
    ] = "overall",
    metric: Annotated[
        Literal["all", "overall", "accuracy", "speed", "efficiency", "cost", "reliability"],
        Query(description="What to rank by; `all` ranks by the overall score."),
    ] = "all",
    limit: PageSize = 20,
) -> Response:
    """Agents whose difference may be noise share a tier. Before the first results there is no board.

    New results are in it within a second. With thousands of results they take longer to work in; until then the answer is the
    board from before, and `is_current` is false.
    """
    question = (category, metric, limit)
    try:
        found = context.boards.recent(question)
        if found is None:
            found = await run_sync(context.boards.read, question, limiter=context.boards.limiter)
    except BoardsNotReady:
        raise HTTPException(503, "The leaderboard is being computed. Try again in a moment.") from None
    return found.respond(request.headers.get("accept-encoding", ""))


class CompareRequestBody(BaseModel):
    """Which agents to compare, and on what."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"example": {"agent_ids": ["good", "bad"], "suite_id": "desk"}},
    )

    agent_ids: Annotated[
        list[Name],
        Field(
            min_length=2,
            max_length=20,
            description="Names, or name@version. The first two are `agent_a` and `agent_b`.",
        ),
    ]
    suite_id: Name
    comparison_type: Literal["head_to_head", "multi_agent", "time_series"] = "head_to_head"


@router.post("/compare", **describe_route(READ, ComparisonAnswer, "Compare agents on a suite", 404, 409))
def compare_agents(context: Context, body: CompareRequestBody) -> Response:
    """Two agents head to head, several in all pairs, or several versions in the order of time."""
    if len(set(body.agent_ids)) < len(body.agent_ids):
        raise PlanError("agent_ids: an agent is named twice.")
    key = ("compare", body.comparison_type, body.suite_id, *body.agent_ids)
    return context.answer(key, body.suite_id, lambda: _compare(context.store, body))


def _compare(store: Store, body: CompareRequestBody) -> Response:
    agents, suite = body.agent_ids, body.suite_id
    for agent in agents:
        _require_results(store, agent, suite)
    if body.comparison_type == "time_series":
        document = time_series_document(comparing.courses(store, agents, (), suite), agents)
    elif body.comparison_type == "multi_agent":
        sides = comparing.find_sides(store, agents, suite)
        matrix = comparing.all_pairs(store, agents, suite, sides=sides)
        reports = dict(zip(agents, sides.reports, strict=True))
        document = multi_agent_document(matrix, agents, reports, sides.doubts)
    elif len(agents) == 2:
        document = head_to_head_document(comparing.compare_refs(store, *agents, suite=suite), agents)
    else:
        raise PlanError(f"head_to_head compares two agents, not {len(agents)}. Use multi_agent.")
    return respond({**document, "suite_id": suite})


def _require_results(store: Store, agent: str, suite: str) -> None:
    """LookupFailed for anything but an agent with results on the suite: a word for a file or a run is no agent."""
    if FilePath(agent).suffix == ".json" or not trials_of(store, agent, suite):
        raise LookupFailed(
            format_unknown_name(agent, f"agents with results on '{suite}'", store.agents_with_trials())
        )


@router.get(
    "/agents/{agent_id:path}/regressions",
    **describe_route(READ, RegressionsAnswer, "What got worse in an agent", 404, 409),
)
def find_regressions(
    context: Context,
    agent_id: Name,
    baseline_version: Annotated[
        Name | None, Query(description="Compare with this version; by default with the one before.")
    ] = None,
    threshold: Annotated[
        float, Query(ge=0, le=10, allow_inf_nan=False, description="Losses up to this share are ignored.")
    ] = 0.1,
) -> Response:
    """The latest version of an agent held against a baseline, and change points in its history."""
    inquiry = Inquiry(agent_id, baseline_version=baseline_version, tolerance=threshold)
    # What people said of regressions is part of the answer.
    known = tuple(
        (regression.id, regression.state, regression.note)
        for regression in context.store.regressions(agent_id)
    )
    return context.answer(
        ("regressions", inquiry, known),
        None,
        lambda: respond(regressions_document(regressions_of(context.store, inquiry))),
    )
