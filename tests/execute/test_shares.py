"""Jobs that are cut into shares: nothing is lost or done twice, and one share takes over the slots of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.execute.carrying import eventually

from assay.builtin.executors.local import WorkerPool
from assay.execute.job_progress import account_of
from assay.execute.shares import cut_job
from assay.model import AgentUse, Case, Execution, ExecutionRange, Job, Phase, ScorerUse, Status
from assay.testing.samples import sample_job

AGENT = """
import asyncio, os

async def wait(question, folder, name):
    open(f"{folder}/{name}-{question}", "w").close()
    while not os.path.exists(f"{folder}/open-{question}"):
        await asyncio.sleep(0.005)
    return question
"""


def build_job(cases: int, concurrency: int = 1, warmup: int = 0, done: frozenset[int] = frozenset()) -> Job:
    job = sample_job(Path())
    warm = (ExecutionRange(Phase.WARMUP, 0, min(warmup, cases)),) if warmup else ()
    return replace(
        job,
        agent=AgentUse("one", "stub"),
        cases=tuple(Case(str(n), str(n), str(n)) for n in range(cases)),
        stretches=(*warm, ExecutionRange(Phase.MEASURED, 0, cases)),
        concurrency=concurrency,
        done=done,
    )


def find_due(job: Job) -> list[tuple[str, str]]:
    """Phase and case of each execution that is kept."""
    return [(phase, case) for phase, _, case in account_of(job)._due()]


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 16), st.integers(0, 5), st.randoms())
def test_the_shares_of_a_job_do_what_the_job_does(
    cases: int, workers: int, concurrency: int, warmup: int, chance: object
) -> None:
    done = frozenset(n for n in range(cases) if chance.random() < 0.2)  # type: ignore[attr-defined]
    job = build_job(cases, concurrency, warmup, done)
    shares = list(cut_job(job, workers, warms_up_again=True))

    assert Counter(due for share in shares for due in find_due(share)) == Counter(find_due(job))


@pytest.mark.parametrize("done", [range(6), range(3), ()])
def test_profiled_executions_of_a_job_that_is_resumed_are_of_its_first_case(done: Iterable[int]) -> None:
    job = build_job(6, done=frozenset(done))
    job = replace(job, stretches=(*job.stretches, ExecutionRange(Phase.PROFILED, 0, 2)))
    shares = list(cut_job(job, 3, warms_up_again=True))

    assert Counter(due for share in shares for due in find_due(share)) == Counter(find_due(job))


@pytest.mark.parametrize(
    ("cases", "workers", "concurrency", "wave"), [(2000, 4, 16, 250), (256, 4, 16, 64), (8, 64, 1, 1)]
)
def test_every_worker_has_a_share_of_the_first_wave(
    cases: int, workers: int, concurrency: int, wave: int
) -> None:
    shares = list(cut_job(build_job(cases, concurrency), workers, warms_up_again=False))

    assert [len(share.cases) for share in shares[:workers]] == [wave] * min(workers, cases // wave)


@given(st.integers(1, 30), st.integers(0, 4), st.sets(st.integers(0, 29)))
def test_what_is_due_is_counted_as_it_is_listed(cases: int, warmup: int, done: set[int]) -> None:
    job = build_job(cases, warmup=warmup, done=frozenset(n for n in done if n < cases))
    account = account_of(job)
    while True:
        assert account.count_due() == len(list(account._due()))
        if account.is_closed():
            return
        account.stand_in(Status.CANCELLED, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "agents.py").write_text(AGENT)
    return tmp_path


def build_waiting(folder: Path, name: str, questions: str) -> Job:
    """A job of an agent that notes each question that it is asked, and waits until it may answer; two at a time."""
    options = {"target": "agents.py:wait", "params": {"folder": str(folder), "name": name}}
    return replace(
        build_job(len(questions), concurrency=2),
        agent=AgentUse(name, "python", options, folder=str(folder)),
        cases=tuple(Case(question, question, question) for question in questions),
        scorers=(ScorerUse("exact"),),
        run_dir=str(folder / name),
    )


class Watched:
    """A pool and what its jobs have been asked so far."""

    def __init__(self, pool: WorkerPool, folder: Path) -> None:
        self._pool, self._folder = pool, folder
        self.executions: list[Execution] = []

    def let_answer(self, questions: str) -> None:
        for question in questions:
            (self._folder / f"open-{question}").touch()

    def collect(self) -> list[Execution]:
        self.executions += [e for result in self._pool.collect() for e in result.batch.executions]
        return self.executions

    def asked(self) -> set[str]:
        self.collect()
        return {file.name for file in self._folder.glob("*-?") if not file.name.startswith("open")}


@pytest.fixture
def watched(folder: Path) -> Iterator[Watched]:
    with WorkerPool("assay.execute.attempt:attempt") as pool:
        list(pool.start_job(build_waiting(folder, "first", "abc"), 1))
        list(pool.start_job(build_waiting(folder, "second", "xyz"), 2, after=1))
        yield Watched(pool, folder)


def test_a_share_that_was_sent_ahead_takes_over_slot_by_slot(watched: Watched, folder: Path) -> None:
    assert eventually(lambda: watched.asked() == {"first-a", "first-b"})
    watched.let_answer("a")
    assert eventually(lambda: watched.asked() == {"first-a", "first-b", "first-c"})
    # One of the two slots is free now, and the first share has nothing left to begin with.
    watched.let_answer("b")
    assert eventually(lambda: "second-x" in watched.asked())
    assert "second-y" not in watched.asked()
    watched.let_answer("c")
    assert eventually(lambda: "second-y" in watched.asked())
    watched.let_answer("xyz")
    assert eventually(lambda: len(watched.collect()) == 6)
    assert {execution.status for execution in watched.executions} == {Status.OK}


def test_a_share_goes_on_when_the_one_before_it_dies(watched: Watched, folder: Path) -> None:
    assert eventually(lambda: watched.asked() == {"first-a", "first-b"})
    first, _ = watched._pool._active
    watched.let_answer("abcxyz")
    first.worker._process.kill()
    assert eventually(lambda: len(watched.collect()) == 6)
    assert {execution.case for execution in watched.executions} == set("abcxyz")
