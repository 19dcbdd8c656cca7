"""The scenario in which more and more callers work at the same time.

Each level is a closed loop: so many callers, each of whom waits for its answer before it asks again. Levels double until two
in a row break their objective. From the levels follow the speedup over one caller, the knee beyond which more callers gain
nothing, whether callers are served alike, and whether answers get worse; the breaking point is then found by halving the
gap between the highest level that held and the lowest above it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import ClassVar

from assay.builtin.scenarios.steps import bisect_load
from assay.model.load import Arrivals, Load
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import (
    Bench,
    HandledLoad,
    Scenario,
    build_finding,
    build_load_point,
    build_step_bands,
    compute_begins,
    watch_recovery,
)
from assay.stats.means import average_by_case
from assay.units import significant

_NEARLY_ALL = 0.9
_FAIR = 0.9
_FEW_ERRORS = 0.01
_HOPELESS = 2
"""Levels in a row that broke, after which no higher one is tried."""


@dataclass(frozen=True, slots=True)
class ConcurrentRequests(Scenario):
    """Twice as many at a time again and again: what does working at once gain, from where on nothing more, and where does it
    break? Between the last level that held and the first that broke, the gap is halved."""

    name: ClassVar[str] = "concurrent_requests"
    order: ClassVar[int] = 5

    levels: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
    seconds: float = 30.0
    recovery_seconds: float = 10.0
    halvings: int = 5

    @classmethod
    def quick(cls) -> ConcurrentRequests:
        return cls(levels=(1, 2, 4, 8, 16, 32, 64), seconds=1.0, recovery_seconds=1.0, halvings=4)

    def run(self, bench: Bench) -> ScenarioFinding:
        """Climb the levels of concurrency, then search for the border between the last that held and the
        first that broke.

        Only the levels that were climbed count in totals and on the time axis; the steps of the search
        are probes.
        """
        # Levels that are climbed are the scenario itself; those of the search are probes, which count in no total.
        stretches = self._climb_levels(bench)
        requested = self._levels(bench)
        levels = requested[: len(stretches)]
        search = _LevelSearch(self, bench, dict(zip(levels, stretches, strict=True)))
        sustained, breach = search.run()
        # A probe breaks at a moment of its own; on the time axis of the scenario it stands where the levels above it began.
        if breach is not None:
            above = [
                at
                for level, at in zip(levels, compute_begins(stretches), strict=True)
                if level >= breach.load
            ]
            breach = replace(breach, at=min(above, default=breach.at))
        sustained_stretch = search.tried.get(sustained, stretches[0])
        return build_finding(
            self,
            bench,
            stretches,
            HandledLoad(float(requested[-1]), float(sustained), "at a time"),
            breach,
            lasted=self.seconds * len(stretches),
            shown=sustained_stretch,
            recovery=watch_recovery(bench, self.recovery_seconds),
            probes=search.probes,
            points=[
                build_load_point(level, stretch, is_broken=is_broken(stretch), is_probe=level not in levels)
                for level, stretch in search.tried.items()
            ],
            bands=build_step_bands([f"{level} at a time" for level in levels], stretches),
            judgements=[
                speedup(levels, stretches),
                knee(levels, stretches),
                *fair(levels, stretches),
                *quality_by_level(levels, stretches),
            ],
            pressed=next((stretch.scored for stretch in reversed(stretches) if stretch.scored), None),
        )

    def _levels(self, bench: Bench) -> tuple[int, ...]:
        """The levels that the agent allows: its `concurrency` may be lower than ours."""
        most = bench.subject.most_at_once
        return tuple(level for level in self.levels if most is None or level <= most)

    def _climb_levels(self, bench: Bench) -> list[Stretch]:
        """One load for each level, until `_HOPELESS` in a row broke."""
        stretches: list[Stretch] = []
        # One that breaks may be followed by one that holds, so two in a row are needed to end the climb.
        for level in self._levels(bench):
            stretches.append(self.put(bench, level))
            last = stretches[-_HOPELESS:]
            if len(last) == _HOPELESS and all(is_broken(stretch) for stretch in last):
                break
        return stretches

    def put(self, bench: Bench, level: int) -> Stretch:
        """One closed loop at this level, for the usual time."""
        return bench.put(Load(Arrivals.CLOSED, concurrency=level, seconds=self.seconds))


def is_broken(stretch: Stretch) -> bool:
    """A breach that the load caused; what is as bad at the base rate, or our own doing, breaks no level."""
    return stretch.breach is not None and stretch.breach.is_by_pressure


class _LevelSearch:
    """For the breaking point. A level that broke while a higher one held was a hiccup.

    `tried` has the last load at each level, whether it was climbed or probed, and `probes` those that were added here.
    """

    def __init__(self, scenario: ConcurrentRequests, bench: Bench, tried: dict[int, Stretch]) -> None:
        self._scenario, self._bench = scenario, bench
        self.tried = tried
        self.probes: list[Stretch] = []

    def run(self) -> tuple[int, Breach | None]:
        """The highest level that held, and how the lowest above it broke."""
        held = max((level for level, stretch in self.tried.items() if not is_broken(stretch)), default=0)
        above = [level for level in self.tried if level > held]
        # One level alone above all that held may have been bad luck, so it gets a second try before the gap is searched.
        if len(above) == 1 and held and self._holds(above[0]):
            # Only the last broke, and tried again it held.
            held, above = above[0], []
        # Nothing broke under pressure; where an objective is not met even in calm, that is told instead.
        if not above:
            return held, next(
                (
                    stretch.breach
                    for stretch in self.tried.values()
                    if stretch.breach and not is_broken(stretch)
                ),
                None,
            )
        found = bisect_load(held, min(above), lambda level: self._holds(int(level)), self._scenario.halvings)
        return int(found.held), self.tried[int(found.broke)].breach

    def _holds(self, level: int) -> bool:
        self.tried[level] = self._scenario.put(self._bench, level)
        self.probes.append(self.tried[level])
        return not is_broken(self.tried[level])


def speedup(levels: Sequence[int], stretches: Sequence[Stretch]) -> ScenarioJudgement:
    """Throughput at each level ÷ that of one at a time."""
    # Against what was measured at one at a time, even where that broke: it is the only fixed point that every agent has.
    rates = [stretch.result.throughput.value for stretch in stretches]
    curve = ", ".join(
        f"{level} at a time {significant(rate / rates[0])} ×"
        for level, rate in zip(levels, rates, strict=True)
        if rates[0]
    )
    best = max(rates) / rates[0] if rates[0] else 0.0
    return ScenarioJudgement(
        "speedup", f"Throughput against one at a time: {curve or 'nothing was answered'}", best, unit="×"
    )


def knee(levels: Sequence[int], stretches: Sequence[Stretch]) -> ScenarioJudgement:
    """The first level with nine tenths of the most answers that any brought that held: beyond it hardly anything is gained."""
    held = [place for place, stretch in enumerate(stretches) if not is_broken(stretch)] or range(
        len(stretches)
    )
    levels, stretches = [levels[place] for place in held], [stretches[place] for place in held]
    rates = [stretch.result.throughput.value for stretch in stretches]
    place = next(place for place, rate in enumerate(rates) if rate >= _NEARLY_ALL * max(rates))
    # The highest level tried may not be the knee: with more, throughput might have gone on growing.
    found, rate = levels[place], rates[place]
    text = f"Throughput grows up to {found} at a time ({significant(rate)} answers/s)"
    beyond = "" if found != levels[-1] else ", the highest level tried"
    return ScenarioJudgement("knee", text + beyond, float(found), unit="at a time")


def quality_by_level(levels: Sequence[int], stretches: Sequence[Stretch]) -> list[ScenarioJudgement]:
    """Mean score of the answers at each level that has any."""
    # By case first: a level with more answers to easy cases would look better than it is.
    means = [
        (level, average_by_case((answer.case, answer.value) for answer in stretch.scored))
        for level, stretch in zip(levels, stretches, strict=True)
    ]
    scores = [(level, fmean(by_case.values())) for level, by_case in means if by_case]
    if len(scores) < 2:
        return []
    curve = ", ".join(f"{level} at a time {significant(score)}" for level, score in scores)
    return [ScenarioJudgement("quality_by_level", f"Scores of the answers: {curve}", scores[-1][1])]


def fair(levels: Sequence[int], stretches: Sequence[Stretch]) -> list[ScenarioJudgement]:
    """At the highest level at which each had enough turns to tell, and hardly any failed: who fails gets fewer answers, and that is
    another fault."""
    indices = [
        (level, stretch.fairness)
        for level, stretch in zip(levels, stretches, strict=True)
        if stretch.fairness is not None and stretch.error_rate <= _FEW_ERRORS
    ]
    if not indices:
        return []
    level, index = indices[-1]
    assert index is not None
    text = f"Jain's fairness index over {level} callers is {significant(index)} (1: all got equally many answers)"
    return [ScenarioJudgement("fairness", text, index, is_fine=index >= _FAIR, is_criterion=True)]
