"""An instrument: Assay starts it before each execution and reads it afterwards."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import ClassVar

from assay.model import Better, Metric
from assay.plugin import ExperimentContext, Reading


class TemplateNameInstrument:
    """How often the garbage collector ran during an execution.

    Args:
        generation: Count only this generation, 0 to 2. Default: all of them.

    Example:
        instrumentation: [timing, {name: template_name, generation: 0}]
    """

    slows: ClassVar[bool] = False
    """True for a profiler: it then gets executions of its own, whose times count nowhere."""
    metrics: ClassVar[Mapping[str, Metric]] = {
        "gc_collections": Metric("gc_collections", better=Better.LOWER)
    }

    def __init__(self, generation: int | None = None) -> None:
        self._generations = range(3) if generation is None else (generation,)

    def start(self, context: ExperimentContext) -> int:
        return self._count()

    def stop(self, state: int) -> Reading:
        return Reading({"gc_collections": self._count() - state})

    def _count(self) -> int:
        stats = gc.get_stats()
        return sum(stats[generation]["collections"] for generation in self._generations)
