"""Lists do not read executions, and kept leaderboards show new results."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.command import Assay
from tests.server.conftest import write_project

from assay.model import RunState
from assay.server.boards import BoardKeeper
from assay.store.results import ResultFilter
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
