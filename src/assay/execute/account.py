"""What is done of a job, and what is due: by repetition, or by case where an agent is put through cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import time
from typing import Protocol

from assay.execute.due import first_due, left
from assay.model import Execution, Job, Phase, Status


class Account(Protocol):
    """Takes note of each execution of a job as it is done."""

    def take(self, execution: Execution) -> None: ...

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
        return first_due(left(self._job.stretches, self._done)) is None

    def rest(self, warm_up: bool = True) -> Job | None:
        stretches = left(self._job.stretches, self._done)
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
        due = first_due(left(self._job.stretches, self._done))
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
            for stretch in left(self._job.stretches, self._done)
            if stretch.kept
            for repetition in range(stretch.first, stretch.end)
        ]
        others = [replace(first, phase=phase, repetition=repetition, log=None) for phase, repetition in due]
        for execution in others:
            self.take(execution)
        return (first, *others)


class ByCase:
    """Cases put to an agent at a time end in any order, so each is noted by its number."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._places = {case.id: index for index, case in enumerate(job.cases)}
        self._done: dict[str, set[int]] = {
            Phase.WARMUP: set(),
            Phase.MEASURED: set(job.done),
            Phase.PROFILED: set(),
        }
        self._failed_to_warm = False
        """A warm-up ended its process; it would do the same to the next."""

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
        """Those that may have ended the process come first, one at a time: then it is seen which case it was."""
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
