"""From the loads of a scenario to what it showed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace

from assay.analysis.stress import recovered_after
from assay.execute.load.failures import merge
from assay.execute.load.quality import case_means, figure_of
from assay.execute.stress.breaking import is_our_fault
from assay.execute.stress.calm import SLACK, calm_load, rate_within
from assay.model.bottleneck import MOST_ERRORS, OWN_LIMITS
from assay.model.figure import Figure
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
from assay.report.stress import spanned
from assay.stats.means import mean_difference
from assay.stats.resilience import is_as_in_calm
from assay.units import count, counted, percent, seconds, significant

_NOTABLY = 1.05
_LONG_ENOUGH = 1.0
_NOTABLE = 0.01
"""Of a score: a smaller fall changes nobody's mind, however certain it is."""


@dataclass(frozen=True, slots=True)
class Borne:
    """What was asked of the agent and what it bore, in one unit."""

    asked: float
    borne: float
    unit: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """Nothing to recover from: 0 seconds."""

    seconds: float | None = None
    is_seen: bool = True
    is_dead: bool = False


@dataclass(frozen=True, slots=True)
class Pressure:
    """A rate that can be put on the agent here, with enough requests in flight for answers that are late but in time."""

    rate: float
    in_flight: int
    warnings: tuple[str, ...] = ()


def pressure(bench: Bench, rate: float, least: int) -> Pressure:
    """At `least` so many in flight, and more where answers are slow: what is offered has to be delivered.

    Where even all that can be in flight here do not carry the rate at the latency at the base rate, less is asked, and that is told.
    """
    most, calm = bench.subject.most_in_flight, bench.calm
    possible = rate_within(most, calm.p50)
    told: tuple[str, ...] = ()
    if rate > _NOTABLY * possible:
        told = (
            f"{significant(possible)} requests/s are asked instead of {significant(rate)}: at most {count(most)} can be in "
            f"flight here, and each takes {seconds(calm.p50)} at the base rate.",
        )
    asked = min(rate, possible)
    limits = [one.limit for one in bench.objectives if one.metric == "latency" and one.is_upper]
    needed = math.ceil(asked * max(SLACK * calm.p95, *limits, 0.0))
    return Pressure(asked, min(most, max(least, needed)), told)


def fails_as_in_calm(bench: Bench, failed: int, ended: int) -> bool:
    """Whether as many fail at the base rate, as far as anybody can tell: then the pressure has nothing to do with it."""
    calm = bench.calm_errors
    return is_as_in_calm(failed, ended, calm.failed, calm.ended)


def is_answered(bench: Bench, stretches: Sequence[Stretch]) -> bool:
    """Whether nearly all requests were answered, or no more failed than in calm."""
    completed = sum(one.completed for one in stretches)
    failed = sum(sum(one.errors.values()) for one in stretches)
    ended = completed + failed
    return completed > 0 and (failed <= MOST_ERRORS * ended or fails_as_in_calm(bench, failed, ended))


def frequent_error(stretch: Stretch) -> str:
    return max(stretch.errors, key=lambda kind: stretch.errors[kind], default="nothing known")


def point(load: float, stretch: Stretch, *, is_broken: bool, is_probe: bool = False) -> LoadPoint:
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


def finding(
    scenario: Scenario,
    bench: Bench,
    stretches: Sequence[Stretch],
    load: Borne,
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
    """`shown` is the stretch whose times stand for the scenario; `unasked` requests were not even put, as it was hopeless;
    `pressed` are the answers given under pressure, where that is not all of the time; `probes` were put only to find the
    breaking point, and do not count."""
    chosen = shown or stretches[-1]
    judged = correctness(stretches, bench.calm_quality, pressed)
    errors: Counter[str] = Counter()
    for stretch in stretches:
        errors.update(stretch.errors)
    return ScenarioFinding(
        scenario.name,
        parameters=_parameters(scenario),
        seconds=lasted,
        offered=sum(stretch.offered for stretch in stretches) + unasked,
        good=sum(stretch.good for stretch in stretches),
        completed=sum(stretch.completed for stretch in stretches),
        errors=dict(errors),
        throughput=chosen.result.throughput,
        times=chosen.result.times,
        load_asked=load.asked,
        load_borne=load.borne,
        unit=load.unit,
        breach=breach,
        recovery=recovery.seconds,
        is_recovered=recovery.is_seen,
        is_dead=recovery.is_dead,
        judgements=(*judgements, *quality(judged, bench.calm_quality)),
        resources=Resources("", _samples(stretches)),
        moments=_joined(stretches),
        warnings=(*_doubts(stretches, is_in_worker=_is_in_worker(bench)), *_unscored(judged), *warnings),
        is_simulated=any(stretch.result.is_simulated for stretch in stretches),
        in_time=sum(stretch.punctual for stretch in stretches),
        correctness=judged,
        details=merge([stretch.details for stretch in (*stretches, *probes)]),
        points=tuple(sorted(points, key=lambda one: one.load)),
        bands=tuple(bands),
    )


def late(stretch: Stretch, objectives: Sequence[Objective]) -> Breach | None:
    """An objective that was given and not kept; failures each scenario judges in its own way."""
    breach = stretch.breach
    return (
        breach
        if objectives and breach is not None and breach.is_theirs and breach.cause != "errors"
        else None
    )


def also_in_calm(stretches: Sequence[Stretch]) -> Breach | None:
    """What was broken no more than at the base rate, for where the pressure broke nothing."""
    return next((one.breach for one in stretches if one.breach is not None and one.breach.is_in_calm), None)


def correctness(
    stretches: Sequence[Stretch], calm: Quality | None, pressed: Sequence[Scored] | None = None
) -> Correctness | None:
    """None where no answer was held against a suite."""
    known = [one for stretch in stretches for one in stretch.scored]
    if not known:
        return None
    under = case_means((one.case, one.value) for one in (known if pressed is None else pressed))
    scored = sum(one.value is not None for one in known)
    return Correctness(
        figure_of(list(under.values())) if under else None,
        calm.score if calm else None,
        _change(calm.by_case, under) if calm else None,
        scored,
        len(known) - scored,
        sum(one.is_right for one in known),
    )


def _change(calm: Mapping[int, float], under: Mapping[int, float]) -> Figure | None:
    """Case by case, so that easy and hard ones do not stand in for pressure."""
    shared = sorted(calm.keys() & under.keys())
    effect = mean_difference([calm[case] for case in shared], [under[case] for case in shared])
    return None if effect is None else Figure(effect.value, effect.low, effect.high)


def quality(judged: Correctness | None, calm: Quality | None) -> list[ScenarioJudgement]:
    """Whether answers are worse under pressure than at the base rate, beyond what chance explains."""
    if judged is None:
        text = "Whether answers are right is not judged here: what is asked is made up"
        return [ScenarioJudgement("quality", text)] if calm else []
    if judged.score is None:
        return [ScenarioJudgement("quality", "No answer under pressure could be scored")]
    told = f"Answers score {spanned(judged.score)} under pressure"
    if judged.calm is None:
        return [ScenarioJudgement("quality", told, judged.score.value, judged.score.low, judged.score.high)]
    told = f"{told}, {spanned(judged.calm)} at the base rate"
    change = judged.change
    if change is None or change.high is None:
        return [ScenarioJudgement("quality", f"{told}; one case is too few to tell a change from chance")]
    is_worse = change.high < 0 and change.value < -_NOTABLE
    text = f"{told}: case by case a change of {significant(change.value)}"
    return [ScenarioJudgement("quality", text, change.value, change.low, change.high, "", not is_worse)]


def _unscored(judged: Correctness | None) -> list[str]:
    if judged is None or not judged.unscored:
        return []
    of = count(judged.scored + judged.unscored)
    told = f"{count(judged.unscored)} of {of} answers could not be scored"
    return [f"{told}: whether they are right is taken from the others." if judged.scored else f"{told}."]


def _parameters(scenario: Scenario) -> Mapping[str, object]:
    return asdict(scenario) if is_dataclass(scenario) and not isinstance(scenario, type) else {}


def _joined(stretches: Sequence[Stretch]) -> tuple[Moment, ...]:
    """One after the other, without the pauses between them."""
    return tuple(
        replace(one, begin=begin + one.begin)
        for begin, stretch in zip(begins(stretches), stretches, strict=True)
        for one in stretch.result.moments
    )


def _samples(stretches: Sequence[Stretch]) -> tuple[Sample, ...]:
    """On the same axis of time as the moments."""
    return tuple(
        replace(one, at=begin + one.at)
        for begin, stretch in zip(begins(stretches), stretches, strict=True)
        for one in stretch.samples
    )


def begins(stretches: Sequence[Stretch]) -> list[float]:
    """When each begins on the axis of the moments."""
    found = [0.0]
    for stretch in stretches:
        moments = stretch.result.moments
        found.append(found[-1] + (moments[-1].begin + moments[-1].seconds if moments else 0.0))
    return found[:-1]


def step_bands(labels: Sequence[str], stretches: Sequence[Stretch]) -> list[Band]:
    """The time of each step of a scenario, with its name."""
    starts = begins(stretches)
    ends = [
        start + (one.result.moments[-1].begin + one.result.moments[-1].seconds if one.result.moments else 0.0)
        for start, one in zip(starts, stretches, strict=True)
    ]
    told = zip(starts, ends, labels, strict=True)
    return [Band(begin, end, label, is_fault=False) for begin, end, label in told if end > begin]


def _is_in_worker(bench: Bench) -> bool:
    """Whether the agent's own code runs in our workers, and may be what holds them up."""
    return not bench.subject.is_server and not bench.subject.is_command


def _doubts(stretches: Sequence[Stretch], *, is_in_worker: bool = False) -> list[str]:
    told = []
    # Of a few requests that were over at once, the share of a core says nothing.
    known = [stretch.result for stretch in stretches if stretch.result.duration >= _LONG_ENOUGH]
    ours = [result for result in known if is_our_fault(result)]
    if ours:
        busiest, latest = max(one.cpu_share for one in ours), max(one.lag_p99 for one in ours)
        where = f"in {count(len(ours))} of {count(len(stretches))} loads"
        told.append(
            f"The worker that runs the agent's code was held up for {seconds(latest)} {where} ({percent(busiest)} of a core): "
            "by that code, or by this machine."
            if is_in_worker
            else f"This machine was itself at its limit {where} ({percent(busiest)} of a core, answers lay {seconds(latest)} "
            "unread): the agent may sustain more. Use --workers."
        )
    held_up = sum(stretch.held_up for stretch in stretches)
    if held_up:
        told.append(
            f"This machine held us up for {seconds(held_up)} in all: what was late by that is in the figures."
        )
    unsent = sum(stretch.errors.get(kind, 0) for stretch in stretches for kind in OWN_LIMITS)
    if unsent:
        told.append(
            f"{counted(unsent, 'request')} could not be sent for lack of descriptors or ports here (ulimit -n)."
        )
    return told


def delivered_rate(stretch: Stretch, rate: float, length: float) -> float:
    """Of a constant rate: what was answered in a second. What was due within `length` comes back within as much time, longer by
    as much as latency grew: that the last answers are still to come when the rate ends is no loss.
    """
    return min(rate, stretch.completed / (length * (1 + stretch.result.latency_growth)))


def recovery_after(bench: Bench, length: float) -> Recovery:
    """The base rate once the pressure has ended: when was latency near the calm one again?"""
    after = bench.put(calm_load(bench.base, length), objectives=())
    took, is_seen = recovered_after(after.result.moments, 0.0, bench.calm, bench.calm_errors)
    return Recovery(took, is_seen, is_dead=not after.completed)


def time_of(stretches: Sequence[Stretch], watched: float) -> float:
    """Of a scenario that counts requests: the time they took, and at least three times that in which recovery was watched, so
    that quick answers do not make a moment look long."""
    return max(3 * watched, sum(one.result.duration for one in stretches))


def completed_between(stretch: Stretch, begin: float, end: float) -> float:
    """Answers per second that came back between two moments of a load."""
    inside = [one for one in stretch.result.moments if begin - 1e-9 <= one.begin < end - 1e-9]
    length = sum(one.seconds for one in inside)
    return sum(one.completed for one in inside) / length if length else 0.0


def text_of(size: int) -> str:
    """So many bytes of plain words."""
    line = "A benchmark asks the same of everybody and writes down what came back. "
    return (line * (size // len(line) + 1))[:size]
