"""A metric over versions and runs: where it shifted, whether that still holds, and whether the machine shifted with it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from assay.analysis.losses import depends_on_machine, in_points, loss_of_difference, loss_of_ratio, reach_of
from assay.analysis.pace import moved_by
from assay.analysis.replication import observed
from assay.analysis.verdict import tolerance_of
from assay.model import Metric, Series
from assay.model.regression import Loss, MetricHistory, Point, Shift
from assay.stats.changepoint import ChangePoint, Drift, History, detect
from assay.stats.effect import unpaired
from assay.stats.sample import Scale
from assay.stats.summary import percentile

_RECENT = 5
"""Points that a level of today rests on."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What a history shows; `reason` says why nothing could be found in it, where that is so."""

    shifts: tuple[Shift, ...] = ()
    reason: str = ""


def typical(metric: Metric, series: Series) -> float:
    """The value that stands for a trial: of scores the mean over the cases, else the median over the units."""
    seen = observed(series)
    if not in_points(metric):
        return percentile(seen.units, 50) if seen.units.size else math.nan
    means = seen.means
    return sum(means.values()) / len(means) if means else math.nan


def searched(history: MetricHistory, tolerance: float | None = None) -> Searched:
    """Shifts beyond tolerance, in their order."""
    width = _width(history.metric, tolerance)
    found = detect([point.value for point in history.points])
    shifts = [*_steps(history, found, width), *_drifts(history, found, width)]
    return Searched(tuple(one for one in shifts if abs(one.loss.value) > width), found.reason)


def _width(metric: Metric, tolerance: float | None) -> float:
    return tolerance_of(metric) if tolerance is None else tolerance


def is_back(history: MetricHistory, level: float) -> bool:
    """Whether the newest points are no worse than a level, within tolerance; not while there are too few of them."""
    recent = [point.value for point in history.points[-_RECENT:]]
    if len(recent) < _RECENT:
        return False
    return _loss_between(history.metric, level, median(recent)) <= _width(history.metric, None)


def _steps(history: MetricHistory, found: History, width: float) -> Iterator[Shift]:
    cuts = [0, *(change.index for change in found.change_points), len(history.points)]
    spans = [history.points[start:end] for start, end in pairwise(cuts)]
    now = _level(spans[-1]) if spans and spans[-1] else math.nan
    for change, before, after in zip(found.change_points, spans, spans[1:], strict=False):
        yield _step(history, change, before, after, now, width)


def _drifts(history: MetricHistory, found: History, width: float) -> Iterator[Shift]:
    if found.drift is not None:
        yield _drift(history, found.drift, width)


def _drift(history: MetricHistory, drift: Drift, width: float) -> Shift:
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
    """The detector's interval is relative to the first level, or to the larger one where not both are positive."""
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
    """Whether nothing of it is left: no loss beyond tolerance, or of a gain, no gain."""
    left = _loss_between(metric, before, now)
    return left <= width if loss.value > 0 else left >= -width


def _loss_between(metric: Metric, before: float, after: float) -> float:
    return loss_of_difference(metric, after - before, 0, 0, reach_of(metric, before, after)).value


def _loss(metric: Metric, before: Sequence[Point], after: Sequence[Point]) -> Loss:
    """By the rank test between the two levels; unbounded where they are too short for an interval."""
    effect = unpaired([point.value for point in before], [point.value for point in after])
    if effect is None:
        return Loss(0.0, -math.inf, math.inf)
    if effect.scale is Scale.RATIO and not in_points(metric):
        return loss_of_ratio(metric, effect.value, effect.low, effect.high)
    level = _level(before)
    # Of scores, points are wanted, also where the test was by ratio.
    value, low, high = (
        (number - 1) * level if effect.scale is Scale.RATIO else number
        for number in (effect.value, effect.low, effect.high)
    )
    return loss_of_difference(metric, value, low, high, reach_of(metric, level, _level(after)))


def _pace(metric: Metric, before: Sequence[Point], after: Sequence[Point]) -> float | None:
    if not depends_on_machine(metric):
        return None
    return moved_by([point.pace for point in before], [point.pace for point in after])
