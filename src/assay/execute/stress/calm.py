"""What an agent is like before it is put under stress: the rate it bears comfortably, and its latency at that rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from assay.errors import PlanError
from assay.execute.load.asking import Prepared
from assay.execute.load.capacity import Search
from assay.execute.stress.bench import within
from assay.execute.stress.breaking import MOST_ERRORS
from assay.execute.stress.subject import Subject
from assay.model.load import Arrivals, Distribution, Load, LoadResult, Objective
from assay.units import percent, seconds, significant

COMFORT = 0.5
"""Of the capacity."""
SLACK = 5.0
"""Times the calm P95: the objective where none is given."""
_STEP = 0.1
"""Of the time for the search: one step of it."""
_LONG_STEP = 0.25
"""Where an agent has to be started for each step."""
_STEPS = 4
"""For which there is always time, however long one has to be."""
_SHORT = 0.9
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class Comfort:
    rate: float
    text: str


def comfortable(subject: Subject, asked: Prepared, budget: float, is_stopped: Callable[[], bool]) -> Comfort:
    """Half of the capacity that a search of `budget` seconds finds; its closed loop alone where there was no time for more."""
    began = time.monotonic()

    def probe(load: Load) -> LoadResult:
        return asked.at(within(load, subject)).measured(is_stopped=is_stopped)

    def is_over() -> bool:
        return is_stopped() or time.monotonic() - began > max(budget, _STEPS * search.seconds)

    base = replace(asked.load, concurrency=subject.most_at_once, objectives=(), warmup=None, count=None)
    step = budget * (_STEP if subject.is_server else _LONG_STEP)
    search = Search(base, max(0.2, step), probe, is_over)
    capacity = search.run()
    borne = capacity.sustained or capacity.highest_throughput
    if borne <= 0:
        why = next((step.why for step in capacity.steps if step.why), "nothing came back")
        raise PlanError(f"'{asked_name(asked)}' answers nothing, so there is no rate to begin with: {why}.")
    how = "a search" if capacity.sustained else "a closed loop"
    return Comfort(
        borne * COMFORT, f"half of the {significant(borne)}/s that {how} of {seconds(budget)} found"
    )


def asked_name(asked: Prepared) -> str:
    address = asked.order.get("address")
    if isinstance(address, list) and len(address) == 2 and isinstance(address[1], list):
        return f"{address[1][0]}:{address[1][1]}"
    agent = asked.order.get("agent")
    return str(agent.get("name", "the agent")) if isinstance(agent, dict) else "the agent"


def calm_load(rate: float, length: float, cases: int = 0) -> Load:
    """Long enough for a handful of answers, and for each case of a suite, however slow the agent; ten times as long at most."""
    whole = min(length * 10, max(length, max(_FEWEST, cases) / rate))
    return Load(Arrivals.CONSTANT, stages=((whole, rate, rate),), seconds=whole)


def latency_of(result: LoadResult, name: str) -> Distribution:
    found = result.times.get("latency")
    if found is None:
        kinds = ", ".join(f"{kind} {n}" for kind, n in result.errors.items()) or "nothing came back"
        raise PlanError(f"'{name}' answers nothing even in calm ({kinds}).")
    return found


def discomfort(result: LoadResult, rate: float) -> str | None:
    """What is wrong with calling this rate comfortable."""
    failed = result.error_rate.value
    if failed > MOST_ERRORS:
        kinds = ", ".join(result.errors)
        return f"Even in calm {percent(failed)} of the requests failed ({kinds}): all that follows starts from there."
    if result.throughput.value < _SHORT * rate:
        return (
            f"In calm {significant(result.throughput.value)} answers/s came back of {significant(rate)} requests/s: "
            "this rate is not comfortable. Give a lower --base."
        )
    return None


def derived_objective(calm: Distribution) -> Objective:
    """Where none is given: a latency that nobody would call the same service any more."""
    limit = SLACK * calm.p95
    return Objective(f"latency_p95<{limit * 1e3:.4g}ms", "latency", "p95", True, limit)
