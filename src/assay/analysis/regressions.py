"""What got worse, by comparison with a baseline and by change points of the history, told once."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from assay.analysis.floor import is_explained
from assay.analysis.impact import impact_of, per_1000
from assay.analysis.losses import COMPLETED, is_broken, loss_of, severity_of
from assay.analysis.pace import MachineShift
from assay.model import Better, Comparison, Kind, Metric, Rubric, Status, TrialReport, Verdict
from assay.model.regression import Impact, Loss, Regression, Severity, Shift


@dataclass(frozen=True, slots=True)
class Sides:
    """Two versions of an agent that were compared, trial by trial."""

    agent: str
    suite: str
    before: str
    after: str
    pairs: Mapping[str, tuple[TrialReport, TrialReport]]
    """Benchmark, with the params that tell its points apart, to its trials."""
    rubrics: Mapping[str, Rubric]
    """Benchmark id to how its dimensions are weighed."""
    pace: float | None = None
    """By what factor the machine itself took longer on the second side; None where its pace did not move."""


def identity(agent: str, suite: str, benchmark: str, metric: str, before: str, after: str) -> str:
    """The same for the same regression, whenever and however it is found."""
    told = "\n".join((agent, suite, benchmark, metric, before, after))
    return hashlib.sha256(told.encode()).hexdigest()[:8]


def by_comparison(comparisons: Iterable[Comparison], sides: Sides) -> list[Regression]:
    places = {pair[1].name: benchmark for benchmark, pair in sides.pairs.items()}
    return [
        _compared(one, places[one.trial_b], loss, sides)
        for one in comparisons
        if one.verdict is Verdict.WORSE and (loss := loss_of(one)) is not None
    ]


def _compared(one: Comparison, benchmark: str, loss: Loss, sides: Sides) -> Regression:
    first, second = sides.pairs[benchmark]
    rubric = sides.rubrics.get(second.stored.trial.benchmark, Rubric())
    return Regression(
        id=identity(sides.agent, sides.suite, benchmark, one.metric.name, sides.before, sides.after),
        agent=sides.agent,
        suite=sides.suite,
        benchmark=benchmark,
        metric=one.metric,
        before=sides.before,
        after=sides.after,
        baseline_value=one.value_a,
        current_value=one.value_b,
        loss=loss,
        tolerance=one.tolerance,
        severity=severity_of(loss),
        found_by=("baseline",),
        p=one.p_corrected,
        impact=impact_of(one, first, second, rubric),
        is_suspect=sides.pace is not None and is_explained(one, MachineShift(math.log(sides.pace))),
    )


def by_breakage(sides: Sides, told: Iterable[Regression]) -> list[Regression]:
    """Benchmarks that worked before and on which nothing works now, unless that is `told` already.

    That needs no test: an agent that cannot be opened fails once and is given up, which no statistics would call many.
    """
    known = {one.benchmark for one in told if one.metric.name == COMPLETED}
    return [
        _broken(benchmark, first, sides)
        for benchmark, (first, second) in sides.pairs.items()
        if benchmark not in known and is_broken(first, second)
    ]


def _broken(benchmark: str, first: TrialReport, sides: Sides) -> Regression:
    metric = Metric(COMPLETED, "", Better.HIGHER, Kind.DERIVED)
    before = first.ok / max(1, sum(n for status, n in first.counts.items() if Status(status).is_settled))
    loss = Loss(before, before, before)
    return Regression(
        id=identity(sides.agent, sides.suite, benchmark, metric.name, sides.before, sides.after),
        agent=sides.agent,
        suite=sides.suite,
        benchmark=benchmark,
        metric=metric,
        before=sides.before,
        after=sides.after,
        baseline_value=before,
        current_value=0.0,
        loss=loss,
        tolerance=0.0,
        severity=Severity.CRITICAL,
        found_by=("baseline",),
    )


def by_history(agent: str, shifts: Iterable[Shift]) -> list[Regression]:
    """Shifts for the worse that later runs have not undone."""
    return [_shifted(agent, one) for one in shifts if one.loss.value > 0 and not one.is_over]


def _shifted(agent: str, one: Shift) -> Regression:
    before, after = range_of(one)
    return Regression(
        # A drift goes on from run to run, so its end is no part of what it is.
        id=identity(
            agent, one.suite, one.benchmark, one.metric.name, before, "" if one.kind == "drift" else after
        ),
        agent=agent,
        suite=one.suite,
        benchmark=one.benchmark,
        metric=one.metric,
        before=before,
        after=after,
        baseline_value=one.level_before,
        current_value=one.level_after,
        loss=one.loss,
        tolerance=one.tolerance,
        severity=severity_of(one.loss),
        found_by=(one.kind,),
        p=one.p,
        impact=Impact(per_1000=per_1000(one.metric, one.level_before, one.level_after)),
        is_pending=one.is_pending,
        is_suspect=one.pace is not None and one.pace > 1,
    )


def range_of(shift: Shift) -> tuple[str, str]:
    """The versions between which it happened; within one version, the runs."""
    first, second = shift.before, shift.after
    if first.version != second.version:
        return first.version, second.version
    return f"{first.version} run {first.run_id}".strip(), f"{second.version} run {second.run_id}".strip()


def told_once(found: Iterable[Regression]) -> list[Regression]:
    """What both ways found is one regression, with the figures of the first; the worst first."""
    once: dict[str, Regression] = {}
    for one in found:
        known = once.get(one.id)
        once[one.id] = one if known is None else _joined(known, one)
    order = list(Severity)
    return sorted(once.values(), key=lambda one: (-order.index(one.severity), -one.loss.value, one.id))


def _joined(first: Regression, second: Regression) -> Regression:
    return replace(
        first,
        found_by=tuple(dict.fromkeys((*first.found_by, *second.found_by))),
        is_pending=first.is_pending and second.is_pending,
        is_suspect=first.is_suspect or second.is_suspect,
    )
