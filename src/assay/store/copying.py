"""Copies a whole database, with all workspaces, to another one: `assay db copy`, from SQLite to PostgreSQL or back.

A trial goes with everything that hangs on it, all in one transaction: so the target has a trial whole or not at all, and the
rows themselves say how far a copy has come. A copy that was interrupted continues where it stopped when it is started again.
Everything else is little, and is added at the beginning.

A copy is of the moment at which it begins. What the source has changed since an earlier copy is rewritten at the next one:
rows of small tables, and whole runs that continued. The long tables of other trials stay as they are and must be the same.

Nothing is believed: after each transaction, and for what was there before, both sides are compared, the two long tables by
digests of all of their rows (`copy_digests.py`), everything else row by row. PostgreSQL, or a process of its own for SQLite,
computes them while the next transaction is under way.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import Any, TypeVar

import sqlalchemy as sa

from assay.errors import StoreError, StoreFull
from assay.model import RunState
from assay.model.database_copy import CopyProgress
from assay.store import column_values as plain
from assay.store import database, driver_errors, leases, schema, tables
from assay.store.address import Address, read_address
from assay.store.bulk import Rows, insert_parts
from assay.store.copy_digests import Digester, Digests, fetch_executions, find_differing_tables, read_digests
from assay.store.copy_rows import (
    add_missing_rows,
    fetch_rows_in_order,
    find_other_rows,
    is_same,
    name_values,
    update_rows,
)
from assay.store.digest_process import DigestProcess
from assay.store.export import redact_rows
from assay.store.series import PackedSeries, fetch_series, insert_series

EXECUTIONS_AT_ONCE = 50_000
"""A transaction takes whole trials until they have this many executions."""
WORTH_A_PROCESS = 100_000
"""Executions that are worth a process beside this one, which takes half a second to start."""
_LONG = (tables.executions, tables.measurements)
T = TypeVar("T")


def copy_database(source: str, target: str, report: Callable[[CopyProgress], None]) -> CopyProgress:
    """Copy everything from one URL to the other and compare it; `report` is called after each transaction.

    The target is made where there is none. It is refused if it holds anything that the source does not.
    """
    from_address, to_address = read_address(source), read_address(target)
    _refuse_useless_addresses(from_address, to_address)
    # What is copied is compared, so SQLite need not look up the trial of each row.
    with (
        _explain_errors(from_address, to_address),
        _open(from_address, is_source=True) as reading,
        _open(to_address, foreign_keys=False) as writing,
    ):
        # One transaction reads everything, so that what others store meanwhile does not get half of itself copied.
        level = {"isolation_level": "REPEATABLE READ"} if reading.dialect.name == "postgresql" else {}
        with reading.execution_options(**level).connect() as snapshot:
            copy = _Copy(snapshot, writing, to_address)
            progress = copy.run(report)
        with reading.connect() as now:
            progress.later_runs = copy.find_later_runs(now)
        schema.refresh(writing)
    return progress


def _refuse_useless_addresses(source: Address, target: Address) -> None:
    if source.is_in_memory or target.is_in_memory:
        raise StoreError(
            f"A SQLite database in memory cannot be the {'source' if source.is_in_memory else 'target'} of a copy: it is empty at first "
            "and gone at the end. Name a file, sqlite:///FILE, or a server, postgresql://USER@HOST/DATABASE."
        )
    if source.file is not None and not source.file.exists():
        raise StoreError(f"There is no database '{source.shown}' to copy.")
    if _is_same(source, target):
        raise StoreError(f"'{target.shown}' is both source and target. Name two databases.")


def _is_same(source: Address, target: Address) -> bool:
    if source.file is None or target.file is None:
        return source.url == target.url
    # A link is another name of the same file.
    return source.file == target.file or (target.file.exists() and source.file.samefile(target.file))


@contextmanager
def _explain_errors(source: Address, target: Address) -> Iterator[None]:
    """The drivers' errors as the user of a copy needs them."""
    try:
        try:
            yield
        except sa.exc.DBAPIError as error:
            # These come past SQLAlchemy (`bulk.py`): from COPY, which writes to PostgreSQL, and from reading.
            is_of_target = type(error.orig).__module__.startswith("psycopg") and target.file is None
            known = driver_errors.translate(error.orig or error, target if is_of_target else source)
            if known is None:
                raise
            raise known from error
    except StoreFull as error:
        raise StoreFull(
            f"There is no space left for '{target.shown}'. What was copied before is kept: free some space, then repeat the same command."
        ) from error


@contextmanager
def _open(address: Address, *, foreign_keys: bool = True, is_source: bool = False) -> Iterator[sa.Engine]:
    """A database at the newest schema, which is made where there is none; a source without one is refused, as nothing is written there."""
    engine = database.connect(address, foreign_keys=foreign_keys)
    try:
        if is_source:
            with engine.connect() as connection:
                if schema.current(connection, address) is None:
                    raise StoreError(
                        f"'{address.shown}' is not a database of Assay, so there is nothing to copy."
                    )
        schema.ensure(engine, address)
        yield engine
    finally:
        engine.dispose()


@dataclass(frozen=True, slots=True)
class _TrialGroup:
    """Trials with neighbouring ids that are copied in one transaction."""

    trials: Sequence[int]
    executions: int
    is_present: bool
    """Whether an earlier copy has brought them."""

    @property
    def ends(self) -> tuple[int, int]:
        return self.trials[0], self.trials[-1]


class _Copy:
    """One copy, from a snapshot of the source."""

    def __init__(self, source: sa.Connection, target: sa.Engine, address: Address) -> None:
        self._source = source
        self._target = target
        self._writer = database.writing(target)
        self._address = address
        own = [table for table in tables.metadata.sorted_tables if table is not tables.revision]
        self._of_trials = [table for table in own if table is tables.trials or "trial_id" in table.c]
        self._others = [table for table in own if table not in self._of_trials]
        self._batches = _count_batches(source)
        self._unfinished: dict[int, str] = {}
        """By the last trial that it waits for, each run of which the target lacks trials."""

    def run(self, report: Callable[[CopyProgress], None]) -> CopyProgress:
        self._refuse_runs_under_way()
        with self._target.connect() as target:
            self._refuse_other_contents(target)
            # An earlier copy has brought all runs: what is in a target without any is of another origin, and not rewritten.
            is_copy = target.scalar(sa.select(tables.runs.c.id).limit(1)) is not None
        with self._writer.begin() as target:
            if is_copy:
                self._delete_outdated_trials(target)
            for table in self._others:
                (update_rows if is_copy else add_missing_rows)(self._source, target, table)
            present = set(target.scalars(sa.select(tables.trials.c.id)))
            # Before anything is committed: a target with other data is left alone.
            self._compare_in(target, self._others)
            self._mark_unfinished_runs(target, present)
        sizes = self._count_executions()
        progress = CopyProgress(of_executions=sum(sizes.values()))
        with self._open_reader(progress.of_executions) as read, ThreadPoolExecutor(1) as beside:
            checks = self._copy_groups(_group(sizes, present), beside, read)
            for group, find_differing in _one_behind(checks):
                self._compare(find_differing(), group.trials)
                progress.trials += len(group.trials)
                progress.executions += group.executions
                progress.found += group.executions if group.is_present else 0
                report(progress)
        with self._writer.begin() as target:
            _set_counters(target, (*self._others, *self._of_trials))
        self._compare([tables.runs])
        progress.rows = self._compare_counts()
        return progress

    def _mark_unfinished_runs(self, target: sa.Connection, present: set[int]) -> None:
        """A run counts as incomplete until its last trial is there: somebody may look at a copy that was interrupted."""
        query = sa.select(tables.trials.c.id, tables.trials.c.run_id).order_by(tables.trials.c.id)
        last = {run: trial for trial, run in self._source.execute(query) if trial not in present}
        self._unfinished = {trial: run for run, trial in last.items()}
        _set_states(target, dict.fromkeys(last, RunState.INCOMPLETE.value))

    @contextmanager
    def _open_reader(self, executions: int) -> Iterator[Callable[[int, int], Digests] | None]:
        """What reads the digests of the target while this process writes; None for SQLite where that is not worth a process."""
        here = partial(_read_digests_of, self._target)
        if self._target.dialect.name == "postgresql":
            yield here
        elif self._address.file is None or executions < WORTH_A_PROCESS:
            yield None
        else:
            with closing(DigestProcess(self._address)) as process:
                yield lambda first, last: process.read(first, last) or here(first, last)

    def _copy_groups(
        self,
        groups: Iterator[_TrialGroup],
        beside: ThreadPoolExecutor,
        read: Callable[[int, int], Digests] | None,
    ) -> Iterator[tuple[_TrialGroup, Callable[[], list[sa.Table]]]]:
        """Copy group by group; each comes with a function that finds the tables whose digests differ."""
        short = [table for table in self._of_trials if table not in _LONG]
        for group in groups:
            expected = self._update_trials(group, short) if group.is_present else self._copy_trials(group)
            self._compare(short, group.trials)
            here = partial(_read_digests_of, self._target, *group.ends)
            find = here if read is None else beside.submit(read, *group.ends).result
            yield group, partial(_find_differing, expected, find)

    def _update_trials(self, group: _TrialGroup, short: Sequence[sa.Table]) -> Digests:
        """Rewrite what of the short tables has changed; returns the digests that the long tables must have."""
        with self._writer.begin() as target:
            for table in short:
                update_rows(self._source, target, table, group.trials)
        digester = Digester()
        for rows in self._fetch_executions(group):
            digester.add_executions(rows)
        for series in self._fetch_series(group):
            digester.add_series(series)
        return digester.digests()

    def _fetch_executions(self, group: _TrialGroup) -> Iterator[Rows]:
        return (redact_rows(rows, tables.executions) for rows in fetch_executions(self._source, *group.ends))

    def _fetch_series(self, group: _TrialGroup) -> Iterator[PackedSeries]:
        for series in fetch_series(self._source, *group.ends):
            yield series._replace(metric=plain.redact_text(series.metric))

    def _refuse_runs_under_way(self) -> None:
        for run_id in self._source.scalars(sa.select(tables.leases.c.run_id)).all():
            leases.refuse_if_held(self._source, run_id, "Wait until it has ended, then copy.")

    def _refuse_other_contents(self, target: sa.Connection) -> None:
        """Refuse a target with other contents than an earlier copy of this source, before anything is written."""
        for run_id in target.scalars(sa.select(tables.leases.c.run_id)).all():
            leases.refuse_if_held(target, run_id, f"'{self._address.shown}' cannot be written meanwhile.")
        for table in (*self._others, tables.trials):
            if strange := find_other_rows(self._source, target, table):
                raise StoreError(
                    f"'{self._address.shown}' holds other data: {len(strange)} of its rows in '{table.name}' are not in the source. "
                    "Copy into an empty database, or remove rows that were deleted from the source since an earlier copy."
                )
        later = [
            run for run, batches in _count_batches(target).items() if batches > self._batches.get(run, 0)
        ]
        if later:
            raise StoreError(
                f"'{self._address.shown}' holds other data: run '{later[0]}' continued there after it was copied. "
                "Copy into an empty database, or the other way round."
            )

    def _delete_outdated_trials(self, target: sa.Connection) -> None:
        """Delete trials of runs that continued since an earlier copy; they are copied again."""
        before = _count_batches(target)
        outdated = [run for run, batches in self._batches.items() if batches > before.get(run, batches)]
        for start in range(0, len(outdated), 1000):
            own = sa.select(tables.trials.c.id).where(
                tables.trials.c.run_id.in_(outdated[start : start + 1000])
            )
            for table in reversed(self._of_trials):
                target.execute(
                    table.delete().where(
                        (table.c.id if table is tables.trials else table.c.trial_id).in_(own)
                    )
                )

    def find_later_runs(self, now: sa.Connection) -> list[str]:
        """Runs of the source that were started, or continued, since the copy began."""
        return [run for run, batches in _count_batches(now).items() if batches != self._batches.get(run)]

    def _count_executions(self) -> dict[int, int]:
        """Count the executions of each trial of the source, in the order of their ids."""
        executions, trials = tables.executions.c, tables.trials.c
        query = sa.select(executions.trial_id, sa.func.count()).group_by(executions.trial_id)
        counts = {row[0]: row[1] for row in self._source.execute(query)}
        ids = self._source.scalars(sa.select(trials.id).order_by(trials.id))
        return {trial: counts.get(trial, 0) for trial in ids}

    def _copy_trials(self, group: _TrialGroup) -> Digests:
        """Copy everything of these trials; returns the digests that the long tables must have then."""
        digester = Digester()
        with self._writer.begin() as target:
            for table in self._of_trials:
                # Closed here where the target fails: later the source is closed too, and cannot be told that the reader is gone.
                if table is tables.executions:
                    with closing(_tap(self._fetch_executions(group), digester.add_executions)) as parts:
                        insert_parts(target, table, parts)
                elif table is tables.measurements:
                    with closing(_tap(self._fetch_series(group), digester.add_series)) as series:
                        insert_series(target, series)
                else:
                    for rows in fetch_rows_in_order(self._source, table, group.trials):
                        target.execute(table.insert(), [name_values(table, row) for row in rows])
            self._set_final_states(target, group)
        return digester.digests()

    def _set_final_states(self, target: sa.Connection, group: _TrialGroup) -> None:
        """Set the states of the source for the runs whose trials are now complete."""
        whole = [self._unfinished[trial] for trial in group.trials if trial in self._unfinished]
        query = sa.select(tables.runs.c.id, tables.runs.c.state).where(tables.runs.c.id.in_(whole))
        states = {row[0]: row[1] for row in self._source.execute(query)} if whole else {}
        _set_states(target, states)

    def _compare(self, own: Sequence[sa.Table], trials: Sequence[int] | None = None) -> None:
        with self._target.connect() as target:
            self._compare_in(target, own, trials)

    def _compare_in(
        self, target: sa.Connection, own: Sequence[sa.Table], trials: Sequence[int] | None = None
    ) -> None:
        """Compare the rows of both sides: those of some trials, or all."""
        for table in own:
            source_rows, target_rows = (
                fetch_rows_in_order(side, table, trials) for side in (self._source, target)
            )
            with closing(source_rows), closing(target_rows):
                no_rows: list[tuple[Any, ...]] = []
                chunks = zip_longest(source_rows, target_rows, fillvalue=no_rows)
                if not all(
                    rows_there == rows_here or is_same(rows_there, rows_here)
                    for rows_there, rows_here in chunks
                ):
                    raise StoreError(
                        f"'{self._address.shown}' does not match the source: its table '{table.name}' differs. "
                        "Copy into an empty database that nothing else writes to."
                    )

    def _compare_counts(self) -> dict[str, int]:
        own = (*self._others, *self._of_trials)
        with self._target.connect() as target:
            source_counts, target_counts = (_count_rows(side, own) for side in (self._source, target))
        if source_counts != target_counts:
            changed = ", ".join(
                f"'{name}'" for name, rows in source_counts.items() if target_counts[name] != rows
            )
            raise StoreError(
                f"'{self._address.shown}' does not match the source: the number of rows in {changed} differs. "
                "Copy into an empty database that nothing else writes to."
            )
        return source_counts


def _count_batches(connection: sa.Connection) -> dict[str, int]:
    """How many batches of each run were stored: more of them mean that a run continued."""
    joined = tables.runs.outerjoin(tables.leases, tables.leases.c.run_id == tables.runs.c.id)
    batches = sa.func.coalesce(tables.leases.c.batches, 0)
    query = sa.select(tables.runs.c.id, batches).select_from(joined).order_by(tables.runs.c.started)
    return {row[0]: row[1] for row in connection.execute(query)}


def _count_rows(connection: sa.Connection, own: Sequence[sa.Table]) -> dict[str, int]:
    return {
        table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in own
    }


def _set_states(target: sa.Connection, states: Mapping[str, str]) -> None:
    if states:
        # A comparison has turned it on, and PostgreSQL's cursors on the server can only read.
        target.execution_options(stream_results=False).execute(
            tables.runs.update()
            .where(tables.runs.c.id == sa.bindparam("run"))
            .values(state=sa.bindparam("to")),
            [{"run": run, "to": state} for run, state in states.items()],
        )


def _set_counters(target: sa.Connection, own: Sequence[sa.Table]) -> None:
    """PostgreSQL numbers new rows by counters, which rows that bring their number along leave where they are."""
    if target.dialect.name != "postgresql":
        return
    for table in own:
        column = table.autoincrement_column
        counter = None if column is None else sa.func.pg_get_serial_sequence(table.name, column.name)
        if counter is not None and target.scalar(sa.select(counter)):
            following = sa.select(sa.func.coalesce(sa.func.max(column), 0) + 1).scalar_subquery()
            target.execute(sa.select(sa.func.setval(counter, following, False)))


def _group(sizes: dict[int, int], present: Container[int]) -> Iterator[_TrialGroup]:
    """Trials in the order of their ids, as many together as make a transaction worth its while."""
    trials: list[int] = []
    executions = 0
    for trial, size in sizes.items():
        is_other = bool(trials) and (trial in present) != (trials[0] in present)
        if is_other or executions >= EXECUTIONS_AT_ONCE or len(trials) >= 1000:
            yield _TrialGroup(trials, executions, trials[0] in present)
            trials, executions = [], 0
        trials.append(trial)
        executions += size
    if trials:
        yield _TrialGroup(trials, executions, trials[0] in present)


def _read_digests_of(engine: sa.Engine, first: int, last: int) -> Digests:
    with engine.connect() as connection:
        return read_digests(connection, first, last)


def _find_differing(expected: Digests, find: Callable[[], Digests]) -> list[sa.Table]:
    return find_differing_tables(expected, find())


def _tap(items: Iterable[T], take: Callable[[T], None]) -> Generator[T]:
    """Yield each item after passing it to a function."""
    for item in items:
        take(item)
        yield item


def _one_behind(items: Iterator[T]) -> Iterator[T]:
    """Yield each item when the next one is ready."""
    before: list[T] = []
    for item in items:
        yield from before
        before = [item]
    yield from before
