"""What differs though nothing changed: between the rounds of a run, between runs, and with the machine's own pace.

Cases that were put in one round share what the machine did in that minute, so a test over cases alone takes a slow minute
for a slow agent. Rounds are a sample of minutes. The history is one of hours: steps are rare in it, so the middle difference
of neighbours is noise.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from statistics import median

import numpy as np

from assay.analysis.compare import matching_trials
from assay.analysis.losses import depends_on_machine, in_points, loss_of
from assay.analysis.pace import MachineShift
from assay.analysis.rounds import half_widths, of_rounds
from assay.analysis.verdict import Floors, tolerance_of
from assay.model import Comparison, Report, Series, TrialReport, Verdict
from assay.model.regression import MetricHistory
from assay.stats.sample import Array
from assay.units import percent

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


def replicated(comparisons: tuple[Comparison, ...], a: Report, b: Report) -> tuple[Comparison, ...]:
    """Claims about times that rounds of either side differ by anyway are unsure."""
    pairs = {second.name: (first, second) for first, second in matching_trials(a, b)}
    return tuple(_replicated(one, *pairs[one.trial_b]) for one in comparisons)


def _replicated(one: Comparison, first: TrialReport, second: TrialReport) -> Comparison:
    if one.verdict not in _CLAIMS or not depends_on_machine(one.metric):
        return one
    width = round_width(first.series.get(one.metric.name), second.series.get(one.metric.name))
    loss = loss_of(one)
    if width is None or loss is None or abs(loss.value) > math.expm1(width):
        return one
    reason = (
        f"A change of {percent(abs(loss.value))} is no more than what rounds of the two sides differ by among themselves; "
        "more repetitions would settle it."
    )
    return replace(one, verdict=Verdict.UNSURE, reason=reason)


def round_width(first: Series | None, second: Series | None) -> float | None:
    """Half the 95 % interval of the difference of the two sides' rounds, on the scale of logarithms (Student's t).

    None where the units are not cases, or a side has one round only.
    """
    sides = [_round_means(series) for series in (first, second)]
    if any(side is None or side.size < 2 for side in sides):
        return None
    rounds = [side for side in sides if side is not None]
    sizes, spreads = np.array([[side.size, side.std(ddof=1)] for side in rounds]).T
    return float(half_widths(sizes, spreads)[0, 1])


def _round_means(series: Series | None) -> Array | None:
    """The mean of each round over its cases, less what is the cases' own."""
    if series is None or series.unit != "case":
        return None
    values = np.asarray(series.values, dtype=np.float64)
    usable = np.isfinite(values) & (values > 0)
    if not usable.all():
        return None
    return of_rounds(np.log(values), np.asarray(series.processes), np.asarray(series.repetitions))


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
    moved = percent(math.expm1(abs(shift.value)))
    told = f"was {moved} {'slower' if shift.value > 0 else 'faster'} at a fixed piece of work"
    if shift.error:
        told += f", give or take {percent(math.expm1(shift.spread))},"
    reason = (
        f"The machine itself {told} which may explain this; run both sides again, or together in one run."
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
