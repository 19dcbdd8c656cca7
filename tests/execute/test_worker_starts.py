"""A worker that is killed while it starts costs nothing, or is counted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.execute.carrying import trial
from tests.execute.conftest import Carry
from tests.execute.running import Running

from assay.builtin.executors import local
from assay.execute import supervise, worker_process
from assay.execute.worker_process import WorkerProcess
from assay.model import Status

KILLING = """
import sys
import assay.execute.supervise as supervise

take, taken = supervise.take_process, []

def take_process(*arguments):
    taken.append(take(*arguments))
    if len(taken) - 1 in range({first}, {end}):
        taken[-1].process.kill()
    return taken[-1]

supervise.take_process = take_process
from assay.cli.main import main
main()
"""


def kill_workers(monkeypatch: pytest.MonkeyPatch, which: range) -> None:
    """Send SIGKILL to these workers, counted from 0, before they have an order that they could begin with."""
    taken: list[WorkerProcess] = []

    def take_process(*arguments: object) -> WorkerProcess:
        taken.append(worker_process.take_process(*arguments))  # type: ignore[arg-type]
        if len(taken) - 1 in which:
            taken[-1].process.kill()
        return taken[-1]

    monkeypatch.setattr(supervise, "take_process", take_process)


@pytest.mark.parametrize("which", [range(1), range(1, 3), range(2, 6)])
def test_a_worker_that_is_killed_while_it_starts_is_started_again(
    carry: Carry, monkeypatch: pytest.MonkeyPatch, which: range
) -> None:
    kill_workers(monkeypatch, which)

    carried = carry(trial(deed="nothing", measured=4, processes=3))

    assert carried.statuses == [Status.OK] * 12
    assert len(carried.remarks) == len(which)
    assert all("SIGKILL" in text for text in carried.remarks)


def test_each_execution_of_a_worker_that_never_starts_is_a_harness_error(
    carry: Carry, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_workers(monkeypatch, range(local.MOST_STARTS))

    carried = carry(trial(deed="nothing", warmup=1, measured=4))

    assert [place[2:] for place in carried.places] == [("warmup", 0), *(("measured", n) for n in range(4))]
    assert carried.statuses == [Status.HARNESS_ERROR] * 5


def test_a_run_with_missing_executions_is_incomplete_until_it_is_resumed(tmp_path: Path) -> None:
    running = Running(tmp_path)
    spec = running.spec(
        experiment="deeds", params={"deed": "nothing"}, iterations={"measured": 3}, processes=3
    )
    command = (sys.executable, "-c", KILLING.format(first=1, end=1 + local.MOST_STARTS))

    process = running.start("run", spec, command=command)
    out, err = process.communicate(timeout=120)

    assert process.returncode == 1, err
    assert running.state == "incomplete"
    assert running.statuses == ["ok"] * 3 + ["harness_error"] * 3
    (warning,) = [one for one in json.loads(out)["warnings"] if one["code"] == "incomplete"]
    assert "3 missing" in warning["message"]
    assert "assay run --resume" in warning["hint"]
    resumed = running("run", "--resume", "last")
    assert resumed.returncode == 0, resumed.stderr
    assert running.state == "completed"
    assert running.statuses == ["ok"] * 9
