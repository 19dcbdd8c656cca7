"""Many rows at once, as tuples straight to and from the driver: SQLAlchemy's own way costs more than SQLite itself.

SQLAlchemy has no part in it, so the driver's errors are wrapped here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from typing import Any

import sqlalchemy as sa

Rows = Sequence[tuple[Any, ...]]

_FETCHED = 2000
_TOGETHER = 20
"""Rows that one INSERT of SQLite takes: most of what a statement costs, it costs once."""


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Rows) -> None:
    """Insert rows whose values are in the order of the table's columns and as the driver takes them: no type is converted."""
    if rows:
        insert_parts(connection, table, [rows])


def insert_parts(connection: sa.Connection, table: sa.Table, parts: Iterable[Rows]) -> None:
    """Insert parts that are produced one after the other; PostgreSQL gets them in one statement."""
    if connection.dialect.name == "postgresql":
        _copy(connection, table, chain.from_iterable(parts))
    else:
        for rows in parts:
            _insert(connection, table, rows)


def _insert(connection: sa.Connection, table: sa.Table, rows: Rows) -> None:
    """Insert into SQLite, without the columns in which all of these rows have nothing: its driver takes longest over None."""
    columns = zip(table.c.keys(), zip(*rows, strict=True), strict=True)
    filled = {name: own for name, own in columns if own[0] is not None or own.count(None) < len(rows)}
    names, width = tuple(filled), len(filled)
    flat: list[Any] = [None] * (width * len(rows))
    for place, values in enumerate(filled.values()):
        flat[place::width] = values
    end = len(rows) // _TOGETHER * _TOGETHER * width
    for first, last, together in ((0, end, _TOGETHER), (end, len(flat), 1)):
        step = together * width
        if some := [tuple(flat[start : start + step]) for start in range(first, last, step)]:
            connection.exec_driver_sql(_write_insert(table.name, names, together), some)


@cache
def _write_insert(table: str, names: tuple[str, ...], together: int) -> str:
    row = f"({', '.join('?' * len(names))})"
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join([row] * together)}"  # noqa: S608


def _copy(connection: sa.Connection, table: sa.Table, rows: Iterable[tuple[Any, ...]]) -> None:
    with open_copy(connection, table) as copy:
        copy.set_types(_find_types(table))
        for row in rows:
            copy.write_row(row)


@contextmanager
def open_copy(connection: sa.Connection, table: sa.Table) -> Iterator[Any]:
    """PostgreSQL's COPY in its binary format: twice as fast as INSERT, and a third of the CPU time of COPY as text."""
    from psycopg.types.json import set_json_dumps

    statement = f"COPY {table.name} ({', '.join(table.c.keys())}) FROM STDIN (FORMAT binary)"
    cursor: Any = connection.connection.cursor()
    set_json_dumps(str, cursor)  # it is JSON already
    with closing(cursor), wrap_driver_errors(connection, statement), cursor.copy(statement) as copy:
        yield copy


@cache
def _find_types(table: sa.Table) -> list[str]:
    """The names of PostgreSQL's types, which its binary format needs, for the types that the long tables have."""
    names = {
        sa.BigInteger: "int8",
        sa.Integer: "int4",
        sa.Double: "float8",
        sa.Text: "text",
        sa.JSON: "jsonb",
    }
    return [next(name for kind, name in names.items() if isinstance(column.type, kind)) for column in table.c]


def fetch_driver_rows(connection: sa.Connection, statement: str, at_once: int = _FETCHED) -> Iterator[Rows]:
    """The result of a statement without parameters in chunks, as the driver gives it, from PostgreSQL in its binary format."""
    driver: Any = connection.connection.driver_connection
    is_postgres = connection.dialect.name == "postgresql"
    cursor: Any = driver.cursor("assay_rows", binary=True) if is_postgres else driver.cursor()
    with closing(cursor), wrap_driver_errors(connection, statement):
        cursor.execute(statement)
        while chunk := cursor.fetchmany(at_once):
            yield chunk


def fetch_rows(connection: sa.Connection, query: sa.Select[Any], **bound: object) -> Iterator[Rows]:
    """A long result in chunks, its values as the driver gives them: for numbers and text only.

    `bound` are the values of the query's parameters. Queries that are made again and again have parameters and are built once,
    because SQLAlchemy takes longer to build a short query than SQLite takes to answer it.
    """
    streaming = connection.execution_options(stream_results=True, max_row_buffer=_FETCHED)
    with streaming.execute(query, bound) as result, wrap_driver_errors(connection, query):
        # SQLAlchemy takes the first row of a streamed result from the driver at once: it has to be asked for that one.
        first = result.fetchone()
        if first is None:
            return
        yield [tuple(first)]
        cursor: Any = result.cursor
        while chunk := cursor.fetchmany(_FETCHED):
            yield chunk


@contextmanager
def wrap_driver_errors(connection: sa.Connection, statement: str | sa.Select[Any]) -> Iterator[None]:
    """Raise the driver's errors as SQLAlchemy would, so that `Store` needs one way to translate them."""
    driver: Any = connection.dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        raise sa.exc.DBAPIError.instance(str(statement), None, error, driver.Error) from error
