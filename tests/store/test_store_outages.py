"""A database that is away for a while costs a run nothing."""

from __future__ import annotations

import math
import sqlite3
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.command import COMMAND, environment
from tests.execute.carrying import eventually
from tests.services import Postgres
from tests.store.examples import ENVIRONMENT, NOON, batch, execution, plan_of

from assay.errors import PlanError, StoreAway, StoreFull
from assay.model import Artifact, Batch, Plan, RunState, Status
from assay.model.execution import JobUsage
from assay.pipeline.run import resume
from assay.store import leases, outbox
from assay.store.processes import current_owner
from assay.store.store import Store


def sql(url: str, statement: str) -> list[sa.Row[tuple[object, ...]]]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        return list(connection.exec_driver_sql(statement))


def number(url: str, statement: str) -> int:
    [row] = sql(url, statement)
    return int(float(str(row[0])))


@pytest.fixture
def server(postgres: Postgres) -> Iterator[Postgres]:
    """That is running again when the test is over, whatever became of it."""
    yield postgres
    postgres.restart()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def begin(url: str, seconds: float = 60, plan: Plan | None = None) -> Store:
    store = Store.open(url, retry_seconds=seconds)
    store.begin(plan or plan_of(), ENVIRONMENT, "r1", NOON, current_owner())
    return store


def whole_batch(repetition: int) -> Batch:
    """With everything that must not be counted twice."""
    artifact = Artifact(0, f"{repetition}.txt", "remark", b"kept")
    usage = {0: JobUsage(1.0, 2.0, 3)}
    return Batch((execution(repetition),), (artifact,), usage=usage, versions={0: "v2"})


def assert_stored_once(store: Store, url: str, many: int) -> None:
    [trial] = store.run("r1").trials
    assert [made.repetition for made in store.executions(trial.id)] == list(range(many))
    assert len(store.artifacts(trial.id)) == many
    assert number(url, "SELECT cpu_seconds FROM trials") == many
    assert trial.trial.agent.version == "v2"


@pytest.mark.postgres
@pytest.mark.parametrize("memory", [10**9, 0], ids=["in memory", "in a file"])
def test_results_wait_until_the_server_is_back(
    server: Postgres, folder: Path, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MEMORY_CHARACTERS", memory)
    url, file = server.empty(), folder / ".assay" / "unsaved-r1.jsonl"
    with begin(url) as store:
        store.add("r1", whole_batch(0))
        server.stop()
        for repetition in range(1, 4):
            store.add("r1", whole_batch(repetition))
        if memory == 0:
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        server.restart()
        store.add("r1", whole_batch(4))
        store.finish("r1", RunState.COMPLETED, NOON)
        assert_stored_once(store, url, 5)
        assert store.run("r1").state is RunState.COMPLETED
    assert not file.exists()


@pytest.mark.postgres
def test_a_batch_whose_acknowledgement_was_lost_is_not_stored_twice(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = server.empty()
    with begin(url) as store:
        is_lost = iter([True])

        @sa.event.listens_for(store._engine, "commit")
        def lose_acknowledgement(connection: sa.Connection) -> None:
            if next(is_lost, False):
                connection.connection.dbapi_connection.commit()  # type: ignore[union-attr]
                raise StoreAway("gone")

        assert store.add("r1", whole_batch(0)) == 0
        store.add("r1", whole_batch(1))
        store.finish("r1", RunState.COMPLETED, NOON)
        assert_stored_once(store, url, 2)


@pytest.mark.postgres
def test_results_that_could_not_be_stored_are_stored_by_whoever_resumes(
    server: Postgres, folder: Path
) -> None:
    url = server.empty()
    store = begin(url, seconds=0)
    store.add("r1", whole_batch(0))
    server.stop()
    store.add("r1", whole_batch(1))
    store._outboxes["r1"]._next_try = math.inf  # nothing is tried until all three are there
    for repetition in (2, 3):
        store.add("r1", whole_batch(repetition))
    with pytest.raises(StoreAway, match=r"unsaved-r1\.jsonl.*assay run --resume r1"):
        store._outboxes["r1"]._try()
    store.close()
    server.restart()
    with Store.open(url) as resumed:
        resumed.reopen("r1", current_owner())
        assert_stored_once(resumed, url, 4)
    assert not (folder / ".assay" / "unsaved-r1.jsonl").exists()
    with Store.open(url) as again:
        again.reopen("r1", current_owner())
        assert_stored_once(again, url, 4)


def spill(url: str, made: Batch, plan: Plan | None = None) -> None:
    """Leaves a run with a batch that is only in its file."""
    with begin(url, plan=plan) as store:
        outbox_of_a_full_disk = outbox.Outbox(store._leases["r1"], _refuse, str(Path.cwd()))
        with pytest.raises(StoreFull, match=r"unsaved-r1\.jsonl"):
            outbox_of_a_full_disk.put(made)


def _refuse(_: Batch) -> int:
    raise StoreFull("full.")


def test_executions_that_do_not_stand_are_not_taken_from_the_file(url: str, folder: Path) -> None:
    spill(url, batch([execution(0), execution(1, status=Status.CANCELLED)]))
    with Store.open(url) as store:
        run = store.reopen("r1", current_owner())
        assert store.counts(run.trials[0].id) == {"ok": 1}


def test_results_of_an_owner_before_the_last_are_stored_where_they_are_missing(
    url: str, folder: Path
) -> None:
    spill(url, batch([execution(0), execution(1)]))
    file = folder / ".assay" / "unsaved-r1.jsonl"
    hidden = file.rename(folder / "hidden")
    with Store.open(url) as elsewhere:
        elsewhere.reopen("r1", current_owner())
        elsewhere.add("r1", batch([execution(0), execution(2)]))
    hidden.rename(file)
    with Store.open(url) as store:
        run = store.reopen("r1", current_owner())
        assert store.counts(run.trials[0].id) == {"ok": 3}
    assert not file.exists()


def test_a_file_that_was_cut_short_gives_its_whole_lines(url: str, folder: Path) -> None:
    spill(url, batch([execution(0)]))
    with (folder / ".assay" / "unsaved-r1.jsonl").open("a") as file:
        file.write('{"number": 2, "batch": {"execut')
    with Store.open(url) as store:
        run = store.reopen("r1", current_owner())
        assert store.counts(run.trials[0].id) == {"ok": 1}


def test_a_stress_test_cannot_be_resumed_but_its_results_are_taken_from_the_file(
    url: str, folder: Path
) -> None:
    plan = plan_of()
    stress = replace(plan, trials=tuple(replace(trial, experiment="stress") for trial in plan.trials))
    spill(url, batch([execution(0)]), stress)
    with Store.open(url) as store:
        with pytest.raises(PlanError, match="resumed"):
            resume("r1", store)
        run = store.run("r1")
        assert (run.state, store.counts(run.trials[0].id)) == (RunState.INTERRUPTED, {"ok": 1})


def test_a_locked_file_is_waited_for(tmp_path: Path, folder: Path) -> None:
    url = f"sqlite:///{tmp_path / 'assay.db'}?timeout=0.05"
    with begin(url) as store:
        neighbour = sqlite3.connect(tmp_path / "assay.db", isolation_level=None)
        neighbour.execute("BEGIN IMMEDIATE")
        assert store.add("r1", whole_batch(0)) == 0
        neighbour.close()
        store.finish("r1", RunState.COMPLETED, NOON)
        assert len(list(store.executions(store.run("r1").trials[0].id))) == 1


def test_a_lease_counts_every_batch_once(url: str) -> None:
    with begin(url) as store:
        for repetition in range(3):
            store.add("r1", whole_batch(repetition))
        lease = store._leases["r1"]
        with store._engine.connect() as connection:
            assert leases.count_stored_batches(connection, lease) == lease.batches == 3


STEPS = """
import time
from assay import benchmark

@benchmark
def step():
    time.sleep(0.05)
"""


def run(folder: Path, url: str, *arguments: str) -> subprocess.Popen[str]:
    (folder / "steps.py").write_text(STEPS)
    return subprocess.Popen(
        [COMMAND, *arguments, "--quiet", "--db", url],
        cwd=folder,
        env=environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def stored(url: str) -> int:
    try:
        return number(url, "SELECT count(*) FROM executions")
    except sa.exc.DBAPIError:
        return 0


BEGUN = ("run", "steps.py::step", "--warmup", "0", "--repetitions", "60")


@pytest.mark.postgres
def test_a_run_goes_on_when_the_server_is_restarted(server: Postgres, tmp_path: Path) -> None:
    url = server.empty()
    process = run(tmp_path, url, *BEGUN)
    for seen in (5, 25):
        eventually(lambda seen=seen: stored(url) > seen, 60)  # type: ignore[misc]
        server.restart()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    repetitions = number(url, "SELECT count(DISTINCT repetition) FROM executions")
    assert stored(url) == repetitions == 60
    (stored_run,) = sql(url, "SELECT state FROM runs")
    assert stored_run.state == "completed"


@pytest.mark.postgres
def test_a_run_whose_server_stays_away_ends_with_a_message_and_can_be_resumed(
    server: Postgres, tmp_path: Path
) -> None:
    url = server.empty()
    process = run(tmp_path, url, *BEGUN, "--db-retry", "0.5")
    eventually(lambda: stored(url) > 5, 60)
    server.stop()
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2, errors
    assert str(tmp_path / ".assay" / "unsaved-") in errors
    assert "Traceback" not in errors
    server.restart()
    before = stored(url)
    resumed = run(tmp_path, url, "run", "--resume", "last")
    _, errors = resumed.communicate(timeout=120)
    assert resumed.returncode == 0, errors
    assert before < stored(url) == 60
    assert not list((tmp_path / ".assay").glob("unsaved-*"))
