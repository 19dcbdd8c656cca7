"""Adds estimates to one trial: each of its series becomes an `Estimate`, in the order in which reports show them.

Here it is also decided what kind of figure an estimate is: measured, recorded earlier or simulated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from assay.analysis.estimates.few_units import estimate_lone_value, is_lone_value
from assay.model import Estimate, Kind, Metric, Series, TrialReport, metric_named
from assay.plugin.finding import finding_class

_MOST_REPETITIONS = 1_000_000


def add_estimates(
    report: TrialReport, metrics: Mapping[str, Metric], *, is_brief: bool = False
) -> TrialReport:
    """Return the report with an estimate of each of its series.

    `metrics` tells unit and direction of a metric whose name does not. Those that lead the report come
    first, then those that the trial watches.
    """
    report = replace(report, series=_by_unit(report))
    series, watched = report.series, report.watched
    measured = (name for name in series if len(series[name].values))
    names = sorted(measured, key=lambda name: _place(name, report.leads, watched))
    kinds = {name: metrics.get(name) or metric_named(name) for name in names}
    if report.is_recorded:
        # Only times: a count of tokens does not depend on the machine or the moment.
        kinds |= {name: replace(kinds[name], kind=Kind.RECORDED) for name in _TIMES if name in kinds}
    estimates = (_estimate(kinds[name], series[name], is_brief) for name in names)
    # The figures of instruments come without doubts, because no verdict depends on them.
    reported = [replace(e, doubts=()) if e.metric.name in watched else e for e in estimates]
    if report.is_simulated:
        reported = [replace(e, metric=replace(e.metric, kind=Kind.SIMULATED)) for e in reported]
    return replace(report, estimates=tuple(reported))


def _estimate(metric: Metric, series: Series, is_brief: bool) -> Estimate:
    if is_lone_value(series):
        return estimate_lone_value(metric, series, is_brief=is_brief)
    from assay.analysis.estimates.estimate import estimate

    return estimate(metric, series, is_brief=is_brief)


def _by_unit(report: TrialReport) -> Mapping[str, Series]:
    """Make each repetition a unit where repetitions are independent of each other, as loads are.

    Other experiments keep their units, which are processes or cases: repetitions within one process share
    its luck.
    """
    member = finding_class(report.stored.trial.experiment)
    if member is None or not member.independent_unit:
        return report.series
    unit = member.independent_unit
    return {
        name: series if series.unit == unit else _number_repetitions(series, unit)
        for name, series in report.series.items()
    }


def _number_repetitions(series: Series, unit: str) -> Series:
    """Number the repetitions by process and repetition.

    The same repetition of two arms then has the same number, so that arms which ran side by side can be
    paired.
    """
    executed = zip(series.processes, series.repetitions, strict=True)
    numbers = [process * _MOST_REPETITIONS + repetition for process, repetition in executed]
    return Series(numbers, [0] * len(numbers), series.values, unit)


_TIMES = ("seconds", "ttft")


def _place(name: str, leads: Sequence[str], watched: Collection[str]) -> tuple[int, int]:
    """The sort key of a metric: what the benchmark leads with, then time, the experiment's own metrics, then instruments'."""
    if name in leads:
        return 0, leads.index(name)
    if name == "seconds":
        return 1, 0
    return (3 if name in watched else 2), 0
