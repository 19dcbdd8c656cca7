"""The store: runs, executions and all that belongs to them, to and from a SQLite or PostgreSQL database.

The SQL is in the modules beside this one: `write` and `read` for runs and executions, `cases` and `standings` for suites,
`history` and `regressions` for agents over time, `references` and `registry` for what trials are rated by, `leases`, `outbox` and
`spill` for writing safely, `schema` and `tables` for the database itself, `workspaces` for the part of it that a store sees. What a
run can be begun and carried out without is imported by the methods that need it.
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
from typing import TYPE_CHECKING, Any, Self, TypeVar

import sqlalchemy as sa

from assay.errors import LeaseLost, LookupFailed, RunNotFound, StoreError
from assay.model import (
    AgentUse,
    Artifact,
    Batch,
    Budget,
    Environment,
    Execution,
    Plan,
    Question,
    Run,
    RunState,
    Suite,
    SuiteRef,
    Trial,
)
from assay.model.access import is_use_due
from assay.model.codec import to_plain
from assay.model.redaction import known_secrets
from assay.model.workspace import DEFAULT
from assay.store import (
    access,
    database,
    faults,
    leases,
    pruning,
    queue,
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
    from assay.model import CaseTable, Ratings, Series
    from assay.model.access import ApiKey, AuditEntry, Scope
    from assay.model.alert import Alert, AlertState
    from assay.model.board import StoredBoard
    from assay.model.label import Label, LabelledScore, LabelVerdict
    from assay.model.queue import QueuedRun, QueueState
    from assay.model.rating import Judging, RatingScope, Reference
    from assay.model.regression import Regression, RegressionChange, RegressionState
    from assay.model.schedule import ScheduledRun, SuiteSchedule
    from assay.model.scored_answer import ScoredAnswer
    from assay.model.search import SearchResult
    from assay.model.success import AgentActivity, FoundOpportunity, FoundRegression, GateRecord
    from assay.store.cases import Done, Judgement
    from assay.store.history import AgentTrial, Columns, PastFigures
    from assay.store.labels import LabelFilter
    from assay.store.page_lists import AgentOverview, SuiteOverview
    from assay.store.references import CompletedTrial
    from assay.store.regressions import RegressionFilter
    from assay.store.results import ExecutionFilter, LatestRatings, ResultFilter
    from assay.store.run_lists import RunSummary, TrialSummary
    from assay.store.search import CoverageCell
    from assay.store.standings import Filter, RankedTrial

__all__ = ["Store", "upgrade"]


_log = logging.getLogger(__name__)
_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, IndexError, zlib.error)
"""What reading a row raises whose values are not those that were written."""
_MOST_KNOWN = 50_000
"""Trials that a store remembers to be of its workspace."""
Result = TypeVar("Result")


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

    def workspaces(self) -> list[str]:
        """Return the workspaces of the database in the order in which they were created."""
        with self._reading() as connection:
            return workspaces.read_names(connection)

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
            lease = leases.grant(connection, run_id, owner) if isinstance(owner, Owner) else None
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
            fault = faults.fault(error.orig or error, self._address)
            if fault is None:
                raise
            raise fault from error

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        """A transaction that turns rows into nouns; what cannot be turned is damaged."""
        try:
            with self._direct(self._engine) as connection:
                yield connection
        except _DAMAGE as error:
            raise faults.build_damage_error(error, self._address) from error

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

    def progress(self, run_id: str) -> Mapping[reading.Work, int]:
        """Executions stored of each trial, process and phase: their repetitions are 0 to that number less one."""
        with self._engine.connect() as connection:
            refs.require(connection, run_id)
            return reading.read_progress(connection, run_id)

    def count_executions(self, run_id: str) -> int:
        """Count the executions of a run, of all trials and phases."""
        query = sa.select(totals.count_of_executions()).select_from(runs).where(runs.c.id == run_id)
        with self._reading() as connection:
            refs.require(connection, run_id)
            return connection.scalars(query).one()

    def read_done(self, run_id: str) -> dict[int, Done]:
        """Trial index to what is stored of it, for trials that put an agent through cases: these end in any order."""
        from assay.store import cases

        with self._reading() as connection:
            refs.require(connection, run_id)
            return cases.read_done(connection, run_id)

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

    def is_abandoned(self, run_id: str) -> bool:
        """Whether nobody carries on with a run that is stored as running: its process was killed."""
        with self._reading() as connection:
            refs.require(connection, run_id)
            return leases.is_abandoned(connection, run_id)

    def runs(
        self,
        *,
        limit: int | None = 20,
        tag: str | None = None,
        name: str | None = None,
        before: str | None = None,
        state: str | None = None,
        agent: str | None = None,
    ) -> list[RunSummary]:
        """Return runs, the newest first; with `before`, only runs that started before the run with this id."""
        from assay.store import run_lists

        with self._reading() as connection:
            return run_lists.read_runs(connection, limit, tag, name, before, state, agent)

    def find_runs_of(
        self, experiment: str, agent: str | None = None, limit: int = 20, before: str | None = None
    ) -> list[str]:
        """The ids of the newest runs with a trial of this experiment, and of this agent if one is given."""
        from assay.store import run_lists

        with self._reading() as connection:
            return run_lists.find_runs_of(connection, experiment, agent, limit, before)

    def find_profiled_runs(
        self, tag: str, agent: str | None = None, limit: int = 20, before: str | None = None
    ) -> list[str]:
        """The ids of the newest runs with this tag, and of this agent if one is given."""
        from assay.store import page_lists

        with self._reading() as connection:
            return page_lists.find_profiled_runs(connection, tag, agent, limit, before)

    def agent_overviews(self) -> list[AgentOverview]:
        """Return every agent with results, by name."""
        from assay.store import page_lists

        with self._reading() as connection:
            return page_lists.read_agent_overviews(connection)

    def suite_overviews(self) -> list[SuiteOverview]:
        """Return every suite with results, by name."""
        from assay.store import page_lists

        with self._reading() as connection:
            return page_lists.read_suite_overviews(connection)

    def newest_trials(
        self, *, agent: str | None = None, suite: str | None = None, benchmark: str | None = None
    ) -> list[TrialSummary]:
        """The newest trial of an agent, or of each agent, on each benchmark of a suite."""
        from assay.store import page_lists

        with self._reading() as connection:
            return page_lists.read_newest_trials(connection, agent, suite, benchmark)

    def count_statuses(self, run_id: str) -> dict[int, Mapping[str, int]]:
        """Count the measured executions of each trial of a run by status."""
        from assay.store import page_lists

        with self._reading() as connection:
            refs.require(connection, run_id)
            return page_lists.count_statuses(connection, run_id)

    def fingerprint(self, run_id: str) -> tuple[object, ...]:
        """Return a value that changes whenever the results of the run change; the run must exist."""
        from assay.store import page_lists

        with self._reading() as connection:
            refs.require(connection, run_id)
            return page_lists.read_fingerprint(connection, run_id)

    def count_runs(self) -> dict[str, int]:
        """Count the stored runs by state."""
        with self._reading() as connection:
            query = sa.select(runs.c.state, sa.func.count().label("number")).group_by(runs.c.state)
            found = connection.execute(query.where(refs.is_own(connection)))
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

    def counts(self, trial_id: int) -> dict[str, int]:
        """Count the measured executions of a trial by status."""
        with self._reading_trial(trial_id) as connection:
            return reading.read_counts(connection, trial_id)

    def series(self, trial_id: int) -> dict[str, Series]:
        """Return each metric of the ok measured executions as columns, in the order in which they were stored."""
        with self._reading_trial(trial_id) as connection:
            return reading.read_series(connection, trial_id)

    def failures(self, trial_id: int, limit: int = 50) -> tuple[Execution, ...]:
        """Return the first executions of a trial that were not ok, of any phase."""
        with self._reading_trial(trial_id) as connection:
            return reading.read_failures(connection, trial_id, limit)

    def executions(self, trial_id: int) -> Iterable[Execution]:
        """Return all executions of a trial; every iteration reads them again, in chunks."""
        return reading.StoredExecutions(partial(self._reading_trial, trial_id), trial_id)

    def read_applied_settings(self, trial_id: int) -> dict[str, object]:
        """Return the settings that were last read back from the thing under test."""
        with self._reading_trial(trial_id) as connection:
            return reading.read_applied(connection, trial_id)

    def artifacts(self, trial_id: int) -> tuple[Artifact, ...]:
        with self._reading_trial(trial_id) as connection:
            return reading.read_artifacts(connection, trial_id)

    def placements(self, trial_id: int) -> dict[int, str]:
        """The node that carried out each process; empty where the executor of the run has no nodes."""
        with self._reading_trial(trial_id) as connection:
            return reading.read_placements(connection, trial_id)

    # Scores and ratings

    def case_table(self, trial_id: int, further: Iterable[str] = ()) -> CaseTable:
        """The measured executions in the order of storing, with what ratings need of them, and `further` metrics."""
        from assay.store import cases

        with self._reading_trial(trial_id) as connection:
            return cases.read_case_table(connection, trial_id, further)

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

    def judging(self, trial_id: int) -> Judging | None:
        """What judges used up over all executions of the trial; None where none was asked."""
        from assay.store import cases

        with self._reading_trial(trial_id) as connection:
            return cases.read_judging(connection, trial_id)

    def rate(self, trial_id: int, rated: Ratings) -> None:
        from assay.store import cases

        with self._writer.begin() as connection:
            self._require_trial(connection, trial_id)
            cases.write_ratings(connection, trial_id, rated)
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
        from assay.store import cases

        # Judging may take long and read from this store: the transaction begins when it is over.
        judgements = list(judged)
        with self._direct(self._writer) as connection:
            self._require_trial(connection, trial_id)
            run_id = connection.scalar(sa.select(trials.c.run_id).where(trials.c.id == trial_id))
            leases.refuse_if_held(connection, str(run_id), "Score it again when it has ended.")
            totals.delete_totals(connection, [trial_id])
            return cases.write_judgements(connection, trial_id, judgements)

    def latest_trials(self, *, suite: str | None = None, since: datetime | None = None) -> list[TrialSummary]:
        """The latest trial with a result of each agent on each benchmark; `since` is of the start of its run."""
        from assay.store import run_lists

        with self._reading() as connection:
            return run_lists.read_latest_trials(connection, suite, since)

    def results(
        self, chosen: ResultFilter, before: int | None = None, limit: int = 100
    ) -> list[Mapping[str, Any]]:
        """Trials under the column names of the performance specification, the newest first; `before` is the id to go on from."""
        from assay.store import results

        with self._reading() as connection:
            if self._latest_ratings is None:
                self._latest_ratings = results.LatestRatings()
            return results.read_results(connection, chosen, before, limit, self._latest_ratings)

    def execution_page(
        self, chosen: ExecutionFilter, after: int | None = None, limit: int = 100
    ) -> list[tuple[int, Execution]]:
        """Executions of a trial with their numbers, in the order of storing; `after` is the number to go on from."""
        from assay.store import results

        with self._reading_trial(chosen.trial) as connection:
            return results.read_execution_page(connection, chosen, after, limit)

    def run_of_trial(self, trial_id: int) -> str:
        """Return the id of the run that a trial belongs to."""
        from assay.store import page_lists

        with self._reading() as connection:
            run_id = page_lists.find_trial_run(connection, trial_id)
        if run_id is None:
            raise LookupFailed(f"There is no trial {trial_id}.")
        return run_id

    def answers(self, trial_id: int, cases: Collection[str], most: int = 5) -> dict[str, list[ScoredAnswer]]:
        """Case to its measured executions with their scores, at most so many of each."""
        from assay.store import answers

        with self._reading_trial(trial_id) as connection:
            return answers.read_answers(connection, trial_id, cases, most)

    def read_judged_executions(self, trial_id: int, most: int) -> list[tuple[int, str, Mapping[str, float]]]:
        """Number, case and scores by metric of the first ok measured executions, without what was answered."""
        from assay.store import answers

        with self._reading_trial(trial_id) as connection:
            return answers.read_judged(connection, trial_id, most)

    def read_labelled_executions(self, trial_ids: Sequence[int]) -> set[tuple[int, int]]:
        """Return the labelled executions of these trials, as pairs of trial and number."""
        from assay.store import answers

        with self._reading() as connection:
            return answers.read_labelled(connection, self._choose_own(connection, trial_ids))

    def entries(self, chosen: Filter) -> list[RankedTrial]:
        """The trial that counts for each contender on each benchmark of a suite, of those trials that were rated."""
        from assay.store import standings

        with self._reading() as connection:
            return standings.read_entries(connection, chosen)

    def ratings(self, trial_ids: Sequence[int]) -> dict[int, Ratings]:
        """Return the stored ratings of trials, case by case, without trials that an older version rated."""
        from assay.store import standings

        with self._reading() as connection:
            return standings.read_ratings(connection, self._choose_own(connection, trial_ids))

    def agent_uses(self, trial_ids: Sequence[int]) -> dict[int, AgentUse]:
        """Return the definitions of the agents of these trials."""
        from assay.store import standings

        with self._reading() as connection:
            return standings.read_agent_uses(connection, self._choose_own(connection, trial_ids))

    def changes(self) -> dict[str, int]:
        """Suite to a count of everything that may have changed its rankings; all that is stored was counted before."""
        with self._reading() as connection:
            return totals.read_changes(connection)

    def changes_and_baselines(self) -> tuple[dict[str, int], dict[str, str]]:
        """Read both in one transaction, because a server needs them several times per page."""
        with self._reading() as connection:
            return totals.read_changes(connection), refs.read_baselines(connection)

    def count_rated(self, most: int) -> int:
        """Trials with ratings; no further than that many, since counting all of them takes as long as reading them."""
        with self._reading() as connection:
            joined = ratings.join(trials, trials.c.id == ratings.c.trial_id).join(runs)
            some = (
                sa.select(ratings.c.trial_id).select_from(joined).where(refs.is_own(connection)).limit(most)
            )
            return connection.scalars(sa.select(sa.func.count()).select_from(some.subquery())).one()

    def versions(self, agent: str) -> list[str]:
        """The versions of an agent with trials, the newest first; an agent without one has an empty version."""
        from assay.store import history

        with self._reading() as connection:
            return history.read_versions(connection, agent)

    def suites_of(self, agent: str) -> list[str]:
        """Return the suites that an agent has trials of, the one that it ran last first."""
        from assay.store import history

        with self._reading() as connection:
            return history.read_suites_of(connection, agent)

    def count_agents(self, suite: str | None = None) -> int:
        """Count the agents with trials of a suite, or of any suite."""
        from assay.store import history

        with self._reading() as connection:
            return history.count_agents(connection, suite)

    def boards(self, metric: str, known: Collection[StoredBoard] = ()) -> list[StoredBoard]:
        """Return stored leaderboards by this metric, except for those in `known`."""
        from assay.store import boards

        with self._reading() as connection:
            return boards.read_boards(connection, metric, known)

    def keep_board(self, board: StoredBoard) -> None:
        from assay.store import boards

        with self._writer.begin() as connection:
            boards.write_board(connection, board)

    def categories(self) -> dict[str, str]:
        """Every suite that was run, to its category; the one that was run last comes first."""
        from assay.store import standings

        with self._reading() as connection:
            return standings.read_categories(connection)

    def benchmarks(self, suite: str) -> list[str]:
        """Return the benchmarks that the suite had in its latest run."""
        from assay.store import standings

        with self._reading() as connection:
            return standings.read_board_benchmarks(connection, suite)

    # What ratings are relative to

    def rating_scopes(self, run_id: str | None = None) -> dict[RatingScope, list[int]]:
        """What the trials of a run, or of all runs, are rated in, with the ids of the trials."""
        from assay.store import references

        with self._reading() as connection:
            return references.read_scopes(connection, run_id)

    def read_completed_trials(self, scope: RatingScope) -> list[CompletedTrial]:
        """Return trials of completed runs: trials of all cases first, then by the time at which their run completed."""
        from assay.store import references

        with self._reading() as connection:
            return references.read_completed(connection, scope)

    def read_rated_trials(self, scope: RatingScope) -> list[tuple[str, int]]:
        """Run and id of every trial in the scope that has ratings, the oldest run first."""
        from assay.store import references

        with self._reading() as connection:
            return references.read_rated(connection, scope)

    def read_yardsticks(self, scope: RatingScope) -> list[tuple[str, int, str]]:
        """Return rated trials as `read_rated_trials` does, each with the references and the pass mark of its ratings."""
        from assay.store import references

        with self._reading() as connection:
            return references.read_yardsticks(connection, scope)

    def read_outdated_ratings(self) -> list[tuple[str, int]]:
        """Return run and id of every trial whose ratings were made by an older version."""
        from assay.store import references

        with self._reading() as connection:
            return references.read_outdated(connection)

    def references(self, suite: str) -> list[Reference]:
        """Return the references of every rated definition of the suite."""
        from assay.store import references

        with self._reading() as connection:
            return references.read_references(connection, suite)

    def trial_references(self, trial_id: int) -> dict[str, Reference]:
        """Return the references of the definition that the trial ran, by quantity."""
        from assay.store import references

        with self._reading_trial(trial_id) as connection:
            return references.read_trial_references(connection, trial_id)

    def keep_references(self, kept: Iterable[Reference]) -> None:
        """Store references: a chosen one replaces any other, a first one replaces only a partial one."""
        from assay.store import references

        with self._writer.begin() as connection:
            references.write_references(connection, kept)

    # What an operator registered

    def register_agents(self, uses: Iterable[AgentUse]) -> None:
        """Register agents; each replaces the registered agent of the same name."""
        with self._writer.begin() as connection:
            registry.register_agents(connection, uses)

    def agents(self) -> dict[str, AgentUse]:
        """Return the registered agents by name."""
        with self._reading() as connection:
            return registry.read_registered_agents(connection)

    def register_suite(self, suite: Suite, now: datetime | None = None) -> None:
        """Register a suite; it replaces the registered suite of the same name."""
        with self._writer.begin() as connection:
            registry.register_suite(connection, suite, now or datetime.now(UTC))

    def suites(self) -> list[SuiteRef]:
        """Return the registered suites by name."""
        with self._reading() as connection:
            return registry.read_registered_suites(connection)

    def suite(self, name: str) -> Suite:
        """Return the registered suite of this name with its benchmarks and cases."""
        with self._reading() as connection:
            return registry.read_registered_suite(connection, name)

    def latest_suite(self, name: str) -> Suite | None:
        """Return the suite as its latest run used it, with its benchmarks and cases; None if it never ran."""
        with self._reading() as connection:
            return registry.latest_suite(connection, name)

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
                baselines.delete().where(refs.is_own_baseline(connection), baselines.c.name == name)
            )
            own = workspaces.workspace_of(connection)
            connection.execute(baselines.insert().values(workspace_id=own, name=name, run_id=run_id))

    def baselines(self) -> dict[str, str]:
        """Return the run ids of the baselines by name."""
        with self._reading() as connection:
            return refs.read_baselines(connection)

    def delete_baseline(self, name: str) -> str:
        """Delete the name of a baseline and return the id of its run, which is kept."""
        with self._writer.begin() as connection:
            run_id = refs.resolve(connection, f"@{name}")
            connection.execute(
                baselines.delete().where(refs.is_own_baseline(connection), baselines.c.name == name)
            )
            return run_id

    # Keys of the server

    def create_key(
        self, name: str, scope: Scope, expires: datetime | None = None, now: datetime | None = None
    ) -> tuple[ApiKey, str]:
        """Create a key and return it with its text, which cannot be read from the store again."""
        with self._writer.begin() as connection:
            return access.create_key(connection, name, scope, expires, now or datetime.now(UTC))

    def find_key(self, token: str) -> ApiKey | None:
        """The key that a text is, whether or not it is valid now; None if it is none."""
        with self._reading() as connection:
            return access.find_key(connection, token)

    def note_use(self, key: ApiKey, now: datetime) -> None:
        """Record that a key was used, at most once a minute."""
        if is_use_due(key, now):
            with self._writer.begin() as connection:
                access.note_use(connection, key, now)

    def has_keys(self) -> bool:
        """Whether there is a key of any workspace: from then on a server answers only requests with one."""
        with self._reading() as connection:
            return access.exists(connection)

    def keys(self) -> list[ApiKey]:
        """Return the keys of the workspace, revoked ones included, the oldest first."""
        with self._reading() as connection:
            return access.read_keys(connection)

    def revoke_key(self, prefix: str, now: datetime | None = None) -> ApiKey:
        with self._writer.begin() as connection:
            return access.revoke_key(connection, prefix, now or datetime.now(UTC))

    def create_session(self, key: ApiKey, expires: datetime, now: datetime | None = None) -> str:
        """The secret text of a new session of a browser, which cannot be read from the store again."""
        with self._writer.begin() as connection:
            return access.create_session(connection, key, expires, now or datetime.now(UTC))

    def find_session(self, token: str, now: datetime | None = None) -> ApiKey | None:
        """The key that a session was opened with, whether or not it is valid now; None if the session has ended."""
        with self._reading() as connection:
            return access.find_session(connection, token, now or datetime.now(UTC))

    def end_session(self, token: str) -> None:
        with self._writer.begin() as connection:
            access.end_session(connection, token)

    def audit(self, entry: AuditEntry) -> None:
        with self._writer.begin() as connection:
            access.write_entry(connection, entry)

    def audit_log(self, before: int | None = None, limit: int = 100) -> list[tuple[int, AuditEntry]]:
        """Return entries of the audit log with their numbers, the newest first."""
        with self._reading() as connection:
            return access.read_entries(connection, before, limit)

    # The queue of the server

    def enqueue(self, queued: QueuedRun) -> None:
        with self._writer.begin() as connection:
            queue.add(connection, queued)

    def read_queued_run(self, run_id: str) -> QueuedRun | None:
        """Return a run of the queue; None if the run was not requested over the API."""
        with self._reading() as connection:
            return queue.read(connection, run_id)

    def queue(self) -> list[QueuedRun]:
        """Runs that wait or are carried out for a server, in the order in which they were asked for."""
        with self._reading() as connection:
            return queue.read_open(connection)

    def whole_queue(self) -> list[QueuedRun]:
        """Return the queue of all workspaces, because a server runs all of them."""
        with self._reading() as connection:
            return queue.read_all_open(connection)

    def claim_queued(self, owner: Owner) -> QueuedRun | None:
        """Takes the run that waits longest for this server, of whatever workspace; None if none waits."""
        with self._writer.begin() as connection:
            return queue.claim(connection, owner)

    def renew_queued(self, run_ids: Collection[str], owner: Owner) -> set[str]:
        """Keeps the claims of a server, and takes back those of servers that are gone; the runs that it has lost itself."""
        with self._writer.begin() as connection:
            lost = queue.renew(connection, run_ids, owner)
            queue.take_back(connection)
        return lost

    def give_back_queued(self, run_id: str, owner: Owner) -> None:
        """Return a run to the queue, or cancel it if that was requested; do nothing if another server has claimed it."""
        with self._writer.begin() as connection:
            queue.give_back(connection, run_id, owner)

    def settle_queued(
        self, run_id: str, state: QueueState, error: str = "", owner: Owner | None = None
    ) -> None:
        """Store the final state of a queued run. With an owner, only if that owner has claimed the run."""
        with self._writer.begin() as connection:
            queue.settle(connection, run_id, state, error, owner)

    def cancel_queued(self, run_id: str) -> QueuedRun:
        with self._writer.begin() as connection:
            return queue.cancel(connection, run_id)

    def requeue(self, run_id: str) -> QueuedRun:
        """A run that has ended waits again; the next process does what is missing of it."""
        with self._writer.begin() as connection:
            return queue.requeue(connection, run_id)

    # Schedules and alerts of the server

    def schedules(self) -> dict[str, SuiteSchedule]:
        """Return the schedules that a server has seen, by suite."""
        from assay.store import schedules

        with self._reading() as connection:
            return schedules.read_schedules(connection)

    def read_registered_schedules(self) -> dict[str, str]:
        """Return the cron expressions of the suites that are registered in the database."""
        from assay.store import schedules

        with self._reading() as connection:
            return schedules.read_registered_schedules(connection)

    def plan_schedule(self, planned: SuiteSchedule, before: SuiteSchedule | None) -> None:
        """Stores when a suite is due next, unless another server has changed that meanwhile."""
        from assay.store import schedules

        with self._writer.begin() as connection:
            schedules.replace_schedule(connection, planned, before)

    def forget_schedule(self, before: SuiteSchedule) -> None:
        """Deletes when a suite is due next, unless another server has changed that meanwhile."""
        from assay.store import schedules

        with self._writer.begin() as connection:
            schedules.delete_schedule(connection, before)

    def take_time(
        self,
        before: SuiteSchedule,
        after: SuiteSchedule,
        started: Iterable[ScheduledRun],
        queued: Iterable[QueuedRun],
        alerts: Iterable[Alert] = (),
    ) -> bool:
        """Takes a time of a schedule and queues its runs, all or nothing; False if somebody else has taken it."""
        from assay.store import alerts as outbox
        from assay.store import schedules

        with self._writer.begin() as connection:
            if not schedules.replace_schedule(connection, after, before):
                return False
            schedules.start_runs(connection, started, queued)
            for alert in alerts:
                outbox.add_alert(connection, alert)
        return True

    def latest_scheduled_runs(self) -> dict[str, list[ScheduledRun]]:
        """Return, by suite, the runs that were started for the latest time of its schedule."""
        from assay.store import schedules

        with self._reading() as connection:
            return schedules.read_latest_runs(connection)

    def find_ended_scheduled_runs(self) -> list[ScheduledRun]:
        """Return scheduled runs that have ended but whose outcomes are not stored yet."""
        from assay.store import schedules

        with self._reading() as connection:
            started = schedules.read_open_runs(connection)
            ended = schedules.read_outcomes(connection, {run.run_id for run in started})
        return [
            replace(run, outcome=ended[run.run_id][0], error=ended[run.run_id][1])
            for run in started
            if run.run_id in ended
        ]

    def open_scheduled_runs(self) -> list[ScheduledRun]:
        from assay.store import schedules

        with self._reading() as connection:
            return schedules.read_open_runs(connection)

    def settle_scheduled_run(self, run: ScheduledRun, alert: Alert | None) -> None:
        """Store the outcome of a scheduled run and its alert, once."""
        from assay.store import alerts, schedules

        with self._writer.begin() as connection:
            if schedules.settle_run(connection, run) and alert is not None:
                alerts.add_alert(connection, alert)

    def raise_alerts(self, raised: Iterable[Alert]) -> list[Alert]:
        """Add alerts to the outbox; return those that were not raised before."""
        from assay.store import alerts

        with self._writer.begin() as connection:
            return [alert for alert in raised if alerts.add_alert(connection, alert)]

    def claim_alert(self, now: datetime, until: datetime) -> Alert | None:
        """Takes the alert that is due longest, so that nobody else sends it before `until`; None if none is due."""
        from assay.store import alerts

        with self._reading() as connection:
            # Most of the time nothing is due, and a claim locks the database.
            if not alerts.has_due_alerts(connection, now):
                return None
        with self._writer.begin() as connection:
            return alerts.claim_alert(connection, now, until)

    def settle_alert(self, alert: Alert) -> None:
        from assay.store import alerts

        with self._writer.begin() as connection:
            alerts.settle_alert(connection, alert)

    def alerts(
        self, before: int | None = None, limit: int = 100, state: AlertState | None = None
    ) -> list[Alert]:
        """Return the newest first; with `before`, only those with a smaller id."""
        from assay.store import alerts

        with self._reading() as connection:
            return alerts.read_alerts(connection, before, limit, state)

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
        from assay.store import labels

        with self._writer.begin() as connection:
            found = labels.find_executions(connection, trial_id, case, seq)
            given = [Label(trial_id, number, case, author, verdict, note, now) for number in found]
            return labels.write_labels(connection, given)

    def labels(self, chosen: LabelFilter, before: int | None = None, limit: int = 100) -> list[Label]:
        """Return the newest first; with `before`, only those with a smaller id."""
        from assay.store import labels

        with self._reading() as connection:
            return labels.read_labels(connection, chosen, before, limit)

    def read_labelled_scores(self, chosen: LabelFilter) -> list[LabelledScore]:
        """Return every label with the scores that scorers gave to the same execution."""
        from assay.store import labels

        with self._reading() as connection:
            return labels.read_labelled_scores(connection, chosen)

    # Overviews

    def coverage(self, agents: Collection[str] | None = None) -> list[CoverageCell]:
        """Agents that have results on a suite, by name; only these agents, if any are given."""
        from assay.store import search

        with self._reading() as connection:
            return search.read_coverage(connection, agents)

    def agents_on(self, suite: str) -> list[str]:
        """Return the agents that have results on a suite, by name."""
        from assay.store import search

        with self._reading() as connection:
            return search.read_agents_on(connection, suite)

    def latest_by_suite(self, suites: Collection[str] | None = None) -> dict[str, dict[str, datetime]]:
        """Suite to the agents with results on it, each with when its latest trial began; only these suites, if any are given."""
        from assay.store import search

        with self._reading() as connection:
            return search.read_latest_by_suite(connection, suites)

    def latest_results(self) -> dict[str, datetime]:
        """Return the start of the latest trial of each agent on a suite."""
        from assay.store import search

        with self._reading() as connection:
            return search.read_latest_results(connection)

    def search(self, text: str, limit: int) -> SearchResult:
        """Find agents, suites, runs and cases whose names contain the text, at most `limit` of each."""
        from assay.store import search

        with self._reading() as connection:
            return search.search(connection, text, limit)

    def agent_activity(self, periods: Sequence[tuple[datetime, datetime]]) -> dict[str, AgentActivity]:
        """Return the first result of each agent, and whether it has results in each of the periods."""
        from assay.store import success

        with self._reading() as connection:
            return success.read_activity(connection, periods)

    def read_found_regressions(self) -> list[FoundRegression]:
        """Return all regressions, each with the latest judgement of a person on whether it is real."""
        from assay.store import success

        with self._reading() as connection:
            return success.read_found_regressions(connection)

    def keep_gate_result(self, result: GateRecord) -> None:
        from assay.store import success

        with self._writer.begin() as connection:
            success.write_gate_result(connection, result)

    def gate_results(self) -> list[GateRecord]:
        from assay.store import success

        with self._reading() as connection:
            return success.read_gate_results(connection)

    def keep_opportunities(
        self, places: Collection[tuple[str, str]], found: Iterable[FoundOpportunity], now: datetime
    ) -> None:
        """What a profile found at these places; what was found there before and is gone counts as resolved."""
        from assay.store import success

        with self._writer.begin() as connection:
            success.write_opportunities(connection, places, found, now)

    def opportunities(self) -> list[FoundOpportunity]:
        from assay.store import success

        with self._reading() as connection:
            return success.read_opportunities(connection)

    # What became of an agent

    def agent_trials(self, agent: str, suite: str | None = None) -> list[AgentTrial]:
        """Return the finished trials of all versions of an agent, of one suite or of all, the oldest first."""
        from assay.store import history

        with self._reading() as connection:
            return history.read_agent_trials(connection, agent, suite)

    def past_figures(self, trial: Trial) -> PastFigures | None:
        """Seconds and usd of executions of the same agent and benchmark; None where nothing is stored of them."""
        from assay.store import history

        with self._reading() as connection:
            return history.read_past_figures(connection, trial)

    def columns(self, trial_ids: Sequence[int], metrics: Collection[str]) -> Iterator[tuple[int, Columns]]:
        """The measured executions of many trials with these metrics, a part of the trials at a time."""
        from assay.store import history

        with self._reading() as connection:
            own = self._choose_own(connection, trial_ids)
            yield from history.read_columns(connection, own, metrics)

    def agents_with_trials(self) -> list[str]:
        from assay.store import history

        with self._reading() as connection:
            return history.read_agents_with_trials(connection)

    def regressions(self, agent: str) -> list[Regression]:
        """Return every regression that was ever found, with its state, the oldest first."""
        from assay.store import regressions

        with self._reading() as connection:
            return regressions.read_regressions(connection, agent)

    def open_regressions(self) -> list[Regression]:
        """Return the regressions of all agents that are neither resolved nor false positives, the oldest first."""
        from assay.store import regressions

        with self._reading() as connection:
            return regressions.read_regressions(connection, are_open=True)

    def keep_regressions(self, found: Iterable[Regression]) -> None:
        """Store regressions; each replaces the stored one with the same id."""
        from assay.store import regressions

        with self._writer.begin() as connection:
            regressions.write_regressions(connection, found)

    def mark_regression(
        self,
        agent: str,
        ref: str,
        state: RegressionState,
        note: str | None = None,
        now: datetime | None = None,
        author: str = "",
    ) -> Regression:
        """Gives one, by its id or the start of it, a state; without a note the one that it has stays."""
        from assay.store import regressions

        with self._writer.begin() as connection:
            return regressions.mark(connection, agent, ref, state, note, now or datetime.now(UTC), author)

    def regression_page(
        self, chosen: RegressionFilter, skip: int = 0, limit: int = 100, *, by_severity: bool = False
    ) -> list[Regression]:
        """Regressions of all agents, the newest first; or the most severe first, and of these the newest."""
        from assay.store import regressions

        with self._reading() as connection:
            return regressions.read_regression_page(connection, chosen, skip, limit, by_severity=by_severity)

    def regression_changes(self, ids: Collection[str]) -> dict[str, list[RegressionChange]]:
        """Return the states that people set, by regression, the oldest first."""
        from assay.store import regressions

        with self._reading() as connection:
            return regressions.read_changes(connection, ids)

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
