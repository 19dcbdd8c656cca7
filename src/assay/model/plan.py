"""A plan: every trial that will run, with all names looked up and all params checked.

`assay.plan` makes it and `execute.runner` carries it out. It is complete: a worker, a resumed run or a report needs neither the spec nor
the suite file again. A plan with a question ends as soon as the question is decided.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from assay.model.settings import (
    RECORDED,
    AgentUse,
    Budget,
    Checkout,
    Cleanup,
    InstrumentUse,
    Isolation,
    Iterations,
    Limits,
    ResourceRequest,
)
from assay.model.suite import Suite


class Order(StrEnum):
    """The sequence of the trials: in turn, process by process, so that a drift of the machine meets all of them alike; or one by one."""

    INTERLEAVED = "interleaved"
    SEQUENTIAL = "sequential"


@dataclass(frozen=True, slots=True)
class AgentVersion:
    """The thing under test; for a code experiment, the code base that holds it."""

    name: str
    version: str = ""


@dataclass(frozen=True, slots=True)
class Ruling:
    """How the question of a run stood when it ended."""

    decision: str
    """`higher`, `lower` or `same`: of the second arm, against the first; `open` where it stayed undecided."""
    pairs: int
    left_out: int = 0
    """Pairs without a result, for example because one arm failed."""
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
    """None while the run is in progress."""

    @property
    def is_decided(self) -> bool:
        """Whether the run ended because the answer was clear, not because it ran out of pairs."""
        return self.ruling is not None and self.ruling.decision != "open"


@dataclass(frozen=True, slots=True)
class Trial:
    """One agent on one benchmark or experiment with fixed params.

    A trial of a suite that asks an agent has `agent_use` and `cases`; each case is put to the agent `iterations.measured` times. A
    trial of code runs its experiment in `processes` fresh processes, the unit of comparison, with so many executions in each.
    """

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
    resources: ResourceRequest | None = None
    """What each of its jobs needs of a node."""

    @property
    def is_recorded(self) -> bool:
        """Whether its agent's answers were recorded earlier: then its times are recorded, and no others are known."""
        return self.agent_use is not None and self.agent_use.type == RECORDED

    @property
    def is_plan_known(self) -> bool:
        """Whether its measured executions are known beforehand: not where it ends by itself or its answers were recorded."""
        return not (self.iterations.until or self.is_recorded)

    @property
    def number_of_planned_executions(self) -> int:
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
class Plan:
    """All trials of a run, in order, with what holds for every one of them."""

    name: str
    trials: tuple[Trial, ...]
    seed: int
    order: Order = Order.INTERLEAVED
    parallelism: int = 1
    """Workers at a time; 0 where the user did not say, until the executor says how many it has."""
    executor: str = "local"
    executor_options: Mapping[str, object] = field(default_factory=dict)
    """Settings of the executor, such as the address of a cluster; of this installation, so not stored."""
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
    """What ends the run; None where it is executed whole."""
    label: str = ""
    """What the user calls this run; lists and reports show it beside the name."""
    checkouts: Mapping[int, Checkout] = field(default_factory=dict)
    """Trials, by index, that take their code from a different commit; gone with the run, so not stored."""
    remarks: Mapping[int, str] = field(default_factory=dict)
    """Index of a trial to what was found while planning it; shown beside its figures."""

    @property
    def most_executions(self) -> int:
        return sum(trial.most_executions for trial in self.trials)
