"""Which test process runs which files: some processes compute while the others wait.

Many tests spend their time waiting: for a load of ten seconds, a timeout, a server that restarts. Run one after the other they leave
processors idle, and several tests that compute at the same time hold each other up. So each processor gets one test process that prefers
files that compute, the *computing* lane, and the rest, the *waiting* lanes, prefer files that wait. The longest files come first, so
that all processes end at about the same time. When a lane has nothing left of its own kind it takes the longest file of the other.

A file is the smallest unit: its tests share what they prepare. The costs are those that `make test-costs` wrote to
`tests/file_costs.txt`; a file that was never measured counts as quick.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
from tests.costs import FileCost, read_file_costs
from xdist.scheduler import LoadFileScheduling

_COMPUTING_SHARE = 0.45
"""A file whose tests use more CPU time than this share of their seconds computes."""


class LaneScheduling(LoadFileScheduling):  # type: ignore[misc]
    """Assigns whole files to test processes, by what they cost."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._costs = read_file_costs()

    def _assign_work_unit(self, node: Any) -> None:
        """Move the best file for this process to the front of the queue, from which the base class takes it."""
        self.workqueue.move_to_end(self._choose_file(self._prefers_computing(node)), last=False)
        super()._assign_work_unit(node)

    def _prefers_computing(self, node: Any) -> bool:
        computing_lanes: int = min(os.cpu_count() or 1, max(1, self.numnodes - 1))
        place: int = self.nodes.index(node)
        return place < computing_lanes

    def _choose_file(self, prefers_computing: bool) -> str:
        def rank(file: str) -> tuple[bool, float]:
            cost = self._costs.get(file, FileCost())
            return (computes(cost) == prefers_computing), cost.seconds

        files: list[str] = list(self.workqueue)
        return max(files, key=rank)


def computes(cost: FileCost) -> bool:
    return cost.cpu_seconds >= _COMPUTING_SHARE * cost.seconds
