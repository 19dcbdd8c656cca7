"""Runs that were asked for are claimed by one server at a time, and only who has claimed a run gives it back."""

from __future__ import annotations

import pytest
from tests.store.examples import ENVIRONMENT, NOON, plan_of
from tests.store.test_store_leases import ELSEWHERE, expire, sql

from assay.model.queue import QueuedRun, QueueState
from assay.store.processes import Owner, current_owner
from assay.store.store import Store

ANOTHER = Owner("build-8", 17, "a third machine", "2")


@pytest.fixture
def claimed(store: Store) -> Store:
    """A store with one run, which a server on another machine has claimed."""
    store.enqueue(QueuedRun("r1", "good", "desk", {}, NOON))
    assert store.claim_queued(ELSEWHERE) is not None
    return store


def stall(url: str) -> None:
    """As if the server that has the claim did nothing for over a minute."""
    sql(url, "UPDATE queued_runs SET renewed = renewed - 61")


def state_of(store: Store) -> QueueState:
    queued = store.read_queued_run("r1")
    assert queued is not None
    return queued.state


def take_over(store: Store, url: str) -> None:
    stall(url)
    assert store.renew_queued([], ANOTHER) == set()
    assert store.claim_queued(ANOTHER) is not None


def test_a_server_that_stalled_cannot_give_back_what_another_has_taken_over(claimed: Store, url: str) -> None:
    take_over(claimed, url)
    claimed.give_back_queued("r1", ELSEWHERE)
    claimed.settle_queued("r1", QueueState.FAILED, "gone", ELSEWHERE)
    assert state_of(claimed) is QueueState.RUNNING
    claimed.give_back_queued("r1", ANOTHER)
    assert state_of(claimed) is QueueState.QUEUED


def test_a_server_that_stalled_learns_what_it_has_lost_and_does_not_renew_it(
    claimed: Store, url: str
) -> None:
    assert claimed.renew_queued(["r1"], ELSEWHERE) == set()
    take_over(claimed, url)
    stall(url)
    assert claimed.renew_queued(["r1"], ELSEWHERE) == {"r1"}
    # Its renewal did not count for the other server, whose claim was old enough to be taken back in turn.
    assert state_of(claimed) is QueueState.QUEUED


def test_a_run_that_has_ended_is_not_lost(claimed: Store) -> None:
    claimed.settle_queued("r1", QueueState.DONE)
    assert claimed.renew_queued(["r1"], ELSEWHERE) == set()


def test_a_claim_stays_while_a_worker_of_a_stalled_server_holds_the_run(claimed: Store, url: str) -> None:
    claimed.begin(plan_of(), ENVIRONMENT, "r1", NOON, ELSEWHERE)
    stall(url)
    claimed.renew_queued([], ANOTHER)
    assert state_of(claimed) is QueueState.RUNNING
    expire(url)
    claimed.renew_queued([], ANOTHER)
    assert state_of(claimed) is QueueState.QUEUED


def test_a_claim_of_a_server_that_has_ended_is_taken_back_at_once(store: Store) -> None:
    store.enqueue(QueuedRun("r1", "good", "desk", {}, NOON))
    ours = current_owner()
    store.claim_queued(Owner(ours.host, ours.pid, ours.machine, "started before", ours.folder))
    store.renew_queued([], ours)
    assert state_of(store) is QueueState.QUEUED
