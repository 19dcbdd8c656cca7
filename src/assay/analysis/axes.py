"""What each axis of a sweep does to each metric."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.model import AxisEffect, Better, Estimate, Metric, TrialReport
from assay.stats.summary import percentile


@dataclass(frozen=True, slots=True)
class _Level:
    """One value of an axis, and the estimates of the trials that have it."""

    value: object
    estimates: tuple[Estimate, ...]

    @property
    def median(self) -> float:
        return percentile([estimate.median for estimate in self.estimates], 50)

    @property
    def low(self) -> float | None:
        return self.estimates[0].low if len(self.estimates) == 1 else None

    @property
    def high(self) -> float | None:
        return self.estimates[0].high if len(self.estimates) == 1 else None


def axis_effects(trials: Sequence[TrialReport]) -> tuple[AxisEffect, ...]:
    """The median of trial medians at each value of each axis; with several benchmarks, one by one."""
    benchmarks = list(dict.fromkeys(trial.stored.trial.benchmark for trial in trials))
    return tuple(
        effect
        for benchmark in benchmarks
        for effect in _effects(
            [trial for trial in trials if trial.stored.trial.benchmark == benchmark],
            f"{benchmark}: " if len(benchmarks) > 1 else "",
        )
    )


def same_value(value: object) -> str:
    """Equal text for equal values, also of lists and mappings.

    >>> same_value({"b": 1, "a": [2]}) == same_value({"a": [2], "b": 1})
    True
    """
    return json.dumps(value, sort_keys=True, default=str)


def _effects(trials: Sequence[TrialReport], prefix: str) -> Iterator[AxisEffect]:
    axes = dict.fromkeys(axis for trial in trials for axis in trial.stored.trial.axes)
    for axis in axes:
        for metric in _metrics(trials):
            levels = _levels(trials, axis, metric)
            if len(levels) >= 2:
                yield _effect(prefix + axis, metric, levels)


def _metrics(trials: Sequence[TrialReport]) -> list[Metric]:
    """Those of which best and worst can be told."""
    known = {
        estimate.metric.name: estimate.metric
        for trial in trials
        for estimate in trial.estimates
        if estimate.metric.name not in trial.watched
    }
    return [metric for metric in known.values() if metric.better is not Better.UNKNOWN]


def _levels(trials: Sequence[TrialReport], axis: str, metric: Metric) -> list[_Level]:
    found: dict[str, tuple[object, list[Estimate]]] = {}
    for trial in trials:
        axes = trial.stored.trial.axes
        if axis in axes:
            _, estimates = found.setdefault(same_value(axes[axis]), (axes[axis], []))
            estimates += [estimate for estimate in trial.estimates if estimate.metric.name == metric.name]
    return [_Level(value, tuple(estimates)) for value, estimates in found.values() if estimates]


def _effect(axis: str, metric: Metric, levels: Sequence[_Level]) -> AxisEffect:
    ranked = sorted(levels, key=lambda level: level.median, reverse=metric.better is Better.HIGHER)
    return AxisEffect(
        axis=axis,
        metric=metric,
        values=tuple(level.value for level in levels),
        medians=tuple(level.median for level in levels),
        lows=tuple(level.low for level in levels),
        highs=tuple(level.high for level in levels),
        best=ranked[0].value,
        worst=ranked[-1].value,
    )
