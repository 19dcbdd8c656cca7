"""What of a job is done, and what is due: by repetition, or by case where an agent is put through cases.

The supervisor keeps an `Account` of each worker. When the worker dies, the account says which execution was under way, what
is recorded in its place, and which job a new worker goes on with. `jobs.py` uses it to leave out jobs that have nothing due.

A job has stretches: ranges of repetitions of one phase. They are cut by `select_remaining` when a run is resumed, and when a
worker has died in the middle of its job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from time import time
from typing import NamedTuple, Protocol

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


class Account(Protocol):
    """Notes each execution of a job as it is done.

    Two implementations: `ByRepetition` for experiments, `ByCase` for agents. "Due" are executions that the job has, that
    are to be kept, and that were neither taken nor stood in for.
    """

    def take(self, execution: Execution) -> None:
        """Note an execution as done; it must be one of this job."""
        ...

    def is_asked(self, execution: Execution) -> bool:
        """Whether the job has this execution, and it was not done before."""
        ...

    def is_closed(self) -> bool:
        """Whether nothing is due any more."""
        ...

    def rest(self, warm_up: bool = True) -> Job | None:
        """The job that is left for another process, which warms up again or not; None when nothing is due."""
        ...

    def is_rehearsal(self, phase: Phase) -> bool:
        """Whether executions of this phase are made only to get warm, and nothing of them is kept."""
        ...

    def stand_in(
        self,
        status: Status,
        error: str,
        measurements: Mapping[str, float] | None = None,
        log: str | None = None,
    ) -> Execution:
        """What is recorded in place of the execution that is due, and so done."""
        ...

    def stand_in_for_all(self, status: Status, error: str, log: str | None = None) -> tuple[Execution, ...]:
        """The same for every execution that is due; the first has the log."""
        ...


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


class ByRepetition:
    """Executions of a process follow each other, so a count for each phase is enough."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._done: dict[str, int] = {}

    def take(self, execution: Execution) -> None:
        self._done[execution.phase] = execution.repetition + 1

    def is_asked(self, execution: Execution) -> bool:
        is_new = execution.repetition >= self._done.get(execution.phase, 0)
        return is_new and _is_planned(self._job, execution, execution.repetition)

    def is_closed(self) -> bool:
        return first_due(select_remaining(self._job.stretches, self._done)) is None

    def rest(self, warm_up: bool = True) -> Job | None:
        stretches = select_remaining(self._job.stretches, self._done)
        return replace(self._job, stretches=stretches) if first_due(stretches) else None

    def is_rehearsal(self, phase: Phase) -> bool:
        return False

    def stand_in(
        self,
        status: Status,
        error: str,
        measurements: Mapping[str, float] | None = None,
        log: str | None = None,
    ) -> Execution:
        due = first_due(select_remaining(self._job.stretches, self._done))
        assert due is not None
        execution = Execution(
            self._job.trial, self._job.process, *due, status, time(), measurements or {}, case=self._job.case_id,
            error=error, log=log,
        )  # fmt: skip
        self.take(execution)
        return execution

    def stand_in_for_all(self, status: Status, error: str, log: str | None = None) -> tuple[Execution, ...]:
        first = self.stand_in(status, error, log=log)
        due = [
            (Phase(stretch.phase), repetition)
            for stretch in select_remaining(self._job.stretches, self._done)
            if stretch.kept
            for repetition in range(stretch.first, stretch.end)
        ]
        others = [replace(first, phase=phase, repetition=repetition, log=None) for phase, repetition in due]
        for execution in others:
            self.take(execution)
        return (first, *others)


class ByCase:
    """Cases that are put to an agent at the same time end in any order, so each is noted by its number.

    A number is repetition × cases + place of the case, as in `Job.case_at`; profiled executions have only a repetition.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._places = {case.id: index for index, case in enumerate(job.cases)}
        self._done: dict[str, set[int]] = {
            Phase.WARMUP: set(),
            Phase.MEASURED: set(job.done),
            Phase.PROFILED: set(),
        }
        self._failed_to_warm = False
        """Whether a warm-up ended its process: it would end the next one as well, which therefore does not warm up."""

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

    def is_closed(self) -> bool:
        return next(self._due(), None) is None

    def rest(self, warm_up: bool = True) -> Job | None:
        """The rest of the job. `cautious` has the new process ask the first cases one at a time: those that were under way
        come first, and the one that ended the process shows itself."""
        if self.is_closed():
            return None
        stretches = (
            replace(s, kept=s.kept and not self._done[Phase.WARMUP]) if s.phase == Phase.WARMUP else s
            for s in self._job.stretches
            if s.phase != Phase.WARMUP or (warm_up and not self._failed_to_warm)
            if s.phase != Phase.PROFILED or s.first not in self._done[Phase.PROFILED]
        )
        # Twice as many as can be under way: some may have ended without a chance to say so.
        return replace(
            self._job,
            stretches=tuple(stretches),
            done=frozenset(self._done[Phase.MEASURED]),
            cautious=2 * self._job.concurrency,
        )

    def is_rehearsal(self, phase: Phase) -> bool:
        return not any(s.kept for s in self._job.stretches if s.phase == phase)

    def stand_in(
        self,
        status: Status,
        error: str,
        measurements: Mapping[str, float] | None = None,
        log: str | None = None,
    ) -> Execution:
        phase, number = next(self._due())
        self._failed_to_warm = self._failed_to_warm or phase is Phase.WARMUP
        case, repetition = self._job.case_at(phase, number)
        execution = Execution(
            self._job.trial, self._job.process, phase, repetition, status, time(), measurements or {}, case=case.id,
            error=error, log=log,
        )  # fmt: skip
        self.take(execution)
        return execution

    def stand_in_for_all(self, status: Status, error: str, log: str | None = None) -> tuple[Execution, ...]:
        first = self.stand_in(status, error, log=log)
        others = []
        for phase, number in list(self._due()):
            case, repetition = self._job.case_at(phase, number)
            others.append(replace(first, phase=phase, repetition=repetition, case=case.id, log=None))
            self.take(others[-1])
        return (first, *others)

    def _due(self) -> Iterator[tuple[Phase, int]]:
        for stretch in self._job.stretches:
            phase = Phase(stretch.phase)
            if stretch.kept:
                yield from (
                    (phase, n) for n in range(stretch.first, stretch.end) if n not in self._done[phase]
                )
