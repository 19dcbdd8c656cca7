"""Cuts a job of a suite into shares, so that one round of many cases can keep many workers busy.

A share is a job of its own that asks some of the cases: the same trial, round and seed, and the same case and repetition of each
execution, so that results do not tell whether a job was cut. Only the first share keeps warm-ups and makes profiled executions; an agent
that lives in the worker is warmed up in each.

Sizes follow factoring (Hummel, Schonberg and Flynn 1992): a wave of shares, one for each worker, takes a part of what is left, and the next
wave a part of the rest. Early workers are not held up by late ones, and few processes are started.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from assay.model import Case, ExecutionRange, Job, Phase

_PART = 0.5
"""Share of the remaining cases that one wave takes."""
SMALLEST = 8
"""Cases of a share one after the other, where there are enough for all workers: a process takes a tenth of a second to start."""


def cut_job(job: Job, workers: int, *, warms_up_again: bool) -> Iterator[Job]:
    """The shares of a job for so many workers, which together do what the job does; the job itself where it cannot be cut.

    `warms_up_again` says whether every process needs a warm-up of its own.
    """
    if workers < 2 or not is_divisible(job):
        yield job
        return
    # Warm-ups and profiled executions are of the first cases, which are therefore in the first share even if nothing else of them is due.
    least = max((_count_first_cases(stretch) for stretch in job.stretches), default=0)
    due = [case for place, case in enumerate(job.cases) if place < least or _is_due(job, place)]
    first = 0
    for size in _sizes(len(due), workers, job.concurrency):
        size = max(size, least) if first == 0 else size
        if cases := due[first : first + size]:
            yield _share(job, tuple(cases), is_first=first == 0, warms_up_again=warms_up_again)
        first += size


def is_divisible(job: Job) -> bool:
    """Whether its measured executions are whole rounds of at least two cases, in one piece."""
    measured = [s for s in job.stretches if s.phase == Phase.MEASURED]
    if job.agent is None or len(job.cases) < 2 or len(measured) != 1:
        return False
    return not (measured[0].first % len(job.cases) or measured[0].end % len(job.cases))


def _sizes(number: int, workers: int, concurrency: int) -> Iterator[int]:
    """Yield the sizes of the shares of so many cases; what is too little for one more wave is divided evenly. Few cases are one wave.

    >>> list(_sizes(100, 4, 1)), list(_sizes(10, 4, 1))
    ([13, 13, 13, 13, 12, 12, 12, 12], [3, 3, 3, 1])
    """
    left = number
    smallest = min(SMALLEST * concurrency, max(concurrency, math.ceil(number / workers)))
    while left > 0:
        size = math.ceil(_PART * left / workers)
        if size < smallest:
            size = max(math.ceil(left / workers), min(smallest, left))
        for _ in range(workers):
            if left > 0:
                yield min(size, left)
                left -= size


def _count_first_cases(stretch: ExecutionRange) -> int:
    """How many cases at the beginning of the job the stretch needs."""
    if stretch.phase == Phase.WARMUP:
        return stretch.end
    return 1 if stretch.phase == Phase.PROFILED else 0


def _is_due(job: Job, place: int) -> bool:
    n = len(job.cases)
    measured = next(s for s in job.stretches if s.phase == Phase.MEASURED)
    return any(r * n + place not in job.done for r in range(measured.first // n, measured.end // n))


def _share(job: Job, cases: tuple[Case, ...], *, is_first: bool, warms_up_again: bool) -> Job:
    """The job with these cases only; executions are numbered by them, and keep their case and repetition."""
    n, k = len(job.cases), len(cases)
    places = {case.id: place for place, case in enumerate(cases)}
    done = {
        number // n * k + places[job.cases[number % n].id]
        for number in job.done
        if job.cases[number % n].id in places
    }
    stretches: list[ExecutionRange] = []
    for stretch in job.stretches:
        if stretch.phase == Phase.MEASURED:
            stretches.append(replace(stretch, first=stretch.first // n * k, end=stretch.end // n * k))
        elif is_first:
            stretches.append(stretch)
        elif stretch.phase == Phase.WARMUP and warms_up_again:
            stretches.append(replace(stretch, end=min(stretch.end, k), kept=False))
    return replace(job, cases=cases, done=frozenset(done), stretches=tuple(stretches))
