"""The scenario in which inputs grow.

It goes up by factors of ten until nothing is answered, then halves the gap between the largest size that was answered and the
smallest that was not. A size is *accepted* when nearly all of its requests are answered, and *held* when they also meet the
objectives that the user gave. It also fits how latency grows with size: an exponent above one means that a large input costs
more than its share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.builtin.scenarios.bisection import probe_between
from assay.model.load import Arrivals, Load, Objective
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import (
    Bench,
    HandledLoad,
    build_finding,
    build_load_point,
    build_step_bands,
    compute_scenario_time,
    find_calm_breach,
    find_frequent_error,
    find_late_breach,
    is_answered,
    make_text,
    watch_recovery,
)
from assay.stats.line import growth_exponent
from assay.units import percent, significant, size

_FASTER_THAN_INPUT = 1.1
"""The exponent from which latency clearly grows faster than the input: overhead and chance stay below it."""


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
        """Send inputs of growing size until nothing is answered, then search for the border.

        A limit on latency that was derived from small inputs does not apply here, since larger ones may
        take longer. Of a size that was sent twice only the first load counts in the totals.
        """
        # Larger inputs may take longer: a limit that was derived from small ones says nothing about them.
        objectives = () if bench.is_derived else bench.objectives
        tries: list[Try] = []
        for length in self.sizes:
            tries.append(self._try_size(bench, length, objectives))
            # Ten times as much will hardly fare better, and may take the agent down for good.
            if not tries[-1].first.completed:
                break
        # Of a size that was asked twice only the first load counts in the totals; the second is a probe.
        stretches = [attempt.first for attempt in tries]
        probes = self._bisect(bench, tries, objectives)
        # In the order of their sizes, whether they were steps or probes: so the first refused is the smallest.
        known = sorted((*tries, *probes), key=lambda attempt: attempt.size)
        held = [attempt.size for attempt in known if attempt.is_held(objectives)]
        accepted = [attempt.size for attempt in known if attempt.is_accepted]
        return build_finding(
            self,
            bench,
            stretches,
            HandledLoad(float(self.sizes[-1]), float(max(held, default=0)), "bytes"),
            first_refused(known, objectives, max(held, default=0)) or find_calm_breach(stretches),
            lasted=compute_scenario_time(stretches, self.recovery_seconds),
            shown=next((stretch for stretch in reversed(stretches) if stretch.completed), stretches[-1]),
            recovery=watch_recovery(bench, self.recovery_seconds),
            judgements=[*growth(known), largest(accepted, self.sizes), *refusal(known)],
            unasked=self.each * (len(self.sizes) - len(stretches)),
            probes=[
                stretch
                for attempt in (*tries, *probes)
                for stretch in attempt.stretches
                if stretch not in stretches
            ],
            points=[
                build_load_point(
                    attempt.size,
                    attempt.first,
                    is_broken=not attempt.is_held(objectives),
                    is_probe=attempt in probes,
                )
                for attempt in known
            ],
            bands=build_step_bands([size(attempt.size) for attempt in tries], stretches),
        )

    def _try_size(self, bench: Bench, length: int, objectives: Sequence[Objective]) -> Try:
        """Send requests of one size, and send them again if some fail and some do not.

        A few failures may be those that also happen at the base rate; the second try shows whether they
        come from the size.
        """
        # By number and not by time: a large input may take longer than any time that would do for a small one.
        load = Load(Arrivals.CLOSED, concurrency=1, seconds=3600.0, count=self.each)
        stretches = [bench.put(load, prompts=[make_text(length)], objectives=objectives)]
        if stretches[0].errors and stretches[0].completed:
            stretches.append(bench.put(load, prompts=[make_text(length)], objectives=objectives))
        return Try(length, tuple(stretches), is_answered(bench, stretches))

    def _bisect(self, bench: Bench, tries: Sequence[Try], objectives: Sequence[Objective]) -> list[Try]:
        """Bisect between the largest sustained size and the smallest one above it that was not sustained."""
        # The largest that held, also where a smaller one did not: that was a hiccup, or refused by its content.
        held = max((attempt.size for attempt in tries if attempt.is_held(objectives)), default=0)
        above = [attempt.size for attempt in tries if attempt.size > held]
        if not above:
            return []

        def try_size(length: float) -> Try:
            return self._try_size(bench, int(length), objectives)

        return probe_between(
            held, min(above), try_size, lambda probe: probe.is_held(objectives), self.halvings
        )[1]


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
        breach = find_late_breach(self.first, objectives)
        return self.is_accepted and (breach is None or breach.is_in_calm)


def first_refused(known: Sequence[Try], objectives: Sequence[Objective], held: int) -> Breach | None:
    """The smallest size above all that held."""
    refused = next((attempt for attempt in known if attempt.size > held), None)
    if refused is None:
        return None
    at = sum(attempt.first.result.duration for attempt in known if attempt.size < refused.size)
    # A size is refused by errors or by lateness; errors say more, so they go first.
    if not refused.is_accepted:
        share = percent(refused.first.error_rate)
        why = f"{share} of the requests failed as {find_frequent_error(refused.first)}"
        return Breach(at, float(refused.size), "bytes", "errors", why)
    breach = find_late_breach(refused.first, objectives)
    return None if breach is None else Breach(at, float(refused.size), "bytes", breach.cause, breach.why)


def growth(known: Sequence[Try]) -> list[ScenarioJudgement]:
    """The slope of log latency over log size; a fault only where even its lower bound is above `_FASTER_THAN_INPUT`."""
    # Of accepted sizes only: a refusal is quick, whatever the size.
    points = [
        (attempt.size, latency)
        for attempt in known
        if attempt.is_accepted
        for latency in attempt.first.latencies
    ]
    line = growth_exponent([length for length, _ in points], [latency for _, latency in points])
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
    """The largest size that was accepted, among those tried and those probed between them."""
    if not accepted:
        return ScenarioJudgement(
            "largest_accepted", f"Not even {size(sizes[0])} is accepted", 0.0, unit="bytes", is_fine=False
        )
    more = ", the largest size tried" if accepted[-1] == sizes[-1] else ""
    return ScenarioJudgement(
        "largest_accepted", f"Up to {size(accepted[-1])} is accepted{more}", float(accepted[-1]), unit="bytes"
    )


def refusal(known: Sequence[Try]) -> list[ScenarioJudgement]:
    """How the first size that is not accepted is refused: by a server with a 4xx, by other agents with an error of their own
    and not by ending the process."""
    refused = next((attempt for attempt in known if not attempt.is_accepted), None)
    if refused is None:
        return []
    kind, details = find_frequent_error(refused.first), refused.first.details
    # With an exit code the agent's process has ended, which is no way to refuse an input.
    is_proper = kind.startswith("http_4") or bool(
        details and all(detail.exit_code is None for detail in details)
    )
    reason = f"{kind}: {details[0].message.splitlines()[0]}" if details else kind
    how = "rejected" if is_proper else "dropped instead of rejected"
    return [
        ScenarioJudgement(
            "refusal",
            f"{size(refused.size)} is {how} ({reason})",
            float(refused.size),
            unit="bytes",
            is_fine=is_proper,
            is_criterion=True,
        )
    ]
