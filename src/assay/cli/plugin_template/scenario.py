"""A scenario of `assay stress`: a kind of pressure that an agent is put under."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.model.load import Arrivals, Load
from assay.model.stress import ScenarioFinding, ScenarioJudgement
from assay.plugin import Bench, HandledLoad, build_finding


@dataclass(frozen=True, slots=True)
class TemplateNameScenario:
    """The base rate in bursts, with silence between them. Does the agent have to wake up after each silence?"""

    name: ClassVar[str] = "template_name"

    bursts: int = 6
    seconds: float = 10.0
    """Seconds of each burst, and of the silence after it."""

    @classmethod
    def quick(cls) -> TemplateNameScenario:
        return cls(bursts=2, seconds=1.0)

    def not_for(self, bench: Bench) -> str:
        return ""  # or why it does not apply to this agent

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
        return build_finding(
            self,
            bench,
            [stretch],
            HandledLoad(bench.base, stretch.completed / (self.seconds * self.bursts), "requests/s"),
            stretch.breach,
            lasted=lasted,
            judgements=[
                ScenarioJudgement(
                    "wakes_in",
                    f"The first requests of a burst took up to {slowest:.3g} s",
                    slowest,
                    unit="s",
                    is_fine=slowest < 10 * bench.calm.p95,
                )
            ],
        )
