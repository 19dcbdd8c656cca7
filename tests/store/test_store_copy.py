from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.services import Postgres
from tests.store.examples import (
    ENVIRONMENT,
    NOON,
    NOP,
    at_most,
    batch,
    begin,
    elaborate_plan,
    execution,
    small_suite,
    suite_plan,
)
from tests.wording import Wording

from assay.errors import RunInUse, StoreError, StoreFull
from assay.model import Artifact, Batch, RunState
from assay.model.access import Scope
from assay.model.database_copy import CopyProgress
from assay.model.label import Label, LabelVerdict
from assay.model.redaction import known_secrets
from assay.store import copy_digests, copying, tables
from assay.store.address import read_address
from assay.store.copy_digests import find_differing_tables, read_digests
from assay.store.digest_process import DigestProcess
from assay.store.labels import LabelFilter, write_labels
from assay.store.processes import current_owner
from assay.store.store import Store

WAYS = [
    pytest.param(("sqlite", "sqlite")),
    pytest.param(("sqlite", "postgresql"), marks=pytest.mark.postgres),
    pytest.param(("postgresql", "sqlite"), marks=pytest.mark.postgres),
]


@pytest.fixture(params=WAYS, ids=lambda way: "-".join(way))
def ends(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The URLs of two empty databases, of each kind in turn."""

    def empty(place: int, dialect: str) -> str:
        if dialect == "sqlite":
            return f"sqlite:///{tmp_path / f'{place}.db'}"
        server: Postgres = request.getfixturevalue("postgres")
        return server.empty()

    source, target = (empty(place, dialect) for place, dialect in enumerate(request.param))
    return source, target


def _fill(url: str) -> None:
    with Store.open(url) as store:
        begin(store, "r1", elaborate_plan())
        begin(store, "r2")
        begin(store, "r3", suite_plan(small_suite(), NOP))
        odd = execution(0, output={"longer": [1.5, 2**60], "b": "tab\t back\\slash \\N\nline"})
        store.add("r1", Batch((odd, execution(0, trial=1)), (Artifact(0, "a", "t", b"\x00\xff"),)))
        store.add("r2", batch(map(execution, range(50))))
        store.set_baseline("main", "r1")
        store.create_key("robot", Scope.ADMIN)
        store.create_workspace("other")
        begin(store.in_workspace("other"), "r4")
        store.in_workspace("other").add("r4", batch(map(execution, range(3))))


def _ignore(progress: CopyProgress) -> None:
    pass


def test_a_copy_holds_everything_of_every_workspace(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    copied = copying.copy_database(*ends, _ignore)
    assert (copied.executions, copied.found) == (55, 0)
    assert copied.rows["executions"] == 55
    with Store.open(ends[0]) as source, Store.open(ends[1]) as target:
        assert target.workspaces() == ["default", "other"]
        assert target.keys() == source.keys()
        for name in target.workspaces():
            there, here = source.in_workspace(name), target.in_workspace(name)
            assert here.runs() == there.runs()
            for run in here.runs():
                assert here.run(run.id) == there.run(run.id)
                for trial in here.run(run.id).trials:
                    assert list(here.executions(trial.id)) == list(there.executions(trial.id))
                    assert here.artifacts(trial.id) == there.artifacts(trial.id)


def test_a_number_that_postgresql_writes_in_full_is_no_difference(ends: tuple[str, str]) -> None:
    with Store.open(ends[0]) as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0, output=1e300)]))
    assert copying.copy_database(*ends, _ignore).executions == 1


def test_work_goes_on_in_the_copy(ends: tuple[str, str]) -> None:
    """New rows get numbers that no copied row has."""
    _fill(ends[0])
    copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        begin(store, "r5")
        store.add("r5", batch(map(execution, range(4))))
        assert len(list(store.executions(store.run("r5").trials[0].id))) == 4
        assert store.run("@main").id == "r1"


def test_an_interrupted_copy_is_completed_by_the_same_command(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(ends[0])
    monkeypatch.setattr(copying, "EXECUTIONS_AT_ONCE", 1)

    def interrupt(progress: CopyProgress) -> None:
        if progress.trials == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copying.copy_database(*ends, interrupt)
    with Store.open(ends[1]) as store:
        assert RunState.INCOMPLETE in {run.state for run in store.runs()}
    copied = copying.copy_database(*ends, _ignore)
    assert 0 < copied.found < copied.executions == 55


def test_a_run_counts_as_incomplete_until_its_last_trial_is_copied(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(ends[0])
    with Store.open(ends[0]) as source, Store.open(ends[1]) as target:
        for run in source.runs():
            source.finish(run.id, RunState.COMPLETED, NOON)
        size = {run.id: len(source.run(run.id).trials) for run in source.runs()}
        seen: list[dict[str, RunState]] = []

        def look(progress: CopyProgress) -> None:
            runs = {run.id: run.state for run in target.runs()}
            seen.append(runs)
            for run, state in runs.items():
                assert state == (
                    RunState.COMPLETED if len(target.run(run).trials) == size[run] else RunState.INCOMPLETE
                )

        monkeypatch.setattr(copying, "EXECUTIONS_AT_ONCE", 1)
        copying.copy_database(*ends, look)
        assert set(seen[0].values()) == {RunState.COMPLETED, RunState.INCOMPLETE}
        assert target.runs() == source.runs()


def test_a_target_with_other_data_is_refused_and_left_alone(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    with Store.open(ends[1]) as store:
        begin(store, "mine")
    with pytest.raises(StoreError, match="other data"):
        copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        assert [run.id for run in store.runs()] == ["mine"]


@pytest.fixture
def engine(ends: tuple[str, str]) -> Iterator[sa.Engine]:
    with Store.open(ends[1]) as store:
        yield store._engine


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE measurements SET value = value + 1 WHERE seq = 7",
        "DELETE FROM executions WHERE seq = 3",
        "UPDATE executions SET output = '{}' WHERE output IS NOT NULL",
    ],
)
def test_a_copy_that_was_changed_is_found_out(ends: tuple[str, str], engine: sa.Engine, change: str) -> None:
    _fill(ends[0])
    copying.copy_database(*ends, _ignore)
    with engine.begin() as connection:
        connection.exec_driver_sql(change)
    with pytest.raises(StoreError, match="does not match the source"):
        copying.copy_database(*ends, _ignore)


def _copy_some(ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy that ends after its first trials."""

    def interrupt(progress: CopyProgress) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(copying, "EXECUTIONS_AT_ONCE", 1)
        with pytest.raises(KeyboardInterrupt):
            copying.copy_database(*ends, interrupt)


def test_a_copy_is_resumed_although_small_rows_of_the_source_have_changed(
    ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(ends[0])
    with Store.open(ends[0]) as source:
        key = source.keys()[0]
        source.create_session(key, NOON + timedelta(hours=1), NOON)
        source.finish("r1", RunState.COMPLETED, NOON)
        _copy_some(ends, monkeypatch)
        source.note_use(key, NOON + timedelta(hours=5))
        source.create_session(key, NOON + timedelta(hours=9), NOON + timedelta(hours=5))
        source.tag("r2", ["new"], [])
        with source._writer.begin() as connection:
            connection.exec_driver_sql("UPDATE trial_totals SET tokens = 4711")
            connection.exec_driver_sql("UPDATE trials SET overall = 0.5")
    copied = copying.copy_database(*ends, _ignore)
    assert (copied.executions, copied.rows["sessions"]) == (55, 1)
    with Store.open(ends[0]) as source, Store.open(ends[1]) as target:
        assert target.keys() == source.keys()
        assert target.keys()[0].last_used == NOON + timedelta(hours=5)
        assert target.run("r2") == source.run("r2")
        with target._engine.connect() as connection:
            assert set(connection.exec_driver_sql("SELECT overall FROM trials").scalars()) == {0.5}
            assert 4711 in connection.exec_driver_sql("SELECT tokens FROM trial_totals").scalars().all()


def _label(store: Store, seq: int, author: str, verdict: LabelVerdict) -> None:
    trial = store.run("r2").trials[0].id
    with store._writer.begin() as connection:
        write_labels(connection, [Label(trial, seq, "", author, verdict, "", NOON)])


def test_a_run_that_went_on_in_the_copy_is_left_alone(tmp_path: Path) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    with Store.open(source) as store:
        store.begin(suite_plan(small_suite(), NOP), ENVIRONMENT, "r1", NOON, current_owner())
        store.release("r1")
    copying.copy_database(source, target, _ignore)
    with Store.open(target) as store:
        store.reopen("r1", current_owner())
        store.add("r1", batch(map(execution, range(2))))
        store.release("r1")
        with pytest.raises(StoreError, match="'r1' continued there"):
            copying.copy_database(source, target, _ignore)


def test_a_label_that_was_given_again_replaces_the_one_in_the_copy(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    with Store.open(ends[0]) as source:
        for author in ("ann", "ben"):
            _label(source, 7, author, LabelVerdict.PASS)
        copying.copy_database(*ends, _ignore)
        _label(source, 7, "ann", LabelVerdict.FAIL)
        for _ in range(2):
            copying.copy_database(*ends, _ignore)
        with Store.open(ends[1]) as target:
            assert target.labels(LabelFilter()) == source.labels(LabelFilter())
            assert {label.author: label.verdict.value for label in target.labels(LabelFilter())} == {
                "ann": "fail",
                "ben": "pass",
            }


def test_a_label_that_only_the_copy_has_is_not_removed(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as target:
        _label(target, 7, "ann", LabelVerdict.PASS)
        with pytest.raises(StoreError, match="'labels'"):
            copying.copy_database(*ends, _ignore)
        assert len(target.labels(LabelFilter())) == 1


def test_what_the_source_stores_meanwhile_is_copied_the_next_time(ends: tuple[str, str]) -> None:
    """A copy is of the moment at which it began."""
    _fill(ends[0])
    with Store.open(ends[0]) as source:
        source.begin(suite_plan(small_suite(), NOP), ENVIRONMENT, "owned", NOON, current_owner())
        source.release("owned")

        def work(progress: CopyProgress) -> None:
            source.reopen("owned", current_owner())
            source.add("owned", batch(map(execution, range(2))))
            source.begin(elaborate_plan(), ENVIRONMENT, "late", NOON, current_owner())
            source.add("late", batch(map(execution, range(3))))

        copied = copying.copy_database(*ends, work)
        assert (copied.executions, sorted(copied.later_runs)) == (55, ["late", "owned"])
        with pytest.raises(RunInUse):
            copying.copy_database(*ends, _ignore)
        source.release("owned")
        source.release("late")
        again = copying.copy_database(*ends, _ignore)
        assert (again.executions, again.found, again.later_runs) == (60, 55, [])


def test_a_target_without_runs_keeps_its_own_rows(tmp_path: Path) -> None:
    """Its rows have the numbers of those of the source, but no copy has brought them."""
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    _fill(source)
    insert = (
        "INSERT INTO agents (id, workspace_id, name, version, definition) SELECT {} FROM workspaces LIMIT 1"
    )
    with Store.open(source) as opened, opened._engine.connect() as connection:
        known = connection.exec_driver_sql("SELECT id, name, version FROM agents LIMIT 1").one()
    with Store.open(target) as opened:
        with opened._writer.begin() as connection:
            connection.exec_driver_sql(
                insert.format(f"{known.id}, id, '{known.name}', '{known.version}', '[4711]'")
            )
        with pytest.raises(StoreError):
            copying.copy_database(source, target, _ignore)
        with opened._engine.connect() as connection:
            assert connection.exec_driver_sql("SELECT definition FROM agents").scalars().all() == ["[4711]"]


def test_a_run_under_way_is_not_copied_in_half(tmp_path: Path) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    with Store.open(source) as store:
        store.begin(elaborate_plan(), ENVIRONMENT, "r1", NOON, current_owner())
        with pytest.raises(RunInUse):
            copying.copy_database(source, target, _ignore)


@pytest.mark.parametrize(
    "target", ["sqlite:///a.db", "sqlite:///./a.db", "sqlite:///symlink.db", "sqlite:///hardlink.db"]
)
def test_a_database_is_not_copied_onto_itself(
    tmp_path: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _fill("sqlite:///a.db")
    Path("symlink.db").symlink_to("a.db")
    Path("hardlink.db").hardlink_to("a.db")
    with pytest.raises(StoreError, match="both source and target"):
        copying.copy_database("sqlite:///a.db", target, _ignore)


def test_a_source_without_our_tables_is_refused_and_gets_none(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("empty.db", "b.db"))
    with pytest.raises(StoreError, match="not a database of Assay"):
        copying.copy_database(source, target, _ignore)
    assert not (tmp_path / "empty.db").stat().st_size
    assert not (tmp_path / "b.db").exists()


@pytest.mark.parametrize("ways", [("sqlite:///a.db", "sqlite://"), ("sqlite:///:memory:", "sqlite:///b.db")])
def test_a_database_in_memory_is_neither_source_nor_target(
    tmp_path: Path, ways: tuple[str, str], monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    monkeypatch.chdir(tmp_path)
    _fill("sqlite:///a.db")
    with pytest.raises(StoreError) as refusal:
        copying.copy_database(*ways, _ignore)
    assert not Path("b.db").exists()
    wording(refusal.value)


def test_a_copy_to_a_full_disk_is_completed_by_the_same_command(tmp_path: Path, wording: Wording) -> None:
    source, target = (f"sqlite:///{tmp_path / name}" for name in ("a.db", "b.db"))
    _fill(source)
    with Store.open(source) as store:
        store.add("r3", batch(execution(n, output="much " * 500) for n in range(200)))
    with at_most(160), pytest.raises(StoreFull) as refusal:
        copying.copy_database(source, target, _ignore)
    wording(refusal.value)
    assert "--resume" not in str(refusal.value)
    assert copying.copy_database(source, target, _ignore).executions == 255


@pytest.mark.postgres
def test_an_error_of_the_server_within_a_copy_is_one_for_the_user(
    postgres: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """COPY goes past SQLAlchemy."""
    psycopg = pytest.importorskip("psycopg")
    source = f"sqlite:///{tmp_path / 'a.db'}"
    _fill(source)

    def fail(*_: object) -> None:
        error = psycopg.errors.DiskFull("no space")
        raise sa.exc.DBAPIError.instance("COPY", None, error, psycopg.Error)

    monkeypatch.setattr(copying, "insert_series", fail)
    with pytest.raises(StoreFull, match="repeat"):
        copying.copy_database(source, postgres.empty(), _ignore)


def test_what_postgresql_would_refuse_is_replaced_in_the_copy(ends: tuple[str, str]) -> None:
    """Only another program can have stored it in SQLite."""
    if not ends[0].startswith("sqlite"):
        pytest.skip("PostgreSQL cannot hold it")
    _fill(ends[0])
    file = ends[0].removeprefix("sqlite:///")
    with closing(sqlite3.connect(file)) as planted, planted:
        planted.execute("UPDATE executions SET error = 'a' || char(0) || 'b' WHERE seq = 0")
        planted.execute("""UPDATE executions SET output = '{"c": ["d\\u0000", "\\ud800"]}' WHERE seq = 0""")
        planted.execute("UPDATE measurements SET metric = 'e' || char(0) WHERE seq = 0")
        planted.execute("UPDATE runs SET name = 'f' || char(0) WHERE id = 'r1'")
        planted.execute('UPDATE trials SET params = \'{"g": "\\u0000"}\'')
    for _ in range(2):  # the second finds what the first has brought
        copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        copied = next(iter(store.executions(store.run("r1").trials[0].id)))
    assert (copied.output, copied.error) == ({"c": ["d\ufffd", "?"]}, "a\ufffdb")
    assert "e\ufffd" in copied.measurements


def test_a_secret_that_the_source_still_holds_is_redacted_in_the_copy(ends: tuple[str, str]) -> None:
    """An earlier version may have stored it, or it was no secret then."""
    with Store.open(ends[0]) as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0, output={"said": "hush-hush-4711"}, error="hush-hush-4711")]))
    known_secrets().learn("hush-hush-4711", "NAME")
    copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        (copied,) = store.executions(store.run("r1").trials[0].id)
    assert "hush" not in f"{copied.output} {copied.error}"


def test_a_metric_that_is_named_after_a_secret_is_redacted_in_the_copy(ends: tuple[str, str]) -> None:
    with Store.open(ends[0]) as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0, measurements={"seconds": 0.1, "of hush-hush-4712": 1.0})]))
    known_secrets().learn("hush-hush-4712", "NAME")
    for _ in range(2):  # the second finds what the first has brought
        copying.copy_database(*ends, _ignore)
    with Store.open(ends[1]) as store:
        (copied,) = store.executions(store.run("r1").trials[0].id)
    assert "hush" not in str(copied.measurements)
    assert len(copied.measurements) == 2


def test_a_long_trial_is_digested_in_parts(ends: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """PostgreSQL could not hold all outputs of 20,000 executions in one string."""
    monkeypatch.setattr(copy_digests, "_PART", 8)
    with Store.open(ends[0]) as source, Store.open(ends[1]) as target:
        begin(source, "r1")
        source.add("r1", batch(map(execution, range(50))))
        copying.copy_database(*ends, _ignore)
        for side in (source, target):
            with side._engine.begin() as connection:
                known = read_digests(connection, 1, 1)
                assert [key for key in sorted(known, key=str) if key[1] != "seconds"] == [
                    (1, n) for n in range(7)
                ]
                connection.exec_driver_sql("UPDATE executions SET error = 'other' WHERE seq = 49")
                changed = read_digests(connection, 1, 1)
                assert {key for key in known if known[key] != changed[key]} == {(1, 6)}


def test_another_process_reads_the_same_digests_of_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    _fill(url)
    with Store.open(url) as store, closing(DigestProcess(read_address(url))) as process:
        with store._engine.connect() as connection:
            known = read_digests(connection, 1, 99)
        assert process.read(1, 99) == known
        with store._engine.begin() as connection:
            connection.exec_driver_sql("UPDATE measurements SET value = value + 1 WHERE seq = 7")
        changed = process.read(1, 99)
        assert changed is not None
        assert find_differing_tables(known, changed) == [tables.measurements]


def test_a_process_that_cannot_read_a_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    with closing(DigestProcess(read_address(f"sqlite:///{file}"))) as process:
        assert process.read(1, 99) is None  # it has no tables


def test_the_process_of_a_copy_that_was_killed_ends_without_a_word(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    _fill(url)
    command = [sys.executable, "-P", "-m", DigestProcess.__module__, url]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, **pipes) as process:  # type: ignore[call-overload]
        process.stdout.close()
        process.stdin.write(b"1 99\n")
        process.stdin.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_copy_that_is_killed_in_the_middle_of_a_trial_is_completed(ends: tuple[str, str]) -> None:
    _fill(ends[0])
    killed = subprocess.run([sys.executable, "-c", KILLED, *ends], check=False)
    assert killed.returncode == -signal.SIGKILL
    copied = copying.copy_database(*ends, _ignore)
    assert 0 < copied.found < copied.executions == 55


KILLED = """
import os, signal, sys
from assay.store import copying, tables
from assay.store.address import read_address
from assay.store.copy_digests import find_differing_tables, read_digests
from assay.store.digest_process import DigestProcess

def insert(target, many, insert=copying.insert_series):
    insert(target, many)
    target.scalar(copying.sa.text("SELECT COUNT(*) FROM measurements")) > 10 and os.kill(os.getpid(), signal.SIGKILL)

copying.EXECUTIONS_AT_ONCE, copying.insert_series = 1, insert
copying.copy_database(*sys.argv[1:], lambda progress: None)
"""
"""Copies trial by trial, and ends without a word before the third of them is committed."""
