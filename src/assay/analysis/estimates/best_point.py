"""Finds the best point of a sweep, and the points that the data do not set apart from it.

The best point is the one with the best median. Whether another point is really worse is decided by the comparison policy
(`comparison/policy.py`), so a report and `assay compare` never contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.comparison.compare import find_contrasts
from assay.analysis.comparison.policy import judge
from assay.analysis.estimates.axes import select_directed_metrics
from assay.model import BestPoint, Better, Metric, Order, Run, TrialReport, Verdict


def best_points(run: Run, trials: Sequence[TrialReport]) -> tuple[BestPoint, ...]:
    """The best point of each swept benchmark, for each metric with a direction."""
    benchmarks = dict.fromkeys(trial.stored.trial.benchmark for trial in trials)
    swept = [
        [trial for trial in trials if trial.stored.trial.benchmark == benchmark and trial.stored.trial.axes]
        for benchmark in benchmarks
    ]
    interleaved = run.order == Order.INTERLEAVED
    return tuple(point for group in swept if len(group) > 1 for point in _points(group, interleaved))


def _points(trials: Sequence[TrialReport], interleaved: bool) -> Iterator[BestPoint]:
    """The best point for each metric, if at least two points have different medians."""
    for metric in select_directed_metrics(trials):
        known = [
            (trial, estimate.median)
            for trial in trials
            for estimate in trial.estimates
            if estimate.metric.name == metric.name and estimate.n
        ]
        if len(known) < 2 or len({median for _, median in known}) < 2:
            continue
        choose = max if metric.better is Better.HIGHER else min
        best = choose(known, key=lambda pair: pair[1])[0]
        others = [trial for trial, _ in known if trial is not best]
        alike = _find_inseparable(best, others, metric, interleaved)
        yield BestPoint(best.stored.trial.benchmark, metric, best.name, tuple(alike), len(others))


def _find_inseparable(
    best: TrialReport, others: Sequence[TrialReport], metric: Metric, interleaved: bool
) -> list[str]:
    """Points that are not certainly worse than the best one. All points of a metric form one family of tests."""
    contrasts = [
        contrast
        for other in others
        for contrast in find_contrasts(best, other, [metric.name], interleaved=interleaved)
    ]
    worse = {one.trial_b for one in judge(contrasts) if one.verdict is Verdict.WORSE}
    return [other.name for other in others if other.name not in worse]
