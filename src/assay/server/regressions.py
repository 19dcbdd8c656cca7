"""Regressions of all agents with their states, and baselines to compare with."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from assay.errors import LookupFailed
from assay.model.regression import RegressionState, Severity
from assay.pipeline.baselines import name_baseline
from assay.report.documents.operations import tracked_regression_document
from assay.server.access import READ, RUN
from assay.server.answers import describe_route, respond
from assay.server.context import Author, Context
from assay.server.parameters import Name, PageSize, Text
from assay.server.schemas import RegressionRow
from assay.store.regressions import RegressionFilter

router = APIRouter(tags=["regressions"])

_Place = Annotated[
    int, Query(ge=0, le=10**6, description="`next_cursor` of the page before; 0 for the first.")
]
RegressionId = Annotated[str, Path(min_length=1, max_length=64, pattern="^[0-9a-f]+$")]


class StateChange(BaseModel):
    """A state that a person gave to a regression."""

    at: datetime
    by: str = Field(description="The name of the key; empty for the command line.")
    state: RegressionState
    note: str


class TrackedRegression(RegressionRow):
    """A regression with its agent and suite, and who set its states."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra={
            "example": {
                "id": "5f0c1b22",
                "agent_id": "careful",
                "suite_id": "support-desk",
                "benchmark_id": "refunds",
                "metric": "score",
                "baseline_value": 0.95,
                "current_value": 0.61,
                "regression_percentage": 34.0,
                "severity": "critical",
                "impact_analysis": None,
                "state": "confirmed",
                "note": "the new prompt",
                "detected": "2026-11-17T21:40:02+00:00",
                "changed": "2026-11-17T22:01:40+00:00",
                "changed_by": "ann",
                "history": [
                    {
                        "at": "2026-11-17T22:01:40+00:00",
                        "by": "ann",
                        "state": "confirmed",
                        "note": "the new prompt",
                    }
                ],
            }
        },
    )

    agent_id: str
    suite_id: str
    detected: datetime | None
    changed: datetime | None
    changed_by: str | None = Field(description="Null if Assay set the state, not a person.")
    history: list[StateChange]


class RegressionPage(BaseModel):
    """Regressions of all agents, the newest first."""

    regressions: list[TrackedRegression]
    next_cursor: int | None


@router.get("/regressions", **describe_route(READ, RegressionPage, "Regressions of all agents"))
def list_regressions(
    context: Context,
    agent_id: Name | None = None,
    suite_id: Name | None = None,
    state: RegressionState | None = None,
    severity: Severity | None = None,
    is_open: Annotated[
        bool | None, Query(description="Only those that are neither resolved nor false positives.")
    ] = None,
    limit: PageSize = 100,
    cursor: _Place = 0,
) -> Response:
    """As they were last found; nothing is computed."""
    chosen = RegressionFilter(agent_id, suite_id, state, severity, is_open)
    found = context.store.regression_page(chosen, cursor, limit)
    changes = context.store.regression_changes([regression.id for regression in found])
    rows = [tracked_regression_document(regression, changes.get(regression.id, ())) for regression in found]
    return respond({"regressions": rows, "next_cursor": cursor + limit if len(found) == limit else None})


class StateRequest(BaseModel):
    """What became of a regression."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"state": "confirmed", "note": "the new prompt"}}
    )

    state: RegressionState = Field(
        description="investigating, confirmed, false_positive, resolved, or detected to begin again."
    )
    note: Text | None = Field(default=None, description="Why; left out, the note stays as it is.")


@router.post(
    "/regressions/{regression_id}",
    **describe_route(RUN, TrackedRegression, "Set the state of a regression", 404),
)
def mark_regression(
    context: Context, caller: Author, regression_id: RegressionId, body: StateRequest
) -> Response:
    """Kept with who did it and when. A later version that undoes a regression resolves it all the same."""
    found = context.store.regression_page(RegressionFilter(id=regression_id), limit=1)
    if not found:
        raise LookupFailed(f"There is no regression '{regression_id}'. List them: GET /regressions")
    store = context.store
    marked = store.mark_regression(found[0].agent, regression_id, body.state, body.note, author=caller)
    return respond(tracked_regression_document(marked, store.regression_changes([marked.id])[marked.id]))


class BaselineRow(BaseModel):
    """A run that has a name to compare with."""

    name: str
    run_id: str


class BaselineList(BaseModel):
    baselines: list[BaselineRow]


@router.get("/baselines", **describe_route(READ, BaselineList, "Baselines"))
def list_baselines(context: Context) -> Response:
    """By name."""
    found: dict[str, Any] = context.store.baselines()
    return respond({"baselines": [{"name": name, "run_id": run_id} for name, run_id in found.items()]})


class BaselineRequest(BaseModel):
    """Which run to compare with from now on."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"name": "release", "run_id": "last"}}
    )

    name: Name
    run_id: Annotated[Name, Field(description="An id, the start of one, or `last`.")]


@router.post("/baselines", **describe_route(RUN, BaselineRow, "Name a run as a baseline", 404))
def set_baseline(context: Context, body: BaselineRequest) -> Response:
    """A name that another run has moves to this one."""
    return respond({"name": body.name, "run_id": name_baseline(context.store, body.name, body.run_id).id})
