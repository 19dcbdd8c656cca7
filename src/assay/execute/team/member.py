"""One agent of a team, open and ready in a process of its own: no two of a team share an interpreter.

A member is a fork of the worker. It is told the moment at which to begin, on the clock that all processes of a machine
share, so that members that are to begin together do.

Worker and member talk over a pipe of pickled objects. The worker sends an `_Order` or None, which ends the member. The member
sends pairs: ("fine", its version) once it is open, ("fine", the list of `Answered`) after each order, or ("wrong", a text).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from time import perf_counter, sleep
from typing import Any

from assay.errors import AssayError
from assay.execute.case_runner import CaseRunner
from assay.execute.error_text import format_error
from assay.execute.worker_channel import CANCEL, StatusBlock
from assay.model import AgentUse, Case, Execution, Isolation, Iterations, Job, Limits, Phase, Status
from assay.plugin.agent import AgentError
from assay.plugin.agent_pool import AgentPool

_FORK = multiprocessing.get_context("fork")
LEAVE_SECONDS = 2.0
"""How long a member may take to close its agent before it is killed."""


def permits(number: int, members: int) -> Any:
    """A semaphore that each member acquires before a case and releases after it; None where all may work at once."""
    return _FORK.Semaphore(number) if number < members else None


@dataclass(frozen=True, slots=True)
class Answered:
    """One case done by one agent; times on the common clock."""

    agent: str
    case: str
    start: float
    end: float
    waited: float
    """Seconds before `start` in which it waited for a permit."""
    execution: Execution


@dataclass(frozen=True, slots=True)
class _Order:
    go: float
    """When to begin."""
    first: int
    end: int
    """Numbers of the cases, as an CaseRunner counts them."""


@dataclass(slots=True)
class _Meter:
    """Takes the times of each case: an CaseRunner fetches the next number when it is about to ask, and `end` is called after it."""

    permits: Any
    waited: float = 0.0
    started: float = 0.0

    def numbers(self, order: _Order) -> Iterator[tuple[Phase, int]]:
        for number in range(order.first, order.end):
            self.waited = 0.0
            if self.permits is not None:
                before = perf_counter()
                self.permits.acquire()
                self.waited = perf_counter() - before
            self.started = perf_counter()
            yield Phase.MEASURED, number

    def end(self) -> float:
        ended = perf_counter()
        if self.permits is not None:
            self.permits.release()
        return ended


class Member:
    """A member seen from the worker."""

    def __init__(
        self, use: AgentUse, cases: Sequence[Case], seed: int, limit: float | None, sem: Any
    ) -> None:
        self.use, self.cases = use, tuple(cases)
        self._pipe, child_pipe = _FORK.Pipe()
        job = _job(use, self.cases, seed, limit)
        self._process = _FORK.Process(target=_serve, args=(job, child_pipe, self._pipe, sem))
        self._process.start()
        child_pipe.close()

    @property
    def name(self) -> str:
        return self.use.name

    def await_ready(self) -> str:
        """Wait until the agent is open and return its version."""
        return str(self.receive())

    def begin(self, go: float, repetition: int, how_many: int | None = None) -> None:
        first = repetition * len(self.cases)
        end = first + (len(self.cases) if how_many is None else how_many)
        with contextlib.suppress(OSError):  # what happened to it shows when its answer is waited for
            self._pipe.send(_Order(go, first, end))

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._pipe.send(None)
            self._pipe.close()
        self._process.join(LEAVE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    @property
    def pipe(self) -> Connection[Any, Any]:
        return self._pipe

    def receive(self) -> Any:
        """What the member sends next; raises AgentError if something went wrong in it or its process is gone."""
        try:
            kind, value = self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(LEAVE_SECONDS)
            raise AgentError(
                f"The process of agent '{self.name}' exited with code {self._process.exitcode}."
            ) from None
        if kind != "fine":
            raise AgentError(f"Agent '{self.name}': {value}")
        return value


def wait_for_members(members: Sequence[Member]) -> list[Answered]:
    """What the members have done, once all of them are done.

    It raises as soon as one member is gone: others may wait forever for the permit that it held.
    """
    waiting = {member.pipe: member for member in members}
    stints: list[Answered] = []
    while waiting:
        for pipe in wait(list(waiting)):
            stints += waiting.pop(pipe).receive()  # type: ignore[call-overload]
    return stints


def _job(use: AgentUse, cases: tuple[Case, ...], seed: int, limit: float | None) -> Job:
    """The least that an CaseRunner needs; what it asks comes with each order."""
    return Job(
        trial=0,
        process=0,
        experiment="ask",
        params={},
        stretches=(),
        iterations=Iterations(),
        instruments=(),
        isolation=Isolation.PROCESS,
        limits=Limits(seconds=limit),
        seed=seed,
        load=(),
        run_id="",
        run_dir="",
        agent=use,
        cases=cases,
    )


def _serve(job: Job, pipe: Connection[Any, Any], of_worker: Connection[Any, Any], sem: Any) -> None:
    """The process of a member: opens its agent, then executes orders until the worker sends None or is gone."""
    # The worker's end, which the fork has inherited: with it open, this process would not notice that the worker is gone.
    of_worker.close()
    for number in (CANCEL, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pool = AgentPool()
    try:
        case_runner = CaseRunner(job, pool)
        case_runner.create_scorers()
        pipe.send(("fine", case_runner.version))
    except BaseException as error:
        text = str(error) if isinstance(error, AssayError) else format_error(error)
        pipe.send(("wrong", f"could not be started: {text}"))
        pool.close()
        os._exit(0)
    with contextlib.suppress(EOFError, OSError):
        while (order := pipe.recv()) is not None:
            pipe.send(_carry_out_order(case_runner, order, sem, job))
    pool.close()
    os._exit(0)


def _carry_out_order(case_runner: CaseRunner, order: _Order, sem: Any, job: Job) -> tuple[str, Any]:
    assert job.agent is not None
    """Wait for the moment, then ask the cases; the permit is given back after each, also where one failed."""
    meter, stints = _Meter(sem), []
    sleep(max(0.0, order.go - perf_counter()))
    try:
        for execution in case_runner.run_cases(meter.numbers(order), StatusBlock(), lambda: None):
            end = meter.end()
            stints.append(
                Answered(job.agent.name, execution.case, meter.started, end, meter.waited, execution)
            )
    except BaseException as error:
        return "wrong", format_error(error)
    return "fine", stints


def find_failure(stints: Sequence[Answered]) -> str | None:
    """The first failure among them, in words."""
    for stint in stints:
        if stint.execution.status is not Status.OK:
            error = (stint.execution.error or stint.execution.status.value).strip().splitlines()[0]
            return f"Agent '{stint.agent}' on case '{stint.case}': {stint.execution.status.value}: {error}"
    return None
