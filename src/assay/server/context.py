"""What the routes share: the project, its store and its queue, kept in the state of the application."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Request

from assay.model.access import ApiKey
from assay.server.counts import RequestCounts
from assay.server.queue import RunQueue
from assay.server.recent import Recent
from assay.server.run_status import read_status
from assay.spec.settings import Settings
from assay.store.store import Store

MAX_RUNS, MAX_QUEUE, SYNC_SECONDS = 2, 100, 60
LOCAL = "local"
_FRESH_SECONDS = 0.4
_BOARD_SECONDS = 1.0
"""A leaderboard may be this old: it takes long to compute, and a page shows it to everybody."""


class SharedProgress:
    """Where runs stand, read once for all who watch the same run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._read: dict[str, tuple[float, asyncio.Task[dict[str, Any]]]] = {}

    async def read(self, run_id: str) -> dict[str, Any]:
        """The status of a run, at most a moment old."""
        at, task = self._read.get(run_id, (0.0, None))
        now = monotonic()
        if task is None or now - at > _FRESH_SECONDS:
            self._read = {key: one for key, one in self._read.items() if now - one[0] <= _FRESH_SECONDS}
            task = asyncio.ensure_future(run_sync(read_status, self._store, run_id))
            self._read[run_id] = (now, task)
        return await asyncio.shield(task)


@dataclass(frozen=True, slots=True)
class ServerContext:
    """Everything that outlives a request."""

    settings: Settings
    store: Store
    queue: RunQueue
    progress: SharedProgress = field(init=False)
    counts: RequestCounts = field(default_factory=RequestCounts)
    boards: Recent[bytes] = field(default_factory=lambda: Recent(_BOARD_SECONDS))

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", SharedProgress(self.store))

    @property
    def max_runs(self) -> int:
        return int(self.settings.server.get("max_runs", MAX_RUNS))

    @property
    def max_queue(self) -> int:
        return int(self.settings.server.get("max_queue", MAX_QUEUE))

    @property
    def sync_seconds(self) -> float:
        return float(self.settings.server.get("sync_seconds", SYNC_SECONDS))


def _find_context(request: Request) -> ServerContext:
    context: ServerContext = request.app.state.context
    return context


Context = Annotated[ServerContext, Depends(_find_context)]


def find_author(request: Request) -> str:
    """The name of the key that a request was made with; without keys, whoever uses this machine."""
    key: ApiKey | None = request.state.caller.key
    return key.name if key else LOCAL


Caller = Annotated[str, Depends(find_author)]
