"""The store: executions to and from a database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Self

import sqlalchemy as sa

from assay.errors import StoreError
from assay.model import (
    Artifact,
    Batch,
    Environment,
    Execution,
    Plan,
    Run,
    RunState,
    Series,
)
from assay.store import database, faults, pruning, reading, refs, schema, writing
from assay.store.address import Address, read_address
from assay.store.export import export
from assay.store.schema import upgrade
from assay.store.tables import (
    DEFAULT_WORKSPACE,
    baselines,
    executions,
    metadata,
    revision,
    runs,
    tags,
    trials,
)

__all__ = ["RunSummary", "Store", "upgrade"]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as a listing shows it; `executions` counts those of every phase."""

    id: str
    name: str
    state: RunState
    started: datetime
    ended: datetime | None
    trials: int
    executions: int
    tags: tuple[str, ...]


class Store:
    def __init__(self, engine: sa.Engine, address: Address) -> None:
        self._engine = engine
        self._writer = database.writing(engine)
        self._address = address
        self._ledgers: dict[str, writing.Ledger] = {}

    @classmethod
    def open(cls, url: str) -> Store:
        """Makes file and schema when there are none; refuses a schema other than this version's."""
        address = read_address(url)
        engine = database.connect(address)
        try:
            schema.ensure(engine, address)
        except BaseException:
            engine.dispose()
            raise
        return cls(engine, address)

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Writing a run

    def begin(self, plan: Plan, environment: Environment, run_id: str, started: datetime, owner: str) -> Run:
        with self._writer.begin() as connection:
            if refs.exists(connection, run_id):
                raise StoreError(f"There is a run '{run_id}' already. Begin with another id.")
            begun = {"id": run_id, "started": started, "owner": owner}
            writing.insert_run(connection, plan, environment, begun)
            return reading.read_run(connection, run_id)

    def add(self, run_id: str, batch: Batch) -> int:
        """Stores a batch in one transaction; how many of its executions were new.

        An execution that is there already stays as it is.
        """
        ledger = self._ledgers.get(run_id) or self._read_ledger(run_id)
        try:
            return self._write(run_id, batch, batch.executions, ledger)
        except sa.exc.IntegrityError:
            # Part of it is stored already, or the numbering moved on without us: look, and write what is missing.
            ledger = self._read_ledger(run_id)
            with self._engine.connect() as connection:
                missing = writing.missing(connection, batch.executions, ledger.ids)
            return self._write(run_id, batch, missing, ledger)

    def _write(self, run_id: str, batch: Batch, made: tuple[Execution, ...], ledger: writing.Ledger) -> int:
        try:
            with self._writer.begin() as connection:
                after = writing.write_executions(connection, made, ledger)
                writing.write_rest(connection, run_id, batch, ledger.ids)
        except sa.exc.OperationalError as error:  # of PostgreSQL's COPY, which goes past the engine
            raise faults.fault(error.orig or error, self._address) or error from error
        self._ledgers[run_id] = after
        return len(made)

    def _read_ledger(self, run_id: str) -> writing.Ledger:
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

    def reopen(self, run_id: str, owner: str) -> Run:
        """Takes a run over to go on with it; executions that are not settled go, so that they can be done again."""
        self._ledgers.pop(run_id, None)
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            pruning.delete_unsettled(connection, run_id)
            taken = {"state": RunState.RUNNING.value, "owner": owner, "ended": None}
            connection.execute(runs.update().where(runs.c.id == run_id).values(taken))
            return reading.read_run(connection, run_id)

    def progress(self, run_id: str) -> Mapping[reading.Work, int]:
        """Executions stored of each trial, process and phase: their repetitions are 0 to that number less one."""
        with self._engine.connect() as connection:
            refs.require(connection, run_id)
            return reading.read_progress(connection, run_id)

    def finish(self, run_id: str, state: RunState, ended: datetime) -> None:
        self._ledgers.pop(run_id, None)
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            connection.execute(
                runs.update().where(runs.c.id == run_id).values(state=state.value, ended=ended)
            )

    def owner(self, run_id: str) -> str:
        with self._engine.connect() as connection:
            refs.require(connection, run_id)
            owner: str = connection.scalars(sa.select(runs.c.owner).where(runs.c.id == run_id)).one()
            return owner

    # Reading

    def run(self, ref: str) -> Run:
        """A run by id, unambiguous prefix, 'last' or '@baseline'."""
        with self._engine.connect() as connection:
            return reading.read_run(connection, refs.resolve(connection, ref))

    def runs(
        self, *, limit: int | None = 20, tag: str | None = None, name: str | None = None
    ) -> list[RunSummary]:
        """The newest first."""
        query = _summaries().limit(limit)
        if tag is not None:
            query = query.where(runs.c.id.in_(sa.select(tags.c.run_id).where(tags.c.tag == tag)))
        if name is not None:
            query = query.where(runs.c.name == name)
        with self._engine.connect() as connection:
            return [_summary(connection, row) for row in connection.execute(query).all()]

    def counts(self, trial_id: int) -> dict[str, int]:
        """Measured executions by status."""
        with self._engine.connect() as connection:
            return reading.read_counts(connection, trial_id)

    def series(self, trial_id: int) -> dict[str, Series]:
        """Each metric of the ok measured executions as columns, in the order of storing."""
        with self._engine.connect() as connection:
            return reading.read_series(connection, trial_id)

    def failures(self, trial_id: int, limit: int = 50) -> tuple[Execution, ...]:
        """The first executions that were not ok, of any phase."""
        with self._engine.connect() as connection:
            return reading.read_failures(connection, trial_id, limit)

    def executions(self, trial_id: int) -> Iterable[Execution]:
        """All of a trial's executions, read anew in chunks each time they are iterated."""
        return reading.StoredExecutions(self._engine, trial_id)

    def applied(self, trial_id: int) -> dict[str, object]:
        """The settings last read back from the thing under test."""
        with self._engine.connect() as connection:
            return reading.read_applied(connection, trial_id)

    def artifacts(self, trial_id: int) -> tuple[Artifact, ...]:
        with self._engine.connect() as connection:
            return reading.read_artifacts(connection, trial_id)

    # Keeping order

    def delete(self, run_id: str) -> None:
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            names = connection.scalars(sa.select(baselines.c.name).where(baselines.c.run_id == run_id)).all()
            if names:
                raise StoreError(
                    f"Run '{run_id}' is the baseline '{names[0]}'. Give that name to another run first: "
                    f"assay baseline set {names[0]} RUN"
                )
            pruning.delete_run(connection, run_id)
        self._ledgers.pop(run_id, None)
        pruning.give_back_space(self._engine)

    def tag(self, run_id: str, add: Iterable[str], remove: Iterable[str]) -> tuple[str, ...]:
        """The tags as they are then."""
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            chosen = tags.c.run_id == run_id
            connection.execute(tags.delete().where(chosen, tags.c.tag.in_(list(remove))))
            writing.add_tags(connection, run_id, set(add) - set(reading.read_tags(connection, run_id)))
            return tuple(reading.read_tags(connection, run_id))

    def set_baseline(self, name: str, run_id: str) -> None:
        with self._writer.begin() as connection:
            refs.require(connection, run_id)
            connection.execute(baselines.delete().where(baselines.c.name == name))
            connection.execute(
                baselines.insert().values(workspace_id=DEFAULT_WORKSPACE, name=name, run_id=run_id)
            )

    def baselines(self) -> dict[str, str]:
        """Name to run id."""
        with self._engine.connect() as connection:
            query = sa.select(baselines.c.name, baselines.c.run_id).order_by(baselines.c.name)
            return {row.name: row.run_id for row in connection.execute(query)}

    def info(self) -> dict[str, object]:
        """Where the database is, its schema, its size and how many rows each table has."""
        with self._engine.connect() as connection:
            counts = {
                name: _count(connection, table)
                for name, table in metadata.tables.items()
                if table is not revision
            }
            return {
                "url": self._address.shown,
                "dialect": connection.dialect.name,
                "revision": schema.current(connection),
                "size_bytes": _size(connection),
                "rows": counts,
            }

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
            for run_id in () if dry_run else doomed:
                pruning.delete_run(connection, run_id)
        if doomed and not dry_run:
            pruning.give_back_space(self._engine)
        return doomed

    def export(self, path: Path, run_id: str | None = None) -> Path:
        """Everything, or one run, as a new SQLite file."""
        if run_id is not None:
            with self._engine.connect() as connection:
                refs.require(connection, run_id)
        return export(self._engine, path, run_id)


def _summaries() -> sa.Select[tuple[object, ...]]:
    of_run = trials.c.run_id == runs.c.id
    trial_count = sa.select(sa.func.count()).select_from(trials).where(of_run).scalar_subquery()
    execution_count = (
        sa.select(sa.func.count()).select_from(trials.join(executions)).where(of_run).scalar_subquery()
    )
    return sa.select(
        runs.c.id,
        runs.c.name,
        runs.c.state,
        runs.c.started,
        runs.c.ended,
        trial_count.label("trials"),
        execution_count.label("executions"),
    ).order_by(*refs.newest_first)


def _summary(connection: sa.Connection, row: sa.Row[tuple[object, ...]]) -> RunSummary:
    fields = {
        **row._mapping,
        "state": RunState(row.state),
        "tags": tuple(reading.read_tags(connection, row.id)),
    }
    return RunSummary(**fields)


def _count(connection: sa.Connection, table: sa.Table) -> int:
    return connection.scalars(sa.select(sa.func.count()).select_from(table)).one()


def _size(connection: sa.Connection) -> int:
    if connection.dialect.name == "postgresql":
        return int(connection.scalars(sa.select(sa.func.pg_database_size(sa.func.current_database()))).one())
    pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
    return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one())
