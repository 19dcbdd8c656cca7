from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.builtin.scenarios.bisection import bisect_load
from assay.builtin.scenarios.outcome import (
    Borne,
    also_in_calm,
    finding,
    frequent_error,
    is_answered,
    late,
    point,
    recovery_after,
    step_bands,
    text_of,
    time_of,
)
from assay.model.load import Arrivals, Load, Objective
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin.scenario import Bench
from assay.stats.line import growth_exponent
from assay.units import percent, significant, size

_FASTER_THAN_INPUT = 1.1


@dataclass(frozen=True, slots=True)
class LargeInputs:
    """Inputs from 1 kB on, each ten times as large as the one before, one at a time; the largest that is accepted is found by
    halving the gap."""

    name: ClassVar[str] = "large_inputs"

    sizes: tuple[int, ...] = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
    each: int = 20
    recovery_seconds: float = 10.0
    halvings: int = 6

    @classmethod
    def quick(cls) -> LargeInputs:
        return cls(sizes=(1_000, 10_000, 100_000, 1_000_000), each=3, recovery_seconds=1.0, halvings=5)

    def not_for(self, bench: Bench) -> str:
        return (
            ""
            if bench.subject.takes_input
            else "the page is only fetched: there is no input to make larger (--prompt)"
        )

    def run(self, bench: Bench) -> ScenarioFinding:
        # Larger inputs may take longer: a limit that was derived from small ones says nothing about them.
        objectives = () if bench.is_derived else bench.objectives
        tries: list[Try] = []
        for length in self.sizes:
            tries.append(self._try_size(bench, length, objectives))
            if not tries[-1].first.completed:
                break
        done = [one.first for one in tries]
        probes = self._bisect(bench, tries, objectives)
        known = sorted((*tries, *probes), key=lambda one: one.size)
        held = [one.size for one in known if one.is_held(objectives)]
        accepted = [one.size for one in known if one.is_accepted]
        return finding(
            self,
            bench,
            done,
            Borne(float(self.sizes[-1]), float(max(held, default=0)), "bytes"),
            first_refused(known, objectives, max(held, default=0)) or also_in_calm(done),
            lasted=time_of(done, self.recovery_seconds),
            shown=next((one for one in reversed(done) if one.completed), done[-1]),
            recovery=recovery_after(bench, self.recovery_seconds),
            judgements=[*growth(known), largest(accepted, self.sizes), *refusal(known)],
            unasked=self.each * (len(self.sizes) - len(done)),
            probes=[stretch for one in (*tries, *probes) for stretch in one.stretches if stretch not in done],
            points=[
                point(one.size, one.first, is_broken=not one.is_held(objectives), is_probe=one in probes)
                for one in known
            ],
            bands=step_bands([size(one.size) for one in tries], done),
        )

    def _try_size(self, bench: Bench, length: int, objectives: Sequence[Objective]) -> Try:
        """Where some fail and some do not, once more: by chance it may be those that fail at the base rate."""
        load = Load(Arrivals.CLOSED, concurrency=1, seconds=3600.0, count=self.each)
        stretches = [bench.put(load, prompts=[text_of(length)], objectives=objectives)]
        if stretches[0].errors and stretches[0].completed:
            stretches.append(bench.put(load, prompts=[text_of(length)], objectives=objectives))
        return Try(length, tuple(stretches), is_answered(bench, stretches))

    def _bisect(self, bench: Bench, tries: Sequence[Try], objectives: Sequence[Objective]) -> list[Try]:
        """Between the largest that was borne and the smallest above it that was not."""
        held = max((one.size for one in tries if one.is_held(objectives)), default=0)
        above = [one.size for one in tries if one.size > held]
        probes: list[Try] = []

        def holds(length: float) -> bool:
            probes.append(self._try_size(bench, int(length), objectives))
            return probes[-1].is_held(objectives)

        if above:
            bisect_load(held, min(above), holds, self.halvings)
        return probes


@dataclass(frozen=True, slots=True)
class Try:
    """All that was asked with inputs of one size."""

    size: int
    stretches: tuple[Stretch, ...]
    is_accepted: bool

    @property
    def first(self) -> Stretch:
        return self.stretches[0]

    def is_held(self, objectives: Sequence[Objective]) -> bool:
        """Accepted, and in time where an objective was given."""
        breach = late(self.first, objectives)
        return self.is_accepted and (breach is None or breach.is_in_calm)


def first_refused(known: Sequence[Try], objectives: Sequence[Objective], held: int) -> Breach | None:
    """The smallest size above all that held."""
    found = next((one for one in known if one.size > held), None)
    if found is None:
        return None
    at = sum(one.first.result.duration for one in known if one.size < found.size)
    if not found.is_accepted:
        why = f"{_failed(found.first)} failed as {frequent_error(found.first)}"
        return Breach(at, float(found.size), "bytes", "errors", why)
    breach = late(found.first, objectives)
    return None if breach is None else Breach(at, float(found.size), "bytes", breach.cause, breach.why)


def _failed(stretch: Stretch) -> str:
    return f"{percent(stretch.error_rate)} of the requests"


def growth(known: Sequence[Try]) -> list[ScenarioJudgement]:
    points = [(one.size, took) for one in known if one.is_accepted for took in one.first.latencies]
    line = growth_exponent([length for length, _ in points], [took for _, took in points])
    if line is None:
        return []
    text = f"Latency grows with the size to the power of {significant(line.slope)}"
    is_fine = line.low <= _FASTER_THAN_INPUT
    return [
        ScenarioJudgement(
            "growth_exponent", text, line.slope, line.low, line.high, "", is_fine, is_criterion=True
        )
    ]


def largest(accepted: Sequence[int], sizes: Sequence[int]) -> ScenarioJudgement:
    if not accepted:
        return ScenarioJudgement(
            "largest_accepted", f"Not even {size(sizes[0])} is accepted", 0.0, unit="bytes", is_fine=False
        )
    more = ", the most that was tried" if accepted[-1] == sizes[-1] else ""
    return ScenarioJudgement(
        "largest_accepted", f"Up to {size(accepted[-1])} is accepted{more}", float(accepted[-1]), unit="bytes"
    )


def refusal(known: Sequence[Try]) -> list[ScenarioJudgement]:
    """How the first size that is not accepted is refused: by a server with a 4xx, by other agents with an error of their own
    and not by ending the process."""
    refused = next((one for one in known if not one.is_accepted), None)
    if refused is None:
        return []
    kind, details = frequent_error(refused.first), refused.first.details
    is_proper = kind.startswith("http_4") or bool(details and all(one.exit_code is None for one in details))
    said = f"{kind}: {details[0].message.splitlines()[0]}" if details else kind
    how = "refused" if is_proper else "not refused but lost"
    return [
        ScenarioJudgement(
            "refusal",
            f"{size(refused.size)} is {how} ({said})",
            float(refused.size),
            unit="bytes",
            is_fine=is_proper,
            is_criterion=True,
        )
    ]
