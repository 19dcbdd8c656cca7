"""One prompt across several models, repeated, in one call: the workflow benchmark for Python programs.

    from assay.workflow import BenchmarkRunner

    result = await BenchmarkRunner().run_benchmark("Summarise data/orders.csv", ["gpt-4o-mini", "reference"], repetitions=3)
    print(result.benchmark_id, result.benchmark_dir)

The names are those of FlowAgent's benchmark (seed 003). Everything runs through `assay.run`; see docs/workflow.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.workflow.benchmark import (
        BenchmarkMetrics,
        BenchmarkRunner,
        BenchmarkVisualizer,
        WorkflowBenchmark,
    )

__all__ = ["BenchmarkMetrics", "BenchmarkRunner", "BenchmarkVisualizer", "WorkflowBenchmark"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'assay.workflow' has no attribute '{name}'")
    return getattr(import_module("assay.workflow.benchmark"), name)
