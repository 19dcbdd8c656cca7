"""Every request of a load as a row of a file, for users who want to analyse the requests themselves.

A load can have millions of requests, so rows are written as they arrive and never collected.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from assay.errors import MissingExtra, ReportError
from assay.plugin.private_files import make_folder, open_private

_COLUMNS = {
    "number": "number",
    "due_s": "due",
    "begun_s": "begun",
    "sent_s": "sent",
    "first_token_s": "first",
    "end_s": "end",
    "output_tokens": "output",
    "input_tokens": "input",
    "read_lag_s": "lag",
    "reads": "reads",
}
"""What a column is called in a file, and by the engine. Seconds count from the start of the load."""
_WHOLE = ("number", "output", "input", "reads")


@contextlib.contextmanager
def recording(path: Path) -> Iterator[Callable[[Any], None]]:
    """A function that takes the chunks of a load; rows are written as they come, so that memory stays small."""
    writer = next((found for ending, found in _WRITERS.items() if path.name.endswith(ending)), None)
    if writer is None:
        raise ReportError(f"'{path.name}' must end in .csv, .jsonl, .jsonl.gz or .parquet.")
    try:
        make_folder(path.parent)
        file = open_private(path, "wb")
    except OSError as error:
        raise ReportError(f"'{path}' cannot be written: {error.strerror}.") from None
    with file, writer(file) as keep:
        yield keep


@contextlib.contextmanager
def _csv(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow(["load", *_COLUMNS, "outcome"])

        def keep(chunk: Any) -> None:
            kinds, load = chunk.facts["kinds"], chunk.facts.get("load", 0)
            columns = [(chunk.columns[name], name in _WHOLE) for name in _COLUMNS.values()]
            for place, kind in enumerate(chunk.columns["kind"]):
                row = (_plain(column[place], is_whole) for column, is_whole in columns)
                writer.writerow([load, *row, kinds[int(kind)]])

        yield keep


@contextlib.contextmanager
def _jsonl(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """An object a line; what is not known is null."""
    with io.TextIOWrapper(file, encoding="utf-8", newline="") as text:

        def keep(chunk: Any) -> None:
            kinds, load = chunk.facts["kinds"], chunk.facts.get("load", 0)
            columns = [(name, chunk.columns[column], column in _WHOLE) for name, column in _COLUMNS.items()]
            for place, kind in enumerate(chunk.columns["kind"]):
                values = {name: _plain(column[place], is_whole) for name, column, is_whole in columns}
                known = {name: None if value == "" else value for name, value in values.items()}
                text.write(json.dumps({"load": load, **known, "outcome": kinds[int(kind)]}) + "\n")

        yield keep


@contextlib.contextmanager
def _gzip_jsonl(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    # The lowest level: what it takes to pack a row is taken from the machine that sends the load.
    with (
        gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1) as packed,
        _jsonl(cast(IO[bytes], packed)) as keep,
    ):
        yield keep


def _plain(value: float, is_whole: bool) -> float | int | str:
    if value != value:
        return ""
    return int(value) if is_whole else round(value, 9)


@contextlib.contextmanager
def _parquet(file: IO[bytes]) -> Iterator[Callable[[Any], None]]:
    """Requests as Parquet, a group of rows for each chunk that a worker reports."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingExtra(
            "Parquet needs the package pyarrow: pip install 'assay-bench[parquet]'. CSV needs none."
        ) from None
    fields = [(name, pa.int64() if of in _WHOLE else pa.float64()) for name, of in _COLUMNS.items()]
    schema = pa.schema([("load", pa.int32()), *fields, ("outcome", pa.string())])
    with pq.ParquetWriter(file, schema) as writer:

        def keep(chunk: Any) -> None:
            if not len(chunk):
                return
            kinds = chunk.facts["kinds"]
            outcomes = [kinds[int(kind)] for kind in chunk.columns["kind"]]
            # Without a value, a number is missing there rather than not a number.
            columns = [
                pa.array(np.asarray(chunk.columns[of]), from_pandas=True).cast(kind)
                for of, (_, kind) in zip(_COLUMNS.values(), fields, strict=True)
            ]
            loads = [chunk.facts.get("load", 0)] * len(chunk)
            writer.write_table(pa.table([loads, *columns, outcomes], schema=schema))

        yield keep


_WRITERS: dict[str, Callable[[IO[bytes]], contextlib.AbstractContextManager[Callable[[Any], None]]]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".jsonl.gz": _gzip_jsonl,
    ".parquet": _parquet,
}
