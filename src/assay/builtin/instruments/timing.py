"""The instrument that every run has; in an execution the runner takes the time itself, and this class only names the metric."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter_ns
from typing import ClassVar

from assay.model import Better, Metric
from assay.plugin import ExperimentContext, Reading


class Timing:
    """Wall time by the monotonic clock. Around an execution the runner itself takes it, closer in than any instrument."""

    slows: ClassVar[bool] = False
    metrics: ClassVar[Mapping[str, Metric]] = {"seconds": Metric("seconds", "s", Better.LOWER)}

    def start(self, context: ExperimentContext) -> int:
        return perf_counter_ns()

    def stop(self, state: int) -> Reading:
        return Reading({"seconds": (perf_counter_ns() - state) / 1e9})
