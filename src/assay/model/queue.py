"""Runs that the server was asked for, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from assay.model.workspace import DEFAULT


class QueueState(StrEnum):
    """The state of a requested run; it starts as `queued`."""

    QUEUED = "queued"
    RUNNING = "running"
    CANCELLING = "cancelling"
    DONE = "done"
    """Executed; how it ended is the state of the run."""
    CANCELLED = "cancelled"
    REFUSED = "refused"
    """It could not be planned."""
    FAILED = "failed"
    """The process that carried it out ended again and again."""

    @property
    def is_open(self) -> bool:
        return self in OPEN


OPEN = (QueueState.QUEUED, QueueState.RUNNING, QueueState.CANCELLING)


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A request to run a suite with an agent. Its id is that of the run."""

    id: str
    agent: str
    suite: str
    configuration: Mapping[str, object]
    created: datetime
    state: QueueState = QueueState.QUEUED
    error: str = field(default="")
    """Why it was refused or failed."""
    attempts: int = 0
    """How often a process began with it."""
    workspace: str = DEFAULT
    """Where it belongs: the store sets it, to the workspace in which it was asked for."""
