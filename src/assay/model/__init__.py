"""The nouns of the flow: what the program makes. Frozen, plain, without I/O."""

from assay.model.estimate import Comparison, Estimate, Verdict
from assay.model.execution import Artifact, Batch, Execution, Phase, Status
from assay.model.metric import Better, Kind, Metric, metric_named
from assay.model.plan import (
    Agent,
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
from assay.model.report import AxisEffect, Doubt, Report, Series, TrialReport
from assay.model.run import Environment, Run, RunState, StoredTrial

__all__ = [
    "Agent",
    "Artifact",
    "AxisEffect",
    "Batch",
    "Better",
    "Comparison",
    "Doubt",
    "Environment",
    "Estimate",
    "Execution",
    "InstrumentUse",
    "Isolation",
    "Iterations",
    "Job",
    "Kind",
    "Limits",
    "Metric",
    "Order",
    "Phase",
    "Plan",
    "Report",
    "Run",
    "RunState",
    "Series",
    "Status",
    "StoredTrial",
    "Stretch",
    "Trial",
    "TrialReport",
    "Until",
    "Verdict",
    "metric_named",
]
