"""The scenario of a steady overload: a constant rate far above the comfortable one.

It is an open loop: requests are sent by the clock, whether or not earlier ones were answered. The load sustained is the rate of
answers that came back, and after the overload the base rate is watched until latency is back to what it was.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from assay.model.load import Arrivals, Load
from assay.model.stress import ScenarioFinding, ScenarioJudgement
from assay.plugin import (
    Bench,
    HandledLoad,
    Scenario,
    build_finding,
    compute_delivered_rate,
    plan_pressure,
    watch_recovery,
)
from assay.units import percent


@dataclass(frozen=True, slots=True)
class HighLoad(Scenario):
    """Sends ten times the base rate, by the clock.

    At least a hundred requests may be in flight, and more where answers are slow: the limit must not
    protect the agent from the load.
    """

    name: ClassVar[str] = "high_load"
    order: ClassVar[int] = 1

    concurrency: int = 100
    """In flight at least; as many more as answers that are just in time need at that rate."""
    times: float = 10.0
    rate: float = 1000.0
    """Where no comfortable rate is known."""
    seconds: float = 300.0
    recovery_seconds: float = 30.0

    @classmethod
    def quick(cls) -> HighLoad:
        return cls(seconds=5.0, recovery_seconds=2.0)

    def run(self, bench: Bench) -> ScenarioFinding:
        # What this machine can put on may be less; `plan_pressure` says so in a warning, and the finding is about that rate.
        target_rate = bench.base * self.times if bench.base > 0 else self.rate
        pressed = plan_pressure(bench, target_rate, self.concurrency)
        rate = pressed.rate
        # Evenly spaced: by chance a random schedule would be harder at some moments than ten times the base.
        load = Load(
            Arrivals.CONSTANT,
            concurrency=pressed.in_flight,
            stages=((self.seconds, rate, rate),),
            seconds=self.seconds,
        )
        stretch = bench.put(load)
        sustained = compute_delivered_rate(stretch, rate, self.seconds)
        judgement = ScenarioJudgement(
            "load_borne", f"{percent(sustained / rate)} of the offered load was answered", sustained / rate
        )
        found = build_finding(
            self,
            bench,
            [stretch],
            HandledLoad(rate, sustained, "requests/s"),
            stretch.breach,
            lasted=self.seconds,
            recovery=watch_recovery(bench, self.recovery_seconds),
            judgements=[judgement],
            warnings=pressed.warnings,
        )
        # The limit was derived from latency and rate, so it is shown with the parameters that the user could have set.
        return replace(found, parameters={**found.parameters, "in_flight": pressed.in_flight})
