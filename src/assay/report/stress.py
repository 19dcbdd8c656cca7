"""Texts, figures and documents of a stress test, shared by all formats.

Nothing is judged here: `assay.analysis.load.stress` computes the scores, breaking points and advice, and this module turns them
into cells, sentences and JSON.
"""

from __future__ import annotations

from typing import Any

from assay.model.figure import format_span
from assay.model.load_document import interval_of, times_document
from assay.model.stress import (
    Breach,
    Correctness,
    ErrorDetail,
    LoadPoint,
    ScenarioFinding,
    ScenarioJudgement,
    ScenarioScore,
    StressFinding,
)
from assay.report.figures import NOTHING
from assay.stats.verdicts import wilson
from assay.units import count, format_count, percent, seconds, show, significant, size

_LOG_LINES = 5
_NEARLY_ONE = 0.9995
_TIMES = ("ttft", "latency")
NOT_JUDGED = "correctness not judged: give --dataset SUITE"
_IN_TIME, _QUALITY = "In time", "Quality"
_COLUMNS = ("Scenario", "Score", _IN_TIME, "Sustained", "P50", "P95", "Failed", "Recovery", "Broke")


def amount(value: float, unit: str) -> str:
    """
    >>> amount(12.0, "requests/s"), amount(2048.0, "bytes")
    ('12 requests/s', '2 KiB')
    """
    return size(value) if unit == "bytes" else f"{significant(value)} {unit}".strip()


def headline(finding: StressFinding) -> str:
    span = finding.resilience
    if span is None:
        return "No scenario ran, so there is no resilience score."
    left_out = [scenario.scenario for scenario in finding.scenarios if scenario.skipped]
    sentence = f"Resilience {format_span(span)} over {format_count(len(finding.scores), 'scenario')}"
    return f"{sentence}; skipped: {', '.join(left_out)}" if left_out else sentence


def setting_text(finding: StressFinding) -> str:
    """What the scenarios started from: the base rate, the objective, and by what answers were judged."""
    base = (
        ""
        if finding.base is None
        else f"Base {significant(finding.base)} requests/s ({finding.base_text}) · "
    )
    judged = NOT_JUDGED
    if finding.judged_by:
        calm = f", {format_span(finding.calm_score)} at the base rate" if finding.calm_score else ""
        judged = f"correctness judged by {finding.judged_by}{calm}"
    return f"{base}objective {finding.objective} · {judged}"


def columns(finding: StressFinding) -> tuple[str, ...]:
    """With a suite, how good answers were beside how many of them were right and in time."""
    if not finding.judged_by:
        return _COLUMNS
    place = _COLUMNS.index(_IN_TIME)
    return (*_COLUMNS[:place], "Right in time", _QUALITY, *_COLUMNS[place + 1 :])


def score_text(score: ScenarioScore) -> str:
    return f"{score.value:.3f} [{score.low:.3f}, {score.high:.3f}]"


def rows(finding: StressFinding) -> list[tuple[str, ...]]:
    """As `columns`, of each scenario that was executed."""
    by_name = {scenario.scenario: scenario for scenario in finding.scenarios}
    return [_row(by_name[score.scenario], score, bool(finding.judged_by)) for score in finding.scores]


def _row(found: ScenarioFinding, score: ScenarioScore, has_quality: bool) -> tuple[str, ...]:
    """One scenario as a row, in the order of `columns`."""
    latency, judged = found.times.get("latency"), found.correctness
    quality = NOTHING if judged is None or judged.score is None else format_span(judged.score)
    return (
        found.scenario,
        score_text(score),
        percent(score.share),
        *([quality] if has_quality else []),
        percent(min(1.0, found.load_borne / found.load_asked)) if found.load_asked else NOTHING,
        NOTHING if latency is None else seconds(latency.p50),
        NOTHING if latency is None else seconds(latency.p95),
        percent(found.error_rate) if found.errors else "0 %",
        recovery_text(found),
        breach_cause(found.breach),
    )


def recovery_text(found: ScenarioFinding) -> str:
    if found.recovery is None:
        return NOTHING
    if found.is_dead:
        return "never"
    if not found.is_recovered:
        return f"> {seconds(found.recovery)}"
    return seconds(found.recovery) if found.recovery else "at once"


def breach_cause(breach: Breach | None) -> str:
    if breach is None:
        return "no"
    if breach.is_in_calm:
        return "as at the base rate"
    return breach.cause if breach.is_theirs else "not known"


def breach_text(breach: Breach) -> str:
    if breach.is_in_calm:
        return f"failed, but no more often than at the base rate ({breach.cause}): {breach.why}"
    when = f"{seconds(breach.at)} in" if breach.at else "from the start"
    load_text = f"at {amount(breach.load, breach.unit)}, {when}"
    return (
        f"broke {load_text} ({breach.cause}): {breach.why}"
        if breach.is_theirs
        else f"{load_text}: {breach.why}"
    )


def judgement_text(judgement: ScenarioJudgement) -> str:
    """Return the text of a judgement, with its interval if it has one."""
    if judgement.low is None or judgement.high is None:
        return judgement.text
    return f"{judgement.text} [{show(judgement.low, judgement.unit)}, {show(judgement.high, judgement.unit)}]"


def resources_text(found: ScenarioFinding) -> str:
    used = found.resources
    if used is None:
        return ""
    return (
        f"{used.process}: at most {size(used.peak_memory_bytes)} of memory, "
        f"{significant(used.mean_cpu)} cores on average, {significant(used.peak_cpu)} at peak"
    )


def errors_text(found: ScenarioFinding) -> str:
    kinds = sorted(found.errors.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{kind} {count(n)}" for kind, n in kinds)


def arithmetic(score: ScenarioScore) -> str:
    """
    >>> arithmetic(ScenarioScore("sustained_load", 1.0, 1.0, 0.5, 0.5, 0.4, 0.5, 2, 3))
    'score 0.500 = 1.000 in time × 1.000 of the load × 0.500 for recovery (1 lasting fault)'
    """
    factors = (
        f"{score.share:.3f} in time × {score.sustained:.3f} of the load × {score.recovering:.3f} for recovery"
    )
    stay = f" ({format_count(score.faults, 'lasting fault')})" if score.faults else ""
    return f"score {score.value:.3f} = {factors}{stay}"


def detail_text(detail: ErrorDetail) -> str:
    """
    >>> detail_text(ErrorDetail("failed", "ValueError: no row 17", 12, 0.5, "agent.py:9"))
    'failed, 12 times: ValueError: no row 17 (agent.py:9)'
    """
    place = f" ({detail.place})" if detail.place else ""
    return f"{detail.kind}, {format_count(detail.count, 'time')}: {detail.message}{place}"


def stderr_text(detail: ErrorDetail) -> str:
    """The end of what the program wrote, as far as it fits a few lines."""
    return "\n".join(detail.stderr.strip().splitlines()[-_LOG_LINES:])


def calm_text(finding: StressFinding) -> str:
    """How it was before any pressure; "" where that is not known."""
    errors, latency = finding.calm_errors, finding.calm_latency
    if latency is None:
        return ""
    sentence = f"At the base rate: P50 {seconds(latency.p50)}, P95 {seconds(latency.p95)}"
    if not errors.ended:
        return sentence
    return f"{sentence}, {count(errors.failed)} of {format_count(errors.ended, 'request')} failed"


def notes(
    found: ScenarioFinding, score: ScenarioScore | None = None, *, with_details: bool = True
) -> list[tuple[str, str]]:
    """What there is to say of a scenario beneath its row: a mark and a line; `with_details`, what it said when it failed."""
    lines = []
    if score is not None and score.value < _NEARLY_ONE:
        lines.append(("·", arithmetic(score)))
    if found.load_asked:
        sustained = size(found.load_borne) if found.unit == "bytes" else significant(found.load_borne)
        lines.append(("·", f"{sustained} of {amount(found.load_asked, found.unit)} sustained"))
    if found.breach is not None:
        lines.append(("✗" if found.breach.is_by_pressure else "?", breach_text(found.breach)))
    marks = {True: "✓", False: "✗", None: "·"}
    lines += [(marks[judgement.is_fine], judgement_text(judgement)) for judgement in found.judgements]
    if found.errors:
        lines.append(("·", f"errors by kind: {errors_text(found)}"))
    for detail in found.details if with_details else ():
        lines.append(("✗", detail_text(detail)))
        if detail.stderr:
            lines.append(("·", f"its standard error ends: {' ⏎ '.join(stderr_text(detail).splitlines())}"))
    if found.resources is not None:
        lines.append(("·", resources_text(found)))
    return lines + [("!", text) for text in found.warnings]


def line(found: ScenarioFinding, score: ScenarioScore | None) -> str:
    """Sum up a finished scenario in one line, for users who wait for the test."""
    if found.skipped or score is None:
        return f"{found.scenario}: skipped, {found.skipped}"
    broke = f", broke ({found.breach.cause})" if found.breach is not None and found.is_broken else ""
    how = "answered on time" if found.correctness is None else "correct and on time"
    return f"{found.scenario}: score {significant(score.value)}, {percent(score.share)} {how}{broke}"


def stress_document(finding: StressFinding) -> dict[str, Any]:
    """A stress test as plain data; times in milliseconds, as their names say."""
    scores = {score.scenario: score for score in finding.scores}
    return {
        "target": finding.target,
        "resilience": finding.resilience.value if finding.resilience else None,
        "resilience_interval": interval_of(finding.resilience),
        "base_rate": finding.base,
        "base_from": finding.base_text,
        "objective": finding.objective,
        "correctness": {
            "judged": bool(finding.judged_by),
            "by": finding.judged_by or None,
            "calm_score": None if finding.calm_score is None else finding.calm_score.value,
            "calm_interval": interval_of(finding.calm_score),
            "note": "" if finding.judged_by else NOT_JUDGED,
        },
        "calm": _calm(finding),
        "simulated": finding.is_simulated,
        "scenarios": [
            scenario_document(scenario, scores.get(scenario.scenario)) for scenario in finding.scenarios
        ],
        "scaling_limits": list(finding.limits),
        "recommendations": list(finding.recommendations),
        "warnings": list(finding.warnings),
    }


def scenario_document(found: ScenarioFinding, score: ScenarioScore | None) -> dict[str, Any]:
    """One scenario as plain data. One that does not apply to the agent has the reason and nothing else."""
    if found.skipped or score is None:
        return {"scenario": found.scenario, "applies": False, "reason": found.skipped}
    return {
        "scenario": found.scenario,
        "applies": True,
        "parameters": dict(found.parameters),
        "score": score.value,
        "score_interval": [score.low, score.high],
        "share_good": score.share,
        "bearing": score.sustained,
        "recovery_factor": score.recovering,
        "criteria_met": score.criteria_met,
        "criteria_judged": score.criteria_judged,
        "faults": score.faults,
        "duration_s": found.seconds,
        "requests_offered": found.offered,
        "requests_good": found.good,
        "requests_in_time": found.good if found.in_time is None else found.in_time,
        "requests_completed": found.completed,
        "quality": _quality(found.correctness),
        "errors": dict(found.errors),
        "error_rate": found.error_rate,
        "error_details": [_detail(detail) for detail in found.details],
        "throughput_rps": found.throughput.value if found.throughput else None,
        "throughput_interval": interval_of(found.throughput),
        **{f"{name}_ms": times_document(found.times.get(name)) for name in _TIMES},
        "load_asked": found.load_asked,
        "load_borne": found.load_borne,
        "load_unit": found.unit,
        "broke": found.is_broken,
        "breaking_point": _breach(found.breach),
        "recovery_s": found.recovery,
        "recovered": found.is_recovered and not found.is_dead,
        "judgements": {judgement.name: _judgement(judgement) for judgement in found.judgements},
        "resources": _resources(found),
        "simulated": found.is_simulated,
        "warnings": list(found.warnings),
        "steps": [_point(point) for point in found.points],
        "bands": [
            {"label": band.label, "from_s": band.begin, "to_s": band.end, "fault": band.is_fault}
            for band in found.bands
        ],
        "over_time": [
            {
                "at_s": moment.begin,
                "seconds": moment.seconds,
                "sent": moment.sent,
                "completed": moment.completed,
                "failed": moment.failed,
                "latency_p50_ms": None if moment.latency_p50 is None else moment.latency_p50 * 1e3,
                "latency_p99_ms": None if moment.latency_p99 is None else moment.latency_p99 * 1e3,
            }
            for moment in found.moments
        ],
    }


def _calm(finding: StressFinding) -> dict[str, Any]:
    errors = finding.calm_errors
    ends = wilson(errors.rate, errors.ended) if errors.ended else None
    return {
        "requests": errors.ended,
        "failed": errors.failed,
        "error_rate": errors.rate,
        "error_rate_interval": None if ends is None else list(ends),
        "errors": dict(errors.kinds),
        "error_details": [_detail(detail) for detail in errors.details],
        "latency_ms": times_document(finding.calm_latency),
    }


def _detail(detail: ErrorDetail) -> dict[str, Any]:
    return {
        "kind": detail.kind,
        "message": detail.message,
        "count": detail.count,
        "first_at_s": detail.first_at,
        "place": detail.place or None,
        "exit_code": detail.exit_code,
        "stderr": detail.stderr or None,
    }


def _point(point: LoadPoint) -> dict[str, Any]:
    p50, p95 = point.latency_p50, point.latency_p95
    return {
        "load": point.load,
        "throughput_rps": point.throughput,
        "latency_p50_ms": None if p50 is None else p50 * 1e3,
        "latency_p95_ms": None if p95 is None else p95 * 1e3,
        "error_rate": point.error_rate,
        "broke": point.is_broken,
        "probe": point.is_probe,
    }


def _quality(judged: Correctness | None) -> dict[str, Any] | None:
    """Build the document of correctness; None if it was not judged."""
    if judged is None:
        return None
    figures = {"score": judged.score, "calm": judged.calm, "change": judged.change}
    values = {name: None if figure is None else figure.value for name, figure in figures.items()}
    ends = {f"{name}_interval": interval_of(figure) for name, figure in figures.items()}
    counts = {"scored": judged.scored, "unscored": judged.unscored, "right": judged.right}
    return {**values, **ends, **counts}


def _breach(breach: Breach | None) -> dict[str, Any] | None:
    if breach is None:
        return None
    return {
        "load": breach.load,
        "unit": breach.unit,
        "at_s": breach.at,
        "cause": breach.cause,
        "why": breach.why,
        "in_calm": breach.is_in_calm,
    }


def _judgement(judgement: ScenarioJudgement) -> dict[str, Any]:
    ends = None if judgement.low is None or judgement.high is None else [judgement.low, judgement.high]
    return {
        "text": judgement.text,
        "value": judgement.value,
        "interval": ends,
        "unit": judgement.unit,
        "fine": judgement.is_fine,
        "criterion": judgement.is_criterion,
    }


def _resources(found: ScenarioFinding) -> dict[str, Any] | None:
    used = found.resources
    if used is None:
        return None
    return {
        "process": used.process,
        "memory_peak_bytes": used.peak_memory_bytes,
        "cpu_mean_cores": used.mean_cpu,
        "cpu_peak_cores": used.peak_cpu,
        "over_time": [[sample.at, sample.cpu, sample.memory_bytes] for sample in used.samples],
    }
