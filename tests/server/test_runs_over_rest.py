"""Runs that are started over the API: in processes of their own, limited in number, and not lost with the server."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.command import Assay
from tests.server.conftest import write_project
from tests.server.service import Service, serving
from tests.services import Postgres

from assay.server.run_status import RunStatus
from assay.server.schemas import RunAnswer
from assay.store.store import Store

PATIENCE = 60.0


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("runs")
    write_project(folder, 'max_runs = 1\nagent_options = ["pause"]')
    with serving(folder) as found:
        yield found


def start(service: Service, agent: str = "slow", **configuration: object) -> str:
    """A run that goes on in the background; its id."""
    asked = {"agent_id": agent, "suite_id": "desk", "configuration": configuration, "async_execution": True}
    answer = service.post("/benchmarks/run", **asked)
    assert answer.status == 202, answer.body
    RunStatus.model_validate(answer.json)
    assert answer.headers["location"] == f"/runs/{answer.json['run_id']}"
    return str(answer.json["run_id"])


def wait(service: Service, run_id: str, is_right: Callable[[Any], bool]) -> Any:
    end = time.monotonic() + PATIENCE
    while not is_right(status := service.get(f"/runs/{run_id}").document):
        assert time.monotonic() < end, status
        time.sleep(0.1)
    return status


def is_over(status: Any) -> bool:
    return bool(status["is_over"])


def test_a_run_is_answered_with_its_results(service: Service) -> None:
    asked = {"repetitions": 2, "limit": 4, "seed": 5, "concurrency": 2, "warmup": 0, "budget_tokens": 1000}
    answer = service.post("/benchmarks/run", agent_id="bad", suite_id="desk", configuration=asked)
    found = RunAnswer.model_validate(answer.document)
    [result] = found.results
    assert (found.status, found.agent_id, found.suite_id) == ("completed", "bad", "desk")
    assert (result.run_id, result.agent_id, result.accuracy_score) == (found.run_id, "bad", 25.0)
    status = service.get(f"/runs/{found.run_id}").document
    assert status["progress"] == {"done": 8, "planned": 8}
    assert status["is_over"]


def test_only_the_named_cases_are_run(service: Service) -> None:
    answer = service.post(
        "/benchmarks/run", agent_id="good", suite_id="desk", configuration={"case": ["c3"], "repetitions": 1}
    )
    assert service.get(f"/runs/{answer.document['run_id']}").document["progress"]["done"] == 1


def test_a_run_that_takes_long_is_answered_with_its_id(tmp_path: Path) -> None:
    write_project(tmp_path, "sync_seconds = 1")
    asked = {"limit": 6, "repetitions": 1, "warmup": 0}
    with serving(tmp_path) as service:
        answer = service.post("/benchmarks/run", agent_id="slow", suite_id="desk", configuration=asked)
        assert (answer.status, answer.json["is_over"]) == (202, False)
        status = wait(service, answer.json["run_id"], is_over)
    assert (status["status"], status["progress"]) == ("completed", {"done": 6, "planned": 6})


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"agent_id": "nobody", "suite_id": "desk"}, 404),
        ({"agent_id": "oracle", "suite_id": "desk"}, 404),
        ({"agent_id": "good", "suite_id": "nothing"}, 404),
        ({"agent_id": "good", "suite_id": "suites/desk.yaml"}, 404),
        ({"agent_id": "good", "suite_id": "noop"}, 404),
        ({"agent_id": "agents.py:good", "suite_id": "desk"}, 404),
        ({"agent_id": "good"}, 422),
        ({"agent_id": "good", "suite_id": "desk", "command": "ls"}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"load": ["x.py"]}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"output_dir": "/tmp"}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"isolation": "inline"}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"repetitions": 0}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"seed": -1}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"budget_usd": 0}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"options": {"target": "os:system"}}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"options": {"pause": "${HOME}"}}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"options": {"pause": ["x"]}}}, 422),
        ({"agent_id": "good", "suite_id": "desk", "configuration": {"case": ["nope"]}}, 422),
    ],
)  # fmt: skip
def test_what_may_not_be_run_is_refused(service: Service, asked: dict[str, object], status: int) -> None:
    answer = service.post("/benchmarks/run", **asked)
    assert (answer.status, answer.json["error"]) == (status, "invalid" if status == 422 else "not_found")


def test_runs_wait_for_each_other_in_a_queue_that_can_be_seen(service: Service) -> None:
    first, second, third = (start(service, limit=6, repetitions=1) for _ in range(3))
    wait(service, first, lambda status: status["status"] == "running")
    queue = service.get("/runs/queue").document
    assert queue["max_runs"] == 1
    assert [one["run_id"] for one in queue["queue"]] == [first, second, third]
    assert [one["position"] for one in queue["queue"]] == [None, 1, 2]
    assert service.post(f"/runs/{second}/cancel").document["status"] == "cancelled"
    assert service.get(f"/runs/{third}").document["position"] == 1
    cancelled = wait(service, first, lambda status: status["progress"]["done"] > 0)
    assert service.post(f"/runs/{first}/cancel").document["status"] in ("cancelling", "cancelled")
    cancelled = wait(service, first, is_over)
    assert cancelled["status"] == "cancelled"
    assert 0 < cancelled["progress"]["done"] < 6
    assert wait(service, third, is_over)["status"] == "completed"
    resumed = service.post(f"/runs/{first}/resume").document
    assert not resumed["is_over"]
    assert wait(service, first, is_over)["progress"] == {"done": 6, "planned": 6}


def test_a_run_that_nobody_asked_for_can_be_read_but_not_cancelled(service: Service) -> None:
    assert service.get("/runs/nothing").status == 404
    assert service.post("/runs/nothing/cancel").status == 404
    assert service.post("/runs/nothing/resume").status == 404
    assert service.get("/runs/nothing/events").status == 404


def test_progress_is_streamed_until_the_run_is_over(service: Service) -> None:
    run_id = start(service, limit=4, repetitions=1)
    place = urlsplit(service.url)
    connection = http.client.HTTPConnection(str(place.hostname), place.port, timeout=PATIENCE)
    connection.request("GET", f"/runs/{run_id}/events")
    answer = connection.getresponse()
    assert answer.getheader("content-type", "").startswith("text/event-stream")
    lines = answer.read().decode().splitlines()
    connection.close()
    told = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    done = [one["progress"]["done"] for one in told]
    assert done == sorted(done)
    assert len(set(done)) > 2
    assert (told[-1]["status"], done[-1]) == ("completed", 4)
    assert [one["is_over"] for one in told] == [False] * (len(told) - 1) + [True]


def _children(pid: int) -> set[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(one) for file in found for one in file.read_text().split()}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_run_goes_on_after_a_restart_of_the_server(project: Path, number: int) -> None:
    with serving(project) as service:
        run_id = start(service, limit=8, repetitions=1, warmup=0)
        wait(service, run_id, lambda status: status["progress"]["done"] >= 2)
        workers = _children(service.process.pid)
        service.stop(number)
    end = time.monotonic() + PATIENCE
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < end, "a worker outlives its server"
        time.sleep(0.1)
    with serving(project) as service:
        status = wait(service, run_id, is_over)
    assert (status["status"], status["progress"]) == ("completed", {"done": 8, "planned": 8})
    with Store.open(f"sqlite:///{project / '.assay' / 'assay.db'}") as store:
        [stored] = store.run(run_id).trials
        cases = [execution.case for execution in store.executions(stored.id)]
    assert sorted(cases) == [f"c{n}" for n in range(8)]


def test_a_worker_that_dies_is_replaced(project: Path) -> None:
    with serving(project) as service:
        run_id = start(service, limit=6, repetitions=1, warmup=0)
        wait(service, run_id, lambda status: status["progress"]["done"] >= 1)
        for pid in _children(service.process.pid):
            os.kill(pid, signal.SIGKILL)
        assert wait(service, run_id, is_over)["progress"] == {"done": 6, "planned": 6}


def test_a_cancelled_run_lets_the_agent_clean_up_and_repeats_nothing_that_was_done(project: Path) -> None:
    calls = project / "calls.txt"
    (project / "agents.py").write_text(
        "import time\n"
        "def note(line):\n"
        f"    with open({str(calls)!r}, 'a') as file: file.write(line + '\\n')\n"
        "def slow(text):\n"
        "    note(f'begin {text}')\n"
        "    try:\n"
        "        time.sleep(1.5)\n"
        "        note(f'done {text}')\n"
        "        return text\n"
        "    finally:\n"
        "        time.sleep(0.7)\n"
        "        note(f'end {text}')\n"
    )
    with serving(project) as service:
        run_id = start(service, limit=4, repetitions=1, warmup=0)
        wait(service, run_id, lambda status: status["progress"]["done"] >= 1)
        service.post(f"/runs/{run_id}/cancel")
        cancelled = wait(service, run_id, is_over)
        assert cancelled["status"] == "cancelled"
        noted = calls.read_text().splitlines()
        # With a second SIGINT the agent would be killed before it has cleaned up.
        assert {line.split()[1] for line in noted if line.startswith("begin")} == {
            line.split()[1] for line in noted if line.startswith("end")
        }
        service.post(f"/runs/{run_id}/resume")
        assert wait(service, run_id, is_over)["progress"] == {"done": 4, "planned": 4}
    done = [line for line in calls.read_text().splitlines() if line.startswith("done")]
    assert sorted(done) == [f"done {number}" for number in range(4)]


def test_a_full_queue_takes_no_more(tmp_path: Path) -> None:
    write_project(tmp_path, "max_runs = 1\nmax_queue = 1")
    with serving(tmp_path) as service:
        start(service, limit=4, repetitions=1)
        answer = service.post("/benchmarks/run", agent_id="good", suite_id="desk", async_execution=True)
        assert (answer.status, answer.json["error"]) == (429, "too_many_requests")
        assert int(answer.headers["retry-after"]) > 0


@pytest.mark.postgres
def test_two_servers_share_one_queue(project: Path, postgres: Postgres) -> None:
    url = postgres.empty()
    write_project(project, "max_runs = 1")
    with serving(project, "--db", url) as first, serving(project, "--db", url) as second:
        ids = [start(service, limit=3, repetitions=1, warmup=0) for service in (first, first, second, second)]
        for run_id in ids:
            assert wait(second, run_id, is_over)["status"] == "completed"
        assert second.get(f"/runs/{ids[0]}").document == first.get(f"/runs/{ids[0]}").document
    listed = Assay(project)("runs", "list", "--json", "--db", url).json
    assert {run["id"]: run["executions"] for run in listed} == dict.fromkeys(ids, 3)


def test_two_hundred_clients_follow_a_run_while_others_are_answered(project: Path) -> None:
    with serving(project) as service, ExitStack() as open_streams:
        asked = {"agent_id": "slow", "suite_id": "desk", "configuration": {"limit": 20}}
        run_id = service.post("/benchmarks/run", async_execution=True, **asked).json["run_id"]
        place = urlsplit(service.url)
        streams = []
        for _ in range(200):
            stream = open_streams.enter_context(socket.create_connection((place.hostname, place.port), 60))
            stream.sendall(f"GET /runs/{run_id}/events HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
            streams.append(stream)
        assert all(b"event: status" in _read_until(stream, b"\n\n\r\n") for stream in streams)
        begun = time.monotonic()
        assert service.get("/health").status == 200
        assert time.monotonic() - begun < 10
        assert service.post(f"/runs/{run_id}/cancel").status == 200
        assert all(b'"is_over": true' in _read_until(stream, b'"is_over": true') for stream in streams)


def _read_until(stream: socket.socket, mark: bytes) -> bytes:
    """What has come when the mark has; everything, if the stream ends before."""
    read = b""
    while mark not in read and (more := stream.recv(65536)):
        read += more
    return read


def test_a_deleted_run_is_gone_and_is_not_executed_again(project: Path) -> None:
    with serving(project) as service:
        asked = {"agent_id": "good", "suite_id": "desk", "configuration": {"limit": 2}}
        run_id = service.post("/benchmarks/run", **asked).document["run_id"]
        assert service.get(f"/runs/{run_id[:6]}").document == service.get(f"/runs/{run_id}").document
        assert Assay(project)("runs", "delete", run_id, "--yes").code == 0
        assert service.get(f"/runs/{run_id}").status == 404
        assert service.post(f"/runs/{run_id}/resume").status == 404
