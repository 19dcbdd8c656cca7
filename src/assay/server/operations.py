"""Health, metrics and the audit log, for operators of the server."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Literal

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from pydantic import BaseModel, Field

from assay import __version__
from assay.model.codec import to_plain
from assay.server.access import ADMIN, PUBLIC, READ
from assay.server.answers import describe_route, respond
from assay.server.context import Context
from assay.server.counts import CONTENT_TYPE
from assay.server.parameters import Before, PageSize

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """The server answers and reaches its database."""

    status: Literal["ok"] = "ok"
    version: str = __version__


@router.get(
    "/metrics",
    openapi_extra=READ,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    response_class=Response,
    summary="Figures for Prometheus",
)
def read_metrics(context: Context) -> Response:
    """Stored runs, the queue, requests, CPU time and memory of the server."""
    queue = Counter(queued.state.value for queued in context.store.queue())
    written = context.counts.write(context.store.count_runs(), queue)
    return PlainTextResponse(written, media_type=CONTENT_TYPE)


class AuditRow(BaseModel):
    """A request that changed something, or that was refused without a valid key."""

    id: int
    at: datetime
    key: str = Field(description="The prefix of the key; empty where there was none.")
    address: str
    method: str
    path: str
    status: int


class AuditPage(BaseModel):
    """Entries, the newest first."""

    entries: list[AuditRow]
    next_cursor: int | None


@router.get("/audit", **describe_route(ADMIN, AuditPage, "Who did what"))
def read_audit(context: Context, limit: PageSize = 100, cursor: Before = None) -> Response:
    """Requests that changed something, and those that were refused without a valid key."""
    found = context.store.audit_log(cursor, limit)
    entries = [{"id": number, **to_plain(entry)} for number, entry in found]
    return respond({"entries": entries, "next_cursor": found[-1][0] if len(found) == limit else None})


@router.get("/health", **describe_route(PUBLIC, Health, "Health check", 503))
def read_health(context: Context) -> Response:
    """Answers 503 while the database cannot be reached."""
    context.store.check()
    return respond({"status": "ok", "version": __version__})
