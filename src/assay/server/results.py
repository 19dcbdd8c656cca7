"""Stored results: trials, executions, the documents of runs, and what agents cost."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException

from assay.errors import LookupFailed, format_unknown_name
from assay.model import Phase, RunState, Status
from assay.pipeline.report import report_of
from assay.report.documents.result import execution_document, run_document
from assay.report.documents.specification import stress_specification_document
from assay.server.access import READ
from assay.server.answers import describe_route, respond, respond_written
from assay.server.context import BeingComputed, Context
from assay.server.parameters import Before, Name, PageSize
from assay.server.questions import AnalysisQuestion
from assay.server.schemas import ResultPage, ResultRow
from assay.store.results import ExecutionFilter, ResultFilter

router = APIRouter(tags=["results"])

TrialId = Annotated[int, Path(ge=1, le=2**31 - 1)]


@router.get("/trials", **describe_route(READ, ResultPage, "Trials"))
def list_trials(
    context: Context,
    agent_id: Name | None = None,
    suite_id: Name | None = None,
    benchmark_id: Name | None = None,
    run_id: Name | None = None,
    limit: PageSize = 100,
    cursor: Before = None,
) -> Response:
    """Trials of all runs, the newest first: the rows of `benchmark_executions`."""
    found = context.store.results(ResultFilter(agent_id, suite_id, benchmark_id, run_id), cursor, limit)
    return respond({"results": found, "next_cursor": found[-1]["id"] if len(found) == limit else None})


@router.get("/trials/{trial_id}", **describe_route(READ, ResultRow, "One trial", 404))
def read_trial(context: Context, trial_id: TrialId) -> Response:
    found = context.store.results(ResultFilter(trial=trial_id))
    if not found:
        raise LookupFailed(f"There is no trial {trial_id}.")
    return respond(found[0])


class ExecutionRow(BaseModel):
    """One time that an agent did a case, as in the result document of a run."""

    model_config = ConfigDict(extra="allow")

    trial_id: int
    seq: int = Field(description="The number of the execution in its trial.")
    index: int
    phase: str
    status: str
    case: str | None = None
    duration_s: float | None
    score: float | None = None
    output: Any = None
    error: str | None = None
    metrics: dict[str, float | None]


class ExecutionPage(BaseModel):
    """Executions in the order in which they were stored."""

    executions: list[ExecutionRow]
    next_cursor: int | None


@router.get(
    "/trials/{trial_id}/executions", **describe_route(READ, ExecutionPage, "Executions of a trial", 404)
)
def list_executions(
    context: Context,
    trial_id: TrialId,
    status: Status | None = None,
    case: Name | None = None,
    phase: Phase | None = None,
    limit: PageSize = 100,
    cursor: Annotated[int | None, Query(ge=0, le=2**31 - 1)] = None,
) -> Response:
    """With inputs left out: outputs, scores, metrics, spans and logs, as far as they are stored."""
    if not context.store.results(ResultFilter(trial=trial_id)):
        raise LookupFailed(f"There is no trial {trial_id}.")
    found = context.store.execution_page(ExecutionFilter(trial_id, status, case, phase), cursor, limit)
    rows = [{"trial_id": trial_id, "seq": seq, **execution_document(execution)} for seq, execution in found]
    return respond({"executions": rows, "next_cursor": found[-1][0] if len(found) == limit else None})


class ResultDocument(BaseModel):
    """A run in full, without its executions: the document of `assay run --json`, format `assay.result/1`."""

    model_config = ConfigDict(extra="allow")

    run_id: str
    status: str
    trials: list[dict[str, Any]]
    warnings: list[dict[str, Any]]


@router.get("/runs/{run_id}/result", **describe_route(READ, ResultDocument, "The result of a run", 404))
def read_result(context: Context, run_id: Name) -> Response:
    """Estimates with intervals, ratings, warnings and environment; also of a run that is still in progress."""

    def make() -> Response:
        return respond(run_document(report_of(context.store, run_id), with_executions=False))

    # A run that is over changes only with what is counted as a change of its suite.
    run = context.store.run(run_id)
    is_fixed = run.state is not RunState.RUNNING
    key = ("result", run.id, run.tags, run.state)
    return context.answer(key, run.suite.name, make) if run.suite is not None and is_fixed else make()


@router.get("/runs/{run_id}/findings/{kind}", **describe_route(READ, dict[str, Any], "What a run found", 404))
def read_findings(context: Context, run_id: Name, kind: Name) -> Response:
    """What runs of a kind have beside estimates: `load`, `capacity`, `stress`, `team`, `profile` or `workflow`."""
    report = report_of(context.store, run_id)
    if kind not in report.findings:
        raise LookupFailed(format_unknown_name(kind, f"findings of run '{report.run.id}'", report.findings))
    document = report.findings[kind].document()
    return respond(stress_specification_document(document["stress"]) if kind == "stress" else document)


class CostAnswer(BaseModel):
    """What agents cost and what that buys: the document of `assay cost --json`."""

    model_config = ConfigDict(extra="allow")

    volume_per_month: int
    cost_per_task: dict[str, dict[str, float | None]]
    cost_per_success: dict[str, dict[str, float | None]]
    performance_per_dollar: dict[str, dict[str, float | None]]
    optimal_configurations: list[dict[str, Any]]
    cost_optimization_opportunities: list[dict[str, Any]]


@router.get("/cost", **describe_route(READ, CostAnswer, "What agents cost", 404))
def read_costs(
    context: Context,
    agent_id: Annotated[list[Name], Query(max_length=50)] = [],  # noqa: B006
    suite_id: Name | None = None,
    volume: Annotated[int, Query(ge=1, le=10**12, description="Tasks a month.")] = 1000,
) -> Response:
    """Cost per task and per solved task, the Pareto front, and where money can be saved."""
    question = AnalysisQuestion("cost document", suite_id, {"agents": agent_id, "volume": volume})
    try:
        found = context.prepare(question)
    except BeingComputed:
        raise HTTPException(503, "The costs are being computed. Try again in a moment.") from None
    headers = {} if found.outdated_seconds is None else {"age": str(round(found.outdated_seconds))}
    return respond_written(found.answer.document, headers)
