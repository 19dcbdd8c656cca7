"""What the routes share: the project, its store and its queue, kept in the state of the application."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from time import monotonic
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Depends, Request, Response

from assay.server.boards import BoardKeeper
from assay.server.counts import RequestCounts
from assay.server.queue import RunQueue
from assay.server.recent import KeptAnswers
from assay.server.run_status import read_status
from assay.spec.settings import Settings
from assay.store.store import Store

MAX_RUNS, MAX_QUEUE, SYNC_SECONDS = 2, 100, 60
_FRESH_SECONDS = 0.4
_ANSWER_BYTES = 16 << 20


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
    boards: BoardKeeper = field(init=False)
    answers: KeptAnswers = field(default_factory=lambda: KeptAnswers(_ANSWER_BYTES))
    db: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "progress", SharedProgress(self.store))
        object.__setattr__(self, "boards", BoardKeeper(self.store, self.db))

    def answer(self, key: Hashable, make: Callable[[], Response]) -> Response:
        """An answer about results of suites that takes long; it is made again when one of them or a baseline has changed."""
        state = (self.store.changes(), self.store.baselines())
        written = self.answers.get(key, state, lambda: bytes(make().body))
        return Response(written, media_type="application/json")

    @property
    def max_runs(self) -> int:
        return int(self.settings.server.get("max_runs", MAX_RUNS))

    @property
    def max_queue(self) -> int:
        return int(self.settings.server.get("max_queue", MAX_QUEUE))

    @property
    def sync_seconds(self) -> float:
        return float(self.settings.server.get("sync_seconds", SYNC_SECONDS))


# Not a plain function, which would be called in another thread.
async def _find_context(request: Request) -> ServerContext:
    context: ServerContext = request.app.state.context
    return context


Context = Annotated[ServerContext, Depends(_find_context)]
