"""A search for a capacity that is killed goes on from the steps that it has stored."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.execute.carrying import eventually
from tests.execute.running import LONG, Running
from tests.load.results import result
from tests.wording import Wording

from assay.model.load import Arrivals, Load
from assay.pipeline import capacity
from assay.pipeline.report import report_of
from assay.report.capacity import read_stored_capacity
from assay.simulator.options import SimOptions
from assay.simulator.serve import SimServer
from assay.store.store import Store

_SEARCH = ("--find-capacity", "--duration", "0.4", "--slo", "error_rate<1%", "--seed", "7")


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with SimServer(SimOptions(ttft=0.02, itl=0.002, tokens=5, slots=4)) as server:
        yield f"{server.url}/v1"


def kill_after(running: Running, steps: int, url: str) -> list[tuple[object, ...]]:
    """Kill a search when it has stored so many steps; what it had stored."""
    process = running.start("load", url, *_SEARCH)
    assert eventually(lambda: len(running.executions) >= steps or process.poll() is not None, LONG)
    process.kill()
    process.communicate()
    assert running.state == "running"
    return started(running)


def started(running: Running) -> list[tuple[object, ...]]:
    return running.rows("SELECT repetition, started FROM executions ORDER BY repetition")


def answer(running: Running) -> dict[str, Any]:
    with Store.open(f"sqlite:///{running.database}") as store:
        document = read_stored_capacity(report_of(store, "last").trials)
    assert document is not None
    return dict(document)


@pytest.mark.slow
def test_a_killed_search_goes_on_from_its_stored_steps(running: Running, url: str, wording: Wording) -> None:
    before = kill_after(running, 4, url)

    done = running("run", "--resume", "last")

    assert done.returncode == 0, done.stderr
    assert running.state == "completed"
    after = started(running)
    assert after[: len(before)] == before
    assert [repetition for repetition, _ in after] == list(range(len(after)))
    assert len(after) > len(before)
    shown = answer(running)
    assert shown["sustained_rate"] > 0
    assert len(shown["steps"]) <= len(after)
    assert shown["steps"][0]["concurrency"] == 1
    (remark,) = (text for text in shown["warnings"] if "resumed" in text)
    assert str(len(before)) in remark
    wording(remark, numbers=False)

    again = running("run", "--resume", "last")

    assert again.returncode == 0, again.stderr
    assert started(running) == after


@pytest.mark.slow
def test_a_search_of_an_earlier_version_is_repeated_within_its_run(
    running: Running, url: str, wording: Wording
) -> None:
    before = kill_after(running, 3, url)
    with sqlite3.connect(running.database) as connection:
        connection.execute("UPDATE executions SET detail = NULL")

    done = running("run", "--resume", "last")

    assert done.returncode == 0, done.stderr
    assert started(running)[: len(before)] == before
    shown = answer(running)
    assert shown["steps"][0]["concurrency"] == 1
    assert len(shown["steps"]) <= len(started(running)) - len(before)
    (remark,) = (text for text in shown["warnings"] if "resumed" in text)
    wording(remark, numbers=False)


def test_a_result_is_read_back_as_it_was_stored() -> None:
    load = Load(Arrivals.CONSTANT, stages=((2.0, 5.0, 5.0),), seconds=2.0)
    measured = result()
    step = json.loads(json.dumps(capacity._build_step(load, measured)))
    assert step["load"] == capacity._describe_load(load)
    assert capacity._read_result(step["result"]) == capacity._read_result(
        capacity._build_step(load, measured)["result"]
    )
    for name in ("throughput", "times", "held", "moments", "errors", "is_cut"):
        assert getattr(capacity._read_result(step["result"]), name) == getattr(measured, name), name
