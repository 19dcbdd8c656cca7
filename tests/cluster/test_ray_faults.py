"""What happens to a run on a Ray cluster when something fails: nothing that was finished is lost, and nothing is stored twice."""

from __future__ import annotations

import contextlib
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cluster.conftest import SimulatedCluster
from tests.cluster.suites import (
    build_slow_agent,
    count_executions,
    find_workers,
    read_executions,
    read_nodes,
    start,
    wait_for_executions,
    wait_until,
    write_suite,
)
from tests.command import Assay, AssayInline, environment
from tests.services import Postgres

from assay.builtin.executors.ray import fleet
from assay.builtin.executors.ray.cluster import connect
from assay.builtin.executors.ray.fleet import RemoteNode
from assay.builtin.executors.ray.software import find_versions
from assay.model import RunState, Status
from assay.store.store import Store

pytestmark = [pytest.mark.usefixtures("ray_cluster")]


def count_measured(executions: list[Any]) -> Counter[tuple[str, int]]:
    """How often each case and repetition was measured."""
    return Counter((case, repetition) for _, phase, case, repetition, *_ in executions if phase == "measured")


def kill_actor(worker: psutil.Process) -> None:
    """Ray's process above a worker and its reaper, as a lack of memory does; all may be gone already."""
    with contextlib.suppress(psutil.NoSuchProcess):
        for above in worker.parents():
            if "ray::NodeWorker" in " ".join(above.cmdline()):
                above.kill()


@pytest.mark.slow
def test_nodes_and_actors_are_killed_and_every_execution_is_stored_once(
    assay: Assay, ray_cluster: SimulatedCluster
) -> None:
    """Eight nodes, each killed at a random moment while another one joins in its place, and Ray's process on a node twice."""
    flag = assay.folder / "enough"
    write_suite(assay, 1000, build_slow_agent(flag))
    nodes = [ray_cluster.add_node(1) for _ in range(2)]
    chance = random.Random(1)
    killed = 0
    words = ("run", "suite.yaml", "--repetitions", "3", "--executor", "ray", "--json")
    with start(assay, *words, "--set", f"executor.address={ray_cluster.address}") as run:
        wait_for_executions(assay, 1)
        for number in range(10):
            if number % 5 == 4:
                wait_until(lambda: bool(find_workers(ray_cluster)), 60)
                kill_actor(chance.choice(find_workers(ray_cluster)))
            else:
                nodes.append(ray_cluster.add_node(1))
                time.sleep(chance.uniform(0, 1))
                ray_cluster.kill_node(nodes.pop(chance.randrange(2)))
                killed += 1
            wait_for_executions(assay, count_executions(assay) + 10)
            assert run.poll() is None
        # More than the head and the two that there were at first: those that joined later have work too.
        wait_until(lambda: len(read_nodes(assay)) > 3, 60)
        flag.touch()
        assert run.wait(240) == 0, (assay.folder / "log.txt").read_text()
    for node in nodes:
        ray_cluster.kill_node(node)
    wait_until(lambda: len(connect(None).nodes()) == 1, 60)

    assert killed == 8
    (executions,) = read_executions(assay).values()
    planned = {(f"c{case}", repetition): 1 for case in range(1000) for repetition in range(3)}
    assert count_measured(executions) == planned
    assert {status for *_, status, _, _ in executions} == {Status.OK}


@pytest.mark.real_starts
def test_a_killed_driver_leaves_nothing_behind_and_the_run_resumes_from_another_folder(
    assay: Assay, ray_cluster: SimulatedCluster, tmp_path_factory: pytest.TempPathFactory
) -> None:
    flag = assay.folder / "enough"
    write_suite(assay, 100, build_slow_agent(flag))
    address = ("--set", f"executor.address={ray_cluster.address}")
    with start(assay, "run", "suite.yaml", "--executor", "ray", *address) as run:
        wait_for_executions(assay, 1)
        assert find_workers(ray_cluster), "the workers are found by their command line"
        run.kill()
    wait_until(lambda: not find_workers(ray_cluster), 30)
    wait_until(lambda: not list(Path(ray_cluster.temporary).glob("assay-node-*")), 30)
    before = {execution[:4] for execution in next(iter(read_executions(assay).values()))}
    flag.touch()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    database = f"sqlite:///{assay.folder}/.assay/assay.db"
    done = assay("run", "--resume", "last", *address, "--db", database, cwd=elsewhere)

    (executions,) = read_executions(assay).values()
    assert done.code == 0, done.err
    assert 0 < len(before) < len(executions)
    assert len([e for e in executions if e[1] == "measured"]) == len(
        {e[:4] for e in executions if e[1] == "measured"}
    )
    assert len([e for e in executions if e[1] == "measured"]) == 200


@pytest.mark.postgres
def test_a_restart_of_the_database_costs_a_run_on_a_cluster_nothing(
    assay: Assay, ray_cluster: SimulatedCluster, postgres: Postgres
) -> None:
    flag = assay.folder / "enough"
    write_suite(assay, 200, build_slow_agent(flag))
    url = postgres.empty()

    def read() -> list[Any]:
        with Store.open(url) as store:
            runs = store.runs(limit=1)
            return [
                e for run in runs for trial in store.run(run.id).trials for e in store.executions(trial.id)
            ]

    words = ("run", "suite.yaml", "--repetitions", "1", "--executor", "ray", "--db", url)
    with start(assay, *words, "--set", f"executor.address={ray_cluster.address}") as run:
        wait_until(lambda: "Workers run" in (assay.folder / "log.txt").read_text(), 60)
        wait_until(lambda: len(read()) > 3, 60)
        postgres.restart()
        flag.touch()
        assert run.wait(120) == 0, (assay.folder / "log.txt").read_text()

    measured = [execution for execution in read() if execution.phase == "measured"]
    assert sorted(execution.case for execution in measured) == sorted(f"c{n}" for n in range(200))
    assert {execution.status for execution in measured} == {Status.OK}


def test_a_full_object_store_does_not_hold_up_large_cases_and_answers(
    assay_inline: AssayInline, ray_cluster: SimulatedCluster
) -> None:
    import ray

    agent = '{name: loud, type: python, target: "agents.py:loud"}'
    write_suite(assay_inline, 4, f"agents: [{agent}]\n")
    lines = [f'{{"id": "c{n}", "input": "{n}{"x" * 8_000_000}", "expected": "1"}}' for n in range(4)]
    assay_inline.write("cases.jsonl", "\n".join(lines))
    held = [ray.put(bytes(45 * 2**20)) for _ in range(2)]
    done = assay_inline("run", "suite.yaml", "--repetitions", "1", "--executor", "ray", "--json")
    del held

    (executions,) = read_executions(assay_inline).values()
    assert done.code == 0, done.err
    assert count_measured(executions) == {(f"c{n}", 0): 1 for n in range(4)}
    assert {status for *_, status, _, _ in executions} == {Status.OK}


def test_work_that_cannot_be_sent_is_recorded_with_the_reason(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray raises this where neither memory nor disk have room for an argument."""
    from ray.exceptions import ObjectStoreFullError

    class FullStore:
        def remote(self, *_: object) -> None:
            raise ObjectStoreFullError("no room")

    class Actor:
        def __init__(self, actor: Any) -> None:
            self.start, self.collect, self.stop = FullStore(), actor.collect, actor.stop

    def start(node: RemoteNode, *words: Any) -> str:
        actor, node.actor = node.actor, Actor(node.actor)
        try:
            return original(node, *words)
        finally:
            node.actor = actor

    original = RemoteNode.start
    monkeypatch.setattr(RemoteNode, "start", start)
    write_suite(assay_inline, 4)
    done = assay_inline("run", "suite.yaml", "--executor", "ray", "--json")

    assert done.code == 1
    with Store.open(f"sqlite:///{assay_inline.folder}/.assay/assay.db") as store:
        made = [e for trial in store.run("last").trials for e in store.executions(trial.id)]
    assert {execution.status for execution in made} == {Status.HARNESS_ERROR}
    (text,) = {execution.error for execution in made}
    assert "object store" in str(text)


def test_a_node_with_another_version_is_not_used_and_a_run_without_nodes_ends(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_suite(assay_inline, 4)
    here = find_versions()
    monkeypatch.setattr(fleet, "find_versions", lambda: dict.fromkeys(here, "0.0.1"))

    done = assay_inline("run", "suite.yaml", "--executor", "ray", "--json")

    assert done.code == 1
    assert {e[4] for made in read_executions(assay_inline).values() for e in made} == {Status.HARNESS_ERROR}
    assert f"it has Assay {here['Assay']}, Python {here['Python']}, Ray {here['Ray']}" in caplog.text


@pytest.fixture
def bare_node(ray_cluster: SimulatedCluster, tmp_path: Path) -> Iterator[str]:
    """The name of a node on which Assay lacks a part of itself, as one does that was installed without its packages."""
    (tmp_path / "bare" / "assay").mkdir(parents=True)
    (tmp_path / "bare" / "assay" / "__init__.py").touch()
    node = ray_cluster.add_node(1, env_vars={"PYTHONPATH": str(tmp_path / "bare")})
    wait_until(lambda: len(connect(None).nodes()) == 2, 60)
    yield next(known.name for known in connect(None).nodes() if known.id == node.node_id)
    ray_cluster.kill_node(node)
    wait_until(lambda: len(connect(None).nodes()) == 1, 60)


def test_a_node_that_lacks_a_package_is_named_and_not_used(
    assay_inline: AssayInline, bare_node: str, caplog: pytest.LogCaptureFixture
) -> None:
    write_suite(assay_inline, 4)
    checked = assay_inline("doctor", "--executor", "ray", "--json")
    done = assay_inline("run", "suite.yaml", "--executor", "ray", "--json")

    problems = {node["name"]: node["problems"] for node in json.loads(checked.out)["nodes"]}
    assert "package is missing" in problems[bare_node][0]
    assert [bool(found) for name, found in problems.items() if name != bare_node] == [False]
    assert done.code == 0, done.err
    assert bare_node not in read_nodes(assay_inline)
    assert f"Node {bare_node} is not used: a package is missing" in caplog.text


OTHER_RAY = "import ray; ray.__version__ = '1.0.0'; from assay.cli.main import main; main()"


def test_a_cluster_of_another_version_of_ray_is_refused(assay: Assay, ray_cluster: SimulatedCluster) -> None:
    """The versions are compared by Ray itself, which is told that it is another one here."""
    words = ("run", "noop", "--executor", "ray", "--set", f"executor.address={ray_cluster.address}")
    done = subprocess.run(
        [sys.executable, "-c", OTHER_RAY, *words],
        cwd=assay.folder,
        env=environment({}),
        capture_output=True,
        text=True,
    )

    assert done.returncode == 2
    assert "Ray: 1.0.0" in done.stderr
    assert f"Ray: {find_versions()['Ray']}" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_cluster_that_asks_for_a_token_is_explained(
    assay_inline: AssayInline, ray_cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray raises this where a head was started with a token, and says only in the cause what is wrong."""
    import ray

    def refuse(**_: object) -> None:
        cause = RuntimeError("Last connection error: AuthenticationError: RPC error: InvalidAuthToken")
        raise ConnectionError(f"Failed to connect to Ray cluster at {ray_cluster.address}") from cause

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", refuse)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    words = ("run", "noop", "--executor", "ray", "--set", f"executor.address={ray_cluster.address}")

    assert "RAY_AUTH_MODE=token" in assay_inline(*words).refusal


def test_a_cluster_that_is_started_for_a_run_leaves_nothing_in_the_home_folder(
    assay: Assay, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Ray would write a token there, and later clusters of the machine would ask for it."""
    home = tmp_path_factory.mktemp("home")
    done = assay("run", "noop", "--executor", "ray", "--set", "executor.cpus=1", HOME=str(home))

    assert done.code == 0, done.err
    assert not (home / ".ray").exists()


@pytest.mark.real_starts
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_reaches_the_nodes_and_what_agents_have_finished_is_stored(
    assay: Assay,
    ray_cluster: SimulatedCluster,
    number: signal.Signals,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    import ray

    finished = tmp_path_factory.mktemp("finished") / "executions"
    agent = '{name: counted, type: python, target: "agents.py:counted", params: {file: "file://FILE"}}'
    write_suite(assay, 4000, f"agents: [{agent.replace('FILE', str(finished))}]\n")
    address = ("--set", f"executor.address={ray_cluster.address}")
    words = ("--executor", "ray", "--warmup", "0")
    with start(assay, "run", "suite.yaml", *words, *address) as run:
        wait_for_executions(assay, 50)
        run.send_signal(number)
        assert run.wait(30) == 128 + number

    wait_until(lambda: not find_workers(ray_cluster), 10)
    with Store.open(f"sqlite:///{assay.folder}/.assay/assay.db") as store:
        assert store.run("last").state is RunState.INTERRUPTED
    # Two workers, each of which may have been in the middle of an execution.
    (executions,) = read_executions(assay).values()
    stored = sum(status is Status.OK for *_, status, _, _ in executions)
    assert 0 <= finished.stat().st_size - stored <= 2
    # Ray keeps the command line of a driver; it may have the password of a database.
    from ray._private import state

    assert "suite.yaml" not in str(state.jobs())
    assert ray.is_initialized()


@pytest.mark.slow
def test_a_node_whose_actor_hangs_is_given_up(
    assay_inline: AssayInline, ray_cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray sees nothing of it: the node is alive, and so is the process."""
    monkeypatch.setattr(fleet, "ANSWER_SECONDS", 3.0)
    write_suite(assay_inline, 400, build_slow_agent(assay_inline.folder / "enough"))
    stopped: list[psutil.Process] = []

    def stop_actor() -> None:
        wait_until(lambda: bool(find_workers(ray_cluster)), 60)
        above = [parent for worker in find_workers(ray_cluster) for parent in worker.parents()]
        stopped.extend(one for one in above if "ray::NodeWorker" in " ".join(one.cmdline()))
        stopped[0].suspend()
        (assay_inline.folder / "enough").touch()

    stopping = threading.Thread(target=stop_actor)
    stopping.start()
    done = assay_inline("run", "suite.yaml", "--repetitions", "1", "--executor", "ray", "--json")
    stopping.join()

    assert done.code == 0, done.err
    (executions,) = read_executions(assay_inline).values()
    assert count_measured(executions) == {(f"c{n}", 0): 1 for n in range(400)}
    wait_until(lambda: not stopped[0].is_running(), 30)
    wait_until(lambda: not find_workers(ray_cluster), 30)
