"""What counts as one observation: a process, or an execution where there was one process only."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from assay.model import Series
from assay.stats.sample import Array
from assay.stats.summary import group_medians


@dataclass(frozen=True)
class Observed:
    """A series as arrays; values that are no finite numbers are left out and counted."""

    values: Array
    processes: NDArray[np.int64]
    process_count: int
    left_out: int = 0

    @property
    def units(self) -> Array:
        """Independent observations: medians of processes, or the executions of a lone one."""
        return self.process_medians if self.process_count > 1 else self.values

    @property
    def process_medians(self) -> Array:
        return self._medians[1]

    @property
    def by_process(self) -> dict[int, float]:
        names, medians = self._medians
        return dict(zip(names.tolist(), medians.tolist(), strict=True))

    @cached_property
    def _medians(self) -> tuple[NDArray[np.int64], Array]:
        return group_medians(self.values, self.processes)

    def only(self, chosen: NDArray[np.bool_]) -> Observed:
        processes = self.processes[chosen]
        return Observed(self.values[chosen], processes, np.unique(processes).size)


def observed(series: Series) -> Observed:
    values = np.asarray(series.values, dtype=np.float64)
    processes = np.asarray(series.processes, dtype=np.int64)
    whole = np.isfinite(values)
    processes = processes[whole]
    return Observed(values[whole], processes, np.unique(processes).size, int(values.size - whole.sum()))
