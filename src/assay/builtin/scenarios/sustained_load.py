"""The scenario of a long load at the comfortable rate, which shows leaks and slow decay.

A straight line is fitted to latency and to memory over time. Drift is a fault only where the whole confidence interval of
the slope lies above a notable change over the scenario; errors of the last third are compared with those of the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from assay.model.load import Arrivals, Distribution, Load
from assay.model.stress import Sample, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import NOISE_SECONDS, Bench, HandledLoad, Scenario, build_finding, compute_delivered_rate
from assay.stats.line import FittedLine, fit_line
from assay.stats.verdicts import wilson
from assay.units import percent, seconds, size

_NOTABLE = 0.1
"""Minimum drift that matters, as a share of the level over the whole scenario, however certain a smaller one is."""
_LEAST_BYTES = 8 * 2**20
"""Less than that over the whole scenario is what any program's memory does."""
_WARM_UP = 0.2
"""Warm-up as a share of the scenario's time."""
_LAST = 2 / 3
_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class SustainedLoad(Scenario):
    """The comfortable rate for long: does anything creep?"""

    name: ClassVar[str] = "sustained_load"
    order: ClassVar[int] = 2

    seconds: float = 1800.0

    @classmethod
    def quick(cls) -> SustainedLoad:
        return cls(seconds=10.0)

    def run(self, bench: Bench) -> ScenarioFinding:
        # No recovery is watched: nothing was pressed. What counts is whether the end is like the beginning.
        rate = bench.base
        stages = ((self.seconds, rate, rate),)
        stretch = bench.put(Load(Arrivals.CONSTANT, stages=stages, seconds=self.seconds))
        sustained = compute_delivered_rate(stretch, rate, self.seconds)
        judgements = [
            latency_drift(stretch, self.seconds, bench.calm),
            memory_drift(stretch.samples or bench.samples(), self.seconds),
            late_errors(stretch, self.seconds),
        ]
        return build_finding(
            self,
            bench,
            [stretch],
            HandledLoad(rate, sustained, "requests/s"),
            stretch.breach,
            lasted=self.seconds,
            judgements=[judgement for judgement in judgements if judgement is not None],
        )


def latency_drift(stretch: Stretch, length: float, calm: Distribution) -> ScenarioJudgement | None:
    """Judge whether latency grows while the load lasts, by the medians of short stretches.

    It is a fault if latency grows significantly by more than a tenth and ends above what is usual at the base
    rate.
    """
    medians = [
        (moment.begin, moment.latency_p50)
        for moment in stretch.result.moments
        if moment.latency_p50 is not None
    ]
    line = fit_line([at for at, _ in medians], [latency for _, latency in medians]) if medians else None
    if line is None:
        return None
    # A slope may be significant and still not matter: latency has to end above what it is at the base rate now and then.
    last = [latency for at, latency in medians if at >= _LAST * length]
    is_felt = bool(last) and median(last) > max(calm.p95, calm.p50 + NOISE_SECONDS)
    return _drift("latency_drift", "Latency", line, length, "s", seconds, is_felt)


def memory_drift(samples: Sequence[Sample], length: float) -> ScenarioJudgement | None:
    """Judge whether memory grows after the warm-up, which takes memory without being a leak."""
    warm = [sample for sample in samples if sample.at >= _WARM_UP * length]
    line = (
        fit_line([sample.at for sample in warm], [sample.memory_bytes for sample in warm]) if warm else None
    )
    if line is None:
        return None
    is_felt = line.low * length > _LEAST_BYTES
    return _drift("memory_drift", "Memory", line, length, "bytes", size, is_felt)


def _drift(
    name: str,
    what: str,
    line: FittedLine,
    length: float,
    unit: str,
    format_value: Callable[[float], str],
    is_felt: bool,
) -> ScenarioJudgement:
    """A slope as a change a minute; a fault where it is felt and, by its lower bound, more than `_NOTABLE` of the level.

    `is_felt` says whether the change matters to anybody, whatever its certainty.
    """
    # By the minute, as slopes by the second are too small to read; certainty is judged over the whole scenario.
    value, low, high = (_MINUTE * end for end in (line.slope, line.low, line.high))
    is_certain = is_felt and line.level > 0 and line.low * length / line.level > _NOTABLE
    is_drift = line.low > 0 or line.high < 0
    text = f"{what} {'changed' if is_drift else 'shows no significant drift: it changed'} by {format_value(value)} a minute"
    return ScenarioJudgement(name, text, value, low, high, unit, not is_certain, is_criterion=True)


def late_errors(stretch: Stretch, length: float) -> ScenarioJudgement:
    """Errors of the last third beside those of the first."""
    thirds = [
        [moment for moment in stretch.result.moments if begin <= moment.begin / length < begin + 1 / 3]
        for begin in (0.0, 2 / 3)
    ]
    (early, early_n), (late, late_n) = (
        (sum(moment.failed for moment in part), sum(moment.failed + moment.completed for moment in part))
        for part in thirds
    )
    first, last = early / early_n if early_n else 0.0, late / late_n if late_n else 0.0
    # Worse only where the two intervals do not overlap, which is stricter than a test of the difference.
    low, high = wilson(last, late_n)
    is_worse = low > (wilson(first, early_n)[1] if early_n else 0.0)
    text = f"{percent(last)} failed in the last third, {percent(first)} in the first"
    return ScenarioJudgement("late_errors", text, last, low, high, "share", not is_worse, is_criterion=True)
