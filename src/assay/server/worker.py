"""Executes one run of the queue, in a process of its own: `python -m assay.server.worker ID WORKSPACE`.

The server starts it in the folder of the project, names the database and its own workspace in the environment, and holds its
standard input open. When that closes, the server is gone, and the run ends as by Ctrl-C; another server continues it.
"""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread

from assay.errors import AssayError, RunNotFound, StoreError
from assay.model import RunState
from assay.model.queue import QueuedRun, QueueState
from assay.pipeline.alerts import tell_regressions
from assay.pipeline.planning import prepare
from assay.pipeline.registry import find_registered
from assay.pipeline.run import resume, run_plan
from assay.server.configuration import build_request
from assay.server.context import without_project_files
from assay.spec.settings import Settings, find_settings
from assay.store.store import Store


def main(run_id: str, workspace: str) -> None:
    """Ends with code 0 unless something unforeseen happened; what became of the run is in the store."""
    Thread(target=_end_with_server, daemon=True).start()
    settings = find_settings(Path.cwd())
    if workspace != settings.workspace:
        settings = without_project_files(settings)
    with Store.open(settings.db, workspace=workspace, retry_seconds=settings.db_retry) as store:
        queued = store.read_queued_run(run_id)
        if queued is None or queued.state is not QueueState.RUNNING:
            return
        try:
            state = _carry_out(queued, settings, store)
        except StoreError:
            raise  # nothing is wrong with the request: the server tries again
        except AssayError as error:
            store.settle_queued(run_id, QueueState.REFUSED, str(error))
            return
        # An interrupted run stays claimed: its server knows whether it is cancelled or to be continued later.
        if state is not RunState.INTERRUPTED:
            # Before the run counts as done: if this process ends in between, the next one looks again.
            store.insist(lambda: tell_regressions(store, settings, store.run(run_id), datetime.now(UTC)))
            store.insist(lambda: store.settle_queued(run_id, QueueState.DONE))


def _carry_out(queued: QueuedRun, settings: Settings, store: Store) -> RunState:
    """Begin the run, or continue it if another process began it."""
    try:
        state = store.run(queued.id).state
    except RunNotFound:
        suite = find_registered(settings, store, queued.agent, queued.suite)
        plan = prepare(build_request(suite.target, queued.agent, queued.configuration), settings, store)
        return run_plan(plan, store, run_id=queued.id).state
    is_cut_short = state in (RunState.RUNNING, RunState.INTERRUPTED, RunState.INCOMPLETE)
    return resume(queued.id, store).state if is_cut_short else state


def _end_with_server() -> None:
    # Not through sys.stdin: its lock, held by this thread, would keep the interpreter from ending.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGINT)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):  # before the run has begun
        main(*sys.argv[1:])
