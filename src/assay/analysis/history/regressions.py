"""Builds regressions from what got worse, whether a comparison or a change point found it.

There are three ways: a comparison with a baseline (`by_comparison`), a benchmark on which nothing works any more
(`find_broken_benchmarks`) and a shift in the history (`by_history`). `merge_regressions` reports what several of them found once, and
`update_regression_states` carries the states of known regressions (such as investigating or resolved) over to the new list.
`pipeline/regressions.py` calls all of them and stores the result.

Each regression has an `Impact`, which says what it does to those who use the agent: which cases got worse, what it costs the
overall rating, and what a thousand tasks now cost in seconds, tokens or dollars.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from assay.analysis.comparison.severity import (
    COMPLETED,
    dimension_of,
    in_points,
    is_broken,
    loss_of,
    loss_of_difference,
    reach_of,
    severity_of,
)
from assay.analysis.estimates.case_results import case_number
from assay.analysis.estimates.completion import COMPLETION
from assay.analysis.estimates.replication import observe
from assay.model import (
    WEIGHTS,
    Better,
    Comparison,
    Kind,
    Metric,
    Ratings,
    Rubric,
    Status,
    TrialReport,
    Verdict,
)
from assay.model.regression import Impact, Loss, Regression, RegressionState, Severity, Shift


@dataclass(frozen=True, slots=True)
class Sides:
    """Two versions of an agent that were compared, trial by trial."""

    agent: str
    suite: str
    before: str
    after: str
    pairs: Mapping[str, tuple[TrialReport, TrialReport]]
    """The trials before and after, by benchmark and the params that tell its points apart."""
    rubrics: Mapping[str, Rubric]
    """The weights of the dimensions, by benchmark id."""


def identity(agent: str, suite: str, benchmark: str, metric: str, before: str, after: str) -> str:
    """The id of a regression: the same whenever and however it is found, so that its state survives a new search."""
    parts = "\n".join((agent, suite, benchmark, metric, before, after))
    return hashlib.sha256(parts.encode()).hexdigest()[:8]


def by_comparison(comparisons: Iterable[Comparison], sides: Sides) -> list[Regression]:
    """Regressions for all comparisons with the verdict worse that have an interval."""
    places = {pair[1].name: benchmark for benchmark, pair in sides.pairs.items()}
    return [
        _build_from_comparison(comparison, places[comparison.trial_b], loss, sides)
        for comparison in comparisons
        if comparison.verdict is Verdict.WORSE and (loss := loss_of(comparison)) is not None
    ]


def _build_from_comparison(comparison: Comparison, benchmark: str, loss: Loss, sides: Sides) -> Regression:
    first, second = sides.pairs[benchmark]
    rubric = sides.rubrics.get(second.stored.trial.benchmark, Rubric())
    return Regression(
        id=identity(sides.agent, sides.suite, benchmark, comparison.metric.name, sides.before, sides.after),
        agent=sides.agent,
        suite=sides.suite,
        benchmark=benchmark,
        metric=comparison.metric,
        before=sides.before,
        after=sides.after,
        baseline_value=comparison.value_a,
        current_value=comparison.value_b,
        loss=loss,
        tolerance=comparison.tolerance,
        severity=severity_of(loss),
        found_by=("baseline",),
        p=comparison.p_corrected,
        impact=impact_of(comparison, first, second, rubric),
    )


def find_broken_benchmarks(sides: Sides, regressions: Iterable[Regression]) -> list[Regression]:
    """Benchmarks that worked before and on which nothing works now, unless `regressions` already contain that.

    No test is needed here, and none would help: an agent that cannot be opened fails once and is given up, and a single
    failure is too few for any statistics.
    """
    known = {regression.benchmark for regression in regressions if regression.metric.name == COMPLETED}
    return [
        _build_from_breakage(benchmark, first, sides)
        for benchmark, (first, second) in sides.pairs.items()
        if benchmark not in known and is_broken(first, second)
    ]


def _build_from_breakage(benchmark: str, first: TrialReport, sides: Sides) -> Regression:
    """A regression of a benchmark on which nothing works any more.

    There are no times to compare, so the loss is the share that completed before, and its severity is critical whatever that
    was.
    """
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
    return [_build_from_shift(agent, shift) for shift in shifts if shift.loss.value > 0 and not shift.is_over]


def _build_from_shift(agent: str, shift: Shift) -> Regression:
    """A regression from a step or a drift in a history.

    It is suspect if the machine itself became slower at the same time.
    """
    before, after = range_of(shift)
    return Regression(
        # A drift continues from run to run, so its end is no part of what it is.
        id=identity(
            agent,
            shift.suite,
            shift.benchmark,
            shift.metric.name,
            before,
            "" if shift.kind == "drift" else after,
        ),
        agent=agent,
        suite=shift.suite,
        benchmark=shift.benchmark,
        metric=shift.metric,
        before=before,
        after=after,
        baseline_value=shift.level_before,
        current_value=shift.level_after,
        loss=shift.loss,
        tolerance=shift.tolerance,
        severity=severity_of(shift.loss),
        found_by=(shift.kind,),
        p=shift.p,
        impact=Impact(per_1000=per_1000(shift.metric, shift.level_before, shift.level_after)),
        is_pending=shift.is_pending,
        is_suspect=shift.pace is not None and shift.pace > 1,
    )


def range_of(shift: Shift) -> tuple[str, str]:
    """The versions between which the shift happened; if both are the same version, the runs."""
    first, second = shift.before, shift.after
    if first.version != second.version:
        return first.version, second.version
    return f"{first.version} run {first.run_id}".strip(), f"{second.version} run {second.run_id}".strip()


def merge_regressions(regressions: Iterable[Regression]) -> list[Regression]:
    """Merge regressions that were found in several ways, keeping the figures of the first; the worst regression comes first."""
    by_id: dict[str, Regression] = {}
    for regression in regressions:
        known = by_id.get(regression.id)
        by_id[regression.id] = regression if known is None else _merge_two(known, regression)
    order = list(Severity)
    return sorted(
        by_id.values(),
        key=lambda regression: (-order.index(regression.severity), -regression.loss.value, regression.id),
    )


def _merge_two(first: Regression, second: Regression) -> Regression:
    """One regression that was found twice: confirmed if either is, suspect if either is."""
    return replace(
        first,
        found_by=tuple(dict.fromkeys((*first.found_by, *second.found_by))),
        is_pending=first.is_pending and second.is_pending,
        is_suspect=first.is_suspect or second.is_suspect,
    )


def update_regression_states(
    found: Iterable[Regression], known: Mapping[str, Regression], refuted: Mapping[str, str], now: datetime
) -> list[Regression]:
    """The regressions found now and those known from before, each in its state.

    A regression that is found again keeps its state, note and dates. One that was resolved by newer data is detected anew; one
    that a person marked stays as marked. A known regression that is not found again is resolved only if `refuted` has its id:
    the text says what newer data show instead. Without such evidence it stays open, because this search may not have covered it.
    """
    updated = [_carry_state_over(regression, known.get(regression.id), now) for regression in found]
    ids = {regression.id for regression in updated}
    for regression in known.values():
        if regression.id in ids:
            continue
        reason = refuted.get(regression.id)
        if reason is not None and regression.state.is_open:
            note = f"{regression.note} {reason}".strip()
            regression = replace(
                regression, state=RegressionState.RESOLVED, note=note, changed=now, is_marked=False
            )
        updated.append(regression)
    return updated


def _carry_state_over(regression: Regression, known: Regression | None, now: datetime) -> Regression:
    """A regression in the state that it had.

    One that was resolved and is found again is open again, without its old note, unless a person had marked it: a person's
    word is not overruled by data.
    """
    if known is None:
        return replace(regression, detected=now, changed=now)
    is_reopened = not known.state.is_open and not known.is_marked
    return replace(
        regression,
        state=RegressionState.DETECTED if is_reopened else known.state,
        note="" if is_reopened else known.note,
        detected=known.detected,
        changed=now if is_reopened else known.changed,
        is_marked=known.is_marked,
    )


_ADDITIVE = frozenset({"s", "usd", "tokens", "calls"})
"""Units of quantities that add up over tasks. Memory does not: a thousand tasks one after the other need it once."""
_TASKS = 1000


def impact_of(comparison: Comparison, first: TrialReport, second: TrialReport, rubric: Rubric) -> Impact:
    """The impact of a worse metric; `first` and `second` are the trials that were compared, `rubric` weighs the ratings."""
    usd_before, usd_after = (
        None if trial.ratings is None else trial.ratings.usd_per_solved for trial in (first, second)
    )
    weights = {**WEIGHTS, **rubric.weights}
    return Impact(
        cases=_worse_cases(comparison, first, second),
        overall=_share_of_overall(comparison, first.ratings, second.ratings, weights),
        per_1000=per_1000(comparison.metric, comparison.value_a, comparison.value_b),
        usd_per_1000=None if usd_before is None or usd_after is None else _TASKS * (usd_after - usd_before),
    )


def per_1000(metric: Metric, before: float, after: float) -> float | None:
    """What a thousand tasks take more than before, in the metric's unit; None where that does not add up.

    For scores it is the number of tasks out of a thousand that are no longer solved.
    """
    if in_points(metric):
        return _TASKS * (before - after)
    return _TASKS * (after - before) if metric.unit in _ADDITIVE else None


def _share_of_overall(
    comparison: Comparison, first: Ratings | None, second: Ratings | None, weights: Mapping[str, float]
) -> float | None:
    """Compute by how much the metric's dimension pulls the overall rating down.

    It is the dimension's share of the weights × the fall of its rating, and at least 0; None where a side
    is not rated on it.
    """
    if first is None or second is None:
        return None
    name = dimension_of(comparison.metric)
    before, after = first.dimensions.get(name), second.dimensions.get(name)
    if before is None or after is None or before.value is None or after.value is None:
        return None
    rated = [dimension for dimension, rating in second.dimensions.items() if rating.value is not None]
    total = sum(weights[dimension] for dimension in rated)
    return max(0.0, weights[name] / total * (before.value - after.value)) if total else None


def _worse_cases(comparison: Comparison, first: TrialReport, second: TrialReport) -> tuple[str, ...]:
    """Cases that lost more than the tolerance on their own, the worst first; empty where the units are processes."""
    metric = comparison.metric
    name = COMPLETION if metric.name == COMPLETED else metric.name
    before, after = _by_case(first, name), _by_case(second, name)
    losses = {
        case: loss_of_difference(metric, after[key] - value, 0, 0, reach_of(metric, value, after[key])).value
        for case in second.stored.trial.cases
        if (value := before.get(key := case_number(case))) is not None and key in after
    }
    worse = {case: loss for case, loss in losses.items() if loss > comparison.tolerance}
    return tuple(sorted(worse, key=lambda case: (-worse[case], case)))


def _by_case(trial: TrialReport, name: str) -> Mapping[int, float]:
    series = trial.series.get(name)
    if series is None or series.unit != "case":
        return {}
    observed = observe(series)
    return observed.means if name.startswith("score") else observed.by_process
