from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from tests.services import Postgres
from tests.store.examples import ENVIRONMENT, NOON, batch, begin, elaborate_plan, execution

from assay.errors import NewerSchema, StoreAway, StoreError
from assay.model import RunState
from assay.store import schema
from assay.store.address import read_address
from assay.store.revisions import REVISIONS, will_open
from assay.store.store import Store, upgrade

SCHEMAS = Path(__file__).parent / "schemas"


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", "assay.store:migrations")
    config.set_main_option("path_separator", "os")
    return config


def _engine(url: str) -> sa.Engine:
    return sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)


def _build(url: str, revision: str) -> None:
    """The schema as it was at a revision."""
    config = _config()
    with _engine(url).begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


def _set_revision(url: str, revision: str) -> None:
    with _engine(url).begin() as connection:
        connection.execute(
            sa.text("UPDATE assay_revision SET version_num = :revision"), {"revision": revision}
        )


def _sqlite_schema(url: str) -> set[tuple[object, ...]]:
    with _engine(url).connect() as connection:
        found = connection.exec_driver_sql("SELECT type, name, tbl_name, sql FROM sqlite_master")
        return {(*row[:3], _normal(str(row[3]))) for row in found}


def _normal(statement: str) -> tuple[str, ...]:
    """Less what SQLite writes differently when a table is altered: space, quotes, the order of constraints."""
    columns, *constraints = re.sub(r'[\s"]+', "", statement).split("CONSTRAINT")
    return columns, *sorted(constraint.strip("),") for constraint in constraints)


def _postgres_schema(url: str) -> set[tuple[object, ...]]:
    """All that PostgreSQL knows of columns, constraints, indexes and views, as text."""
    queries = (
        """SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default,
                  character_maximum_length, is_identity
           FROM information_schema.columns WHERE table_schema = current_schema()""",
        """SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid)
           FROM pg_constraint WHERE connamespace = current_schema()::regnamespace""",
        "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = current_schema()",
        "SELECT viewname, definition FROM pg_views WHERE schemaname = current_schema()",
        "SELECT matviewname, definition FROM pg_matviews WHERE schemaname = current_schema()",
        "SELECT proname, prosrc FROM pg_proc WHERE pronamespace = current_schema()::regnamespace",
        "SELECT tgname, pg_get_triggerdef(pg_trigger.oid) FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
        "WHERE NOT tgisinternal AND relnamespace = current_schema()::regnamespace",
    )
    with _engine(url).connect() as connection:
        schema = connection.scalar(sa.text("SELECT current_schema()"))
        rows = [row for query in queries for row in connection.exec_driver_sql(query)]
    return {tuple(str(value).replace(f"{schema}.", "") for value in row) for row in rows}


@pytest.fixture
def urls(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> tuple[str, str]:
    """Two empty databases of a kind."""
    if url.startswith("sqlite"):
        return url, f"sqlite:///{tmp_path / 'second.db'}"
    server: Postgres = request.getfixturevalue("postgres")
    return url, server.empty()


def _read_schema(url: str) -> set[tuple[object, ...]]:
    return _sqlite_schema(url) if url.startswith("sqlite") else _postgres_schema(url)


def test_migrations_build_exactly_what_a_new_store_has(urls: tuple[str, str]) -> None:
    new, migrated = urls
    Store.open(new).close()
    assert upgrade(migrated) == ("", REVISIONS[-1])
    assert _read_schema(new) == _read_schema(migrated)
    assert len(_read_schema(new)) > 12


def test_a_migrated_store_holds_the_same_rows_as_a_new_one(urls: tuple[str, str]) -> None:
    new, migrated = urls
    upgrade(migrated)
    with Store.open(new) as first, Store.open(migrated) as second:
        assert begin(first, "r1") == begin(second, "r1")
        assert first.info()["rows"] == second.info()["rows"]


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    scripts = ScriptDirectory.from_config(_config())
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS


@pytest.mark.parametrize("old", REVISIONS[:-1])
def test_an_older_schema_is_refused_until_it_is_upgraded(url: str, old: str) -> None:
    _build(url, old)
    needed = f"schema {old}.* {REVISIONS[-1]}.*assay db upgrade"
    with pytest.raises(StoreError, match=needed):
        Store.open(url)
    assert upgrade(url) == (old, REVISIONS[-1])
    with Store.open(url) as store:
        assert store.info()["revision"] == REVISIONS[-1]


@pytest.mark.parametrize(
    ("url", "is_whole"),
    [
        ("sqlite:///x.db", True),
        ("postgresql://me@host/db", True),
        ("postgresql://me:secret@host/db", False),
        ("postgresql://host/db?password=secret", False),
    ],
)
def test_an_address_can_be_pasted_only_where_it_has_no_password(url: str, is_whole: bool) -> None:
    address = read_address(url)
    assert (address.has_nothing_hidden, "secret" in address.shown) == (is_whole, False)


def test_upgrading_what_is_new_changes_nothing(url: str) -> None:
    Store.open(url).close()
    assert upgrade(url) == (REVISIONS[-1], REVISIONS[-1])


def test_a_newer_schema_is_refused_and_left_alone(url: str) -> None:
    Store.open(url).close()
    _set_revision(url, "9999")
    with pytest.raises(NewerSchema, match="schema 9999"):
        Store.open(url)
    with pytest.raises(NewerSchema, match="9999"):
        upgrade(url)


def _restore(url: str, file: Path) -> None:
    """The database that was kept in a file, on either kind."""
    kept = file.read_text(encoding="utf-8")
    if url.startswith("sqlite"):
        connection = sqlite3.connect(url.removeprefix("sqlite:///"))
        connection.executescript(kept)
        connection.close()
        return
    _build(url, file.stem)
    rows = re.findall(r'^INSERT INTO "(?!sqlite_|assay_|workspaces).*?\);$', kept, re.MULTILINE | re.DOTALL)
    with _engine(url).begin() as server:
        # The rows stand in the order of the tables' names: foreign keys have to wait.
        server.exec_driver_sql("SET session_replication_role = replica; SET TIME ZONE 'UTC'")
        for row in rows:
            server.exec_driver_sql(re.sub(r"X'([0-9A-F]*)'", r"'\\x\1'", row))
        if "VIEW benchmark_executions" in kept and file.stem < "0012":
            # Migrations do not make the old forms of the view any more, but an upgrade meets them.
            server.exec_driver_sql("CREATE VIEW benchmark_executions AS SELECT * FROM trials")


@pytest.mark.parametrize("file", sorted(SCHEMAS.glob("*.sql")), ids=lambda file: file.stem)
def test_a_database_of_every_schema_can_be_upgraded_and_read(file: Path, urls: tuple[str, str]) -> None:
    url, new = urls
    _restore(url, file)
    assert upgrade(url) == (file.stem, REVISIONS[-1])
    Store.open(new).close()
    assert _read_schema(url) == _read_schema(new)
    with Store.open(url) as store:
        run = store.run("@main")
        assert [stored.trial for stored in run.trials] == list(elaborate_plan().trials)
        assert (run.state, run.environment, run.started) == (RunState.COMPLETED, ENVIRONMENT, NOON)
        assert store.counts(run.trials[0].id) == {"ok": 1, "failed": 1}
        assert store.artifacts(run.trials[0].id)[0].content == b"kept"
        assert store.reopen(run.id, "me").id == run.id
        assert store.add(run.id, batch([execution(2), execution(1)])) == 1


def test_every_schema_but_the_newest_has_a_database_kept() -> None:
    assert {file.stem for file in SCHEMAS.glob("*.sql")} >= set(REVISIONS[:-1])


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "other.db")
    connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    with pytest.raises(StoreError, match=r"program.* bookmarks"):
        Store.open(f"sqlite:///{tmp_path / 'other.db'}")


@pytest.mark.postgres
def test_a_server_may_hold_tables_of_other_programs(postgres: Postgres) -> None:
    url = postgres.empty()
    with _engine(url).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE bookmarks (url TEXT)")
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num TEXT)")
    with Store.open(url) as store:
        assert store.runs() == []


@pytest.mark.postgres
def test_a_server_whose_tables_have_our_names_is_refused(postgres: Postgres) -> None:
    url = postgres.empty()
    with _engine(url).begin() as connection:
        connection.exec_driver_sql("CREATE TABLE runs (id INTEGER)")
    with pytest.raises(StoreError, match=r"program.* runs"):
        Store.open(url)


def test_opening_a_store_does_not_load_alembic(tmp_path: Path) -> None:
    code = (
        "import sys; from assay.store.store import Store; "
        f"Store.open('sqlite:///{tmp_path / 'new.db'}').close(); print('alembic' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "False"


def test_a_store_loads_what_it_searches_with_only_when_it_searches(tmp_path: Path) -> None:
    code = (
        "import sys; from assay.store.store import Store; "
        f"store = Store.open('sqlite:///{tmp_path / 'new.db'}'); print('assay.store.search' in sys.modules); "
        "store.search('a', 5); print('assay.store.search' in sys.modules)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.split() == ["False", "True"]


def test_the_file_is_written_ahead(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path / 'new.db'}").close()
    with sqlite3.connect(tmp_path / "new.db") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


def test_a_store_in_memory_lasts_as_long_as_it_is_open() -> None:
    with Store.open("sqlite:///:memory:") as store:
        begin(store, "r1")
        store.add("r1", batch([execution(0)]))
        assert store.runs()[0].executions == 1


def test_folders_are_made_as_needed(tmp_path: Path) -> None:
    Store.open(f"sqlite:///{tmp_path / 'a' / 'b' / 'assay.db'}").close()
    assert (tmp_path / "a" / "b" / "assay.db").is_file()


def test_a_relative_path_stays_where_it_was_when_the_working_folder_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with Store.open("sqlite:///assay.db") as store:
        monkeypatch.chdir(tmp_path / "elsewhere")
        begin(store, "r1")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_database_of_this_version_and_one_that_can_be_made_will_open(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new folder' / 'assay.db'}"
    assert will_open(url)
    Store.open(url).close()
    assert will_open(url)


@pytest.mark.parametrize(
    "url",
    ["postgresql://127.0.0.1/assay", "sqlite:///:memory:", "sqlite://", "sqlite:///~/assay.db", "sqlite:///a.db?timeout=1",
     "assay.db", "sqlite:///a\0.db"],
)  # fmt: skip
def test_of_other_databases_only_the_store_can_tell_whether_they_open(url: str) -> None:
    assert not will_open(url)


def test_what_is_no_database_of_this_version_may_not_open(tmp_path: Path) -> None:
    text, older, empty = (tmp_path / name for name in ("text.db", "older.db", "empty.db"))
    text.write_text("no database" * 100)
    with closing(sqlite3.connect(older)) as connection:
        connection.executescript((SCHEMAS / "0010.sql").read_text())
    empty.touch()
    assert not any(
        will_open(f"sqlite:///{file}") for file in (tmp_path, text, older, empty, text / "below.db")
    )


def _wait_for_a_lock(connection: sa.Connection) -> None:
    """Until somebody waits for a lock on one of the tables."""
    query = sa.text(
        "SELECT COUNT(*) FROM pg_locks JOIN pg_database ON pg_database.oid = database "
        "WHERE NOT granted AND datname = current_database()"
    )
    while not connection.scalar(query):
        time.sleep(0.005)


@pytest.mark.postgres
@pytest.mark.parametrize(("first", "second"), [("measurements", "trials"), ("trials", "executions")])
def test_writers_and_an_upgrade_do_not_end_each_other(postgres: Postgres, first: str, second: str) -> None:
    """Whichever table a writer has, and whichever it needs next, both get through."""
    url = postgres.empty()
    _build(url, "0012")
    with ThreadPoolExecutor(1) as beside, _engine(url).connect() as writer:
        writer.exec_driver_sql(f"LOCK TABLE {first} IN ROW EXCLUSIVE MODE")
        upgraded = beside.submit(upgrade, url)
        _wait_for_a_lock(writer)
        writer.exec_driver_sql(f"LOCK TABLE {second} IN ROW EXCLUSIVE MODE")
        writer.commit()
        assert upgraded.result() == ("0012", REVISIONS[-1])


@pytest.mark.postgres
def test_a_reader_and_a_writer_go_on_during_an_upgrade(postgres: Postgres) -> None:
    """From the schema before the newest; neither meets an error, and nothing that was written is lost."""
    url, before = postgres.empty(), REVISIONS[-2]
    _build(url, before)
    is_over, have_begun = threading.Event(), threading.Barrier(3, timeout=60)

    def repeat(statement: str) -> int:
        """How often it was carried out: once before the upgrade, and from then on until once after it."""
        done, is_last = 0, False
        with _engine(url).connect() as connection:
            while not is_last:
                is_last = is_over.is_set()
                connection.exec_driver_sql(statement)
                connection.commit()
                done += 1
                if done == 1:
                    have_begun.wait()
        return done

    with ThreadPoolExecutor(2) as beside:
        read = beside.submit(repeat, "SELECT COUNT(*) FROM trials JOIN executions ON trial_id = trials.id")
        insert = "INSERT INTO environments (facts, vcs, doubts) VALUES ('{}', '{}', '[]')"
        written = beside.submit(repeat, insert)
        have_begun.wait()
        try:
            assert upgrade(url) == (before, REVISIONS[-1])
        finally:
            is_over.set()
        assert read.result() > 1
        with Store.open(url) as store, store._engine.connect() as connection:
            assert connection.scalar(sa.text("SELECT COUNT(*) FROM environments")) == written.result() > 1


@pytest.mark.postgres
def test_an_upgrade_gives_up_where_tables_stay_locked(
    postgres: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres.empty()
    _build(url, "0012")
    monkeypatch.setattr(schema, "_LOCK_SECONDS", 0)
    with _engine(url).connect() as other:
        other.exec_driver_sql("LOCK TABLE trials IN ROW EXCLUSIVE MODE")
        with pytest.raises(StoreAway, match="locked"):
            upgrade(url)
    assert upgrade(url) == ("0012", REVISIONS[-1])
