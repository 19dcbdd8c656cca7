"""In which order a stress test runs its scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.pipeline.stress import scenarios_named
from assay.plugin import register
from assay.testing.bench import SampleBench

BUILT_IN = [
    "high_load",
    "sustained_load",
    "spike_load",
    "memory_pressure",
    "concurrent_requests",
    "large_inputs",
    "rate_limiting",
    "failure_recovery",
]


@dataclass(frozen=True)
class Calm:
    name: ClassVar[str] = "calm"

    @classmethod
    def quick(cls) -> Calm:
        return cls()

    def not_for(self, bench: SampleBench) -> str:
        return "it is no pressure"


@dataclass(frozen=True)
class Before(Calm):
    name: ClassVar[str] = "before"
    order: ClassVar[float] = 0.5


def test_scenarios_run_by_their_order_and_those_without_one_last(own_names: None) -> None:
    register("scenarios", "calm", Calm)
    register("scenarios", "before", Before)

    assert [scenario.name for scenario in scenarios_named((), True)] == ["before", *BUILT_IN, "calm"]
    assert [s.name for s in scenarios_named(("calm", "high_load", "calm"), True)] == ["calm", "high_load"]
