from __future__ import annotations

import sqlite3
from math import inf
from pathlib import Path

import pytest
from pydantic import ValidationError

from assay.builtin.experiments import pragma_profile
from assay.builtin.experiments.noop import Noop
from assay.builtin.experiments.pragma_profile import DatabaseFailed, PragmaProfile
from assay.plugin.experiment import ExperimentContext
from assay.plugin.lookup import find
from assay.plugin.params import check_params
from assay.simulation.pragmas import PROFILES, settings_of


@pytest.fixture
def context(tmp_path: Path) -> ExperimentContext:
    return ExperimentContext("run-1", tmp_path / "trial", seed=7)


def executed(context: ExperimentContext, times: int = 1, **params: object) -> list[dict[str, float]]:
    experiment = PragmaProfile()
    experiment.params = PragmaProfile.Params.model_validate({"num_records": 500, "db_size_mb": 0.5, **params})
    experiment.setup(context)
    found = []
    try:
        for _ in range(times):
            experiment.prepare_once(context)
            found.append(experiment.execute_once(context))
        return found
    finally:
        experiment.teardown(context)


@pytest.mark.parametrize("name", ["noop", "pragma_profile"])
def test_they_are_found_by_name(name: str):
    assert find("experiments", name) in (Noop, PragmaProfile)


def test_noop_takes_no_params(context: ExperimentContext):
    assert Noop().execute_once(context) is None  # type: ignore[func-returns-value]
    _, (mistake,) = check_params(Noop, {"size": 3})
    assert mistake.name == "size"


@pytest.mark.parametrize("workload", ["write_heavy", "read_heavy", "mixed"])
@pytest.mark.parametrize("profile", list(PROFILES))
def test_the_profile_that_was_asked_for_is_the_one_that_is_read_back(
    context: ExperimentContext, profile: str, workload: str
):
    executed(context, profile=profile, workload=workload)
    assert context.applied["profile"] == profile


def test_no_two_profiles_read_back_alike(context: ExperimentContext):
    seen = []
    for profile in PROFILES:
        executed(context, profile=profile)
        seen.append({name: value for name, value in context.applied.items() if name != "profile"})
    assert [seen.index(settings) for settings in seen] == [0, 1, 2, 3]


def test_the_settings_are_those_of_the_profile_table(context: ExperimentContext):
    executed(context, profile="performance")
    assert (context.applied["synchronous"], context.applied["journal_mode"]) == (0, "memory")
    assert (context.applied["page_size"], context.applied["cache_size"]) == (8192, -200 * 1024)
    executed(context, profile="safety")
    assert (context.applied["synchronous"], context.applied["journal_mode"]) == (2, "wal")


def test_an_ignored_setting_leaves_no_profile(tmp_path: Path):
    connection = sqlite3.connect(tmp_path / "some.db")
    try:
        for pragma, value in PROFILES["safety"].items():
            connection.execute(f"PRAGMA {pragma} = {value}")
        assert settings_of(connection)["profile"] == "safety"
        connection.execute("PRAGMA synchronous = OFF")
        assert settings_of(connection)["profile"] == "none"
    finally:
        connection.close()


def test_writing_writes_every_record_each_time(context: ExperimentContext):
    for found in executed(context, times=3, num_records=2500):
        assert found["rows_written"] == found["operations"] == 2500
        assert found["database_bytes"] > 2500 * 100
        assert found["operations_per_second"] == pytest.approx(2500 / found["workload_seconds"])


@pytest.mark.parametrize("workload", ["write_heavy", "mixed"])
def test_the_time_is_that_of_the_workload_alone(
    context: ExperimentContext, monkeypatch: pytest.MonkeyPatch, workload: str
):
    """The file is opened, and that of the execution before removed, before the clock starts."""
    experiment = PragmaProfile()
    experiment.params = PragmaProfile.Params.model_validate({"num_records": 100, "workload": workload})
    experiment.setup(context)
    try:
        for _ in range(2):
            experiment.prepare_once(context)
            with monkeypatch.context() as timed:
                for busy in ("open_database", "settings_of"):
                    timed.delattr(f"assay.builtin.experiments.pragma_profile.{busy}")
                found = experiment.execute_once(context)
            assert list(context.run_dir.rglob("write.db"))
            assert experiment.read(found).seconds == found["workload_seconds"]
    finally:
        experiment.teardown(context)


@pytest.mark.parametrize(("workload", "number"), [("write_heavy", 7), ("mixed", 7), ("mixed", 42)])
def test_the_rows_in_the_database_are_read_back(
    context: ExperimentContext, monkeypatch: pytest.MonkeyPatch, workload: str, number: int
):
    executed(context, workload=workload, num_records=number)
    assert context.applied["num_records"] == number
    monkeypatch.setattr(pragma_profile, "write", lambda *_: 0)
    monkeypatch.setattr(pragma_profile, "mix", lambda *_: 0)
    executed(context, workload=workload, num_records=number)
    assert context.applied["num_records"] == 0


def test_reading_asks_a_database_of_the_size_that_was_asked_for(context: ExperimentContext):
    for found in executed(context, times=2, workload="read_heavy", db_size_mb=2.5):
        assert found["database_bytes"] >= 2.5 * 2**20
        assert (found["operations"], found["rows_written"]) == (5, 0)


def test_mixing_writes_a_tenth_and_looks_at_every_tenth(context: ExperimentContext):
    (found,) = executed(context, workload="mixed", num_records=5000)
    assert found["rows_written"] == 500
    assert found["operations"] == 500 + 3 * 50


def test_every_metric_is_declared(context: ExperimentContext):
    (found,) = executed(context)
    assert set(found) == set(PragmaProfile.metrics)


@pytest.mark.parametrize("workload", ["write_heavy", "read_heavy"])
def test_nothing_is_left_on_the_disk(context: ExperimentContext, workload: str):
    executed(context, workload=workload)
    assert list(context.run_dir.iterdir()) == []


def test_teardown_after_a_setup_that_failed_is_fine(context: ExperimentContext):
    context.run_dir.write_text("a file where the folder should be")
    experiment = PragmaProfile()
    experiment.params = PragmaProfile.Params()
    with pytest.raises(FileExistsError):
        experiment.setup(context)
    experiment.teardown(context)


@pytest.mark.parametrize(
    "wrong",
    [{"profile": "turbo"}, {"workload": "idle"}, {"num_records": 0}, {"db_size_mb": 0}, {"db_size_mb": inf}],
)
def test_wrong_params_are_refused(wrong: dict[str, object]):
    with pytest.raises(ValidationError):
        PragmaProfile.Params.model_validate(wrong)


def test_an_unknown_param_is_named():
    _, (mistake,) = check_params(PragmaProfile, {"profiles": ["balanced"]})
    assert mistake.name == "profiles"
    assert "'profile'" in mistake.hint


@pytest.mark.parametrize("workload", ["write_heavy", "read_heavy", "mixed"])
def test_a_full_disk_is_reported(
    context: ExperimentContext, monkeypatch: pytest.MonkeyPatch, workload: str
) -> None:
    monkeypatch.setitem(PROFILES, "balanced", {**PROFILES["balanced"], "max_page_count": 4})
    with pytest.raises(DatabaseFailed) as failed:
        executed(context, workload=workload, num_records=50_000, db_size_mb=1)
    assert "no space left" in str(failed.value)
