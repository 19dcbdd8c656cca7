from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.builtin.scenarios.outcome import Borne, finding, recovery_after
from assay.model.load import Arrivals, Load
from assay.model.stress import Judgement, ScenarioFinding
from assay.plugin.scenario import Bench
from assay.units import percent


@dataclass(frozen=True, slots=True)
class HighLoad:
    """Ten times what it bears comfortably, by the clock, with at most a hundred under way."""

    name: ClassVar[str] = "high_load"

    concurrency: int = 100
    times: float = 10.0
    rate: float = 1000.0
    """Where no comfortable rate is known."""
    seconds: float = 300.0
    recovery_seconds: float = 30.0

    @classmethod
    def quick(cls) -> HighLoad:
        return cls(seconds=5.0, recovery_seconds=2.0)

    def not_for(self, bench: Bench) -> str:
        return ""

    def run(self, bench: Bench) -> ScenarioFinding:
        rate = bench.base * self.times if bench.base > 0 else self.rate
        load = Load(
            Arrivals.CONSTANT,
            concurrency=self.concurrency,
            stages=((self.seconds, rate, rate),),
            seconds=self.seconds,
        )
        stretch = bench.put(load)
        borne = min(rate, stretch.completed / max(self.seconds, stretch.result.duration))
        told = Judgement(
            "load_borne",
            f"{percent(borne / rate)} of the load that was asked came back as answers",
            borne / rate,
        )
        return finding(
            self,
            bench,
            [stretch],
            Borne(rate, borne, "requests/s"),
            stretch.breach,
            lasted=self.seconds,
            recovery=recovery_after(bench, self.recovery_seconds),
            judgements=[told],
        )
