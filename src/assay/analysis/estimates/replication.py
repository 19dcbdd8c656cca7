"""Decides what counts as one observation: the unit of replication.

For a suite it is a case. For code it is a process, or an execution where there was one process only. Repetitions within a
unit are not independent of each other, so intervals and tests are over units. `observe` turns a stored `Series` into
arrays; everything else in `analysis` works on what it returns.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.severity import depends_on_machine
from assay.model import Kind, Metric, Series
from assay.stats.sample import Array
from assay.stats.summary import find_groups, group_medians

FEWEST_ROUNDS = 3
"""With two rounds, a machine that is sometimes busy and sometimes idle shows the same difference twice too often."""


def is_by_round(metric: Metric, series: Series) -> bool:
    """Whether rounds, and not cases, are the independent units; times that were recorded earlier have no rounds."""
    return series.unit == "case" and depends_on_machine(metric) and metric.kind is not Kind.RECORDED


@dataclass(frozen=True)
class Observed:
    """A series as arrays, with the process or case of each value.

    Values that are not finite numbers are left out, and `left_out` counts them. Processes, cases or
    rounds are the units of replication: values within a unit are alike, so the number of units and not
    that of values tells how much is known.
    """

    values: Array
    processes: NDArray[np.int64]
    process_count: int
    left_out: int = 0
    unit: str = "process"
    """What the numbers in `processes` stand for: "process", "case" or "load"."""

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
        """The mean of each process or case. It is used for scores, whose median could only be 0 or 1."""
        return dict(zip(find_groups(self.processes).names.tolist(), self.unit_means.tolist(), strict=True))

    @property
    def unit_means(self) -> Array:
        """The same as an array, by the number of the process or case."""
        groups = find_groups(self.processes)
        sums = np.bincount(groups.codes, weights=self.values, minlength=groups.names.size)
        return np.asarray(sums / groups.counts)

    @property
    def ranges(self) -> tuple[dict[int, float], dict[int, float]]:
        """The smallest and the largest value of each process or case."""
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
        """Whether each process or case has the same values on both sides, in whatever order.

        If every process or case has one value throughout, the number of repetitions does not matter. The cheap checks come
        first: this is called for every metric of every comparison.
        """
        if self.unit != other.unit:
            return False
        if self.values.size != other.values.size:
            own_values, other_values = (
                np.unique(np.stack((side.processes, side.values)), axis=1) for side in (self, other)
            )
            return own_values.shape[1] == self.process_count and np.array_equal(own_values, other_values)
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

    def thin(self, most: int) -> Observed:
        """Keep at most `most` executions, evenly spread over the series.

        They show the shape and the drift of a large series just as well, and the tests on them cost a
        fraction.
        """
        step = -(-self.values.size // most)
        if step <= 1:
            return self
        return Observed(self.values[::step], self.processes[::step], self.process_count, unit=self.unit)

    def only(self, chosen: NDArray[np.bool_]) -> Observed:
        processes = self.processes[chosen]
        return Observed(self.values[chosen], processes, find_groups(processes).names.size, unit=self.unit)


def observe(series: Series) -> Observed:
    """The series as arrays, computed once for each series and kept as long as it lives, because many figures rest on it."""
    key = id(series)
    if (found := _observed.get(key)) is None:
        found = _observed[key] = _observe(series)
        weakref.finalize(series, _observed.pop, key, None).atexit = False
    return found


_observed: dict[int, Observed] = {}
"""By the id of the series. A finalizer removes the entry with the series, so an id that is used again finds nothing old."""


def _observe(series: Series) -> Observed:
    """The finite values of a series with their units. A value that is not finite says that something was not measured."""
    values = np.asarray(series.values, dtype=np.float64)
    processes = np.asarray(series.processes, dtype=np.int64)
    whole = np.isfinite(values)
    left_out = int(values.size - whole.sum())
    if left_out:
        values, processes = values[whole], processes[whole]
    return Observed(values, processes, find_groups(processes).names.size, left_out, series.unit)
