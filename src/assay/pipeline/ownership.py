"""The owner of a run keeps its lease, and stops when it has lost it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

from assay.errors import AssayError, StoreError
from assay.execute.load.background import take_usual_priority
from assay.execute.signals import Interrupt
from assay.execute.steady_clock import SteadyClock
from assay.model import RunState
from assay.store.leases import RENEW_SECONDS
from assay.store.store import Store

_log = logging.getLogger(__name__)


@contextmanager
def own_run(
    store: Store, run_id: str, interrupt: Interrupt, clock: SteadyClock, *, is_resumable: bool = False
) -> Iterator[None]:
    """This process owns the run while this is entered; a run that is broken off is not left as one that still goes on.

    After an error, a resumable run keeps its state: resuming it does what is missing.
    """
    with keep_lease(store, run_id, interrupt):
        try:
            yield
        except BaseException as error:
            is_by_user = isinstance(error, KeyboardInterrupt)
            # Where the store failed, it cannot be stored either that the run has ended.
            if is_by_user or not (is_resumable or isinstance(error, StoreError)):
                store.stop_retrying()
                state = RunState.INTERRUPTED if is_by_user else RunState.FAILED
                store.finish(run_id, state, clock.now())
            raise


@contextmanager
def keep_lease(store: Store, run_id: str, interrupt: Interrupt) -> Iterator[None]:
    """While this is entered, the run's lease is renewed; if another process takes it over, the run is asked to end.

    Every batch that is stored renews the lease as well, so the thread below writes only where a run stores nothing for
    long: it sleeps through measurements that are short enough for a write to disturb.
    """
    ended = Event()
    thread = Thread(target=_renew, args=(store, run_id, interrupt, ended), name="assay-lease", daemon=True)
    if store.is_shared:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        # A lease that was lost or that cannot be given up now expires by itself.
        with suppress(AssayError):
            store.release(run_id)


def _renew(store: Store, run_id: str, interrupt: Interrupt, ended: Event) -> None:
    take_usual_priority()
    while not ended.wait(RENEW_SECONDS):
        try:
            is_ours = store.renew(run_id)
        except AssayError as error:
            _log.warning("the lease of run %s could not be renewed: %s", run_id, error)
            continue
        if not is_ours:
            interrupt.is_requested = True
            return
