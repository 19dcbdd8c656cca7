"""Databases that are damaged, of another program or half upgraded: one message, and nothing is changed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path

import pytest
from tests.store.examples import batch, begin, execution

from assay.errors import AssayError, StoreError
from assay.store.store import Store, upgrade

BAD_TEXT = b"\xff\xfe\x80"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("whole") / "whole.db"
    with Store.open(f"sqlite:///{file}") as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0), execution(1)]))
    return file


def planted(whole: Path, folder: Path, *statements: str, value: object = None) -> Path:
    file = folder / "planted.db"
    shutil.copy(whole, file)
    connection = sqlite3.connect(file)
    for statement in statements:
        connection.execute(statement, (value,) if "?" in statement else ())
    connection.commit()
    connection.close()
    return file


def read_everything(file: Path) -> None:
    with Store.open(f"sqlite:///{file}") as store:
        store.runs()
        run = store.run("r1")
        for trial in run.trials:
            store.counts(trial.id)
            store.series(trial.id)
            store.failures(trial.id)
            store.case_table(trial.id)
            list(store.executions(trial.id))


COLUMNS = [
    *(f"runs.{name}" for name in ("name", "state", "started", "ended", "source", "seed", "load", "budget")),
    *(f"trials.{name}" for name in ("name", "params", "iterations", "isolation", "limits", "cases")),
    *(f"executions.{name}" for name in ("status", "phase", "output", "applied", "detail")),
    "environments.facts",
    "measurements.value",
]


@pytest.mark.parametrize("column", COLUMNS)
def test_a_damaged_value_is_said_to_be_damaged(whole: Path, tmp_path: Path, column: str) -> None:
    table, _, name = column.partition(".")
    told = []
    for value, damage in ((BAD_TEXT, "CAST(? AS TEXT)"), (BAD_TEXT, "?"), ("{broken", "?")):
        file = planted(whole, tmp_path, f"UPDATE {table} SET {name} = {damage}", value=value)
        before = file.read_bytes()
        try:
            read_everything(file)
        except StoreError as error:
            told.append(str(error))
        assert file.read_bytes() == before
    assert len(told) >= 2
    assert all("is damaged" in message and "\n" not in message for message in told)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM assay_revision",
        "INSERT INTO assay_revision VALUES ('0010')",
        "UPDATE assay_revision SET version_num = x'ff'",
        "DROP TABLE assay_revision",
        "UPDATE assay_revision SET version_num = 'banana'",
        "UPDATE assay_revision SET version_num = '0009'",
        "UPDATE assay_revision SET version_num = '0010'",
    ],
)
def test_an_odd_revision_is_refused_by_reading_and_upgrading_and_nothing_is_changed(
    whole: Path, tmp_path: Path, statement: str
) -> None:
    file = planted(whole, tmp_path, statement)
    before = file.read_bytes()
    for use in (Store.open, upgrade):
        with pytest.raises(StoreError, match=r"--db|assay db upgrade"):
            use(f"sqlite:///{file}")
    assert file.read_bytes() == before


@pytest.mark.parametrize("statement", ["DROP TABLE executions", "ALTER TABLE runs DROP COLUMN label"])
def test_a_missing_part_of_the_schema_is_named(whole: Path, tmp_path: Path, statement: str) -> None:
    with pytest.raises(StoreError, match=r"schema.* (executions|runs\.label)"):
        read_everything(planted(whole, tmp_path, statement))


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE bookmarks (url)", "CREATE TABLE assay_revision (x)", "PRAGMA user_version = 7"],
)
def test_a_file_of_another_program_is_not_changed(tmp_path: Path, statement: str) -> None:
    file = tmp_path / "other.db"
    connection = sqlite3.connect(file)
    connection.execute(statement)
    connection.commit()
    connection.close()
    before = file.read_bytes()
    for use in (Store.open, upgrade):
        with pytest.raises(StoreError, match=r"other\.db.*program"):
            use(f"sqlite:///{file}")
    assert file.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["other.db"]


@pytest.fixture
def pipe(tmp_path: Path) -> str:
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


def test_a_pipe_or_a_device_is_refused_at_once(pipe: str) -> None:
    for path in (pipe, "/dev/zero", "/dev/null"):
        with pytest.raises(StoreError, match=f"'{path}'.*file"):
            Store.open(f"sqlite:///{path}")


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:///a\x00b.db",
        "sqlite:///a\x1b[31mb.db",
        "sqlite:///\udcff.db",
        "postgresql://h\x00/db",
        "sqlite:///a.db?mode=banana",
        "sqlite:///a.db?uri=true",
        "sqlite:///~nobody-of-that-name/a.db",
        "postgresql://u@127.0.0.1:99999/d",
        "sqlite+aiosqlite:///x.db",
    ],
)
def test_an_odd_url_is_one_message(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssayError) as caught:
        Store.open(url)
    assert str(caught.value).isprintable()
    assert not list(tmp_path.iterdir())


def test_a_damaged_name_is_reported_by_a_list_of_runs(whole: Path, tmp_path: Path) -> None:
    file = planted(whole, tmp_path, "UPDATE runs SET name = ?", value=BAD_TEXT)
    with Store.open(f"sqlite:///{file}") as store, pytest.raises(StoreError, match="damaged"):
        store.runs()
