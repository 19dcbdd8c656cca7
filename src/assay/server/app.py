"""Puts the server together: the routes of every resource, and how errors are answered."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio.to_thread import current_default_thread_limiter, run_sync
from fastapi import FastAPI

from assay import __version__
from assay.model.redaction import known_secrets
from assay.server import benchmarks, catalog, operations, results, runs
from assay.server.access import NEEDED, RATE, AccessControl
from assay.server.answers import answer_errors, describe_errors
from assay.server.context import MAX_RUNS, Contexts, ServerContext
from assay.server.queue import RunQueue
from assay.spec.settings import Settings
from assay.store.store import Store

RESOURCES = (benchmarks, runs, results, catalog, operations)
_THREADS = 12
"""Requests that are worked on at once; fewer than the connections that the store keeps, so that none waits for one."""
_ABOUT = """\
Run suites on registered agents, and read results, leaderboards, comparisons and regressions.

Scores go from 0 to 100. A winner, a rank or a regression is named only where the data prove it.
"""


def create_app(settings: Settings, store: Store, db: str) -> FastAPI:
    """The application over a store that is open, for the project of these settings; `db` is the URL that workers open."""
    queue = RunQueue(store, db, settings.server.get("max_runs", MAX_RUNS))
    known_secrets().learn_environment(os.environ)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = _THREADS
        queue.start()
        try:
            yield
        finally:
            await run_sync(queue.stop)

    app = FastAPI(
        title="Assay",
        version=__version__,
        description=_ABOUT,
        docs_url=None,
        redoc_url=None,
        responses=describe_errors(401, 403, 413, 415, 422, 429, 503),
        lifespan=lifespan,
    )
    app.state.contexts = contexts = Contexts(ServerContext(settings, store, queue))
    answer_errors(app)
    for resource in RESOURCES:
        app.include_router(resource.router)
    app.add_middleware(
        AccessControl,
        routes=[route for resource in RESOURCES for route in resource.router.routes],
        contexts=contexts,
        rate=settings.server.get("rate", RATE),
    )
    app.openapi = lambda: describe_access(app)  # type: ignore[method-assign]
    return app


def describe_access(app: FastAPI) -> dict[str, Any]:
    """The schema, in which every operation says that it needs a key of its scope."""
    schema = FastAPI.openapi(app)
    schema["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path in schema["paths"].values():
        for operation in path.values():
            if operation.get(NEEDED) != "public":
                operation["security"] = [{"key": []}]
    return schema
