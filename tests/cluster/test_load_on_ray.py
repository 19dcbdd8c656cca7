"""Load generators on the nodes of a Ray cluster: one result, no secret on disk, and no load that is smaller than it says."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.cluster.conftest import SimulatedCluster
from tests.command import Assay, AssayInline
from tests.load.faulty import ANSWER, always, faulty, until
from tests.wording import Wording

from assay.analysis.load.judgement import judge_load
from assay.load.build import LoadOptions, build_prepared_load, spread_load
from assay.model.load import LoadResult
from assay.spec.settings import find_settings

SECRET = "a-key-that-nobody-may-read-7341"


def is_alive(node: Any) -> bool:
    import ray

    return any(known["Alive"] for known in ray.nodes() if known["NodeID"] == node.node_id)


@pytest.fixture
def second_node(ray_cluster: SimulatedCluster) -> Iterator[Any]:
    """A node besides those that there are; gone after the test."""
    node = ray_cluster.add_node()
    until(lambda: is_alive(node))
    yield node
    # One that the test has killed is not there any more.
    with contextlib.suppress(KeyError):
        ray_cluster.kill_node(node)
    until(lambda: not is_alive(node))


def find_load_workers(cluster: SimulatedCluster) -> list[int]:
    """The workers of load generators on this cluster's nodes; other tests may have workers of their own meanwhile."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        with contextlib.suppress(psutil.Error):
            is_worker = "assay.load.worker" in (process.info["cmdline"] or ())
            if is_worker and process.environ().get("TMPDIR") == cluster.temporary:
                found.append(process.pid)
    return found


def measure(url: str, **given: Any) -> LoadResult:
    options = LoadOptions(url, executor="ray", timeout="30s", **given)
    with spread_load(options, build_prepared_load(options), find_settings(Path.cwd())) as asked:
        return judge_load(asked.measure(), asked.load)


def test_each_node_sends_its_share_and_no_secret_is_written(
    ray_cluster: SimulatedCluster, second_node: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", SECRET)
    with faulty(always(ANSWER)) as server:
        found = measure(
            server.url, rate=100.0, requests=81, generators=2, header=("Authorization: Bearer ${KEY}",)
        )
        assert len(server.requests) == 81
        assert all(SECRET.encode() in request for request in server.requests)
    assert sorted(one.requests_sent for one in found.generators) == [40, 41]
    assert len({one.node for one in found.generators}) == 2
    assert found.requests_completed == 81
    # All nodes are on this machine, so their clocks are the same.
    assert all(abs(one.clock_offset) < 0.1 and 0 < one.clock_uncertainty < 0.5 for one in found.generators)
    written = [file for file in Path(ray_cluster.folder).rglob("*") if file.is_file()]
    assert written
    assert not [file for file in written if SECRET.encode() in file.read_bytes()]


def test_a_node_that_dies_ends_the_load(ray_cluster: SimulatedCluster, second_node: Any) -> None:
    with faulty(always(ANSWER)) as server:

        def kill_node() -> None:
            while len(server.requests) < 40:
                time.sleep(0.01)
            ray_cluster.kill_node(second_node)

        killing = threading.Thread(target=kill_node)
        killing.start()
        found = measure(server.url, rate=100.0, duration="600s")
        killing.join()
    assert found.aborted is not None
    assert [bool(one.lost) for one in found.generators].count(True) == 1
    assert found.workers_lost == 1
    assert not found.is_valid
    # What the others sent until it was noticed is not part of the load that was asked for.
    assert found.throughput.value == pytest.approx(100, rel=0.15)


def test_without_an_address_all_generators_share_this_machine(assay: Assay) -> None:
    with faulty(always(ANSWER)) as server:
        words = ("--executor", "ray", "--generators", "2", "--rate", "100", "--requests", "21", "--json")
        done = assay("load", server.url, *words)
    found = json.loads(done.out)
    assert found["requests_completed"] == 21
    assert sorted(one["requests_sent"] for one in found["generators"]) == [10, 11]
    assert len({one["node"] for one in found["generators"]}) == 2


def test_more_generators_than_nodes_are_refused(
    ray_cluster: SimulatedCluster, assay_inline: AssayInline, wording: Wording
) -> None:
    with faulty(always(ANSWER)) as server:
        done = assay_inline("load", server.url, "--executor", "ray", "--generators", "99")
        assert not server.requests
    assert done.code == 2
    assert "99 load generators" in done.refusal
    wording(done.refusal.replace(ray_cluster.address, "HOST:PORT"), numbers=False)


def test_a_setting_that_the_executor_does_not_have_is_refused(
    ray_cluster: SimulatedCluster, assay_inline: AssayInline
) -> None:
    words = ("load", "http://127.0.0.1:1/v1", "--executor", "ray", "--set", "executor.adress=h:1")
    assert "'address'" in assay_inline(*words).refusal


def test_workers_on_nodes_end_with_a_load_that_is_stopped(ray_cluster: SimulatedCluster) -> None:
    seen: list[int] = []

    def is_stopped() -> bool:
        if len(server.requests) > 10 and not seen:
            seen.extend(find_load_workers(ray_cluster))
        return bool(seen)

    with faulty(always(ANSWER)) as server:
        options = LoadOptions(server.url, executor="ray", rate=50.0, duration="600s")
        with spread_load(options, build_prepared_load(options), find_settings(Path.cwd())) as asked:
            found = replace(asked, sites=asked.sites[:1]).measure(is_stopped=is_stopped)
    assert found.is_cut
    assert found.aborted is None
    assert found.requests_completed >= 10
    until(lambda: not find_load_workers(ray_cluster))
