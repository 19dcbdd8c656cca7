"""Several real processes on one database at the same time."""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.store.examples import GPT, NOP, begin, small_suite, suite_plan

from assay.store.store import Store

WRITER = """
import sys
from tests.store.examples import batch, begin, execution
from assay.store.store import Store

url, run_id = sys.argv[1:]
with Store.open(url) as store:
    begin(store, run_id)
    for start in range(0, 2000, 50):
        store.add(run_id, batch(map(execution, range(start, start + 50))))
"""


def _start(url: str, run_id: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, url, run_id],
        stderr=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": ":".join(path for path in sys.path if path)},
    )


def _wait(writers: list[subprocess.Popen[str]]) -> None:
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors


def test_processes_that_open_and_write_at_once_lose_nothing(url: str) -> None:
    _wait([_start(url, f"r{number}") for number in range(3)])
    with Store.open(url) as store:
        assert sorted((run.id, run.executions) for run in store.runs()) == [
            ("r0", 2000),
            ("r1", 2000),
            ("r2", 2000),
        ]
        for run in store.runs():
            (trial,) = store.run(run.id).trials
            assert list(store.series(trial.id)["seconds"].repetitions) == list(range(2000))


def _come_and_go(url: str, name: str) -> None:
    with Store.open(url) as store:
        for number in range(12):
            begin(store, f"{name}{number}", suite_plan(small_suite(), GPT, NOP))
            if number % 4 == 0:
                store.register_suite(small_suite(hash=f"s{number}"))
                store.register_agents([NOP, GPT])
            assert store.suite_of(f"{name}{number}") == small_suite()
            store.delete(f"{name}{number}")


def test_runs_that_come_and_go_at_once_do_not_take_each_others_suite_away(url: str) -> None:
    Store.open(url).close()
    with ThreadPoolExecutor(3) as threads:
        for ended in [threads.submit(_come_and_go, url, name) for name in "abc"]:
            ended.result()
    with Store.open(url) as store:
        assert store.suite("small") == small_suite(hash="s8")
        assert store.runs() == []


@pytest.mark.parametrize("stored", [50, 700])
def test_a_writer_that_is_killed_leaves_whole_batches(url: str, stored: int) -> None:
    with Store.open(url) as store:
        writer = _start(url, "killed")
        while writer.poll() is None and not _stored(store) >= stored:
            time.sleep(0.002)
        writer.kill()
        writer.communicate()
        _settled(store)
        (trial,) = store.run("killed").trials
        values = list(store.series(trial.id)["seconds"].values)
        assert stored <= len(values) == _stored(store)
        assert len(values) % 50 == 0
        assert values == [0.5 + repetition for repetition in range(len(values))]


def _settled(store: Store) -> None:
    """A server may still be finishing what it was told before its client died."""
    seen = -1
    while seen != (seen := _stored(store)):
        time.sleep(0.3)


def _stored(store: Store) -> int:
    return sum(run.executions for run in store.runs())
