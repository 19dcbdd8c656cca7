"""`assay db export FILE`: executions as a wide table in Parquet, CSV or JSON lines."""

from __future__ import annotations

import builtins
import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet
from tests.store.examples import batch, begin, elaborate_plan, execution

from assay.errors import MissingExtra, StoreError
from assay.model import Batch
from assay.store import execution_table
from assay.store.store import Store


@pytest.fixture
def filled(store: Store) -> Store:
    begin(store, "r1", elaborate_plan())
    begin(store, "r2")
    odd = replace(execution(0), output={"a": "ü"}, measurements={"seconds": 0.25, "status": 7.0})
    store.add("r1", Batch((odd, execution(0, trial=1))))
    store.add("r2", batch(map(execution, range(1200))))
    return store


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
        return rows
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)) if path.suffix == ".csv" else [json.loads(line) for line in file]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
def test_a_table_has_a_row_for_each_execution_with_what_it_belongs_to(
    filled: Store, tmp_path: Path, suffix: str
) -> None:
    rows = read(filled.export(tmp_path / f"all{suffix}"))
    stored = filled.run("r1").trials[0]
    assert len(rows) == 1202
    first = rows[0]
    assert (first["run_id"], first["agent"]) == ("r1", stored.trial.agent.name)
    assert (first["benchmark"], first["trial"]) == (stored.trial.benchmark, stored.trial.name)
    assert json.loads(first["output"]) == {"a": "ü"}
    assert (float(first["seconds"]), float(first["metric.status"])) == (0.25, 7.0)
    assert first["status"] == "ok"
    assert {f"param.{name}" for name in stored.trial.params} <= set(first)
    assert [int(row["repetition"]) for row in rows if row["run_id"] == "r2"] == list(range(1200))


def test_one_run_alone_can_be_exported(filled: Store, tmp_path: Path) -> None:
    assert {row["run_id"] for row in read(filled.export(tmp_path / "one.parquet", "r1"))} == {"r1"}


def test_columns_of_a_parquet_file_are_typed(filled: Store, tmp_path: Path) -> None:
    schema = parquet.read_schema(filled.export(tmp_path / "all.parquet"))
    types = {name: str(schema.field(name).type) for name in ("seconds", "repetition", "started", "agent")}
    assert types == {
        "seconds": "double",
        "repetition": "int64",
        "started": "timestamp[us, tz=UTC]",
        "agent": "string",
    }


def test_a_large_table_is_written_group_by_group(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution_table, "_ROWS_AT_ONCE", 100)
    assert parquet.ParquetFile(filled.export(tmp_path / "all.parquet")).num_row_groups == 13


@pytest.mark.parametrize("name", ["all.xlsx", "all", "all.db.gz"])
def test_an_unknown_ending_is_refused_with_the_known_ones(filled: Store, tmp_path: Path, name: str) -> None:
    with pytest.raises(StoreError, match=r"\.parquet, \.csv, \.jsonl .* \.db, \.sqlite"):
        filled.export(tmp_path / name)
    assert not (tmp_path / name).exists()


def test_without_pyarrow_the_extra_is_named_and_no_file_is_left(
    filled: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_import = builtins.__import__

    def without_pyarrow(name: str, *rest: Any) -> Any:
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return really_import(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(MissingExtra, match=r"assay-bench\[parquet\]"):
        filled.export(tmp_path / "all.parquet")
    assert not list(tmp_path.glob("all*"))


def test_an_empty_database_makes_a_table_without_rows(store: Store, tmp_path: Path) -> None:
    assert read(store.export(tmp_path / "none.parquet")) == []


def test_a_table_that_exists_is_not_written_over(filled: Store, tmp_path: Path) -> None:
    (tmp_path / "all.csv").write_text("precious")
    with pytest.raises(StoreError, match=r"all\.csv.*exists"):
        filled.export(tmp_path / "all.csv")
    assert (tmp_path / "all.csv").read_text() == "precious"
