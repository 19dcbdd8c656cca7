"""The instrument for Python's own memory, by `tracemalloc`; what C libraries allocate on their own is not seen.

It slows the code that it watches severalfold, so its executions are profiled ones and are never timed.
"""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from assay.builtin.instruments.options import whole
from assay.builtin.instruments.source_names import artifact_name, short_path
from assay.model import Better, Metric
from assay.plugin import ExperimentContext, File, Reading


class Memory:
    """Memory that Python allocated: the highest sum during the execution, and what it left behind, line by line.

    Args:
        top_n: How many lines of code are listed.

    Example:
        instrumentation: [timing, {name: memory, top_n: 20}]
    """

    slows: ClassVar[bool] = True
    metrics: ClassVar[Mapping[str, Metric]] = {
        "traced_peak_bytes": Metric("traced_peak_bytes", "bytes", Better.LOWER),
        "traced_left_bytes": Metric("traced_left_bytes", "bytes", Better.LOWER),
    }

    def __init__(self, *, top_n: int = 10) -> None:
        self._top_n = whole("memory", "top_n", top_n, 1)

    def start(self, context: ExperimentContext) -> _Tracing:
        was_on = tracemalloc.is_tracing()
        if not was_on:
            tracemalloc.start()
        tracemalloc.reset_peak()
        return _Tracing(context, was_on, tracemalloc.get_traced_memory()[0])

    def stop(self, state: _Tracing) -> Reading:
        if not tracemalloc.is_tracing():  # the code under test switched it off: there is nothing to report
            return Reading()
        left, peak = tracemalloc.get_traced_memory()
        snapshot = tracemalloc.take_snapshot()
        if not state.was_on:
            tracemalloc.stop()
        content = json.dumps({"top_left": _top(snapshot, self._top_n)}, indent=1).encode()
        measurements = {
            "traced_peak_bytes": peak - state.before,
            "traced_left_bytes": max(0, left - state.before),
        }
        return Reading(
            measurements, (File(artifact_name("memory", ".json", state.context), "memory", content),)
        )


@dataclass(frozen=True, slots=True)
class _Tracing:
    context: ExperimentContext
    was_on: bool
    before: int


def _top(snapshot: tracemalloc.Snapshot, top_n: int) -> list[dict[str, Any]]:
    subject = snapshot.filter_traces(
        [tracemalloc.Filter(False, path) for path in (tracemalloc.__file__, __file__)]
    )
    return [
        {
            "file": short_path(line.traceback[0].filename),
            "line": line.traceback[0].lineno,
            "bytes": line.size,
            "blocks": line.count,
        }
        for line in subject.statistics("lineno")[:top_n]
    ]
