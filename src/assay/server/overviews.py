"""Coverage, schedules, alerts, success figures and search."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from assay.model.alert import AlertKind, AlertState
from assay.pipeline.coverage import measure_coverage
from assay.pipeline.schedules import list_schedules
from assay.pipeline.search import search_everything
from assay.pipeline.success import measure_success
from assay.report.documents.operations import (
    alert_document,
    coverage_document,
    schedule_document,
    search_document,
    success_document,
)
from assay.server.access import READ
from assay.server.answers import describe_route, respond
from assay.server.context import Context
from assay.server.labels import ShareFigure
from assay.server.parameters import Before, Name, PageSize

router = APIRouter(tags=["overviews"])


class CoverageRow(BaseModel):
    """An agent on a suite."""

    agent_id: str
    suite_id: str
    state: str = Field(description="fresh, stale or never.")
    runs: int
    latest: datetime | None
    age_days: float | None


class CoverageAnswer(BaseModel):
    """Agents on all suites; results older than `stale_days` are stale."""

    agents: list[str] = Field(description="Those of this page, by name.")
    suites: list[str]
    stale_days: int
    counts: dict[str, int] = Field(description="Of all agents, those of other pages too.")
    cells: list[CoverageRow]
    next_cursor: str | None


@router.get("/coverage", **describe_route(READ, CoverageAnswer, "Which agents have results on which suites"))
def read_coverage(
    context: Context,
    limit: Annotated[int, Query(ge=1, le=200, description="At most this many agents.")] = 20,
    cursor: Annotated[Name | None, Query(description="`next_cursor` of the page before.")] = None,
) -> Response:
    """Registered agents and suites, and those with results, a page of agents at a time."""
    now = datetime.now(UTC)
    found = measure_coverage(context.store, context.settings, now, cursor or "", limit, context)
    return respond(coverage_document(found))


class ScheduledRunRow(BaseModel):
    """What was started for a time of a schedule."""

    agent_id: str | None
    run_id: str | None
    outcome: str
    error: str


class ScheduleRow(BaseModel):
    """A suite with a schedule."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "suite_id": "support-desk",
                "schedule": "0 3 * * 1",
                "timezone": "Europe/Berlin",
                "next_due": "2026-11-23T03:00:00+01:00",
                "agent_ids": ["careful", "fast"],
                "last_due": "2026-11-16T02:00:00+00:00",
                "last_outcome": "completed",
                "last_runs": [
                    {"agent_id": "careful", "run_id": "9b2f51c07a", "outcome": "completed", "error": ""}
                ],
            }
        }
    )

    suite_id: str
    schedule: str
    timezone: str
    next_due: datetime | None = Field(description="Null where the schedule is no cron expression.")
    agent_ids: list[str]
    last_due: datetime | None
    last_outcome: str | None = Field(
        description="running, completed, cancelled or failed; null before the first."
    )
    last_runs: list[ScheduledRunRow]


class ScheduleList(BaseModel):
    schedules: list[ScheduleRow]


@router.get("/schedules", **describe_route(READ, ScheduleList, "Schedules"))
def read_schedules(context: Context) -> Response:
    """Suites with a schedule, the one that is due next first, each with what became of its latest time."""
    found = list_schedules(context.store, context.settings, datetime.now(UTC))
    return respond({"schedules": [schedule_document(schedule) for schedule in found]})


class AlertRow(BaseModel):
    """Something that was told to people, and whether it reached them."""

    id: int
    kind: AlertKind
    severity: str
    text: str
    facts: dict[str, Any]
    created: datetime
    state: AlertState = Field(description="pending, sent, failed, or unsent where there was no webhook.")
    attempts: int
    next_attempt: datetime | None
    sent: datetime | None
    error: str


class AlertPage(BaseModel):
    """Alerts, the newest first."""

    alerts: list[AlertRow]
    next_cursor: int | None


@router.get("/alerts", **describe_route(READ, AlertPage, "Alerts"))
def list_alerts(
    context: Context, state: AlertState | None = None, limit: PageSize = 100, cursor: Before = None
) -> Response:
    """New regressions, failed schedules and stale agents, each once."""
    found = context.store.alerts(cursor, limit, state)
    rows = [alert_document(alert) for alert in found]
    return respond({"alerts": rows, "next_cursor": found[-1].id if len(found) == limit else None})


class SuccessPeriod(BaseModel):
    """The success figures of a period."""

    begins: datetime
    ends: datetime
    agents_benchmarked: ShareFigure
    regressions_found: int
    regressions_confirmed: ShareFigure = Field(description="Share of those that a person judged.")
    caught_by_gate: ShareFigure = Field(description="Share, excluding false positives.")
    gates_failed: ShareFigure
    opportunities_found: int
    opportunities_resolved: ShareFigure


class SuccessMonth(SuccessPeriod):
    month: str


class SuccessAnswer(BaseModel):
    """How well benchmarking works here."""

    goals: dict[str, float]
    last_30_days: SuccessPeriod
    months: list[SuccessMonth] = Field(description="The current one first, so far.")
    changes: dict[str, float | None] = Field(
        description="The last month that is over against the one before, in percent."
    )
    never_benchmarked: list[str]
    not_benchmarked: list[str] = Field(description="In the last 30 days.")


@router.get("/success", **describe_route(READ, SuccessAnswer, "Success figures"))
def read_success(context: Context) -> Response:
    """Agents benchmarked (goal 100 %), regressions confirmed (goal 90 %) and caught by the gate, opportunities resolved."""
    return respond(success_document(measure_success(context.store, context.settings, datetime.now(UTC))))


class FoundRunRow(BaseModel):
    id: str
    name: str
    label: str
    state: str
    started: datetime


class FoundCaseRow(BaseModel):
    suite_id: str
    benchmark_id: str
    case: str
    input: str


class SearchAnswer(BaseModel):
    """What was found, of each kind at most `limit`."""

    query: str
    agents: list[str]
    suites: list[str]
    runs: list[FoundRunRow]
    cases: list[FoundCaseRow]


@router.get("/search", **describe_route(READ, SearchAnswer, "Search"))
def search(
    context: Context,
    q: Annotated[Name, Query(description="A part of a name, of a case's input, or the start of a run's id.")],
    limit: Annotated[int, Query(ge=1, le=50)] = 10,
) -> Response:
    """Agents, suites, runs and cases. Small and capital letters are the same."""
    return respond(search_document(q, search_everything(context.store, context.settings, q, limit)))
