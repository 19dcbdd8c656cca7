"""The search for how much a server bears.

First a closed loop with 1, 2, 4, … requests at a time until the throughput stops growing: it shows the knee, and about where
the limit lies. Then the timetable: rates around that, halving the gap between the highest that was borne and the lowest
that was not; a step that decides nothing is done once more, and longer. At last the answer is tried at 0.95 and 1.05 times.
What is called borne lies below every rate that was not, whichever step showed it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from assay.model.load import Arrivals, Capacity, Load, LoadResult, Step
from assay.units import significant

Probe = Callable[[Load], LoadResult]
"""Carries a load out and judges it."""

_GROWTH = 1.05
_GAP = 1.03
_MOST_ERRORS = 0.05
_BORNE = 0.98
_BUSY = 0.9
_MOST_AT_ONCE = 4096
_FEWEST = 120
"""Requests that a step should send, so that its rate is known within a percent."""
_LOWER = 0.8
_MOST_LOWER = 8
"""Steps down from a rate that was not borne, each to 0.8 of the one before, until one is."""
_LONGEST = 4.0
"""Times the asked length that a step may last for their sake."""
_ANSWERS = 6
"""So many answers, one after the other, a step should have time for."""


class Search:
    """`seconds` is the length of a step; `base` gives everything else but the load."""

    def __init__(
        self, base: Load, seconds: float, probe: Probe, is_stopped: Callable[[], bool] = lambda: False
    ) -> None:
        self._base, self._probe, self._is_stopped = base, probe, is_stopped
        self.seconds = self._asked = seconds
        """Longer than was asked for, where a single answer takes a good part of that."""
        self._steps: list[Step] = []

    def run(self) -> Capacity:
        knee, highest = self._climb()
        if highest <= 0:
            return self._answer(knee, highest, confirmed=False)
        low, high = self._bracket(highest)
        while low and high and high / low > _GAP and not self._is_stopped():
            middle = math.sqrt(low * high)
            if self._offer(middle).broken_by:
                high = middle
            else:
                low = middle
        confirmed = bool(low and high) and self._confirm(low or 0.0)
        self._go_lower()
        return self._answer(knee, highest, confirmed)

    def _climb(self) -> tuple[int | None, float]:
        """Twice as many at a time until that no longer helps."""
        at_once, best, knee, poor = 1, 0.0, None, 0
        limit = self._base.concurrency or _MOST_AT_ONCE
        while at_once <= limit and poor < 2 and not self._is_stopped():
            step = self._closed_step(at_once)
            if step.result.is_cut:
                break
            throughput = step.result.throughput.value
            if throughput > best * _GROWTH:
                best, knee, poor = throughput, at_once, 0
            else:
                poor += 1
            if step.broken_by in ("errors", "generator") or (step.broken_by == "latency" and poor):
                break
            at_once *= 2
        return knee, best

    def _closed_step(self, at_once: int) -> Step:
        """The first shows how long an answer takes: where there was no time for several, all steps are made longer."""
        load = replace(
            self._base,
            arrivals=Arrivals.CLOSED,
            concurrency=at_once,
            stages=(),
            seconds=self.seconds / 2,
        )
        step = self._step(load, at_once, None)
        latency = step.result.times.get("latency")
        if at_once > 1 or latency is None or step.result.is_cut or self.seconds >= _ANSWERS * latency.mean:
            return step
        self.seconds = _ANSWERS * latency.mean
        return self._step(replace(load, seconds=self.seconds / 2), at_once, None)

    def _bracket(self, highest: float) -> tuple[float | None, float | None]:
        """A rate that is borne, and one that is not, around what the closed loop reached."""
        rate, low, high = highest * 0.9, None, None
        while not (low and high) and not self._is_stopped():
            if self._offer(rate).broken_by:
                high = rate
                if rate < highest / 64:
                    break
                rate = low or rate / (1.25 if high >= highest * 0.5 else 2)
            else:
                low = rate
                if rate > highest * 8:
                    break
                rate = high or rate * 1.2
            if low and high:
                break
        return low, high

    def _offer(self, rate: float) -> Step:
        """A step that is neither clearly borne nor clearly too much is done again, twice as long."""
        seconds = max(self.seconds, min(self._asked * _LONGEST, _FEWEST / rate))
        step = self._open_step(rate, seconds)
        if step.result.is_cut:
            return step
        is_unclear = step.broken_by == "saturation" and not _is_clear(step.result, rate)
        if is_unclear or (not step.broken_by and _ended(step.result) < _BORNE * rate):
            step = self._open_step(rate, seconds * 2)
        return step

    def _open_step(self, rate: float, seconds: float) -> Step:
        load = replace(
            self._base,
            arrivals=Arrivals.CONSTANT,
            concurrency=None,
            stages=((seconds, rate, rate),),
            seconds=seconds,
            count=None,
        )
        return self._step(load, None, rate)

    def _confirm(self, rate: float) -> bool:
        """Both sides of the answer, once more."""
        if self._is_stopped():
            return False
        return not self._offer(rate * 0.95).broken_by and bool(self._offer(rate * 1.05).broken_by)

    def _go_lower(self) -> None:
        """Where every rate that was borne lies above one that was not, further down until one is borne."""
        borne, broken = self._sides()
        for _ in range(_MOST_LOWER):
            if not (borne and broken) or min(borne) < min(broken) or self._is_stopped():
                return
            self._offer(min(broken) * _LOWER)
            borne, broken = self._sides()

    def _sides(self) -> tuple[list[float], list[float]]:
        """Rates that were borne and that were not; where one was tried again, the last try counts."""
        last = {step.rate: step for step in self._steps if step.rate is not None}
        borne = [rate for rate, step in last.items() if not step.broken_by]
        return borne, [rate for rate, step in last.items() if step.broken_by]

    def _step(self, load: Load, at_once: int | None, rate: float | None) -> Step:
        result = self._probe(load)
        cause, why = breach(result, load)
        step = Step(at_once, rate, result, cause, why)
        if not result.is_cut:
            # Of one that was broken off nobody knows how it would have gone on.
            self._steps.append(step)
        return step

    def _answer(self, knee: int | None, highest: float, confirmed: bool) -> Capacity:
        borne, too_much = self._sides()
        high = min(too_much, default=None)
        low = max((rate for rate in borne if high is None or rate < high), default=None)
        broken = [step for step in self._steps if step.broken_by and step.rate == high]
        last = broken[-1 if high else 0] if broken else None
        most = max(borne, default=None)
        return Capacity(
            sustained=low,
            broken=high,
            highest_borne=most,
            confirmed=confirmed,
            cause=last.broken_by if last else None,
            why=last.why if last else self._nothing_broke(),
            knee=knee,
            highest_throughput=highest,
            steps=tuple(self._steps),
            warnings=self._warnings(high, most, is_settled=confirmed or not (low and high)),
            is_simulated=any(step.result.is_simulated for step in self._steps),
        )

    def _nothing_broke(self) -> str:
        return "the search was cut short before a rate was tried" if self._is_stopped() else ""

    def _warnings(self, high: float | None, most: float | None, *, is_settled: bool) -> tuple[str, ...]:
        told = []
        if self.seconds > self._asked:
            told.append(
                f"A single answer takes long, so steps lasted {significant(self.seconds)} s and not {significant(self._asked)} s."
            )
        if self._is_stopped():
            told.append("The search was cut short: the answer is the best that was known by then.")
        elif high and most and most > high:
            told.append(
                f"The limit moves: {significant(most)}/s was borne in one step, {significant(high)}/s was not in another. "
                "Longer steps (--duration) tell more."
            )
        elif not is_settled:
            told.append("Tried again at 0.95 and 1.05 of the rate, it did not come out the same.")
        if any(step.broken_by == "generator" for step in self._steps):
            told.append(
                "At some step this machine could not send more: the server may bear more than is said here."
            )
        return tuple(told)


def _is_clear(result: LoadResult, rate: float) -> bool:
    span = result.throughput
    return span.high is not None and span.high < _BORNE * rate


def breach(result: LoadResult, load: Load) -> tuple[str | None, str]:
    """What broke first: the cause, and in words with its number."""
    objective = next((held for held in result.held if held.is_met is False), None)
    if result.error_rate.value > _MOST_ERRORS or (objective and objective.objective.metric == "error_rate"):
        kind = max(result.errors, key=lambda one: result.errors[one], default="")
        return "errors", f"{result.error_rate.value:.1%} of the requests failed, most of them as {kind}"
    is_short = _is_short(result, load)
    if (is_short or objective) and _own_fault(result, load):
        return "generator", "this machine could not send more"
    if objective and objective.figure:
        return "latency", f"{objective.objective.text} was not kept"
    if is_short:
        return "saturation", (
            f"{result.throughput.value:.4g} answers/s came back of {load.offered or 0:.4g} requests/s offered"
        )
    if not result.requests_completed:
        return "errors", "nothing was answered"
    return None, ""


def _is_short(result: LoadResult, load: Load) -> bool:
    """Whether fewer came back than were offered, beyond what chance explains."""
    if load.offered is None:
        return False
    high = result.throughput.high
    return _ended(result) < _BORNE * load.offered and (high is None or high < load.offered)


def _ended(result: LoadResult) -> float:
    """Per second, answered or failed."""
    return result.throughput.value / max(1e-9, 1 - result.error_rate.value)


def _own_fault(result: LoadResult, load: Load) -> bool:
    """Whether requests were not sent as they should have been; answers that were read late do not matter here."""
    was_late = load.offered is not None and result.achieved_rate < _BORNE * load.offered
    return result.cpu_share > _BUSY or was_late
