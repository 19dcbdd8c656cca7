from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import ClassVar

from assay.builtin.scenarios.outcome import Borne, finding, recovery_after
from assay.execute.load.quality import case_means
from assay.model.load import Arrivals, Load
from assay.model.stress import Judgement, ScenarioFinding, Stretch
from assay.plugin.scenario import Bench
from assay.units import significant

_NEARLY_ALL = 0.9
_FAIR = 0.9
_HOPELESS = 2
"""Levels in a row that broke, after which no higher one is tried."""


@dataclass(frozen=True, slots=True)
class ConcurrentRequests:
    """Twice as many at a time again and again: what does working at once gain, and from where on nothing more?"""

    name: ClassVar[str] = "concurrent_requests"

    levels: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    seconds: float = 30.0
    recovery_seconds: float = 10.0

    @classmethod
    def quick(cls) -> ConcurrentRequests:
        return cls(levels=(1, 2, 4, 8, 16, 32, 64), seconds=1.0, recovery_seconds=1.0)

    def not_for(self, bench: Bench) -> str:
        return ""

    def run(self, bench: Bench) -> ScenarioFinding:
        done = self._climbed(bench)
        asked = self._levels(bench)
        levels = asked[: len(done)]
        broken = [place for place, one in enumerate(done) if one.breach is not None and one.breach.is_theirs]
        breach = done[broken[0]].breach if broken else next((one.breach for one in done if one.breach), None)
        borne = (levels[broken[0] - 1] if broken[0] else 0) if broken else levels[-1]
        calm = done[max(0, broken[0] - 1)] if broken else done[-1]
        return finding(
            self,
            bench,
            done,
            Borne(float(asked[-1]), float(borne), "at a time"),
            breach,
            lasted=self.seconds * len(done),
            shown=calm,
            recovery=recovery_after(bench, self.recovery_seconds),
            judgements=[
                speedup(levels, done),
                knee(levels, done),
                *fair(levels, done),
                *quality_by_level(levels, done),
            ],
            pressed=next((one.scored for one in reversed(done) if one.scored), None),
        )

    def _levels(self, bench: Bench) -> tuple[int, ...]:
        most = bench.subject.most_at_once
        return tuple(level for level in self.levels if most is None or level <= most)

    def _climbed(self, bench: Bench) -> list[Stretch]:
        done: list[Stretch] = []
        for level in self._levels(bench):
            done.append(bench.put(Load(Arrivals.CLOSED, concurrency=level, seconds=self.seconds)))
            last = done[-_HOPELESS:]
            if len(last) == _HOPELESS and all(one.breach and one.breach.is_theirs for one in last):
                break
        return done


def speedup(levels: Sequence[int], done: Sequence[Stretch]) -> Judgement:
    """Throughput at each level ÷ that of one at a time."""
    rates = [one.result.throughput.value for one in done]
    curve = ", ".join(
        f"{level} at a time {significant(rate / rates[0])} ×"
        for level, rate in zip(levels, rates, strict=True)
        if rates[0]
    )
    best = max(rates) / rates[0] if rates[0] else 0.0
    return Judgement(
        "speedup", f"Throughput against one at a time: {curve or 'nothing was answered'}", best, unit="×"
    )


def knee(levels: Sequence[int], done: Sequence[Stretch]) -> Judgement:
    """The first level with nine tenths of the most answers that any brought: beyond it hardly anything is gained."""
    rates = [one.result.throughput.value for one in done]
    place = next(place for place, rate in enumerate(rates) if rate >= _NEARLY_ALL * max(rates))
    found, rate = levels[place], rates[place]
    told = f"Throughput grows up to {found} at a time ({significant(rate)} answers/s)"
    beyond = "" if found != levels[-1] else ", the most that was tried"
    return Judgement("knee", told + beyond, float(found), unit="at a time")


def quality_by_level(levels: Sequence[int], done: Sequence[Stretch]) -> list[Judgement]:
    """Mean score of the answers at each level that has any."""
    means = [
        (level, case_means((one.case, one.value) for one in stretch.scored))
        for level, stretch in zip(levels, done, strict=True)
    ]
    told = [(level, fmean(by_case.values())) for level, by_case in means if by_case]
    if len(told) < 2:
        return []
    curve = ", ".join(f"{level} at a time {significant(score)}" for level, score in told)
    return [Judgement("quality_by_level", f"Scores of the answers: {curve}", told[-1][1])]


def fair(levels: Sequence[int], done: Sequence[Stretch]) -> list[Judgement]:
    """At the highest level at which each had enough turns to tell."""
    told = [
        (level, one.fairness) for level, one in zip(levels, done, strict=True) if one.fairness is not None
    ]
    if not told:
        return []
    level, index = told[-1]
    assert index is not None
    text = (
        f"Jain's index of the answers that each of {level} callers got is {significant(index)} (1: all alike)"
    )
    return [Judgement("fairness", text, index, is_fine=index >= _FAIR)]
