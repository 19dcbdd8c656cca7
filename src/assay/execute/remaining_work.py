"""What of a job is still due, given how much of each phase is done.

A job has stretches: ranges of repetitions of one phase. `jobs.py` cuts them when a run is resumed, and `job_progress.py` when
a worker has died in the middle of its job.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from assay.model import ExecutionRange, Phase


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
