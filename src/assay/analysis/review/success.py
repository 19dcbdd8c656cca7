"""Computes the success figures of periods from what the store knows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.analysis.review.shares import compute_share
from assay.model.regression import RegressionState
from assay.model.success import (
    AgentActivity,
    FoundOpportunity,
    FoundRegression,
    GateLoss,
    GateRecord,
    SuccessFigures,
    SuccessReport,
)

DAYS = 30
MONTHS = 6
_GATE_LAG = timedelta(days=1)
"""The server looks for regressions right after a run, a gate may be asked a little later and still stops the version."""


@dataclass(frozen=True, slots=True)
class SuccessRecord:
    """Everything that the figures are made of."""

    registered: frozenset[str]
    """Agents that can be run here now; it is unknown since when."""
    activity: Mapping[str, AgentActivity]
    """Activity of every agent with results, in the periods of `list_periods`."""
    regressions: Sequence[FoundRegression]
    gates: Sequence[GateRecord]
    opportunities: Sequence[FoundOpportunity]


def list_periods(now: datetime) -> list[tuple[datetime, datetime]]:
    """The last 30 days, then the current month so far and those before it."""
    periods = [(now - timedelta(days=DAYS), now)]
    begins, ends = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0), now
    for _ in range(MONTHS):
        periods.append((begins, ends))
        begins, ends = (begins - timedelta(days=1)).replace(day=1), begins
    return periods


def compute_success(record: SuccessRecord, now: datetime) -> SuccessReport:
    """The figures of the last 30 days and of the last months, the current one so far."""
    figures = [
        _compute_period(record, number, *period, is_past=period[1] < now)
        for number, period in enumerate(list_periods(now))
    ]
    recent = {agent for agent, activity in record.activity.items() if activity.is_active[0]}
    return SuccessReport(
        now=now,
        last_30_days=figures[0],
        months=tuple(figures[1:]),
        never_benchmarked=tuple(sorted(record.registered - record.activity.keys())),
        not_benchmarked=tuple(sorted(_find_known(record, now, is_past=False) - recent)),
    )


def _find_known(record: SuccessRecord, by: datetime, *, is_past: bool) -> set[str]:
    """Agents that should be benchmarked: those registered now; for a month that is over, those with results by its end."""
    if record.registered and not is_past:
        return set(record.registered)
    return {agent for agent, activity in record.activity.items() if activity.first <= by}


def _compute_period(
    record: SuccessRecord, number: int, begins: datetime, ends: datetime, *, is_past: bool
) -> SuccessFigures:
    known = _find_known(record, ends, is_past=is_past)
    busy = {
        agent for agent, activity in record.activity.items() if agent in known and activity.is_active[number]
    }
    found = [regression for regression in record.regressions if begins <= regression.detected <= ends]
    judged = [regression.judgement for regression in found if regression.judgement is not None]
    real = [regression for regression in found if regression.judgement is not RegressionState.FALSE_POSITIVE]
    gates = [gate for gate in record.gates if begins <= gate.at <= ends]
    opportunities = [
        opportunity for opportunity in record.opportunities if begins <= opportunity.found <= ends
    ]
    return SuccessFigures(
        begins=begins,
        ends=ends,
        benchmarked=compute_share(len(busy), len(known)),
        regressions=len(found),
        detection=compute_share(judged.count(RegressionState.CONFIRMED), len(judged)),
        caught=compute_share(sum(is_caught(regression, record.gates) for regression in real), len(real)),
        gates=compute_share(sum(not gate.passed for gate in gates), len(gates)),
        opportunities=len(opportunities),
        resolved=compute_share(
            sum(opportunity.resolved is not None for opportunity in opportunities), len(opportunities)
        ),
    )


def is_caught(regression: FoundRegression, gates: Sequence[GateRecord]) -> bool:
    """Whether a gate failed on it, by the time it was found or within a day."""
    return any(
        gate.at <= regression.detected + _GATE_LAG
        and any(_is_same(loss, gate.run_id, regression) for loss in gate.losses)
        for gate in gates
    )


def _is_same(loss: GateLoss, run_id: str, regression: FoundRegression) -> bool:
    # Where several runs are of one version, a regression names the run beside it.
    versions = (loss.version, f"{loss.version} run {run_id}".strip())
    return (
        (loss.agent, loss.suite, loss.benchmark) == (regression.agent, regression.suite, regression.benchmark)
        and loss.metric in ("", regression.metric)
        and regression.after in versions
    )
