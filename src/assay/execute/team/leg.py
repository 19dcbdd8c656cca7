"""Runs a leg of a team: every agent does its cases, one agent after the other or all at once.

The experiment `team` runs both legs with the same members and compares them: what the agents lose by working at the same
time is the difference. `run_leg` does a leg, `outcome_of` turns it into figures.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from assay.execute.team.member import Answered, Member, find_failure, wait_for_members
from assay.model.team import Leg
from assay.plugin.outcome import Outcome, plain

LEAD_SECONDS = 0.01
"""Between telling the members when to begin and that moment: long enough for the message to reach all of them."""


After = Callable[[Sequence[Answered]], None]
"""Called with what has just been done, outside of the timing."""


@dataclass(frozen=True, slots=True)
class LegResult:
    """A leg that was done; times are seconds after its beginning, the harness's own pauses taken out."""

    leg: Leg
    seconds: float
    stints: tuple[Answered, ...]
    order: tuple[str, ...]
    permits: int


def run_leg(
    leg: Leg,
    members: Sequence[Member],
    permits: int,
    seed: int,
    repetition: int,
    how_many: int | None = None,
    after: After = lambda stints: None,
) -> LegResult:
    """`how_many` cases of each agent, all where nothing is said; the order of the agents is drawn by the seed.

    `after` is called, untimed, when those who worked together are done: with all, or with one agent after the other.
    """
    order = list(members)
    random.Random(seed).shuffle(order)
    names = tuple(member.name for member in order)
    if leg is Leg.CONCURRENT:
        stints = _together(order, repetition, how_many)
        after(stints)
        return LegResult(leg, max(stint.end for stint in stints), tuple(stints), names, permits)
    stints = []
    for member in order:
        # As if it had begun the moment the one before it ended: pauses of the harness do not count.
        behind = max((stint.end for stint in stints), default=0.0)
        own = _together([member], repetition, how_many)
        after(own)
        stints += [_later(stint, behind) for stint in own]
    return LegResult(leg, max(stint.end for stint in stints), tuple(stints), names, permits)


def _together(members: Sequence[Member], repetition: int, how_many: int | None) -> list[Answered]:
    """Have these members work at the same time; times count from the moment at which they were to begin."""
    # A moment in the future and not a message when to begin: messages reach members one after the other.
    go = perf_counter() + LEAD_SECONDS
    for member in members:
        member.begin(go, repetition, how_many)
    return [_later(stint, -go) for stint in wait_for_members(members)]


def _later(stint: Answered, by: float) -> Answered:
    return Answered(stint.agent, stint.case, stint.start + by, stint.end + by, stint.waited, stint.execution)


def outcome_of(walked: LegResult) -> Outcome:
    """Figures of the leg and of each agent in it; who worked when is its output."""
    agents = list(dict.fromkeys(walked.order))
    by_agent = {name: [stint for stint in walked.stints if stint.agent == name] for name in sorted(agents)}
    figures = {"skew_seconds": skew(walked)} if walked.leg is Leg.CONCURRENT else {}
    figures |= _sum_usage(walked.stints)
    if "output_tokens" in figures and walked.seconds > 0:
        figures["tokens_per_second"] = figures["output_tokens"] / walked.seconds
    for name, stints in by_agent.items():
        figures |= {f"{name}.{key}": value for key, value in _of_agent(stints).items()}
    models: dict[str, str] = {}
    for stint in walked.stints:
        if (model := str((stint.execution.applied or {}).get("model") or "")) and stint.agent not in models:
            models[stint.agent] = model
    is_simulated = any((stint.execution.detail or {}).get("simulated") for stint in walked.stints)
    return Outcome(
        measurements=figures,
        output={
            "order": list(walked.order),
            "stints": [_build_stint_row(stint) for stint in walked.stints],
            "models": models,
            "answers": {
                name: {stint.case: plain(stint.execution.output) for stint in stints}
                for name, stints in by_agent.items()
            },
        },
        failure=find_failure(walked.stints),
        seconds=walked.seconds,
        detail={"simulated": True} if is_simulated else None,
    )


def skew(walked: LegResult) -> float:
    """How many seconds apart the agents began that could begin at once: as many as there are permits."""
    first: dict[str, float] = {}
    for stint in walked.stints:
        first[stint.agent] = min(stint.start, first.get(stint.agent, stint.start))
    starts = sorted(first.values())[: walked.permits]
    return starts[-1] - starts[0]


def most_at_once(stints: Sequence[Answered]) -> int:
    """How many agents were between their first start and their last end at the same time."""
    spans = [
        (min(t.start for t in stints if t.agent == name), max(t.end for t in stints if t.agent == name))
        for name in {stint.agent for stint in stints}
    ]
    return max(sum(start <= begin < end for start, end in spans) for begin, _ in spans)


def _of_agent(stints: Sequence[Answered]) -> dict[str, float]:
    """The figures of one agent. `seconds` is its time at work, without waiting for a permit and pauses between cases."""
    busy = sum(stint.execution.measurements["seconds"] for stint in stints)
    measurements = {"seconds": busy}
    if any(stint.waited for stint in stints):
        measurements["waited_seconds"] = sum(stint.waited for stint in stints)
    firsts = [stint.execution.measurements.get("ttft") for stint in stints]
    if known := [first for first in firsts if first is not None]:
        measurements["ttft_seconds"] = sum(known) / len(known)
    measurements |= _sum_usage(stints)
    if "output_tokens" in measurements and busy > 0:
        measurements["tokens_per_second"] = measurements["output_tokens"] / busy
    decoding = [stint.execution.measurements.get("eval_seconds") for stint in stints]
    if (
        "output_tokens" in measurements
        and None not in decoding
        and (spent := sum(x or 0.0 for x in decoding)) > 0
    ):
        measurements["eval_tokens_per_second"] = measurements["output_tokens"] / spent
    return measurements


def _sum_usage(stints: Sequence[Answered]) -> dict[str, float]:
    """Add up the usage of all stints.

    A metric counts only if every stint has a value: a sum with gaps would be too low.
    """
    found: dict[str, float] = {}
    for name in ("input_tokens", "output_tokens", "tokens", "usd"):
        values = [stint.execution.measurements.get(name) for stint in stints]
        if values and None not in values:
            found[name] = float(sum(value or 0.0 for value in values))
    return found


def _build_stint_row(stint: Answered) -> dict[str, Any]:
    """A stint as it is stored in the output of the leg, times in seconds; what is absent is left out."""
    measured = stint.execution.measurements
    row = {
        "agent": stint.agent,
        "case": stint.case,
        "start": round(stint.start, 6),
        "end": round(stint.end, 6),
        "seconds": round(measured["seconds"], 6),
        "ttft": measured.get("ttft"),
        "waited": round(stint.waited, 6) or None,
        "tokens": measured.get("output_tokens"),
        "error": None
        if stint.execution.status == "ok"
        else stint.execution.error or stint.execution.status.value,
        "durations": {
            name: measured[f"{name}_seconds"]
            for name in ("load", "prompt_eval", "eval", "total")
            if f"{name}_seconds" in measured
        }
        or None,
    }
    return {key: value for key, value in row.items() if value is not None}
