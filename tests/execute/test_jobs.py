"""A run goes on exactly where it was cut short."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.execute.carrying import trial
from tests.store.examples import NOP, small_suite, suite_plan

from assay.execute.job_progress import account_of
from assay.execute.jobs import Assignment, jobs
from assay.model import Isolation, Iterations, Job, Order, Plan, Trial

Place = tuple[int, int, str, int]

trials = st.builds(
    trial,
    st.just("noop"),
    measured=st.integers(1, 5),
    warmup=st.integers(0, 3),
    processes=st.integers(1, 3),
    isolation=st.sampled_from([Isolation.PROCESS, Isolation.COLD]),
    instruments=st.sampled_from([("timing",), ("timing", "cprofile")]),
)


def plan_of(made: list[Trial], seed: int, order: Order = Order.INTERLEAVED) -> Plan:
    return Plan("test", tuple(replace(one, index=i) for i, one in enumerate(made)), seed, order)


def all_jobs(plan: Plan, progress: dict[tuple[int, int, str], int]) -> list[Job]:
    folders = {one.index: f"trial-{one.index}" for one in plan.trials}
    return list(jobs(Assignment(plan, "run", folders, progress), set()))


def kept(made: list[Job]) -> list[Place]:
    return [
        (job.trial, job.process, str(stretch.phase), repetition)
        for job in made
        for stretch in job.stretches
        if stretch.kept
        for repetition in range(stretch.first, stretch.end)
    ]


def progress_after(done: list[Place]) -> dict[tuple[int, int, str], int]:
    return dict(Counter((trial, process, phase) for trial, process, phase, _ in done))


@given(st.lists(trials, min_size=1, max_size=3), st.integers(0, 100), st.data())
def test_after_any_part_of_the_work_exactly_the_rest_is_left(
    made: list[Trial], seed: int, data: st.DataObject
) -> None:
    plan = plan_of(made, seed, data.draw(st.sampled_from(Order)))
    planned = kept(all_jobs(plan, {}))
    cut = data.draw(st.integers(0, len(planned)))

    rest = kept(all_jobs(plan, progress_after(planned[:cut])))

    assert len(set(planned)) == len(planned)
    assert rest == planned[cut:]


@given(trials, st.data())
def test_a_process_that_is_resumed_gets_all_its_warm_ups_again(made: Trial, data: st.DataObject) -> None:
    plan = plan_of([made], 1)
    planned = kept(all_jobs(plan, {}))
    cut = data.draw(st.integers(0, len(planned)))

    for job in all_jobs(plan, progress_after(planned[:cut])):
        warmups = [s.end - s.first for s in job.stretches if s.phase == "warmup"]
        wanted = made.iterations.warmup if made.isolation is Isolation.PROCESS else sum(warmups)
        assert sum(warmups) == wanted


def test_a_trial_that_has_ended_gets_no_further_jobs() -> None:
    plan = plan_of([trial("noop", processes=2), trial("noop", processes=2)], 1)
    ended: set[int] = set()
    drawn = []
    for job in jobs(Assignment(plan, "run", {0: "a", 1: "b"}, {}), ended):
        drawn.append(job.trial)
        ended.add(0)

    assert drawn.count(0) <= 1
    assert drawn.count(1) == 2


@given(
    st.integers(1, 4),
    st.sampled_from(Order),
    st.sets(st.tuples(st.sampled_from(["c1", "c2"]), st.integers(0, 3))),
)
def test_a_round_that_is_resumed_counts_what_is_stored_of_itself_only(
    rounds: int, order: Order, stored: set[tuple[str, int]]
) -> None:
    plan = suite_plan(small_suite(), NOP)
    (asked,) = plan.trials
    plan = replace(plan, trials=(replace(asked, iterations=Iterations(measured=rounds)),), order=order)
    done = {("measured", case, repetition) for case, repetition in stored if repetition < rounds}
    accounts = [
        account_of(job) for job in jobs(Assignment(plan, "run", {0: "a"}, {}, {0: frozenset(done)}), set())
    ]

    assert [account.count_due() for account in accounts] == [
        len(list(account._due())) for account in accounts
    ]
    assert sum(account.count_due() for account in accounts) == 2 * rounds - len(done)
