"""Many rows at once, as tuples straight to the driver: SQLAlchemy's own way costs more than SQLite itself."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine.default import DefaultDialect

Rows = Sequence[tuple[Any, ...]]


def insert_rows(connection: sa.Connection, table: sa.Table, rows: Rows) -> None:
    """Rows whose values are in the order of the table's columns and as the driver takes them."""
    if not rows:
        return
    if connection.dialect.name == "postgresql":
        _copy(connection, table, rows)
    else:
        connection.exec_driver_sql(_insert(table), list(rows))


@cache
def _insert(table: sa.Table) -> str:
    return str(table.insert().compile(dialect=DefaultDialect(paramstyle="qmark")))


def _copy(connection: sa.Connection, table: sa.Table, rows: Rows) -> None:
    """PostgreSQL's COPY, twice as fast as INSERT; SQLAlchemy has no part in it, so its errors are wrapped here."""
    statement = f"COPY {table.name} ({', '.join(table.c.keys())}) FROM STDIN"
    driver: Any = connection.dialect.loaded_dbapi
    cursor: Any = connection.connection.cursor()
    try:
        with cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except driver.Error as error:
        raise sa.exc.DBAPIError.instance(statement, None, error, driver.Error) from error
    finally:
        cursor.close()
