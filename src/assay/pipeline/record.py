"""What an agent did over time: its versions, the trials that stand for each, and every metric's history."""

from __future__ import annotations

import contextlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

from assay.analysis.family import judgeable
from assay.analysis.findings import findings
from assay.analysis.floor import FEWEST_SESSIONS
from assay.analysis.history import typical
from assay.analysis.losses import depends_on_machine
from assay.analysis.pace import pace_of
from assay.analysis.same import same_value
from assay.analysis.tally import case_series
from assay.errors import LookupFailed, MissingExtra, no_such
from assay.execute.environment import machine_class
from assay.model import Doubt, Environment, Metric, Report, Run, Series, Suite, TrialReport
from assay.model.regression import MetricHistory, Point
from assay.pipeline.reporting import trial_report_of
from assay.plugin import lookup
from assay.report.figures import params_text
from assay.store.history import AgentTrial, Columns
from assay.store.store import Store

Chosen = Mapping[str, AgentTrial]
"""Label of a point to the trial that stands for it."""


@dataclass(frozen=True, slots=True)
class Record:
    """An agent's trials in one suite, or of code experiments; the oldest first."""

    agent: str
    suite: str
    trials: tuple[AgentTrial, ...]

    @property
    def version(self) -> str:
        """That of the newest trial."""
        return self.trials[-1].version

    @property
    def versions(self) -> list[str]:
        """In the order in which they first ran."""
        return list(dict.fromkeys(trial.version for trial in self.trials))

    @property
    def previous(self) -> str | None:
        """The version that ran last before this one."""
        others = [trial.version for trial in self.trials if trial.version != self.version]
        return others[-1] if others else None

    def latest(self, version: str) -> Chosen:
        """The newest trial of a version at each point."""
        return {label_of(trial): trial for trial in self.trials if trial.version == version}

    def of_run(self, run_id: str) -> Chosen:
        return {label_of(trial): trial for trial in self.trials if trial.run_id == run_id}


def record_of(store: Store, agent: str, suite: str | None) -> Record:
    """Of the suite asked for, else of the one that the agent ran last."""
    trials = store.agent_trials(agent)
    if not trials:
        raise LookupFailed(no_such(agent, "agents with results", store.agents_with_trials()))
    wanted = trials[-1].suite if suite is None else suite
    chosen = tuple(trial for trial in trials if trial.suite == wanted)
    if not chosen:
        suites = {trial.suite for trial in trials if trial.suite}
        raise LookupFailed(no_such(wanted, f"suites that '{agent}' was put through", suites))
    return Record(agent, wanted, chosen)


def label_of(trial: AgentTrial) -> str:
    return f"{trial.benchmark} [{params_text(trial.axes)}]" if trial.axes else trial.benchmark


def unlikeness(first: AgentTrial, second: AgentTrial) -> str:
    """Why two trials at one point are no measure for each other, whatever the metric; empty where they are."""
    if first.simulated != second.simulated:
        return "one is simulated, the other measured"
    if same_value(dict(first.params)) != same_value(dict(second.params)):
        return "the params differ"
    if first.benchmark_hash != second.benchmark_hash or set(first.cases) != set(second.cases):
        return "the benchmark was changed, or other cases of it were put"
    return ""


def machine_of(trial: AgentTrial) -> str:
    return machine_class(Environment(trial.facts))


@dataclass(frozen=True, slots=True)
class LoadedRun:
    run: Run
    suite: Suite | None

    @staticmethod
    def read(store: Store, run_id: str) -> LoadedRun:
        return LoadedRun(store.run(run_id), store.suite_of(run_id))


def report_on(
    store: Store, trials: Iterable[AgentTrial], loaded: dict[str, LoadedRun] | None = None
) -> Report:
    """Trials of one or several runs as one brief report; `run` is the newest of them, `sources` has the run of each trial."""
    chosen = sorted(trials, key=lambda trial: trial.started)
    # Sides of one run share what is read of it: a suite may have very many cases.
    loaded = {} if loaded is None else loaded
    for run_id in dict.fromkeys(trial.run_id for trial in chosen):
        if run_id not in loaded:
            loaded[run_id] = LoadedRun.read(store, run_id)
    runs = {trial.run_id: loaded[trial.run_id].run for trial in chosen}
    suites = {run_id: loaded[run_id].suite for run_id in runs}
    for file in dict.fromkeys(file for run in runs.values() for file in run.load):
        # Units and directions that an experiment declares are in its file; a report is fine without.
        with contextlib.suppress(LookupFailed, MissingExtra):
            lookup.load_file(Path(file))
    reports = []
    for trial in chosen:
        stored = next(one for one in runs[trial.run_id].trials if one.id == trial.trial_id)
        reports.append(trial_report_of(store, stored, suites[trial.run_id], is_brief=True))
    newest = chosen[-1].run_id
    sources = {trial.trial_id: runs[trial.run_id] for trial in chosen}
    return replace(findings(runs[newest], reports, suites[newest]), sources=sources)


@dataclass(frozen=True, slots=True)
class Past:
    """Histories of like with like, and what was left out of them."""

    histories: tuple[MetricHistory, ...]
    doubts: tuple[Doubt, ...]


def past_of(store: Store, record: Record, current: Chosen, metrics: Mapping[str, Sequence[Metric]]) -> Past:
    """The `metrics`, by label, at every point of the current version."""
    histories: list[MetricHistory] = []
    doubts: list[Doubt] = []
    for label, newest in current.items():
        trials = [one for one in record.trials if label_of(one) == label]
        alike = [one for one in trials if not unlikeness(one, newest)]
        here = [one for one in alike if machine_of(one) == machine_of(newest)]
        chosen = metrics[label]
        values = _values(store, alike, chosen)
        for metric in chosen:
            like = here if depends_on_machine(metric) else alike
            points = _points(record, like, values, metric.name)
            histories.append(MetricHistory(record.suite, label, metric, points))
        doubts += _left_out(label, len(trials) - len(alike), len(alike) - len(here))
    return Past(tuple(histories), tuple(doubts))


Values = Mapping[int, Mapping[str, float]]
"""Trial to metric to the value that stands for it."""


def _values(store: Store, trials: Sequence[AgentTrial], metrics: Sequence[Metric]) -> Values:
    in_suite = {trial.trial_id: bool(trial.suite) for trial in trials}
    values: dict[int, dict[str, float]] = {}
    for trial_id, columns in store.columns(list(in_suite), [metric.name for metric in metrics]):
        series = case_series(columns.table) if in_suite[trial_id] else _series(columns)
        values[trial_id] = {one.name: typical(one, series[one.name]) for one in metrics if one.name in series}
    return values


def _series(columns: Columns) -> dict[str, Series]:
    """Each metric of the ok executions, with processes as what is independent."""
    found: dict[str, Series] = {}
    is_ok = [status == "ok" for status in columns.statuses]
    for name, values in columns.metrics.items():
        kept = [ok and value is not None for ok, value in zip(is_ok, values, strict=True)]
        found[name] = Series(
            array("q", compress(columns.processes, kept)),
            array("q", compress(columns.repetitions, kept)),
            array("d", (value for value in compress(values, kept) if value is not None)),
        )
    return found


def _points(record: Record, trials: Sequence[AgentTrial], values: Values, metric: str) -> tuple[Point, ...]:
    """In the order of versions, and of runs within each: a version that is run again later stays in its place."""
    places = {version: place for place, version in enumerate(record.versions)}
    ordered = sorted(trials, key=lambda trial: (places[trial.version], trial.started))
    return tuple(
        Point(trial.run_id, trial.version, trial.started, value, pace_of(trial.facts))
        for trial in ordered
        if (value := values[trial.trial_id].get(metric)) is not None and math.isfinite(value)
    )


TrialHistories = Sequence[tuple[str, MetricHistory]]
"""The name of a trial, with the history of one of its metrics."""


def read_histories(store: Store, report: Report) -> TrialHistories:
    """What each trial's agent did before at the same point, metric by metric.

    Points with too few trials in other runs to know what runs differ by are left out, and nothing is read for them.
    """
    found: list[tuple[str, MetricHistory]] = []
    suite = report.run.suite.name if report.run.suite else ""
    trials = {trial.stored.id: trial for trial in report.trials}
    for agent in dict.fromkeys(trial.stored.trial.agent.name for trial in report.trials):
        record = Record(agent, suite, tuple(one for one in store.agent_trials(agent) if one.suite == suite))
        others = Counter(label_of(one) for one in record.trials if one.run_id != report.run.id)
        here = {
            label: one
            for label, one in record.of_run(report.run.id).items()
            if one.trial_id in trials and others[label] >= FEWEST_SESSIONS
        }
        names = {label: trials[one.trial_id].name for label, one in here.items()}
        metrics = {label: _judgeable(trials[one.trial_id]) for label, one in here.items()}
        past = past_of(store, record, here, metrics).histories
        found += [(names[history.benchmark], history) for history in past]
    return found


def _judgeable(trial: TrialReport) -> list[Metric]:
    metrics = [estimate.metric for estimate in trial.estimates]
    return [metric for metric in metrics if metric.name in judgeable(metrics)]


def _left_out(label: str, unlike: int, elsewhere: int) -> list[Doubt]:
    doubts = []
    if unlike:
        told = f"{unlike} earlier trial{'s' * (unlike != 1)} of {label} asked something else"
        doubts.append(Doubt("unlike", f"{told}: not part of its history."))
    if elsewhere:
        told = f"{elsewhere} earlier trial{'s' * (elsewhere != 1)} of {label} ran on another kind of machine"
        doubts.append(Doubt("machine", f"{told}: times and memory of those are not part of its history."))
    return doubts
