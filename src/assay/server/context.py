"""What the routes share: the project, its store and its queue.

There is one context for each workspace that is asked for, with a store, caches and counts of its own, so that nothing of one
workspace can get into the answers of another.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from threading import Lock
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
    """Everything of one workspace that outlives a request."""

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


class Contexts:
    """The contexts of all workspaces, each made when it is first asked for; `own` is that which the server was started with."""

    def __init__(self, own: ServerContext) -> None:
        self.own = own
        self._lock = Lock()
        self._made = {own.store.workspace: own}

    def of(self, key: ApiKey | None) -> ServerContext:
        """What a request with this key may see; one without a key sees the workspace of the server."""
        if key is None:
            return self.own
        workspace = key.workspace
        with self._lock:
            if workspace not in self._made:
                store = self.own.store.in_workspace(workspace)
                settings = without_project_files(self.own.settings)
                self._made[workspace] = ServerContext(settings, store, self.own.queue)
            return self._made[workspace]


def without_project_files(settings: Settings) -> Settings:
    """The settings for other workspaces than that of the server: files of the project belong to that one alone."""
    return replace(settings, load=(), agents=(), suites=())


def _find_context(request: Request) -> ServerContext:
    contexts: Contexts = request.app.state.contexts
    # Put there by the access control: a request that it has not let through has none.
    return contexts.of(request.state.key)


Context = Annotated[ServerContext, Depends(_find_context)]
