"""Finds where a metric shifted over versions and runs, and whether the shift still holds.

Input is a `MetricHistory`: one point a run, in the order of the versions. `find_shifts` asks `assay.stats.changepoint` for
steps and for a slow drift, turns each into a `Shift` with its loss and its interval, and drops what lies within tolerance.
A shift also says by what factor the machine itself changed pace between the two levels, because a slower machine looks like
a slower agent. `assay detect` and `assay regressions` show the result; `history/regressions.py` makes regressions of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from assay.analysis.comparison.severity import (
    depends_on_machine,
    in_points,
    loss_of_difference,
    loss_of_ratio,
    reach_of,
)
from assay.analysis.comparison.verdict import tolerance_of
from assay.analysis.estimates.machine_speed import compute_slowdown
from assay.analysis.estimates.replication import observe
from assay.model import Metric, Series
from assay.model.regression import Loss, MetricHistory, Point, Shift
from assay.stats.changepoint import ChangePoint, Drift, detect
from assay.stats.effect import compare_unpaired
from assay.stats.sample import Scale
from assay.stats.summary import percentile

_RECENT = 5
"""Today's level is the median of this many newest points: one good run does not prove that a regression is gone."""


@dataclass(frozen=True, slots=True)
class ShiftSearch:
    """The shifts in a history. Where the history cannot show any, for example because it is too short, `reason` says why."""

    shifts: tuple[Shift, ...] = ()
    reason: str = ""


def typical(metric: Metric, series: Series) -> float:
    """The value that stands for a trial: the mean over cases for scores, and the median over units for everything else.

    The median of scores of 0 and 1 could only be 0 or 1 and would hide most changes. NaN where the series has no value.
    """
    seen = observe(series)
    if not in_points(metric):
        return percentile(seen.units, 50) if seen.units.size else math.nan
    means = seen.means
    return sum(means.values()) / len(means) if means else math.nan


def find_shifts(history: MetricHistory, tolerance: float | None = None) -> ShiftSearch:
    """Shifts beyond tolerance: first the steps in the order of the history, then the drift if there is one."""
    width = _width(history.metric, tolerance)
    detection = detect([point.value for point in history.points])
    # Each change point ends one level and starts the next, so n change points cut the history into n + 1 spans.
    cuts = [0, *(change.index for change in detection.change_points), len(history.points)]
    spans = [history.points[start:end] for start, end in pairwise(cuts)]
    now = _level(spans[-1]) if spans and spans[-1] else math.nan
    shifts = [
        _step(history, change, before, after, now, width)
        for change, before, after in zip(detection.change_points, spans, spans[1:], strict=False)
    ]
    if detection.drift is not None:
        shifts.append(_drift(history, detection.drift, width))
    return ShiftSearch(tuple(shift for shift in shifts if abs(shift.loss.value) > width), detection.reason)


def _width(metric: Metric, tolerance: float | None) -> float:
    return tolerance_of(metric) if tolerance is None else tolerance


def is_back(history: MetricHistory, level: float) -> bool:
    """Whether the newest points are no worse than `level`, within tolerance; False while there are fewer than five."""
    recent = [point.value for point in history.points[-_RECENT:]]
    if len(recent) < _RECENT:
        return False
    # The default tolerance and not the user's: a wide one that was asked for today must not close what was found with a narrow one.
    return _loss_between(history.metric, level, median(recent)) <= _width(history.metric, None)


def _drift(history: MetricHistory, drift: Drift, width: float) -> Shift:
    """A slow change between two points of the history; it is over if the newest points are back at the old level."""
    points, metric = history.points, history.metric
    loss = _loss_of_drift(metric, drift)
    return Shift(
        suite=history.suite,
        benchmark=history.benchmark,
        metric=metric,
        kind="drift",
        before=points[drift.start],
        after=points[drift.end],
        level_before=drift.before,
        level_after=drift.after,
        loss=loss,
        p=drift.p_value,
        tolerance=width,
        is_pending=False,
        is_over=_is_over(metric, loss, drift.before, _level(points[-_RECENT:]), width),
        pace=_pace(metric, points[: drift.start + 1], points[drift.end :]),
    )


def _loss_of_drift(metric: Metric, drift: Drift) -> Loss:
    """The loss by a drift, in the metric's own unit.

    The detector gives change and interval as shares of the first level, or of the larger level where not both are positive.
    """
    before, after = drift.before, drift.after
    unit = before if before > 0 and after > 0 else max(abs(before), abs(after))
    value, low, high = (
        fallback if share is None else share * unit
        for share, fallback in ((drift.change, 0.0), (drift.low, -math.inf), (drift.high, math.inf))
    )
    return loss_of_difference(metric, value, low, high, reach_of(metric, before, after))


def _step(
    history: MetricHistory,
    change: ChangePoint,
    before: Sequence[Point],
    after: Sequence[Point],
    now: float,
    width: float,
) -> Shift:
    """A sudden change between two levels; `now` is today's level, by which later runs may have undone it."""
    loss = _loss(history.metric, before, after)
    return Shift(
        suite=history.suite,
        benchmark=history.benchmark,
        metric=history.metric,
        kind="step",
        before=before[-1],
        after=after[0],
        level_before=change.before,
        level_after=change.after,
        loss=loss,
        p=change.p_value,
        tolerance=width,
        is_pending=change.is_pending,
        is_over=_is_over(history.metric, loss, change.before, now, width),
        pace=_pace(history.metric, before, after),
    )


def _level(points: Sequence[Point]) -> float:
    return median(point.value for point in points)


def _is_over(metric: Metric, loss: Loss, before: float, now: float, width: float) -> bool:
    """Whether later runs undid the shift: today's level shows no loss beyond tolerance, or no gain if it was a gain."""
    left = _loss_between(metric, before, now)
    return left <= width if loss.value > 0 else left >= -width


def _loss_between(metric: Metric, before: float, after: float) -> float:
    return loss_of_difference(metric, after - before, 0, 0, reach_of(metric, before, after)).value


def _loss(metric: Metric, before: Sequence[Point], after: Sequence[Point]) -> Loss:
    """The loss between two levels by a rank test of their points, unbounded where they have too few for an interval."""
    effect = compare_unpaired([point.value for point in before], [point.value for point in after])
    if effect is None:
        return Loss(0.0, -math.inf, math.inf)
    if effect.scale is Scale.RATIO and not in_points(metric):
        return loss_of_ratio(metric, effect.value, effect.low, effect.high)
    level = _level(before)
    # Scores are compared in points, so a ratio is turned into a difference of the first level.
    value, low, high = (
        (number - 1) * level if effect.scale is Scale.RATIO else number
        for number in (effect.value, effect.low, effect.high)
    )
    return loss_of_difference(metric, value, low, high, reach_of(metric, level, _level(after)))


def _pace(metric: Metric, before: Sequence[Point], after: Sequence[Point]) -> float | None:
    """The factor by which the machine became slower between the levels; None where the metric does not depend on it."""
    if not depends_on_machine(metric):
        return None
    return compute_slowdown([point.pace for point in before], [point.pace for point in after])
