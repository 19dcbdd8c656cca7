"""Computes what each axis of a sweep does to each metric, and which point of the sweep is best.

An `AxisEffect` has the median of trial medians at each value of an axis, and the best and the worst value. Where the sweep
allows it, a factorial model (`assay.stats.factors`) adds how far best and worst are apart with the other axes held fixed,
the share of the variance that the axis explains, and the axes that it interacts with.

The best point is the one with the best median. Whether another point is really worse is decided by the comparison policy
(`comparison/policy.py`), so a report and `assay compare` never contradict each other. Only trials that do the same work are held
against each other: a world with fewer agents is not a better setting (`workload_params` of the experiment).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.analysis.comparison.compare import find_contrasts
from assay.analysis.comparison.policy import judge
from assay.analysis.estimates.replication import observe
from assay.analysis.estimates.treatment import same_value
from assay.model import AxisEffect, BestPoint, Better, Estimate, Metric, Order, Run, TrialReport, Verdict
from assay.plugin.experiment import find_trait
from assay.stats.factors import Factorial, LevelDifference, factorial
from assay.stats.sample import Scale
from assay.stats.summary import percentile

_AGENT = "\0agent"
"""The agent as a factor of the model. The name cannot be that of a param."""


@dataclass(frozen=True, slots=True)
class _Level:
    """One value of an axis, and the estimates of the trials that have it. A lone trial also gives its interval."""

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
    """The effects of all axes on all metrics with a direction; several benchmarks are analysed one by one."""
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
    """The effects of one benchmark; `prefix` names the benchmark where a run has several."""
    axes = list(dict.fromkeys(axis for trial in trials for axis in trial.stored.trial.axes))
    models = {metric.name: _model(trials, axes, metric) for metric in select_directed_metrics(trials)}
    for axis in axes:
        for metric in select_directed_metrics(trials):
            levels = _levels(trials, axis, metric)
            if len(levels) >= 2:
                effect = replace(
                    _effect(prefix + axis, metric, levels),
                    is_workload=any(axis in _workload_params(trial) for trial in trials),
                )
                yield _add_model_effect(effect, axis, models[metric.name])


@dataclass(frozen=True, slots=True)
class _Model:
    """The factorial model of one metric; `codes` number the values of each axis, and the agent is a factor, too."""

    axes: Sequence[str]
    codes: Mapping[str, Mapping[str, int]]
    factorial: Factorial | None

    def span(self, axis: str, best: object, worst: object) -> LevelDifference | None:
        """How far two values of an axis are apart; None where the sweep does not allow a model."""
        codes = self.codes[axis]
        if self.factorial is None:
            return None
        return self.factorial.span(self.axes.index(axis), codes[same_value(best)], codes[same_value(worst)])


def _model(trials: Sequence[TrialReport], axes: Sequence[str], metric: Metric) -> _Model:
    """Fit the factorial model of a metric to all trials that have a value on every axis."""
    swept = [
        trial for trial in trials if metric.name in trial.series and _settings(trial).keys() >= set(axes)
    ]
    names = [*axes, _AGENT]
    codes: dict[str, dict[str, int]] = {name: {} for name in names}
    for trial in swept:
        for name in names:
            codes[name].setdefault(same_value(_settings(trial)[name]), len(codes[name]))
    cells = [[codes[name][same_value(_settings(trial)[name])] for name in names] for trial in swept]
    samples = []
    for trial in swept:
        observed = observe(trial.series[metric.name])
        # Executions of a lone process are not independent of each other: together they are one observation.
        is_lone = not observed.by_case and observed.process_count <= 1 and observed.values.size
        samples.append(np.array([percentile(observed.values, 50)]) if is_lone else observed.units)
    return _Model(names, codes, factorial(cells, samples) if cells else None)


def _settings(trial: TrialReport) -> dict[str, object]:
    return {**trial.stored.trial.axes, _AGENT: trial.stored.trial.agent.name}


def _add_model_effect(effect: AxisEffect, axis: str, model: _Model) -> AxisEffect:
    """The effect with what the model says about it: size, interval, explained share and interactions."""
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
        interacts=tuple(
            "agent" if model.axes[other] == _AGENT else model.axes[other] for other in factor.interacts
        ),
    )


def select_directed_metrics(trials: Sequence[TrialReport]) -> list[Metric]:
    """The metrics of these trials that have a direction, without those of instruments."""
    known = {
        estimate.metric.name: estimate.metric
        for trial in trials
        for estimate in trial.estimates
        if estimate.metric.name not in trial.watched
    }
    return [metric for metric in known.values() if metric.better is not Better.UNKNOWN]


def _levels(trials: Sequence[TrialReport], axis: str, metric: Metric) -> list[_Level]:
    """The values of an axis in the order of the trials, without those that have no estimate of the metric."""
    found: dict[str, tuple[object, list[Estimate]]] = {}
    for trial in trials:
        axes = trial.stored.trial.axes
        if axis in axes:
            _, estimates = found.setdefault(same_value(axes[axis]), (axes[axis], []))
            estimates += [estimate for estimate in trial.estimates if estimate.metric.name == metric.name]
    return [_Level(value, tuple(estimates)) for value, estimates in found.values() if estimates]


def _effect(axis: str, metric: Metric, levels: Sequence[_Level]) -> AxisEffect:
    """Medians and intervals at each value of an axis, with the best and the worst value by the direction of the metric."""
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
        is_pooled=any(len(level.estimates) > 1 for level in levels),
    )


def best_points(run: Run, trials: Sequence[TrialReport]) -> tuple[BestPoint, ...]:
    """The best point of each swept benchmark and workload, for each metric with a direction."""
    groups: dict[tuple[str, str], list[TrialReport]] = {}
    for trial in trials:
        if trial.stored.trial.axes:
            groups.setdefault((trial.stored.trial.benchmark, _describe_workload(trial)), []).append(trial)
    interleaved = run.order == Order.INTERLEAVED
    return tuple(
        point for group in groups.values() if len(group) > 1 for point in _points(group, interleaved)
    )


def _describe_workload(trial: TrialReport) -> str:
    """What the axes say about the work of a trial; equal for trials that do the same work."""
    names = _workload_params(trial)
    return repr([(name, value) for name, value in sorted(trial.stored.trial.axes.items()) if name in names])


def _workload_params(trial: TrialReport) -> Sequence[str]:
    names: Sequence[str] = find_trait(trial.stored.trial.experiment, "workload_params", ())
    return names


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
        inseparable = _find_inseparable(best, others, metric, interleaved)
        yield BestPoint(best.stored.trial.benchmark, metric, best.name, tuple(inseparable), len(others))


def _find_inseparable(
    best: TrialReport, others: Sequence[TrialReport], metric: Metric, interleaved: bool
) -> list[str]:
    """Points that are not significantly worse than the best one. All points of a metric form one family of tests."""
    contrasts = [
        contrast
        for other in others
        for contrast in find_contrasts(best, other, [metric.name], interleaved=interleaved)
    ]
    worse = {comparison.trial_b for comparison in judge(contrasts) if comparison.verdict is Verdict.WORSE}
    return [other.name for other in others if other.name not in worse]
