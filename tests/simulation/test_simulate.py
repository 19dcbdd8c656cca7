"""Whole simulations and their logs."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.wording import Wording

from assay.simulation import LogFailed, SimulationConfig, World, simulate
from assay.simulation.config import MODES
from assay.simulation.log import INDEXES, TABLES

SMALL = {"width": 12, "height": 10, "num_agents": 20, "initial_resources": 15, "simulation_steps": 8}


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with sqlite3.connect(file) as connection:
        found = connection.execute(query).fetchall()
    connection.close()
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_log_is_where_the_mode_says(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "log.db"
    result = simulate(SimulationConfig(**SMALL, **MODES[mode]), file)  # type: ignore[index]
    assert result.settings["mode"] == mode
    assert file.exists() == (mode != "memory")
    assert result.database == (None if mode == "memory" else file)
    assert result.settings["kept_rows"] == (0 if mode == "memory" else result.settings["rows"])
    assert list(tmp_path.iterdir()) == ([] if mode == "memory" else [file])


def test_every_mode_logs_the_same(tmp_path: Path) -> None:
    dumps = []
    for mode in ("disk", "memory_persist"):
        file = tmp_path / f"{mode}.db"
        simulate(SimulationConfig(**SMALL, **MODES[mode]), file)
        dumps.append([rows(file, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES])
        assert len(rows(file, "SELECT name FROM sqlite_master WHERE type = 'index'")) == len(INDEXES)
    assert dumps[0] == dumps[1]


@settings(max_examples=15)
@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 1000))
def test_the_log_agrees_with_the_history_whatever_the_batches(
    tmp_path_factory: pytest.TempPathFactory, buffer_size: int, flush_frequency: int, seed: int
) -> None:
    file = tmp_path_factory.mktemp("log") / "log.db"
    config = SimulationConfig(**SMALL, seed=seed, buffer_size=buffer_size, flush_frequency=flush_frequency)
    result = simulate(config, file)
    assert rows(file, "SELECT * FROM step_metrics ORDER BY step") == list(map(tuple, result.history))
    logged = rows(
        file, "SELECT step, COUNT(*), SUM(energy), MIN(x) >= 0, MAX(x) < 12, MIN(y) >= 0, MAX(y) < 10 "
        "FROM agent_states GROUP BY step ORDER BY step"
    )  # fmt: skip
    assert logged == [(one.step, one.num_agents, one.energy, 1, 1, 1, 1) for one in result.history]
    food = rows(file, "SELECT SUM(amount) FROM resource_states GROUP BY step ORDER BY step")
    assert food == [(one.food,) for one in result.history]
    assert result.agent_steps == sum(one.num_agents for one in result.history)


def test_larger_batches_mean_fewer_writes_and_commits(tmp_path: Path) -> None:
    told = [
        simulate(
            SimulationConfig(**SMALL, buffer_size=size, flush_frequency=size), tmp_path / f"{size}.db"
        ).settings
        for size in (10, 1000)
    ]
    assert int(str(told[0]["writes"])) > 5 * int(str(told[1]["writes"]))
    assert int(str(told[0]["commits"])) > 5 * int(str(told[1]["commits"]))


@pytest.mark.parametrize("profile", ["balanced", "performance", "safety", "memory"])
@pytest.mark.parametrize("mode", MODES)
def test_the_profile_is_read_back_from_the_database(tmp_path: Path, profile: str, mode: str) -> None:
    config = SimulationConfig(**SMALL, db_pragma_profile=profile, **MODES[mode])  # type: ignore[index]
    assert simulate(config, tmp_path / "log.db").settings["db_pragma_profile"] == profile


def test_without_a_log_nothing_is_written_and_nothing_changes(tmp_path: Path) -> None:
    config = SimulationConfig(**SMALL)
    world = World(config)
    history = tuple(world.step() for _ in range(config.simulation_steps))
    result = simulate(SimulationConfig(**SMALL, log_steps=False), tmp_path / "log.db")
    assert (result.history, result.digest, result.settings) == (history, world.digest(), {})
    assert list(tmp_path.iterdir()) == []
    assert simulate(config, tmp_path / "log.db").digest == result.digest


def test_a_log_is_never_mixed_with_another_one(tmp_path: Path, wording: Wording) -> None:
    file = tmp_path / "log.db"
    simulate(SimulationConfig(**SMALL), file)
    with pytest.raises(LogFailed) as refused:
        simulate(SimulationConfig(**SMALL), file)
    wording(str(refused.value))


def test_a_folder_that_does_not_exist_is_reported(tmp_path: Path, wording: Wording) -> None:
    with pytest.raises(LogFailed, match="SQLITE_CANTOPEN") as refused:
        simulate(SimulationConfig(**SMALL), tmp_path / "no" / "log.db")
    wording(str(refused.value))


def test_a_locked_database_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    """Another program begins to write after the log was opened."""
    from assay.simulation import pragmas

    file = tmp_path / "log.db"
    impatient = {**pragmas.PROFILES["memory"], "busy_timeout": 20}
    monkeypatch.setattr(pragmas, "PROFILES", {**pragmas.PROFILES, "memory": impatient})
    other: list[sqlite3.Connection] = []

    def lock(world: World, metrics: object) -> None:
        if not other:
            other.append(sqlite3.connect(file))
            other[0].execute("BEGIN EXCLUSIVE")

    config = SimulationConfig(**SMALL, db_pragma_profile="memory", buffer_size=100_000)
    try:
        with pytest.raises(LogFailed, match="SQLITE_BUSY") as refused:
            simulate(config, file, lock)
    finally:
        other[0].close()
    wording(str(refused.value))


IN_A_CHILD = """
import os, resource, sys
from assay.simulation import LogFailed, SimulationConfig, simulate
{limit}
try:
    simulate(SimulationConfig(num_agents=100, db_pragma_profile="memory"), sys.argv[1])
except LogFailed as error:
    print(error)
"""
FULL = "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))"
READ_ONLY = "os.geteuid() or os.setuid(65534)"  # permissions do not bind root


@pytest.mark.parametrize(
    ("limit", "code"),
    [(FULL, "SQLITE_IOERR_WRITE"), (READ_ONLY, "SQLITE_CANTOPEN")],
    ids=["full", "read-only"],
)
def test_a_full_disk_and_a_read_only_folder_are_reported(
    tmp_path: Path, limit: str, code: str, wording: Wording
) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o077:
            folder.chmod(0o755)  # pytest's folders are closed to others
    tmp_path.chmod(0o755 if limit == FULL else 0o555)
    code_run = IN_A_CHILD.format(limit=limit)
    done = subprocess.run(
        [sys.executable, "-c", code_run, tmp_path / "log.db"], capture_output=True, text=True, check=True
    )
    tmp_path.chmod(0o755)
    assert code in done.stdout
    wording(done.stdout.strip())
