from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.analysis.stress import recovered_after
from assay.builtin.scenarios.outcome import (
    Borne,
    Recovery,
    completed_between,
    fails_as_in_calm,
    finding,
    pressure,
)
from assay.model.load import Arrivals, Load, Moment
from assay.model.stress import Band, ScenarioFinding, ScenarioJudgement
from assay.plugin.scenario import Bench
from assay.stats.verdicts import wilson
from assay.units import percent, seconds


@dataclass(frozen=True, slots=True)
class SpikeLoad:
    """The comfortable rate, then suddenly ten times as much, then the comfortable rate again."""

    name: ClassVar[str] = "spike_load"

    before: float = 60.0
    spike: float = 30.0
    after: float = 60.0
    times: float = 10.0
    most_at_once: int = 1000

    @classmethod
    def quick(cls) -> SpikeLoad:
        return cls(before=3.0, spike=2.0, after=3.0)

    def not_for(self, bench: Bench) -> str:
        return ""

    def run(self, bench: Bench) -> ScenarioFinding:
        pressed = pressure(bench, bench.base * self.times, self.most_at_once)
        base, high = min(bench.base, pressed.rate), pressed.rate
        stages = ((self.before, base, base), (self.spike, high, high), (self.after, base, base))
        lasted = self.before + self.spike + self.after
        load = Load(Arrivals.CONSTANT, concurrency=pressed.in_flight, stages=stages, seconds=lasted)
        stretch = bench.put(load)
        ends = self.before + self.spike
        took, is_seen = recovered_after(stretch.result.moments, ends, bench.calm, bench.calm_errors)
        later = [one for one in stretch.result.moments if one.begin >= ends]
        recovery = Recovery(took, is_seen, is_dead=bool(later) and not any(one.completed for one in later))
        return finding(
            self,
            bench,
            [stretch],
            Borne(high, min(high, completed_between(stretch, self.before, ends)), "requests/s"),
            stretch.breach,
            lasted=lasted,
            recovery=recovery,
            judgements=[self._errors(bench, stretch.result.moments), _back(took, is_seen)],
            warnings=pressed.warnings,
            bands=[Band(self.before, ends, "spike")],
            pressed=[one for one in stretch.scored if self.before <= one.due < ends],
        )

    def _errors(self, bench: Bench, moments: Sequence[Moment]) -> ScenarioJudgement:
        inside = [one for one in moments if self.before <= one.begin < self.before + self.spike]
        failed = sum(one.failed for one in inside)
        ended = failed + sum(one.completed for one in inside)
        share = failed / ended if ended else 0.0
        low, high = wilson(share, ended)
        is_fine = share <= 0.05 or fails_as_in_calm(bench, failed, ended)
        text = f"{percent(share)} failed in the spike, {percent(bench.calm_errors.rate)} at the base rate"
        return ScenarioJudgement("spike_errors", text, share, low, high, "share", is_fine)


def _back(took: float, is_seen: bool) -> ScenarioJudgement:
    told = (
        f"Latency was back within a tenth {seconds(took)} after the spike"
        if took
        else "Latency was back at once"
    )
    if not is_seen:
        told = f"Latency was not back within a tenth in the {seconds(took)} that were watched"
    return ScenarioJudgement("back_after", told, took, unit="s", is_fine=is_seen)
