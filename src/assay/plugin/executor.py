"""An executor says where workers live: on this machine today, and on others if somebody writes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, runtime_checkable

from assay.model import Batch, Job

Attempt = Callable[[Job], Iterator[Batch]]
"""Carries out one job and yields what it made, batch by batch."""


@runtime_checkable
class Executor(Protocol):
    """Made with the number of workers wanted.

    `map` draws jobs one by one, only when a worker is free, so that the runner can stop handing out jobs of a trial
    that has ended; it yields what each attempt yields, in the order in which it arrives. `attempt` is a module-level
    function and a job plain data, so both can be sent to another process. Once `stop()` is true it ends its workers
    and returns.
    """

    def __init__(self, workers: int) -> None: ...

    def map(self, attempt: Attempt, jobs: Iterable[Job], stop: Callable[[], bool]) -> Iterator[Batch]: ...
