from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any, get_args

import pytest
from tests.command import AssayInline

from assay.builtin.experiments import database_profiler
from assay.builtin.experiments.database_profiler import DatabaseProfiler, Operation
from assay.builtin.experiments.pragma_profile import DatabaseFailed, open_database
from assay.plugin.experiment import ExperimentContext
from assay.simulation import pragmas


@pytest.fixture
def context(tmp_path: Path) -> ExperimentContext:
    return ExperimentContext("run-1", tmp_path / "trial", seed=7)


def execute(context: ExperimentContext, **params: object) -> dict[str, float]:
    experiment = DatabaseProfiler()
    experiment.params = DatabaseProfiler.Params.model_validate(
        {"num_records": 50, "batch_size": 20, **params}
    )
    experiment.setup(context)
    try:
        experiment.prepare_once(context)
        return experiment.execute_once(context)
    finally:
        experiment.teardown(context)


@pytest.mark.parametrize("in_memory", [False, True])
@pytest.mark.parametrize("operation", get_args(Operation))
def test_every_operation_is_done_with_every_row_in_batches(
    context: ExperimentContext, operation: str, in_memory: bool
) -> None:
    found = execute(context, operation=operation, use_in_memory_db=in_memory)

    is_reading = operation in ("select", "query", "aggregate")
    assert found["commits"] == (0 if is_reading else 3)
    assert ("seconds_per_commit" in found) is not is_reading
    assert found["rows_per_second"] == pytest.approx(50 / found["operation_seconds"])
    assert context.applied["use_in_memory_db"] is in_memory
    assert context.applied["pragma_profile"] == "balanced"
    assert context.applied["journal_mode"] == ("memory" if in_memory else "wal")
    assert context.applied["batch_size"] == 20
    assert context.applied["operation"] == operation


def test_an_operation_that_is_another_one_is_read_back(
    context: ExperimentContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(database_profiler.OPERATIONS, "update", database_profiler.OPERATIONS["delete"])
    execute(context, operation="update")
    assert context.applied["operation"] == "delete"


def test_the_time_is_that_of_the_operation_alone(assay_inline: AssayInline) -> None:
    words = ["--set", "operation=delete", "--set", "num_records=500", "--repetitions", "1"]
    [trial] = assay_inline.run_inline("database_profiler", *words, "--json").json["trials"]
    assert trial["metrics"]["seconds"]["median"] == trial["metrics"]["operation_seconds"]["median"]


@pytest.mark.parametrize(
    ("operation", "left"),
    [("insert", 50), ("delete", 0), ("mixed", 38), ("update", 50)],
)
def test_operations_do_what_they_say(context: ExperimentContext, operation: str, left: int) -> None:
    execute(context, operation=operation, use_in_memory_db=True, persist_db_on_completion=True)

    [copy] = context.run_dir.glob("database-*.db")
    with sqlite3.connect(copy) as connection:
        assert connection.execute("SELECT COUNT(*) FROM records").fetchone() == (left,)
    connection.close()


def test_persisting_is_timed_apart_and_read_back(context: ExperimentContext) -> None:
    found = execute(context, use_in_memory_db=True, persist_db_on_completion=True)
    assert found["persist_seconds"] > 0
    assert context.applied["persist_db_on_completion"] is True
    assert "persist_seconds" not in execute(context, use_in_memory_db=True)


def test_a_batch_that_is_larger_than_the_table_is_reported(assay_inline: AssayInline) -> None:
    words = ["--set", "num_records=20", "--sweep", "batch_size=10,100,1000"]
    done = assay_inline.run_inline("database_profiler", *words, "--json")

    codes = [warning["code"] for warning in done.json["warnings"]]
    assert codes.count("setting-not-taken") == 2


def test_a_full_disk_is_reported_and_fails_the_execution(
    context: ExperimentContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    tight = {**pragmas.PROFILES["balanced"], "max_page_count": 4}
    monkeypatch.setitem(pragmas.PROFILES, "balanced", tight)

    with pytest.raises(DatabaseFailed) as failed:
        execute(context, num_records=5000, batch_size=5000)

    assert "no space left" in str(failed.value)


def test_a_locked_database_is_reported_and_fails_the_execution(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    others: list[sqlite3.Connection] = []

    def open_locked(place: Any, profile: Any) -> sqlite3.Connection:
        connection = open_database(place, profile)
        connection.execute("PRAGMA busy_timeout = 20")
        other = sqlite3.connect(place)
        other.execute("BEGIN IMMEDIATE")
        others.append(other)
        return connection

    monkeypatch.setattr(database_profiler, "open_database", open_locked)
    done = assay_inline.run_inline("database_profiler", "--set", "num_records=10", "--json")
    for other in others:
        other.close()

    assert done.code == 1
    [trial] = assay_inline("show", "last", "--json").json["trials"]
    assert trial["counts"] == {"failed": 1}
    assert "locked" in done.out


def test_two_profiles_that_end_up_the_same_are_reported(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault: a profile whose settings are those of another one."""
    monkeypatch.setitem(
        pragmas.PROFILES,
        "performance",
        dict(pragmas.PROFILES["balanced"]),
    )
    words = ["--set", "num_records=50", "--sweep", "profile=balanced,performance"]
    run = assay_inline.run_inline("pragma_profile", *words, "--json").json

    assert {"setting-not-taken"} <= {warning["code"] for warning in run["warnings"]}


def test_two_profiles_are_compared_and_identical_ones_are_refused(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(profile: str) -> str:
        words = ["--set", "num_records=50", "--set", f"profile={profile}"]
        return str(assay_inline.run_inline("pragma_profile", *words, "--json").json["run_id"])

    real = assay_inline("compare", run("balanced"), run("performance"), "--json")
    assert real.code == 0
    monkeypatch.setitem(
        pragmas.PROFILES,
        "performance",
        dict(pragmas.PROFILES["balanced"]),
    )
    planted = assay_inline("compare", run("balanced"), run("performance"), "--json")

    refused = [re.search(r"'performance' .* 'balanced' ", done.out) is not None for done in (real, planted)]
    assert refused == [False, True]
