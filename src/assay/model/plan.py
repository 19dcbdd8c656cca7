from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from assay.model.suite import Case, ScorerUse, Suite


class Isolation(StrEnum):
    """How far an execution is kept apart from the runner and from its neighbours."""

    PROCESS = "process"
    COLD = "cold"
    INLINE = "inline"


class Order(StrEnum):
    INTERLEAVED = "interleaved"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """The thing under test; for a code experiment, the code base that holds it."""

    name: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class AgentUse:
    """How to make an agent: its type and options as written, with `${NAME}` for what only the environment knows."""

    name: str
    type: str
    options: Mapping[str, object] = field(default_factory=dict)
    version: str = ""
    price: Mapping[str, float] | None = None
    """usd per million tokens, `input` and `output`, and `request`; goes before the price list."""
    folder: str = ""
    """Of the file that defines it: relative paths in its options count from here."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Ceilings for a whole run; None is no ceiling."""

    usd: float | None = None
    tokens: float | None = None

    def replaced_by(self, other: Budget) -> Budget:
        """With the ceilings that the other has in the place of its own.

        >>> Budget(usd=1.0, tokens=5.0).replaced_by(Budget(usd=2.0))
        Budget(usd=2.0, tokens=5.0)
        """
        return Budget(
            self.usd if other.usd is None else other.usd,
            self.tokens if other.tokens is None else other.tokens,
        )


@dataclass(frozen=True, slots=True)
class Until:
    """When `measured: auto` has seen enough: the interval is this narrow, or the maximum is reached."""

    interval: float = 0.05
    max: int = 50
    min: int = 6
    metric: str = "seconds"


@dataclass(frozen=True, slots=True)
class Ruling:
    """How the question of a run stood when it ended."""

    decision: str
    """`higher`, `lower` or `same`: of the second arm, against the first; `open` where it stayed undecided."""
    pairs: int
    left_out: int = 0
    """Pairs that told nothing, as where one arm failed."""
    effect: float | None = None
    """B ÷ A, or of scores B − A; None before the first look."""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """Is the second arm better than the first? Looked at after each pair; the run ends as soon as it is decided."""

    arms: tuple[str, str]
    metric: str = "seconds"
    tolerance: float = 0.03
    """How far apart they may be and still count as the same: a share, or of scores points."""
    max: int = 60
    """Pairs at the most: processes of a code experiment, cases of a suite."""
    min: int = 10
    ruling: Ruling | None = None
    """None while the run goes on."""

    @property
    def is_decided(self) -> bool:
        """Whether the run ended because the answer was clear, not because it ran out of pairs."""
        return self.ruling is not None and self.ruling.decision != "open"


@dataclass(frozen=True, slots=True)
class Iterations:
    """How often one process does it; `until` is set when `measured` is only a ceiling."""

    warmup: int = 0
    measured: int = 1
    until: Until | None = None
    loops: int | None = 1
    """Calls within one execution; None finds a number that the clock can see (autorange)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings for one execution; None is no ceiling."""

    seconds: float | None = None
    memory_bytes: int | None = None
    tokens: float | None = None
    usd: float | None = None


@dataclass(frozen=True, slots=True)
class Cleanup:
    """A command that runs after a worker was killed or crashed, and the folder that it runs in."""

    command: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class InstrumentUse:
    name: str
    options: Mapping[str, object] = field(default_factory=dict)


RECORDED = "recorded"
"""The type of agents whose answers were made earlier."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One point: agent × benchmark × params."""

    index: int
    name: str
    agent: AgentVersion
    benchmark: str
    experiment: str
    params: Mapping[str, object]
    iterations: Iterations
    axes: Mapping[str, object] = field(default_factory=dict)
    """The part of `params` that a sweep varies."""
    processes: int = 1
    instruments: tuple[InstrumentUse, ...] = (InstrumentUse("timing"),)
    isolation: Isolation = Isolation.PROCESS
    limits: Limits = field(default_factory=Limits)
    agent_use: AgentUse | None = None
    """Set where an agent is put through cases; None where code is the thing under test."""
    suite: str = ""
    cases: tuple[str, ...] = ()
    """Ids of the cases it is put through, in order."""
    concurrency: int = 1
    """Cases put to the agent at a time."""
    cleanup: Cleanup | None = None

    @property
    def is_recorded(self) -> bool:
        """Whether its agent's answers were recorded earlier: then its times are recorded, and no others are known."""
        return self.agent_use is not None and self.agent_use.type == RECORDED

    @property
    def is_plan_known(self) -> bool:
        """Whether its measured executions are known beforehand: not where it ends by itself or its answers were recorded."""
        return not (self.iterations.until or self.is_recorded)

    @property
    def planned_measured(self) -> int:
        """Measured executions; fewer where it ends early or not every answer was recorded."""
        processes = 1 if self.agent_use is not None else self.processes
        return self.iterations.measured * (len(self.cases) or 1) * processes

    @property
    def most_executions(self) -> int:
        """Warm-ups included; fewer where it ends early. Cold ones share no process, so each does not warm up again."""
        warmup, measured = self.iterations.warmup, self.iterations.measured
        if self.agent_use is not None:
            return min(warmup, len(self.cases)) + measured * len(self.cases)
        cases = max(1, len(self.cases))
        if self.isolation is Isolation.COLD:
            return (warmup + measured * self.processes) * cases
        return (warmup + measured) * self.processes * cases


@dataclass(frozen=True, slots=True)
class Checkout:
    """A commit in a temporary folder, from which some trials of a run take their code."""

    commit: str
    original: str
    """Top folder of the repository."""
    folder: str
    """Where the commit is checked out."""

    def moved(self, path: str) -> str:
        """The same place in the checkout; what is outside of the repository stays where it is.

        >>> Checkout("ab12", "/project", "/tmp/old").moved("/project/agents.py:fast")
        '/tmp/old/agents.py:fast'
        """
        if path == self.original or path.startswith(f"{self.original}/"):
            return self.folder + path[len(self.original) :]
        return path


@dataclass(frozen=True, slots=True)
class Plan:
    """All trials of a run, in order, with what holds for every one of them."""

    name: str
    trials: tuple[Trial, ...]
    seed: int
    order: Order = Order.INTERLEAVED
    parallelism: int = 1
    executor: str = "local"
    load: tuple[str, ...] = ()
    """Python files that define experiments and the like, as absolute paths; a worker loads them too."""
    output_dir: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    source: Mapping[str, object] = field(default_factory=dict)
    """The spec as it was read, so that a run can be repeated from the store alone."""
    suite: Suite | None = None
    budget: Budget = field(default_factory=Budget)
    question: Question | None = None
    """What ends the run; None where it is carried out whole."""
    label: str = ""
    """What the user calls this run; lists and reports show it beside the name."""
    checkouts: Mapping[int, Checkout] = field(default_factory=dict)
    """Trials, by index, that take their code from another commit; gone with the run, so not stored."""
    remarks: Mapping[int, str] = field(default_factory=dict)
    """Index of a trial to what was found while planning it; shown beside its figures."""

    @property
    def most_executions(self) -> int:
        return sum(trial.most_executions for trial in self.trials)


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
    """What one process has still to do of one trial: plain data that a worker is sent."""

    trial: int
    process: int
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

    @property
    def is_after_death(self) -> bool:
        """Whether it only tidies up after a process that has died."""
        return self.is_teardown or self.is_cleanup

    @property
    def case_id(self) -> str:
        """Of the one case that all executions of code are of; empty where there is none."""
        return self.cases[0].id if self.agent is None and self.cases else ""

    def case_at(self, phase: str, number: int) -> tuple[Case, int]:
        """The case and the repetition of execution `number` of a phase; each profiled one is of the first case."""
        if phase == "profiled":
            return self.cases[0], number
        repetition, place = divmod(number, len(self.cases))
        return self.cases[place], repetition
