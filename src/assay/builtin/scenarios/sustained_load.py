from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar

from assay.analysis.stress import NOISE
from assay.builtin.scenarios.outcome import Borne, delivered_rate, finding
from assay.model.load import Arrivals, Distribution, Load
from assay.model.stress import Sample, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin.scenario import Bench
from assay.stats.line import FittedLine, fitted
from assay.stats.verdicts import wilson
from assay.units import percent, seconds, size

_NOTABLE = 0.1
"""Of the level, over the whole scenario: less drift changes nobody's mind, however certain it is."""
_LEAST_BYTES = 8 * 2**20
"""Less than that over the whole scenario is what any program's memory does."""
_WARM_UP = 0.2
"""Of the scenario's time."""
_LAST = 2 / 3
_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class SustainedLoad:
    """The comfortable rate for long: does anything creep?"""

    name: ClassVar[str] = "sustained_load"

    seconds: float = 1800.0

    @classmethod
    def quick(cls) -> SustainedLoad:
        return cls(seconds=10.0)

    def not_for(self, bench: Bench) -> str:
        return ""

    def run(self, bench: Bench) -> ScenarioFinding:
        rate = bench.base
        stages = ((self.seconds, rate, rate),)
        stretch = bench.put(Load(Arrivals.CONSTANT, stages=stages, seconds=self.seconds))
        borne = delivered_rate(stretch, rate, self.seconds)
        judgements = [
            latency_drift(stretch, self.seconds, bench.calm),
            memory_drift(stretch.samples or bench.samples(), self.seconds),
            late_errors(stretch, self.seconds),
        ]
        return finding(
            self,
            bench,
            [stretch],
            Borne(rate, borne, "requests/s"),
            stretch.breach,
            lasted=self.seconds,
            judgements=[one for one in judgements if one is not None],
        )


def latency_drift(stretch: Stretch, length: float, calm: Distribution) -> ScenarioJudgement | None:
    """Of the medians of short stretches. A fault where it certainly grows by more than a tenth, and ends above what is usual at the base rate."""
    told = [(one.begin, one.latency_p50) for one in stretch.result.moments if one.latency_p50 is not None]
    line = fitted([at for at, _ in told], [latency for _, latency in told]) if told else None
    if line is None:
        return None
    last = [latency for at, latency in told if at >= _LAST * length]
    is_felt = bool(last) and median(last) > max(calm.p95, calm.p50 + NOISE)
    return _drift("latency_drift", "Latency", line, length, "s", seconds, is_felt)


def memory_drift(samples: Sequence[Sample], length: float) -> ScenarioJudgement | None:
    """Once it has warmed up, which takes memory and is no leak."""
    warm = [one for one in samples if one.at >= _WARM_UP * length]
    line = fitted([one.at for one in warm], [one.memory_bytes for one in warm]) if warm else None
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
    shown: Callable[[float], str],
    is_felt: bool,
) -> ScenarioJudgement:
    value, low, high = (_MINUTE * end for end in (line.slope, line.low, line.high))
    is_certain = is_felt and line.level > 0 and line.low * length / line.level > _NOTABLE
    is_drift = line.low > 0 or line.high < 0
    told = f"{what} {'changed' if is_drift else 'does not drift: it changed'} by {shown(value)} a minute"
    return ScenarioJudgement(name, told, value, low, high, unit, not is_certain, is_criterion=True)


def late_errors(stretch: Stretch, length: float) -> ScenarioJudgement:
    """Errors of the last third beside those of the first."""
    thirds = [
        [one for one in stretch.result.moments if begin <= one.begin / length < begin + 1 / 3]
        for begin in (0.0, 2 / 3)
    ]
    (early, early_n), (late, late_n) = (
        (sum(one.failed for one in part), sum(one.failed + one.completed for one in part)) for part in thirds
    )
    first, last = early / early_n if early_n else 0.0, late / late_n if late_n else 0.0
    low, high = wilson(last, late_n)
    is_worse = low > (wilson(first, early_n)[1] if early_n else 0.0)
    text = f"{percent(last)} failed in the last third, {percent(first)} in the first"
    return ScenarioJudgement("late_errors", text, last, low, high, "share", not is_worse, is_criterion=True)
