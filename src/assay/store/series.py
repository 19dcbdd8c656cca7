"""Measurements by the series: the values of one metric in one trial, packed as PostgreSQL's binary formats have them.

Copies move many more measurements than anything else. As a series they cost a fraction of what as many rows would.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa

from assay.store.bulk import fetch_driver_rows, open_copy, wrap_driver_errors
from assay.store.tables import measurements

_AT_ONCE = 1000
"""Values that are read from SQLite before they are packed: as few as the caches of a core hold."""
_TOGETHER = 100
"""Rows that one INSERT of SQLite takes: most of what a statement costs, it costs once."""
_SENT = 1 << 16
"""Bytes that are worth sending to PostgreSQL."""
_HEADER, _TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"
"""What PostgreSQL's binary COPY begins and ends with."""


class PackedSeries(NamedTuple):
    """Some or all values of a metric in a trial, in the order of their executions."""

    trial_id: int
    metric: str
    seqs: bytes
    """Each as four bytes, the highest first."""
    values: bytes
    """Each as the eight bytes of a float, the highest first."""

    @property
    def numbers(self) -> tuple[int, ...]:
        return struct.unpack(f">{len(self.seqs) // 4}i", self.seqs)

    @property
    def floats(self) -> tuple[float, ...]:
        return struct.unpack(f">{len(self.values) // 8}d", self.values)


def fetch_series(connection: sa.Connection, first: int, last: int) -> Iterator[PackedSeries]:
    """The measurements of the trials from one id to another; a long series in parts."""
    chosen = f"FROM measurements WHERE trial_id BETWEEN {first} AND {last}"
    if connection.dialect.name == "postgresql":
        for some in fetch_driver_rows(connection, _PACKED.format(chosen), at_once=50):
            yield from map(PackedSeries._make, some)
        return
    order = "ORDER BY trial_id, metric"
    lengths = f"SELECT trial_id, metric, COUNT(*) {chosen} GROUP BY trial_id, metric {order}"
    known = [row for some in fetch_driver_rows(connection, lengths) for row in some]
    cursor: Any = connection.connection.cursor()
    statement = f"SELECT seq, value {chosen} {order}, seq"
    with wrap_driver_errors(connection, statement):
        cursor.execute(statement)
        for trial_id, metric, length in known:
            for start in range(0, length, _AT_ONCE):
                seqs, values = zip(*cursor.fetchmany(min(_AT_ONCE, length - start)), strict=True)
                yield PackedSeries(
                    trial_id, metric, struct.pack(f">{len(seqs)}i", *seqs), struct.pack(f">{len(seqs)}d", *values)
                )  # fmt: skip


_PACKED = (
    "SELECT trial_id, metric, string_agg(int4send(seq), ''::bytea ORDER BY seq), "
    "string_agg(float8send(value), ''::bytea ORDER BY seq) {} GROUP BY trial_id, metric"
)
"""A row for each value would take six times as long to receive."""


def insert_series(connection: sa.Connection, many: Iterable[PackedSeries]) -> None:
    if connection.dialect.name == "postgresql":
        driver: Any = connection.connection.driver_connection
        with open_copy(connection, measurements) as copy:
            waiting = bytearray(_HEADER)
            for series in many:
                waiting += _write_copy_rows(series, driver.info.encoding)
                if len(waiting) > _SENT:
                    copy.write(waiting)
                    waiting = bytearray()
            copy.write(waiting + _TRAILER)
    else:
        for series in many:
            _insert(connection, series)


def _write_copy_rows(series: PackedSeries, encoding: str) -> bytearray:
    """Write rows in the format of COPY. All rows have the same length, so each byte of the numbers is written to all of them at once."""
    trial_id, metric, seqs, values = series
    named = metric.encode(encoding)
    row = struct.pack(f">hiii{len(named)}siiid", 4, 4, trial_id, len(named), named, 4, 0, 8, 0.0)
    width = len(row)
    rows = bytearray(row * (len(seqs) // 4))
    for place in range(4):
        rows[width - 16 + place :: width] = seqs[place::4]
    for place in range(8):
        rows[width - 8 + place :: width] = values[place::8]
    return rows


def _insert(connection: sa.Connection, series: PackedSeries) -> None:
    flat: list[Any] = [None] * (len(series.seqs) // 2)
    flat[::2], flat[1::2] = series.numbers, series.floats
    end = len(flat) // (2 * _TOGETHER) * 2 * _TOGETHER
    for first, last, together in ((0, end, _TOGETHER), (end, len(flat), 1)):
        step = 2 * together
        if some := [(*series[:2], *flat[start : start + step]) for start in range(first, last, step)]:
            connection.exec_driver_sql(_write_insert(together), some)


@cache
def _write_insert(together: int) -> str:
    rows = ", ".join(f"(?1, ?2, ?{place}, ?{place + 1})" for place in range(3, 3 + 2 * together, 2))
    return f"INSERT INTO measurements (trial_id, metric, seq, value) VALUES {rows}"  # noqa: S608
