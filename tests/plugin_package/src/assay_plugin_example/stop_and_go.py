"""A scenario: the rate that an agent bears comfortably, in bursts with silence between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.builtin.scenarios.outcome import Borne, finding
from assay.model.load import Arrivals, Load
from assay.model.stress import ScenarioFinding, ScenarioJudgement
from assay.plugin.scenario import Bench
from assay.units import seconds


@dataclass(frozen=True, slots=True)
class StopAndGo:
    """Does it have to wake up after each silence?"""

    name: ClassVar[str] = "stop_and_go"

    bursts: int = 6
    seconds: float = 10.0
    """Of each burst, and of the silence after it."""

    @classmethod
    def quick(cls) -> StopAndGo:
        return cls(bursts=2, seconds=1.0)

    def not_for(self, bench: Bench) -> str:
        return "" if bench.base > 0 else "there is no rate that it bears"

    def run(self, bench: Bench) -> ScenarioFinding:
        burst, silence = (self.seconds, bench.base, bench.base), (self.seconds, 0.0, 0.0)
        lasted = 2 * self.seconds * self.bursts
        stretch = bench.put(Load(Arrivals.CONSTANT, stages=(burst, silence) * self.bursts, seconds=lasted))
        first = [
            moment.latency_p99
            for moment in stretch.result.moments
            if moment.begin % (2 * self.seconds) < moment.seconds and moment.latency_p99 is not None
        ]
        slowest = max(first, default=0.0)
        told = f"The first requests of a burst took {seconds(slowest)} at the most"
        return finding(
            self,
            bench,
            [stretch],
            Borne(bench.base, stretch.completed / (self.seconds * self.bursts), "requests/s"),
            stretch.breach,
            lasted=lasted,
            judgements=[
                ScenarioJudgement("wakes_in", told, slowest, unit="s", is_fine=slowest < 10 * bench.calm.p95)
            ],
        )
