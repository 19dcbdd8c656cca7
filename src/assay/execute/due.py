"""What of a job is still due, when so much of each phase is done."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from assay.model import ExecutionRange, Phase


class ExecutionPlace(NamedTuple):
    """Which execution of a process."""

    phase: Phase
    repetition: int


def left(stretches: Iterable[ExecutionRange], done: Mapping[str, int]) -> tuple[ExecutionRange, ...]:
    """The stretches without what is done; `done` counts the executions of each phase."""
    return tuple(
        part for stretch in stretches for part in _parts(stretch, done.get(stretch.phase, stretch.first))
    )


def _parts(stretch: ExecutionRange, done: int) -> Iterator[ExecutionRange]:
    """Warm-ups are repeated even if they are done, because a new process is cold; they are not kept again."""
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
