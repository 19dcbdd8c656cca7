"""Measures an agent before stress: the rate that it handles comfortably, and its latency at that rate.

A short capacity search finds the rate; half of it is the base. Then that rate runs for a while, and its
latency, errors and quality are what every scenario is compared with. An agent that answers nothing at the
base rate is refused, since no scenario could say anything about it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from assay.errors import PlanError
from assay.load.build import PreparedLoad
from assay.load.capacity import Search
from assay.load.stress.bench import within
from assay.load.stress.subject import StressSubject
from assay.model.bottleneck import MOST_ERRORS, OUR_SHARE, rate_within
from assay.model.load import UNFINISHED, Distribution, Load, LoadResult, Objective, Step
from assay.model.stress import CalmErrors, ErrorDetail
from assay.plugin.scenario_baseline import SLACK
from assay.units import percent, seconds, significant

COMFORT = 0.5
"""The base rate as a share of the capacity."""
_STEP = 0.1
"""Share of the time for the search that one step takes."""
_LONG_STEP = 0.25
"""The same where an agent has to be started for each step."""
_STEPS = 4
"""Minimum number of steps, regardless of the time budget."""
_SHORT = 0.9
ENOUGH = 100
"""Requests at the base rate after which a share of errors that matters has been seen."""
MOST_TIMES = 10.0
"""The highest load of any scenario, in times the base."""
_LEAST_SHARE = 0.02
_LEAST_SLACK = 0.05
"""Seconds: shorter delays may be this machine's own."""


@dataclass(frozen=True, slots=True)
class Comfort:
    """The rate that scenarios begin with, and in words where it comes from."""

    rate: float
    text: str


def comfortable(
    subject: StressSubject, prepared: PreparedLoad, budget: float, is_stopped: Callable[[], bool]
) -> Comfort:
    """Half of the capacity that a search of `budget` seconds finds; its closed loop alone where there was no time for more.

    Never more than a tenth of what this machine can put on it, as scenarios put on ten times the base.
    """
    began = time.monotonic()

    def probe(load: Load) -> LoadResult:
        return prepared.at(within(load, subject)).measure(is_stopped=is_stopped)

    def is_over() -> bool:
        return is_stopped() or time.monotonic() - began > max(budget, _STEPS * search.seconds)

    # Without objectives: comfort is about what the agent can do, and the user's objectives are for the scenarios.
    base = replace(prepared.load, concurrency=subject.most_at_once, objectives=(), warmup=None, count=None)
    step = budget * (_STEP if subject.is_server else _LONG_STEP)
    search = Search(base, max(0.2, step), probe, is_over)
    capacity = search.run()
    sustained = capacity.sustained or capacity.highest_throughput
    if sustained <= 0:
        why = next((step.why for step in capacity.steps if step.why), "no response")
        hint = next((text for step in capacity.steps if (text := _format_common_reason(step.result))), "")
        raise PlanError(
            f"'{target_name(prepared)}' answered no requests, so no base rate could be found: {why}.{hint}"
        )
    how = "a search" if capacity.sustained else "a closed loop"
    possible = deliverable(capacity.steps, subject.most_in_flight)
    if possible is not None and possible / MOST_TIMES < sustained * COMFORT:
        reason = (
            f"a tenth of the {significant(possible)}/s that this machine can generate, because scenarios use up to ten times the base; "
            f"{how} of {seconds(budget)} found {significant(sustained)}/s"
        )
        return Comfort(possible / MOST_TIMES, reason)
    return Comfort(
        sustained * COMFORT, f"half of the {significant(sustained)}/s that {how} of {seconds(budget)} found"
    )


def deliverable(steps: Sequence[Step], most_in_flight: int) -> float | None:
    """Requests per second that we can surely put on the agent: with half of a core for each worker, and with half of the
    places in flight at the latency of one at a time. None where no step had an answer."""
    answered = [step for step in steps if "latency" in step.result.times]
    if not answered:
        return None
    busiest = max(answered, key=lambda step: step.result.throughput.value).result
    by_cpu = busiest.throughput.value * OUR_SHARE / max(busiest.cpu_share, _LEAST_SHARE)
    alone = min(step.result.times["latency"].p50 for step in answered)
    return min(by_cpu, rate_within(most_in_flight, alone))


def target_name(prepared: PreparedLoad) -> str:
    """How messages call what is asked: host and port of a server, else the agent's name."""
    if isinstance(places := prepared.order.get("places"), list):
        host, port, *_ = places[0]["address"][1]
        return f"{host}:{port}"
    agent = prepared.order.get("agent")
    return str(agent.get("name", "the agent")) if isinstance(agent, dict) else "the agent"


def latency_of(result: LoadResult, name: str) -> Distribution:
    """The latency at the base rate; PlanError where nothing was answered, as there is nothing to compare stress with."""
    found = result.times.get("latency")
    if found is None:
        kinds = ", ".join(f"{kind} {n}" for kind, n in result.errors.items()) or "no response"
        raise PlanError(
            f"'{name}' answered no requests even at the base rate ({kinds}).{_format_common_reason(result)}"
        )
    return found


def _format_common_reason(result: LoadResult) -> str:
    """The most frequent reason why requests failed, where it is known."""
    reasons = {text: n for kind in result.error_reasons.values() for text, n in kind.items()}
    return f" It said: {max(reasons, key=lambda text: reasons[text])}" if reasons else ""


def discomfort(result: LoadResult, rate: float) -> str | None:
    """Explain why the agent does not handle this rate; None if it does."""
    failed = result.error_rate.value
    if failed > MOST_ERRORS:
        kinds = ", ".join(result.errors)
        return f"{percent(failed)} of the requests fail at the base rate ({kinds}), so load is not the cause."
    if result.throughput.value < _SHORT * rate:
        return (
            f"At the base rate {significant(result.throughput.value)} answers/s came back of {significant(rate)} requests/s: "
            "the agent cannot keep up at this rate. Set a lower --base."
        )
    return None


def derive_objective(calm: Distribution) -> Objective:
    """The default objective: a latency that would no longer count as the same service."""
    limit = max(SLACK * calm.p95, calm.p95 + _LEAST_SLACK)
    return Objective(f"latency_p95<{limit * 1e3:.4g}ms", "latency", "p95", True, limit)


def errors_of(result: LoadResult, details: tuple[ErrorDetail, ...] = ()) -> CalmErrors:
    """Count the errors without the requests that were still under way when the load ended."""
    kinds = {kind: n for kind, n in result.errors.items() if kind not in UNFINISHED}
    failed = sum(kinds.values())
    return CalmErrors(failed, failed + result.requests_completed, kinds, details)


def unmet_in(result: LoadResult, objectives: Sequence[Objective]) -> frozenset[str]:
    """Objectives about times that are not met even at the base rate, so breaking them under load means nothing."""
    measured = [
        (objective, result.times.get(objective.metric))
        for objective in objectives
        if objective.statistic is not None
    ]
    return frozenset(
        objective.text
        for objective, times in measured
        if times is not None
        and objective.statistic is not None
        and not objective.is_met_by(times.at(objective.statistic))
    )
