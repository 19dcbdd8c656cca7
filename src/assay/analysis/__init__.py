"""Executions to findings: pure functions that get their data as arguments."""

from assay.analysis.axes import axis_effects
from assay.analysis.comparable import comparable
from assay.analysis.compare import compare_reports, compare_trials
from assay.analysis.estimate import estimate
from assay.analysis.findings import SEVERE, findings
from assay.analysis.trial import trial_report

__all__ = [
    "SEVERE",
    "axis_effects",
    "comparable",
    "compare_reports",
    "compare_trials",
    "estimate",
    "findings",
    "trial_report",
]
