"""Keeps the arms of a round on the same nodes: only what ran on the same nodes is compared in time (docs/decisions/0029).

The arm that is sent first goes wherever there is most room. Each arm after it goes to the nodes of the first one as long as they have
room: a job that is not cut to the one node, the shares of a job that is cut to each of the nodes, before any of them gets a second one.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.builtin.executors.ray.fleet import RemoteNode
from assay.builtin.executors.ray.shared_job import WorkShare

_Round = tuple[int, str]


class RoundNodes:
    """The nodes of each round: those of its first arm, and those that each arm has been sent to."""

    def __init__(self) -> None:
        self._first: dict[_Round, int] = {}
        """The trial that was sent first."""
        self._of_arms: dict[tuple[_Round, int], set[str]] = {}

    def choose(self, share: WorkShare, nodes: Sequence[RemoteNode]) -> RemoteNode | None:
        """Of the nodes with room for the share, the first that its round needs; else the first."""
        able = (node for node in nodes if node.has_room(share.job))
        round_, trial = _round_of(share), share.job.trial
        first = self._first.get(round_, trial)
        if first == trial:
            return next(able, None)
        wanted = self._of_arms.get((round_, first), set())
        missing = wanted - self._of_arms.get((round_, trial), set())
        return min(able, key=lambda node: (node.name not in missing, node.name not in wanted), default=None)

    def note(self, share: WorkShare, node: str) -> None:
        round_, trial = _round_of(share), share.job.trial
        self._first.setdefault(round_, trial)
        self._of_arms.setdefault((round_, trial), set()).add(node)

    def drop(self, node: str) -> None:
        """A node is gone."""
        for names in self._of_arms.values():
            names.discard(node)


def _round_of(share: WorkShare) -> _Round:
    """Its number, and the first case of its benchmark: only arms of one benchmark are compared."""
    job = share.whole.job
    return job.process, job.cases[0].id if job.cases else ""
