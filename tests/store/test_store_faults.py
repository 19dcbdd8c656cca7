from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services import Postgres
from tests.store.examples import at_most, batch, begin, execution
from tests.wording import Wording

from assay.errors import MissingExtra, RunNotFound, StoreError, StoreFull
from assay.store.store import Store, upgrade

SECRET = "hunter2"


def _refusal(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    message = str(caught.value)
    assert "\n" not in message
    assert SECRET not in message
    return message


@pytest.mark.parametrize("url", [f"mysql://me:{SECRET}@host/db", "oracle://host/db"])
def test_another_kind_of_database_is_refused_with_the_accepted_ones(url: str, wording: Wording) -> None:
    message = _refusal(url)
    assert f"'{url.partition(':')[0]}'" in message
    assert "sqlite:///FILE" in message
    assert "postgresql://USER@HOST/DATABASE" in message
    wording(message)


@pytest.mark.parametrize("url", ["", f"postgresql://me:{SECRET}@host:port/db", "a b c"])
def test_what_is_no_url_is_refused(url: str, wording: Wording) -> None:
    message = _refusal(url)
    assert "URL" in message
    wording(message)


def test_a_bare_file_name_gets_the_url_that_was_meant(wording: Wording) -> None:
    message = _refusal("results.db")
    assert message.endswith(" sqlite:///results.db")
    wording(message)


def test_a_host_in_a_file_url_is_refused() -> None:
    assert "names a host" in _refusal("sqlite://host/file.db")


def test_a_folder_in_the_place_of_the_file_is_refused(tmp_path: Path, wording: Wording) -> None:
    message = _refusal(f"sqlite:///{tmp_path}")
    assert f"'{tmp_path}' " in message
    assert f"sqlite:///{tmp_path}/" in message
    wording(message)


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "deeper"):
        message = _refusal(f"sqlite:///{place / 'assay.db'}")
        assert f"'{place}" in message
        wording(message)


def test_a_folder_that_cannot_be_written_is_refused(wording: Wording) -> None:
    if not Path("/proc/version").exists():
        pytest.skip("needs /proc, where nobody can make a file")
    message = _refusal("sqlite:////proc/assay.db")
    assert "'/proc/assay.db'" in message
    wording(message)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert f"'{tmp_path / 'assay.db'}'" in _refusal(f"sqlite:///{tmp_path / 'assay.db'}")
    finally:
        tmp_path.chmod(0o700)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, wording: Wording) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("not a database " * 100)
    message = _refusal(f"sqlite:///{file}")
    assert f"'{file}' " in message
    assert "database" in message
    wording(message)
    assert file.read_text() == "not a database " * 100


def test_a_damaged_file_is_said_to_be_damaged(tmp_path: Path) -> None:
    file = tmp_path / "assay.db"
    with Store.open(f"sqlite:///{file}") as store:
        begin(store)
        store.add("run-1", batch(map(execution, range(2000))))
    with file.open("r+b") as damaged:
        damaged.seek(4096)
        damaged.write(b"\xff" * (file.stat().st_size - 4096))
    with pytest.raises(StoreError, match="damaged"), Store.open(f"sqlite:///{file}") as store:
        store.runs()


def test_damage_that_is_met_in_the_middle_of_reading_is_said_to_be_damage(tmp_path: Path) -> None:
    file = tmp_path / "assay.db"
    with Store.open(f"sqlite:///{file}") as store:
        run = begin(store)
        store.add("run-1", batch(map(execution, range(20_000))))
    with file.open("r+b") as damaged:
        damaged.seek(file.stat().st_size // 2)
        damaged.write(b"\xff" * 4096 * 40)
    with Store.open(f"sqlite:///{file}") as store:
        for read in (store.series, store.case_table):
            with pytest.raises(StoreError, match="damaged"):
                read(run.trials[0].id)


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    (tmp_path / "assay.db").touch()
    with Store.open(f"sqlite:///{tmp_path / 'assay.db'}") as store:
        assert store.runs() == []


def test_a_server_that_does_not_answer_is_a_clear_error(wording: Wording) -> None:
    message = _refusal(f"postgresql://me:{SECRET}@127.0.0.1:1/db")
    assert message.startswith("'postgresql://me:***@127.0.0.1:1/db' ")
    wording(message.partition(": ")[0])


def test_a_password_among_the_options_is_not_shown() -> None:
    assert "cannot be reached" in _refusal(f"postgresql://me@127.0.0.1:1/db?password={SECRET}")


def test_an_option_that_does_not_exist_is_a_clear_error() -> None:
    assert '"colour"' in _refusal("postgresql://me@127.0.0.1:1/db?colour=red")


@pytest.mark.postgres
def test_a_database_that_the_server_does_not_have_is_a_clear_error(postgres: Postgres) -> None:
    url = postgres.empty().replace("/postgres?", "/nowhere?")
    assert '"nowhere" ' in _refusal(url)


def test_upgrading_reports_the_same_faults(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    with pytest.raises(StoreError, match=r"notes\.txt.*database"):
        upgrade(f"sqlite:///{tmp_path / 'notes.txt'}")


def test_postgresql_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"pip install 'assay-bench\[postgres\]'"):
        Store.open("postgresql://me@127.0.0.1:1/db")


def test_a_lock_that_lasts_too_long_is_a_clear_error(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'assay.db'}?timeout=0.1"
    with Store.open(url) as store:
        begin(store)
        neighbour = sqlite3.connect(tmp_path / "assay.db", isolation_level=None)
        neighbour.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"assay\.db.*locked"):
            store.add("run-1", batch([execution(0)]))
        neighbour.close()
        assert store.add("run-1", batch([execution(0)])) == 1


def test_what_another_program_is_writing_can_be_read_meanwhile(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'assay.db'}?timeout=0.1") as store:
        begin(store)
        neighbour = sqlite3.connect(tmp_path / "assay.db", isolation_level=None)
        neighbour.execute("BEGIN IMMEDIATE")
        neighbour.execute("DELETE FROM runs")
        assert store.run("last").id == "run-1"
        neighbour.close()


def _fill(store: Store) -> tuple[int, StoreFull]:
    """Adds until there is no space left; how many executions were taken, and the refusal."""
    added = 0
    try:
        while True:
            added += store.add("run-1", batch(map(execution, range(added, added + 500))))
    except StoreFull as refusal:
        assert added > 0
        return added, refusal


def test_a_full_disk_keeps_what_was_stored_before(tmp_path: Path, wording: Wording) -> None:
    url = f"sqlite:///{tmp_path / 'assay.db'}"
    with at_most(160), Store.open(url) as store:
        trial = begin(store).trials[0].id
        added, refusal = _fill(store)
        assert isinstance(refusal, StoreFull)
        assert store.counts(trial) == {"ok": added}
    with Store.open(url) as roomier:
        assert roomier.add("run-1", batch(map(execution, range(added, added + 500)))) == 500
        assert roomier.counts(trial) == {"ok": added + 500}
    wording(refusal)


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("needs the right to mount a file system")
    yield place
    subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_really_full_keeps_what_was_stored_before(tiny_disk: Path) -> None:
    with Store.open(f"sqlite:///{tiny_disk / 'assay.db'}") as store:
        trial = begin(store).trials[0].id
        added, _ = _fill(store)
        assert store.counts(trial) == {"ok": added}


def test_a_disk_that_is_full_from_the_start_is_a_clear_error(tiny_disk: Path) -> None:
    with contextlib.suppress(OSError), (tiny_disk / "other").open("wb") as other:
        other.write(bytes(2 << 20))
    with pytest.raises(StoreFull):
        Store.open(f"sqlite:///{tiny_disk / 'assay.db'}")


@pytest.mark.postgres
def test_a_full_disk_of_the_server_is_the_same_error() -> None:
    psycopg = pytest.importorskip("psycopg")
    from assay.store.address import read_address
    from assay.store.driver_errors import translate

    assert isinstance(
        translate(psycopg.errors.DiskFull("no space"), read_address("postgresql://h/db")), StoreFull
    )


@pytest.mark.postgres
def test_the_store_connects_again_after_the_server_hung_up(postgres: Postgres) -> None:
    with Store.open(postgres.empty()) as store:
        begin(store)
        postgres.hang_up()
        assert store.add("run-1", batch([execution(0)])) == 1


def test_a_deleted_run_is_not_written_into_the_one_that_came_after(store: Store, url: str) -> None:
    begin(store, "r1")
    store.add("r1", batch([execution(0)]))
    with Store.open(url) as other:
        other.delete("r1")
        later = begin(other, "r2")
        with pytest.raises(RunNotFound, match="'r1'"):
            store.add("r1", batch([execution(1)]))
        assert other.counts(later.trials[0].id) == {}


def test_a_schema_whose_names_are_no_text_is_one_message(tmp_path: Path) -> None:
    file = tmp_path / "damaged.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        "CREATE TABLE t (a); PRAGMA writable_schema = ON;"
        "UPDATE sqlite_schema SET name = CAST(x'C22041' AS TEXT), sql = 'CREATE NONSENSE';"
    )
    connection.close()

    with pytest.raises(StoreError, match="damaged"):
        Store.open(f"sqlite:///{file}")
