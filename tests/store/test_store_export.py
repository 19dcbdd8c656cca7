from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.examples import (
    GPT,
    NOP,
    batch,
    begin,
    elaborate_plan,
    elaborate_suite,
    execution,
    small_suite,
    suite_plan,
)

from assay.errors import RunNotFound, StoreError
from assay.model import Artifact, Batch
from assay.model.access import Scope
from assay.store.store import Store


def _two_runs(store: Store) -> None:
    begin(store, "r1", elaborate_plan())
    begin(store, "r2")
    store.add("r1", Batch((execution(0, output=[1]), execution(0, trial=1)), (Artifact(0, "a", "t", b"x"),)))
    store.add("r2", batch(map(execution, range(1200))))
    store.set_baseline("main", "r1")


def test_everything_is_copied_into_a_file(store: Store, tmp_path: Path) -> None:
    _two_runs(store)
    path = store.export(tmp_path / "copy.db")
    with Store.open(f"sqlite:///{path}") as copy:
        # A copy counts its own changes.
        assert _rows_but_changes(copy) == _rows_but_changes(store)
        assert copy.runs() == store.runs()
        for run in (store.run("r1"), store.run("r2")):
            assert copy.run(run.id) == run
            for stored in run.trials:
                assert list(copy.executions(stored.id)) == list(store.executions(stored.id))
                assert copy.artifacts(stored.id) == store.artifacts(stored.id)


def test_keys_of_the_server_are_never_exported(store: Store, tmp_path: Path) -> None:
    _two_runs(store)
    store.create_key("robot", Scope.ADMIN)
    with Store.open(f"sqlite:///{store.export(tmp_path / 'copy.db')}") as copy:
        assert copy.keys() == []


def test_one_run_is_copied_with_all_that_is_its_own(store: Store, tmp_path: Path) -> None:
    _two_runs(store)
    with Store.open(f"sqlite:///{store.export(tmp_path / 'copy.db', 'r1')}") as copy:
        assert copy.run("@main") == store.run("r1")
        rows = copy.info()["rows"]
    assert rows == {
        "workspaces": 1,
        "agents": 2,
        "suites": 0,
        "environments": 1,
        "runs": 1,
        "tags": 2,
        "baselines": 1,
        "trials": 2,
        "executions": 2,
        "measurements": 2,
        "artifacts": 1,
        "benchmarks": 0,
        "ratings": 0,
        "rating_references": 0,
        "regressions": 0,
        "leases": 0,
        "placements": 0,
        "queued_runs": 0,
        "api_keys": 0,
        "sessions": 0,
        "audit_log": 0,
        "schedules": 0,
        "scheduled_runs": 0,
        "alerts": 0,
        "labels": 0,
        "regression_changes": 0,
        "gate_results": 0,
        "opportunities": 0,
        "suite_changes": 0,
        "boards": 0,
        "trial_totals": 0,
    }


def _rows_but_changes(store: Store) -> dict[str, int]:
    rows = store.info()["rows"]
    assert isinstance(rows, dict)
    return {name: number for name, number in rows.items() if name != "suite_changes"}


def test_suites_and_definitions_are_copied_with_the_runs_that_need_them(store: Store, tmp_path: Path) -> None:
    begin(store, "r1", suite_plan(elaborate_suite(), GPT))
    begin(store, "r2", suite_plan(small_suite(), NOP))
    store.add("r1", batch([execution(0, detail={"spans": [1]})]))
    store.register_agents([GPT])
    store.register_suite(elaborate_suite())
    with Store.open(f"sqlite:///{store.export(tmp_path / 'all.db')}") as copy:
        # A copy counts its own changes.
        assert _rows_but_changes(copy) == _rows_but_changes(store)
        assert copy.suite_of("r2") == small_suite()
        assert (copy.agents(), copy.suites()) == (store.agents(), store.suites())
    with Store.open(f"sqlite:///{store.export(tmp_path / 'one.db', 'r1')}") as copy:
        run = copy.run("r1")
        assert run == store.run("r1")
        assert list(copy.executions(run.trials[0].id)) == list(store.executions(run.trials[0].id))
        assert copy.suite_of("r1") == copy.suite("elaborate") == elaborate_suite()
        rows = copy.info()["rows"]
        assert isinstance(rows, dict)
        assert (rows["suites"], rows["agents"]) == (1, 1)


def test_a_copy_can_be_written_to_like_any_store(store: Store, tmp_path: Path) -> None:
    _two_runs(store)
    with Store.open(f"sqlite:///{store.export(tmp_path / 'copy.db')}") as copy:
        begin(copy, "r3")
        assert copy.add("r3", batch([execution(0)])) == 1
        assert copy.add("r2", batch([execution(1199), execution(1200)])) == 1


def test_a_copy_is_one_file(store: Store, tmp_path: Path) -> None:
    _two_runs(store)
    folder = tmp_path / "out"
    folder.mkdir()
    store.export(folder / "copy.db")
    assert [file.name for file in folder.iterdir()] == ["copy.db"]


def test_a_file_that_exists_is_not_written_over(store: Store, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(StoreError, match=r"copy\.db.*exists"):
        store.export(tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_exporting_a_run_that_is_not_there_makes_no_file(store: Store, tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="'r9'"):
        store.export(tmp_path / "copy.db", "r9")
    assert not (tmp_path / "copy.db").exists()


def test_a_folder_that_is_a_file_is_a_clear_error(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="file"):
        store.export(tmp_path / "file" / "copy.db")
