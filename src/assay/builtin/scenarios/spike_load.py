"""The scenario of a sudden spike, all in one load: base rate, many times that, base rate again.

What counts is how many requests failed during the spike, beyond those that fail at the base rate, and how long it took
after its end until latency was back within a tenth of what it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.model.load import Arrivals, Load, Moment
from assay.model.stress import Band, ScenarioFinding, ScenarioJudgement
from assay.plugin import (
    Bench,
    HandledLoad,
    Recovery,
    Scenario,
    build_finding,
    compute_completion_rate,
    fails_as_in_calm,
    find_recovery_time,
    plan_pressure,
)
from assay.stats.verdicts import wilson
from assay.units import percent, seconds


@dataclass(frozen=True, slots=True)
class SpikeLoad(Scenario):
    """Sends the base rate, then suddenly ten times as much, then the base rate again.

    What counts is how many requests of the spike are answered in time, and how soon latency is as before
    once it has passed.
    """

    name: ClassVar[str] = "spike_load"
    order: ClassVar[int] = 3

    before: float = 60.0
    spike: float = 30.0
    after: float = 60.0
    times: float = 10.0
    most_at_once: int = 1000

    @classmethod
    def quick(cls) -> SpikeLoad:
        return cls(before=3.0, spike=2.0, after=3.0)

    def run(self, bench: Bench) -> ScenarioFinding:
        pressed = plan_pressure(bench, bench.base * self.times, self.most_at_once)
        # One load of three stages and not three loads: what the spike leaves in queues meets the requests after it.
        base, high = min(bench.base, pressed.rate), pressed.rate
        stages = ((self.before, base, base), (self.spike, high, high), (self.after, base, base))
        lasted = self.before + self.spike + self.after
        load = Load(Arrivals.CONSTANT, concurrency=pressed.in_flight, stages=stages, seconds=lasted)
        stretch = bench.put(load)
        ends = self.before + self.spike
        recovery_seconds, is_seen = find_recovery_time(
            stretch.result.moments, ends, bench.calm, bench.calm_errors
        )
        # An agent that answers nothing more after the spike has not recovered slowly: it is dead.
        later = [moment for moment in stretch.result.moments if moment.begin >= ends]
        recovery = Recovery(
            recovery_seconds, is_seen, is_dead=bool(later) and not any(moment.completed for moment in later)
        )
        return build_finding(
            self,
            bench,
            [stretch],
            HandledLoad(high, min(high, compute_completion_rate(stretch, self.before, ends)), "requests/s"),
            stretch.breach,
            lasted=lasted,
            recovery=recovery,
            judgements=[self._errors(bench, stretch.result.moments), _back(recovery_seconds, is_seen)],
            warnings=pressed.warnings,
            bands=[Band(self.before, ends, "spike")],
            # Scores under pressure are those of requests that were due in the spike, whenever they were answered.
            pressed=[answer for answer in stretch.scored if self.before <= answer.due < ends],
        )

    def _errors(self, bench: Bench, moments: Sequence[Moment]) -> ScenarioJudgement:
        """The share that failed during the spike, with Wilson's interval; fine up to a twentieth, or as in calm."""
        # Moments are as long as slices of the tally, so the edges of the spike are known only to the width of one.
        inside = [moment for moment in moments if self.before <= moment.begin < self.before + self.spike]
        failed = sum(moment.failed for moment in inside)
        ended = failed + sum(moment.completed for moment in inside)
        share = failed / ended if ended else 0.0
        low, high = wilson(share, ended)
        is_fine = share <= 0.05 or fails_as_in_calm(bench, failed, ended)
        text = f"{percent(share)} failed in the spike, {percent(bench.calm_errors.rate)} at the base rate"
        return ScenarioJudgement("spike_errors", text, share, low, high, "share", is_fine)


def _back(recovery_seconds: float, is_seen: bool) -> ScenarioJudgement:
    """When latency was within a tenth of what it was before the spike; `took` is the time watched where that was not seen."""
    if not is_seen:
        text = f"Latency did not return to within 10 % of its earlier level in the {seconds(recovery_seconds)} after the spike"
    elif recovery_seconds:
        text = f"Latency returned to within 10 % of its earlier level {seconds(recovery_seconds)} after the spike"
    else:
        text = "Latency returned to its earlier level at once"
    return ScenarioJudgement("back_after", text, recovery_seconds, unit="s", is_fine=is_seen)
