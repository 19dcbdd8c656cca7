"""The nouns of the flow: what the program makes. Frozen, plain, without I/O.

Each is made when it is first used: a worker, which is started again and again, needs a third of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.model.answer import Answer, Request, Span, ToolCall, Usage
    from assay.model.estimate import Comparison, Estimate, Verdict
    from assay.model.execution import Artifact, Batch, Execution, Phase, Status
    from assay.model.metric import Better, Kind, Metric, metric_named
    from assay.model.plan import (
        AgentUse,
        AgentVersion,
        Budget,
        Cleanup,
        ExecutionRange,
        InstrumentUse,
        Isolation,
        Iterations,
        Job,
        Limits,
        Order,
        Plan,
        Question,
        Ruling,
        Trial,
        Until,
    )
    from assay.model.rating import DIMENSIONS, WEIGHTS, CaseTable, Rating, Ratings
    from assay.model.report import AxisEffect, BestPoint, Doubt, Report, Series, TrialReport
    from assay.model.run import Environment, Run, RunState, StoredTrial, SuiteRef
    from assay.model.standing import Contender, Leaderboard, Standing
    from assay.model.suite import Benchmark, Case, Rubric, Score, ScorerUse, Suite, Turn

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
    "Plan",
    "Question",
    "Rating",
    "Ratings",
    "Report",
    "Request",
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
    "metric_named",
]

_NAMES = {
    "answer": "Answer Request Span ToolCall Usage",
    "estimate": "Comparison Estimate Verdict",
    "execution": "Artifact Batch Execution Phase Status",
    "metric": "Better Kind Metric metric_named",
    "plan": "AgentUse AgentVersion Budget Cleanup ExecutionRange InstrumentUse Isolation Iterations Job Limits Order Plan Question Ruling Trial "
    "Until",
    "rating": "DIMENSIONS WEIGHTS CaseTable Rating Ratings",
    "report": "AxisEffect BestPoint Doubt Report Series TrialReport",
    "run": "Environment Run RunState StoredTrial SuiteRef",
    "standing": "Contender Leaderboard Standing",
    "suite": "Benchmark Case Rubric Score ScorerUse Suite Turn",
}

_PLACES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'assay.model' has no attribute '{name}'")
    found = getattr(import_module(f"assay.model.{_PLACES[name]}"), name)
    globals()[name] = found
    return found
