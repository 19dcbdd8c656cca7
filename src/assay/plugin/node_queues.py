"""Deals jobs to nodes, so that all arms of a run meet on every node.

Jobs of equal `process` are one round: the arms of a comparison, the two sides of a pair, the legs of a team. If they run on the same node,
their difference is one within a node, whatever nodes differ by. A node that has room asks for its next job, so fast nodes execute
more rounds, but all arms of them. Any executor with several nodes may use it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from itertools import chain

from assay.model import Job

HELD = 4
"""Jobs that wait for one node at the most: a driver that held more would decide too early which are still wanted."""


class NodeQueues:
    """The jobs of a run on their way to nodes; of each node, those that wait for it."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self._jobs: Iterator[Job] = iter(jobs)
        self._homes: dict[int, str] = {}
        self._waiting: defaultdict[str, deque[Job]] = defaultdict(deque)

    def draw(self, node: str) -> Job | None:
        """The next job for a node that has room; None where nothing is left.

        A round is at home on the node that its first job ran on. A job whose home is another node waits for that, unless too many
        wait there already or no other work is left: then its round is torn apart rather than a node left idle.
        """
        if self._waiting[node]:
            return self._waiting[node].popleft()
        for job in self._jobs:
            home = self._homes.setdefault(job.process, node)
            if home == node or len(self._waiting[home]) >= HELD:
                return job
            self._waiting[home].append(job)
        longest = max(self._waiting.values(), key=len)
        return longest.popleft() if longest else None

    def drop(self, node: str) -> None:
        """A node is gone: the jobs that wait for it, and the rest of its rounds, go to others."""
        self._homes = {number: home for number, home in self._homes.items() if home != node}
        self._jobs = chain(self._waiting.pop(node, ()), self._jobs)
