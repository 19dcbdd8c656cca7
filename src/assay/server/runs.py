"""Runs: the queue, where each run stands, live progress, cancel and resume."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from time import monotonic
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from assay.model import RunState
from assay.plugin.json_data import format_strict_json, to_json_data
from assay.report.documents.answers import runs_document
from assay.server.access import READ, RUN
from assay.server.answers import describe_errors, describe_route, respond
from assay.server.context import Context, RequestCaller, caller_of
from assay.server.parameters import Name
from assay.server.run_status import RunStatus, read_status

router = APIRouter(prefix="/runs", tags=["runs"])

_EVENT_SECONDS = 0.5
_KEY_SECONDS = 5.0


class RunRow(BaseModel):
    """A stored run, as in `assay runs list --json`."""

    id: str
    name: str
    state: str
    started: datetime
    ended: datetime | None
    trials: int
    executions: int
    tags: list[str]
    label: str
    verdict: str | None


class RunPage(BaseModel):
    """Stored runs, the newest first."""

    runs: list[RunRow]
    next_cursor: str | None


@router.get("", **describe_route(READ, RunPage, "Stored runs", 404))
def list_runs(
    context: Context,
    tag: Name | None = None,
    name: Annotated[Name | None, Query(description="Of the suite or spec.")] = None,
    agent_id: Annotated[Name | None, Query(description="With a trial of this agent.")] = None,
    state: RunState | None = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
    cursor: Annotated[Name | None, Query(description="`next_cursor` of the page before.")] = None,
) -> Response:
    found = context.store.runs(limit=limit, tag=tag, name=name, before=cursor, state=state, agent=agent_id)
    following = found[-1].id if len(found) == limit else None
    return respond({"runs": runs_document(found), "next_cursor": following})


class QueueAnswer(BaseModel):
    """Queued and running runs, in the order in which they were requested."""

    max_runs: int
    queue: list[RunStatus]


@router.get("/queue", **describe_route(READ, QueueAnswer, "Queued and running runs"))
def read_queue(context: Context) -> Response:
    found = [read_status(context.store, queued.id) for queued in context.store.queue()]
    return respond({"max_runs": context.max_runs, "queue": found})


@router.get("/{run_id}", **describe_route(READ, RunStatus, "Status of a run", 404))
def read_run(context: Context, run_id: Name) -> Response:
    return respond(read_status(context.store, run_id))


@router.get(
    "/{run_id}/events",
    openapi_extra=READ,
    responses={
        200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}},
        **describe_errors(404),
    },
    response_class=Response,
    summary="Live progress of a run",
)
async def stream_events(request: Request, context: Context, run_id: Name) -> Response:
    """Server-sent events: `status` with the document of the run whenever it has changed, until the run is over."""
    first = await run_sync(read_status, context.store, run_id)
    return StreamingResponse(
        _events(caller_of(request), run_id, first),
        media_type="text/event-stream",
        headers={"cache-control": "no-store"},
    )


async def _events(caller: RequestCaller, run_id: str, status: dict[str, object]) -> AsyncIterator[str]:
    """Send the status whenever it changes, until the run is over or the key of the request has expired."""
    sent, context, checked = "", caller.context, monotonic()
    while True:
        written = format_strict_json(to_json_data(status))
        # A comment keeps the connection alive, and finds out whether anybody listens.
        yield f"event: status\ndata: {written}\n\n" if written != sent else ":\n\n"
        sent = written
        if status["is_over"]:
            return
        await asyncio.sleep(_EVENT_SECONDS)
        if monotonic() - checked > _KEY_SECONDS:
            checked = monotonic()
            if not await run_sync(_has_valid_key, caller):
                return
        status = await context.progress.read(run_id)


def _has_valid_key(caller: RequestCaller) -> bool:
    if caller.key is None:
        return True
    now, known = datetime.now(UTC), caller.context.store.keys()
    return any(key.prefix == caller.key.prefix and key.is_valid(now) for key in known)


@router.post("/{run_id}/cancel", **describe_route(RUN, RunStatus, "Cancel a run", 404))
def cancel_run(context: Context, run_id: Name) -> Response:
    """A queued run is cancelled at once; a running one stops soon, and its finished executions are kept."""
    context.store.cancel_queued(run_id)
    context.queue.wake()
    return respond(read_status(context.store, run_id))


@router.post(
    "/{run_id}/resume", **describe_route(RUN, RunStatus, "Resume a run that was cancelled or failed", 404)
)
def resume_run(context: Context, run_id: Name) -> Response:
    """The run waits again, and then does only what is missing. A run that is complete stays as it is."""
    context.store.requeue(run_id)
    context.queue.wake()
    return respond(read_status(context.store, run_id))
