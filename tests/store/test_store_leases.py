"""A run has one owner: whoever holds its lease in the database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from time import sleep
from typing import Any

import pytest
import sqlalchemy as sa
from tests.command import COMMAND, environment
from tests.execute.carrying import eventually
from tests.store.examples import ENVIRONMENT, NOON, batch, execution, plan_of

import assay.pipeline.lifecycle as lifecycle
from assay.errors import LeaseLost, RunInUse, RunNotFound, StoreError
from assay.execute.signals import Interrupt
from assay.model import Batch, RunState
from assay.pipeline.report import report_of
from assay.store.processes import Owner, current_owner
from assay.store.store import Store

ELSEWHERE = Owner("build-7", 4242, "another machine", "1")


def sql(url: str, statement: str) -> list[sa.Row[Any]]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"), poolclass=sa.NullPool)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL lock_timeout = '5s'")
        result = connection.exec_driver_sql(statement)
        return list(result) if result.returns_rows else []


def expire(url: str) -> None:
    sql(url, "UPDATE leases SET expires = renewed - 1, renewed = renewed - 61")


def pause_between_writes(pid: int, url: str) -> None:
    """Stop a process, and let its lease expire. One that is stopped within a transaction holds a lock: it is let go on for a moment."""
    for _ in range(20):
        os.kill(pid, signal.SIGSTOP)
        try:
            expire(url)
            return
        except sa.exc.DBAPIError:
            os.kill(pid, signal.SIGCONT)
            sleep(0.01)
    raise AssertionError("the process was within a transaction each time")


def begin(store: Store, owner: Owner) -> None:
    store.begin(plan_of(), ENVIRONMENT, "r1", NOON, owner)


@pytest.fixture
def other(url: str) -> Iterator[Store]:
    with Store.open(url) as opened:
        yield opened


def test_a_run_of_another_host_is_refused_until_its_lease_has_expired(store: Store, url: str) -> None:
    begin(store, ELSEWHERE)
    with Store.open(url) as here:
        with pytest.raises(RunInUse, match=r"4242 on build-7.* 20\d\d-.* UTC"):
            here.reopen("r1", current_owner())
        expire(url)
        assert here.reopen("r1", current_owner()).state is RunState.RUNNING
        assert here.owner("r1") == str(current_owner())


def test_a_lease_that_ends_at_no_date_is_said_to_be_damaged(store: Store, url: str) -> None:
    begin(store, ELSEWHERE)
    sql(url, "UPDATE leases SET expires = 1e300")
    with Store.open(url) as here, pytest.raises(StoreError, match=r"'r1'.*damaged"):
        here.reopen("r1", current_owner())


def test_a_process_of_this_machine_that_ended_does_not_block(store: Store, url: str) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    begin(store, replace(current_owner(), pid=ended.pid, process_started="1"))
    with Store.open(url) as here:
        assert here.reopen("r1", current_owner())


def test_a_reused_pid_does_not_block(store: Store, url: str) -> None:
    begin(store, replace(current_owner(), pid=os.getppid(), process_started="0"))
    with Store.open(url) as here:
        assert here.reopen("r1", current_owner())


def test_of_many_that_go_on_with_a_run_at_once_exactly_one_does(store: Store, url: str) -> None:
    begin(store, ELSEWHERE)
    expire(url)
    start = Barrier(5)

    def go_on(_: int) -> bool:
        with Store.open(url) as mine:
            start.wait()
            try:
                mine.reopen("r1", current_owner())
            except RunInUse:
                start.wait()
                return False
            start.wait()
            return True

    with ThreadPoolExecutor(5) as threads:
        assert sorted(threads.map(go_on, range(5))) == [False] * 4 + [True]


def test_an_owner_that_lost_its_lease_writes_nothing_more(store: Store, other: Store, url: str) -> None:
    begin(store, current_owner())
    assert store.add("r1", batch([execution(0)])) == 1
    expire(url)
    other.reopen("r1", current_owner())
    for write in (
        lambda: store.add("r1", batch([execution(1)])),
        lambda: store.add("r1", Batch(versions={0: "2"})),
        lambda: store.set_environment("r1", ENVIRONMENT),
        lambda: store.finish("r1", RunState.COMPLETED, NOON),
    ):
        with pytest.raises(LeaseLost, match="'r1'"):
            write()
    assert other.add("r1", batch([execution(1)])) == 1
    run = other.run("r1")
    assert (run.state, other.counts(run.trials[0].id)) == (RunState.RUNNING, {"ok": 2})


def test_an_expired_lease_that_nobody_took_is_renewed_by_the_next_write(store: Store, url: str) -> None:
    begin(store, current_owner())
    expire(url)
    assert store.add("r1", batch([execution(0)])) == 1
    with Store.open(url) as other, pytest.raises(RunInUse):
        other.reopen("r1", current_owner())


def test_a_finished_run_is_free_at_once(store: Store, other: Store) -> None:
    begin(store, current_owner())
    store.finish("r1", RunState.INTERRUPTED, NOON)
    assert other.reopen("r1", current_owner())


def test_a_live_run_is_deleted_only_by_force_and_its_owner_then_stops(store: Store, other: Store) -> None:
    begin(store, current_owner())
    with pytest.raises(RunInUse, match=r"assay runs delete r1 --force"):
        other.delete("r1")
    with pytest.raises(RunInUse):
        other.finish("r1", RunState.COMPLETED, NOON)
    other.delete("r1", force=True)
    with pytest.raises(RunNotFound):
        store.add("r1", batch([execution(0)]))


def test_a_run_that_stores_nothing_for_long_keeps_its_lease(
    store: Store, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lifecycle, "RENEW_SECONDS", 0.01)
    monkeypatch.setattr("assay.store.leases.RENEW_SECONDS", 0.0)
    begin(store, current_owner())
    interrupt = Interrupt()
    with lifecycle.keep_lease(store, "r1", interrupt):
        expire(url)
        eventually(lambda: bool(sql(url, "SELECT 1 FROM leases WHERE expires > renewed")), 10)
        assert not interrupt()
        sql(url, "UPDATE leases SET token = 'another'")
        eventually(interrupt, 10)
    ((token,),) = sql(url, "SELECT token FROM leases")
    assert token == "another"


def test_a_run_that_ends_by_an_error_is_free_at_once(store: Store, other: Store) -> None:
    begin(store, current_owner())
    with pytest.raises(ZeroDivisionError), lifecycle.keep_lease(store, "r1", Interrupt()):
        raise ZeroDivisionError
    assert other.reopen("r1", current_owner())


AGENT = """
import time
from pathlib import Path
from assay import benchmark

@benchmark
def step():
    with open({calls!r}, "a") as calls:
        calls.write("x")
    time.sleep(0.05)
"""


class Resuming:
    """A run of 40 executions that appends a letter to a file for each, and a database of either kind."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder, self.url, self.calls = folder, url, folder / "calls"
        (folder / "steps.py").write_text(AGENT.format(calls=str(self.calls)))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [COMMAND, *arguments, "--quiet", "--db", self.url],
            cwd=self.folder,
            env=environment({}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> subprocess.Popen[str]:
        process = self.start("run", "steps.py::step", "--repetitions", "40", "--warmup", "0")
        eventually(lambda: self.stored() > 5, 60)
        return process

    def stored(self) -> int:
        try:
            return int(str(sql(self.url, "SELECT count(*) FROM executions")[0][0]))
        except sa.exc.DBAPIError:
            return 0  # there is no schema yet


@pytest.fixture
def resuming(tmp_path: Path, url: str) -> Resuming:
    return Resuming(tmp_path, url)


def test_of_two_resumes_at_once_one_goes_on_and_the_other_is_refused(resuming: Resuming) -> None:
    killed = resuming.begin()
    killed.kill()
    killed.communicate()
    before = resuming.stored()
    resuming.calls.write_text("")
    both = [resuming.start("run", "--resume", "last") for _ in range(2)]
    errors = [process.communicate(timeout=120)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], errors
    refusal = next(text for text, process in zip(errors, both, strict=True) if process.returncode == 2)
    winner = next(process for process in both if process.returncode == 0)
    assert f" {winner.pid} on " in refusal
    assert "Traceback" not in refusal
    assert resuming.stored() == 40
    # A few more than were missing: the worker of the killed run may have finished what it was at.
    assert 40 - before <= len(resuming.calls.read_text()) < 1.3 * (40 - before)


def test_a_paused_owner_stops_when_it_wakes_up_after_its_run_was_taken_over(resuming: Resuming) -> None:
    paused = resuming.begin()
    pause_between_writes(paused.pid, resuming.url)
    taken_over = resuming.start("run", "--resume", "last")
    _, errors = taken_over.communicate(timeout=120)
    assert taken_over.returncode == 0, errors
    os.kill(paused.pid, signal.SIGCONT)
    _, errors = paused.communicate(timeout=120)
    assert paused.returncode == 2, errors
    assert f" {taken_over.pid} on " in errors
    assert "Traceback" not in errors
    assert resuming.stored() == 40
    ((state,),) = sql(resuming.url, "SELECT state FROM runs")
    assert state == "completed"


def test_a_run_whose_process_was_killed_is_listed_as_interrupted(store: Store, url: str) -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    gone = replace(current_owner(), pid=ended.pid, process_started="1")
    ended.wait()
    begin(store, gone)
    assert [run.state for run in store.runs()] == [RunState.INTERRUPTED]
    assert report_of(store, "r1").run.state is RunState.INTERRUPTED


def test_a_run_is_listed_as_running_while_its_lease_lasts(store: Store, url: str) -> None:
    begin(store, current_owner())
    assert [run.state for run in store.runs()] == [RunState.RUNNING]
    expire(url)
    assert [run.state for run in store.runs()] == [RunState.INTERRUPTED]
