"""Has queued runs executed by worker processes, a few at a time, and continues those that a server
left behind.

The queue is in the store, and every worker is a process of its own. A server that is restarted therefore
loses nothing: it finds the runs that its predecessor began and continues them.
"""

from __future__ import annotations

import logging
import signal
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from threading import Event, Thread
from time import monotonic

from assay.errors import AssayError
from assay.model.queue import QueuedRun, QueueState
from assay.pipeline.lifecycle import new_run_id
from assay.server.processes import start_worker
from assay.store.processes import current_owner
from assay.store.store import Store

_log = logging.getLogger(__name__)

_STEP_SECONDS = 0.25
_RENEW_SECONDS = 5.0
_END_SECONDS = 20.0
"""For workers to store what they have, when the server ends; after that they are killed, and lose what is not stored."""
_MOST_ATTEMPTS = 3
"""Processes that may die over one run before it counts as failed."""


class RunQueue:
    """The workers of this server. One thread starts them, watches them, and ends them when their run is cancelled.

    The queue itself is in the store, so it outlives the server and is shared by all servers on one database. It has the runs of
    all workspaces, each of which is executed in its own. This object knows only the processes that it has started.
    """

    def __init__(self, store: Store, db: str, most: int) -> None:
        self._store = store
        self._db = db
        self._most = most
        self._workers: dict[str, subprocess.Popen[bytes]] = {}
        self._owner = current_owner()
        self._signalled: set[str] = set()
        """Runs whose workers were asked to end. Once: a second SIGINT has them drop what they are executing."""
        self._wake = Event()
        self._is_ending = False
        self._renewed = -_RENEW_SECONDS
        self._thread = Thread(target=self._keep_going, name="assay-queue", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def submit(self, store: Store, agent: str, suite: str, configuration: Mapping[str, object]) -> QueuedRun:
        """Queue a run in the workspace of the store; it begins when a worker is free."""
        queued = QueuedRun(new_run_id(), agent, suite, configuration, datetime.now(UTC))
        store.enqueue(queued)
        self.wake()
        return queued

    def wake(self) -> None:
        """Something has changed in the queue: look now."""
        self._wake.set()

    def stop(self) -> None:
        """End all workers as Ctrl-C does. Their runs stay in the queue, and the next server continues them."""
        self._is_ending = True
        self.wake()
        self._thread.join()
        for run_id in self._workers:
            self._ask_to_end(run_id)
        deadline = monotonic() + _END_SECONDS
        for run_id, worker in self._workers.items():
            try:
                worker.wait(max(0.0, deadline - monotonic()))
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            self._store.give_back_queued(run_id, self._owner)

    def _keep_going(self) -> None:
        """While the database is away, nothing is started; what runs waits for it by itself."""
        while not self._is_ending:
            try:
                self._step()
            except AssayError as error:
                _log.warning("the queue cannot be read: %s", error)
            except Exception:
                # Without this thread no run would ever begin again, for no visible reason.
                _log.exception("a step of the queue failed")
            self._wake.wait(_STEP_SECONDS)
            self._wake.clear()

    def _step(self) -> None:
        for run_id in [run_id for run_id, worker in self._workers.items() if worker.poll() is not None]:
            self._settle_ended_worker(run_id)
            del self._workers[run_id]
            self._signalled.discard(run_id)
        if monotonic() - self._renewed >= _RENEW_SECONDS:
            for run_id in self._store.renew_queued(list(self._workers), self._owner):
                self._ask_to_end(run_id)  # another server has taken over while this one stalled
            self._renewed = monotonic()
        queue = self._store.whole_queue()
        for queued in queue:
            if queued.state is QueueState.CANCELLING and queued.id in self._workers:
                self._ask_to_end(queued.id)
        # The queue is read before it is claimed from: a claim locks the database, and most of the time no run waits.
        waiting = sum(queued.state is QueueState.QUEUED for queued in queue)
        for _ in range(min(waiting, self._most - len(self._workers))):
            if (claimed := self._store.claim_queued(self._owner)) is not None:
                self._workers[claimed.id] = start_worker(
                    "worker", self._db, self._store.workspace, claimed.id, claimed.workspace
                )

    def _ask_to_end(self, run_id: str) -> None:
        if run_id not in self._signalled:
            self._workers[run_id].send_signal(signal.SIGINT)
            self._signalled.add(run_id)

    def _settle_ended_worker(self, run_id: str) -> None:
        """A worker has ended. If it left its run open, the run was cancelled or interrupted, or the worker died."""
        worker = self._workers[run_id]
        queued = next((run for run in self._store.whole_queue() if run.id == run_id), None)
        if queued is None or queued.state not in (QueueState.RUNNING, QueueState.CANCELLING):
            return
        if queued.state is QueueState.RUNNING and worker.returncode == 0:
            self._store.settle_queued(run_id, QueueState.CANCELLED, owner=self._owner)
        elif queued.state is QueueState.RUNNING and queued.attempts >= _MOST_ATTEMPTS:
            reason = f"{queued.attempts} processes ended before the run did, the last with code {worker.returncode}."
            self._store.settle_queued(run_id, QueueState.FAILED, reason, self._owner)
        else:
            self._store.give_back_queued(run_id, self._owner)
