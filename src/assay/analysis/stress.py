"""An agent under stress: when it was itself again, how resilient it is, where its limits lie, and what to do about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.model import TrialReport
from assay.model.figure import Figure
from assay.model.load import Distribution, Moment
from assay.model.stress import (
    STRESS,
    Breach,
    Correctness,
    Judgement,
    Resources,
    Sample,
    ScenarioFinding,
    ScenarioScore,
    StressFinding,
)
from assay.stats.resilience import bearing, recovering, resilience, scenario_score, worth
from assay.stats.verdicts import wilson
from assay.units import count, percent, seconds, significant, size

NEAR = 1.1
"""Latency within a tenth of what it was counts as recovered."""
_MOST_ERRORS = 0.05
_SLOW_RECOVERY = 0.1
"""Of the scenario's time: a recovery that takes longer is worth a word."""


def recovered_after(moments: Sequence[Moment], since: float, calm: Distribution) -> tuple[float, bool]:
    """Seconds from `since` until latency is near the calm one and stays there with hardly an error; False where it was not seen.

    Near is within a tenth of the median, or within what nine of ten answers took in calm. The first moment after `since`
    being fine means that there was nothing to recover from: 0.
    """
    limit = max(NEAR * calm.intervals.get("p50", (calm.p50, calm.p50))[1], calm.p90)
    # What only came to its end then was due before: it says nothing about then.
    later = [one for one in moments if one.begin >= since - 1e-9 and one.sent]
    fine = [_is_fine(one, limit) for one in later]
    for place, moment in enumerate(later):
        if all(fine[place : place + 2]):
            return max(0.0, moment.begin - since), True
    # Where all is so late that nothing of what is due then is even sent, there is nothing to look at, for as long as was watched.
    last = max((one.begin + one.seconds for one in moments), default=since)
    return max(0.0, last - since), False


def _is_fine(moment: Moment, limit: float) -> bool:
    ended = moment.completed + moment.failed
    return (
        moment.latency_p50 is not None
        and moment.latency_p50 <= limit
        and (not ended or moment.failed / ended <= _MOST_ERRORS)
    )


def score_of(finding: ScenarioFinding) -> ScenarioScore:
    """The interval is that of the share, by Wilson; the other two factors were seen once."""
    share = min(1.0, finding.good / finding.offered) if finding.offered else 0.0
    judged = finding.completed if finding.correctness is None else finding.correctness.scored
    low, high = wilson(share, worth(finding.offered, finding.completed, judged))
    borne = bearing(finding.is_broken, finding.load_borne, finding.load_asked)
    back = 0.0 if finding.is_dead else recovering(finding.recovery, finding.seconds)
    return ScenarioScore(
        finding.scenario,
        share,
        borne,
        back,
        scenario_score(share, borne, back),
        scenario_score(min(low, share), borne, back),
        scenario_score(max(high, share), borne, back),
    )


def stress_finding(
    target: str, setting: Mapping[str, Any], scenarios: Sequence[ScenarioFinding]
) -> StressFinding:
    """`setting` is what was known in calm: `base`, `base_text`, `objective`, `warnings`, `judged_by`, `calm_score`."""
    scores = tuple(score_of(one) for one in scenarios if not one.skipped)
    value = resilience(score.value for score in scores)
    low = resilience(score.low for score in scores)
    high = resilience(score.high for score in scores)
    return StressFinding(
        target,
        setting.get("base"),
        str(setting.get("base_text", "")),
        str(setting.get("objective", "")),
        tuple(scenarios),
        scores,
        None if value is None else Figure(value, low, high),
        tuple(_limits(scenarios)),
        tuple(_recommendations(scenarios, scores)),
        tuple(map(str, setting.get("warnings", ()))),
        str(setting.get("judged_by", "")),
        _made(Figure, setting.get("calm_score")),
    )


def amount(value: float, unit: str) -> str:
    """
    >>> amount(12.0, "requests/s"), amount(64.0, "at a time"), amount(2048.0, "bytes")
    ('12 requests/s', '64 at a time', '2 KiB')
    """
    return size(value) if unit == "bytes" else f"{significant(value)} {unit}".strip()


def breach_text(breach: Breach) -> str:
    """
    >>> breach_text(Breach(0.0, 50.0, "requests/s", "errors", "9 % of the requests failed"))
    'at 50 requests/s, from the start (errors): 9 % of the requests failed'
    """
    when = f"{seconds(breach.at)} in" if breach.at else "from the start"
    return f"at {amount(breach.load, breach.unit)}, {when} ({breach.cause}): {breach.why}"


def borne_of_asked(borne: float, asked: float, unit: str) -> str:
    """
    >>> borne_of_asked(105.0, 518.0, "requests/s")
    '105 of 518 requests/s'
    """
    return f"{size(borne) if unit == 'bytes' else significant(borne)} of {amount(asked, unit)}"


def _limits(scenarios: Sequence[ScenarioFinding]) -> Iterable[str]:
    """How far it goes, of each scenario that found a limit; those that found none in one line."""
    done = [one for one in scenarios if not one.skipped and one.load_asked]
    for one in done:
        borne = borne_of_asked(one.load_borne, one.load_asked, one.unit)
        if one.is_broken and one.breach is not None:
            yield f"{one.scenario}: {borne} was borne; it broke {breach_text(one.breach)}."
        elif one.breach is not None:
            yield f"{one.scenario}: not known, as this machine could not put on {amount(one.load_asked, one.unit)}."
        yield from (f"{one.scenario}: {told.text}." for told in one.judgements if told.name in _SCALING)
    unbroken = [f"{one.scenario} ({amount(one.load_asked, one.unit)})" for one in done if one.breach is None]
    if unbroken:
        yield f"All that was asked was borne, so the limit lies beyond: {', '.join(unbroken)}."


_SCALING = ("knee", "growth_exponent", "largest_accepted", "smallest_memory")


def _recommendations(scenarios: Sequence[ScenarioFinding], scores: Sequence[ScenarioScore]) -> Iterable[str]:
    """The worst first; each with the figures that it follows from."""
    by_name = {score.scenario: score for score in scores}
    done = [one for one in scenarios if not one.skipped]
    for one in sorted(done, key=lambda finding: by_name[finding.scenario].value):
        if one.is_broken:
            yield _about_breach(one)
        if one.recovery is not None and one.recovery > _SLOW_RECOVERY * one.seconds:
            yield _about_recovery(one)
        yield from (
            f"{one.scenario}: {told.text}. {_ADVICE[told.name]}"
            for told in one.judgements
            if told.is_fine is False and told.name in _ADVICE
        )


_ADVICE = {
    "latency_drift": "Look for what grows with time: caches, logs, connections that are never closed.",
    "memory_drift": "Memory that only grows ends in a crash: profile its allocations before running it for days.",
    "late_errors": "Errors that come late point to something that runs out; compare its resources at both ends.",
    "fairness": "Serve requests in the order of arrival, so that none starves.",
    "refusal": "Refuse what is too large with a 413 before reading it, so that nothing is dropped half way.",
    "graceful": "Catch the lack of memory and refuse the request instead of ending the process.",
    "obeys_retry_after": "Wait at least as long as Retry-After says before trying again.",
    "all_finished": "Allow more retries, or wait longer between them, so that a throttled upstream loses no work.",
    "storm": "Send fewer retries: back off after each refusal and limit how many requests are under way.",
    "lost": "Give each call a time limit of its own, and try again what ended without an answer.",
    "doubled": "Give each request an id and answer a repeated one from the first result.",
    "quality": "Look for what cuts answers short when it is busy: time limits, smaller budgets, fall-backs, state that is shared.",
    "growth_exponent": "Work that grows faster than its input: look for passes over all of it within a loop.",
}


def _about_breach(one: ScenarioFinding) -> str:
    assert one.breach is not None
    borne, asked = amount(one.load_borne, one.unit), amount(one.load_asked, one.unit)
    told = f"{one.scenario}: {one.breach.why} at {amount(one.breach.load, one.breach.unit)}."
    if one.unit not in ("requests/s", "at a time"):
        share = percent(one.load_borne / one.load_asked) if one.load_asked else "none"
        return f"{told} Only {borne} of {asked} ({share}) was borne: refuse what goes beyond it before work on it begins."
    if one.load_borne <= 0:
        return f"{told} Nothing was borne: mend that before anything else."
    if one.breach.cause == "errors":
        return f"{told} Let in at most {borne} and refuse the rest early with a 429, or add {_instances(one)} for {asked}."
    return f"{told} Let in at most {borne} and keep queues short, or add {_instances(one)} for {asked}."


def _instances(one: ScenarioFinding) -> str:
    more = -(-one.load_asked // one.load_borne) - 1
    return f"{count(more)} instance{'s' if more != 1 else ''} of the same size"


def _about_recovery(one: ScenarioFinding) -> str:
    assert one.recovery is not None
    took = seconds(one.recovery)
    if one.is_dead:
        return f"{one.scenario}: it answered nothing in the {took} after the pressure. Have something watch it and start it again."
    if not one.is_recovered:
        return f"{one.scenario}: {took} after the pressure it was not itself again. Drop queued work whose caller has given up."
    part = percent(one.recovery / one.seconds)
    return f"{one.scenario}: it took {took} to recover, {part} of the scenario's time. Shorten queues, so that less waits when the pressure ends."


def stress_findings(trials: Iterable[TrialReport]) -> StressFinding | None:
    """Of a stored run: read back from the outputs of its executions."""
    mine = [trial for trial in trials if trial.stored.trial.experiment == STRESS]
    if not mine:
        return None
    told = [one.output for trial in mine for one in trial.executions if isinstance(one.output, Mapping)]
    found = [scenario_of(output["scenario"]) for output in told if "scenario" in output]
    setting: Mapping[str, Any] = next((output["setting"] for output in told if "setting" in output), {})
    return stress_finding(mine[0].stored.trial.agent.name, setting, found)


def is_stress(trial: TrialReport) -> bool:
    return trial.stored.trial.experiment == STRESS


def told_elsewhere(trial: TrialReport) -> TrialReport:
    """A scenario is one execution by its nature: that there is only one is no news, and its own intervals are in its finding."""
    return replace(trial, estimates=tuple(replace(one, doubts=()) for one in trial.estimates))


def scenario_of(stored: Mapping[str, Any]) -> ScenarioFinding:
    """From what `dataclasses.asdict` made of it."""
    plain = dict(stored)
    return ScenarioFinding(
        **{
            **plain,
            "throughput": _made(Figure, plain.get("throughput")),
            "times": {name: _times(times) for name, times in plain.get("times", {}).items()},
            "breach": _made(Breach, plain.get("breach")),
            "judgements": tuple(Judgement(**one) for one in plain.get("judgements", ())),
            "resources": _resources(plain.get("resources")),
            "moments": tuple(Moment(**one) for one in plain.get("moments", ())),
            "warnings": tuple(plain.get("warnings", ())),
            "correctness": _correctness(plain.get("correctness")),
        }
    )


def _made(kind: Any, stored: Mapping[str, Any] | None) -> Any:
    return None if stored is None else kind(**stored)


def _correctness(stored: Mapping[str, Any] | None) -> Correctness | None:
    if stored is None:
        return None
    figures = {name: _made(Figure, stored[name]) for name in ("score", "calm", "change")}
    return Correctness(**{**stored, **figures})


def _times(stored: Mapping[str, Any]) -> Distribution:
    ends = {name: (float(low), float(high)) for name, (low, high) in stored["intervals"].items()}
    return Distribution(**{**stored, "intervals": ends})


def _resources(stored: Mapping[str, Any] | None) -> Resources | None:
    if stored is None:
        return None
    return Resources(stored["process"], tuple(Sample(**one) for one in stored["samples"]))
