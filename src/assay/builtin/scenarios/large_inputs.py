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

from assay.builtin.scenarios.steps import (
    ScenarioStep,
    Steps,
    build_steps_finding,
    climb,
    judge_step,
    probe_gap,
)
from assay.model.load import Arrivals, Load, Objective
from assay.model.stress import Breach, ScenarioFinding, ScenarioJudgement
from assay.plugin import (
    Bench,
    HandledLoad,
    find_calm_breach,
    find_frequent_error,
    find_late_breach,
    make_text,
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
    order: ClassVar[int] = 6

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
        take longer.
        """
        # Larger inputs may take longer: a limit that was derived from small ones says nothing about them.
        objectives = () if bench.is_derived else bench.objectives

        def try_size(length: float) -> ScenarioStep:
            return self._try_size(bench, int(length), objectives)

        steps = probe_gap(climb(self.sizes, try_size), try_size, self.halvings)
        accepted = [int(step.load) for step in steps.known if step.is_accepted]
        return build_steps_finding(
            self,
            bench,
            steps,
            HandledLoad(float(self.sizes[-1]), float(steps.held), "bytes"),
            first_refused(steps, objectives) or find_calm_breach(steps.stretches),
            label=size,
            recovery_seconds=self.recovery_seconds,
            judgements=[*growth(steps.known), largest(accepted, self.sizes), *refusal(steps.known)],
            unasked=self.each * (len(self.sizes) - len(steps.regular)),
        )

    def _try_size(self, bench: Bench, length: int, objectives: Sequence[Objective]) -> ScenarioStep:
        """Send requests of one size, and send them again if some fail and some do not.

        A few failures may be those that also happen at the base rate; the second try shows whether they
        come from the size.
        """
        # By number and not by time: a large input may take longer than any time that would do for a small one.
        load = Load(Arrivals.CLOSED, concurrency=1, seconds=3600.0, count=self.each)
        stretches = [bench.put(load, prompts=[make_text(length)], objectives=objectives)]
        if stretches[0].errors and stretches[0].completed:
            stretches.append(bench.put(load, prompts=[make_text(length)], objectives=objectives))
        return ScenarioStep(length, tuple(stretches), *judge_step(bench, stretches, objectives))


def first_refused(steps: Steps[ScenarioStep], objectives: Sequence[Objective]) -> Breach | None:
    """The smallest size above all that held."""
    refused = steps.broken
    if refused is None:
        return None
    at = sum(step.first.result.duration for step in steps.known if step.load < refused.load)
    # A size is refused by errors or by lateness; errors say more, so they go first.
    if not refused.is_accepted:
        share = percent(refused.first.error_rate)
        why = f"{share} of the requests failed as {find_frequent_error(refused.first)}"
        return Breach(at, float(refused.load), "bytes", "errors", why)
    breach = find_late_breach(refused.first, objectives)
    return None if breach is None else Breach(at, float(refused.load), "bytes", breach.cause, breach.why)


def growth(known: Sequence[ScenarioStep]) -> list[ScenarioJudgement]:
    """The slope of log latency over log size; a fault only where even its lower bound is above `_FASTER_THAN_INPUT`."""
    # Of accepted sizes only: a refusal is quick, whatever the size.
    points = [(step.load, latency) for step in known if step.is_accepted for latency in step.first.latencies]
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


def refusal(known: Sequence[ScenarioStep]) -> list[ScenarioJudgement]:
    """How the first size that is not accepted is refused: by a server with a 4xx, by other agents with an error of their own
    and not by ending the process."""
    refused = next((step for step in known if not step.is_accepted), None)
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
            f"{size(refused.load)} is {how} ({reason})",
            float(refused.load),
            unit="bytes",
            is_fine=is_proper,
            is_criterion=True,
        )
    ]
