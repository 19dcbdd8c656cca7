"""The rows of the tables of a copy, all but the two long ones: fetched in one order from both databases, compared, brought up to date."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from assay.store import column_values as plain
from assay.store import tables
from assay.store.copy_digests import fetch_executions

Key = tuple[Any, ...]

_VOLATILE = (tables.sessions, tables.boards, tables.rating_references, tables.ratings, tables.trial_totals)
"""A server removes rows of these by itself, so rows that the source no longer has are removed from its copy too."""
_LOGS = (tables.audit_log, tables.regression_changes, tables.gate_results)
"""Rows that are written once: another row under the same number is of another database."""
_REPLACED = {tables.labels: (tables.labels.c.trial_id, tables.labels.c.seq, tables.labels.c.author)}
"""Tables in which a new row, with a number of its own, takes the place of the one with the same values in these columns."""


def find_other_rows(source: sa.Connection, target: sa.Connection, table: sa.Table) -> set[Key]:
    """What identifies the rows of the target that the source does not have; those that a server removes do not count."""
    if table in _VOLATILE:
        return set()
    unique = [constraint for constraint in table.constraints if isinstance(constraint, sa.UniqueConstraint)]
    columns = dict.fromkeys((*table.primary_key, *(column for own in unique for column in own.columns)))
    query = sa.select(*columns)
    return {tuple(row) for row in target.execute(query)} - {_redact(row) for row in source.execute(query)}


def add_missing_rows(
    source: sa.Connection, target: sa.Connection, table: sa.Table, trials: Sequence[int] | None = None
) -> None:
    _write_rows(source, target, table, trials, is_rewriting=False)


def update_rows(
    source: sa.Connection, target: sa.Connection, table: sa.Table, trials: Sequence[int] | None = None
) -> None:
    """Make the target's rows those of the source, as far as an earlier copy of the same source may differ."""
    if table in _VOLATILE:
        _delete_removed_rows(source, target, table, trials)
    if table in _REPLACED:
        _delete_replaced_rows(source, target, table, trials)
    _write_rows(source, target, table, trials, is_rewriting=table not in _LOGS)


def _write_rows(
    source: sa.Connection,
    target: sa.Connection,
    table: sa.Table,
    trials: Sequence[int] | None,
    *,
    is_rewriting: bool,
) -> None:
    names = table.c.keys()
    places = [names.index(column.name) for column in table.primary_key]
    for rows in fetch_rows_in_order(source, table, trials):
        by_key = {_redact([row[place] for place in places]): row for row in rows}
        query = sa.select(table).where(sa.tuple_(*table.primary_key).in_(list(by_key)))
        present = {tuple(row[place] for place in places): tuple(row) for row in target.execute(query)}
        missing = [name_values(table, row) for key, row in by_key.items() if key not in present]
        if missing:
            target.execute(table.insert(), missing)
        for key, row in by_key.items() if is_rewriting else ():
            if key in present and not is_same([row], [present[key]]):
                target.execute(_choose(table.update(), table, key).values(name_values(table, row)))


def name_values(table: sa.Table, row: Sequence[Any]) -> dict[str, Any]:
    """A row of the source as the target can hold it: other programs may have stored text in SQLite that PostgreSQL refuses."""
    values = (plain.text(value) if isinstance(value, str) else value for value in row)
    return dict(zip(table.c.keys(), values, strict=True))


def _delete_removed_rows(
    source: sa.Connection, target: sa.Connection, table: sa.Table, trials: Sequence[int] | None
) -> None:
    query = _select_trials(sa.select(*table.primary_key), table, trials)
    kept = {_redact(row) for row in source.execute(query)}
    for row in target.execute(query).all():
        if tuple(row) not in kept:
            target.execute(_choose(table.delete(), table, tuple(row)))


def _delete_replaced_rows(
    source: sa.Connection, target: sa.Connection, table: sa.Table, trials: Sequence[int] | None
) -> None:
    """Rows that the source does not have at all stay: somebody has added them to the copy, which the comparison finds out."""
    query = _select_trials(sa.select(*_REPLACED[table], *table.primary_key), table, trials)
    size = len(_REPLACED[table])
    kept = {_redact(row[:size]): _redact(row[size:]) for row in source.execute(query)}
    for row in target.execute(query).all():
        key = tuple(row[size:])
        if kept.get(tuple(row[:size]), key) != key:
            target.execute(_choose(table.delete(), table, key))


def _choose(statement: Any, table: sa.Table, key: Key) -> Any:
    return statement.where(*(column == value for column, value in zip(table.primary_key, key, strict=True)))


def _redact(key: Sequence[Any]) -> Key:
    """A key as the target has it."""
    return tuple(plain.redact_text(value) if isinstance(value, str) else value for value in key)


def _select_trials(query: sa.Select[Any], table: sa.Table, trials: Sequence[int] | None) -> sa.Select[Any]:
    if trials is None:
        return query
    owner = table.c.id if table is tables.trials else table.c.trial_id
    return query.where(owner.between(trials[0], trials[-1]))


def fetch_rows_in_order(
    connection: sa.Connection, table: sa.Table, trials: Sequence[int] | None
) -> Generator[Sequence[tuple[Any, ...]]]:
    """Rows in chunks, in an order that both databases agree on."""
    if table is tables.executions and trials is not None:
        yield from fetch_executions(connection, trials[0], trials[-1])
        return
    query = _select_trials(sa.select(table), table, trials)
    query = query.order_by(*(_sortable(column, connection) for column in table.primary_key.columns))
    streamed = connection.execution_options(stream_results=True, max_row_buffer=1000)
    with streamed.execute(query) as result:
        for rows in result.partitions(1000):
            yield [tuple(row) for row in rows]


def _sortable(column: sa.Column[Any], connection: sa.Connection) -> sa.ColumnElement[Any]:
    """Sort text by bytes, as SQLite does: the order of PostgreSQL depends on the language of the server."""
    is_text = connection.dialect.name == "postgresql" and column.type.python_type is str
    return column.collate("C") if is_text else column


def is_same(source_rows: Sequence[Sequence[Any]], target_rows: Sequence[Sequence[Any]]) -> bool:
    """Whether rows that are not written alike mean the same: PostgreSQL orders the keys of its JSON, and secrets that the
    source still holds are redacted in the target."""
    return len(source_rows) == len(target_rows) and all(
        len(source_row) == len(target_row) and all(map(_means_same, source_row, target_row))
        for source_row, target_row in zip(source_rows, target_rows, strict=True)
    )


def _means_same(value: Any, other: Any) -> bool:
    if value == other:
        return True
    if isinstance(value, str) and isinstance(other, str):
        if plain.redact_text(value) == other:
            return True
        try:
            return bool(_read_exactly(plain.redact_json(plain.from_json(value))) == _read_exactly(other))
        except ValueError:
            return False
    is_json = isinstance(value, dict | list)
    return is_json and bool(_read_exactly(plain.redact_json(value)) == _read_exactly(plain.to_json(other)))


def _read_exactly(written: str) -> Any:
    """JSON whose numbers are equal if their values are: PostgreSQL writes 1e300 in full."""
    return json.loads(written, parse_float=Decimal, parse_int=Decimal)
