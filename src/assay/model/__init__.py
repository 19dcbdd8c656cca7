"""The nouns of the flow: what the program makes. Frozen, plain, without I/O."""

from assay.model.answer import Answer, Request, Span, ToolCall, Usage
from assay.model.estimate import Comparison, Estimate, Verdict
from assay.model.execution import Artifact, Batch, Execution, Phase, Status
from assay.model.metric import Better, Kind, Metric, metric_named
from assay.model.plan import (
    Agent,
    AgentUse,
    Budget,
    InstrumentUse,
    Isolation,
    Iterations,
    Job,
    Limits,
    Order,
    Plan,
    Stretch,
    Trial,
    Until,
)
from assay.model.rating import DIMENSIONS, WEIGHTS, CaseTable, Rating, Ratings
from assay.model.report import AxisEffect, Doubt, Report, Series, TrialReport
from assay.model.run import Environment, Run, RunState, StoredTrial, SuiteRef
from assay.model.standing import Contender, Leaderboard, Standing
from assay.model.suite import Benchmark, Case, Rubric, Score, ScorerUse, Suite, Turn

__all__ = [
    "DIMENSIONS",
    "WEIGHTS",
    "Agent",
    "AgentUse",
    "Answer",
    "Artifact",
    "AxisEffect",
    "Batch",
    "Benchmark",
    "Better",
    "Budget",
    "Case",
    "CaseTable",
    "Comparison",
    "Contender",
    "Doubt",
    "Environment",
    "Estimate",
    "Execution",
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
    "Rating",
    "Ratings",
    "Report",
    "Request",
    "Rubric",
    "Run",
    "RunState",
    "Score",
    "ScorerUse",
    "Series",
    "Span",
    "Standing",
    "Status",
    "StoredTrial",
    "Stretch",
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
