"""Records the events behind the success figures, and computes the figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime

from assay.analysis.comparison.severity import COMPLETED
from assay.analysis.review.success import SuccessRecord, compute_success, list_periods
from assay.errors import StoreError
from assay.model import Report, RunState, TrialReport, Verdict
from assay.model.profile import PROFILE
from assay.model.regression import Gate
from assay.model.success import FoundOpportunity, GateLoss, GateRecord, SuccessReport
from assay.pipeline.registry import find_registered_agents
from assay.report.figures import params_text
from assay.spec.settings import Settings
from assay.store.store import Store

_LINE = re.compile(r":\d+")


def measure_success(store: Store, settings: Settings, now: datetime) -> SuccessReport:
    """The figures of the last 30 days and of the last months."""
    record = SuccessRecord(
        registered=frozenset(find_registered_agents(settings, store)),
        activity=store.agent_activity(list_periods(now)),
        regressions=store.read_found_regressions(),
        gates=store.gate_results(),
        opportunities=store.opportunities(),
    )
    return compute_success(record, now)


def keep_gate(store: Store, gate: Gate) -> None:
    """Remember what a gate said of a stored run; a database that cannot be written keeps nobody from a verdict."""
    run_id = gate.rerun.judged if gate.rerun is not None else gate.b.run.id
    result = GateRecord(
        run_id, gate.baseline, datetime.now(UTC), gate.passed, tuple(dict.fromkeys(_losses_of(gate)))
    )
    with suppress(StoreError):
        store.keep_gate_result(result)


def _losses_of(gate: Gate) -> Iterator[GateLoss]:
    """What the gate failed on, trial by trial."""
    trials = {trial.name: trial for trial in gate.b.trials}
    for comparison in gate.select_by_verdict(Verdict.WORSE):
        yield _build_loss(trials[comparison.trial_b], comparison.metric.name)
    for name in (*gate.broken, *gate.unscored, *gate.incomplete):
        if name in trials:
            yield _build_loss(trials[name], COMPLETED)
    blamed = [requirement.trial for requirement in gate.unmet]
    if gate.has_lost_too_many:
        blamed += [flips.trial for flips in gate.flips if flips.lost]
    for name in blamed:
        if name in trials:
            yield _build_loss(trials[name], "")


def _build_loss(trial: TrialReport, metric: str) -> GateLoss:
    point = trial.stored.trial
    benchmark = f"{point.benchmark} [{params_text(point.axes)}]" if point.axes else point.benchmark
    return GateLoss(point.agent.name, point.agent.version, point.suite, benchmark, metric)


def keep_opportunities(store: Store, report: Report, now: datetime | None = None) -> None:
    """Remember what a profile found could be saved; what an earlier one found there and this one does not is resolved."""
    finding = report.findings.get(PROFILE)
    if finding is None or report.run.state is not RunState.COMPLETED:
        return
    profiles = finding.document()["profiles"]
    moment = now or datetime.now(UTC)
    found = [
        FoundOpportunity(
            profile["agent_id"],
            profile["trial"],
            opportunity["category"],
            # Lines move when code above them changes; the function stays.
            _LINE.sub("", opportunity["location"]),
            opportunity["estimated_impact"],
            report.run.id,
            moment,
        )
        for profile in profiles
        for opportunity in profile["optimization_opportunities"]
    ]
    places = {(profile["agent_id"], profile["trial"]) for profile in profiles}
    with suppress(StoreError):
        store.keep_opportunities(places, found, moment)
