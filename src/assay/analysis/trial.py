"""One trial's estimates with what is behind them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from assay.analysis.estimate import estimate
from assay.model import Estimate, Kind, Metric, Series, TrialReport, metric_named

LOAD = "load"
"""The unit of a series: one load, however often it asked."""
_MOST_REPETITIONS = 1_000_000


def estimated(report: TrialReport, metrics: Mapping[str, Metric], *, is_brief: bool = False) -> TrialReport:
    """With estimates of all its series; `metrics` tells unit and direction where a name does not."""
    report = replace(report, series=_by_load(report))
    series, watched = report.series, report.watched
    measured = (name for name in series if len(series[name].values))
    names = sorted(measured, key=lambda name: _place(name, report.leads, watched))
    kinds = {name: metrics.get(name) or metric_named(name) for name in names}
    if report.is_recorded:
        kinds = {name: _mark_recorded(metric) for name, metric in kinds.items()}
    estimates = (estimate(kinds[name], series[name], is_brief=is_brief) for name in names)
    # Doubts are kept to what was asked about: an instrument's figures come along, nobody decides by them.
    found = replace(
        report,
        estimates=tuple(replace(e, doubts=()) if e.metric.name in watched else e for e in estimates),
    )
    return replace(found, estimates=tuple(map(_made_up, found.estimates))) if found.is_simulated else found


def _by_load(report: TrialReport) -> Mapping[str, Series]:
    """Each load starts processes of its own and is independent of the others, so a repetition of one is a unit."""
    if report.stored.trial.experiment != "load":
        return report.series
    return {
        name: series if series.unit == LOAD else _numbered(series) for name, series in report.series.items()
    }


def _numbered(series: Series) -> Series:
    """By process and repetition, so that the same repetition of two arms has the same number."""
    made = zip(series.processes, series.repetitions, strict=True)
    numbers = [process * _MOST_REPETITIONS + repetition for process, repetition in made]
    return Series(numbers, [0] * len(numbers), series.values, LOAD)


def _mark_recorded(metric: Metric) -> Metric:
    """Times only: a count of tokens does not depend on the machine or the moment."""
    return replace(metric, kind=Kind.RECORDED) if metric.name in _TIMES else metric


_TIMES = ("seconds", "ttft")


def _made_up(estimate: Estimate) -> Estimate:
    return replace(estimate, metric=replace(estimate.metric, kind=Kind.SIMULATED))


def _place(name: str, leads: Sequence[str], watched: Collection[str]) -> tuple[int, int]:
    """What the benchmark leads with, then time, the experiment's own metrics, and those of instruments.

    Sorting keeps the order among equals.
    """
    if name in leads:
        return 0, leads.index(name)
    if name == "seconds":
        return 1, 0
    return (3 if name in watched else 2), 0
