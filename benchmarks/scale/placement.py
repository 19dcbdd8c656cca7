"""What it costs the driver of the executor `ray` to choose a node for a share of work, by the number of nodes. Ray is not started.

PYTHONPATH=benchmarks python -m scale.placement
"""

from __future__ import annotations

from collections.abc import Iterator
from time import process_time
from types import SimpleNamespace
from typing import Any, cast

from assay.builtin.executors.ray.cluster import Node
from assay.builtin.executors.ray.executor import Dispatch
from assay.builtin.executors.ray.fleet import Fleet, RemoteNode
from assay.builtin.executors.ray.shared_job import WorkShare

SLOTS = 16
SHARES = 10_000


class _Placing(Dispatch):
    """Has work without end."""

    def _next_share(self, node: str) -> WorkShare:
        self._numbers += 1
        job = SimpleNamespace(resources=None, concurrency=1, trial=0, process=self._numbers, cases=())
        whole = SimpleNamespace(job=job)
        return cast("WorkShare", SimpleNamespace(number=self._numbers, job=job, whole=whole, after=0))


def measure_placing(nodes: int, shares: int = SHARES) -> float:
    """CPU seconds for one share, while the nodes fill up."""
    fleet = cast("Any", Fleet.__new__(Fleet))
    fleet.nodes = {
        f"{n}": RemoteNode(Node(f"{n}", f"{n}", SLOTS, {"CPU": float(SLOTS)}), None) for n in range(nodes)
    }
    jobs: Iterator[Any] = iter(())
    placing = _Placing(fleet, "", jobs, SLOTS * nodes, 1)
    placed = min(shares, SLOTS * nodes)
    before = process_time()
    for _ in range(placed):
        assert fleet.count_at_work() < SLOTS * nodes
        found = placing._match()
        assert found is not None
        share, node = found
        node.add(share)
    return (process_time() - before) / placed


if __name__ == "__main__":
    for count in (10, 100, 1_000):
        print(f"{count:,} nodes: {1e6 * measure_placing(count):.0f} µs of CPU time for a share")
