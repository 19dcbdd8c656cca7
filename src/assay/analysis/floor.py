"""What differs though nothing changed: between runs, and with the machine's own pace.

Steps are rare in the history of runs, so the middle difference of neighbours is noise.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from statistics import fmean, median

from assay.analysis.losses import depends_on_machine, in_points, loss_of
from assay.analysis.pace import MachineShift
from assay.analysis.verdict import Floors, tolerance_of
from assay.model import Comparison, Verdict
from assay.model.regression import MetricHistory
from assay.stats.means import t_quantile
from assay.stats.random_effects import ErrorPart
from assay.units import percent

FEWEST_SESSIONS = 5
FEWEST = 6
"""Runs before it is known."""
_CLAIMS = (Verdict.WORSE, Verdict.BETTER)
_LEAST_LOSS = -0.999
_SIGMA = 1.4826 / math.sqrt(2)
"""From the median distance of neighbours to the standard deviation of one, where they are normal."""


def noise_floor(history: MetricHistory, judged: Collection[str]) -> float | None:
    """A share; None with too few runs, and of scores, whose tests over cases need none.

    Runs that are `judged` do not count: their own change would excuse itself.
    """
    values = [point.value for point in history.points if point.run_id not in judged]
    if in_points(history.metric) or len(values) < FEWEST or min(values) <= 0:
        return None
    return _SIGMA * median(abs(math.log(after / before)) for before, after in pairwise(values))


def session_error(history: MetricHistory, judged: Collection[str], version: str) -> ErrorPart | None:
    """Of the difference of two runs, from at least five earlier ones of the same; None with fewer.

    The standard deviation of a run is taken from neighbours (von Neumann 1941): from those of one version where there are
    enough, else from all, so that a step in the past counts once. A busy machine has good and bad sessions, so the
    interval reaches at least as far as runs of one version lay apart.
    """
    points = [point for point in history.points if point.run_id not in judged]
    if len(points) < FEWEST_SESSIONS or min(point.value for point in points) <= 0:
        return None
    neighbours = list(pairwise(points))
    of_one_version = [(before, after) for before, after in neighbours if before.version == after.version]
    if len(of_one_version) >= FEWEST_SESSIONS - 1:
        neighbours = of_one_version
    squares = [math.log(after.value / before.value) ** 2 for before, after in neighbours]
    freedom = max(2, 2 * len(squares) // 3)
    alike = [point.value for point in points if point.version == version]
    reach = math.log(max(alike) / min(alike)) if alike else 0.0
    return ErrorPart(max(math.sqrt(fmean(squares)), reach / t_quantile(0.975, freedom)), freedom)


def steadied(comparisons: tuple[Comparison, ...], floors: Floors) -> tuple[Comparison, ...]:
    """Claims that are no larger than what runs differ by anyway are unsure."""
    return tuple(_steadied(one, floors.get((one.trial_b, one.metric.name))) for one in comparisons)


def excused(comparisons: tuple[Comparison, ...], shift: MachineShift | None) -> tuple[Comparison, ...]:
    """Claims that the machine's own pace may explain are unsure: a fixed piece of work took longer, or varied as much."""
    if shift is None:
        return comparisons
    return tuple(_excused(one, shift) if is_explained(one, shift) else one for one in comparisons)


def is_explained(one: Comparison, shift: MachineShift) -> bool:
    """Whether the machine moved the same way, and may have moved as far."""
    loss = loss_of(one)
    if loss is None or not depends_on_machine(one.metric) or one.verdict not in _CLAIMS:
        return False
    slower = math.log1p(max(loss.value, _LEAST_LOSS))
    return abs(slower) <= math.log1p(one.tolerance) + shift.explains(slower)


def _excused(one: Comparison, shift: MachineShift) -> Comparison:
    moved, spread = (percent(math.expm1(abs(size))) for size in (shift.value, shift.spread))
    told = f"was {moved} {'slower' if shift.value > 0 else 'faster'} at a fixed piece of work"
    if not shift.value:
        told = f"varied by up to {spread} at a fixed piece of work"
    elif shift.error:
        told += f" (± {spread})"
    reason = (
        f"The machine itself {told}, which may explain this; run both sides again, or together in one run."
    )
    return replace(one, verdict=Verdict.UNSURE, reason=reason)


def _steadied(one: Comparison, floor: float | None) -> Comparison:
    loss = loss_of(one)
    if floor is None or loss is None or one.verdict not in _CLAIMS:
        return one
    width = tolerance_of(one.metric, floor)
    if abs(loss.value) > width:
        return one
    reason = (
        f"A change of {percent(abs(loss.value))} is within twice the noise floor of {percent(floor)} between its runs; "
        "run both sides again, or together in one run."
    )
    return replace(one, tolerance=width, verdict=Verdict.UNSURE, reason=reason)
