"""What a worker is sent. The process is started for it alone, so this module imports only what a job consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from assay.model.case import Case, ScorerUse
from assay.model.settings import (
    AgentUse,
    Checkout,
    Cleanup,
    InstrumentUse,
    Isolation,
    Iterations,
    Limits,
    ResourceRequest,
)


@dataclass(frozen=True, slots=True)
class ExecutionRange:
    """Consecutive executions of one phase: numbers `first` up to but not including `end`."""

    phase: str
    first: int
    end: int
    kept: bool = True
    """False for warm-ups that a resumed process repeats only to get warm: they are stored already."""


@dataclass(frozen=True, slots=True)
class Job:
    """What one process has still to do of one trial: plain data that a worker is sent.

    Executions of a phase are numbered from 0. `stretches` are the numbers to do, in order; when a run resumes, they leave out what is
    stored already. The worker needs nothing else to do its work: it reads neither the spec nor the store.
    """

    trial: int
    process: int
    """The number of the round. Jobs of equal number are compared pair by pair, so an executor with several nodes puts them on the
    same node wherever it has room: then the difference of two arms is one within a node."""
    experiment: str
    params: Mapping[str, object]
    stretches: tuple[ExecutionRange, ...]
    iterations: Iterations
    instruments: tuple[InstrumentUse, ...]
    isolation: Isolation
    limits: Limits
    seed: int
    load: tuple[str, ...]
    run_id: str
    run_dir: str
    name: str = ""
    agent: AgentUse | None = None
    cases: tuple[Case, ...] = ()
    """Put to the agent; then number n of a stretch is case n % len(cases) in repetition n // len(cases).

    An experiment that tests code has at most one, whose input is in the params.
    """
    scorers: tuple[ScorerUse, ...] = ()
    done: frozenset[int] = frozenset()
    """Numbers of the measured stretch that are stored already."""
    concurrency: int = 1
    cautious: int = 0
    """How many to ask one at a time first, whatever the concurrency: one of them ended the process before."""
    wants_memory: bool = False
    """Whether peak memory is rated, and so worth the few microseconds that it takes to look."""
    temporary: str = ""
    """The folder of the whole run, where that must not outlive a runner that is killed."""
    is_teardown: bool = False
    """Whether all there is to do is the teardown of a process that has died."""
    cleanup: Cleanup | None = None
    is_cleanup: bool = False
    """Whether all there is to do is to run the cleanup command for a process that has died."""
    is_rated: bool = False
    """Whether the executions of code are rated, and so what CPU and memory each of them took."""
    checkout: Checkout | None = None
    """Where its code comes from, if that is not what is on disk now."""
    resources: ResourceRequest | None = None
    """What it needs of the node that it runs on; None: one slot."""
    gpus: tuple[str, ...] = ()
    """The GPUs that its worker may see, where an executor gives each job its own; empty: as this machine has set it."""

    @property
    def is_after_death(self) -> bool:
        """Whether it only tidies up after a process that has died."""
        return self.is_teardown or self.is_cleanup

    @property
    def case_id(self) -> str:
        """Return the id of the one case that code is executed on; empty without one."""
        return self.cases[0].id if self.agent is None and self.cases else ""

    def case_at(self, phase: str, number: int) -> tuple[Case, int]:
        """The case and the repetition of execution `number` of a phase; each profiled one is of the first case."""
        if phase == "profiled":
            return self.cases[0], number
        repetition, place = divmod(number, len(self.cases))
        return self.cases[place], repetition
