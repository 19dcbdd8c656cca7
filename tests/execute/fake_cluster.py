"""An executor that claims to have several nodes: it wraps `Local`, says where each job runs, and plants the times of each node."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from random import Random

from assay.builtin.executors.local import Local
from assay.model import Batch, Execution, Job, Placement
from assay.plugin.executor import Attempt
from assay.plugin.node_queues import NodeQueues

KINDS = {"fast": "EPYC", "slow": "Xeon"}


class FakeCluster:
    """Two nodes; on the slow one everything takes half as long again."""

    factors: Mapping[str, float] = {"fast": 1.0, "slow": 1.5}
    second_arm: float = 1.0
    """What the second trial takes, the first being 1."""

    def __init__(self, workers: int) -> None:
        self._local = Local(workers)
        self._at: dict[tuple[int, int], str] = {}
        self._busy: dict[tuple[int, int], str] = {}
        self._news: list[Placement] = []

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]:
        yield Batch(nodes={name: self._describe(name) for name in self.factors})
        for batch in self._local.map(attempt, self._place(jobs), stop):
            yield self._move_to_nodes(batch)
            for key in batch.settled:
                self._busy.pop(key, None)

    def _place(self, jobs: Iterable[Job]) -> Iterator[Job]:
        for job, node in self.deal(jobs):
            self._at[job.trial, job.process] = self._busy[job.trial, job.process] = node
            self._news.append(Placement(job.trial, job.process, node))
            yield job

    def deal(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, str]]:
        """Each job with its node: the one with the least work asks for it."""
        queues = NodeQueues(jobs)
        while True:
            busy, ever = Counter(self._busy.values()), Counter(self._at.values())
            node = min(self.factors, key=lambda name: (busy[name], ever[name]))
            if (job := queues.draw(node)) is None:
                return
            yield job, node

    def _move_to_nodes(self, batch: Batch) -> Batch:
        placed, self._news = tuple(self._news), []
        return replace(batch, executions=tuple(map(self._plant_time, batch.executions)), placements=placed)

    def _plant_time(self, execution: Execution) -> Execution:
        chance = Random(f"{execution.trial} {execution.process} {execution.case} {execution.repetition}")
        factor = self.factors[self._at[execution.trial, execution.process]]
        arm = self.second_arm if execution.trial else 1.0
        seconds = 0.01 * factor * arm * math.exp(chance.gauss(0, 0.005))
        return replace(execution, measurements={**execution.measurements, "seconds": seconds})

    def _describe(self, name: str) -> dict[str, object]:
        facts = {
            "cpu": {"model": KINDS.get(name, name), "cores_logical": 2},
            "os": {"system": "Linux"},
            "machine": "x86_64",
        }
        noisy = ["The machine was noisy at the start."] if name == "slow" else []
        return {"facts": facts, "vcs": {}, "doubts": noisy}


class SplitCluster(FakeCluster):
    """Every arm has a node of its own."""

    def deal(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, str]]:
        return ((job, "fast" if job.trial == 0 else "slow") for job in jobs)


class UnfairCluster(FakeCluster):
    """The first arm runs mostly on the fast node, the second mostly on the slow one."""

    def deal(self, jobs: Iterable[Job]) -> Iterator[tuple[Job, str]]:
        return ((job, "fast" if (job.trial == 0) != (job.process % 4 == 0) else "slow") for job in jobs)


class UnfairClusterWithSlowerArm(UnfairCluster):
    second_arm = 1.1


class FakeClusterWithSlowerArm(FakeCluster):
    second_arm = 1.1
