"""The store: runs, executions and all that belongs to them, to and from a SQLite or PostgreSQL database.

The SQL is in the modules beside this one: `write` and `read` for runs and executions, `cases` and `standings` for suites,
`history` and `regressions` for agents over time, `references` and `registry` for what trials are rated by, `leases`, `outbox` and
`spill` for writing safely, `schema` and `tables` for the database itself, `workspaces` for the part of it that a store sees. What a
run can be begun and carried out without is imported when it is first called (`lazy`).
"""

from __future__ import annotations

import logging
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import sqlalchemy as sa

from assay.errors import LeaseLost, LookupFailed, RunNotFound, StoreError
from assay.model import (
    Batch,
    Budget,
    Environment,
    Execution,
    Plan,
    Question,
    Run,
    RunState,
    Suite,
    Trial,
)
from assay.model.codec import to_plain
from assay.model.redaction import known_secrets
from assay.model.workspace import DEFAULT
from assay.store import (
    database,
    driver_errors,
    lazy,
    leases,
    pruning,
    registry,
    schema,
    spill,
    totals,
    workspaces,
)
from assay.store import read as reading
from assay.store import run_refs as refs
from assay.store import write as writing
from assay.store.address import Address, read_address
from assay.store.outbox import RETRY_SECONDS, Outbox, retry
from assay.store.processes import Owner
from assay.store.schema import upgrade
from assay.store.tables import baselines, executions, ratings, runs, tags, trials
from assay.store.workspaces import DEFAULT_PLACE, Workspace
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model import Ratings
    from assay.model.access import ApiKey
    from assay.model.alert import Alert
    from assay.model.label import Label, LabelVerdict
    from assay.model.queue import QueuedRun
    from assay.model.regression import Regression
    from assay.model.schedule import ScheduledRun, SuiteSchedule
    from assay.store.cases import Judgement
    from assay.store.history import Columns
    from assay.store.results import ExecutionFilter, LatestRatings, ResultFilter

__all__ = ["Store", "upgrade"]


_log = logging.getLogger(__name__)
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, zlib.error)
"""What reading a row raises whose values are not those that were written."""
_MOST_KNOWN = 50_000
"""Trials that a store remembers to be of its workspace."""
P = ParamSpec("P")
Result = TypeVar("Result")

# Most methods of `Store` call one function of another module. The five functions below make such methods: they open a connection for
# the function, and take all that it takes after the connection. What they do is written there, in the function's docstring.


def _reads(
    function: Callable[Concatenate[sa.Connection, P], Result],
) -> Callable[Concatenate[Store, P], Result]:
    """A method that reads."""

    def method(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with store._reading() as connection:
            return function(connection, *args, **kwargs)

    return method


def _reads_run(
    function: Callable[Concatenate[sa.Connection, str, P], Result],
) -> Callable[Concatenate[Store, str, P], Result]:
    """A method that reads of a run, by its id, which must exist."""

    def method(store: Store, run_id: str, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with store._reading() as connection:
            refs.require(connection, run_id)
            return function(connection, run_id, *args, **kwargs)

    return method


def _reads_trial(
    function: Callable[Concatenate[sa.Connection, int, P], Result],
) -> Callable[Concatenate[Store, int, P], Result]:
    """A method that reads of a trial, by its id, which must exist."""

    def method(store: Store, trial_id: int, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with store._reading_trial(trial_id) as connection:
            return function(connection, trial_id, *args, **kwargs)

    return method


def _reads_trials(
    function: Callable[[sa.Connection, Sequence[int]], Result],
) -> Callable[[Store, Sequence[int]], Result]:
    """A method that reads of several trials, by their ids; those that do not exist are left out."""

    def method(store: Store, trial_ids: Sequence[int]) -> Result:
        with store._reading() as connection:
            return function(connection, store._choose_own(connection, trial_ids))

    return method


def _writes(
    function: Callable[Concatenate[sa.Connection, P], Result],
) -> Callable[Concatenate[Store, P], Result]:
    """A method that writes, in one transaction."""

    def method(store: Store, /, *args: P.args, **kwargs: P.kwargs) -> Result:
        with store._writer.begin() as connection:
            return function(connection, *args, **kwargs)

    return method


class Store:
    """Everything that is stored in one workspace, behind one class: the only part of this package that others use.

    What belongs to another workspace does not exist for it: ids of that are not found, names may be taken once more. Apart from
    that there are the workspaces themselves, and what a server needs for all of them: the queue that it works off, and whose key
    a request has.

    Methods open a connection, call functions of the other modules, which take it, and translate errors. A run is written by
    the one process that holds its lease: `Store` keeps, for each run that it writes, the lease, an outbox for batches and a
    ledger of the numbers that its executions get. Reading needs none of them.
    """

    def __init__(
        self,
        engine: sa.Engine,
        address: Address,
        retry_seconds: float = RETRY_SECONDS,
        workspace: Workspace = DEFAULT_PLACE,
    ) -> None:
        self._engine = workspaces.bind(engine, workspace)
        self._writer = database.writing(self._engine)
        self._address = address
        self._workspace = workspace
        self._is_part = False
        """Whether another store opened the database, and closes it."""
        self._own_trials: set[int] = set()
        """Trials that are known to be of this workspace, as most calls name a trial by its id alone. No id is given twice."""
        self._ledgers: dict[str, writing.Ledger] = {}
        self._leases: dict[str, leases.Lease] = {}
        self._outboxes: dict[str, Outbox] = {}
        self._retry_seconds = retry_seconds
        self._last_suite: tuple[str, Suite | None] = ("", None)
        """The suite that was read last, by its digest: the end of a run asks several times for one that may have many cases."""
        self._latest_ratings: LatestRatings | None = None

    @classmethod
    def open(cls, url: str, *, workspace: str | None = None, retry_seconds: float = RETRY_SECONDS) -> Store:
        """Makes file and schema when there are none; refuses a schema other than this version's, and an unknown workspace.

        Runs that are written through it wait that long for a database that is away.
        """
        address = read_address(url)
        engine = database.connect(address)
        try:
            schema.ensure(engine, address)
            place = _find_workspace(engine, workspace or DEFAULT)
        except BaseException:
            engine.dispose()
            raise
        for password in (address.url.password, address.url.query.get("password")):
            if isinstance(password, str):
                known_secrets().learn(password, "database URL")
        _log.debug("opened database %s", address.shown)
        return cls(engine, address, retry_seconds, place)

    @property
    def workspace(self) -> str:
        """The name of the workspace that it reads and writes."""
        return self._workspace.name

    def in_workspace(self, name: str) -> Store:
        """Return a store of the same database and connections for another workspace; closing this store closes it."""
        if name == self.workspace:
            return self
        part = Store(self._engine, self._address, self._retry_seconds, _find_workspace(self._engine, name))
        part._is_part = True
        return part

    workspaces = _reads(workspaces.read_names)

    def create_workspace(self, name: str) -> None:
        with self._writer.begin() as connection:
            registry.take_turn(connection)
            workspaces.create(connection, name)

    def check(self) -> None:
        """Raise StoreAway if the database cannot be reached."""
        with self._engine.connect() as connection:
            connection.execute(sa.select(1))

    def close(self) -> None:
        for lease in self._leases.values():
            leases.forget(lease)
        if not self._is_part:
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing a run

    def begin(
        self, plan: Plan, environment: Environment, run_id: str, started: datetime, owner: Owner | str
    ) -> Run:
        """A process as its owner holds the run's lease until it finishes the run; a mere name holds none."""
        # Before anything is written: whatever the definitions of agents name as secrets is redacted from then on.
        _learn_secrets(plan.trials, plan.suite)
        with self._writer.begin() as connection:
            if refs.is_taken(connection, run_id):
                raise StoreError(f"Run '{run_id}' already exists. Use another id.")
            begun = {"id": run_id, "started": started, "owner": str(owner)}
            writing.insert_run(connection, plan, environment, begun)
            lease = leases.create_lease(connection, run_id, owner) if isinstance(owner, Owner) else None
            run = reading.read_run(connection, run_id)
            if plan.suite is not None:
                # What was just written need not be read back when the run is rated: a suite may have 10,000 cases.
                self._last_suite = (registry.digest_of_run(connection, run_id) or "", plan.suite)
            totals.note_change(connection, [plan.suite.name if plan.suite is not None else ""])
        self._hold(run_id, lease, owner)
        return run

    def _hold(self, run_id: str, lease: leases.Lease | None, owner: Owner | str) -> None:
        """Remember the lease and open an outbox for the run, once the transaction that granted the lease is committed."""
        self._leases.pop(run_id, None)
        self._outboxes.pop(run_id, None)
        if lease is not None and isinstance(owner, Owner):
            self._leases[run_id] = lease
            write = partial(self._add, run_id)
            self._outboxes[run_id] = Outbox(lease, write, owner.folder, self._retry_seconds)

    def _renew(self, connection: sa.Connection, run_id: str, *, batches: int = 0) -> None:
        """Renew the lease before a write to a run: a process that lost the lease must write nothing."""
        if lease := self._leases.get(run_id):
            leases.renew(connection, lease, batches=batches)

    def renew(self, run_id: str) -> bool:
        """Renew the lease of a run if that is due; return whether this process still holds it."""
        lease = self._leases.get(run_id)
        if lease is None or lease.is_lost or not lease.is_due:
            return lease is None or not lease.is_lost
        try:
            with self._writer.begin() as connection:
                leases.renew(connection, lease, unless_released=True)
        except (LeaseLost, RunNotFound):
            return lease.is_released
        return True

    def require_idle(self, run_id: str) -> None:
        """Raise RunInUse while another process holds the lease of the run."""
        with self._engine.connect() as connection:
            refs.require(connection, run_id)
            leases.refuse_if_held(connection, run_id, "Wait for that process or end it, then try again.")

    def release(self, run_id: str) -> None:
        """Release the lease of a run, so that another process can continue the run at once."""
        lease = self._leases.pop(run_id, None)
        self._outboxes.pop(run_id, None)
        if lease is None:
            return
        leases.forget(lease)
        lease.is_released = True
        with self._writer.begin() as connection:
            leases.release(connection, lease)

    @property
    def is_shared(self) -> bool:
        """Whether another process could open the same database."""
        return self._engine.dialect.name != "sqlite" or self._address.file is not None

    def add(self, run_id: str, batch: Batch) -> int:
        """Stores a batch in one transaction; how many of its executions were new.

        An execution that is there already stays as it is. While the database is away, the batches of a run that this
        process owns are kept, and stored when it is back.
        """
        outbox = self._outboxes.get(run_id)
        return self._add(run_id, batch) if outbox is None else outbox.put(batch)

    def settle(self, run_id: str) -> None:
        """Wait until all added batches are stored."""
        if outbox := self._outboxes.get(run_id):
            outbox.drain()

    def insist(self, operation: Callable[[], Result]) -> Result:
        """Does something that may be done twice, again and again while the database is away."""
        return retry(operation, self._retry_seconds)

    def stop_retrying(self) -> None:
        """From now on, end the run at once if the database cannot be reached; results that could not be stored go to a file."""
        self._retry_seconds = 0.0
        for outbox in self._outboxes.values():
            outbox.stop_retrying()

    def _add(self, run_id: str, batch: Batch) -> int:
        """Write a batch now; raises StoreAway if the database cannot be reached.

        Executions are inserted without asking whether they exist, as that would cost a query for each. The unique key on
        the work itself refuses the whole batch if one of them does, and only then is it compared with what is stored.
        """
        ledger = self._ledgers.get(run_id) or self._read_ledger(run_id)
        start = perf_counter()
        try:
            written = self._write(run_id, batch, batch.executions, ledger)
            if batch.executions:
                _log.debug("stored %d executions in %.1f ms", written, 1000 * (perf_counter() - start))
            return written
        except sa.exc.IntegrityError:
            # Part of it is stored already, or the numbering moved on without us: look, and write what is missing.
            ledger = self._read_ledger(run_id)
            with self._engine.connect() as connection:
                missing = writing.missing(connection, batch.executions, ledger.ids)
            return self._write(run_id, batch, missing, ledger)

    def _write(
        self, run_id: str, batch: Batch, new_executions: tuple[Execution, ...], ledger: writing.Ledger
    ) -> int:
        """One transaction: the lease is renewed and counts the batch, then come its rows; either all of it is stored or none.

        The ledger is replaced only after the commit. If the batch turns out to be stored already, the ledger is forgotten,
        since the transaction that stored it has numbered its executions without this process knowing.
        """
        lease = self._leases.get(run_id)
        try:
            with self._direct(self._writer) as connection:
                self._renew(connection, run_id, batches=1)
                after = writing.write_executions(connection, new_executions, ledger)
                writing.write_rest(connection, run_id, batch, ledger.ids)
        except leases.AlreadyStored:
            self._ledgers.pop(run_id, None)
        else:
            self._ledgers[run_id] = after
        if lease is not None:
            lease.batches += 1
        return len(new_executions)

    @contextmanager
    def _direct(self, engine: sa.Engine) -> Iterator[sa.Connection]:
        """A transaction for many rows: errors of those go past the engine, which translates all others."""
        try:
            with engine.begin() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            known = driver_errors.translate(error.orig or error, self._address)
            if known is None:
                raise
            raise known from error

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        """A transaction that turns rows into nouns; what cannot be turned is damaged."""
        try:
            with self._direct(self._engine) as connection:
                yield connection
        except _DAMAGE as error:
            raise driver_errors.build_damage_error(error, self._address) from error

    @contextmanager
    def _reading_trial(self, trial_id: int) -> Iterator[sa.Connection]:
        """Open a read transaction for rows of a trial, which must belong to this workspace."""
        with self._reading() as connection:
            self._require_trial(connection, trial_id)
            yield connection

    def _require_trial(self, connection: sa.Connection, trial_id: int) -> None:
        if not self._choose_own(connection, (trial_id,)):
            raise LookupFailed(f"There is no trial {trial_id}.")

    def _choose_own(self, connection: sa.Connection, trial_ids: Sequence[int]) -> list[int]:
        """Select those trials that belong to this workspace, in the given order."""
        if unknown := set(trial_ids) - self._own_trials:
            found = workspaces.own_trials(connection, unknown)
            if len(self._own_trials) + len(found) > _MOST_KNOWN:
                self._own_trials = set()
            self._own_trials |= found
            own = found | (set(trial_ids) - unknown)
            return [trial_id for trial_id in trial_ids if trial_id in own]
        return list(trial_ids)

    def _read_ledger(self, run_id: str) -> writing.Ledger:
        """What to number the next executions of a run by, read from the database once when this process begins to write the
        run."""
        last = (
            sa.select(sa.func.max(executions.c.seq))
            .where(executions.c.trial_id == trials.c.id)
            .scalar_subquery()
        )
        with self._engine.connect() as connection:
            refs.require(connection, run_id)
            query = sa.select(trials.c.position, trials.c.id, last).where(trials.c.run_id == run_id)
            found = connection.execute(query).all()
        ids = {position: trial_id for position, trial_id, _ in found}
        return writing.Ledger(ids, {trial_id: 0 if seq is None else seq + 1 for _, trial_id, seq in found})

    def reopen(self, run_id: str, owner: Owner | str, budget: Budget | None = None) -> Run:
        """Takes a run over to go on with it, unless another process holds its lease.

        Executions that are not settled go, so that they can be done again.
        """
        self._ledgers.pop(run_id, None)
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            lease = leases.acquire(connection, run_id, owner) if isinstance(owner, Owner) else None
            # The files learn our token before the lease is committed: whether this process then ends before or after the
            # commit, the next one finds the token of its predecessor in them and can still go by the count of batches.
            spilled = [] if lease is None else self._claim_spilled(lease)
            pruning.delete_unsettled(connection, run_id)
            taken: dict[str, object] = {"state": RunState.RUNNING.value, "owner": str(owner), "ended": None}
            if budget is not None:
                taken["budget"] = to_plain(budget)
            connection.execute(runs.update().where(runs.c.id == run_id).values(taken))
            run = reading.read_run(connection, run_id)
            totals.delete_totals(connection, [stored.id for stored in run.trials])
            _learn_secrets([stored.trial for stored in run.trials], registry.suite_of_run(connection, run_id))
        self._hold(run_id, lease, owner)
        for file in spilled:
            self._store_spilled(run_id, file)
        return run

    def _claim_spilled(self, lease: leases.Lease) -> list[Path]:
        """Files with results that the owner before could not store; each learns who stores them now."""
        if lease.previous is None:
            return []
        files = spill.spill_files(lease.previous.folder, lease.run_id)
        found = [file for file in files if spill.read(file, lease.run_id) is not None]
        for file in found:
            spill.append(file, [spill.header(lease.run_id, lease.token)])
        return found

    def _store_spilled(self, run_id: str, file: Path) -> None:
        """Store what a file holds and delete it. Unsettled executions are left out: the resumed run makes them again."""
        lease, found = self._leases[run_id], spill.read(file, run_id)
        for number, batch in found.batches if found else ():
            settled = tuple(execution for execution in batch.executions if execution.status.is_settled)
            if found and lease.previous_token not in found.tokens:
                # Somebody went on with the run in between: all that can be said is which executions are missing.
                self._add(run_id, Batch(settled))
            elif number > lease.batches:
                self._add(run_id, replace(batch, executions=settled))
        file.unlink(missing_ok=True)

    progress = _reads_run(reading.read_progress)

    def count_executions(self, run_id: str) -> int:
        """Count the executions of a run, of all trials and phases."""
        query = sa.select(totals.count_of_executions()).select_from(runs).where(runs.c.id == run_id)
        with self._reading() as connection:
            refs.require(connection, run_id)
            return connection.scalars(query).one()

    read_done = _reads_run(lazy.cases.read_done)

    def set_environment(self, run_id: str, environment: Environment) -> None:
        """Store facts of the environment that are known only when the run ends."""
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            self._renew(connection, run_id)
            writing.write_environment(connection, run_id, environment)

    def rule(self, run_id: str, question: Question, made: Mapping[int, Trial]) -> None:
        """Keeps how the question of a run was decided; from then on its plan is what was made of each trial by then."""
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            self._renew(connection, run_id)
            writing.write_ruling(connection, run_id, question, made)

    def finish(self, run_id: str, state: RunState, ended: datetime) -> None:
        """End a run and its lease; wait if the database cannot be reached."""
        self.settle(run_id)
        self._ledgers.pop(run_id, None)
        is_owned = run_id in self._leases
        retry(partial(self._finish, run_id, state, ended), self._retry_seconds if is_owned else 0.0)
        if is_owned:
            leases.forget(self._leases.pop(run_id))
            self._outboxes.pop(run_id)

    def _finish(self, run_id: str, state: RunState, ended: datetime) -> None:
        """End a run in one transaction: renew the lease, which fails if it was lost, give it up, and store the state.

        A run that this process does not own is ended only if nobody else does.
        """
        lease = self._leases.get(run_id)
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            if lease is None:
                leases.refuse_if_held(connection, run_id, "Wait for that process.")
            else:
                # Marked before the commit: the thread that renews may find the lease gone a moment later, and that is no loss.
                lease.is_released = True
                leases.renew(connection, lease)
                leases.release(connection, lease)
            connection.execute(
                runs.update().where(runs.c.id == run_id).values(state=state.value, ended=ended)
            )
            totals.write_totals(connection, trials.c.run_id == run_id)
            totals.note_run_change(connection, run_id)
        self.refresh()

    def refresh(self) -> None:
        """Refresh the stored views: on PostgreSQL, the comparison matrix of agents."""
        schema.refresh(self._engine)

    def owner(self, run_id: str) -> str:
        with self._engine.connect() as connection:
            refs.require(connection, run_id)
            owner: str = connection.scalars(sa.select(runs.c.owner).where(runs.c.id == run_id)).one()
            return owner

    # Reading

    def run(self, ref: str) -> Run:
        """Find a run by id, unambiguous prefix, 'last' or '@baseline'."""
        with self._reading() as connection:
            return reading.read_run(connection, refs.resolve(connection, ref))

    is_abandoned = _reads_run(leases.is_abandoned)
    runs = _reads(lazy.run_lists.read_runs)
    find_runs_of = _reads(lazy.run_lists.find_runs_of)
    find_profiled_runs = _reads(lazy.page_lists.find_profiled_runs)
    agent_overviews = _reads(lazy.page_lists.read_agent_overviews)
    suite_overviews = _reads(lazy.page_lists.read_suite_overviews)
    newest_trials = _reads(lazy.page_lists.read_newest_trials)
    count_statuses = _reads_run(lazy.page_lists.count_statuses)
    fingerprint = _reads_run(lazy.page_lists.read_fingerprint)

    def count_runs(self) -> dict[str, int]:
        """Count the stored runs by state."""
        with self._reading() as connection:
            query = sa.select(runs.c.state, sa.func.count().label("number")).group_by(runs.c.state)
            found = connection.execute(query.where(workspaces.is_own(connection, runs)))
            return {str(row.state): row.number for row in found}

    def suite_of(self, run_id: str) -> Suite | None:
        """The suite that a run was made with, whole; None for runs of code experiments."""
        with self._reading() as connection:
            refs.require(connection, run_id)
            digest = registry.digest_of_run(connection, run_id)
            if not digest:
                return registry.suite_of_run(connection, run_id)
            if self._last_suite[0] != digest:
                self._last_suite = (digest, registry.suite_of_run(connection, run_id))
            return self._last_suite[1]

    counts = _reads_trial(reading.read_counts)
    series = _reads_trial(reading.read_series)
    failures = _reads_trial(reading.read_failures)

    def executions(self, trial_id: int) -> Iterable[Execution]:
        """Return all executions of a trial; every iteration reads them again, in chunks."""
        return reading.StoredExecutions(partial(self._reading_trial, trial_id), trial_id)

    read_applied_settings = _reads_trial(reading.read_applied)
    artifacts = _reads_trial(reading.read_artifacts)
    placements = _reads_trial(reading.read_placements)

    # Scores and ratings

    case_table = _reads_trial(lazy.cases.read_case_table)

    def deviation(self, trial_id: int) -> float | None:
        """Overall ÷ the baseline's overall − 1, as the view has it; None where there is no baseline."""
        query = sa.text("SELECT deviation_from_baseline FROM benchmark_executions WHERE id = :id")
        with self._reading_trial(trial_id) as connection:
            found: float | None = connection.scalar(query, {"id": trial_id})
            return found

    def is_simulated(self, trial_id: int) -> bool:
        """Whether an execution of the trial is known to be simulated."""
        with self._reading_trial(trial_id) as connection:
            return bool(connection.scalar(sa.select(trials.c.simulated).where(trials.c.id == trial_id)))

    judging = _reads_trial(lazy.cases.read_judging)

    def rate(self, trial_id: int, rated: Ratings) -> None:
        with self._writer.begin() as connection:
            self._require_trial(connection, trial_id)
            lazy.cases.write_ratings(connection, trial_id, rated)
            # Scores may have been given again since the run ended.
            totals.write_totals(connection, trials.c.id == trial_id)
            suite = connection.scalars(sa.select(trials.c.suite).where(trials.c.id == trial_id)).one()
            totals.note_change(connection, [suite])

    def executions_to_rescore(self, trial_id: int) -> Iterable[tuple[int, Execution]]:
        """Measured ok executions with their numbers, to be judged again; read in chunks."""
        connect = partial(self._reading_trial, trial_id)
        return reading.NumberedExecutions(connect, trial_id, *reading.IS_OK_MEASURED)

    def rescore(self, trial_id: int, judged: Iterable[Judgement]) -> int:
        """Puts the given scores in the place of those that there are, all of them or none; how many executions that were."""
        # Judging may take long and read from this store: the transaction begins when it is over.
        judgements = list(judged)
        with self._direct(self._writer) as connection:
            self._require_trial(connection, trial_id)
            run_id = connection.scalar(sa.select(trials.c.run_id).where(trials.c.id == trial_id))
            leases.refuse_if_held(connection, str(run_id), "Score it again when it has ended.")
            totals.delete_totals(connection, [trial_id])
            return lazy.cases.write_judgements(connection, trial_id, judgements)

    latest_trials = _reads(lazy.run_lists.read_latest_trials)

    def results(
        self, chosen: ResultFilter, before: int | None = None, limit: int = 100
    ) -> list[Mapping[str, Any]]:
        """Trials under the column names of the performance specification, the newest first; `before` is the id to go on from."""
        with self._reading() as connection:
            self._latest_ratings = self._latest_ratings or lazy.results.LatestRatings()
            return lazy.results.read_results(connection, chosen, before, limit, self._latest_ratings)

    def execution_page(
        self, chosen: ExecutionFilter, after: int | None = None, limit: int = 100
    ) -> list[tuple[int, Execution]]:
        """Executions of a trial with their numbers, in the order of storing; `after` is the number to go on from."""
        with self._reading_trial(chosen.trial) as connection:
            return lazy.results.read_execution_page(connection, chosen, after, limit)

    run_of_trial = _reads_trial(lazy.page_lists.read_run_of_trial)
    answers = _reads_trial(lazy.answers.read_answers)
    read_judged_executions = _reads_trial(lazy.answers.read_judged)
    read_labelled_executions = _reads_trials(lazy.answers.read_labelled)
    entries = _reads(lazy.standings.read_entries)
    ratings = _reads_trials(lazy.standings.read_ratings)
    agent_uses = _reads_trials(lazy.standings.read_agent_uses)
    changes = _reads(totals.read_changes)

    def changes_and_baselines(self) -> tuple[dict[str, int], dict[str, str]]:
        """Read both in one transaction, because a server needs them several times per page."""
        with self._reading() as connection:
            return totals.read_changes(connection), refs.read_baselines(connection)

    def count_rated(self, most: int) -> int:
        """Trials with ratings; no further than that many, since counting all of them takes as long as reading them."""
        with self._reading() as connection:
            joined = ratings.join(trials, trials.c.id == ratings.c.trial_id).join(runs)
            some = (
                sa.select(ratings.c.trial_id)
                .select_from(joined)
                .where(workspaces.is_own(connection, runs))
                .limit(most)
            )
            return connection.scalars(sa.select(sa.func.count()).select_from(some.subquery())).one()

    versions = _reads(lazy.history.read_versions)
    suites_of = _reads(lazy.history.read_suites_of)
    count_agents = _reads(lazy.history.count_agents)
    boards = _reads(lazy.boards.read_boards)
    keep_board = _writes(lazy.boards.write_board)
    categories = _reads(lazy.standings.read_categories)
    benchmarks = _reads(lazy.standings.read_board_benchmarks)

    # What ratings are relative to

    rating_scopes = _reads(lazy.references.read_scopes)
    read_completed_trials = _reads(lazy.references.read_completed)
    read_rated_trials = _reads(lazy.references.read_rated)
    read_yardsticks = _reads(lazy.references.read_yardsticks)
    read_outdated_ratings = _reads(lazy.references.read_outdated)
    references = _reads(lazy.references.read_references)
    trial_references = _reads_trial(lazy.references.read_trial_references)
    keep_references = _writes(lazy.references.write_references)

    # What an operator registered

    register_agents = _writes(registry.register_agents)
    agents = _reads(registry.read_registered_agents)
    register_suite = _writes(registry.register_suite)
    suites = _reads(registry.read_registered_suites)
    suite = _reads(registry.read_registered_suite)
    latest_suite = _reads(registry.latest_suite)

    # Keeping order

    def delete(self, run_id: str, *, force: bool = False) -> None:
        """Refused while a process is writing the run, unless forced: that process then stops at its next write."""
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            if not force:
                advice = f"Wait for that process, or delete the run all the same: assay runs delete {run_id} --force"
                leases.refuse_if_held(connection, run_id, advice)
            names = connection.scalars(sa.select(baselines.c.name).where(baselines.c.run_id == run_id)).all()
            if names:
                raise StoreError(
                    f"Run '{run_id}' is the baseline '{names[0]}'. Give that name to another run first: "
                    f"{shell_command('baseline set', names[0], 'RUN')}"
                )
            totals.note_change(connection, pruning.delete_run(connection, run_id))
        self._ledgers.pop(run_id, None)
        pruning.give_back_space(self._engine)
        self.refresh()

    def tag(self, run_id: str, add: Iterable[str], remove: Iterable[str]) -> tuple[str, ...]:
        """Change the tags of a run and return the new tags."""
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            chosen = tags.c.run_id == run_id
            connection.execute(tags.delete().where(chosen, tags.c.tag.in_(list(remove))))
            writing.add_tags(connection, run_id, set(add) - set(reading.read_tags(connection, run_id)))
            return tuple(reading.read_tags(connection, run_id))

    def set_baseline(self, name: str, run_id: str) -> None:
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            connection.execute(
                baselines.delete().where(workspaces.is_own(connection, baselines), baselines.c.name == name)
            )
            own = workspaces.workspace_of(connection)
            connection.execute(baselines.insert().values(workspace_id=own, name=name, run_id=run_id))

    baselines = _reads(refs.read_baselines)

    def delete_baseline(self, name: str) -> str:
        """Delete the name of a baseline and return the id of its run, which is kept."""
        with self._writer.begin() as connection:
            run_id = refs.resolve(connection, f"@{name}")
            connection.execute(
                baselines.delete().where(workspaces.is_own(connection, baselines), baselines.c.name == name)
            )
            return run_id

    # Keys of the server

    create_key = _writes(lazy.access.create_key)
    find_key = _reads(lazy.access.find_key)

    def note_use(self, key: ApiKey, now: datetime) -> None:
        """Record that a key was used, at most once a minute."""
        from assay.model.access import is_use_due

        if is_use_due(key, now):
            with self._writer.begin() as connection:
                lazy.access.note_use(connection, key, now)

    has_keys = _reads(lazy.access.exists)
    keys = _reads(lazy.access.read_keys)
    revoke_key = _writes(lazy.access.revoke_key)
    create_session = _writes(lazy.access.create_session)
    find_session = _reads(lazy.access.find_session)
    end_session = _writes(lazy.access.end_session)
    audit = _writes(lazy.access.write_entry)
    audit_log = _reads(lazy.access.read_entries)

    # The queue of the server

    enqueue = _writes(lazy.queue.add)
    read_queued_run = _reads(lazy.queue.read)
    queue = _reads(lazy.queue.read_open)
    whole_queue = _reads(lazy.queue.read_all_open)
    claim_queued = _writes(lazy.queue.claim)

    def renew_queued(self, run_ids: Collection[str], owner: Owner) -> set[str]:
        """Keeps the claims of a server, and takes back those of servers that are gone; the runs that it has lost itself."""
        with self._writer.begin() as connection:
            lost = lazy.queue.renew(connection, run_ids, owner)
            lazy.queue.take_back(connection)
        return lost

    give_back_queued = _writes(lazy.queue.give_back)
    settle_queued = _writes(lazy.queue.settle)
    cancel_queued = _writes(lazy.queue.cancel)
    requeue = _writes(lazy.queue.requeue)

    # Schedules and alerts of the server

    schedules = _reads(lazy.schedules.read_schedules)
    read_registered_schedules = _reads(lazy.schedules.read_registered_schedules)
    plan_schedule = _writes(lazy.schedules.replace_schedule)
    forget_schedule = _writes(lazy.schedules.delete_schedule)

    def take_time(
        self,
        before: SuiteSchedule,
        after: SuiteSchedule,
        started: Iterable[ScheduledRun],
        queued: Iterable[QueuedRun],
        alerts: Iterable[Alert] = (),
    ) -> bool:
        """Takes a time of a schedule and queues its runs, all or nothing; False if somebody else has taken it."""
        with self._writer.begin() as connection:
            if not lazy.schedules.replace_schedule(connection, after, before):
                return False
            lazy.schedules.start_runs(connection, started, queued)
            for alert in alerts:
                lazy.alerts.add_alert(connection, alert)
        return True

    latest_scheduled_runs = _reads(lazy.schedules.read_latest_runs)
    find_ended_scheduled_runs = _reads(lazy.schedules.find_ended_runs)
    open_scheduled_runs = _reads(lazy.schedules.read_open_runs)

    def settle_scheduled_run(self, run: ScheduledRun, alert: Alert | None) -> None:
        """Store the outcome of a scheduled run and its alert, once."""
        with self._writer.begin() as connection:
            if lazy.schedules.settle_run(connection, run) and alert is not None:
                lazy.alerts.add_alert(connection, alert)

    def raise_alerts(self, raised: Iterable[Alert]) -> list[Alert]:
        """Add alerts to the outbox; return those that were not raised before."""
        with self._writer.begin() as connection:
            return [alert for alert in raised if lazy.alerts.add_alert(connection, alert)]

    def claim_alert(self, now: datetime, until: datetime) -> Alert | None:
        """Takes the alert that is due longest, so that nobody else sends it before `until`; None if none is due."""
        with self._reading() as connection:
            # Most of the time nothing is due, and a claim locks the database.
            if not lazy.alerts.has_due_alerts(connection, now):
                return None
        with self._writer.begin() as connection:
            return lazy.alerts.claim_alert(connection, now, until)

    settle_alert = _writes(lazy.alerts.settle_alert)
    alerts = _reads(lazy.alerts.read_alerts)

    # What people say of answers

    def label(
        self,
        trial_id: int,
        case: str,
        seq: int | None,
        author: str,
        verdict: LabelVerdict,
        note: str,
        now: datetime,
    ) -> list[Label]:
        """Labels one answer to a case, or all answers of the trial to it; LookupFailed if there is none."""
        from assay.model.label import Label

        with self._writer.begin() as connection:
            found = lazy.labels.find_executions(connection, trial_id, case, seq)
            given = [Label(trial_id, number, case, author, verdict, note, now) for number in found]
            return lazy.labels.write_labels(connection, given)

    labels = _reads(lazy.labels.read_labels)
    read_labelled_scores = _reads(lazy.labels.read_labelled_scores)

    # Overviews

    coverage = _reads(lazy.search.read_coverage)
    agents_on = _reads(lazy.search.read_agents_on)
    latest_by_suite = _reads(lazy.search.read_latest_by_suite)
    latest_results = _reads(lazy.search.read_latest_results)
    search = _reads(lazy.search.search)
    agent_activity = _reads(lazy.success.read_activity)
    read_found_regressions = _reads(lazy.success.read_found_regressions)
    keep_gate_result = _writes(lazy.success.write_gate_result)
    gate_results = _reads(lazy.success.read_gate_results)
    keep_opportunities = _writes(lazy.success.write_opportunities)
    opportunities = _reads(lazy.success.read_opportunities)

    # What became of an agent

    agent_trials = _reads(lazy.history.read_agent_trials)
    past_figures = _reads(lazy.history.read_past_figures)

    def columns(self, trial_ids: Sequence[int], metrics: Collection[str]) -> Iterator[tuple[int, Columns]]:
        """The measured executions of many trials with these metrics, a part of the trials at a time."""
        with self._reading() as connection:
            own = self._choose_own(connection, trial_ids)
            yield from lazy.history.read_columns(connection, own, metrics)

    agents_with_trials = _reads(lazy.history.read_agents_with_trials)
    regressions = _reads(lazy.regressions.read_regressions)

    def open_regressions(self) -> list[Regression]:
        """Return the regressions of all agents that are neither resolved nor false positives, the oldest first."""
        return self.regressions(are_open=True)

    keep_regressions = _writes(lazy.regressions.write_regressions)
    mark_regression = _writes(lazy.regressions.mark)
    regression_page = _reads(lazy.regressions.read_regression_page)
    regression_changes = _reads(lazy.regressions.read_changes)

    def facts(self) -> dict[str, object]:
        """Return location, schema and size of the database, without counting rows, which takes long in a large one."""
        with self._reading() as connection:
            if connection.dialect.name == "postgresql":
                whole = sa.select(sa.func.pg_database_size(sa.func.current_database()))
                size = connection.scalars(whole).one()
            else:
                pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
                size = pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one()
            return {
                "url": self._address.shown,
                "dialect": connection.dialect.name,
                "revision": schema.current(connection, self._address),
                "size_bytes": int(size),
                "workspace": self.workspace,
            }

    def info(self) -> dict[str, object]:
        """Return `facts` with the number of rows of each table that belong to the workspace."""
        with self._reading() as connection:
            counts = workspaces.count_rows(connection)
        return {**self.facts(), "rows": counts}

    def prune(
        self,
        *,
        older_than_days: int | None,
        keep: int | None,
        dry_run: bool = False,
        now: datetime | None = None,
    ) -> list[str]:
        """Deletes runs that are both old enough and beyond the newest `keep`; never baselines or running ones."""
        if older_than_days is None and keep is None:
            return []
        before = (now or datetime.now(UTC)) - timedelta(days=older_than_days or 0)
        with self._writer.begin() as connection:
            doomed = pruning.prunable(connection, before, keep or 0)
            changed = [pruning.delete_run(connection, run_id) for run_id in (() if dry_run else doomed)]
            totals.note_change(connection, [suite for suites in changed for suite in suites])
        if doomed and not dry_run:
            pruning.give_back_space(self._engine)
            self.refresh()
        return doomed

    def export(self, path: Path, run_id: str | None = None) -> Path:
        """Everything of the workspace, or one run, as a new file: a SQLite database, or a table of executions (.parquet, .csv, .jsonl)."""
        from assay.store.export import export

        if run_id is not None:
            with self._reading() as connection:
                refs.require(connection, run_id)
        return export(self._engine, path, run_id)


def _find_workspace(engine: sa.Engine, name: str) -> Workspace:
    if name == DEFAULT:
        return DEFAULT_PLACE
    with engine.connect() as connection:
        return workspaces.find(connection, name)


def _learn_secrets(planned: Iterable[Trial], suite: Suite | None) -> None:
    """What agents and judges are given from the environment may come back in their answers."""
    known = known_secrets()
    known.learn_environment(os.environ)
    for trial in planned:
        known.learn_variables([trial.params, trial.agent_use.options if trial.agent_use else {}], os.environ)
    for benchmark in suite.benchmarks if suite else ():
        of_turns = (use for case in benchmark.cases for turn in case.turns for use in turn.scorers)
        known.learn_variables([use.options for use in (*benchmark.scorers, *of_turns)], os.environ)
