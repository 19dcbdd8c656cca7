"""What a server does by itself: it runs suites by their schedules, delivers alerts, and looks for stale agents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread

from assay.errors import AssayError
from assay.pipeline.alerts import deliver_alerts, tell_stale_agents
from assay.pipeline.schedules import run_due_suites, settle_scheduled_runs
from assay.server.context import Contexts, ServerContext
from assay.server.webhook import Webhook

_log = logging.getLogger(__name__)

_SCHEDULE_SECONDS = 1.0
_ALERT_SECONDS = 1.0
_STALE_SECONDS = 3600.0
_JOIN_SECONDS = 15.0
"""An alert that is being sent may take that long; what is not done by then is sent by the next server."""


Work = Callable[[ServerContext], object]
"""What is done for one workspace."""


class BackgroundWork:
    """Threads that each do one thing again and again, for every workspace of the database.

    While the database is away, they wait for it. Whatever goes wrong in one workspace, they continue with the next.
    """

    def __init__(self, contexts: Contexts, webhook: Webhook | None) -> None:
        self._contexts, self._webhook = contexts, webhook
        self._is_ending = Event()
        self._last_errors: dict[str, str] = {}
        """What went wrong last, by what was done: a file that cannot be read stays so until somebody fixes it."""
        work: list[tuple[str, Work, float]] = [
            ("schedules", self._run_schedules, _SCHEDULE_SECONDS),
            ("stale agents", self._tell_stale_agents, _STALE_SECONDS),
        ]
        if webhook is not None:
            work.append(("alerts", self._deliver_alerts, _ALERT_SECONDS))
        self._threads = [
            Thread(target=self._repeat, args=task, name=f"assay-{task[0]}", daemon=True) for task in work
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_ending.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _repeat(self, name: str, work: Work, pause: float) -> None:
        while not self._is_ending.is_set():
            self._attempt(name, lambda: self._work_everywhere(name, work))
            self._is_ending.wait(pause)

    def _work_everywhere(self, name: str, work: Work) -> None:
        for workspace in self._contexts.own.store.workspaces():
            if self._is_ending.is_set():
                return
            self._attempt(f"{name} of '{workspace}'", lambda: work(self._contexts.find(workspace)))  # noqa: B023

    def _attempt(self, name: str, do: Callable[[], object]) -> None:
        """Log what goes wrong; once, not every second."""
        try:
            do()
            self._last_errors.pop(name, None)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            if message == self._last_errors.get(name):
                return
            self._last_errors[name] = message
            if isinstance(error, AssayError):
                _log.warning("%s: %s", name, error)
            else:
                _log.exception("%s", name)

    def _run_schedules(self, context: ServerContext) -> None:
        now = _read_clock()
        if run_due_suites(context.store, context.settings, now):
            context.queue.wake()
        settle_scheduled_runs(context.store, context.settings, now)

    def _tell_stale_agents(self, context: ServerContext) -> None:
        tell_stale_agents(context.store, context.settings, _read_clock())

    def _deliver_alerts(self, context: ServerContext) -> None:
        if self._webhook is not None:
            deliver_alerts(context.store, self._webhook.send, _read_clock)


def _read_clock() -> datetime:
    return datetime.now(UTC)
