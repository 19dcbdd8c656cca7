"""How fast answers came back: answers, good answers and tokens per second, each with an interval.

A closed loop is counted by the share of every answer's life that lies inside the window. Answers that take seconds come in
waves, so counting those that happen to end inside the window would be wrong by up to a wave.

An open loop is counted by what was due in the window. The answers to that come back over the same time, longer by as much as
latency grew meanwhile: with a growth of g seconds per second, what was due within one second comes back within 1 + g. Where
latency does not grow, the server kept up, however long an answer takes.

Intervals come from the means of blocks of time, as single requests follow each other too closely to be independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from assay.load.tally import Slice, Tally, Yield, together
from assay.model.figure import Figure
from assay.model.load import Arrivals, Load
from assay.stats.histogram import Histogram
from assay.stats.means import mean_half_width, t_quantile

T = TypeVar("T")
BLOCKS = 20
"""Into which a window is divided at most."""
FEWEST_BLOCKS = 4
_LATENCIES_OF_A_BLOCK = 2.5
LATENCIES_OF_A_LONG_WINDOW = 10.0
"""A window with fewer has no room for blocks that even out the waves of a closed loop."""
_LATENCIES_OF_A_SHORT_WINDOW = 2.0
_TREND_BLOCKS = 10
_LEAST_GROWTH = 0.02
"""Seconds of latency per second: with less, a server keeps up with 98 % of what it is offered."""
_ENDS = 0.2
"""The share of the window at either end whose latencies are compared for their growth."""


@dataclass(frozen=True, slots=True)
class MeasuredWindow:
    """Rates are counted from `begin` to `end`; times are those of requests that were due from `times_from` on."""

    begin: float
    end: float
    is_steady: bool
    times_from: float

    @property
    def seconds(self) -> float:
        return max(self.end - self.begin, 1e-9)


@dataclass(frozen=True, slots=True)
class Rates:
    answers: Figure
    good: Figure
    tokens: Figure
    latency_growth: float = 0.0


def count_rates(tally: Tally, load: Load, window: MeasuredWindow) -> Rates:
    if load.is_open:
        return _open_rates(slices_between(tally, window.begin, window.end), tally.width, load, window)
    if load.count is not None and window.end > tally.last_due:
        # Too short for blocks, and so for an interval: one figure, up to the last answer.
        whole = together(slices_between(tally, window.begin, window.end)).by_life
        return _rates([Figure(total / window.seconds) for total in _totals(whole)])
    return _compute_closed_rates(tally, load, window)


def _rates(figures: Sequence[Figure], latency_growth: float = 0.0) -> Rates:
    answers, good, tokens = figures
    return Rates(answers, good, tokens, latency_growth)


def _compute_closed_rates(tally: Tally, load: Load, window: MeasuredWindow) -> Rates:
    cycle = mean_latency(tally) + load.think_seconds
    if load.warmup is None and window.seconds < _LATENCIES_OF_A_SHORT_WINDOW * cycle:
        # After a warm-up requests no longer all begin together, and what came before it must not count.
        return _short_rates(tally, load)
    slices = slices_between(tally, window.begin, window.end)
    total = together(slices).by_life
    least = 0.5 / max(total.answers, 0.5)
    if window.seconds >= LATENCIES_OF_A_LONG_WINDOW * cycle:
        size = max(1, math.ceil(_LATENCIES_OF_A_BLOCK * cycle / tally.width), len(slices) // BLOCKS)
        widening = 1.0
    else:
        # Blocks shorter than a few latencies are alike because they share answers: the interval has to make up for that.
        size = max(1, len(slices) // FEWEST_BLOCKS)
        widening = math.sqrt(1 + 2 * cycle / window.seconds)
        times = together(slices_between(tally, window.times_from, window.end)).times["latency"]
        least = max(least, _relative_half_width(times, total.answers))
    # Rates of answers, good answers and tokens come from the same blocks, each with an interval of its own.
    blocks = [together(block).by_life for block in blocks_of(slices, size)]
    figures = []
    for value, values in _by_quantity(total, blocks):
        rate = value / window.seconds
        half = max(rate * least, widening * mean_half_width(values) / (size * tally.width))
        figures.append(Figure(rate, max(0.0, rate - half), rate + half))
    return _rates(figures)


def _short_rates(tally: Tally, load: Load) -> Rates:
    """Rates of a closed loop that is over before the answers to its first requests are: shares of their lives, which all begin together,
    would say little, so all that was answered counts, and how long that took.

    Where requests queue for a server it is busy as long as any wait, and answers at its own pace until the last. Elsewhere
    Little's law gives the rate: requests in flight ÷ their mean latency.
    """
    slices = [tally.slices.get(place, Slice()) for place in range(max(tally.slices, default=0) + 1)]
    ended = [Yield(slice_.completed, slice_.good, slice_.output) for slice_ in slices]
    total, whole = _sum(ended), together(slices)
    if tally.requests_queued_at_start():
        seconds, least = tally.last_end, 0.0
    else:
        # What was in flight when a load was cut short did not live to its end.
        busy = whole.busy_seconds if tally.stopped_at is None else whole.times["latency"].total
        lives = busy + load.think_seconds * total.answers
        seconds = lives / (load.concurrency or 1)
        least = _relative_half_width(whole.times["latency"], total.answers)
    size = max(1, len(ended) // FEWEST_BLOCKS)
    blocks = [_sum(block) for block in blocks_of(ended, size)]
    figures = []
    for value, values in _by_quantity(total, blocks):
        relative = max(
            0.5 / max(total.answers, 0.5), least or mean_half_width(values) * len(blocks) / max(value, 1e-9)
        )
        rate = value / max(seconds, 1e-9)
        figures.append(Figure(rate, max(0.0, rate * (1 - relative)), rate * (1 + relative)))
    return _rates(figures)


def _sum(parts: Sequence[Yield]) -> Yield:
    total = Yield()
    for part in parts:
        total.add(part)
    return total


def _open_rates(slices: Sequence[Slice], width: float, load: Load, window: MeasuredWindow) -> Rates:
    growth, error = find_latency_growth(slices, width)
    total = together(slices).by_due
    blocks = [together(block) for block in blocks_of(slices, max(1, len(slices) // BLOCKS))]
    blocks = [block for block in blocks if block.sent]
    # What an open loop sends in a block is known; only by chance arrivals it might have been more or less.
    sent = [1.0 if load.arrivals is Arrivals.POISSON else block.sent for block in blocks]
    slowest, fastest = 1 + growth + error, max(0.5, 1 + growth - error)
    figures = []
    for value, values in _by_quantity(total, [block.by_due for block in blocks]):
        rate = value / (window.seconds * (1 + growth))
        if not load.is_level or len(blocks) < FEWEST_BLOCKS or not value:
            figures.append(Figure(rate))
            continue
        shares = [answers / number for answers, number in zip(values, sent, strict=True)]
        of_count = max(0.5 / total.answers, mean_half_width(shares) / float(np.mean(shares)))
        # The errors of the count and of the growth are independent: their squares add up.
        below = math.hypot(of_count, 1 - (1 + growth) / slowest)
        above = math.hypot(of_count, (1 + growth) / fastest - 1)
        figures.append(Figure(rate, max(0.0, rate * (1 - below)), rate * (1 + above)))
    return _rates(figures, growth)


def find_latency_growth(slices: Sequence[Slice], width: float) -> tuple[float, float]:
    """Seconds by which latency grows in a second of load, 0 where none is established, and the half-width of its interval.

    Whether it grows, a straight line through the mean latencies of ten blocks of time decides (least squares, a one-sided
    t-test at 0.5 %).
    """
    size = max(1, len(slices) // _TREND_BLOCKS)
    latencies = [together(block).times["latency"] for block in blocks_of(slices, size)]
    points = [(place * size * width, times.mean) for place, times in enumerate(latencies) if times.n]
    if len(points) < FEWEST_BLOCKS:
        return 0.0, 0.0
    at, latency = (np.array(column) for column in zip(*points, strict=True))
    centred = at - at.mean()
    slope = float(centred @ latency / (centred @ centred))
    residuals = latency - latency.mean() - slope * centred
    freedom = len(points) - 2
    error = math.sqrt(float(residuals @ residuals) / freedom / float(centred @ centred))
    half = t_quantile(0.975, freedom) * error
    if slope < _LEAST_GROWTH or slope < t_quantile(0.995, freedom) * error:
        return 0.0, half
    # How much it grows is read off the two ends of the window.
    ends = max(1, round(_ENDS * len(slices)))
    first, last = (together(part).times["latency"] for part in (slices[:ends], slices[-ends:]))
    growth = (last.mean - first.mean) / ((len(slices) - ends) * width) if first.n and last.n else 0.0
    return max(_LEAST_GROWTH, growth), half


def _by_quantity(total: Yield, blocks: Sequence[Yield]) -> Iterator[tuple[float, Sequence[float]]]:
    """Answers, good answers and tokens: each in all, and block by block."""
    by_block = zip(*map(_totals, blocks), strict=True) if blocks else ((), (), ())
    return zip(_totals(total), by_block, strict=True)


def _totals(delivered: Yield) -> tuple[float, float, float]:
    return delivered.answers, delivered.good, delivered.tokens


def _relative_half_width(times: Histogram, n: float) -> float:
    """Compute the relative half-width of the 95 % interval of the mean of so many latencies.

    By Little's law a closed loop's rate is the concurrency ÷ the mean latency, so the rate is known no
    better.
    """
    if times.n < 2 or n < 1:
        return 0.0
    values, shares = times.curve()
    variance = float(np.diff(shares, prepend=0.0) @ (values - times.mean) ** 2)
    return t_quantile(0.975, max(1.0, n - 1)) * math.sqrt(variance / n) / times.mean


def mean_latency(tally: Tally) -> float:
    times = together(tally.slices.values()).times["latency"]
    return times.mean if times.n else 0.0


def slices_between(tally: Tally, begin: float, end: float) -> list[Slice]:
    """Every slice from `begin` to `end`, also those in which nothing happened."""
    return [tally.slices.get(place, Slice()) for place in tally.range_of(begin, end)]


def blocks_of(parts: Sequence[T], size: int) -> list[Sequence[T]]:
    """Cut the parts into blocks of equal length; what does not fill a block is left out."""
    return [parts[at : at + size] for at in range(0, len(parts) - size + 1, size)]
