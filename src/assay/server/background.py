"""What a server does by itself: it runs suites by their schedules, delivers alerts, and looks for stale agents."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread

from assay.errors import AssayError
from assay.pipeline.alerts import deliver_alerts, tell_stale_agents
from assay.pipeline.schedules import run_due_suites, settle_scheduled_runs
from assay.server.queue import RunQueue
from assay.server.webhook import Webhook
from assay.spec.settings import Settings
from assay.store.store import Store

_log = logging.getLogger(__name__)

_SCHEDULE_SECONDS = 1.0
_ALERT_SECONDS = 1.0
_STALE_SECONDS = 3600.0
_JOIN_SECONDS = 15.0
"""An alert that is being sent may take that long; what is not done by then is sent by the next server."""


class BackgroundWork:
    """Threads that each do one thing again and again. While the database is away, they wait for it."""

    def __init__(self, settings: Settings, store: Store, queue: RunQueue, webhook: Webhook | None) -> None:
        self._settings, self._store, self._queue, self._webhook = settings, store, queue, webhook
        self._is_ending = Event()
        work: list[tuple[str, Callable[[datetime], object], float]] = [
            ("schedules", self._run_schedules, _SCHEDULE_SECONDS),
            ("stale agents", self._tell_stale_agents, _STALE_SECONDS),
        ]
        if webhook is not None:
            work.append(("alerts", self._deliver_alerts, _ALERT_SECONDS))
        self._threads = [
            Thread(target=self._repeat, args=one, name=f"assay-{one[0]}", daemon=True) for one in work
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._is_ending.set()
        for thread in self._threads:
            thread.join(_JOIN_SECONDS)

    def _repeat(self, name: str, work: Callable[[datetime], object], pause: float) -> None:
        told = ""
        while not self._is_ending.is_set():
            try:
                work(datetime.now(UTC))
                told = ""
            except AssayError as error:
                # Once, not every second: a file that cannot be read stays so until somebody mends it.
                if str(error) != told:
                    _log.warning("%s: %s", name, error)
                told = str(error)
            self._is_ending.wait(pause)

    def _run_schedules(self, now: datetime) -> None:
        if run_due_suites(self._store, self._settings, now):
            self._queue.wake()
        settle_scheduled_runs(self._store, self._settings, now)

    def _tell_stale_agents(self, now: datetime) -> None:
        tell_stale_agents(self._store, self._settings, now)

    def _deliver_alerts(self, now: datetime) -> None:
        if self._webhook is not None:
            deliver_alerts(self._store, self._webhook.send, now)
