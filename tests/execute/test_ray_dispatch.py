"""Where the driver of the executor `ray` sends what, without a cluster: nodes whose actors take everything and do nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.execute.test_shares import build_job, find_due
from tests.store.examples import NOP, small_suite, suite_plan

from assay.builtin.executors.ray.cluster import Node
from assay.builtin.executors.ray.executor import Dispatch, count_sharers
from assay.builtin.executors.ray.fleet import Fleet, RemoteNode
from assay.builtin.executors.ray.package import Layout, Package
from assay.execute.wire import encode_batch
from assay.model import Batch, Iterations, Job, Plan, ResourceRequest, Status
from assay.testing.samples import sample_job

pytest.importorskip("ray", reason="needs the extra 'ray'")


class IdleActor:
    """Accepts every call and never answers."""

    def __getattr__(self, name: str) -> Any:
        return SimpleNamespace(remote=lambda *_: None)


def build_dispatch(jobs: Iterator[Job] | list[Job], nodes: int, slots: int, cut: int) -> Dispatch:
    fleet = Fleet(SimpleNamespace(), Package(Layout(), b""), {})  # type: ignore[arg-type]
    for number in range(nodes):
        node = Node(f"id{number}", f"n{number}", slots, {"CPU": slots})
        fleet.nodes[node.name] = RemoteNode(node, IdleActor())
    return Dispatch(fleet, "module:attempt", iter(jobs), nodes * slots, cut)


def finish_all_but(node: RemoteNode, left: int) -> None:
    (share,) = node.at_work
    while share.account.count_due() > left:
        share.account.stand_in(Status.OK, "")


def test_the_next_share_is_sent_when_the_one_before_it_is_nearly_done_and_takes_no_slot() -> None:
    dispatch = build_dispatch([build_job(400, concurrency=4)], nodes=2, slots=4, cut=2)
    first, second = dispatch.fleet.nodes.values()
    list(dispatch.hand_out())
    assert [len(first.in_flight), len(second.in_flight)] == [1, 1]

    finish_all_but(first, 4)
    list(dispatch.hand_out())
    assert [len(first.in_flight), len(second.in_flight)] == [2, 1]
    ending, following = first.in_flight.values()
    assert following.after == ending.number
    assert (first.at_work, first.free_slots) == ([ending], 0)

    # One is enough: whoever is done first gets what is left.
    list(dispatch.hand_out())
    assert len(first.in_flight) == 2
    first.remove(ending.number)
    assert (first.at_work, first.free_slots) == ([following], 0)


def test_jobs_that_are_not_cut_are_sent_to_free_slots_only() -> None:
    jobs = [replace(build_job(40), process=number) for number in range(9)]
    dispatch = build_dispatch(jobs, nodes=2, slots=2, cut=1)
    list(dispatch.hand_out())
    for node in dispatch.fleet.nodes.values():
        for share in node.at_work:
            share.account.stand_in_for_all(Status.OK, "")
    list(dispatch.hand_out())

    assert [len(node.in_flight) for node in dispatch.fleet.nodes.values()] == [2, 2]


def find_places(dispatch: Dispatch) -> dict[int, list[set[str]]]:
    """Of each round, the nodes of each arm."""
    found: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
    for node in dispatch.fleet.nodes.values():
        for share in node.in_flight.values():
            found[share.job.process, share.job.trial].add(node.name)
    places: defaultdict[int, list[set[str]]] = defaultdict(list)
    for (number, _), names in sorted(found.items()):
        places[number].append(names)
    return dict(places)


@pytest.mark.parametrize(("arms", "rounds", "nodes"), [(2, 5, 10), (2, 10, 20), (8, 3, 10), (3, 1, 2)])
def test_all_arms_of_a_round_run_on_one_node_that_has_room_even_if_others_are_idle(
    arms: int, rounds: int, nodes: int
) -> None:
    jobs = [replace(sample_job(Path()), trial=arm, process=n) for n in range(rounds) for arm in range(arms)]
    dispatch = build_dispatch(jobs, nodes=nodes, slots=16, cut=1)
    list(dispatch.hand_out())
    places = find_places(dispatch)

    assert len(places) == rounds
    assert all(names == [names[0]] * arms and len(names[0]) == 1 for names in places.values())


@pytest.mark.parametrize(
    ("cases", "concurrency", "rounds", "nodes"), [(10, 1, 1, 20), (10, 1, 3, 20), (100, 4, 1, 10)]
)
def test_all_arms_of_a_round_that_is_cut_run_on_the_same_set_of_nodes(
    cases: int, concurrency: int, rounds: int, nodes: int
) -> None:
    job = build_job(cases, concurrency)
    jobs = [replace(job, trial=arm, process=n) for n in range(rounds) for arm in range(3)]
    dispatch = build_dispatch(jobs, nodes=nodes, slots=16, cut=14)
    list(dispatch.hand_out())
    places = find_places(dispatch)

    assert len(places) == rounds
    assert all(names == [names[0]] * 3 and len(names[0]) == 10 for names in places.values())


def finish_one_by_one(dispatch: Dispatch) -> dict[int, list[set[str]]]:
    """Carry out everything, the oldest share first; of each round, the nodes of each arm."""
    places: defaultdict[int, defaultdict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    while list(dispatch.hand_out()) or dispatch.fleet.count_at_work():
        nodes = [node for node in dispatch.fleet.nodes.values() if node.in_flight]
        for node in nodes:
            for share in node.in_flight.values():
                places[share.job.process][share.job.trial].add(node.name)
        oldest = min(nodes, key=lambda node: min(node.in_flight))
        done = oldest.remove(min(oldest.in_flight))
        assert done is not None
        list(done.whole.close_share(is_settled=True))
    return {number: list(arms.values()) for number, arms in places.items()}


def plan_rounds(arms: int, rounds: int, concurrency: int) -> Plan:
    (asked,) = suite_plan(small_suite(), NOP).trials
    trial = replace(asked, iterations=Iterations(measured=rounds), concurrency=concurrency)
    return Plan("test", tuple(replace(trial, index=arm) for arm in range(arms)), 7)


@pytest.mark.parametrize(("rounds", "nodes"), [(2, 4), (5, 10), (3, 6)])
def test_arms_take_turns_on_the_nodes_of_their_round_if_these_have_no_room(rounds: int, nodes: int) -> None:
    machines = [Node(f"id{number}", f"n{number}", 2, {"CPU": 2}) for number in range(nodes)]
    cut = count_sharers(plan_rounds(2, rounds, concurrency=2), 2 * nodes, machines)
    jobs = [
        replace(build_job(40, concurrency=2), trial=arm, process=n) for n in range(rounds) for arm in range(2)
    ]
    dispatch = build_dispatch(jobs, nodes=nodes, slots=2, cut=cut)
    list(dispatch.hand_out())
    assert all(not node.free_slots for node in dispatch.fleet.nodes.values())
    places = finish_one_by_one(dispatch)

    assert len(places) == rounds
    assert all(first == second for first, second in places.values())


@pytest.mark.parametrize(
    ("arms", "rounds", "concurrency", "nodes", "cut"),
    [
        (2, 5, 1, 4, 7),  # 64 slots for ten jobs
        (2, 5, 16, 4, 1),  # as many rounds as nodes: each round stays on one
        (2, 5, 16, 10, 2),  # ten jobs for ten nodes: uncut, each arm would have a node of its own
        (2, 5, 8, 10, 2),  # both arms have room on a node
        (20, 5, 1, 4, 1),
    ],
)
def test_jobs_are_cut_as_far_as_slots_would_be_idle(
    arms: int, rounds: int, concurrency: int, nodes: int, cut: int
) -> None:
    machines = [Node(f"id{number}", f"n{number}", 16, {"CPU": 16}) for number in range(nodes)]

    assert count_sharers(plan_rounds(arms, rounds, concurrency), 16 * nodes, machines) == cut


def test_arms_do_not_wait_for_nodes_while_all_others_are_idle() -> None:
    jobs = [replace(build_job(8, concurrency=2), trial=arm, process=n) for n in range(9) for arm in range(2)]
    dispatch = build_dispatch(jobs, nodes=4, slots=2, cut=2)
    dispatch._workers = 2
    list(dispatch.hand_out())
    for node in [node for node in dispatch.fleet.nodes.values() if node.in_flight]:
        del dispatch.fleet.nodes[node.name]
        dispatch._queues.drop(node.name)
    for _ in range(5):
        list(dispatch.hand_out())
        assert dispatch.fleet.count_at_work() == 2
        for node in dispatch.fleet.nodes.values():
            for number in list(node.in_flight):
                node.remove(number)


def test_a_round_whose_node_is_lost_goes_on_together_on_another() -> None:
    jobs = [replace(sample_job(Path()), trial=arm) for arm in range(2)]
    dispatch = build_dispatch(jobs, nodes=4, slots=4, cut=1)
    list(dispatch.hand_out())
    lost = next(node for node in dispatch.fleet.nodes.values() if node.in_flight)
    del dispatch.fleet.nodes[lost.name]
    list(dispatch._lose(lost))
    list(dispatch.hand_out())
    ((first, second),) = find_places(dispatch).values()

    assert first == second
    assert len(first) == 1


def test_what_jobs_ask_for_fills_a_node() -> None:
    large = replace(sample_job(Path()), resources=ResourceRequest(2.0))
    jobs = [replace(large, process=number) for number in range(9)]
    dispatch = build_dispatch(jobs, nodes=1, slots=5, cut=1)
    list(dispatch.hand_out())
    (node,) = dispatch.fleet.nodes.values()

    assert (len(node.in_flight), node.free_slots, node.has_room(large)) == (2, 1, False)
    node.remove(next(iter(node.in_flight)))
    assert (node.free_slots, node.has_room(large)) == (3, True)


def test_work_that_was_lost_with_a_node_goes_on_where_there_is_room() -> None:
    dispatch = build_dispatch([build_job(400, concurrency=4)], nodes=2, slots=4, cut=2)
    first, second = dispatch.fleet.nodes.values()
    list(dispatch.hand_out())
    finish_all_but(first, 4)
    list(dispatch.hand_out())
    (lost, following), (other,) = first.in_flight.values(), second.in_flight.values()
    del dispatch.fleet.nodes[first.name]
    list(dispatch._lose(first))
    second.remove(other.number)
    list(dispatch.hand_out())

    (moved,) = second.at_work
    assert {case for _, _, case in moved.account._due()} == {case for _, _, case in lost.account._due()}
    assert moved.after == 0
    # What is left of it is one wave of cases, so the next share is sent ahead.
    assert [share.job.cases for share in second.in_flight.values()] == [moved.job.cases, following.job.cases]


def lose_first_node(dispatch: Dispatch) -> list[Batch]:
    first = next(iter(dispatch.fleet.nodes.values()))
    del dispatch.fleet.nodes[first.name]
    return list(dispatch._lose(first))


def test_a_share_that_its_worker_has_ended_is_not_sent_again_when_its_node_is_lost() -> None:
    """It may have executions left: an agent that cannot be opened ends its trial at once."""
    dispatch = build_dispatch([build_job(20)], nodes=2, slots=1, cut=1)
    list(dispatch.hand_out())
    (share,) = dispatch.fleet.nodes["n0"].in_flight.values()
    list(share.take_lines(encode_batch(Batch(settled=((0, 0),)))))
    batches = lose_first_node(dispatch)

    assert [batch.settled for batch in batches] == [((0, 0),)]
    assert not any(batch.artifacts for batch in batches)
    assert not dispatch._waiting


def test_shares_of_a_job_that_was_stopped_are_not_sent_again() -> None:
    dispatch = build_dispatch([build_job(40)], nodes=3, slots=1, cut=3)
    list(dispatch.hand_out())
    first, *others = (next(iter(node.in_flight.values())) for node in dispatch.fleet.nodes.values())
    batches = lose_first_node(dispatch)
    assert [share.job.cases for share in dispatch._waiting] == [first.job.cases]

    list(others[0].take_lines(encode_batch(Batch(stopped={0: "it failed too often"}))))
    batches = [*lose_first_node(dispatch), *dispatch.hand_out()]
    assert not dispatch._waiting
    assert not any(batch.artifacts or batch.executions or batch.settled for batch in batches)

    batches = list(others[1].fail("its node was lost"))
    assert [(batch.executions, batch.settled) for batch in batches] == [((), ((0, 0),))]


@settings(max_examples=50)
@given(st.randoms(use_true_random=False))
def test_every_execution_is_made_once_whatever_is_cut_and_whichever_nodes_are_lost(chance: Random) -> None:
    arms, rounds, concurrency = chance.randint(1, 4), chance.randint(1, 5), chance.choice([1, 2, 4])
    job = build_job(chance.randint(2, 60), concurrency, warmup=chance.choice([0, 2]))
    jobs = [replace(job, trial=arm, process=n) for n in range(rounds) for arm in range(arms)]
    slots, nodes = chance.choice([2, 4, 8]), chance.randint(1, 8)
    dispatch = build_dispatch(jobs, nodes=nodes, slots=slots, cut=chance.randint(1, 12))
    dispatch._workers = chance.randint(1, nodes * slots)
    made: list[tuple[int, int, str, str]] = []
    while list(dispatch.hand_out()) or dispatch.fleet.count_at_work():
        node = chance.choice([node for node in dispatch.fleet.nodes.values() if node.in_flight])
        if len(dispatch.fleet.nodes) > 1 and chance.random() < 0.02:
            del dispatch.fleet.nodes[node.name]
            list(dispatch._lose(node))
            continue
        share = node.remove(chance.choice(list(node.in_flight)))
        assert share is not None
        made += [(share.job.trial, share.job.process, *due) for due in find_due(share.job)]
        list(share.finish())

    assert dispatch.is_over
    assert sorted(made) == sorted((job.trial, job.process, *due) for job in jobs for due in find_due(job))
