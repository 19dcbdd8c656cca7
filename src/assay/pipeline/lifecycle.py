"""The lifecycle of a run: the one place that begins a run or takes it over, stores what it measures, and finishes it.

    with interruptible() as interrupt, open_run(plan, store, interrupt, environment) as active:
        for batch in measure():
            active.add(batch)
        active.finish(decide_state)

While the context is entered, this process owns the run: it holds the lease, and it stops when it has lost it
(docs/decisions/0011). `assay run`, `load`, `stress`, `--find-capacity` and `gate --rerun-baseline` differ in what they measure
and in how they decide the final state, not in any of this (docs/decisions/0013).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event, Thread

from assay.errors import AssayError, StoreError
from assay.execute.signals import Interrupt
from assay.load.priorities import take_usual_priority
from assay.model import Batch, Budget, Environment, Plan, Run, RunState
from assay.plugin.steady_clock import SteadyClock
from assay.store.leases import RENEW_SECONDS
from assay.store.processes import current_owner
from assay.store.store import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that this process owns. `run` is the run as it was when it was begun or taken over.

    A run moves from `running` to exactly one final state, and only `finish` or an error moves it. If the process is killed,
    the state stays `running`; its expired lease shows later that no process continues it, so that it may be resumed.
    """

    run: Run
    store: Store
    interrupt: Interrupt
    clock: SteadyClock

    @property
    def id(self) -> str:
        return self.run.id

    def add(self, batch: Batch) -> None:
        """Stores a batch; a second Ctrl-C waits until it is stored, and a batch waits for a database that is away."""
        with self.interrupt.storing():
            self.store.add(self.id, batch)

    def finish(
        self,
        decide_state: Callable[[], RunState],
        conclude: Callable[[RunState], None] = lambda state: None,
    ) -> RunState:
        """Waits until every batch is stored, then ends the run: as interrupted, or else in the state that is decided.

        `conclude` stores what is known only at the end, such as ratings. While the database is away, both functions are called
        again and again, so calling them twice must do no harm.
        """

        def end() -> RunState:
            state = RunState.INTERRUPTED if self.interrupt() else decide_state()
            conclude(state)
            self.store.finish(self.id, state, self.clock.now())
            return state

        # The order matters. The state is decided from what is stored, so every batch has to be there first, and what
        # `conclude` stores must be there before the run counts as finished: a reader of a finished run finds its ratings.
        self.store.settle(self.id)
        return self.store.insist(end)


def new_run_id() -> str:
    return secrets.token_hex(5)


@contextmanager
def open_run(
    plan: Plan,
    store: Store,
    interrupt: Interrupt,
    environment: Environment,
    clock: SteadyClock | None = None,
    *,
    run_id: str | None = None,
    stays_open_on_error: bool = False,
) -> Iterator[ActiveRun]:
    """Begins a run, which started when the clock did, and owns it until the context is left; it has an id of its own unless one is given."""
    clock = clock or SteadyClock()
    run = store.begin(plan, environment, run_id or new_run_id(), clock.started, current_owner())
    active = ActiveRun(run, store, interrupt, clock)
    with _owning(active, stays_open_on_error):
        yield active


@contextmanager
def reopen_run(
    run_id: str,
    store: Store,
    interrupt: Interrupt,
    budget: Budget | None = None,
    *,
    stays_open_on_error: bool = False,
) -> Iterator[ActiveRun]:
    """Takes over a run that was cut short, unless another process owns it. Results that were not stored then are stored now."""
    run = store.reopen(run_id, current_owner(), budget)
    # A system clock that was set back meanwhile must not let the run end before it began.
    clock = SteadyClock(max(run.started, datetime.now(UTC)))
    active = ActiveRun(run, store, interrupt, clock)
    with _owning(active, stays_open_on_error):
        yield active


@contextmanager
def _owning(active: ActiveRun, stays_open_on_error: bool) -> Iterator[None]:
    """Keeps the lease. A run that the user breaks off is interrupted, one that ends by an error has failed.

    With `stays_open_on_error`, a run that ends by an error keeps its state, as if its process had been killed.
    """
    with keep_lease(active.store, active.id, active.interrupt):
        try:
            yield
        except BaseException as error:
            is_by_user = isinstance(error, KeyboardInterrupt)
            # Where the store failed, it cannot be stored either that the run has ended.
            if is_by_user or not (stays_open_on_error or isinstance(error, StoreError)):
                # The user waits for the command to end, or an error waits to be shown: one try is enough now.
                active.store.stop_retrying()
                state = RunState.INTERRUPTED if is_by_user else RunState.FAILED
                active.store.finish(active.id, state, active.clock.now())
            raise


@contextmanager
def keep_lease(store: Store, run_id: str, interrupt: Interrupt) -> Iterator[None]:
    """While this is entered, the run's lease is renewed; if another process takes it over, the run is asked to end.

    Every batch that is stored renews the lease as well, so the thread below writes only where a run stores nothing for
    long: it sleeps through measurements that are short enough for a write to disturb.
    """
    ended = Event()
    thread = Thread(target=_renew, args=(store, run_id, interrupt, ended), name="assay-lease", daemon=True)
    # A database in memory belongs to this process alone, so no other process could take the run over.
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
    """The thread that renews. A failure to reach the database is only logged: the next renewal may succeed in time, and the
    batches of the run have retries of their own. A lost lease ends the run as Ctrl-C would."""
    # A thread inherits the priority of the one that starts it, which may be lowered beside a load. A renewal that waits for the
    # processor behind the workers of the load could come too late.
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
