"""What got worse with an agent's latest version, by a baseline and by its history, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from assay.analysis.family import default_family
from assay.analysis.history import searched
from assay.analysis.losses import COMPLETED
from assay.analysis.promotion import advise
from assay.analysis.regressions import by_history, told_once
from assay.analysis.workflow import settled
from assay.errors import LookupFailed, Unlike, no_such
from assay.model import Better, Report, TrialReport
from assay.model.metric import Metric
from assay.model.regression import MetricHistory, Regression, RegressionReport, Shift
from assay.pipeline.holding import Against, GateFindings, Measure, held
from assay.pipeline.record import Chosen, Record, past_of, record_of, report_on
from assay.pipeline.resolution import Newest, find_undone
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class Inquiry:
    """What to hold the latest version against; with neither, the version before it, or a baseline of its suite."""

    agent: str
    suite: str | None = None
    baseline: str | None = None
    baseline_version: str | None = None
    tolerance: float | None = None
    metrics: tuple[str, ...] = ()
    """To look at only these; without any, score, seconds, cost and the share that completed."""


def regressions_of(store: Store, inquiry: Inquiry, now: datetime | None = None) -> RegressionReport:
    """What is found is kept in the store, each regression in its state."""
    record = record_of(store, inquiry.agent, inquiry.suite)
    current = record.latest(record.version)
    past = past_of(
        store, record, current, _metrics(report_on(store, current.values()), current, inquiry.metrics)
    )
    measure = Measure(inquiry.tolerance, past.histories, inquiry.metrics)
    against = _against(store, record, inquiry)
    compared = held(store, record, current, against, measure) if against else GateFindings()
    search = _search(past.histories, inquiry.tolerance)
    found = told_once((*compared.regressions, *by_history(record.agent, search.shifts)))
    kept = {one.id: one for one in store.regressions(record.agent) if one.suite == record.suite}
    undone = find_undone(
        Newest(store, record, current, past.histories, inquiry.tolerance), _open_questions(found, kept)
    )
    found = [one for one in found if one.id not in undone]
    regressions = settled(found, kept, undone, now or datetime.now(UTC))
    store.keep_regressions(regressions)
    judged = {history.metric.name for history in past.histories} | {COMPLETED}
    shown = _shown(
        [one for one in regressions if one.metric.name in (inquiry.metrics or judged)],
        {one.id: (one.benchmark, one.metric.name) for one in found},
        inquiry.tolerance,
    )
    nothing = "" if compared.comparisons or search.is_possible else _nothing_to_judge_by(record, against)
    return RegressionReport(
        agent=record.agent,
        version=record.version,
        suite=record.suite,
        baseline=against.told if against else "",
        comparisons=compared.comparisons,
        regressions=shown,
        improvements=tuple(one for one in search.shifts if one.loss.value < 0 and not one.is_over),
        patterns=compared.patterns,
        histories=past.histories,
        unsearched=search.unsearched,
        advice=advise(
            shown, compared.comparisons, benchmarks=len(current), machine=compared.machine, missing=nothing
        ),
        doubts=(*compared.doubts, *past.doubts),
        flips=compared.flips,
    )


def _shown(
    regressions: Sequence[Regression], found: Mapping[str, tuple[str, str]], tolerance: float | None
) -> tuple[Regression, ...]:
    """What was found now; and of before what is about something else, and large enough to be asked for."""
    places = set(found.values())
    return tuple(
        one
        for one in regressions
        if one.id in found
        or ((one.benchmark, one.metric.name) not in places and one.loss.value > (tolerance or 0))
    )


def _metrics(report: Report, current: Chosen, asked: Sequence[str]) -> dict[str, list[Metric]]:
    """By label, those to look at: the asked ones, or the default family."""
    known = {metric.name for trial in report.trials for metric in _known(trial)} | {COMPLETED}
    for name in asked:
        if name not in known:
            raise LookupFailed(no_such(name, "metrics that it has", known))
    by_trial = {trial.stored.id: _followed(trial, asked) for trial in report.trials}
    return {label: by_trial[trial.trial_id] for label, trial in current.items()}


def _known(trial: TrialReport) -> list[Metric]:
    return [estimate.metric for estimate in trial.estimates if estimate.metric.better is not Better.UNKNOWN]


def _followed(trial: TrialReport, asked: Sequence[str]) -> list[Metric]:
    wanted = asked or default_family(_known(trial), trial.declared)
    return [metric for metric in _known(trial) if metric.name in wanted]


def _nothing_to_judge_by(record: Record, against: Against | None) -> str:
    if against is not None:
        return f"Nothing can be compared with {against.told}, and there are too few runs for a history."
    return (
        f"There is nothing to judge by: '{record.agent}' has one version, no baseline, and too few runs "
        "for a history."
    )


def _against(store: Store, record: Record, inquiry: Inquiry) -> Against | None:
    if inquiry.baseline_version is not None:
        return _version(record, inquiry.baseline_version)
    if inquiry.baseline is not None:
        return _named(store, record, inquiry.baseline)
    if record.previous is not None:
        return _version(record, record.previous)
    for name in (record.suite, "main"):
        if name in store.baselines() and _is_of_use(store, record, name):
            return _named(store, record, name)
    return None


def _version(record: Record, version: str) -> Against:
    if version not in record.versions:
        raise LookupFailed(no_such(version, f"versions of '{record.agent}' that ran", record.versions))
    if version == record.version:
        others = ", ".join(f"'{one}'" for one in record.versions if one != version)
        raise Unlike(
            f"'{version}' is the latest version of '{record.agent}' itself. "
            + (f"Name an earlier one: {others}" if others else "There is no other yet.")
        )
    return Against(version, f"version {version or 'without a name'}", record.latest(version))


def _named(store: Store, record: Record, baseline: str) -> Against:
    name = baseline.removeprefix("@")
    run = store.run(f"@{name}")
    trials = record.of_run(run.id)
    if not trials:
        raise Unlike(
            f"Baseline '{name}' (run '{run.id}') has no results of '{record.agent}'{_of_suite(record)}."
        )
    if run.id == record.trials[-1].run_id:
        raise Unlike(f"Baseline '{name}' is the latest run of '{record.agent}' itself. Make a new run first.")
    version = next(iter(trials.values())).version
    return Against(version, f"baseline {name} (version {version}, run {run.id})", trials)


def _of_suite(record: Record) -> str:
    return f" on suite '{record.suite}'" if record.suite else ""


def _is_of_use(store: Store, record: Record, name: str) -> bool:
    run_id = store.baselines()[name]
    return run_id != record.trials[-1].run_id and bool(record.of_run(run_id))


@dataclass(frozen=True, slots=True)
class _Search:
    """All shifts of all histories."""

    histories: tuple[MetricHistory, ...]
    shifts: tuple[Shift, ...]
    unsearched: Mapping[str, str]

    @property
    def is_possible(self) -> bool:
        return len(self.unsearched) < len(self.histories)


def _search(histories: tuple[MetricHistory, ...], tolerance: float | None) -> _Search:
    found = {f"{one.benchmark} · {one.metric.name}": searched(one, tolerance) for one in histories}
    return _Search(
        histories,
        tuple(shift for one in found.values() for shift in one.shifts),
        {name: one.reason for name, one in found.items() if one.reason},
    )


def _open_questions(found: Sequence[Regression], kept: Mapping[str, Regression]) -> list[Regression]:
    """Regressions that the newest version may have undone: open ones that were not found again, and steps of the past."""
    ids = {one.id for one in found}
    unseen = [one for one in kept.values() if one.id not in ids and one.state.is_open]
    return [*unseen, *(one for one in found if "baseline" not in one.found_by)]
