"""An instrument: how often did the garbage collector run during an execution?"""

from __future__ import annotations

import gc
from collections.abc import Mapping
from typing import ClassVar

from assay import Metric
from assay.model import Better
from assay.plugin.experiment import ExperimentContext
from assay.plugin.instrument import Reading


class Collections:
    slows: ClassVar[bool] = False
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
