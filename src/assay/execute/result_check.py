"""Figures that cannot be: an execution that has one is invalid, and the figure is in no statistic.

Python agents and experiments are trusted code, but accidents happen: a test helper that replaces the clock, a library
that reports minus one token.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from assay.model import Batch, Execution, Status

_NEVER_NEGATIVE = frozenset(
    ("seconds", "cpu_seconds", "ttft", "usd", "tokens", "input_tokens", "output_tokens", "rss_max_bytes")
)
"""Metrics that Assay itself gives a meaning; an experiment's own may be negative."""


def check_figures(batch: Batch) -> Batch:
    if all(_is_sound(execution.measurements) for execution in batch.executions):
        return batch
    return replace(batch, executions=tuple(map(_without_impossible, batch.executions)))


def _is_sound(measurements: Mapping[str, float]) -> bool:
    """Every execution passes here, and nearly all have only finite floats that are not negative."""
    for name, value in measurements.items():
        if not (type(value) is float and 0.0 <= value < math.inf) and not _is_possible(name, value):
            return False
    return True


def _is_possible(name: str, value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return False
    return value >= 0 or name not in _NEVER_NEGATIVE


def _without_impossible(execution: Execution) -> Execution:
    wrong = {n: value for n, value in execution.measurements.items() if not _is_possible(n, value)}
    if not wrong:
        return execution
    told = ", ".join(f"{name} is {value!r}" for name, value in wrong.items())
    return replace(
        execution,
        status=Status.INVALID_OUTPUT if execution.status is Status.OK else execution.status,
        measurements={name: value for name, value in execution.measurements.items() if name not in wrong},
        error=execution.error or f"{told}, which cannot be",
    )
