"""The search for the highest rate that a server sustains.

First a closed loop with 1, 2, 4, … requests in flight until more of them bring no more answers: the knee. From there on every
slot of the server is busy, so the rate of answers is its capacity; it is measured until its interval is narrow enough, and tried
by open loops below and above it. Where an objective or errors set the limit, open loops around it show at which rate: each
step holds or breaks, and the interval comes from all of them together.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from assay.load.saturation import (
    PooledRate,
    RateSample,
    breach,
    combine,
    compute_pooled_mean,
    estimate_spread,
    requests_wait,
    sample_closed,
    sample_open,
)
from assay.model.load import (
    QUANTILES,
    Arrivals,
    Capacity,
    Distribution,
    Load,
    LoadResult,
    ObjectiveResult,
    Step,
)
from assay.stats.threshold import Crossing, LevelMeasurement, find_crossing
from assay.units import percent, significant

Probe = Callable[[Load], LoadResult]
"""Carries a load out and judges it."""

_GROWTH = 1.05
"""Times the throughput that twice as many in flight must bring to count as a gain."""
_UNCHANGED = 1.3
"""Up to this many times the latency with fewer in flight, requests did not wait for each other."""
_MOST_POOR = 4
"""Doublings without a gain after which the climb ends, even if no longer latency shows that requests wait."""
_PRECISE = 0.04
"""Half of an interval, as a share of the rate, that is narrow enough."""
_FEWEST_NEAR = 4
"""Timetables near the limit without which it is not taken to be sharp."""
_GAP = 1.05
"""Ratio of the lowest rate that broke to the highest that held from which on both are near the limit."""
_MOST_AT_ONCE = 4096
_STEPS_OF_TIME = 36
"""A search takes at most about this many times the length of a step."""
_LATENCIES = 25
"""If single answers take long, a search may take this many latencies instead."""
_LONGEST_SEARCH = 150.0
"""Maximum seconds to which latencies may extend a search."""
_LATENCIES_OF_A_STEP = 4
"""With what a closed loop leaves out at its beginning, and what is under way at its end."""
_LONG = 5
"""A step of at least this many latencies is long enough for its ramp-up to be negligible."""
_FEWEST = 300
"""Requests that an open loop should send."""
_LONGEST_STEP = 4.0
"""Times the length of a step that an open loop may last to send that many."""
_FACTOR = 3.0
"""Times the usual length of an open loop that is held against an objective: queues need time, so its first third is left out."""
_SPREAD_OUT = (1.0, 0.94, 1.06)
"""Where the limit is known roughly: times that rate, the next open loops."""
_BROKEN = 20.0
"""How near a step came to breaking, where it broke for certain; an objective breaks at 1."""
_MOST_SAMPLES = 12
_MOST_STEPS = 40
_LOWEST = 64
"""Times below the throughput of the closed loop at which the search for a rate that holds gives up."""


@dataclass(frozen=True, slots=True)
class SustainedRate:
    """The sustained rate with its interval; an end is None where nothing showed it."""

    rate: float | None
    low: float | None = None
    high: float | None = None
    is_stable: bool = True


class Search:
    """One search, executed by `run`; `seconds` is the length of a step, `base` gives everything else but the load.

    `_climb` finds the knee with closed loops. Then one of three ways leads to the rate:

    - The closed loop filled the server: `_measure_saturated` repeats it until the interval of its throughput is narrow.
    - It did not, as where each answer takes long but any number may be in flight: `_fill_by_timetable` offers higher and
      higher rates until the server falls behind.
    - An objective about times, or errors, break before that: `_find_threshold` looks for the rate where they begin to.

    The first two are confirmed by open loops below and above the rate (`_try_by_timetable`), the last by its own steps. All
    of it ends when `_left`, the time for the search, is used up; what is known by then is the answer, with a wider interval.
    """

    def __init__(
        self,
        base: Load,
        seconds: float,
        probe: Probe,
        is_stopped: Callable[[], bool] = lambda: False,
        tell: Callable[[Step], None] = lambda step: None,
    ) -> None:
        self._base, self._probe, self._is_stopped, self._tell = base, probe, is_stopped, tell
        self.seconds = seconds
        self._steps: list[Step] = []
        self._latency = 0.0
        """Seconds of an answer that waits for no other."""
        self._spread = 1.0
        """Standard deviation ÷ mean of service times; 1, that of exponential times, until steps show it."""
        self._taken = 0.0
        """Seconds that the search has used."""
        self._samples: list[RateSample] = []
        self._alone: list[Distribution] = []
        """Latencies of short steps in which requests did not wait for each other."""

    def run(self) -> Capacity:
        knee, highest, is_full = self._climb()
        if highest <= 0 or self._is_stopped():
            return self._conclude(knee, highest, SustainedRate(None), confirmed=False)
        # Up to the knee requests do not wait for each other, so their times are service times and not times in a queue.
        self._spread = estimate_spread(
            [step.result for step in self._steps if (step.concurrency or 0) <= (knee or 1)]
        )
        last = self._steps[-1]
        # Where this machine is the limit, all that can be said is that the server sustains at least so much.
        if last.broken_by == "generator":
            return self._conclude(knee, highest, SustainedRate(highest, highest), confirmed=False)
        if any(objective.metric != "error_rate" for objective in self._base.objectives) or last.broken_by:
            answer = self._find_threshold(highest)
            held, broken = self._sides()
            is_between = bool(held and broken) and min(held) < (answer.rate or 0.0) < max(broken)
            return self._conclude(knee, highest, answer, confirmed=is_between and not self._is_stopped())
        estimate = self._measure_saturated(last, highest) if is_full else None
        answer, confirmed = self._try_by_timetable(estimate, highest)
        return self._conclude(knee, max(highest, answer.rate or 0.0), answer, confirmed=confirmed)

    @property
    def _seconds_left(self) -> float:
        """Seconds that the search may still take."""
        allowed = max(_STEPS_OF_TIME * self.seconds, min(_LONGEST_SEARCH, _LATENCIES * self._latency))
        return allowed - self._taken

    def _climb(self) -> tuple[int | None, float, bool]:
        """Twice as many in flight until that brings no more: the knee, the highest rate, and whether the server was full."""
        at_once, best, knee, poor, is_full = 1, 0.0, None, 0, False
        limit = self._base.concurrency or _MOST_AT_ONCE
        while at_once <= limit and poor < _MOST_POOR and not self._is_stopped():
            step = self._run_closed_step(at_once, best)
            if step.result.is_cut:
                break
            rate = _compute_closed_rate(step)
            # A gain begins the count anew: throughput often stands still for a step by chance, and then continues to grow.
            if rate > best * _GROWTH:
                best, knee, poor = rate, at_once, 0
            else:
                poor += 1
            # How long steps have to be follows from the latency of a single request, so it is needed first.
            if at_once == 1 and "latency" in step.result.times:
                self._latency = step.result.times["latency"].mean
            if step.broken_by in ("errors", "generator") or (step.broken_by == "latency" and poor):
                break
            at_once *= 2
            latency = step.result.times["latency"].mean if "latency" in step.result.times else 0.0
            is_full = poor > 0 or (best > 0 and latency > _UNCHANGED * self._mean_alone())
            is_long = (
                best
                and self._seconds_left < self._seconds_of_trials(best) + _LATENCIES_OF_A_STEP * at_once / best
            )
            # With a quarter as many in flight or fewer, no request waited for another.
            most = max(1, (step.concurrency or 1) // 4)
            before = [earlier.result for earlier in self._steps if (earlier.concurrency or 0) <= most]
            if is_full and (is_long or (poor and requests_wait(step.result, before))):
                break
        return knee, best, is_full

    def _run_closed_step(self, at_once: int, best: float) -> Step:
        """Where there is no time for several answers one after the other, a step that may have filled the server is followed by
        one that leaves out its beginning, when the queue was still short.
        """
        seconds = self.seconds / 2
        step = self._step(replace(self._build_closed_load(at_once), seconds=seconds), at_once, None)
        latency = step.result.times.get("latency")
        if latency is not None and (not self._alone or latency.mean < _UNCHANGED * self._mean_alone()):
            self._alone.append(latency)
        if latency is None or step.result.is_cut or (best and seconds >= _LONG * at_once / best):
            return step
        if latency is self._alone[-1]:
            return step
        wait = at_once / best
        return self._step(
            replace(self._build_closed_load(at_once), warmup=wait, seconds=wait + max(seconds, wait)),
            at_once,
            None,
        )

    def _mean_alone(self) -> float:
        """Seconds of an answer that waits for no other."""
        return compute_pooled_mean(self._alone)

    def _measure_saturated(self, last: Step, best: float) -> PooledRate:
        """The rate of answers with every slot busy, until it is known well enough or half of the time is gone."""
        at_once = last.concurrency or 1
        wait = at_once / best
        seconds = max(self.seconds, wait)
        if self.seconds / 2 < _LONG * wait:
            # It left its beginning out, and there is no time to waste.
            self._samples.append(sample_closed(last.result, self._spread))
        while len(self._samples) < _MOST_SAMPLES and not self._is_stopped():
            reserve = self._seconds_of_trials(best)
            if self._samples:
                now = combine(self._samples)
                # An interval narrows with the square root of time: from that follows how much more is needed.
                if now.half <= _PRECISE or self._seconds_left < reserve + 3 * wait + self.seconds:
                    break
                seconds = now.seconds * ((now.half / _PRECISE) ** 2 * 1.1 - 1)
            seconds = max(min(seconds, self._seconds_left - reserve - 3 * wait), self.seconds, wait)
            warmup = max(2 * wait, self._base.warmup or 0.0)
            load = replace(self._build_closed_load(at_once), warmup=warmup, seconds=warmup + seconds)
            step = self._step(load, at_once, None)
            if step.result.is_cut or not step.result.requests_completed:
                break
            self._samples.append(sample_closed(step.result, self._spread))
        if not self._samples:
            self._samples.append(sample_closed(last.result, self._spread))
        return combine(self._samples)

    def _try_by_timetable(self, estimate: PooledRate | None, best: float) -> tuple[SustainedRate, bool]:
        """Below and above what was measured; upwards until it breaks where the closed loop never filled the server."""
        if estimate is None:
            estimate = self._fill_by_timetable(best)
            if estimate is None:
                held, _ = self._sides()
                return SustainedRate(max(held, default=None)), False
        answer = _rate_of(estimate)
        # By chance n arrivals are off by √n, so with few of them the open loops stay further away from the estimate. They
        # lie outside its interval in any case: inside, the server may hold or break without contradicting it.
        number = estimate.rate * self._seconds_at(estimate.rate)
        above = max(1 + min(0.5, max(0.15, 5 / math.sqrt(number))), 1.02 * estimate.high / estimate.rate)
        below = min(1 - min(0.2, max(0.1, 2 / math.sqrt(number))), 0.98 * estimate.low / estimate.rate)
        high = self._offer_until_clear(estimate.rate * above, estimate.high)
        if high is not None and not high.broken_by:
            more = self._fill_by_timetable(estimate.rate * above)
            return (answer if more is None else _rate_of(more)), False
        low = None if self._is_stopped() else self._offer(estimate.rate * below)
        if low is None or low.result.is_cut:
            return answer, False
        # It breaks even below its capacity: random arrivals, or errors, set a lower limit than saturation does.
        if low.broken_by not in (None, "generator"):
            return self._find_threshold(low.rate or best), False
        is_broken = high is not None and high.broken_by != "generator"
        return answer, is_broken and not low.broken_by

    def _offer_until_clear(self, rate: float, most: float) -> Step | None:
        """A rate that should be too much; None where it neither broke the server nor was answered any faster than `most`."""
        for factor in (1, 2):
            if self._is_stopped() or (
                factor > 1 and self._seconds_left < 2 * self._seconds_at(rate) * factor
            ):
                return None
            step = self._offer(rate, factor)
            if step.result.is_cut:
                return None
            answered = sample_open(step.result, self._spread)
            if step.broken_by or (answered is not None and answered.rate - 1.5 * answered.half > most):
                return step
        return None

    def _fill_by_timetable(self, rate: float) -> PooledRate | None:
        """Ever higher rates until the server falls behind: what it answers then is what it can."""
        samples: list[RateSample] = []
        for _ in range(_MOST_STEPS):
            if self._is_stopped() or (self._seconds_left <= 0 and samples):
                break
            step = self._offer(rate)
            if step.result.is_cut or step.broken_by in ("errors", "generator"):
                break
            if step.broken_by != "saturation":
                rate *= 1.4
                continue
            # Only now is every slot busy, and what comes back is the server's own pace; a queue makes it no faster.
            sample = sample_open(step.result, self._spread)
            if sample is None:
                break
            samples.append(sample)
            now = combine(samples)
            if now.half <= _PRECISE or len(samples) >= _MOST_SAMPLES:
                break
            rate = max(now.rate * 1.25, now.high * 1.05)
        return combine(samples) if samples else None

    def _find_threshold(self, best: float) -> SustainedRate:
        """The rate at which an objective, or the server itself, begins to break."""
        # From just below the highest throughput: an objective about latency breaks before the server is full.
        rate, points = best * 0.9, self._points()
        for turn in range(_MOST_STEPS):
            if self._is_stopped():
                break
            step = self._offer(rate, _FACTOR)
            if step.result.is_cut or step.broken_by == "generator":
                break
            points = self._points()
            crossing = find_crossing(points)
            if (
                self._seconds_left < self._seconds_at(rate) * _FACTOR
                or _is_sharp(crossing, points)
                or rate < best / _LOWEST
            ):
                break
            rate = _next_rate(crossing, turn)
        held, broken = self._sides()
        if not points or not held:
            return SustainedRate(None, None, min(broken, default=None))
        crossing = find_crossing(points)
        return SustainedRate(crossing.level, crossing.low, crossing.high)

    def _points(self) -> list[LevelMeasurement]:
        """How near each step of an open loop came to breaking; steps in which this machine was the limit show nothing."""
        return [
            LevelMeasurement(step.rate, _compute_strain(step), step.result.measured_seconds)
            for step in self._steps
            if step.rate is not None and step.broken_by != "generator"
        ]

    def _offer(self, rate: float, factor: float = 1.0) -> Step:
        """One step of an open loop at this rate, for the usual length of such a step times `factor`."""
        seconds = self._seconds_at(rate) * factor
        load = replace(
            self._base,
            arrivals=Arrivals.POISSON if self._base.arrivals is Arrivals.POISSON else Arrivals.CONSTANT,
            concurrency=None,
            stages=((seconds, rate, rate),),
            seconds=seconds,
            warmup=max(seconds / 3, self._base.warmup or 0.0) if self._base.objectives else self._base.warmup,
            count=None,
        )
        return self._step(load, None, rate)

    def _seconds_at(self, rate: float) -> float:
        enough = min(self.seconds * _LONGEST_STEP, _FEWEST / rate)
        return max(self.seconds, enough, 4 * self._latency)

    def _seconds_of_trials(self, rate: float) -> float:
        """What two open loops take, with what is still waiting at their end."""
        return 2 * self._seconds_at(rate) * 1.15 + 2 * self._latency

    def _build_closed_load(self, at_once: int) -> Load:
        return replace(self._base, arrivals=Arrivals.CLOSED, concurrency=at_once, stages=(), count=None)

    def _sides(self) -> tuple[list[float], list[float]]:
        """Rates that held and that broke the server."""
        steps = [step for step in self._steps if step.rate is not None and step.broken_by != "generator"]
        held = [step.rate for step in steps if step.rate is not None and not step.broken_by]
        return held, [step.rate for step in steps if step.rate is not None and step.broken_by]

    def _step(
        self, load: Load, at_once: int | None, rate: float | None, *, is_repeated: bool = False
    ) -> Step:
        """Run one load, judge whether it broke the server, and write it down; one in which this machine was the limit is
        repeated once.
        """
        result = self._probe(load)
        self._taken += max(load.seconds, result.duration)
        cause, why = breach(result, load, self._spread)
        if cause == "generator" and not (is_repeated or result.is_cut or self._is_stopped()):
            # This machine may have been busy with something else for a moment.
            return self._step(load, at_once, rate, is_repeated=True)
        step = Step(at_once, rate, result, cause, why)
        if not result.is_cut:
            # The outcome of an interrupted step is unknown, so it is discarded.
            self._steps.append(step)
            self._tell(step)
        return step

    def _conclude(
        self, knee: int | None, highest: float, answer: SustainedRate, *, confirmed: bool
    ) -> Capacity:
        held, broken = self._sides()
        # A rate that broke below the answer was a hiccup, unless nothing above it was tried.
        above = [rate for rate in broken if answer.rate is None or rate >= answer.rate]
        breaking = min(above or broken, default=None)
        last = next(
            (step for step in reversed(self._steps) if step.rate == breaking and step.broken_by), None
        )
        last = last or next((step for step in self._steps if step.broken_by), None)
        why_none = "the search was interrupted before a rate was tried" if self._is_stopped() else ""
        return Capacity(
            sustained=answer.rate,
            interval=(answer.low, answer.high),
            broken=breaking,
            highest_held=max(held, default=None),
            confirmed=confirmed,
            cause=last.broken_by if last else None,
            why=last.why if last else why_none,
            knee=knee,
            highest_throughput=highest,
            steps=tuple(self._steps),
            warnings=self._warnings(answer),
            is_simulated=any(step.result.is_simulated for step in self._steps),
            is_cut=self._is_stopped(),
        )

    def _warnings(self, answer: SustainedRate) -> tuple[str, ...]:
        warnings = []
        if self._is_stopped():
            warnings.append("The search was interrupted: this is the best estimate so far.")
        if not answer.is_stable:
            warnings.append(
                "The steps disagree, so the server's capacity changes over time: the interval spans all of them."
            )
        if answer.rate and answer.low is not None and answer.high is not None:
            half = (answer.high - answer.low) / 2 / answer.rate
            if half > 0.1:
                warnings.append(
                    f"The interval is wide (± {percent(half)}): longer steps (--duration {significant(self.seconds * 4)}) narrow it."
                )
        if any(step.broken_by == "generator" for step in self._steps):
            warnings.append("In some steps this machine was the bottleneck; the server may sustain more.")
        return tuple(warnings)


def _rate_of(pooled: PooledRate) -> SustainedRate:
    return SustainedRate(pooled.rate, pooled.low, pooled.high, pooled.is_stable)


def _next_rate(found: Crossing, turn: int) -> float:
    """Further out until there is a rate on either side of the limit, then halfway between both, then around it."""
    if found.below is None:
        return (found.above or found.level) * 0.8
    if found.above is None:
        return found.below * 1.15
    if found.above / found.below > _GAP:
        return math.sqrt(found.above * found.below)
    return found.level * _SPREAD_OUT[turn % len(_SPREAD_OUT)]


def _is_sharp(found: Crossing, points: list[LevelMeasurement]) -> bool:
    """Whether nothing is left to chance: what is just below the limit is far from breaking, and what is just above broke."""
    if found.below is None or found.above is None or found.above / found.below > _GAP:
        return False
    near = [point for point in points if abs(point.level / found.level - 1) < 2 * (_GAP - 1)]
    return len(near) >= _FEWEST_NEAR and all(not 0.2 < point.value < 0.5 * _BROKEN for point in near)


def _compute_strain(step: Step) -> float:
    """How near the step came to breaking the objective that is nearest to it, as a number that reaches 1 where it breaks.

    A percentile breaks where the share of requests beyond its limit reaches what it allows. That share is the same on
    average whether a load is short or long; whether a short load kept the percentile is not, as queues come and go.
    """
    if step.broken_by in ("errors", "saturation"):
        return _BROKEN
    return max((_compute_objective_strain(held, step.result) for held in step.result.held), default=0.0)


def _compute_objective_strain(held: ObjectiveResult, result: LoadResult) -> float:
    """The share of requests beyond the limit ÷ the share that the objective allows; others than percentiles hold or break."""
    objective = held.objective
    times = result.times.get(objective.metric)
    allowed = 1 - QUANTILES[objective.statistic] if objective.statistic in QUANTILES else None
    if times is None or allowed is None or not objective.is_upper:
        return _BROKEN if held.is_met is False else 0.0
    below, share = 0.0, 0.0
    # The share beyond the limit is read off between the known percentiles.
    for name, reached in (*QUANTILES.items(), ("max", 1.0)):
        value = times.at(name)
        if value > objective.limit:
            beyond = 1 - (share + (reached - share) * (objective.limit - below) / (value - below))
            return min(_BROKEN, beyond / allowed)
        below, share = value, reached
    return 0.0


def _compute_closed_rate(step: Step) -> float:
    """Answers per second; of a closed loop that is over before several answers came one after the other, by Little's law."""
    result, latency = step.result, step.result.times.get("latency")
    if step.concurrency is None:
        return 0.0
    if (
        latency is None
        or not latency.mean
        or result.measured_from + result.measured_seconds >= _LONG * latency.mean
    ):
        return result.throughput.value
    if result.measured_from >= latency.mean:
        return result.throughput.value
    return step.concurrency / latency.mean
