"""Copies a whole database, with all workspaces, to another one: `assay db copy`, from SQLite to PostgreSQL or back.

A trial goes with everything that hangs on it, all in one transaction: so the target has a trial whole or not at all, and the
rows themselves say how far a copy has come. A copy that was interrupted goes on where it stopped when it is started again.
Everything else is little, and what of it is missing in the target is added at the beginning.

Nothing is believed: after each transaction, and for what was there before, the rows of both sides are read and compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from decimal import Decimal
from itertools import zip_longest
from typing import Any

import sqlalchemy as sa

from assay.errors import StoreError
from assay.model.database_copy import CopyProgress
from assay.store import column_values as plain
from assay.store import database, leases, schema, tables
from assay.store.address import Address, read_address
from assay.store.bulk import fetch_rows, insert_rows
from assay.store.export import redact_row

EXECUTIONS_AT_ONCE = 20_000
"""A transaction takes whole trials until they have this many executions."""
_LONG = (tables.executions, tables.measurements)
"""Read and written as the drivers have them, without SQLAlchemy's types."""


def copy_database(source: str, target: str, report: Callable[[CopyProgress], None]) -> CopyProgress:
    """Copy everything from one URL to the other and compare it; `report` is called after each transaction.

    The target is made where there is none. It is refused if it holds anything that the source does not.
    """
    from_address, to_address = read_address(source), read_address(target)
    if from_address.url == to_address.url:
        raise StoreError(f"'{to_address.shown}' is both source and target. Name two databases.")
    if from_address.file is not None and not from_address.file.exists():
        raise StoreError(f"There is no database '{from_address.shown}' to copy.")
    with _open(from_address) as reading, _open(to_address) as writing:
        # One transaction reads everything, so that what others store meanwhile does not get half of itself copied.
        level = {"isolation_level": "REPEATABLE READ"} if reading.dialect.name == "postgresql" else {}
        with reading.execution_options(**level).connect() as snapshot:
            progress = _Copy(snapshot, writing, to_address.shown).run(report)
        schema.refresh(writing)
    return progress


@contextmanager
def _open(address: Address) -> Iterator[sa.Engine]:
    engine = database.connect(address)
    try:
        schema.ensure(engine, address)
        yield engine
    finally:
        engine.dispose()


class _Copy:
    """One copy, from a snapshot of the source."""

    def __init__(self, source: sa.Connection, target: sa.Engine, shown: str) -> None:
        self._source = source
        self._target = target
        self._writer = database.writing(target)
        self._shown = shown
        own = [table for table in tables.metadata.sorted_tables if table is not tables.revision]
        self._of_trials = [table for table in own if table is tables.trials or "trial_id" in table.c]
        self._others = [table for table in own if table not in self._of_trials]

    def run(self, report: Callable[[CopyProgress], None]) -> CopyProgress:
        self._refuse_runs_under_way()
        with self._target.connect() as target:
            self._refuse_other_contents(target)
            present = {trial for (trial,) in _keys(target, tables.trials)}
        with self._writer.begin() as target:
            for table in self._others:
                self._add_missing(target, table)
        self._compare(self._others)
        sizes = self._count_executions()
        progress = CopyProgress(of_executions=sum(sizes.values()))
        for group in _group(sizes):
            self._copy_trials([trial for trial in group if trial not in present])
            self._compare(self._of_trials, group)
            progress.trials += len(group)
            progress.executions += sum(sizes[trial] for trial in group)
            progress.found += sum(sizes[trial] for trial in group if trial in present)
            report(progress)
        with self._writer.begin() as target:
            _set_counters(target, (*self._others, *self._of_trials))
        progress.rows = self._compare_counts()
        return progress

    def _refuse_runs_under_way(self) -> None:
        for run_id in self._source.scalars(sa.select(tables.leases.c.run_id)).all():
            leases.refuse_if_held(self._source, run_id, "Wait until it has ended, then copy.")

    def _refuse_other_contents(self, target: sa.Connection) -> None:
        """Before anything is written: what the target holds must be what an earlier copy of this source brought."""
        for table in (*self._others, tables.trials):
            if strange := _keys(target, table) - _keys(self._source, table):
                raise StoreError(
                    f"'{self._shown}' holds other data: {len(strange)} of its rows in '{table.name}' are not in the source. "
                    "Copy into an empty database."
                )

    def _add_missing(self, target: sa.Connection, table: sa.Table) -> None:
        present = _keys(target, table)
        key = [column.name for column in table.primary_key.columns]
        for rows in self._source.execute(sa.select(table)).partitions(1000):
            mappings = [dict(row._mapping) for row in rows]
            missing = [row for row in mappings if tuple(row[name] for name in key) not in present]
            if missing:
                target.execute(table.insert(), missing)

    def _count_executions(self) -> dict[int, int]:
        """Of each trial of the source, in the order of their ids."""
        executions, trials = tables.executions.c, tables.trials.c
        query = sa.select(executions.trial_id, sa.func.count()).group_by(executions.trial_id)
        counts = {row[0]: row[1] for row in self._source.execute(query)}
        ids = self._source.scalars(sa.select(trials.id).order_by(trials.id))
        return {trial: counts.get(trial, 0) for trial in ids}

    def _copy_trials(self, trials: Sequence[int]) -> None:
        if not trials:
            return
        with self._writer.begin() as target:
            for table in self._of_trials:
                for rows in _fetch(self._source, table, trials):
                    if table in _LONG:
                        has_text = table is tables.executions
                        insert_rows(
                            target, table, [redact_row(row, table) for row in rows] if has_text else rows
                        )
                    else:
                        target.execute(
                            table.insert(), [dict(zip(table.c.keys(), row, strict=True)) for row in rows]
                        )

    def _compare(self, own: Sequence[sa.Table], trials: Sequence[int] | None = None) -> None:
        """Hold the rows of both sides against each other; those of some trials, or all."""
        with self._target.connect() as target:
            for table in own:
                there, here = (_fetch(side, table, trials) for side in (self._source, target))
                with closing(there), closing(here):
                    no_rows: list[tuple[Any, ...]] = []
                    chunks = zip_longest(there, here, fillvalue=no_rows)
                    if not all(one == other or _is_same(one, other) for one, other in chunks):
                        raise StoreError(
                            f"'{self._shown}' does not hold what the source does: its table '{table.name}' differs. "
                            "Copy into an empty database that nobody else writes to."
                        )

    def _compare_counts(self) -> dict[str, int]:
        own = (*self._others, *self._of_trials)
        with self._target.connect() as target:
            there, here = (_count_rows(side, own) for side in (self._source, target))
        if there != here:
            changed = ", ".join(f"'{name}'" for name, rows in there.items() if here[name] != rows)
            raise StoreError(
                f"'{self._shown}' does not hold what the source does: the number of rows in {changed} differs. "
                "Copy into an empty database that nobody else writes to."
            )
        return there


def _keys(connection: sa.Connection, table: sa.Table) -> set[tuple[Any, ...]]:
    return {tuple(row) for row in connection.execute(sa.select(*table.primary_key.columns))}


def _count_rows(connection: sa.Connection, own: Sequence[sa.Table]) -> dict[str, int]:
    return {
        table.name: connection.scalar(sa.select(sa.func.count()).select_from(table)) or 0 for table in own
    }


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


def _group(sizes: dict[int, int]) -> Iterator[list[int]]:
    """Trials in the order of their ids, as many together as make a transaction worth its while."""
    group: list[int] = []
    executions = 0
    for trial, size in sizes.items():
        group.append(trial)
        executions += size
        if executions >= EXECUTIONS_AT_ONCE or len(group) >= 1000:
            yield group
            group, executions = [], 0
    if group:
        yield group


def _fetch(
    connection: sa.Connection, table: sa.Table, trials: Sequence[int] | None
) -> Generator[list[tuple[Any, ...]]]:
    """Rows in chunks, in an order that both databases agree on."""
    is_long = table in _LONG
    raw = (sa.cast(column, sa.Text) if isinstance(column.type, sa.JSON) else column for column in table.c)
    query = sa.select(*raw) if is_long else sa.select(table)
    if trials is not None:
        owner = table.c.id if table is tables.trials else table.c.trial_id
        # A range rather than a list of ids, so that one statement serves all groups.
        query = query.where(owner.between(trials[0], trials[-1]))
        if len(trials) != trials[-1] - trials[0] + 1:
            query = query.where(owner.in_(trials))
    query = query.order_by(*(_sortable(column, connection) for column in table.primary_key.columns))
    if is_long:
        yield from map(list, fetch_rows(connection, query))
    else:
        streamed = connection.execution_options(stream_results=True, max_row_buffer=1000)
        with streamed.execute(query) as result:
            for rows in result.partitions(1000):
                yield [tuple(row) for row in rows]


def _sortable(column: sa.Column[Any], connection: sa.Connection) -> sa.ColumnElement[Any]:
    """By bytes, as SQLite sorts text: the order of PostgreSQL depends on the language of the server."""
    is_text = connection.dialect.name == "postgresql" and column.type.python_type is str
    return column.collate("C") if is_text else column


def _is_same(there: Sequence[Sequence[Any]], here: Sequence[Sequence[Any]]) -> bool:
    """Whether rows that are not written alike mean the same: PostgreSQL orders the keys of its JSON, and secrets that the
    source still holds are redacted in the target."""
    return len(there) == len(here) and all(
        len(one) == len(other) and all(map(_means_same, one, other))
        for one, other in zip(there, here, strict=True)
    )


def _means_same(one: Any, other: Any) -> bool:
    if one == other:
        return True
    if isinstance(one, str) and isinstance(other, str):
        if plain.redact_text(one) == other:
            return True
        try:
            return bool(_read_exactly(plain.redact_json(plain.from_json(one))) == _read_exactly(other))
        except ValueError:
            return False
    is_json = isinstance(one, dict | list)
    return is_json and bool(_read_exactly(plain.redact_json(one)) == _read_exactly(plain.to_json(other)))


def _read_exactly(written: str) -> Any:
    """JSON whose numbers are equal if their values are: PostgreSQL writes 1e300 in full."""
    return json.loads(written, parse_float=Decimal, parse_int=Decimal)
