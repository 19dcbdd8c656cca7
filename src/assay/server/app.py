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
from assay.server import (
    benchmarks,
    catalog,
    downloads,
    findings,
    labels,
    operations,
    overviews,
    regressions,
    results,
    runs,
)
from assay.server.access import NEEDED, RATE, AccessControl
from assay.server.analyst import Analyst
from assay.server.answers import answer_errors, describe_errors
from assay.server.background import BackgroundWork
from assay.server.context import MAX_RUNS, Contexts, ServerContext
from assay.server.pages import (
    agents,
    alerts,
    boards,
    compare,
    dashboard,
    executions,
    fallback,
    kinds,
    login,
    review,
    suites,
)
from assay.server.pages import operations as operations_page
from assay.server.pages import runs as run_pages
from assay.server.pages import settings as settings_page
from assay.server.queue import RunQueue
from assay.server.webhook import find_webhook
from assay.spec.settings import Settings
from assay.store.store import Store

RESOURCES = (
    benchmarks,
    runs,
    results,
    findings,
    downloads,
    catalog,
    regressions,
    labels,
    overviews,
    operations,
)
PAGES = (
    login,
    dashboard,
    boards,
    compare,
    run_pages,
    executions,
    agents,
    suites,
    kinds,
    alerts,
    review,
    operations_page,
    settings_page,
    fallback,
)
"""The last one answers for every page that there is not."""
_THREADS = 12
"""Requests that are handled at once; fewer than the connections that the store keeps, so that none waits for one."""
_ABOUT = """\
Run suites on registered agents, and read results, leaderboards, comparisons and regressions.

Scores go from 0 to 100. A winner, a rank or a regression is named only if it is statistically significant.
"""


def create_app(settings: Settings, store: Store, db: str) -> FastAPI:
    """The application over a store that is open, for the project of these settings; `db` is the URL that workers open."""
    queue = RunQueue(store, db, settings.server.get("max_runs", MAX_RUNS))
    contexts = Contexts(ServerContext(settings, store, queue, Analyst(db, store.workspace), db=db))
    known_secrets().learn_environment(os.environ)
    background = BackgroundWork(contexts, find_webhook(settings))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        current_default_thread_limiter().total_tokens = _THREADS
        queue.start()
        background.start()
        try:
            yield
        finally:
            await run_sync(contexts.close)
            await run_sync(background.stop)
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
    answer_errors(app)
    routers = [module.router for module in (*RESOURCES, *PAGES)]
    for router in routers:
        app.include_router(router)
    app.add_middleware(
        AccessControl,
        routes=[route for router in routers for route in router.routes],
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
