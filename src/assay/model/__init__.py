"""The nouns of the flow: what the stages hand to each other. Frozen dataclasses, plain, without I/O.

A suite has benchmarks and cases (`suite`, `case`). A spec or suite becomes a plan of trials (`plan`), a trial becomes jobs for worker
processes (`job`), a job gives executions (`execution`), and those are stored under a run (`run`). Analysis makes estimates, comparisons
and ratings of them (`estimate`, `rating`), and a report holds what a reporter shows (`report`). Loads, stress tests and teams have
nouns of their own (`load`, `stress`, `team`). `codec` converts all of them to plain data and back, so adding a field with a default
keeps stored data readable, while renaming or removing one does not.

Each module is imported when one of its names is first used: a worker, which is started again and again, needs a third of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.model.answer import Answer, Request, Span, ToolCall, Usage
    from assay.model.case import Case, Score, ScorerUse, Turn
    from assay.model.dimension import DIMENSIONS, WEIGHTS
    from assay.model.estimate import Comparison, Estimate, Verdict
    from assay.model.execution import Artifact, Batch, Execution, Phase, Placement, Status
    from assay.model.job import ExecutionRange, Job
    from assay.model.metric import Better, Kind, Metric, describe_metrics, metric_named
    from assay.model.plan import AgentVersion, Order, Plan, Question, Ruling, Trial
    from assay.model.rating import CaseTable, Rating, Ratings
    from assay.model.report import AxisEffect, BestPoint, Doubt, Report, Series, TrialReport
    from assay.model.run import Environment, Run, RunState, StoredTrial, SuiteRef
    from assay.model.settings import (
        AgentUse,
        Budget,
        Cleanup,
        InstrumentUse,
        Isolation,
        Iterations,
        Limits,
        ResourceRequest,
        Until,
    )
    from assay.model.standing import Contender, Leaderboard, Standing
    from assay.model.suite import Benchmark, Rubric, Suite

__all__ = [
    "DIMENSIONS",
    "WEIGHTS",
    "AgentUse",
    "AgentVersion",
    "Answer",
    "Artifact",
    "AxisEffect",
    "Batch",
    "Benchmark",
    "BestPoint",
    "Better",
    "Budget",
    "Case",
    "CaseTable",
    "Cleanup",
    "Comparison",
    "Contender",
    "Doubt",
    "Environment",
    "Estimate",
    "Execution",
    "ExecutionRange",
    "InstrumentUse",
    "Isolation",
    "Iterations",
    "Job",
    "Kind",
    "Leaderboard",
    "Limits",
    "Metric",
    "Order",
    "Phase",
    "Placement",
    "Plan",
    "Question",
    "Rating",
    "Ratings",
    "Report",
    "Request",
    "ResourceRequest",
    "Rubric",
    "Ruling",
    "Run",
    "RunState",
    "Score",
    "ScorerUse",
    "Series",
    "Span",
    "Standing",
    "Status",
    "StoredTrial",
    "Suite",
    "SuiteRef",
    "ToolCall",
    "Trial",
    "TrialReport",
    "Turn",
    "Until",
    "Usage",
    "Verdict",
    "describe_metrics",
    "metric_named",
]

_NAMES = {
    "answer": "Answer Request Span ToolCall Usage",
    "case": "Case Score ScorerUse Turn",
    "dimension": "DIMENSIONS WEIGHTS",
    "estimate": "Comparison Estimate Verdict",
    "execution": "Artifact Batch Execution Phase Placement Status",
    "job": "ExecutionRange Job",
    "metric": "Better Kind Metric describe_metrics metric_named",
    "plan": "AgentVersion Order Plan Question Ruling Trial",
    "rating": "CaseTable Rating Ratings",
    "report": "AxisEffect BestPoint Doubt Report Series TrialReport",
    "run": "Environment Run RunState StoredTrial SuiteRef",
    "settings": "AgentUse Budget Cleanup InstrumentUse Isolation Iterations Limits ResourceRequest Until",
    "standing": "Contender Leaderboard Standing",
    "suite": "Benchmark Rubric Suite",
}

_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'assay.model' has no attribute '{name}'")
    member = getattr(import_module(f"assay.model.{_PLACES[name]}"), name)
    globals()[name] = member
    return member
