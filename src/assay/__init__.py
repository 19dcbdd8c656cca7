"""Assay measures agents and code: speed, accuracy, efficiency, cost and reliability, with intervals on all of them.

Everything is imported when it is first used, so `import assay` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from assay.api.documents import compare, gate, leaderboard
    from assay.api.options import CompareOptions, GateOptions, LeaderboardOptions, RunOptions
    from assay.api.results import ComparisonResult, GateResult, LeaderboardResult, RunResult
    from assay.api.run import run
    from assay.errors import (
        AssayError,
        LeaseLost,
        LookupFailed,
        MissingExtra,
        NewerSchema,
        OptionError,
        PlanError,
        ReportError,
        RunInUse,
        RunNotFound,
        SeriesError,
        SpecError,
        StoreAway,
        StoreError,
        StoreFull,
        SuiteNotFound,
        Unlike,
    )
    from assay.execute.benchmark import BenchmarkResult, benchmark
    from assay.model import Metric
    from assay.plugin.experiment import Experiment, ExperimentContext
    from assay.plugin.lookup import register_experiment
    from assay.plugin.spans import span

_PLACES = {
    "AssayError": "assay.errors",
    "BenchmarkResult": "assay.execute.benchmark",
    "CompareOptions": "assay.api.options",
    "ComparisonResult": "assay.api.results",
    "Experiment": "assay.plugin.experiment",
    "ExperimentContext": "assay.plugin.experiment",
    "GateOptions": "assay.api.options",
    "GateResult": "assay.api.results",
    "LeaderboardOptions": "assay.api.options",
    "LeaderboardResult": "assay.api.results",
    "LeaseLost": "assay.errors",
    "LookupFailed": "assay.errors",
    "Metric": "assay.model",
    "MissingExtra": "assay.errors",
    "NewerSchema": "assay.errors",
    "OptionError": "assay.errors",
    "PlanError": "assay.errors",
    "ReportError": "assay.errors",
    "RunInUse": "assay.errors",
    "RunNotFound": "assay.errors",
    "RunOptions": "assay.api.options",
    "RunResult": "assay.api.results",
    "SeriesError": "assay.errors",
    "SpecError": "assay.errors",
    "StoreAway": "assay.errors",
    "StoreError": "assay.errors",
    "StoreFull": "assay.errors",
    "SuiteNotFound": "assay.errors",
    "Unlike": "assay.errors",
    "benchmark": "assay.execute.benchmark",
    "compare": "assay.api.documents",
    "gate": "assay.api.documents",
    "leaderboard": "assay.api.documents",
    "register_experiment": "assay.plugin.lookup",
    "run": "assay.api.run",
    "span": "assay.plugin.spans",
}

__all__ = [
    "AssayError",
    "BenchmarkResult",
    "CompareOptions",
    "ComparisonResult",
    "Experiment",
    "ExperimentContext",
    "GateOptions",
    "GateResult",
    "LeaderboardOptions",
    "LeaderboardResult",
    "LeaseLost",
    "LookupFailed",
    "Metric",
    "MissingExtra",
    "NewerSchema",
    "OptionError",
    "PlanError",
    "ReportError",
    "RunInUse",
    "RunNotFound",
    "RunOptions",
    "RunResult",
    "SeriesError",
    "SpecError",
    "StoreAway",
    "StoreError",
    "StoreFull",
    "SuiteNotFound",
    "Unlike",
    "benchmark",
    "compare",
    "gate",
    "leaderboard",
    "register_experiment",
    "run",
    "span",
]

if not TYPE_CHECKING:  # a type checker that saw this would take any misspelt name for known

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay' has no attribute '{name}'")
        return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
