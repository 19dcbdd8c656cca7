"""Assay measures agents and code: speed, accuracy, efficiency, cost and reliability, with intervals on all of them.

Everything is imported when it is first used, so `import assay` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from assay.errors import AssayError
    from assay.execute.benchmark import BenchmarkResult, benchmark
    from assay.model import Metric
    from assay.pipeline import compare, run
    from assay.plugin.experiment import Experiment, ExperimentContext
    from assay.plugin.lookup import register_experiment

_PLACES = {
    "AssayError": "assay.errors",
    "BenchmarkResult": "assay.execute.benchmark",
    "Experiment": "assay.plugin.experiment",
    "ExperimentContext": "assay.plugin.experiment",
    "Metric": "assay.model",
    "benchmark": "assay.execute.benchmark",
    "compare": "assay.pipeline",
    "register_experiment": "assay.plugin.lookup",
    "run": "assay.pipeline",
}

__all__ = [
    "AssayError",
    "BenchmarkResult",
    "Experiment",
    "ExperimentContext",
    "Metric",
    "benchmark",
    "compare",
    "register_experiment",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'assay' has no attribute '{name}'")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
