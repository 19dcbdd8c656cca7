"""`assay regressions`: what got worse with an agent, since when, and what to do about it."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from assay.cli.session import Session, common
from assay.cli.shares import share_of
from assay.text import shell_command

if TYPE_CHECKING:
    from assay.model.regression import MetricHistory, Pattern, Regression, RegressionReport, Shift

STATES = ("detected", "investigating", "confirmed", "resolved", "false_positive")


@click.command()
@click.argument("agent", metavar="AGENT")
@click.option("--baseline-version", metavar="V", help="Compare with this version; default: the previous one.")
@click.option("--baseline", metavar="NAME", help="Compare with this baseline.")
@click.option("--suite", metavar="S", help="Suite; default: the one the agent ran last.")
@click.option(
    "--threshold",
    metavar="X",
    help="Ignore losses up to this: 0.1 or 10%. Default: 3%, for scores 1 point.",
)
@click.option(
    "--metric",
    "metrics",
    metavar="M",
    multiple=True,
    help="Look at only this metric; may be repeated. Default: score, seconds, cost and completed.",
)
@click.option("--mark", nargs=2, metavar="ID STATE", help=f"Give a regression a state: {', '.join(STATES)}.")
@click.option("--note", metavar="TEXT", help="With --mark: why.")
@click.option("--all", "with_closed", is_flag=True, help="Also show resolved ones and false positives.")
@common
def regressions(
    session: Session,
    agent: str,
    baseline_version: str | None,
    baseline: str | None,
    suite: str | None,
    threshold: str | None,
    metrics: tuple[str, ...],
    mark: tuple[str, str] | None,
    note: str | None,
    with_closed: bool,
) -> None:
    """Find what got worse with AGENT, by comparison with a baseline and by change points in its history.

    Every regression has an id under which its state and your note are kept.
    """
    if mark is not None:
        _mark(session, agent, *mark, note)
        return
    if note is not None:
        raise click.UsageError("--note belongs to --mark ID STATE.")
    if baseline is not None and baseline_version is not None:
        raise click.UsageError("--baseline and --baseline-version exclude each other.")
    from assay.pipeline.regressing import Inquiry, regressions_of

    tolerance = None if threshold is None else share_of(threshold, "--threshold")
    with session.store() as store:
        found = regressions_of(store, Inquiry(agent, suite, baseline, baseline_version, tolerance, metrics))
    if session.is_json:
        session.emit(document(found))
    else:
        _print(session, found, with_closed)


def _mark(session: Session, agent: str, ref: str, state: str, note: str | None) -> None:
    from assay.errors import LookupFailed, no_such
    from assay.model.regression import RegressionState

    if state not in STATES:
        raise LookupFailed(no_such(state, "states", STATES))
    with session.store() as store:
        marked = store.mark_regression(agent, ref, RegressionState(state), note)
    if session.is_json:
        session.emit(_regression(marked))
        return
    told = f"{marked.benchmark} · {marked.metric.name} between {marked.before} and {marked.after}"
    session.say(f"{marked.id} ({told}) is now {state.replace('_', ' ')}.")
    session.next(shell_command("regressions", agent))


def _print(session: Session, found: RegressionReport, with_closed: bool) -> None:
    from assay.report.regressions import print_regressions

    print_regressions(found, session.console(), with_closed=with_closed)
    first = next((one for one in found.regressions if one.counts), None)
    if first is not None:
        mark = shell_command("regressions", found.agent, options=["--mark", str(first.id), "investigating"])
        session.next(mark, *_comparison(found, first))
    else:
        session.next("assay runs list", shell_command("regressions", found.agent, options=["--all"]))


def _comparison(found: RegressionReport, one: Regression) -> list[str]:
    """How to look at both ends of a regression, where the history knows their runs."""
    points = (point for past in found.histories if past.benchmark == one.benchmark for point in past.points)
    runs = {point.version: point.run_id for point in points}
    ends = [runs[version] for version in (one.before, one.after) if version in runs]
    return [shell_command("compare", *map(str, ends))] if len(ends) == 2 else []


def document(found: RegressionReport) -> dict[str, Any]:
    """Under the names that the JSON document promises."""
    from assay.report.comparison_document import flips_document

    return {
        "schema": "assay.regressions/1",
        "agent_id": found.agent,
        "version": found.version,
        "suite": found.suite,
        "baseline": found.baseline or None,
        "has_regressions": found.has_regressions,
        "regressions": [_regression(one) for one in found.regressions],
        "improvements": [_shift(one) for one in found.improvements],
        "flips": [flips_document(flips) for flips in found.flips],
        "patterns": [_pattern(one) for one in found.patterns],
        "overall_health": found.advice.health,
        "recommended_action": found.advice.action,
        "reason": found.advice.reason,
        "unsure": [
            {"trial": one.trial_b, "metric": one.metric.name, "reason": one.reason}
            for one in found.comparisons
            if one.verdict == "unsure"
        ],
        "history": [_history(one) for one in found.histories],
        "unsearched": dict(found.unsearched),
        "warnings": [{"code": d.code, "message": d.message, "hint": d.hint} for d in found.doubts],
    }


def _pattern(one: Pattern) -> dict[str, Any]:
    return {
        "metric": one.metric.name,
        "factor": one.factor,
        "machine": one.pace,
        "benchmarks": list(one.benchmarks),
        "message": one.message,
    }


def _history(one: MetricHistory) -> dict[str, Any]:
    return {
        "benchmark_id": one.benchmark,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "points": [
            {"run_id": point.run_id, "version": point.version, "value": point.value} for point in one.points
        ],
    }


def _regression(one: Regression) -> dict[str, Any]:
    return {
        "id": one.id,
        "benchmark_id": one.benchmark,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "better": one.metric.better,
        "versions": [one.before, one.after],
        "baseline_value": _finite(one.baseline_value),
        "current_value": _finite(one.current_value),
        "regression_percentage": one.percentage,
        "interval": [_percent(one.loss.low), _percent(one.loss.high)],
        "threshold": one.tolerance,
        "p_corrected": one.p,
        "severity": one.severity,
        "found_by": list(one.found_by),
        "is_pending": one.is_pending,
        "is_suspect": one.is_suspect,
        "impact_analysis": asdict(one.impact),
        "state": one.state,
        "note": one.note,
        "detected": one.detected,
        "changed": one.changed,
    }


def _shift(one: Shift) -> dict[str, Any]:
    return {
        "benchmark_id": one.benchmark,
        "metric": one.metric.name,
        "kind": one.kind,
        "versions": [one.before.version, one.after.version],
        "before": _finite(one.level_before),
        "after": _finite(one.level_after),
        "p_value": one.p,
        "is_pending": one.is_pending,
    }


def _percent(share: float) -> float | None:
    return _finite(share * 100)


def _finite(value: float) -> float | None:
    """JSON has no word for what is unbounded."""
    return value if math.isfinite(value) else None
