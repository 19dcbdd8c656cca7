"""Finds what got worse with an agent's latest version, and what to do about it (`assay regressions`).

Two searches are combined: a comparison with a baseline or the version before, and change points in the history of every
metric. The regressions found are merged with those known from before, whose states are updated, and stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from assay.analysis.comparison.default_metrics import default_family
from assay.analysis.comparison.severity import COMPLETED
from assay.analysis.history.change_points import find_shifts
from assay.analysis.history.promotion import advise
from assay.analysis.history.regressions import by_history, merge_regressions, update_regression_states
from assay.errors import LookupFailed, Unlike, format_unknown_name
from assay.model import Better, Report, TrialReport
from assay.model.metric import Metric
from assay.model.regression import AgentTimeline, MetricHistory, Regression, RegressionReport, Shift
from assay.pipeline.agent_history import Chosen, Record, past_of, record_of, report_on
from assay.pipeline.resolution import Newest, find_undone
from assay.pipeline.version_comparison import Against, GateFindings, Measure, compare_against
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What to compare the latest version with; by default the version before it, or else a baseline of its suite."""

    agent: str
    suite: str | None = None
    baseline: str | None = None
    baseline_version: str | None = None
    tolerance: float | None = None
    metrics: tuple[str, ...] = ()
    """The metrics to look at; if empty, score, seconds, cost and the share that completed."""


def regressions_of(store: Store, inquiry: Inquiry, now: datetime | None = None) -> RegressionReport:
    """Search for regressions and store them, each in its state.

    The order of the steps matters. Both searches come first, and what they find is merged by id, so that one loss that both
    found is one regression. Then everything open is held against the newest version: what it has undone is no finding any
    more. Only then are the states carried over, since a regression that is found again after it was resolved is reopened.
    """
    record = record_of(store, inquiry.agent, inquiry.suite)
    current = record.latest(record.version)
    past = past_of(
        store, record, current, select_metrics(report_on(store, current.values()), current, inquiry.metrics)
    )
    measure = Measure(inquiry.tolerance, past.histories, inquiry.metrics)
    against = _against(store, record, inquiry)
    compared = compare_against(store, record, current, against, measure) if against else GateFindings()
    search = search_histories(past.histories, inquiry.tolerance)
    found = merge_regressions((*compared.regressions, *by_history(record.agent, search.shifts)))
    known = {
        regression.id: regression
        for regression in store.regressions(record.agent)
        if regression.suite == record.suite
    }
    # The newest version may have undone open regressions that were not found again, and steps of the past.
    ids = {regression.id for regression in found}
    candidates = [
        regression for regression in known.values() if regression.id not in ids and regression.state.is_open
    ]
    candidates += [regression for regression in found if "baseline" not in regression.found_by]
    undone = find_undone(Newest(store, record, current, past.histories, inquiry.tolerance), candidates)
    found = [regression for regression in found if regression.id not in undone]
    regressions = update_regression_states(found, known, undone, now or datetime.now(UTC))
    store.keep_regressions(regressions)
    judged = {history.metric.name for history in past.histories} | {COMPLETED}
    selected = _select_shown(
        [regression for regression in regressions if regression.metric.name in (inquiry.metrics or judged)],
        {regression.id: (regression.benchmark, regression.metric.name) for regression in found},
        inquiry.tolerance,
    )
    nothing = "" if compared.comparisons or search.is_possible else _nothing_to_judge_by(record, against)
    return RegressionReport(
        agent=record.agent,
        version=record.version,
        suite=record.suite,
        baseline=against.told if against else "",
        comparisons=compared.comparisons,
        regressions=selected,
        improvements=tuple(shift for shift in search.shifts if shift.loss.value < 0 and not shift.is_over),
        patterns=compared.patterns,
        histories=past.histories,
        unsearched=search.unsearched,
        advice=advise(
            selected, compared.comparisons, benchmarks=len(current), machine=compared.machine, missing=nothing
        ),
        doubts=(*compared.doubts, *past.doubts),
        flips=compared.flips,
    )


def _select_shown(
    regressions: Sequence[Regression], found: Mapping[str, tuple[str, str]], tolerance: float | None
) -> tuple[Regression, ...]:
    """Regressions found now, and earlier ones at other points that are larger than the tolerance."""
    places = set(found.values())
    return tuple(
        regression
        for regression in regressions
        if regression.id in found
        or (
            (regression.benchmark, regression.metric.name) not in places
            and regression.loss.value > (tolerance or 0)
        )
    )


def select_metrics(report: Report, current: Chosen, requested: Sequence[str] = ()) -> dict[str, list[Metric]]:
    """The metrics to look at, by label: those that were asked for, or the default family."""
    known = {metric.name for trial in report.trials for metric in _known(trial)} | {COMPLETED}
    for name in requested:
        if name not in known:
            raise LookupFailed(format_unknown_name(name, "metrics that it has", known))
    by_trial: dict[int, list[Metric]] = {}
    for trial in report.trials:
        names = requested or default_family(_known(trial), trial.declared)
        by_trial[trial.stored.id] = [metric for metric in _known(trial) if metric.name in names]
    return {label: by_trial[trial.trial_id] for label, trial in current.items()}


def _known(trial: TrialReport) -> list[Metric]:
    return [estimate.metric for estimate in trial.estimates if estimate.metric.better is not Better.UNKNOWN]


def _nothing_to_judge_by(record: Record, against: Against | None) -> str:
    """Why there can be neither a comparison nor a search in the history."""
    if against is not None:
        return f"Nothing can be compared with {against.told}, and there are too few runs for a history."
    return (
        f"There is nothing to compare with: '{record.agent}' has one version, no baseline, and too few runs "
        "for a history."
    )


def _against(store: Store, record: Record, inquiry: Inquiry) -> Against | None:
    """What to compare the latest version with: see `Inquiry` for the order. None if there is nothing."""
    if inquiry.baseline_version is not None:
        return _version(record, inquiry.baseline_version)
    if inquiry.baseline is not None:
        return _read_baseline(store, record, inquiry.baseline)
    if record.previous is not None:
        return _version(record, record.previous)
    baselines = store.baselines()
    for name in (record.suite, "main"):
        run_id = baselines.get(name)
        if run_id is not None and run_id != record.trials[-1].run_id and record.of_run(run_id):
            return _read_baseline(store, record, name)
    return None


def _version(record: Record, version: str) -> Against:
    """An earlier version to compare with. The newest one is refused: compared with itself it would never regress."""
    if version not in record.versions:
        raise LookupFailed(
            format_unknown_name(version, f"versions of '{record.agent}' that ran", record.versions)
        )
    if version == record.version:
        others = ", ".join(f"'{other}'" for other in record.versions if other != version)
        raise Unlike(
            f"'{version}' is the latest version of '{record.agent}' itself. "
            + (f"Name an earlier one: {others}" if others else "There is no other yet.")
        )
    return Against(version, f"version {version or 'without a name'}", record.latest(version))


def _read_baseline(store: Store, record: Record, baseline: str) -> Against:
    """The results of the agent in a baseline; refused if it has none there, or if the baseline is the run that is judged."""
    name = baseline.removeprefix("@")
    run = store.run(f"@{name}")
    trials = record.of_run(run.id)
    if not trials:
        where = f" on suite '{record.suite}'" if record.suite else ""
        raise Unlike(f"Baseline '{name}' (run '{run.id}') has no results of '{record.agent}'{where}.")
    if run.id == record.trials[-1].run_id:
        raise Unlike(f"Baseline '{name}' is the latest run of '{record.agent}' itself. Make a new run first.")
    version = next(iter(trials.values())).version
    return Against(version, f"baseline {name} (version {version}, run {run.id})", trials)


@dataclass(frozen=True, slots=True)
class HistorySearch:
    """All shifts of all histories; `unsearched` says for which metrics there is too little history, and why."""

    histories: tuple[MetricHistory, ...]
    shifts: tuple[Shift, ...]
    unsearched: Mapping[str, str]

    @property
    def is_possible(self) -> bool:
        return len(self.unsearched) < len(self.histories)


def search_histories(histories: tuple[MetricHistory, ...], tolerance: float | None = None) -> HistorySearch:
    """Search all histories for shifts."""
    found = {
        f"{history.benchmark} · {history.metric.name}": find_shifts(history, tolerance)
        for history in histories
    }
    return HistorySearch(
        histories,
        tuple(shift for search in found.values() for shift in search.shifts),
        {name: search.reason for name, search in found.items() if search.reason},
    )


def timeline_of(store: Store, agent: str, suite: str | None = None) -> AgentTimeline:
    """Build the timeline of an agent on this suite, or on the suite that it ran last: the same histories, and nothing is stored."""
    record = record_of(store, agent, suite)
    current = record.latest(record.version)
    metrics = select_metrics(report_on(store, current.values()), current)
    past = past_of(store, record, current, metrics)
    known = [regression for regression in store.regressions(agent) if regression.suite == record.suite]
    return AgentTimeline(
        agent,
        record.suite,
        tuple(record.versions),
        past.histories,
        search_histories(past.histories).shifts,
        tuple(known),
        past.doubts,
    )
