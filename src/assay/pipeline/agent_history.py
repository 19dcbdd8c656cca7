"""Reads what an agent did over time: its versions, the trials that stand for each, and the history of every metric.

A *point* is a benchmark with the values of its axes; its label names it in messages. Histories contain only trials that are
comparable with the newest one at the same point: same kind, params, definition and cases, and for what depends on the machine
the same kind of machine. `regressions`, `detect`, `compare` and `power` all read histories here.
"""

from __future__ import annotations

import contextlib
import math
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from pathlib import Path

from assay.analysis.comparison.default_metrics import judgeable
from assay.analysis.comparison.noise_floor import FEWEST_SESSIONS
from assay.analysis.comparison.severity import depends_on_machine
from assay.analysis.estimates.case_results import case_series
from assay.analysis.estimates.machine_speed import pace_of
from assay.analysis.estimates.treatment import same_value
from assay.analysis.findings import build_report
from assay.analysis.history.change_points import typical
from assay.errors import LookupFailed, MissingExtra, format_unknown_name
from assay.model import Doubt, Environment, Metric, Report, Run, Series, Suite
from assay.model.regression import MetricHistory, Point
from assay.pipeline.report import trial_report_of
from assay.plugin import lookup
from assay.report.figures import params_text
from assay.store.history import AgentTrial, Columns
from assay.store.store import Store
from assay.units import format_count

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
        """The version of the newest trial."""
        return self.trials[-1].version

    @property
    def versions(self) -> list[str]:
        """Return the versions in the order in which they first ran."""
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
    """The record of an agent on this suite, or on the suite that it ran last."""
    trials = store.agent_trials(agent, suite) or store.agent_trials(agent)
    if not trials:
        raise LookupFailed(format_unknown_name(agent, "agents with results", store.agents_with_trials()))
    name = trials[-1].suite if suite is None else suite
    chosen = tuple(trial for trial in trials if trial.suite == name)
    if not chosen:
        suites = {trial.suite for trial in trials if trial.suite}
        raise LookupFailed(format_unknown_name(name, f"suites that '{agent}' ran", suites))
    return Record(agent, name, chosen)


def label_of(trial: AgentTrial) -> str:
    return f"{trial.benchmark} [{params_text(trial.axes)}]" if trial.axes else trial.benchmark


def unlikeness(first: AgentTrial, second: AgentTrial) -> str:
    """Why two trials at one point are not comparable, whatever the metric; empty if they are."""
    if first.simulated != second.simulated:
        return "one is simulated, the other measured"
    if same_value(dict(first.params)) != same_value(dict(second.params)):
        return "the params differ"
    if first.benchmark_hash != second.benchmark_hash or set(first.cases) != set(second.cases):
        return "the benchmark changed, or different cases ran"
    return ""


def machine_of(trial: AgentTrial) -> str:
    return Environment(trial.facts).machine_class


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A run with its suite. Reading both takes long for a suite of many cases, so that a history keeps them."""

    run: Run
    suite: Suite | None

    @staticmethod
    def read(store: Store, run_id: str) -> LoadedRun:
        return LoadedRun(store.run(run_id), store.suite_of(run_id))


def report_on(
    store: Store, trials: Iterable[AgentTrial], loaded: dict[str, LoadedRun] | None = None
) -> Report:
    """Trials of one or several runs as one brief report; `run` is the newest of them, `sources` has the run of each trial.

    `loaded` keeps runs and suites between calls, because a suite may have very many cases.
    """
    chosen = sorted(trials, key=lambda trial: trial.started)
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
        stored = next(candidate for candidate in runs[trial.run_id].trials if candidate.id == trial.trial_id)
        reports.append(trial_report_of(store, stored, suites[trial.run_id], is_brief=True))
    newest = chosen[-1].run_id
    sources = {trial.trial_id: runs[trial.run_id] for trial in chosen}
    return replace(build_report(runs[newest], reports, suites[newest]), sources=sources)


@dataclass(frozen=True, slots=True)
class Past:
    """The histories of comparable trials, and warnings about what was left out of them."""

    histories: tuple[MetricHistory, ...]
    doubts: tuple[Doubt, ...]


def past_of(store: Store, record: Record, current: Chosen, metrics: Mapping[str, Sequence[Metric]]) -> Past:
    """The histories of `metrics`, which are given by label, at every point of the current version."""
    histories: list[MetricHistory] = []
    doubts: list[Doubt] = []
    for label, newest in current.items():
        trials = [trial for trial in record.trials if label_of(trial) == label]
        comparable = [trial for trial in trials if not unlikeness(trial, newest)]
        # Times and memory have a history only on one kind of machine; scores and tokens have one everywhere.
        here = [trial for trial in comparable if machine_of(trial) == machine_of(newest)]
        chosen = metrics[label]
        values = _values(store, comparable, chosen)
        for metric in chosen:
            like = here if depends_on_machine(metric) else comparable
            points = _points(record, like, values, metric.name)
            histories.append(MetricHistory(record.suite, label, metric, points))
        doubts += _describe_excluded_trials(label, len(trials) - len(comparable), len(comparable) - len(here))
    return Past(tuple(histories), tuple(doubts))


Values = Mapping[int, Mapping[str, float]]
"""Trial to metric to the value that stands for it."""


def _values(store: Store, trials: Sequence[AgentTrial], metrics: Sequence[Metric]) -> Values:
    """One value for each trial and metric. Executions are read column by column, without an object for each."""
    in_suite = {trial.trial_id: bool(trial.suite) for trial in trials}
    values: dict[int, dict[str, float]] = {}
    for trial_id, columns in store.columns(list(in_suite), [metric.name for metric in metrics]):
        series = case_series(columns.table) if in_suite[trial_id] else _series(columns)
        values[trial_id] = {
            metric.name: typical(metric, series[metric.name]) for metric in metrics if metric.name in series
        }
    return values


def _series(columns: Columns) -> dict[str, Series]:
    """Return each metric of the ok executions as a series whose independent units are processes."""
    found: dict[str, Series] = {}
    is_ok = [status == "ok" for status in columns.statuses]
    for name, values in columns.metrics.items():
        usable = [ok and value is not None for ok, value in zip(is_ok, values, strict=True)]
        found[name] = Series(
            array("q", compress(columns.processes, usable)),
            array("q", compress(columns.repetitions, usable)),
            array("d", (value for value in compress(values, usable) if value is not None)),
        )
    return found


def _points(record: Record, trials: Sequence[AgentTrial], values: Values, metric: str) -> tuple[Point, ...]:
    """In the order of versions, and of runs within each: a version that is run again later stays in its place.

    A step in this sequence then lies between two versions. In the order of time, an old version that somebody runs again
    today would look like a change, and one back right after it.
    """
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
        record = Record(agent, suite, tuple(store.agent_trials(agent, suite)))
        others = Counter(label_of(trial) for trial in record.trials if trial.run_id != report.run.id)
        here = {
            label: trial
            for label, trial in record.of_run(report.run.id).items()
            if trial.trial_id in trials and others[label] >= FEWEST_SESSIONS
        }
        names = {label: trials[trial.trial_id].name for label, trial in here.items()}
        metrics: dict[str, list[Metric]] = {}
        for label, agent_trial in here.items():
            known = [estimate.metric for estimate in trials[agent_trial.trial_id].estimates]
            metrics[label] = [metric for metric in known if metric.name in judgeable(known)]
        past = past_of(store, record, here, metrics).histories
        found += [(names[history.benchmark], history) for history in past]
    return found


def _describe_excluded_trials(label: str, unlike: int, elsewhere: int) -> list[Doubt]:
    """Say how many trials are not part of a history, and why: a history that is shorter than people remember looks like a
    bug."""
    doubts = []
    if unlike:
        excluded = format_count(unlike, "earlier trial")
        doubts.append(Doubt("unlike", f"{excluded} of {label} ran different cases: not part of its history."))
    if elsewhere:
        excluded = f"{format_count(elsewhere, 'earlier trial')} of {label} ran on a different kind of machine"
        subject = "its times and memory" if elsewhere == 1 else "their times and memory"
        doubts.append(Doubt("machine", f"{excluded}: {subject} are not part of its history."))
    return doubts
