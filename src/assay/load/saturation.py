"""Saturation: how fast a server answers at its limit, whether work piles up, and what the bottleneck is (`breach`).

As long as every slot of a server is busy, the rate of its answers is its capacity, whatever the service times are: that is
the figure to measure, with an interval, instead of narrowing down the rate at which a queue begins to grow by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from assay.load.rates import BLOCKS, blocks_of
from assay.model.bottleneck import (
    FOR_STEPS,
    KEPT_UP,
    MOST_ERRORS,
    OWN_LIMITS,
    falls_behind,
    is_generator_limit,
)
from assay.model.load import UNFINISHED, Arrivals, Distribution, Load, LoadResult, Moment, ObjectiveResult
from assay.stats.means import mean_half_width, t_quantile
from assay.units import percent

_FEWEST_BLOCKS = 5
_FEWEST_TIMES = 3
"""Answers from which the spread of service times is estimated; with fewer it is taken to be that of exponential times."""
_MANY_TIMES = 20
_LEAST_SPREAD = 0.02
_SLOWER = 0.35
"""Logarithm of how many times longer answers take where requests wait for each other."""
_SURELY = 2.5
"""Standard errors."""
_P90 = 1.2816
"""Standard deviations between the median and P90 of a normal distribution."""
_APART = 3.5
"""Standard errors between two steps beyond which they did not measure the same."""
_SHORT = 0.02
_BY_CHANCE = 2.0
"""Standard deviations of a count."""


@dataclass(frozen=True, slots=True)
class RateSample:
    """The rate of answers that was measured in one step in saturation."""

    seconds: float
    rate: float
    half: float
    """Half of its 95 % interval."""


@dataclass(frozen=True, slots=True)
class PooledRate:
    """The rate of answers over all steps in saturation."""

    rate: float
    low: float
    high: float
    seconds: float
    is_stable: bool
    """Whether the steps agree with each other."""

    @property
    def half(self) -> float:
        """Half the width of the interval, as a share of the rate."""
        return (self.high - self.low) / 2 / self.rate


def combine(samples: Sequence[RateSample]) -> PooledRate:
    """Weighted by time; where steps do not agree, the interval reaches from the lowest to the highest."""
    seconds = sum(sample.seconds for sample in samples)
    rate = sum(sample.rate * sample.seconds for sample in samples) / seconds
    half = math.hypot(*(sample.half * sample.seconds for sample in samples)) / seconds
    low, high = rate - half, rate + half
    is_stable = all(
        abs(sample.rate - rate) <= _APART / 2 * max(sample.half, half * math.sqrt(seconds / sample.seconds))
        for sample in samples
    )
    # A server whose capacity changes has no single rate; an interval around the mean would promise one.
    if not is_stable:
        low = min(low, *(sample.rate - sample.half for sample in samples))
        high = max(high, *(sample.rate + sample.half for sample in samples))
    return PooledRate(rate, max(0.0, low), high, seconds, is_stable)


def sample_closed(result: LoadResult, spread: float) -> RateSample:
    """Sample the rate of a closed loop with more requests in flight than the server has slots; `spread` is that of its service times.

    Slots that are never idle answer n ± spread × √n requests (renewal theory). Blocks of time show more where the server's
    speed changes; that they show less is chance.
    """
    found = result.throughput
    half = _least_half(found.value, result.measured_seconds, spread)
    if found.low is not None and found.high is not None:
        half = max(half, (found.high - found.low) / 2)
    return RateSample(result.measured_seconds, found.value, half)


def _least_half(rate: float, seconds: float, spread: float) -> float:
    return rate * 1.96 * spread / math.sqrt(max(1.0, rate * seconds))


def sample_open(result: LoadResult, spread: float) -> RateSample | None:
    """Sample the rate of an open loop that asks for more than the server can do.

    Only what was answered once there was a queue counts: before, the rate is that of the schedule and
    not of the server.
    """
    # The stretches in which requests were due, from the first answer on; the first quarter of them filled the queue.
    until = (result.measured_from + result.measured_seconds) * (1 + 1e-9)
    inside = [moment for moment in result.moments if moment.begin + moment.seconds <= until]
    answered = [place for place, moment in enumerate(inside) if moment.completed or moment.failed]
    moments = inside[answered[0] :] if answered else []
    moments = moments[len(moments) // 4 :]
    if len(moments) < _FEWEST_BLOCKS:
        return None
    whole = sum(moment.seconds for moment in moments)
    rate = sum(moment.completed for moment in moments) / whole
    size = max(1, len(moments) // BLOCKS)
    blocks = [
        sum(moment.completed for moment in block) / (size * moments[0].seconds)
        for block in blocks_of(moments, size)
    ]
    half = max(mean_half_width(blocks), _least_half(rate, whole, spread))
    return RateSample(whole, rate, half)


def estimate_spread(results: Sequence[LoadResult]) -> float:
    """Standard deviation ÷ mean of service times, from steps that kept no request waiting."""
    times = [result.times["latency"] for result in results if "latency" in result.times]
    number = sum(distribution.n for distribution in times)
    if number < _FEWEST_TIMES:
        return 1.0
    mean = compute_pooled_mean(times)
    many = [distribution for distribution in times if distribution.n >= _MANY_TIMES]
    if many:
        spread = (
            sum(distribution.n * (distribution.p90 - distribution.p50) for distribution in many)
            / sum(distribution.n for distribution in many)
            / _P90
            / mean
        )
    else:
        # Percentiles of a few are these few themselves; tails count more than they should, which is on the safe side.
        spread = (
            float(
                np.std(
                    [
                        value
                        for distribution in times
                        for value in (distribution.p50, distribution.p90, distribution.max)
                    ],
                    ddof=1,
                )
            )
            / mean
        )
    # With few times the spread itself is hardly known.
    return max(_LEAST_SPREAD, spread * t_quantile(0.975, number - 1) / 1.96)


def compute_pooled_mean(times: Sequence[Distribution]) -> float:
    """Compute the mean of all times together, each distribution weighted by its number of values."""
    return sum(distribution.n * distribution.mean for distribution in times) / max(
        1, sum(distribution.n for distribution in times)
    )


def requests_wait(result: LoadResult, before: Sequence[LoadResult]) -> bool:
    """Whether answers took longer than `before`, with fewer in flight, by more than chance explains."""
    now = result.times.get("latency")
    times = [earlier.times["latency"] for earlier in before if "latency" in earlier.times]
    number = sum(distribution.n for distribution in times)
    if now is None or not number:
        return False
    by_chance = _SURELY * estimate_spread(before) * math.sqrt(1 / now.n + 1 / number)
    return math.log(now.mean / compute_pooled_mean(times)) > max(_SLOWER, by_chance)


def is_piling_up(result: LoadResult, seconds: float, spread: float) -> bool | None:
    """Whether the queue grew by more than 2 % of what was due, and more than chance explains; None where nothing tells it.

    Seen by those who wait in it: a latency that grows by d means that d × rate more requests wait, whenever they are answered.
    """
    due = [moment for moment in result.moments if moment.begin < seconds and moment.latency_p50 is not None]
    third = len(due) // 3
    if not third:
        return None
    # The first third against the last, by medians of short stretches: a single slow answer moves neither.
    grown = (
        (_mean_latency(due[-third:]) - _mean_latency(due[:third]))
        * result.requests_completed
        / result.duration
    )
    between = sum(moment.sent for moment in due) * 2 / 3
    return grown > max(_SHORT * between, _BY_CHANCE * spread * math.sqrt(between), 1.0)


def _mean_latency(moments: Sequence[Moment]) -> float:
    sent = sum(moment.sent for moment in moments)
    return sum((moment.latency_p50 or 0.0) * moment.sent for moment in moments) / max(1, sent)


def breach(result: LoadResult, load: Load, spread: float = 1.0) -> tuple[str | None, str]:
    """What broke first: the cause, and in words with its number.

    `spread` is the standard deviation of service times ÷ their mean, which says how far a queue may grow by chance.
    """
    # The order of the questions is that of what explains the others: errors of the server make it look quick, and a machine
    # that cannot keep up makes every server look slow.
    failed = {kind: number for kind, number in result.errors.items() if kind not in UNFINISHED}
    own = sum(failed.get(kind, 0) for kind in OWN_LIMITS)
    servers = result.error_rate.value * (1 - own / max(1, sum(failed.values())))
    broken = next((held for held in result.held if held.is_met is False), None)
    has_own_limit = any(_is_about_errors(held) for held in result.held)
    if (servers > MOST_ERRORS and not has_own_limit) or (
        _is_about_errors(broken) and servers > result.error_rate.value / 2
    ):
        kind = max(
            (error for error in failed if error not in OWN_LIMITS),
            key=lambda error: failed[error],
            default="",
        )
        return "errors", f"{percent(servers)} of the requests failed (mostly {kind})"
    is_short = _is_short(result, load, spread)
    if own and (broken or is_short or result.error_rate.value > MOST_ERRORS):
        return "generator", f"this machine ran out of descriptors or ports for {own} requests"
    is_late = is_generator_limit(result, FOR_STEPS) or _was_sent_late(result, load)
    if (is_short or broken) and is_late:
        return "generator", "this machine could not send or read faster"
    if broken and broken.figure:
        return "latency", f"{broken.objective.text} was not met"
    if is_short:
        return "saturation", f"requests queued up at {load.offered or 0:.4g} requests/s"
    if not result.requests_completed:
        return "errors", "nothing was answered"
    return None, ""


def _is_about_errors(held: ObjectiveResult | None) -> bool:
    return held is not None and held.objective.metric == "error_rate"


def _is_short(result: LoadResult, load: Load, spread: float) -> bool:
    """Whether the server fell behind what was offered, beyond what chance explains."""
    if load.offered is None:
        return False
    if (grows := is_piling_up(result, load.seconds, spread)) is not None and result.error_rate.value < 1:
        return grows or _was_sent_late(result, load)
    return falls_behind(result, load.offered)


def _was_sent_late(result: LoadResult, load: Load) -> bool:
    """Whether fewer requests were sent in time than were due; by chance the schedule itself may have had a few less."""
    if load.offered is None:
        return False
    due = load.offered * load.seconds
    chance = 3 * math.sqrt(due) if load.arrivals is Arrivals.POISSON else 0.0
    return result.achieved_rate * load.seconds < KEPT_UP * due - chance
