"""A run as the store knows it: a plan that was executed, or is being executed, with its state and its environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from assay.model.plan import Question, Trial
from assay.model.settings import Budget

RERUN_TAG = "gate-rerun"
"""Tag of runs that `assay gate --rerun-baseline` makes: both sides in one run, so neither a baseline nor `last`."""


class RunState(StrEnum):
    """Where a run stands. It begins as `running` and ends in exactly one of the others.

    A run whose process died stays `running` in the store; that it was interrupted shows by its lease.
    """

    RUNNING = "running"
    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """Executed to the end, but a trial has no ok execution."""
    INCOMPLETE = "incomplete"
    """Executed to the end, but executions are missing, as where workers could not be started; it can be resumed."""
    OVER_BUDGET = "over_budget"
    """Ended by the budget of the run; what was finished is kept."""


@dataclass(frozen=True, slots=True)
class SuiteRef:
    """Which suite a run was made with; the store has its whole definition."""

    name: str
    version: str
    category: str
    hash: str
    require: tuple[str, ...] = field(default=(), compare=False)
    """Requirements, of a run that was read from a file and has no whole definition."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Recorded facts of machine, versions, commit and noise; never environment variables."""

    facts: Mapping[str, object]
    """Nested plain data: os, cpu, memory, python, packages, clock, load, noise, container."""
    vcs: Mapping[str, object] = field(default_factory=dict)
    """commit, branch, dirty; empty outside a repository."""
    doubts: tuple[str, ...] = ()

    @property
    def nodes(self) -> dict[str, Environment]:
        """The nodes of a cluster that took part, by name; empty where all executions were made on the machine of these facts."""
        known = self.facts.get("nodes")
        return {
            str(name): Environment(
                node.get("facts") or {}, node.get("vcs") or {}, tuple(node.get("doubts") or ())
            )
            for name, node in (known.items() if isinstance(known, Mapping) else ())
        }

    @property
    def machine_class(self) -> str:
        """A text for the kind of machine: runs with equal texts may be compared in time. Of a cluster, the kinds of its nodes."""
        if nodes := self.nodes:
            return " + ".join(sorted({node.machine_class for node in nodes.values()}))
        cpu, system = (
            part if isinstance(part := self.facts.get(name), Mapping) else {} for name in ("cpu", "os")
        )
        machine = self.facts.get("machine", "?")
        return f"{cpu.get('model', '?')}, {cpu.get('cores_logical', '?')} cores, {system.get('system', '?')} {machine}"


SEARCH_COMPLETE = "search complete"
"""Stored as the reason why a capacity search made no further steps."""
CAPACITY_TAG = "capacity"
MOST_SEARCH_STEPS = 200
"""Executions that a capacity search plans: more than any search takes. It marks the others as not needed when it ends."""
_ENDS_OF_SEARCHES = frozenset({SEARCH_COMPLETE, "the search came to its end"})
"""The second was written by earlier versions."""


@dataclass(frozen=True, slots=True)
class StoredTrial:
    """A trial with the id that the store gave it, and how it ended."""

    id: int
    trial: Trial
    stopped: str | None = None
    """Why it ended before its plan was done."""

    @property
    def has_searched(self) -> bool:
        """Whether it is a capacity search that found its answer."""
        return self.stopped in _ENDS_OF_SEARCHES

    @property
    def cut_short(self) -> str | None:
        """Why it has fewer executions than it should; None for a search, which ends when it has its answer."""
        return None if self.has_searched else self.stopped


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a plan, with what is needed to show, repeat or resume it. Its executions are read from the store separately."""

    id: str
    name: str
    state: RunState
    started: datetime
    ended: datetime | None
    seed: int
    tags: tuple[str, ...]
    notes: str
    environment: Environment
    trials: tuple[StoredTrial, ...]
    source: Mapping[str, object]
    order: str = "interleaved"
    parallelism: int = 1
    executor: str = "local"
    load: tuple[str, ...] = ()
    output_dir: str | None = None
    instrument_costs: Mapping[str, float] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    budget: Budget = field(default_factory=Budget)
    suite: SuiteRef | None = None
    question: Question | None = None
    label: str = ""

    @property
    def is_capacity_search(self) -> bool:
        """Whether its executions are the steps of a search, each with a load of its own, and not repetitions; finished or not.

        The tag alone does not tell, because users can set and remove tags.
        """
        return any(stored.has_searched for stored in self.trials) or (
            CAPACITY_TAG in self.tags
            and all(
                stored.trial.experiment == "load" and stored.trial.iterations.measured == MOST_SEARCH_STEPS
                for stored in self.trials
            )
        )
