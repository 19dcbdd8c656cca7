"""What counts as one observation: a process, or an execution where there was one process only; of a suite, a case."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from assay.model import Series
from assay.stats.sample import Array
from assay.stats.summary import find_groups, group_medians


@dataclass(frozen=True)
class Observed:
    """A series as arrays; values that are no finite numbers are left out and counted."""

    values: Array
    processes: NDArray[np.int64]
    process_count: int
    left_out: int = 0
    unit: str = "process"
    """What `processes` counts: processes or cases."""

    @property
    def by_case(self) -> bool:
        return self.unit == "case"

    @property
    def units(self) -> Array:
        """Independent observations: medians of processes or cases, or the executions of a lone process."""
        return self.process_medians if self.by_case or self.process_count > 1 else self.values

    @property
    def process_medians(self) -> Array:
        return self._medians[1]

    @property
    def means(self) -> dict[int, float]:
        """The mean of each process, or case: of scores, where a median would be all or nothing."""
        groups = find_groups(self.processes)
        sums = np.bincount(groups.codes, weights=self.values, minlength=groups.names.size)
        return dict(zip(groups.names.tolist(), (sums / groups.counts).tolist(), strict=True))

    @property
    def ranges(self) -> tuple[dict[int, float], dict[int, float]]:
        """The smallest and the largest value of each process, or case."""
        groups = find_groups(self.processes)
        lowest, highest = np.full(groups.names.size, np.inf), np.full(groups.names.size, -np.inf)
        np.minimum.at(lowest, groups.codes, self.values)
        np.maximum.at(highest, groups.codes, self.values)
        low, high = (
            dict(zip(groups.names.tolist(), ends.tolist(), strict=True)) for ends in (lowest, highest)
        )
        return low, high

    @property
    def counts(self) -> dict[int, int]:
        groups = find_groups(self.processes)
        return dict(zip(groups.names.tolist(), groups.counts.tolist(), strict=True))

    @property
    def by_process(self) -> dict[int, float]:
        names, medians = self._medians
        return dict(zip(names.tolist(), medians.tolist(), strict=True))

    @cached_property
    def _medians(self) -> tuple[NDArray[np.int64], Array]:
        return group_medians(self.values, self.processes)

    def has_same_values_as(self, other: Observed) -> bool:
        """Whether each process, or case, has the same values on both sides, in whatever order.

        Where the values of every process, or case, are all equal, the number of repetitions does not matter.
        """
        if self.unit != other.unit:
            return False
        if self.values.size != other.values.size:
            mine, theirs = (
                np.unique(np.stack((side.processes, side.values)), axis=1) for side in (self, other)
            )
            return mine.shape[1] == self.process_count and np.array_equal(mine, theirs)
        if not self.values.size:
            return True
        if (self.values.min(), self.values.max()) != (other.values.min(), other.values.max()):
            return False
        if np.array_equal(self.processes, other.processes) and np.array_equal(self.values, other.values):
            return True
        first, second = (np.lexsort((side.values, side.processes)) for side in (self, other))
        return np.array_equal(self.processes[first], other.processes[second]) and np.array_equal(
            self.values[first], other.values[second]
        )

    def thinned(self, most: int) -> Observed:
        """Evenly, to no more than so many executions: shape and drift of a large series are seen in a part of it."""
        step = -(-self.values.size // most)
        if step <= 1:
            return self
        return Observed(self.values[::step], self.processes[::step], self.process_count, unit=self.unit)

    def only(self, chosen: NDArray[np.bool_]) -> Observed:
        processes = self.processes[chosen]
        return Observed(self.values[chosen], processes, np.unique(processes).size, unit=self.unit)


def observed(series: Series) -> Observed:
    """Worked out once for each series, because many figures rest on it."""
    key = id(series)
    if (found := _observed.get(key)) is None:
        found = _observed[key] = _observe(series)
        weakref.finalize(series, _observed.pop, key, None).atexit = False
    return found


_observed: dict[int, Observed] = {}
"""By the identity of the series, as long as it lives."""


def _observe(series: Series) -> Observed:
    values = np.asarray(series.values, dtype=np.float64)
    processes = np.asarray(series.processes, dtype=np.int64)
    whole = np.isfinite(values)
    left_out = int(values.size - whole.sum())
    if left_out:
        values, processes = values[whole], processes[whole]
    return Observed(values, processes, find_groups(processes).names.size, left_out, series.unit)
