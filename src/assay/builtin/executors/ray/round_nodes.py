"""Keeps the arms of a round on the same nodes: only what ran on the same nodes is compared in time (docs/decisions/0029).

The arm that is sent first goes wherever there is most room. Each arm after it goes to the nodes of the first one, and its shares to all
of them. Where these have no room, it waits as long as there is other work, and then goes anywhere: a round is torn apart rather than a
node left idle.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from assay.builtin.executors.ray.fleet import RemoteNode
from assay.builtin.executors.ray.shared_job import WorkShare

_Round = tuple[int, str]


@dataclass(slots=True, eq=False)
class _Arm:
    """Where the shares of one arm of a round were sent."""

    trial: int
    nodes: set[str] = field(default_factory=set)
    shares: int = 0


class RoundNodes:
    """The nodes of each arm of each round; the arm that was sent first decides which the others need."""

    def __init__(self) -> None:
        self._rounds: dict[_Round, list[_Arm]] = {}

    def choose(
        self, share: WorkShare, nodes: Sequence[RemoteNode], may_tear: bool = True
    ) -> RemoteNode | None:
        """Choose the node with room for the share that its round needs most; of several, the first."""
        able = (node for node in nodes if node.has_room(share.job))
        first, own = self._find_arms(share)
        if first is own:
            return next(able, None)
        if not may_tear:
            return next((node for node in able if _is_wanted(node.name, first, own)), None)
        return min(
            able,
            key=lambda node: (not _is_wanted(node.name, first, own), node.name not in first.nodes),
            default=None,
        )

    def is_wanted(self, share: WorkShare, node: str) -> bool:
        """Whether the round of the share has this node, and all of its nodes can still get a share of this arm."""
        first, own = self._find_arms(share)
        return first is own or _is_wanted(node, first, own)

    def note(self, share: WorkShare, node: str) -> None:
        arms = self._rounds.setdefault(_round_of(share), [])
        _, own = self._find_arms(share)
        if own not in arms:
            arms.append(own)
        own.nodes.add(node)
        own.shares += 1

    def drop(self, node: str) -> None:
        """A node is gone."""
        for arms in self._rounds.values():
            for arm in arms:
                arm.nodes.discard(node)

    def _find_arms(self, share: WorkShare) -> tuple[_Arm, _Arm]:
        """The first arm of the round, and that of the share, which may be the same."""
        arms, trial = self._rounds.get(_round_of(share), ()), share.job.trial
        own = next((arm for arm in arms if arm.trial == trial), None) or _Arm(trial)
        return (arms[0] if arms else own), own


def _is_wanted(node: str, first: _Arm, own: _Arm) -> bool:
    if node not in first.nodes or node not in own.nodes:
        return node in first.nodes
    # Arms have as many shares as each other, unless some had been stored before.
    return first.shares - own.shares > len(first.nodes) - len(own.nodes)


def _round_of(share: WorkShare) -> _Round:
    """Its number, and the first case of its benchmark: only arms of one benchmark are compared."""
    job = share.whole.job
    return job.process, job.cases[0].id if job.cases else ""
