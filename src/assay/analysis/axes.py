"""What each axis of a sweep does to each metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.analysis.replication import Observed, observed
from assay.analysis.same import same_value
from assay.model import AxisEffect, Better, Estimate, Metric, TrialReport
from assay.stats.factors import Factorial, LevelDifference, factorial
from assay.stats.sample import Array, Scale
from assay.stats.summary import percentile

_AGENT = "\0agent"
"""Unlike any name of a param."""


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


def _effects(trials: Sequence[TrialReport], prefix: str) -> Iterator[AxisEffect]:
    axes = list(dict.fromkeys(axis for trial in trials for axis in trial.stored.trial.axes))
    models = {metric.name: _model(trials, axes, metric) for metric in directed_metrics(trials)}
    for axis in axes:
        for metric in directed_metrics(trials):
            levels = _levels(trials, axis, metric)
            if len(levels) >= 2:
                yield _explained(_effect(prefix + axis, metric, levels), axis, models[metric.name])


@dataclass(frozen=True, slots=True)
class _Model:
    """A metric's cells by the codes of their values, axis by axis; the agent is a factor, too."""

    axes: Sequence[str]
    codes: Mapping[str, Mapping[str, int]]
    factorial: Factorial | None

    def span(self, axis: str, best: object, worst: object) -> LevelDifference | None:
        codes = self.codes[axis]
        if self.factorial is None:
            return None
        return self.factorial.span(self.axes.index(axis), codes[same_value(best)], codes[same_value(worst)])


def _model(trials: Sequence[TrialReport], axes: Sequence[str], metric: Metric) -> _Model:
    swept = [
        trial for trial in trials if metric.name in trial.series and _settings(trial).keys() >= set(axes)
    ]
    names = [*axes, _AGENT]
    codes: dict[str, dict[str, int]] = {name: {} for name in names}
    for trial in swept:
        for name in names:
            codes[name].setdefault(same_value(_settings(trial)[name]), len(codes[name]))
    cells = [[codes[name][same_value(_settings(trial)[name])] for name in names] for trial in swept]
    samples = [_independent(observed(trial.series[metric.name])) for trial in swept]
    return _Model(names, codes, factorial(cells, samples) if cells else None)


def _settings(trial: TrialReport) -> dict[str, object]:
    return {**trial.stored.trial.axes, _AGENT: trial.stored.trial.agent.name}


def _independent(seen: Observed) -> Array:
    """Executions of a lone process are not independent of each other: together they are one observation."""
    if seen.by_case or seen.process_count > 1 or not seen.values.size:
        return seen.units
    return np.array([percentile(seen.values, 50)])


def _explained(effect: AxisEffect, axis: str, model: _Model) -> AxisEffect:
    span = model.span(axis, effect.best, effect.worst)
    if span is None or model.factorial is None:
        return effect
    factor = model.factorial.factors[model.axes.index(axis)]
    return replace(
        effect,
        effect=span.value,
        effect_low=span.low,
        effect_high=span.high,
        is_ratio=span.scale is Scale.RATIO,
        share=factor.share,
        interacts=tuple(_named(model.axes[other]) for other in factor.interacts),
    )


def _named(axis: str) -> str:
    return "agent" if axis == _AGENT else axis


def directed_metrics(trials: Sequence[TrialReport]) -> list[Metric]:
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
