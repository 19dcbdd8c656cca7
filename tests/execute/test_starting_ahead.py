"""The first worker of a run starts before its job is known, and is used only where a new one would be no different."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.execute.carrying import trial

from assay.builtin.executors.local import Local
from assay.builtin.executors.ray.node import NodeOrder, NodeWorker
from assay.builtin.executors.ray.package import Layout
from assay.builtin.executors.ray.software import find_versions
from assay.errors import AssayError
from assay.execute import worker_process
from assay.execute.attempt import attempt
from assay.execute.guardian import Guardian
from assay.execute.jobs import Assignment, jobs
from assay.execute.wire import encode_order
from assay.execute.worker_process import ATTEMPT, WorkerProcess, start_ahead, take_guardian, take_process
from assay.model import Isolation, Job, Order, Plan

PLAN = Plan("test", (trial(deed="nothing"),), 7, Order.INTERLEAVED)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[WorkerProcess]]:
    """Every worker that is started, on a machine with two processors; those that are left are ended."""
    workers: list[WorkerProcess] = []

    class Noted(WorkerProcess):
        def __init__(self, attempt: str, guardian: Guardian, seed: int, *words: str) -> None:
            super().__init__(attempt, guardian, seed, *words)
            workers.append(self)

    monkeypatch.setattr(worker_process, "WorkerProcess", Noted)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 1})
    yield workers
    for worker in workers:
        worker.process.kill()
        worker.process.wait()


def test_the_worker_that_was_started_ahead_gets_the_first_job(started: list[WorkerProcess]) -> None:
    with start_ahead(PLAN):
        guardian = take_guardian()
        taken = take_process(ATTEMPT, guardian, PLAN.seed)
        following = take_process(ATTEMPT, guardian, PLAN.seed + 1)

    assert started == [taken, following]
    assert taken.process.poll() is None
    for worker in started:
        worker.dismiss()
    guardian.close()


@pytest.mark.parametrize("difference", ["seed", "variable", "guardian"])
def test_a_worker_that_was_started_otherwise_is_ended(
    started: list[WorkerProcess], monkeypatch: pytest.MonkeyPatch, difference: str
) -> None:
    with start_ahead(PLAN):
        guardian = Guardian() if difference == "guardian" else take_guardian()
        if difference == "variable":
            monkeypatch.setenv("ASSAY_TEST_SETTING", "changed since")
        taken = take_process(ATTEMPT, guardian, PLAN.seed + (difference == "seed"))

    ahead, new = started
    assert taken is new
    assert ahead.process.returncode is not None
    taken.dismiss()
    guardian.close()


def test_a_worker_that_nobody_takes_is_ended(started: list[WorkerProcess]) -> None:
    with start_ahead(PLAN):
        pass

    (worker,) = started
    assert worker.process.returncode is not None


def test_a_run_that_is_interrupted_before_its_first_job_ends_in_order(started: list[WorkerProcess]) -> None:
    with start_ahead(PLAN):
        assert list(Local(1).map(attempt, iter(()), lambda: True)) == []

    (worker,) = started
    assert worker.process.returncode is not None


def test_an_error_before_the_first_job_is_the_one_that_is_raised(started: list[WorkerProcess]) -> None:
    def fail() -> Iterator[Job]:
        raise AssayError("no such case")
        yield

    with pytest.raises(AssayError, match="no such case"), start_ahead(PLAN):
        list(Local(1).map(attempt, fail(), lambda: False))

    (worker,) = started
    assert worker.process.returncode is not None


def test_a_worker_whose_runner_is_gone_ends_by_itself(started: list[WorkerProcess]) -> None:
    guardian = Guardian()
    worker = worker_process.WorkerProcess(ATTEMPT, guardian, 1)

    worker.close()  # as the kernel does when the runner dies

    assert worker.process.wait(30) == 0
    guardian.close()


def test_work_in_the_runner_itself_starts_nothing_ahead(started: list[WorkerProcess]) -> None:
    inline = replace(PLAN, trials=(trial(deed="nothing", isolation=Isolation.INLINE),))

    with start_ahead(inline):
        assert started == []


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NodeWorker:
    """What runs on each node of a cluster, without one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return NodeWorker()


def test_a_node_starts_its_first_worker_before_it_has_a_job(
    started: list[WorkerProcess], node: NodeWorker, tmp_path: Path
) -> None:
    node.prepare(find_versions(), b"", Layout(working=str(tmp_path)), {}, PLAN.seed)
    (ahead,) = started
    (job,) = jobs(Assignment(PLAN, "run", {0: str(tmp_path / "trial")}, {}), set())

    node.start(ATTEMPT, [NodeOrder(1, 0, b"".join(encode_order(job, "")))])
    while not (results := node.collect(10)).done:
        pass

    assert results.problem == ""
    assert started == [ahead]
    assert ahead.process.returncode == 0
    node.stop(is_graceful=True)


def test_a_node_that_gets_no_job_ends_its_first_worker(
    started: list[WorkerProcess], node: NodeWorker
) -> None:
    node.prepare(find_versions(), b"", Layout(), {}, PLAN.seed)
    (ahead,) = started

    node.stop(is_graceful=True)

    assert ahead.process.returncode is not None


def test_planning_an_experiment_loads_no_sqlalchemy() -> None:
    code = (
        "import sys\nfrom pathlib import Path\nfrom assay.pipeline.planning import prepare\n"
        "from assay.spec.settings import find_settings\n"
        "prepare('noop', find_settings(Path.cwd()), lambda: 1 / 0)\nprint('sqlalchemy' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_a_run_of_one_execution_loads_no_numpy(tmp_path: Path) -> None:
    code = (
        "import atexit, sys\nfrom assay.cli.main import main\n"
        "atexit.register(lambda: print('numpy' in sys.modules, file=sys.stderr))\n"
        "main(['run', 'noop', '--json', '-q'])"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stderr == "False\n"
