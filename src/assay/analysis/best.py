"""The best point of a sweep, and the points that the data do not set apart from it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.axes import directed_metrics
from assay.analysis.compare import compare_trials
from assay.model import BestPoint, Better, Metric, Order, Run, TrialReport
from assay.stats.correction import holm

_LEVEL = 0.05


def best_points(run: Run, trials: Sequence[TrialReport]) -> tuple[BestPoint, ...]:
    """Of each benchmark that was swept, for each metric of which better and worse are known."""
    benchmarks = dict.fromkeys(trial.stored.trial.benchmark for trial in trials)
    swept = [
        [trial for trial in trials if trial.stored.trial.benchmark == benchmark and trial.stored.trial.axes]
        for benchmark in benchmarks
    ]
    interleaved = run.order == Order.INTERLEAVED
    return tuple(point for group in swept if len(group) > 1 for point in _points(group, interleaved))


def _points(trials: Sequence[TrialReport], interleaved: bool) -> Iterator[BestPoint]:
    for metric in directed_metrics(trials):
        known = [(trial, median) for trial in trials if (median := _median(trial, metric)) is not None]
        if len(known) < 2 or len({median for _, median in known}) < 2:
            continue
        choose = max if metric.better is Better.HIGHER else min
        best = choose(known, key=lambda pair: pair[1])[0]
        others = [trial for trial, _ in known if trial is not best]
        alike = _inseparable(best, others, metric, interleaved)
        yield BestPoint(best.stored.trial.benchmark, metric, best.name, tuple(alike), len(others))


def _median(trial: TrialReport, metric: Metric) -> float | None:
    return next((one.median for one in trial.estimates if one.metric.name == metric.name and one.n), None)


def _inseparable(
    best: TrialReport, others: Sequence[TrialReport], metric: Metric, interleaved: bool
) -> list[str]:
    chances = []
    for other in others:
        compared = compare_trials(best, other, interleaved=interleaved, metrics=[metric.name])
        p = compared[0].p if compared else None
        chances.append(1.0 if p is None else p)
    return [other.name for other, p in zip(others, holm(chances), strict=True) if p >= _LEVEL]
