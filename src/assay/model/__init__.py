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

if TYPE_CHECKING:  # `as` tells a type checker that the name is public
    from assay.model.answer import Answer as Answer
    from assay.model.answer import Request as Request
    from assay.model.answer import Span as Span
    from assay.model.answer import ToolCall as ToolCall
    from assay.model.answer import Usage as Usage
    from assay.model.case import Case as Case
    from assay.model.case import Score as Score
    from assay.model.case import ScorerUse as ScorerUse
    from assay.model.case import Turn as Turn
    from assay.model.dimension import DIMENSIONS as DIMENSIONS
    from assay.model.dimension import WEIGHTS as WEIGHTS
    from assay.model.estimate import Comparison as Comparison
    from assay.model.estimate import Estimate as Estimate
    from assay.model.estimate import Verdict as Verdict
    from assay.model.execution import Artifact as Artifact
    from assay.model.execution import Batch as Batch
    from assay.model.execution import Execution as Execution
    from assay.model.execution import Phase as Phase
    from assay.model.execution import Placement as Placement
    from assay.model.execution import Status as Status
    from assay.model.job import ExecutionRange as ExecutionRange
    from assay.model.job import Job as Job
    from assay.model.metric import Better as Better
    from assay.model.metric import Kind as Kind
    from assay.model.metric import Metric as Metric
    from assay.model.metric import describe_metrics as describe_metrics
    from assay.model.metric import metric_named as metric_named
    from assay.model.plan import AgentVersion as AgentVersion
    from assay.model.plan import Order as Order
    from assay.model.plan import Plan as Plan
    from assay.model.plan import Question as Question
    from assay.model.plan import Ruling as Ruling
    from assay.model.plan import Trial as Trial
    from assay.model.rating import CaseTable as CaseTable
    from assay.model.rating import Rating as Rating
    from assay.model.rating import Ratings as Ratings
    from assay.model.report import AxisEffect as AxisEffect
    from assay.model.report import BestPoint as BestPoint
    from assay.model.report import Doubt as Doubt
    from assay.model.report import Report as Report
    from assay.model.report import Series as Series
    from assay.model.report import TrialReport as TrialReport
    from assay.model.run import Environment as Environment
    from assay.model.run import Run as Run
    from assay.model.run import RunState as RunState
    from assay.model.run import StoredTrial as StoredTrial
    from assay.model.run import SuiteRef as SuiteRef
    from assay.model.settings import AgentUse as AgentUse
    from assay.model.settings import Budget as Budget
    from assay.model.settings import Cleanup as Cleanup
    from assay.model.settings import InstrumentUse as InstrumentUse
    from assay.model.settings import Isolation as Isolation
    from assay.model.settings import Iterations as Iterations
    from assay.model.settings import Limits as Limits
    from assay.model.settings import ResourceRequest as ResourceRequest
    from assay.model.settings import Until as Until
    from assay.model.standing import Contender as Contender
    from assay.model.standing import Leaderboard as Leaderboard
    from assay.model.standing import Standing as Standing
    from assay.model.suite import Benchmark as Benchmark
    from assay.model.suite import Rubric as Rubric
    from assay.model.suite import Suite as Suite

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

if not TYPE_CHECKING:  # a type checker that saw this would take any misspelt name for known
    __all__ = list(_PLACES)

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay.model' has no attribute '{name}'")
        member = getattr(import_module(f"assay.model.{_PLACES[name]}"), name)
        globals()[name] = member
        return member
