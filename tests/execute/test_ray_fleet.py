"""What the driver of the executor `ray` does about nodes that fail, without a cluster: the test answers the calls of actors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.execute.fake_ray import FakeNodes, FakeRay, answer
from tests.execute.test_shares import build_job

from assay.builtin.executors.ray import executor, fleet
from assay.builtin.executors.ray.cluster import HeadUnreachable, Node
from assay.builtin.executors.ray.executor import Dispatch, Ray
from assay.builtin.executors.ray.fleet import Fleet
from assay.builtin.executors.ray.node import NodeResults
from assay.builtin.executors.ray.package import Layout, Package
from assay.builtin.executors.ray.shared_job import MOST_LOSSES
from assay.execute.attempt import attempt
from assay.execute.wire import encode_batch
from assay.model import Batch, Execution, Isolation, Job, Phase, ResourceRequest, Status
from assay.testing.samples import sample_job

ray = pytest.importorskip("ray", reason="needs the extra 'ray'")
ANTENNA = ResourceRequest(custom={"antenna": 1.0})


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeRay:
    monkeypatch.setattr(fleet, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(fleet, "OTHER_RUNS_SECONDS", 0.0)
    monkeypatch.setattr(fleet, "RETRY_SECONDS", 0.0)
    return FakeRay(monkeypatch)


def build_node(number: int = 0, **resources: float) -> Node:
    return Node(f"{number + 1:056x}", f"n{number}", 2, {"CPU": 2.0, **resources})


def build_fleet(*nodes: Node) -> Fleet:
    return Fleet(FakeNodes(list(nodes)), Package(Layout(), b""), {})  # type: ignore[arg-type]


def begin(used: Fleet, jobs: Iterable[Job]) -> Dispatch:
    """All nodes in use, and the first jobs sent."""
    dispatch = Dispatch(used, "module:attempt", iter(jobs), 4, 1)
    list(used.look_for_nodes())
    list(dispatch.hand_out())
    return dispatch


def run(used: Fleet, jobs: list[Job], node_seconds: float = 0.05) -> list[Execution]:
    """What the driver's whole loop records."""
    driver = Ray(4, used._cluster)
    driver._fleet, driver._node_seconds = used, node_seconds
    return [e for batch in driver.map(attempt, jobs, lambda: False) for e in batch.executions]


def build_jobs(number: int, resources: ResourceRequest | None = None) -> list[Job]:
    job = replace(sample_job(Path("never"), measured=1), resources=resources)
    return [replace(job, trial=trial) for trial in range(number)]


def encode_execution(job: Job) -> bytes:
    made = Execution(job.trial, job.process, Phase.MEASURED, 0, Status.OK, 0.0, {})
    return encode_batch(Batch((made,)))


def get_statuses(batches: Iterable[Batch]) -> list[Status]:
    return [execution.status for batch in batches for execution in batch.executions]


def test_a_share_whose_resources_left_with_their_node_is_recorded_after_the_node_timeout(
    fake: FakeRay,
) -> None:
    used = build_fleet(build_node())
    made = run(used, build_jobs(5, ANTENNA))

    assert [(e.trial, e.status) for e in made] == [(n, Status.HARNESS_ERROR) for n in range(5)]
    assert "antenna" in str(made[0].error)


def test_a_share_waits_for_its_resources_as_long_as_a_node_starts_that_has_them(fake: FakeRay) -> None:
    used = build_fleet(build_node(0), build_node(1, antenna=1.0))
    fake.answers.pop("prepare")
    dispatch = begin(used, build_jobs(2, ANTENNA))
    dispatch._waiting.append(dispatch._next_share(""))  # type: ignore[arg-type]
    assert get_statuses(dispatch.fail_unplaceable(-1.0)) == []

    # It dies while it starts, and again: that is no node to wait for.
    answer(fake.started[1].find("prepare"), ray.exceptions.RayActorError())
    list(used.look_for_nodes())
    list(used.look_for_nodes())
    assert len(fake.started) == 3
    assert get_statuses(dispatch.fail_unplaceable(-1.0)) == [Status.HARNESS_ERROR]


def test_a_run_without_a_chosen_number_of_workers_uses_the_slots_of_a_node_that_joins(fake: FakeRay) -> None:
    nodes = [build_node(0)]
    used = build_fleet()
    used._cluster.nodes = lambda: list(nodes)  # type: ignore[method-assign]
    dispatch = Dispatch(used, "module:attempt", iter(build_jobs(9)), 0, 1)
    list(used.look_for_nodes())
    list(dispatch.hand_out())
    assert used.count_at_work() == 2

    nodes.append(build_node(1))
    list(used.look_for_nodes())
    list(dispatch.hand_out())
    assert used.count_at_work() == 4


def test_what_a_collect_under_way_took_is_kept_when_a_run_ends(fake: FakeRay) -> None:
    """Such a call is nearly always under way; it is answered before `stop` is, and has most of what arrived."""
    jobs = build_jobs(3)
    dispatch = begin(build_fleet(build_node(0), build_node(1)), jobs)
    first, second = dispatch.fleet.nodes.values()
    lines = {
        node.name: [(share.number, encode_execution(share.job)) for share in node.in_flight.values()]
        for node in (first, second)
    }
    answer(first.pending, NodeResults(lines["n0"], []))
    answer(second.pending, NodeResults(lines["n1"][:1], []))
    second.actor.answers["stop"] = NodeResults(lines["n1"][1:], [])
    batches = list(dispatch.stop(is_graceful=True))

    assert sorted(e.trial for batch in batches for e in batch.executions) == [0, 1, 2]
    assert fake.killed == fake.started


def test_a_node_that_does_not_answer_is_lost(fake: FakeRay, monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = begin(build_fleet(build_node()), build_jobs(2))
    (node,) = dispatch.fleet.nodes.values()
    list(dispatch.collect(0.0))
    assert dispatch.fleet.nodes

    monkeypatch.setattr(fleet, "ANSWER_SECONDS", -1.0)
    list(dispatch.collect(0.0))
    assert not dispatch.fleet.nodes
    assert fake.killed == [node.actor]
    assert [share.losses for share in dispatch._waiting] == [1, 1]


def test_time_for_which_the_driver_was_held_up_is_no_silence_of_a_node(fake: FakeRay) -> None:
    dispatch = begin(build_fleet(build_node()), build_jobs(1))
    dispatch.fleet._last_turn -= 1000.0
    list(dispatch.collect(0.0))

    assert dispatch.fleet.nodes


def test_orders_that_a_node_could_not_fetch_are_sent_again(fake: FakeRay) -> None:
    fake.answers["start"] = ray.exceptions.OutOfDiskError("full")
    dispatch = begin(build_fleet(build_node()), build_jobs(1))
    list(dispatch.collect(0.0))

    assert not dispatch.fleet.nodes
    assert "object store" in dispatch.fleet.last_problem
    assert len(dispatch._waiting) == 1


def test_work_that_takes_down_its_node_again_and_again_is_recorded(fake: FakeRay) -> None:
    fake.answers["collect"] = ray.exceptions.RayActorError()
    (made,) = run(build_fleet(build_node()), build_jobs(1), node_seconds=60.0)

    assert made.status is Status.HARNESS_ERROR
    assert len(fake.started) >= MOST_LOSSES + 1
    assert f"{MOST_LOSSES + 1} times" in str(made.error)


def test_an_actor_that_dies_while_it_starts_is_replaced(fake: FakeRay) -> None:
    prepare = fake.answers.pop("prepare")
    used = build_fleet(build_node())
    list(used.look_for_nodes())
    answer(fake.started[0].find("prepare"), ray.exceptions.RayActorError())
    list(used.look_for_nodes())
    assert not used.is_hopeless
    list(used.look_for_nodes())
    answer(fake.started[1].find("prepare"), prepare)
    (batch,) = used.look_for_nodes()

    assert list(batch.nodes) == ["n0"]


def test_a_node_with_other_software_is_not_tried_again(fake: FakeRay) -> None:
    cause = RuntimeError("it has Assay 0.0.1")
    fake.answers["prepare"] = ray.exceptions.RayTaskError("prepare", "RuntimeError", cause)
    used = build_fleet(build_node())
    for _ in range(3):
        list(used.look_for_nodes())

    assert len(fake.started) == 1
    assert used.is_hopeless


def test_a_run_waits_for_a_node_that_was_in_use_though_those_that_are_left_are_refused(fake: FakeRay) -> None:
    used = build_fleet(build_node(0))
    list(used.look_for_nodes())
    cause = RuntimeError("it has Assay 0.0.1")
    fake.answers["prepare"] = ray.exceptions.RayTaskError("prepare", "RuntimeError", cause)
    used._cluster.list[:] = [build_node(1)]  # type: ignore[attr-defined]
    for _ in range(3):
        list(used.look_for_nodes())

    assert len(fake.started) == 2
    assert not used.nodes
    assert not used.is_hopeless


def test_a_run_without_nodes_ends_after_the_node_timeout_with_all_its_jobs_recorded(fake: FakeRay) -> None:
    jobs = build_jobs(4)
    jobs[1] = replace(jobs[1], isolation=Isolation.INLINE)
    made = run(build_fleet(), jobs)

    assert sorted(e.trial for e in made) == [0, 1, 2, 3]
    assert {e.status for e in made} == {Status.HARNESS_ERROR}


def test_a_run_whose_head_is_gone_keeps_what_nodes_have_and_ends(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "HEAD_SECONDS", 0.0)
    used = build_fleet(build_node())
    list(used.look_for_nodes())
    jobs = build_jobs(2)
    fake.started[0].answers["stop"] = NodeResults([(1, encode_execution(jobs[0]))], [])

    def fail() -> None:
        raise HeadUnreachable("the head does not respond")

    used._cluster._check = fail  # type: ignore[attr-defined]
    made = run(used, jobs, node_seconds=60.0)

    assert [(e.trial, e.status) for e in made] == [(0, Status.OK), (1, Status.HARNESS_ERROR)]
    assert "does not respond" in str(made[1].error)
    assert not used._cluster.is_connected  # type: ignore[attr-defined]


def test_the_results_of_a_few_nodes_are_taken_in_at_one_turn(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "MOST_AT_ONCE", 2)
    used = build_fleet(*(build_node(number) for number in range(3)))
    list(used.look_for_nodes())
    for number, node in enumerate(used.nodes.values()):
        node.listen()
        node.asked_at = float(-number)
        answer(node.pending, NodeResults([], []))

    assert [node.name for node, _ in used.collect(0.0)] == ["n2", "n1"]
    assert [node.name for node, _ in used.collect(0.0)] == ["n0"]


def test_another_run_on_the_same_node_is_a_doubt_with_its_numbers(
    fake: FakeRay, caplog: pytest.LogCaptureFixture
) -> None:
    used = build_fleet(build_node(0), build_node(1))
    list(used.look_for_nodes())
    own, (first, second) = used._mark, (node.node.id for node in used.nodes.values())
    fake.named = [
        {"namespace": "assay", "name": name}
        for name in (f"{first}/other/1", f"{first}/other/2", f"{first}/{own}/3", f"{second}/{own}/4")
    ]
    batches = [*used.look_for_nodes(), *used.look_for_nodes()]

    assert [list(batch.nodes) for batch in batches] == [["n0"]]
    doubts: Any = batches[0].nodes["n0"]["doubts"]
    (doubt,) = doubts
    assert "1 other run" in doubt
    assert "4 workers on 2 slots" in doubt
    assert doubt in caplog.text


def test_other_runs_are_looked_for_seldom_and_on_all_nodes_at_once(
    fake: FakeRay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet, "OTHER_RUNS_SECONDS", 60.0)
    used = build_fleet(*(build_node(number) for number in range(5)))
    for _ in range(3):
        list(used.look_for_nodes())

    assert fake.listings == 1


def test_a_cut_job_is_lost_and_recorded_as_a_whole(fake: FakeRay) -> None:
    (made, *others) = run(build_fleet(), [build_job(4)])

    assert {made.status, *(e.status for e in others)} == {Status.HARNESS_ERROR}
    assert len(others) == 3
