"""Follows jobs from node to node: what is stored as the node of a process.

A job that moves before it has finished an execution has one node, the last. Executions of one that moves later come from several
machines, and so do those of a round whose cases are spread over several nodes: both have the names of all of them. A process of
code is one unit of replication, so a remark is stored beside the figures of its trial, and comparisons leave it out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from dataclasses import replace

from assay.model import Artifact, Batch, Placement
from assay.model.execution import BETWEEN_NODES
from assay.pipeline.lifecycle import ActiveRun


class PlacementLog:
    """The node of each process so far, also of those that were stored before a run was resumed."""

    def __init__(self, active: ActiveRun, progress: Iterable[tuple[int, int, str]]) -> None:
        """`progress` names the trials, processes and phases of which executions are stored."""
        self._begun = {(trial, process) for trial, process, _ in progress}
        self._of_code = {stored.trial.index for stored in active.run.trials if stored.trial.agent_use is None}
        self._nodes = {
            (stored.trial.index, process): node
            for stored in (active.run.trials if self._begun else ())
            for process, node in active.store.placements(stored.id).items()
        }

    def resolve_placements(self, batch: Batch) -> Batch:
        """The batch with the nodes that are to be stored, and with remarks on the processes that were split."""
        if not batch.placements and not self._nodes:
            return batch
        # Whether an execution was made before or after a move that arrived with it is not known: it counts as before.
        self._begun.update((execution.trial, execution.process) for execution in batch.executions)
        if not batch.placements:
            return batch
        for placement in batch.placements:
            key = placement.trial, placement.process
            # The shares of a round begin side by side, before any of them has an execution.
            is_shared = key in self._nodes and (key in self._begun or placement.trial not in self._of_code)
            before = self._nodes[key].split(BETWEEN_NODES) if is_shared else []
            self._nodes[key] = BETWEEN_NODES.join(sorted({placement.node, *before}))
        keys = dict.fromkeys((placement.trial, placement.process) for placement in batch.placements)
        placed = [Placement(*key, self._nodes[key]) for key in keys]
        return replace(
            batch, placements=tuple(placed), artifacts=(*batch.artifacts, *self._remark_on_moves(placed))
        )

    def _remark_on_moves(self, placed: Iterable[Placement]) -> Iterator[Artifact]:
        for placement in placed:
            if BETWEEN_NODES in placement.node and placement.trial in self._of_code:
                text = f"process {placement.process} moved: its executions come from several nodes ({placement.node})"
                yield Artifact(placement.trial, f"moved-{secrets.token_hex(3)}.txt", "remark", text.encode())
