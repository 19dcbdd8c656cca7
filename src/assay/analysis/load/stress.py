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
    compute_sustained_share,
    recovering,
    resilience,
    scenario_score,
    worth,
)
from assay.stats.verdicts import wilson
from assay.units import count, percent, seconds, significant, size

_LONGEST_WORDS = 160
_SLOW_RECOVERY = 0.1
"""Recoveries longer than this share of the scenario's time are reported."""
_FELT_RECOVERY = 1.0
_USUAL_START = 5.0


def score_of(finding: ScenarioFinding) -> ScenarioScore:
    """Score one scenario. The interval is Wilson's for the answered share; the other two factors are single observations."""
    share = min(1.0, finding.good / finding.offered) if finding.offered else 0.0
    judged = finding.completed if finding.correctness is None else finding.correctness.scored
    low, high = wilson(share, worth(finding.offered, finding.completed, judged))
    sustained = compute_sustained_share(finding.is_broken, finding.load_borne, finding.load_asked)
    criteria = [
        judgement.is_fine
        for judgement in finding.judgements
        if judgement.is_criterion and judgement.is_fine is not None
    ]
    faults = len(criteria) - sum(criteria)
    back = 0.0 if finding.is_dead else recovering(finding.recovery, finding.seconds, faults)
    return ScenarioScore(
        finding.scenario,
        share,
        sustained,
        back,
        scenario_score(share, sustained, back),
        scenario_score(min(low, share), sustained, back),
        scenario_score(max(high, share), sustained, back),
        sum(criteria),
        len(criteria),
    )


def stress_finding(
    target: str, setting: Mapping[str, Any], scenarios: Sequence[ScenarioFinding]
) -> StressFinding:
    """`setting` is what was known at the base rate: `base`, `base_text`, `objective`, `warnings`, `judged_by`, `calm_score`,
    `calm_errors`, `calm_latency`."""
    scores = tuple(score_of(scenario) for scenario in scenarios if not scenario.skipped)
    calm = from_plain(CalmErrors, setting.get("calm_errors") or {})
    value = resilience(score.value for score in scores)
    low = resilience(score.low for score in scores)
    high = resilience(score.high for score in scores)
    # An agent that collapses under more still handles the base rate when less is let in, unless it broke at that rate.
    is_base_broken = any(
        scenario.scenario == "sustained_load" and scenario.is_broken for scenario in scenarios
    )
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
        (*_describe_calm_errors(calm), *_recommendations(scenarios, scores, safe_rate)),
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


def format_sustained_load(sustained: float, requested: float, unit: str) -> str:
    """
    >>> format_sustained_load(105.0, 518.0, "requests/s")
    '105 of 518 requests/s'
    """
    return f"{size(sustained) if unit == 'bytes' else significant(sustained)} of {amount(requested, unit)}"


def _limits(scenarios: Sequence[ScenarioFinding]) -> Iterable[str]:
    """How far it goes, of each scenario that found a limit; those that found none in one line."""
    tested = [scenario for scenario in scenarios if not scenario.skipped and scenario.load_asked]
    for scenario in tested:
        sustained = format_sustained_load(scenario.load_borne, scenario.load_asked, scenario.unit)
        if scenario.is_broken and scenario.breach is not None:
            yield f"{scenario.scenario}: {sustained} sustained; the agent broke {breach_text(scenario.breach)}."
        elif scenario.breach is not None and scenario.breach.is_in_calm:
            yield f"{scenario.scenario}: no load limit was found; the agent fails as often at the base rate ({scenario.breach.why})."
        elif scenario.breach is not None and scenario.breach.cause == "in_flight":
            yield f"{scenario.scenario}: unknown beyond {sustained}: {scenario.breach.why}."
        elif scenario.breach is not None:
            yield f"{scenario.scenario}: unknown, because this machine could not generate {amount(scenario.load_asked, scenario.unit)}."
        yield from (
            f"{scenario.scenario}: {judgement.text}."
            for judgement in scenario.judgements
            if judgement.name in _SCALING
        )
    unbroken = [
        f"{scenario.scenario} ({amount(scenario.load_asked, scenario.unit)})"
        for scenario in tested
        if scenario.breach is None
    ]
    if unbroken:
        yield f"The agent handled every load offered; its limits are above: {', '.join(unbroken)}."


_SCALING = ("knee", "growth_exponent", "largest_accepted", "smallest_memory")


def _recommendations(
    scenarios: Sequence[ScenarioFinding], scores: Sequence[ScenarioScore], safe_rate: float = 0.0
) -> Iterable[str]:
    """The worst first; each with the figures that it follows from."""
    by_name = {score.scenario: score for score in scores}
    tested = [scenario for scenario in scenarios if not scenario.skipped]
    for scenario in sorted(tested, key=lambda finding: by_name[finding.scenario].value):
        if scenario.is_broken:
            yield _describe_breach(scenario, safe_rate)
        if scenario.recovery is not None and scenario.recovery > _felt_recovery(scenario):
            yield _describe_recovery(scenario)
        yield from (
            f"{scenario.scenario}: {judgement.text}. {_ADVICE[judgement.name]}"
            for judgement in scenario.judgements
            if judgement.is_fine is False and judgement.name in _ADVICE
        )


def _felt_recovery(scenario: ScenarioFinding) -> float:
    """Seconds of recovery from which on it is worth a word; a program that was killed has to start first."""
    start = _USUAL_START if scenario.unit == "kills" else 0.0
    return max(_SLOW_RECOVERY * scenario.seconds, _FELT_RECOVERY, start)


_ADVICE = {
    "latency_drift": "Look for things that grow over time: caches, logs, connections that are never closed.",
    "memory_drift": "Memory that only grows ends in a crash: profile its allocations before running it for days.",
    "late_errors": "Late errors suggest that a resource runs out; compare its resources at both ends.",
    "fairness": "Serve requests in order of arrival, so that none starves.",
    "refusal": "Reject oversized requests before working on them (a server: with a 413), so that none is dropped halfway.",
    "graceful": "When memory runs out, reject the request instead of crashing.",
    "obeys_retry_after": "Before retrying, wait at least as long as Retry-After says.",
    "all_finished": "Allow more retries, or wait longer between them, so that a throttled upstream loses no work.",
    "storm": "Send fewer retries: back off after each refusal, and limit the requests in flight.",
    "lost": "Give each call its own timeout, and retry calls that ended without an answer.",
    "doubled": "Give each request an id and answer a repeated one from the first result.",
    "quality": "Find out what truncates answers under load: timeouts, smaller budgets, fallbacks, shared state.",
    "growth_exponent": "Work grows faster than the input: look for passes over the whole input inside a loop.",
}


def _describe_calm_errors(calm: CalmErrors) -> Iterable[str]:
    """Failures at the base rate are not caused by load, so they are reported first, in the agent's own words."""
    if not calm.failed:
        return
    low, high = wilson(calm.rate, calm.ended)
    sentence = f"{percent(calm.rate)} [{percent(low)}, {percent(high)}] of {count(calm.ended)} requests failed at the base rate"
    cause = f": {first_words(calm.details)}" if calm.details else f" ({', '.join(calm.kinds)})"
    yield f"{sentence}{cause}. This does not depend on load: fix it first."


def first_words(details: Sequence[ErrorDetail]) -> str:
    """The most frequent failure in one line."""
    first = details[0]
    where = f" ({first.place})" if first.place else ""
    log_lines = first.stderr.strip().splitlines()
    log = f"; its log ends: {log_lines[-1].strip()[:_LONGEST_WORDS]}" if log_lines else ""
    return f"{first.message.splitlines()[0][:_LONGEST_WORDS]}{where}{log}"


def _describe_breach(scenario: ScenarioFinding, safe_rate: float) -> str:
    assert scenario.breach is not None
    sustained = max(scenario.load_borne, safe_rate if scenario.unit == "requests/s" else 0.0)
    sustained_text, requested_text = (
        amount(sustained, scenario.unit),
        amount(scenario.load_asked, scenario.unit),
    )
    reason = (
        f" ({first_words(scenario.details)})"
        if scenario.details and scenario.breach.cause == "errors"
        else ""
    )
    sentence = f"{scenario.scenario}: {scenario.breach.why} at {amount(scenario.breach.load, scenario.breach.unit)}{reason}."
    if scenario.unit not in ("requests/s", "at a time"):
        share = percent(scenario.load_borne / scenario.load_asked) if scenario.load_asked else "none"
        if scenario.unit != "bytes":
            # What to do about faults around it, their own findings say.
            return f"{sentence} The agent handled {sustained_text} of {requested_text} ({share})."
        return f"{sentence} Only {sustained_text} of {requested_text} ({share}) was sustained: reject anything larger before working on it."
    if sustained <= 0:
        return f"{sentence} No load was sustained: fix that first."
    if scenario.breach.cause == "errors":
        return f"{sentence} Admit at most {sustained_text} and refuse the rest early with a 429, or add {_instances(scenario, sustained)} for {requested_text}."
    return f"{sentence} Admit at most {sustained_text} and keep queues short, or add {_instances(scenario, sustained)} for {requested_text}."


def _instances(scenario: ScenarioFinding, sustained: float) -> str:
    more = max(1, -(-scenario.load_asked // sustained) - 1)
    return f"{count(more)} instance{'s' if more != 1 else ''} of the same size"


def _describe_recovery(scenario: ScenarioFinding) -> str:
    assert scenario.recovery is not None
    duration = seconds(scenario.recovery)
    if scenario.is_dead:
        return f"{scenario.scenario}: the agent answered nothing in the {duration} after the pressure ended. Run it under a supervisor that restarts it."
    if not scenario.is_recovered:
        return f"{scenario.scenario}: the agent had not recovered {duration} after the load ended. Drop queued requests whose callers have given up."
    if scenario.unit == "kills":
        return f"{scenario.scenario}: the agent took {duration} to answer again. Do less before the first request, or keep a spare process."
    part = percent(scenario.recovery / scenario.seconds)
    return f"{scenario.scenario}: the agent took {duration} to recover, {part} of the scenario's time. Shorten queues, so that fewer requests wait when the pressure ends."


def stress_findings(trials: Iterable[TrialReport]) -> StressFinding | None:
    """Rebuild the finding of a stored stress test from the outputs of its executions.

    None if no trial belongs to a stress test.
    """
    reports = list(trials)
    if not reports:
        return None
    outputs = [
        execution.output
        for trial in reports
        for execution in trial.executions
        if isinstance(execution.output, Mapping)
    ]
    found = [scenario_of(output["scenario"]) for output in outputs if "scenario" in output]
    setting: Mapping[str, Any] = next((output["setting"] for output in outputs if "setting" in output), {})
    return stress_finding(reports[0].stored.trial.agent.name, setting, found)


def drop_estimate_doubts(trial: TrialReport) -> TrialReport:
    """A scenario is one execution by its nature: that there is only one is no news, and its own intervals are in its finding."""
    return replace(trial, estimates=tuple(replace(estimate, doubts=()) for estimate in trial.estimates))


def scenario_of(stored: Mapping[str, Any]) -> ScenarioFinding:
    """Rebuild what a scenario found from the plain data that its execution holds."""
    times = {name: _times(written) for name, written in stored.get("times", {}).items()}
    return from_plain(ScenarioFinding, {**stored, "times": times})


def _times(stored: Mapping[str, Any]) -> Distribution:
    intervals = {name: ends for name, ends in stored["intervals"].items() if ends}
    return from_plain(Distribution, {**stored, "intervals": intervals})
