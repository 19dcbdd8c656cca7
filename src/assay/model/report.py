"""A report: what a reporter is given to show, one run with everything that analysis found in it.

`pipeline` builds it from the store, and the console, Markdown, HTML, JSON and JUnit reporters all read the same object, so that they
cannot disagree. It holds series of numbers and not executions; those are read from the store one by one when somebody iterates.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING

from assay.model.estimate import Estimate
from assay.model.execution import Artifact, Execution
from assay.model.metric import Kind, Metric
from assay.model.rating import Judging, Ratings, ScorerFailure
from assay.model.run import Run, StoredTrial
from assay.model.suite import Benchmark, Suite

if TYPE_CHECKING:
    from assay.model.finding import Finding
    from assay.model.standing import Lead

_LOOKED_AT = 500
"""Executions that are asked whether they are simulated: an agent is it throughout, or not at all."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """A reason to read a figure with care, with its numbers and what to do about it. Users see it as a warning.

    The code is stable and may be used in scripts; the message may be reworded.
    """

    code: str
    message: str
    hint: str = ""
    trial: str | None = None

    def __str__(self) -> str:
        place = f"{self.trial}: " if self.trial else ""
        return f"{place}{self.message}" + (f" {self.hint}" if self.hint else "")


@dataclass(frozen=True, slots=True)
class AxisEffect:
    """What one axis of a sweep does to a metric: the median at each of its values."""

    axis: str
    metric: Metric
    values: tuple[object, ...]
    medians: tuple[float, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    best: object
    worst: object
    effect: float | None = None
    """The worst value against the best, the other axes being equal: a ratio, or a difference."""
    effect_low: float | None = None
    effect_high: float | None = None
    is_ratio: bool = True
    share: float | None = None
    """Share of the variance of all observations that this axis explains."""
    interacts: tuple[str, ...] = ()
    """Axes on which its effect depends: then no value of it is best in itself."""
    is_pooled: bool = False
    """Whether a value stands for several points, which differ in other axes: then it has a median and no interval."""
    is_workload: bool = False
    """Whether it says how much work there is, or of what kind: then no value of it is a better choice than another."""


@dataclass(frozen=True, slots=True)
class BestPoint:
    """The trial of a sweep with the best median of a metric, and those that the data do not set apart from it."""

    benchmark: str
    metric: Metric
    trial: str
    alike: tuple[str, ...]
    others: int
    """Trials that it was compared with."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Series:
    """One metric of a trial's ok measured executions, column by column, in the order they were made.

    Row i of every column is the same execution. `processes` groups values that are not independent of each other, so intervals
    are computed over these groups and not over single values.
    """

    processes: Sequence[int]
    repetitions: Sequence[int]
    values: Sequence[float]
    unit: str = "process"
    """What `processes` counts: what is independent of each other, a `process`, a `case` or a `load`."""
    rounds: Sequence[int] = ()
    """For cases: the process that each value comes from, which is one interleaved pass; empty where repetitions are passes."""


@dataclass(frozen=True, slots=True)
class TrialReport:
    """One trial: its estimates and what is behind them."""

    stored: StoredTrial
    estimates: tuple[Estimate, ...]
    counts: Mapping[str, int]
    """Status to number of measured executions."""
    series: Mapping[str, Series]
    failures: tuple[Execution, ...] = ()
    """The first executions that were not ok, of any phase."""
    executions: Iterable[Execution] = ()
    """All executions of all phases, read anew each time it is iterated, so that a large run fits in memory."""
    applied: Mapping[str, object] = field(default_factory=dict)
    artifacts: tuple[Artifact, ...] = ()
    ratings: Ratings | None = None
    """Ratings of a trial that put an agent through a suite; None for other trials."""
    watched: frozenset[str] = frozenset()
    """Metrics that instruments gave: they come along, and the experiment's own stand before them."""
    leads: tuple[str, ...] = ()
    """Metrics that a benchmark wants to be shown first."""
    declared: frozenset[str] = frozenset()
    """Metrics that the experiment itself declares, so that they are judged unasked."""
    deviation: float | None = None
    """Overall ÷ the baseline's overall − 1; None where there is no baseline."""
    judging: Judging | None = None
    """None where no judge was asked."""
    scorer_failures: tuple[ScorerFailure, ...] = ()
    """Scorers that could not judge some of its outputs."""
    definition: str = ""
    """Hash of the benchmark of a suite as it was asked; empty where that is code, or not known."""
    has_simulated_executions: bool | None = None
    """As the store recorded it; None where only the executions themselves tell."""
    nodes: Mapping[int, str] = field(default_factory=dict)
    """The node that executed each process; empty where the executor has no nodes."""

    @property
    def name(self) -> str:
        return self.stored.trial.name

    @property
    def ok(self) -> int:
        return self.counts.get("ok", 0)

    @property
    def is_scoring_failed(self) -> bool:
        """Whether most of its ok executions are unscored, so that its accuracy says little about the agent."""
        return self.ratings is not None and self.ratings.is_scoring_failed

    @property
    def is_simulated(self) -> bool:
        """Whether its agent, or the server behind it, made its figures up."""
        use = self.stored.trial.agent_use
        kinds = {estimate.metric.kind for estimate in self.estimates}
        if self.applied.get("simulated") is True or kinds == {Kind.SIMULATED}:
            return True
        if use is None:
            return False
        if use.type == "simulated":
            return True
        if self.has_simulated_executions is not None:
            return self.has_simulated_executions
        first = islice(self.executions, _LOOKED_AT)
        return any(execution.detail and execution.detail.get("simulated") for execution in first)

    @property
    def is_code(self) -> bool:
        """Whether code is the thing under test, so that a process of it is one unit of replication."""
        return self.stored.trial.agent_use is None

    @property
    def is_recorded(self) -> bool:
        """Whether its answers and times were recorded earlier, so that nothing was measured here."""
        return self.stored.trial.is_recorded


@dataclass(frozen=True, slots=True)
class NodeShare:
    """What one node of a cluster executed of a run."""

    node: str
    kind: str
    """Its kind of machine, as `Environment.machine_class` tells it."""
    processes: int
    executions: int
    """Measured ones that were ok."""
    doubts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a reporter is given: one run with its findings, or the trials of an agent from one or several runs."""

    run: Run
    trials: tuple[TrialReport, ...]
    axes: tuple[AxisEffect, ...]
    doubts: tuple[Doubt, ...]
    suite: Suite | None = None
    """With its cases, so that a report can show what was asked and expected; None where only its name is known."""
    best: tuple[BestPoint, ...] = ()
    """The best points of a sweep, by benchmark and metric."""
    findings: Mapping[str, Finding] = field(default_factory=dict, hash=False)
    """Experiment to what its trials show together, for experiments that have such a plug-in."""
    leads: tuple[Lead, ...] = ()
    """For agents on a suite: who leads on each benchmark, and on all of them together."""
    sources: Mapping[int, Run] = field(default_factory=dict, hash=False)
    """Id of a trial to the run that it is from, where not all are from `run`."""
    nodes: tuple[NodeShare, ...] = ()
    """The nodes that executed the run, by name; empty where its executor has none."""

    def finding_of(self, trial: TrialReport) -> Finding | None:
        """What the trial and the others of its experiment show together; None where that is nothing."""
        return self.findings.get(trial.stored.trial.experiment)

    def benchmark(self, name: str) -> Benchmark | None:
        """Return the benchmark as the suite defines it; None if the suite is unknown or has none of that name."""
        defined = self.suite.benchmarks if self.suite else ()
        return next((benchmark for benchmark in defined if benchmark.id == name), None)

    def run_of(self, trial: TrialReport) -> Run:
        return self.sources.get(trial.stored.id, self.run)

    @property
    def runs(self) -> tuple[Run, ...]:
        """Return the runs that the trials are from, in the order of the trials."""
        by_id = {self.run_of(trial).id: self.run_of(trial) for trial in self.trials}
        return tuple(by_id.values()) or (self.run,)

    def __len__(self) -> int:
        return len(self.trials)


def agent_labels(trials: Sequence[TrialReport]) -> list[str]:
    """Names of agents with what a sweep set; those that would be alike also have their version or number."""
    names = []
    for trial in trials:
        point = trial.stored.trial
        axes = ", ".join(f"{name}={value}" for name, value in point.axes.items())
        names.append(f"{point.agent.name}[{axes}]" if axes else point.agent.name)
    versioned = [
        f"{name} {trial.stored.trial.agent.version}".strip() if names.count(name) > 1 else name
        for name, trial in zip(names, trials, strict=True)
    ]
    return [
        f"{name} (trial {trial.stored.id})" if versioned.count(name) > 1 else name
        for name, trial in zip(versioned, trials, strict=True)
    ]


def mark_simulated(trial: TrialReport) -> TrialReport:
    """Call every metric of the trial simulated, if a simulated agent or server answered.

    One simulated request is enough: a mixture of measured and made-up times is no measurement.
    """
    if not any((execution.detail or {}).get("simulated") for execution in trial.executions):
        return trial
    estimates = tuple(
        replace(estimate, metric=replace(estimate.metric, kind=Kind.SIMULATED))
        for estimate in trial.estimates
    )
    return replace(trial, estimates=estimates)
