"""From the loads that a scenario put on an agent to its finding.

A scenario puts one or more loads on the bench and gets a `Stretch` for each. `build_finding` combines them into what is
stored and shown. The other functions are the questions that scenarios share: how much pressure this machine can put on,
whether failures are more than those in calm, when the agent was back to normal, whether its answers got worse. *Calm* is the
load at the base rate that precedes every scenario.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace

from assay.model.bottleneck import FOR_STRESS, MOST_ERRORS, OWN_LIMITS, is_generator_limit, rate_within
from assay.model.error_details import merge
from assay.model.figure import Figure, format_span
from assay.model.load import Moment, Objective, Quality
from assay.model.stress import (
    Band,
    Breach,
    Correctness,
    LoadPoint,
    Resources,
    Sample,
    ScenarioFinding,
    ScenarioJudgement,
    Scored,
    Stretch,
)
from assay.plugin.scenario import Bench, Scenario
from assay.plugin.scenario_baseline import SLACK, calm_load, find_recovery_time
from assay.stats.means import average_by_case, compute_mean_score, mean_difference
from assay.stats.resilience import is_as_in_calm
from assay.units import count, format_count, percent, seconds, significant

_NOTABLY = 1.05
_LONG_ENOUGH = 1.0
_NOTABLE = 0.01
"""Minimum fall of a score that matters, however certain a smaller one is."""


@dataclass(frozen=True, slots=True)
class HandledLoad:
    """How much load was offered to the agent, and how much of it the agent sustained, in one unit."""

    asked: float
    sustained: float
    unit: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """How long the agent took to be as before once the pressure had ended; as it stands, there was nothing to recover from."""

    seconds: float | None = None
    is_seen: bool = True
    """False where it did not recover while it was watched: then `seconds` is how long that was."""
    is_dead: bool = False
    """Whether it answered nothing at all after the pressure."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """A rate that can be put on the agent here, with enough requests in flight for answers that are late but in time."""

    rate: float
    in_flight: int
    warnings: tuple[str, ...] = ()


def plan_pressure(bench: Bench, rate: float, least: int) -> Pressure:
    """At `least` so many in flight, and more where answers are slow: what is offered has to be delivered.

    Where even all that can be in flight here do not carry the rate at the latency at the base rate, less is asked, and that is told.
    """
    most, calm = bench.subject.most_in_flight, bench.calm
    possible = rate_within(most, calm.p50)
    warnings: tuple[str, ...] = ()
    if rate > _NOTABLY * possible:
        warnings = (
            f"The scenario sends {significant(possible)} requests/s instead of {significant(rate)}: at most {count(most)} can be in "
            f"flight, and each takes {seconds(calm.p50)} at the base rate.",
        )
    feasible_rate = min(rate, possible)
    limits = [
        objective.limit
        for objective in bench.objectives
        if objective.metric == "latency" and objective.is_upper
    ]
    needed = math.ceil(feasible_rate * max(SLACK * calm.p95, *limits, 0.0))
    return Pressure(feasible_rate, min(most, max(least, needed)), warnings)


def fails_as_in_calm(bench: Bench, failed: int, ended: int) -> bool:
    """Whether as many fail at the base rate, as far as anybody can tell: then the pressure has nothing to do with it."""
    calm = bench.calm_errors
    return is_as_in_calm(failed, ended, calm.failed, calm.ended)


def is_answered(bench: Bench, stretches: Sequence[Stretch]) -> bool:
    """Whether nearly all requests were answered, or no more failed than in calm."""
    completed = sum(stretch.completed for stretch in stretches)
    failed = sum(sum(stretch.errors.values()) for stretch in stretches)
    ended = completed + failed
    return completed > 0 and (failed <= MOST_ERRORS * ended or fails_as_in_calm(bench, failed, ended))


def find_frequent_error(stretch: Stretch) -> str:
    """The kind of error that most of the failed requests ended with."""
    return max(stretch.errors, key=lambda kind: stretch.errors[kind], default="nothing known")


def build_load_point(load: float, stretch: Stretch, *, is_broken: bool, is_probe: bool = False) -> LoadPoint:
    """One step of a scenario that goes up step by step, for its chart: `load` is the size of the step in its own unit."""
    times = stretch.result.times.get("latency")
    return LoadPoint(
        load,
        stretch.result.throughput.value,
        times.p50 if times else None,
        times.p95 if times else None,
        stretch.error_rate,
        is_broken,
        is_probe,
    )


def build_finding(
    scenario: Scenario,
    bench: Bench,
    stretches: Sequence[Stretch],
    load: HandledLoad,
    breach: Breach | None,
    *,
    lasted: float,
    shown: Stretch | None = None,
    recovery: Recovery = Recovery(),  # noqa: B008  (frozen)
    judgements: Sequence[ScenarioJudgement] = (),
    warnings: Sequence[str] = (),
    unasked: int = 0,
    pressed: Sequence[Scored] | None = None,
    probes: Sequence[Stretch] = (),
    points: Sequence[LoadPoint] = (),
    bands: Sequence[Band] = (),
) -> ScenarioFinding:
    """What the scenario found, from the loads that it put on the agent, what it asked and bore, and what broke first.

    `shown` is the stretch whose times stand for the scenario; `unasked` requests were not even put, as it was hopeless;
    `pressed` are the answers given under pressure, where that is not all of the time; `probes` were put only to find the
    breaking point, and do not count.
    """
    chosen = shown or stretches[-1]
    judged = compute_correctness(stretches, bench.calm_quality, pressed)
    errors: Counter[str] = Counter()
    for stretch in stretches:
        errors.update(stretch.errors)
    return ScenarioFinding(
        scenario.name,
        parameters=asdict(scenario) if is_dataclass(scenario) and not isinstance(scenario, type) else {},
        seconds=lasted,
        offered=sum(stretch.offered for stretch in stretches) + unasked,
        good=sum(stretch.good for stretch in stretches),
        completed=sum(stretch.completed for stretch in stretches),
        errors=dict(errors),
        throughput=chosen.result.throughput,
        times=chosen.result.times,
        load_asked=load.asked,
        load_borne=load.sustained,
        unit=load.unit,
        breach=breach,
        recovery=recovery.seconds,
        is_recovered=recovery.is_seen,
        is_dead=recovery.is_dead,
        judgements=(*judgements, *judge_quality(judged, bench.calm_quality)),
        resources=Resources("", _samples(stretches)),
        moments=_join_moments(stretches),
        warnings=(*_doubts(stretches, bench), *_describe_unscored(judged), *warnings),
        is_simulated=any(stretch.result.is_simulated for stretch in stretches),
        in_time=sum(stretch.punctual for stretch in stretches),
        correctness=judged,
        details=merge([stretch.details for stretch in (*stretches, *probes)]),
        points=tuple(sorted(points, key=lambda point: point.load)),
        bands=tuple(bands),
    )


def find_late_breach(stretch: Stretch, objectives: Sequence[Objective]) -> Breach | None:
    """An objective that was given and not kept; failures each scenario judges in its own way."""
    breach = stretch.breach
    return (
        breach
        if objectives and breach is not None and breach.is_theirs and breach.cause != "errors"
        else None
    )


def find_calm_breach(stretches: Sequence[Stretch]) -> Breach | None:
    """What was broken no more than at the base rate, for where the pressure broke nothing."""
    return next(
        (stretch.breach for stretch in stretches if stretch.breach is not None and stretch.breach.is_in_calm),
        None,
    )


def compute_correctness(
    stretches: Sequence[Stretch], calm: Quality | None, pressed: Sequence[Scored] | None = None
) -> Correctness | None:
    """Compute the correctness of answers; None if no answer was judged by a suite."""
    known = [answer for stretch in stretches for answer in stretch.scored]
    if not known:
        return None
    under = average_by_case((answer.case, answer.value) for answer in (known if pressed is None else pressed))
    scored = sum(answer.value is not None for answer in known)
    change = None
    if calm:
        # Case by case, so that easy and hard ones do not stand in for pressure.
        shared = sorted(calm.by_case.keys() & under.keys())
        effect = mean_difference([calm.by_case[case] for case in shared], [under[case] for case in shared])
        change = None if effect is None else Figure(effect.value, effect.low, effect.high)
    return Correctness(
        Figure(*compute_mean_score(list(under.values()))) if under else None,
        calm.score if calm else None,
        change,
        scored,
        len(known) - scored,
        sum(answer.is_right for answer in known),
    )


def judge_quality(judged: Correctness | None, calm: Quality | None) -> list[ScenarioJudgement]:
    """Whether answers are worse under pressure than at the base rate, beyond what chance explains."""
    if judged is None:
        text = "Correctness is not judged here: the inputs are synthetic"
        return [ScenarioJudgement("quality", text)] if calm else []
    if judged.score is None:
        return [ScenarioJudgement("quality", "No answer under pressure could be scored")]
    text = f"Answers score {format_span(judged.score)} under pressure"
    if judged.calm is None:
        return [ScenarioJudgement("quality", text, judged.score.value, judged.score.low, judged.score.high)]
    text = f"{text}, {format_span(judged.calm)} at the base rate"
    change = judged.change
    if change is None or change.high is None:
        return [ScenarioJudgement("quality", f"{text}; one case is too few to tell a change from chance")]
    is_worse = change.high < 0 and change.value < -_NOTABLE
    text = f"{text}: a mean change of {significant(change.value)} per case"
    return [ScenarioJudgement("quality", text, change.value, change.low, change.high, "", not is_worse)]


def _describe_unscored(judged: Correctness | None) -> list[str]:
    if judged is None or not judged.unscored:
        return []
    of = count(judged.scored + judged.unscored)
    text = f"{count(judged.unscored)} of {of} answers could not be scored"
    return [f"{text}: correctness covers only the others." if judged.scored else f"{text}."]


def _join_moments(stretches: Sequence[Stretch]) -> tuple[Moment, ...]:
    """One after the other, without the pauses between them."""
    return tuple(
        replace(moment, begin=begin + moment.begin)
        for begin, stretch in zip(compute_begins(stretches), stretches, strict=True)
        for moment in stretch.result.moments
    )


def _samples(stretches: Sequence[Stretch]) -> tuple[Sample, ...]:
    """Return the samples of all stretches on the time axis of the moments."""
    return tuple(
        replace(sample, at=begin + sample.at)
        for begin, stretch in zip(compute_begins(stretches), stretches, strict=True)
        for sample in stretch.samples
    )


def compute_begins(stretches: Sequence[Stretch]) -> list[float]:
    """When each begins on the axis of the moments."""
    found = [0.0]
    for stretch in stretches:
        moments = stretch.result.moments
        found.append(found[-1] + (moments[-1].begin + moments[-1].seconds if moments else 0.0))
    return found[:-1]


def build_step_bands(labels: Sequence[str], stretches: Sequence[Stretch]) -> list[Band]:
    """The time of each step of a scenario, with its name."""
    starts = compute_begins(stretches)
    ends = [
        start
        + (
            stretch.result.moments[-1].begin + stretch.result.moments[-1].seconds
            if stretch.result.moments
            else 0.0
        )
        for start, stretch in zip(starts, stretches, strict=True)
    ]
    steps = zip(starts, ends, labels, strict=True)
    return [Band(begin, end, label, is_fault=False) for begin, end, label in steps if end > begin]


def _doubts(stretches: Sequence[Stretch], bench: Bench) -> list[str]:
    """Warnings about this machine: where it was busy, late or out of descriptors, the figures say too little of the agent."""
    texts = []
    # Neither a server nor a program: the agent's own code runs in our workers, and may be what holds them up.
    is_in_worker = not bench.subject.is_server and not bench.subject.is_command
    # With few requests that were over at once, the share of a core says nothing.
    known = [stretch.result for stretch in stretches if stretch.result.duration >= _LONG_ENOUGH]
    limited = [result for result in known if is_generator_limit(result, FOR_STRESS)]
    if limited:
        busiest, latest = (
            max(result.cpu_share for result in limited),
            max(result.lag_p99 for result in limited),
        )
        where = f"in {count(len(limited))} of {count(len(stretches))} loads"
        texts.append(
            f"The worker that runs the agent's code was held up for {seconds(latest)} {where} ({percent(busiest)} of a core): "
            "by that code, or by this machine."
            if is_in_worker
            else f"This machine was the bottleneck {where} ({percent(busiest)} of a core, answers waited {seconds(latest)} "
            "to be read): the agent may sustain more. Use --workers."
        )
    held_up = sum(stretch.held_up for stretch in stretches)
    if held_up:
        texts.append(
            f"This machine delayed the load by {seconds(held_up)} in total; the results include that delay."
        )
    unsent = sum(stretch.errors.get(kind, 0) for stretch in stretches for kind in OWN_LIMITS)
    if unsent:
        texts.append(
            f"{format_count(unsent, 'request')} could not be sent, because this machine ran out of descriptors or ports (ulimit -n)."
        )
    return texts


def compute_delivered_rate(stretch: Stretch, rate: float, length: float) -> float:
    """Compute the answers per second at a constant rate. What was due within `length` comes back within as much time, longer by
    as much as latency grew: that the last answers are still to come when the rate ends is no loss.
    """
    return min(rate, stretch.completed / (length * (1 + stretch.result.latency_growth)))


def watch_recovery(bench: Bench, length: float) -> Recovery:
    """The base rate once the pressure has ended: when was latency near the calm one again?"""
    after = bench.put(calm_load(bench.base, length), objectives=())
    recovery_seconds, is_seen = find_recovery_time(after.result.moments, 0.0, bench.calm, bench.calm_errors)
    return Recovery(recovery_seconds, is_seen, is_dead=not after.completed)


def compute_scenario_time(stretches: Sequence[Stretch], watched: float) -> float:
    """Compute the time of a scenario that counts requests: the time they took, and at least three times that in which recovery was watched, so
    that quick answers do not make a moment look long."""
    return max(3 * watched, sum(stretch.result.duration for stretch in stretches))


def compute_completion_rate(stretch: Stretch, begin: float, end: float) -> float:
    """Answers per second that came back between two moments of a load."""
    inside = [moment for moment in stretch.result.moments if begin - 1e-9 <= moment.begin < end - 1e-9]
    length = sum(moment.seconds for moment in inside)
    return sum(moment.completed for moment in inside) / length if length else 0.0


def make_text(size: int) -> str:
    """Make a text of so many bytes from plain words."""
    line = "A benchmark asks the same of everybody and writes down what came back. "
    return (line * (size // len(line) + 1))[:size]
