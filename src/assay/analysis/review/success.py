"""Computes the success figures of periods from what the store knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.analysis.review.shares import compute_share
from assay.model.regression import RegressionState
from assay.model.success import (
    FoundOpportunity,
    FoundRegression,
    GateLoss,
    GateResult,
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
    """Agents that can be run here now; nobody knows since when."""
    benchmarked: Mapping[str, Sequence[datetime]]
    """Agent to the times at which it was benchmarked, in order: its first, and all within the months that are told about."""
    regressions: Sequence[FoundRegression]
    gates: Sequence[GateResult]
    opportunities: Sequence[FoundOpportunity]


def compute_success(record: SuccessRecord, now: datetime) -> SuccessReport:
    """The figures of the last 30 days and of the last months, the current one so far."""
    recent = now - timedelta(days=DAYS)
    is_recent = {agent for agent, times in record.benchmarked.items() if times[-1] >= recent}
    known = _find_known(record, now, is_past=False)
    return SuccessReport(
        now=now,
        last_30_days=_compute_period(record, recent, now, is_past=False),
        months=tuple(
            _compute_period(record, begins, ends, is_past=ends < now) for begins, ends in _months_until(now)
        ),
        never_benchmarked=tuple(sorted(record.registered - record.benchmarked.keys())),
        not_benchmarked=tuple(sorted(known - is_recent)),
    )


def _months_until(now: datetime) -> Iterator[tuple[datetime, datetime]]:
    end = now
    begin = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    for _ in range(MONTHS):
        yield begin, end
        end = begin
        begin = (begin - timedelta(days=1)).replace(day=1)


def _find_known(record: SuccessRecord, by: datetime, *, is_past: bool) -> set[str]:
    """Agents that should be benchmarked: those registered now; for a month that is over, those with results by its end."""
    if record.registered and not is_past:
        return set(record.registered)
    return {agent for agent, times in record.benchmarked.items() if times[0] <= by}


def _compute_period(
    record: SuccessRecord, begins: datetime, ends: datetime, *, is_past: bool
) -> SuccessFigures:
    known = _find_known(record, ends, is_past=is_past)
    busy = {
        agent
        for agent, times in record.benchmarked.items()
        if agent in known and any(begins <= at <= ends for at in times)
    }
    found = [one for one in record.regressions if begins <= one.detected <= ends]
    judged = [one.judgement for one in found if one.judgement is not None]
    real = [one for one in found if one.judgement is not RegressionState.FALSE_POSITIVE]
    gates = [gate for gate in record.gates if begins <= gate.at <= ends]
    opportunities = [one for one in record.opportunities if begins <= one.found <= ends]
    return SuccessFigures(
        begins=begins,
        ends=ends,
        benchmarked=compute_share(len(busy), len(known)),
        regressions=len(found),
        detection=compute_share(judged.count(RegressionState.CONFIRMED), len(judged)),
        caught=compute_share(sum(is_caught(one, record.gates) for one in real), len(real)),
        gates=compute_share(sum(not gate.passed for gate in gates), len(gates)),
        opportunities=len(opportunities),
        resolved=compute_share(sum(one.resolved is not None for one in opportunities), len(opportunities)),
    )


def is_caught(regression: FoundRegression, gates: Sequence[GateResult]) -> bool:
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
