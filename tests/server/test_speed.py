"""Lists do not read executions, and kept leaderboards show new results."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.command import Assay
from tests.server.conftest import write_project
from tests.services import Postgres

from assay.model import RunState
from assay.server.boards import BoardKeeper
from assay.store.copying import copy_database
from assay.store.results import ResultFilter
from assay.store.standings import Filter
from assay.store.store import Store


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("speed")
    write_project(folder)
    Assay(folder)("run", "desk", "--agent", "good", "--agent", "bad", "-q")
    return folder


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{project}/.assay/assay.db") as opened:
        yield opened


@contextmanager
def statements(store: Store) -> Iterator[list[tuple[str, object]]]:
    """Everything that is read while the block runs, with its values."""
    seen: list[tuple[str, object]] = []

    def note(connection: object, cursor: object, statement: str, values: object, *rest: object) -> None:
        seen.append((statement, values))

    sa.event.listen(store._engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        sa.event.remove(store._engine, "before_cursor_execute", note)


LISTS: dict[str, Callable[[Store], object]] = {
    "runs": lambda store: store.runs(),
    "runs of a suite": lambda store: store.runs(name="desk"),
    "executions of a run": lambda store: store.count_executions(store.runs()[0].id),
    "trials": lambda store: store.results(ResultFilter()),
    "latest results": lambda store: store.results(ResultFilter(agent="good", is_latest=True)),
    "trials of an agent": lambda store: store.agent_trials("good", "desk"),
    "agents": lambda store: store.agents_with_trials(),
    "changes": lambda store: store.changes(),
}


@pytest.mark.parametrize("name", LISTS)
def test_no_list_scans_executions_or_measurements(store: Store, project: Path, name: str) -> None:
    with statements(store) as seen:
        LISTS[name](store)

    plans = []
    with sqlite3.connect(project / ".assay" / "assay.db") as database:
        for statement, values in seen:
            if statement.lstrip().startswith(("SELECT", "WITH")):
                plans += [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {statement}", values)]  # type: ignore[arg-type]
    assert plans
    assert not [step for step in plans if step.startswith(("SCAN executions", "SCAN measurements"))]


@pytest.fixture(scope="module")
def server_store(project: Path, postgres: Postgres) -> Iterator[Store]:
    """The same results in PostgreSQL, which reads a whole table only where it has no index to use."""
    url = postgres.empty()
    copy_database(f"sqlite:///{project}/.assay/assay.db", url, lambda progress: None)
    with Store.open(f"{url}%20-cenable_seqscan%3Doff") as opened:
        yield opened


def _trial(store: Store) -> int:
    return store.agent_trials("good", "desk")[0].trial_id


POSTGRES_READS: dict[str, Callable[[Store], object]] = {
    **LISTS,
    "leaderboard": lambda store: (store.entries(Filter("desk")), store.latest_trials(suite="desk")),
    "kept leaderboards": lambda store: store.boards("overall"),
    "case table": lambda store: store.case_table(_trial(store)),
    "executions of a trial": lambda store: list(store.executions(_trial(store))),
    "history": lambda store: [store.past_figures(one.trial) for one in store.run("last").trials],
    "deviation": lambda store: store.deviation(_trial(store)),
    "runs that may go": lambda store: store.prune(older_than_days=0, keep=1, dry_run=True),
}


@pytest.mark.postgres
@pytest.mark.parametrize("name", POSTGRES_READS)
def test_postgresql_reads_long_tables_by_their_indexes(server_store: Store, name: str) -> None:
    with statements(server_store) as seen:
        POSTGRES_READS[name](server_store)
    asked = [one for one in seen if one[0].lstrip().startswith(("SELECT", "WITH"))]
    assert asked
    assert not _find_scans(server_store, asked)


@pytest.mark.postgres
def test_postgresql_ranks_and_deletes_by_indexes(server_store: Store) -> None:
    """The matrix is made from a view; rows of trials that are deleted are deleted by a trigger, whose statements are these."""
    with server_store._engine.connect() as connection:
        matrix = connection.exec_driver_sql("SELECT pg_get_viewdef('agent_comparison_matrix')").scalar_one()
    gone = "trial_id = ANY (ARRAY(SELECT id FROM trials WHERE run_id = 'r'))"
    asked = [(matrix.replace("%", "%%"), ()), ("SELECT * FROM benchmark_leaderboard", ())]
    asked += [(f"DELETE FROM {name} WHERE {gone}", ()) for name in ("measurements", "executions")]
    asked += [("DELETE FROM runs WHERE id = 'r'", ()), ("DELETE FROM trials WHERE run_id = 'r'", ())]
    assert not _find_scans(server_store, asked)
    assert _find_scans(server_store, [("SELECT COUNT(*) FROM executions WHERE status = 'ok'", ())])


def _find_scans(store: Store, asked: Sequence[tuple[str, object]]) -> list[tuple[str, str]]:
    """Steps that read all of a long table, whether in its own order or in that of an index, and the statements that have them."""
    found = []
    with store._engine.connect() as connection:
        for statement, values in asked:
            (plans,) = connection.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {statement}", values).scalars()  # type: ignore[arg-type]
            for step in _walk(plans[0]["Plan"]):
                is_long = step.get("Relation Name") in ("executions", "measurements")
                is_whole = (
                    not step.keys() & {"Index Cond", "Recheck Cond"} and step["Node Type"] != "ModifyTable"
                )
                if (is_long and is_whole) or (
                    step.get("Relation Name") == "trials" and step["Node Type"] == "Seq Scan"
                ):
                    found.append((f"{step['Node Type']} {step['Relation Name']}", statement))
    return found


def _walk(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for below in step.get("Plans", ()):
        yield from _walk(below)


def test_totals_of_a_run_that_has_ended_are_those_of_its_executions(store: Store) -> None:
    with store._engine.connect() as connection:
        kept = connection.exec_driver_sql("SELECT * FROM trial_totals ORDER BY trial_id").all()
        worked_out = connection.exec_driver_sql("SELECT * FROM live_trial_totals ORDER BY trial_id").all()

    assert len(kept) == 2
    assert kept == worked_out


def test_percentile_ranks_are_those_of_the_view(store: Store) -> None:
    with store._engine.connect() as connection:
        query = "SELECT id, percentile_rank FROM benchmark_executions ORDER BY id DESC"
        of_view = [tuple(row) for row in connection.exec_driver_sql(query)]

    assert [(row["id"], row["percentile_rank"]) for row in store.results(ResultFilter())] == of_view


def test_a_kept_board_shows_a_deleted_run_as_soon_as_it_is_looked_up(
    store: Store, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.boards.FRESH_SECONDS", 0.0)
    keeper = BoardKeeper(store, "")
    question = ("overall", "all", 20)
    before = keeper.read(question)
    Assay(project)("run", "desk", "--agent", "bad", "--agent", "good", "-q")
    newest = store.runs(limit=1)[0].id

    with_both = keeper.read(question)
    store.delete(newest)

    assert keeper.read(question) is not with_both
    assert before.plain != with_both.plain
    assert keeper.read(question) is keeper.read(question)


def test_a_process_computes_boards_of_many_results_and_answers_say_what_is_missing(
    store: Store, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.server.boards._FEW_RATED", 0)
    monkeypatch.setattr("assay.server.boards.FRESH_SECONDS", 0.0)
    monkeypatch.chdir(project)
    keeper = BoardKeeper(store, f"sqlite:///{project}/.assay/assay.db")
    try:
        first = keeper.read(("overall", "all", 20))
        run = store.runs(limit=1)[0]
        store.finish(run.id, RunState.COMPLETED, run.ended or datetime.now(UTC))
        stale = keeper.read(("overall", "all", 20))
    finally:
        keeper.close()

    assert b'"suite_id": "desk"' in first.plain
    assert b'"is_current": false, "outdated_suites": ["desk"]' in stale.plain
