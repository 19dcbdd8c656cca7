"""Digests of the two long tables, computed alike by Python and by PostgreSQL, so that a copy need not be read back row by row.

There are some for each hundred executions of a trial, one of each column, and two for each metric of a trial, of the numbers of its
executions and of its values. Every value goes into one of them, floats bit by bit and in the order of the primary key. JSON
counts as PostgreSQL writes jsonb: with its keys in the order of their lengths.
"""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import md5
from itertools import groupby
from typing import Any

import sqlalchemy as sa

from assay.store import tables
from assay.store.bulk import Rows, fetch_driver_rows
from assay.store.series import PackedSeries, fetch_series

Digests = dict[tuple[Any, ...], tuple[str, ...]]
"""By (trial id, number of the part) for executions and (trial id, metric) for measurements."""
_PART = 100
"""Executions whose values are digested together: PostgreSQL holds them as one string, of at most 1 GB."""
_NONE, _BETWEEN = "\x1e", "\x1f"
_JSON = ("output", "applied", "detail")
_NUMBERS = {
    "seq": ("i", "int4send"),
    "process": ("i", "int4send"),
    "repetition": ("i", "int4send"),
    "started": ("d", "float8send"),
    "loops": ("q", "int8send"),
}
"""How Python and PostgreSQL pack the columns of numbers; the others are text."""
_COLUMNS = tables.executions.c.keys()[1:]


class Digester:
    """Takes the rows of a long table in the order of its primary key, part by part."""

    def __init__(self) -> None:
        self._hashes: defaultdict[tuple[Any, ...], list[Any]] = defaultdict(list)

    def add_executions(self, rows: Rows) -> None:
        for key, own in groupby(rows, _find_part):
            _, *columns = zip(*own, strict=True)
            self._update(key, list(map(_encode, _COLUMNS, columns)))

    def add_series(self, series: PackedSeries) -> None:
        self._update(series[:2], series[2:])

    def _update(self, key: tuple[Any, ...], parts: Sequence[bytes]) -> None:
        hashes = self._hashes[key]
        if not hashes:
            hashes += (md5(usedforsecurity=False) for _ in parts)
        for known, part in zip(hashes, parts, strict=True):
            known.update(part)

    def digests(self) -> Digests:
        return {key: tuple(known.hexdigest() for known in hashes) for key, hashes in self._hashes.items()}


def _find_part(row: tuple[Any, ...]) -> tuple[int, int]:
    return row[0], row[1] // _PART


def _encode(column: str, values: Sequence[Any]) -> bytes:
    if column in _NUMBERS:
        return struct.pack(f">{len(values)}{_NUMBERS[column][0]}", *values)
    if None in values:
        if values.count(None) == len(values):
            return (_NONE + _BETWEEN).encode() * len(values)
        values = [_NONE if value is None else value for value in values]
    if column in _JSON:
        values = [_write_json(value) if "{" in value else value for value in values]
    return (_BETWEEN.join(values) + _BETWEEN).encode()


def _write_json(written: str) -> str:
    """Write JSON as PostgreSQL does, except for numbers with exponents: rows that have those are compared one by one."""
    return json.dumps(_order_keys(json.loads(written)), ensure_ascii=False)


def _order_keys(value: Any) -> Any:
    if isinstance(value, dict):
        ordered = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return {key: _order_keys(value[key]) for key in ordered}
    return [_order_keys(item) for item in value] if isinstance(value, list) else value


def read_digests(connection: sa.Connection, first: int, last: int) -> Digests:
    """Return the digests of the trials from one id to another."""
    if connection.dialect.name != "postgresql":
        digester = Digester()
        for rows in fetch_executions(connection, first, last):
            digester.add_executions(rows)
        for series in fetch_series(connection, first, last):
            digester.add_series(series)
        return digester.digests()
    # What is sorted fits into memory then, for as long as this transaction lasts.
    connection.scalar(sa.select(sa.func.set_config("work_mem", "64MB", True)))
    found: Digests = {}
    for table, part in (("executions", f"seq / {_PART}"), ("measurements", "metric")):
        chosen = f"FROM {table} WHERE trial_id BETWEEN {first} AND {last}"
        statement = f"SELECT trial_id, {part}, {_DIGESTS[table]} {chosen} GROUP BY trial_id, {part}"
        for rows in fetch_driver_rows(connection, statement):
            found |= {row[:2]: row[2:] for row in rows}
    return found


def find_differing_tables(digests: Digests, other: Digests) -> list[sa.Table]:
    differing = {type(key[1]) for key in digests.keys() | other.keys() if digests.get(key) != other.get(key)}
    kinds = {int: tables.executions, str: tables.measurements}
    return [table for kind, table in kinds.items() if kind in differing]


def _write_digest(column: str) -> str:
    """The SQL for the digest of what `_encode` makes of a column."""
    if column in _NUMBERS:
        return f"md5(string_agg({_NUMBERS[column][1]}({column}), ''::bytea ORDER BY seq))"
    written = f"{column}::text" if column in _JSON else column
    return f"md5(string_agg(coalesce({written}, E'\\x1e'), E'\\x1f' ORDER BY seq) || E'\\x1f')"


_DIGESTS = {
    "executions": ", ".join(map(_write_digest, _COLUMNS)),
    "measurements": (
        "md5(string_agg(int4send(seq), ''::bytea ORDER BY seq)), "
        "md5(string_agg(float8send(value), ''::bytea ORDER BY seq))"
    ),
}


def fetch_executions(connection: sa.Connection, first: int, last: int) -> Iterator[Rows]:
    """Executions as the driver has them, JSON as text, in the order of the primary key."""
    is_cast = connection.dialect.name == "postgresql"
    names = ", ".join(
        f"{name}::text" if is_cast and name in _JSON else name for name in tables.executions.c.keys()  # noqa: SIM118
    )  # fmt: skip
    chosen = f"FROM executions WHERE trial_id BETWEEN {first} AND {last}"
    yield from fetch_driver_rows(connection, f"SELECT {names} {chosen} ORDER BY trial_id, seq")
