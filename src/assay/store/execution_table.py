"""Executions as one wide table for other tools: Parquet, CSV or JSON lines.

A row is an execution, with its run, trial, agent, benchmark, params, scores and measurements. A param `size` is the column
`param.size`; a metric has its own name, or `metric.NAME` where a column is already called so.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from assay.errors import MissingExtra
from assay.model import Execution, Run, StoredTrial
from assay.plugin.private_files import open_private
from assay.store import read as reading
from assay.store import tables
from assay.store.workspaces import is_own

_ROWS_AT_ONCE = 10_000
_FIXED = {
    "run_id": str,
    "run": str,
    "run_state": str,
    "run_started": datetime,
    "tags": str,
    "trial_id": int,
    "trial": str,
    "suite": str,
    "suite_version": str,
    "benchmark": str,
    "experiment": str,
    "agent": str,
    "agent_version": str,
    "simulated": bool,
    "concurrency": int,
    "process": int,
    "phase": str,
    "case": str,
    "repetition": int,
    "status": str,
    "started": datetime,
    "loops": int,
    "output": str,
    "error": str,
    "log": str,
}
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExecutionTable:
    """The columns with their types, and the rows, which are read from the database as they are iterated."""

    columns: Mapping[str, type]
    rows: Iterable[Row]


def write_table(engine: sa.Engine, path: Path, run_id: str | None) -> None:
    """Write the file in the format that its name ends in.

    It is written beside its place and renamed at the end, so that a file with that name is always complete.
    """
    write = {".parquet": _write_parquet, ".csv": _write_csv, ".jsonl": _write_json_lines}[path.suffix.lower()]
    partial = path.with_name(f"{path.name}.partial")
    try:
        write(_read_table(engine, run_id), partial)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def _read_table(engine: sa.Engine, run_id: str | None) -> ExecutionTable:
    """A first pass over the trials finds the columns, as CSV and Parquet need them before the first row."""
    with engine.connect() as connection:
        query = (
            sa.select(tables.runs.c.id)
            .where(is_own(connection, tables.runs))
            .order_by(tables.runs.c.started, tables.runs.c.id)
        )
        ids = list(connection.scalars(query)) if run_id is None else [run_id]
        params: dict[str, list[Any]] = {}
        metrics: dict[str, None] = {}
        for run in ids:
            for stored in reading.read_run(connection, run).trials:
                metrics |= dict.fromkeys(reading.read_metrics(connection, stored.id))
                for name, value in stored.trial.params.items():
                    params.setdefault(f"param.{name}", []).append(value)
    typed = {name: _type_of(values) for name, values in sorted(params.items())}
    names = {metric: f"metric.{metric}" if metric in _FIXED else metric for metric in sorted(metrics)}
    columns = {**_FIXED, **typed, **dict.fromkeys(names.values(), float)}
    return ExecutionTable(columns, _rows(engine, ids, typed, names))


def _type_of(values: Sequence[Any]) -> type:
    """One that holds all values of a param; text, as JSON, where they are lists, mappings or mixed."""
    kinds = {type(value) for value in values if value is not None}
    if len(kinds) == 1 and kinds <= {bool, int, float, str}:
        return kinds.pop()
    return float if kinds and kinds <= {int, float} else str


def _rows(
    engine: sa.Engine, run_ids: Sequence[str], params: Mapping[str, type], metrics: Mapping[str, str]
) -> Iterator[Row]:
    """One row an execution. A metric that appeared after the columns were found is left out: a run may still be going on."""
    for run_id in run_ids:
        with engine.connect() as connection:
            run = reading.read_run(connection, run_id)
        for stored in run.trials:
            about = _build_trial_columns(run, stored, params)
            for execution in reading.StoredExecutions(engine.connect, stored.id):
                measured = {metrics[m]: value for m, value in execution.measurements.items() if m in metrics}
                yield {**about, **_build_execution_columns(execution), **measured}


def _build_trial_columns(run: Run, stored: StoredTrial, params: Mapping[str, type]) -> Row:
    """The columns that all executions of a trial share, params converted to the type of their column."""
    trial = stored.trial
    values = {name: trial.params.get(name.removeprefix("param.")) for name in params}
    converted = {
        name: None if value is None else _text(value) if params[name] is str else params[name](value)
        for name, value in values.items()
    }
    return {
        "run_id": run.id,
        "run": run.name,
        "run_state": run.state.value,
        "run_started": run.started,
        "tags": ",".join(run.tags),
        "trial_id": stored.id,
        "trial": trial.name,
        "suite": trial.suite or None,
        "suite_version": run.suite.version if run.suite else None,
        "benchmark": trial.benchmark,
        "experiment": trial.experiment,
        "agent": trial.agent.name,
        "agent_version": trial.agent.version,
        "concurrency": trial.concurrency,
        **converted,
    }


def _build_execution_columns(execution: Execution) -> Row:
    return {
        "simulated": bool((execution.detail or {}).get("simulated")),
        "process": execution.process,
        "phase": execution.phase.value,
        "case": execution.case or None,
        "repetition": execution.repetition,
        "status": execution.status.value,
        "started": datetime.fromtimestamp(execution.started, UTC),
        "loops": execution.loops,
        "output": _text(execution.output) if execution.output is not None else None,
        "error": execution.error,
        "log": execution.log,
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _write_csv(table: ExecutionTable, path: Path) -> None:
    with open_private(path, newline="") as file:
        writer = csv.DictWriter(file, list(table.columns))
        writer.writeheader()
        writer.writerows({**row, **_times(row)} for row in table.rows)


def _write_json_lines(table: ExecutionTable, path: Path) -> None:
    with open_private(path) as file:
        for row in table.rows:
            kept = {name: value for name, value in {**row, **_times(row)}.items() if value is not None}
            file.write(json.dumps(kept, ensure_ascii=False) + "\n")


def _times(row: Row) -> Row:
    return {name: value.isoformat() for name, value in row.items() if isinstance(value, datetime)}


def _write_parquet(table: ExecutionTable, path: Path) -> None:
    """Row group by row group, so that memory does not grow with the database."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra(
            "Parquet files need the package 'pyarrow': pip install 'assay-bench[parquet]'. Or export to .csv, .jsonl or .db."
        ) from None
    kinds = {
        str: pyarrow.string(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        bool: pyarrow.bool_(),
        datetime: pyarrow.timestamp("us", tz="UTC"),
    }
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in table.columns.items()])
    rows = iter(table.rows)
    with open_private(path, "wb") as file, parquet.ParquetWriter(file, schema) as writer:
        while group := list(islice(rows, _ROWS_AT_ONCE)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
