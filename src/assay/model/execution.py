"""Executions, and the batches in which workers report them.

A worker sends what it finished as a `Batch`; the runner hands it to the store, which writes it in one transaction. Nothing is changed
afterwards, so a run that is killed loses at most the batch under way and resumes from what is stored.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain
from typing import Any


class Phase(StrEnum):
    """`profiled` executions carry the instruments that slow their subject; their times count nowhere."""

    WARMUP = "warmup"
    MEASURED = "measured"
    PROFILED = "profiled"


class Status(StrEnum):
    """How an execution ended.

    `failed` is an error of the subject, `timeout` and `over_limit` a limit that it exceeded, `crashed` a process that died, and
    `invalid_output` a result that cannot be used. `harness_error` is a failure of Assay or its machine and `cancelled` an execution
    that was broken off; these two say nothing about the subject.
    """

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OVER_LIMIT = "over_limit"
    CRASHED = "crashed"
    INVALID_OUTPUT = "invalid_output"
    HARNESS_ERROR = "harness_error"
    CANCELLED = "cancelled"

    @property
    def is_settled(self) -> bool:
        """Whether this execution stands; what is not settled is done again when the run resumes."""
        return self not in (Status.HARNESS_ERROR, Status.CANCELLED)


MOST_WITHOUT_RESULT = 0.01
"""A trial is incomplete if a larger share of its planned executions has no result: harness errors, or never made."""


def is_incomplete(planned: int, without_result: int) -> bool:
    """
    >>> is_incomplete(100, 1), is_incomplete(100, 2), is_incomplete(50, 1)
    (False, True, True)
    """
    return without_result > MOST_WITHOUT_RESULT * planned


@dataclass(frozen=True, slots=True)
class Execution:
    """One attempt at a case, or one execution of an experiment; unique by trial, process, phase, case and repetition.

    Several calls may be one execution (`loops`), where a single call is too short for the clock; measurements are then those
    of one call. What was not measured is missing from `measurements`.
    """

    trial: int
    process: int
    phase: Phase
    repetition: int
    status: Status
    started: float
    """Seconds since the epoch."""
    measurements: Mapping[str, float]
    """Metric name to value; `seconds` is the time of one call."""
    loops: int = 1
    case: str = ""
    output: object = None
    """What was returned beside numbers, as JSON can hold it."""
    applied: Mapping[str, object] | None = None
    """Settings as read back from the thing under test: proof that the treatment was applied."""
    error: str | None = None
    log: str | None = None
    detail: Mapping[str, object] | None = None
    """What an agent's figures rest on: tool_calls, spans, attempts, reasons, unscored, turns, cost, simulated."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file that an execution left: samples, a profile."""

    trial: int
    name: str
    type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class JobUsage:
    """What the measured executions of a trial took of the machine; the wall time is that of the executions with a CPU time."""

    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    peak_bytes: int | None = None
    """Peak memory of the subject's process; None where it is not known, as for agents behind a network."""

    def together_with(self, other: JobUsage) -> JobUsage:
        """
        >>> JobUsage(1.0, 2.0, 10).together_with(JobUsage(1.0, 3.0, None))
        JobUsage(cpu_seconds=2.0, wall_seconds=5.0, peak_bytes=10)
        """
        peaks = [peak for peak in (self.peak_bytes, other.peak_bytes) if peak is not None]
        return JobUsage(
            self.cpu_seconds + other.cpu_seconds,
            self.wall_seconds + other.wall_seconds,
            max(peaks, default=None),
        )


BETWEEN_NODES = " + "
"""Joins the names, in alphabetical order, of the nodes that executed one process: a round whose cases were spread over several,
or a process that moved after its first execution."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Which machine runs a job, or a share of it: sent when it begins there, and again when it moves to a different one."""

    trial: int
    process: int
    node: str
    """Its name: stable, short, unique in a cluster, and no secret."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What reached the runner at one time; stored in one transaction.

    Mappings have the id of a trial as their key, unless they say otherwise.
    """

    executions: tuple[Execution, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    stopped: Mapping[int, str] = field(default_factory=dict)
    """Trials that ended before their plan was done, and why."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Instrument name to seconds that one start and stop of it take."""
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    """Instruments that had nothing to measure here, and why."""
    versions: Mapping[int, str] = field(default_factory=dict)
    """Trial to the version that its agent was found to have once it was open."""
    settled: tuple[tuple[int, int], ...] = ()
    """(trial, process) pairs whose job is done."""
    usage: Mapping[int, JobUsage] = field(default_factory=dict)
    """Trial to what a job of it took; those of several jobs add up."""
    judge_retries: Mapping[int, int] = field(default_factory=dict)
    """Trial to the requests of its judges that were sent again since the last batch; for the progress line, not stored."""
    notes: Mapping[int, str] = field(default_factory=dict)
    """Trial to how far its execution under way has come, in its own words; for the progress line, not stored."""
    placements: tuple[Placement, ...] = ()
    """Jobs that began on a node of a cluster; none where all workers are on this machine."""
    nodes: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Name of a node to its environment as plain data, when it joins the run."""
    lost_nodes: tuple[str, ...] = ()
    """Nodes that the run goes on without; for the progress line, not stored."""


def join_batches(batches: Sequence[Batch]) -> Batch:
    """All of them as one, in their order: usage and retries are added up, other facts replace what was known.

    A node that is there again has not been lost, as far as anybody saw.
    """
    usage: dict[int, JobUsage] = {}
    retries: Counter[int] = Counter()
    lost_nodes: list[str] = []
    for batch in batches:
        for trial, used in batch.usage.items():
            usage[trial] = used.together_with(usage.get(trial, JobUsage()))
        retries.update(batch.judge_retries)
        lost_nodes = [*(name for name in lost_nodes if name not in batch.nodes), *batch.lost_nodes]
    joined: dict[str, Any] = {}
    for name in Batch.__dataclass_fields__:
        parts = [getattr(batch, name) for batch in batches]
        is_mapping = any(isinstance(part, Mapping) for part in parts)
        joined[name] = dict(ChainMap(*reversed(parts))) if is_mapping else tuple(chain.from_iterable(parts))
    return Batch(**{**joined, "usage": usage, "judge_retries": retries, "lost_nodes": tuple(lost_nodes)})
