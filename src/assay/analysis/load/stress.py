"""The analysis of a stress test: recovery, resilience, limits, and advice.

Each scenario is scored by three factors; the resilience of the agent is computed from the scores of all scenarios. Every piece
of advice names the figures that it follows from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from assay.model import TrialReport
from assay.model.codec import from_plain
from assay.model.figure import Figure
from assay.model.load import Distribution
from assay.model.stress import (
    Breach,
    CalmErrors,
    ErrorDetail,
    ScenarioFinding,
    ScenarioScore,
    StressFinding,
)
from assay.stats.resilience import (
    bearing,
    recovering,
    resilience,
    scenario_score,
    worth,
)
from assay.stats.verdicts import wilson
from assay.units import count, percent, seconds, significant, size

_LONGEST_WORDS = 160
_SLOW_RECOVERY = 0.1
"""Of the scenario's time: a recovery that takes longer is worth a word."""
_FELT_RECOVERY = 1.0
_USUAL_START = 5.0


def score_of(finding: ScenarioFinding) -> ScenarioScore:
    """The interval is that of the share, by Wilson; the other two factors were seen once."""
    share = min(1.0, finding.good / finding.offered) if finding.offered else 0.0
    judged = finding.completed if finding.correctness is None else finding.correctness.scored
    low, high = wilson(share, worth(finding.offered, finding.completed, judged))
    borne = bearing(finding.is_broken, finding.load_borne, finding.load_asked)
    criteria = [one.is_fine for one in finding.judgements if one.is_criterion and one.is_fine is not None]
    faults = len(criteria) - sum(criteria)
    back = 0.0 if finding.is_dead else recovering(finding.recovery, finding.seconds, faults)
    return ScenarioScore(
        finding.scenario,
        share,
        borne,
        back,
        scenario_score(share, borne, back),
        scenario_score(min(low, share), borne, back),
        scenario_score(max(high, share), borne, back),
        sum(criteria),
        len(criteria),
    )


def stress_finding(
    target: str, setting: Mapping[str, Any], scenarios: Sequence[ScenarioFinding]
) -> StressFinding:
    """`setting` is what was known at the base rate: `base`, `base_text`, `objective`, `warnings`, `judged_by`, `calm_score`,
    `calm_errors`, `calm_latency`."""
    scores = tuple(score_of(one) for one in scenarios if not one.skipped)
    calm = from_plain(CalmErrors, setting.get("calm_errors") or {})
    value = resilience(score.value for score in scores)
    low = resilience(score.low for score in scores)
    high = resilience(score.high for score in scores)
    # An agent that collapses under more still handles the base rate when less is let in, unless it broke at that rate.
    is_base_broken = any(one.scenario == "sustained_load" and one.is_broken for one in scenarios)
    safe_rate = 0.0 if is_base_broken else float(setting.get("base") or 0.0)
    return StressFinding(
        target,
        setting.get("base"),
        str(setting.get("base_text", "")),
        str(setting.get("objective", "")),
        tuple(scenarios),
        scores,
        None if value is None else Figure(value, low, high),
        tuple(_limits(scenarios)),
        (*_about_calm(calm), *_recommendations(scenarios, scores, safe_rate)),
        tuple(map(str, setting.get("warnings", ()))),
        str(setting.get("judged_by", "")),
        from_plain(Figure, setting["calm_score"]) if setting.get("calm_score") else None,
        calm,
        _times(setting["calm_latency"]) if setting.get("calm_latency") else None,
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


def format_load_borne(borne: float, asked: float, unit: str) -> str:
    """
    >>> format_load_borne(105.0, 518.0, "requests/s")
    '105 of 518 requests/s'
    """
    return f"{size(borne) if unit == 'bytes' else significant(borne)} of {amount(asked, unit)}"


def _limits(scenarios: Sequence[ScenarioFinding]) -> Iterable[str]:
    """How far it goes, of each scenario that found a limit; those that found none in one line."""
    done = [one for one in scenarios if not one.skipped and one.load_asked]
    for one in done:
        borne = format_load_borne(one.load_borne, one.load_asked, one.unit)
        if one.is_broken and one.breach is not None:
            yield f"{one.scenario}: {borne} sustained; it broke {breach_text(one.breach)}."
        elif one.breach is not None and one.breach.is_in_calm:
            yield f"{one.scenario}: no limit by load was found; it fails as at the base rate ({one.breach.why})."
        elif one.breach is not None and one.breach.cause == "in_flight":
            yield f"{one.scenario}: not known beyond {borne}: {one.breach.why}."
        elif one.breach is not None:
            yield f"{one.scenario}: not known, as this machine could not generate {amount(one.load_asked, one.unit)}."
        yield from (f"{one.scenario}: {told.text}." for told in one.judgements if told.name in _SCALING)
    unbroken = [f"{one.scenario} ({amount(one.load_asked, one.unit)})" for one in done if one.breach is None]
    if unbroken:
        yield f"Everything offered was sustained, so the limits are higher: {', '.join(unbroken)}."


_SCALING = ("knee", "growth_exponent", "largest_accepted", "smallest_memory")


def _recommendations(
    scenarios: Sequence[ScenarioFinding], scores: Sequence[ScenarioScore], safe_rate: float = 0.0
) -> Iterable[str]:
    """The worst first; each with the figures that it follows from."""
    by_name = {score.scenario: score for score in scores}
    done = [one for one in scenarios if not one.skipped]
    for one in sorted(done, key=lambda finding: by_name[finding.scenario].value):
        if one.is_broken:
            yield _about_breach(one, safe_rate)
        if one.recovery is not None and one.recovery > _felt_recovery(one):
            yield _about_recovery(one)
        yield from (
            f"{one.scenario}: {told.text}. {_ADVICE[told.name]}"
            for told in one.judgements
            if told.is_fine is False and told.name in _ADVICE
        )


def _felt_recovery(one: ScenarioFinding) -> float:
    """Seconds of recovery from which on it is worth a word; a program that was killed has to start first."""
    start = _USUAL_START if one.unit == "kills" else 0.0
    return max(_SLOW_RECOVERY * one.seconds, _FELT_RECOVERY, start)


_ADVICE = {
    "latency_drift": "Look for what grows with time: caches, logs, connections that are never closed.",
    "memory_drift": "Memory that only grows ends in a crash: profile its allocations before running it for days.",
    "late_errors": "Errors that come late point to something that runs out; compare its resources at both ends.",
    "fairness": "Serve requests in the order of arrival, so that none starves.",
    "refusal": "Refuse what is too large before work on it begins (a server: with a 413), so that nothing is dropped half way.",
    "graceful": "Catch the lack of memory and refuse the request instead of ending the process.",
    "obeys_retry_after": "Wait at least as long as Retry-After says before trying again.",
    "all_finished": "Allow more retries, or wait longer between them, so that a throttled upstream loses no work.",
    "storm": "Send fewer retries: back off after each refusal and limit how many requests are under way.",
    "lost": "Give each call a time limit of its own, and try again what ended without an answer.",
    "doubled": "Give each request an id and answer a repeated one from the first result.",
    "quality": "Look for what cuts answers short when it is busy: time limits, smaller budgets, fall-backs, state that is shared.",
    "growth_exponent": "Work that grows faster than its input: look for passes over all of it within a loop.",
}


def _about_calm(calm: CalmErrors) -> Iterable[str]:
    """What fails at the base rate is no matter of load: it is told first, in the agent's own words."""
    if not calm.failed:
        return
    low, high = wilson(calm.rate, calm.ended)
    told = f"{percent(calm.rate)} [{percent(low)}, {percent(high)}] of {count(calm.ended)} requests failed at the base rate"
    said = f": {first_words(calm.details)}" if calm.details else f" ({', '.join(calm.kinds)})"
    yield f"{told}{said}. This does not depend on load: fix it first."


def first_words(details: Sequence[ErrorDetail]) -> str:
    """The most frequent failure in one line."""
    one = details[0]
    where = f" ({one.place})" if one.place else ""
    said = one.stderr.strip().splitlines()
    log = f"; its log ends: {said[-1].strip()[:_LONGEST_WORDS]}" if said else ""
    return f"{one.message.splitlines()[0][:_LONGEST_WORDS]}{where}{log}"


def _about_breach(one: ScenarioFinding, safe_rate: float) -> str:
    assert one.breach is not None
    sustained = max(one.load_borne, safe_rate if one.unit == "requests/s" else 0.0)
    borne, asked = amount(sustained, one.unit), amount(one.load_asked, one.unit)
    said = f" ({first_words(one.details)})" if one.details and one.breach.cause == "errors" else ""
    told = f"{one.scenario}: {one.breach.why} at {amount(one.breach.load, one.breach.unit)}{said}."
    if one.unit not in ("requests/s", "at a time"):
        share = percent(one.load_borne / one.load_asked) if one.load_asked else "none"
        if one.unit != "bytes":
            # What to do about faults around it, their own findings say.
            return f"{told} It came through {borne} of {asked} ({share})."
        return f"{told} Only {borne} of {asked} ({share}) was sustained: refuse what goes beyond it before work on it begins."
    if sustained <= 0:
        return f"{told} Nothing was sustained: fix that before anything else."
    if one.breach.cause == "errors":
        return f"{told} Admit at most {borne} and refuse the rest early with a 429, or add {_instances(one, sustained)} for {asked}."
    return f"{told} Admit at most {borne} and keep queues short, or add {_instances(one, sustained)} for {asked}."


def _instances(one: ScenarioFinding, sustained: float) -> str:
    more = max(1, -(-one.load_asked // sustained) - 1)
    return f"{count(more)} instance{'s' if more != 1 else ''} of the same size"


def _about_recovery(one: ScenarioFinding) -> str:
    assert one.recovery is not None
    took = seconds(one.recovery)
    if one.is_dead:
        return f"{one.scenario}: it answered nothing in the {took} after the pressure. Have something watch it and start it again."
    if not one.is_recovered:
        return f"{one.scenario}: {took} after the load it had not recovered. Drop queued work whose caller has given up."
    if one.unit == "kills":
        return f"{one.scenario}: it took {took} until it answered again. Do less before the first request, or keep a spare process."
    part = percent(one.recovery / one.seconds)
    return f"{one.scenario}: it took {took} to recover, {part} of the scenario's time. Shorten queues, so that less waits when the pressure ends."


def stress_findings(trials: Iterable[TrialReport]) -> StressFinding | None:
    """Of a stored run: read back from the outputs of its executions."""
    mine = list(trials)
    if not mine:
        return None
    told = [one.output for trial in mine for one in trial.executions if isinstance(one.output, Mapping)]
    found = [scenario_of(output["scenario"]) for output in told if "scenario" in output]
    setting: Mapping[str, Any] = next((output["setting"] for output in told if "setting" in output), {})
    return stress_finding(mine[0].stored.trial.agent.name, setting, found)


def drop_estimate_doubts(trial: TrialReport) -> TrialReport:
    """A scenario is one execution by its nature: that there is only one is no news, and its own intervals are in its finding."""
    return replace(trial, estimates=tuple(replace(one, doubts=()) for one in trial.estimates))


def scenario_of(stored: Mapping[str, Any]) -> ScenarioFinding:
    """From the plain data that an execution of it holds."""
    times = {name: _times(written) for name, written in stored.get("times", {}).items()}
    return from_plain(ScenarioFinding, {**stored, "times": times})


def _times(stored: Mapping[str, Any]) -> Distribution:
    intervals = {name: ends for name, ends in stored["intervals"].items() if ends}
    return from_plain(Distribution, {**stored, "intervals": intervals})
