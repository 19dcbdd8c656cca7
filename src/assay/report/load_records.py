"""Every request of a load as a row, for those who want to look themselves."""

from __future__ import annotations

import contextlib
import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.errors import MissingExtra, ReportError

_ROW = ("number", "due", "begun", "sent", "first", "end", "output", "input", "lag", "reads")


@contextlib.contextmanager
def recording(path: Path) -> Iterator[Callable[[Any], None]]:
    """A function that takes the chunks of a load; rows are written as they come, so that memory stays small."""
    if path.suffix == ".csv":
        with _opened(path) as file:
            yield _csv_writer(file)
    elif path.suffix == ".parquet":
        with _parquet(path) as keep:
            yield keep
    else:
        raise ReportError(f"'{path.name}' must end in .csv or .parquet.")


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w", encoding="utf-8", newline="") as file:
            yield file
    except OSError as error:
        raise ReportError(f"'{path}' cannot be written: {error.strerror}.") from None


def _csv_writer(file: Any) -> Callable[[Any], None]:
    writer = csv.writer(file)
    writer.writerow(["number", "due_s", "begun_s", "sent_s", "first_token_s", "end_s", "output_tokens", "input_tokens",
                     "read_lag_s", "reads", "outcome"])  # fmt: skip

    def keep(chunk: Any) -> None:
        kinds = chunk.facts["kinds"]
        columns = [chunk.columns[name] for name in _ROW]
        for place, kind in enumerate(chunk.columns["kind"]):
            writer.writerow([*(_plain(column[place]) for column in columns), kinds[int(kind)]])

    return keep


def _plain(value: float) -> float | int | str:
    if value != value:
        return ""
    return int(value) if value == int(value) and abs(value) >= 1 else round(value, 9)


@contextlib.contextmanager
def _parquet(path: Path) -> Iterator[Callable[[Any], None]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra(
            "Parquet needs the package pyarrow: pip install 'assay[parquet]'. CSV needs none."
        ) from None
    schema = pa.schema([*((name, pa.float64()) for name in _ROW), ("outcome", pa.string())])
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, schema) as writer:

        def keep(chunk: Any) -> None:
            if not len(chunk):
                return
            kinds = chunk.facts["kinds"]
            outcomes = [kinds[int(kind)] for kind in chunk.columns["kind"]]
            writer.write_table(
                pa.table([*(pa.array(chunk.columns[name]) for name in _ROW), outcomes], schema=schema)
            )

        yield keep
