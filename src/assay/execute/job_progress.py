"""Tracks which executions of a job are done and which are left: by repetition, or by case for suites.

The supervisor keeps an `Account` of each worker. When the worker dies, the account says which execution was under way, what
is recorded in its place, and which job a new worker continues with. `jobs.py` uses it to leave out jobs that have nothing due.

A job has stretches: ranges of repetitions of one phase. They are cut by `select_remaining` when a run is resumed, and when a
worker has died in the middle of its job.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from time import time
from typing import NamedTuple

from assay.model import Execution, ExecutionRange, Job, Phase, Status


class ExecutionPlace(NamedTuple):
    """Which execution of a process."""

    phase: Phase
    repetition: int


def select_remaining(
    stretches: Iterable[ExecutionRange], done: Mapping[str, int]
) -> tuple[ExecutionRange, ...]:
    """The stretches without what is done; `done` counts the executions of each phase."""
    return tuple(
        part for stretch in stretches for part in _parts(stretch, done.get(stretch.phase, stretch.first))
    )


def _parts(stretch: ExecutionRange, done: int) -> Iterator[ExecutionRange]:
    """What is left of a stretch. Warm-ups that are done are repeated, because a new process is cold, but not kept again."""
    next_due = min(max(stretch.first, done), stretch.end)
    if stretch.phase == Phase.WARMUP and stretch.first < next_due:
        yield replace(stretch, end=next_due, kept=False)
    if next_due < stretch.end:
        yield replace(stretch, first=next_due)


def first_due(stretches: Iterable[ExecutionRange]) -> ExecutionPlace | None:
    """The next execution that is to be kept; None when all of them are done."""
    return next(
        (ExecutionPlace(Phase(s.phase), s.first) for s in stretches if s.kept and s.first < s.end), None
    )


class Account(ABC):
    """Notes each execution of a job as it is done.

    Two implementations: `ByRepetition` for experiments, `ByCase` for agents. "Due" are executions that the job has, that
    are to be kept, and that were neither taken nor stood in for.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._died_in: set[Phase] = set()
        """Phases of the executions that were stood in for."""

    @abstractmethod
    def take(self, execution: Execution) -> None:
        """Note an execution as done; it must be one of this job."""

    @abstractmethod
    def is_asked(self, execution: Execution) -> bool:
        """Whether the job has this execution, and it was not done before."""

    @abstractmethod
    def rest(self, warm_up: bool = True) -> Job | None:
        """The job that is left for another process, which warms up again or not; None when nothing is due."""

    @abstractmethod
    def is_discarded_phase(self, phase: Phase) -> bool:
        """Whether executions of this phase are made only to get warm, and nothing of them is kept."""

    @abstractmethod
    def _due(self) -> Iterator[tuple[Phase, int, str]]:
        """Phase, repetition and case of each execution that is due, in their order."""

    def is_closed(self) -> bool:
        """Whether nothing is due any more."""
        return next(self._due(), None) is None

    def count_due(self) -> int:
        """How many executions are due."""
        return sum(1 for _ in self._due())

    def stand_in(
        self,
        status: Status,
        error: str,
        measurements: Mapping[str, float] | None = None,
        log: str | None = None,
    ) -> Execution:
        """What is recorded in place of the execution that is due, and so done."""
        phase, repetition, case = next(self._due())
        self._died_in.add(phase)
        execution = Execution(
            self._job.trial, self._job.process, phase, repetition, status, time(), measurements or {}, case=case,
            error=error, log=log,
        )  # fmt: skip
        self.take(execution)
        return execution

    def stand_in_for_all(self, status: Status, error: str, log: str | None = None) -> tuple[Execution, ...]:
        """Record a stand-in for every execution that is due; the first has the log."""
        first = self.stand_in(status, error, log=log)
        others = [
            replace(first, phase=phase, repetition=repetition, case=case, log=None)
            for phase, repetition, case in self._due()
        ]
        for execution in others:
            self.take(execution)
        return (first, *others)


def account_of(job: Job) -> Account:
    return ByRepetition(job) if job.agent is None else ByCase(job)


def _is_planned(job: Job, execution: Execution, number: int) -> bool:
    """Whether the execution is of this trial and process, and its number is within a stretch of its phase."""
    if execution.trial != job.trial or execution.process != job.process:
        return False
    # A loop, not any(): every execution passes here.
    for stretch in job.stretches:
        if stretch.first <= number < stretch.end and stretch.phase == execution.phase:
            return True
    return False


class ByRepetition(Account):
    """Executions of a process follow each other, so a count for each phase is enough."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._done: dict[str, int] = {}

    def take(self, execution: Execution) -> None:
        self._done[execution.phase] = execution.repetition + 1

    def is_asked(self, execution: Execution) -> bool:
        is_new = execution.repetition >= self._done.get(execution.phase, 0)
        return is_new and _is_planned(self._job, execution, execution.repetition)

    def rest(self, warm_up: bool = True) -> Job | None:
        stretches = select_remaining(self._job.stretches, self._done)
        return replace(self._job, stretches=stretches) if first_due(stretches) else None

    def is_discarded_phase(self, phase: Phase) -> bool:
        return False

    def _due(self) -> Iterator[tuple[Phase, int, str]]:
        for stretch in select_remaining(self._job.stretches, self._done):
            if stretch.kept:
                for repetition in range(stretch.first, stretch.end):
                    yield Phase(stretch.phase), repetition, self._job.case_id


class ByCase(Account):
    """Cases that are put to an agent at the same time end in any order, so each is noted by its number.

    A number is repetition × cases + place of the case, as in `Job.case_at`; profiled executions have only a repetition.
    """

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._places = {case.id: index for index, case in enumerate(job.cases)}
        self._done: dict[str, set[int]] = {
            Phase.WARMUP: set(),
            Phase.MEASURED: set(job.done),
            Phase.PROFILED: set(),
        }

    def take(self, execution: Execution) -> None:
        self._done[execution.phase].add(self._number(execution))

    def is_asked(self, execution: Execution) -> bool:
        if execution.case not in self._places:
            return False
        number = self._number(execution)
        return number not in self._done[execution.phase] and _is_planned(self._job, execution, number)

    def _number(self, execution: Execution) -> int:
        if execution.phase is Phase.PROFILED:
            return execution.repetition
        return execution.repetition * len(self._job.cases) + self._places[execution.case]

    def rest(self, warm_up: bool = True) -> Job | None:
        """The rest of the job. `cautious` has the new process ask the first cases one at a time: those that were under way
        come first, and the one that ended the process shows itself."""
        if self.is_closed():
            return None
        # A warm-up that ended its process would end the next one as well, which therefore does not warm up.
        warm_up = warm_up and Phase.WARMUP not in self._died_in
        stretches = (
            replace(s, kept=s.kept and not self._done[Phase.WARMUP]) if s.phase == Phase.WARMUP else s
            for s in self._job.stretches
            if s.phase != Phase.WARMUP or warm_up
            if s.phase != Phase.PROFILED or s.first not in self._done[Phase.PROFILED]
        )
        # Twice as many as can be under way: some may have ended without a chance to say so.
        return replace(
            self._job,
            stretches=tuple(stretches),
            done=frozenset(self._done[Phase.MEASURED]),
            cautious=2 * self._job.concurrency,
        )

    def is_discarded_phase(self, phase: Phase) -> bool:
        return not any(s.kept for s in self._job.stretches if s.phase == phase)

    def count_due(self) -> int:
        # Asked while executions end, of jobs with many cases: counted without looking at each.
        kept = [s for s in self._job.stretches if s.kept]
        done = sum(len(self._done[phase]) for phase in {s.phase for s in kept})
        return sum(s.end - s.first for s in kept) - done

    def _due(self) -> Iterator[tuple[Phase, int, str]]:
        for stretch in self._job.stretches:
            phase = Phase(stretch.phase)
            for number in range(stretch.first, stretch.end) if stretch.kept else ():
                if number not in self._done[phase]:
                    case, repetition = self._job.case_at(phase, number)
                    yield phase, repetition, case.id
