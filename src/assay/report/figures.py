"""Figures, names and sentences as every format writes them.

An estimate, an interval or the state of a run reads the same in the terminal, in Markdown, in HTML and in JUnit because all of
them call these functions. Values come in seconds, bytes and usd; a unit that suits their size is chosen here and nowhere else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from assay.model import (
    AxisEffect,
    BestPoint,
    Doubt,
    Environment,
    Estimate,
    Execution,
    Question,
    Report,
    Ruling,
    Run,
    RunState,
    TrialReport,
    metric_named,
)
from assay.model.execution import BETWEEN_NODES
from assay.model.metric import is_score
from assay.plugin.figures import NOTHING as NOTHING
from assay.plugin.figures import UnitScale as UnitScale
from assay.plugin.figures import cv_text as cv_text
from assay.plugin.figures import interval_text as interval_text
from assay.plugin.figures import ratio_text as ratio_text
from assay.plugin.figures import scale_for as scale_for
from assay.plugin.figures import size_text as size_text
from assay.plugin.figures import with_interval as with_interval
from assay.units import (
    count,
    format_count,
    percent,
    show,
    significant,
    size,
    usd,
)


def percentile_text(estimate: Estimate, name: str) -> str:
    """A percentile, or a dash where there is not enough data for it."""
    if name in estimate.insufficient:
        return NOTHING
    return show(float(getattr(estimate, name)), estimate.metric.unit)


def tail_text(estimate: Estimate, name: str) -> str:
    """A percentile with its interval, where it has one: `12.3 ms [11.9, 12.8]`."""
    ends = estimate.tails.get(name)
    if ends is None or name in estimate.insufficient:
        return percentile_text(estimate, name)
    return interval_text(float(getattr(estimate, name)), *ends, estimate.metric.unit)


def mean_text(estimate: Estimate) -> str:
    """The mean, of scores with its interval."""
    return interval_text(estimate.mean, estimate.mean_low, estimate.mean_high, estimate.metric.unit)


def total(trial: TrialReport) -> int:
    return sum(trial.counts.values())


def ok_text(trial: TrialReport) -> str:
    return f"{trial.ok:,}/{total(trial):,}"


def leading(trial: TrialReport) -> Estimate | None:
    """The estimate that a trial is known by: what its benchmark leads with, else its time or throughput, else its first."""
    # The same choice in every format, so that a trial has the same headline figure everywhere.
    by_name = {estimate.metric.name: estimate for estimate in trial.estimates}
    wanted = (by_name[name] for name in (*trial.leads, "seconds", "throughput_rps") if name in by_name)
    return next(wanted, None) or next(iter(trial.estimates), None)


def others(trial: TrialReport) -> list[Estimate]:
    first = leading(trial)
    return [estimate for estimate in trial.estimates if estimate is not first]


def doubts_of(report: Report) -> list[Doubt]:
    """Every doubt once; those of the environment count for the whole run."""
    messages = {doubt.message for doubt in report.doubts}
    environment = [
        Doubt("environment", text) for text in report.run.environment.doubts if text not in messages
    ]
    return [*report.doubts, *environment, *_sandbox_doubts(report.run.environment)]


def _sandbox_doubts(environment: Environment) -> list[Doubt]:
    if "none" not in str(environment.facts.get("sandbox") or "").split(", "):
        return []
    message = (
        "Model-written code or commands ran without a sandbox (--sandbox none): they could read and change anything this user can, "
        "and forge their scores."
    )
    return [
        Doubt(
            "sandbox",
            message,
            "Install bubblewrap and run again, or rescore the outputs: assay rescore RUN",
        )
    ]


def general_doubts(report: Report) -> list[Doubt]:
    """Doubts that concern no single trial or finding of this report."""
    names = {trial.name for trial in report.trials}
    names |= {doubt.trial or "" for finding in report.findings.values() for doubt in finding.doubts()}
    return [doubt for doubt in doubts_of(report) if doubt.trial not in names]


def trial_doubts(report: Report, trial: TrialReport) -> list[Doubt]:
    return [doubt for doubt in report.doubts if doubt.trial == trial.name]


def estimate_doubts(trial: TrialReport) -> list[str]:
    """Doubts about single estimates, each said once with the metrics that it holds for."""
    metrics: dict[str, list[str]] = {}
    for estimate in trial.estimates:
        for text in estimate.doubts:
            metrics.setdefault(text, []).append(estimate.metric.name)
    return [f"{_format_metric_names(names, len(trial.estimates))}: {text}" for text, names in metrics.items()]


def _format_metric_names(names: list[str], of: int) -> str:
    if len(names) == of > 1:
        return f"all {of} metrics"
    return (
        ", ".join(names) if len(names) <= 3 else f"{', '.join(names[:2])} and {len(names) - 2} other metrics"
    )


def standing(effect: AxisEffect, value: object) -> str:
    """`best` or `worst` among the values of an axis; nothing where they do not differ or do different work."""
    if effect.is_workload or len(set(effect.medians)) < 2 or effect.best == effect.worst:
        return ""
    return "best" if value == effect.best else "worst" if value == effect.worst else ""


def effect_text(effect: AxisEffect) -> str:
    """How far best and worst value of an axis are apart, how much of all variation that is, and on what it depends.

    Nothing where all values do the same.
    """
    parts = []
    if len(set(effect.medians)) < 2:
        return ""
    if effect.effect is not None and effect.best != effect.worst:
        parts.append(f"{_fact(effect.worst)} against {_fact(effect.best)}: {_span_text(effect)}")
    if effect.share is not None:
        parts.append(f"explains {percent(effect.share)} of the variation")
    if effect.interacts:
        conclusion = "" if effect.is_workload else ", so no single value is best"
        parts.append(f"depends on {', '.join(effect.interacts)}{conclusion}")
    return "; ".join(parts)


def _span_text(effect: AxisEffect) -> str:
    ends = [end for end in (effect.effect, effect.effect_low, effect.effect_high) if end is not None]
    texts = [f"{show(end, '')}×" if effect.is_ratio else show(end, effect.metric.unit) for end in ends]
    return texts[0] if len(texts) < 3 else f"{texts[0]} [{texts[1]}, {texts[2]}]"


def _fact(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def best_text(point: BestPoint) -> str:
    """The best point of a sweep, honestly: with those that may be as good."""
    if len(point.alike) == point.others:
        return f"{point.metric.name}: '{point.trial}' has the best median, but no other point is significantly worse"
    if not point.alike:
        others = f"all {point.others} others" if point.others > 1 else "the other"
        return f"{point.metric.name}: '{point.trial}' is best, significantly ahead of {others}"
    names = ", ".join(f"'{name}'" for name in point.alike[:3])
    more = f" and {len(point.alike) - 3} more" if len(point.alike) > 3 else ""
    return f"{point.metric.name}: '{point.trial}' has the best median; not clearly different from it: {names}{more}"


def agents_text(report: Report) -> str:
    """Every agent once, with its version."""
    agents = dict.fromkeys(trial.stored.trial.agent for trial in report.trials)
    return ", ".join(f"{agent.name} {agent.version}".strip() for agent in agents)


def suite_text(run: Run) -> str:
    """Which suite it was, down to the hash of its definition; nothing for a run without one."""
    suite = run.suite
    if suite is None:
        return ""
    parts = (f"suite {suite.name} {suite.version}".strip(), suite.category, f"definition {suite.hash[:12]}")
    return " · ".join(part for part in parts if part.strip() != "definition")


def question_text(report: Report) -> str:
    """How the question that ends a run was decided, or its state during the run; nothing for other runs."""
    question = report.run.question
    if question is None:
        return ""
    first, second = question.arms
    ruling = question.ruling
    if ruling is None:
        return (
            f"The run ends as soon as it is clear whether {second} is better than {first} by {question.metric}, "
            f"after at most {format_count(question.max, 'pair')}."
        )
    after = f"after {count(ruling.pairs)} of at most {count(question.max)} pairs"
    omitted = f" ({format_count(ruling.left_out, 'pair')} left out)" if ruling.left_out else ""
    effect = f"{_format_effect(question, ruling)}{omitted}"
    if not ruling.pairs:
        names = dict.fromkeys(e.metric.name for trial in report.trials for e in trial.estimates)
        return f"Not decided: no pair has '{question.metric}' on both sides; they have {', '.join(names) or 'nothing'}."
    if ruling.decision == "open":
        return f"Not decided {after}: {second} against {first}, {effect}."
    verdict = ruling_verdict(report)
    within, than = "", "than"
    if verdict == "same":
        is_points = is_score(metric_named(question.metric))
        within = f" within {(significant if is_points else percent)(question.tolerance)}"
        than = "as"
    return f"Decided {after}: {second} is {verdict} {than} {first} by {question.metric}{within}, {effect}."


def ruling_verdict(report: Report) -> str | None:
    """better, worse or same, of the second arm; higher or lower where it is unknown which is good; unsure if undecided."""
    question = report.run.question
    if question is None or question.ruling is None:
        return None
    decision = question.ruling.decision
    if decision in ("same", "open"):
        return "same" if decision == "same" else "unsure"
    metrics = [
        e.metric for trial in report.trials for e in trial.estimates if e.metric.name == question.metric
    ]
    good = (metrics[0] if metrics else metric_named(question.metric)).better
    return decision if good == "unknown" else "better" if good == decision else "worse"


def _format_effect(question: Question, ruling: Ruling) -> str:
    if ruling.effect is None:
        return "without an interval yet"
    if is_score(metric_named(question.metric)):
        ends = f"{ruling.low:+.3f}, {ruling.high:+.3f}"
        return f"difference {ruling.effect:+.3f} [{ends}]"
    return f"ratio {interval_text(ruling.effect, ruling.low, ruling.high, '')}"


def budget_text(run: Run) -> str:
    budget = run.budget
    ceilings = [
        *([usd(budget.usd)] if budget.usd is not None else []),
        *([f"{count(budget.tokens)} tokens"] if budget.tokens is not None else []),
    ]
    return f"budget {' and '.join(ceilings)}" if ceilings else ""


def state_text(state: RunState) -> str:
    return state.value.replace("_", " ")


def params_text(params: Mapping[str, object]) -> str:
    """
    >>> params_text({"size": 10, "mode": "fast"})
    'size=10, mode=fast'
    """
    return ", ".join(f"{name}={value}" for name, value in params.items())


def format_moment(moment: datetime) -> str:
    """
    >>> format_moment(datetime(2026, 5, 4, 12, 30, tzinfo=UTC))
    '2026-05-04 12:30:00 UTC'
    """
    if moment.tzinfo is None:
        return moment.strftime("%Y-%m-%d %H:%M:%S")
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def format_scheduled_time(moment: datetime) -> str:
    """When a suite is due, in the time zone in which its schedule was read, so that it shows the schedule's own hour.

    >>> format_scheduled_time(datetime(2026, 5, 4, 3, 0, tzinfo=UTC))
    '2026-05-04 03:00 UTC'
    """
    return f"{moment:%Y-%m-%d %H:%M %Z}"


def compute_run_seconds(report: Report) -> float | None:
    """Seconds from start to end; None during the run, or where the clock was set back in between."""
    run = report.run
    return None if run.ended is None or run.ended < run.started else (run.ended - run.started).total_seconds()


def failure_text(execution: Execution) -> str:
    """Say in words where a failure happened."""
    place = f"case {execution.case}" if execution.case else f"process {execution.process}"
    status = execution.status.value.replace("_", " ")
    return f"{status} in {execution.phase.value} {place}, repetition {execution.repetition}"


def environment_line(environment: Environment) -> str:
    """The machine in one line: what a reader asks first."""
    facts = environment.facts
    cpu, memory, system, python = (
        part if isinstance(part := facts.get(name), Mapping) else {}
        for name in ("cpu", "memory", "os", "python")
    )
    cores = cpu.get("cores_logical")
    parts = [
        f"{cpu.get('model', '')}{f', {cores} cores' if cores else ''}",
        size(memory["total_bytes"]) if memory.get("total_bytes") else "",
        str(system.get("distribution") or system.get("system") or ""),
        f"{python.get('implementation', 'Python')} {python['version']}" if python.get("version") else "",
        str(facts.get("container") or facts.get("virtual_machine") or ""),
        f"sandbox: {facts['sandbox']}" if facts.get("sandbox") else "",
    ]
    vcs = environment.vcs
    if vcs.get("commit"):
        parts.append(f"commit {str(vcs['commit'])[:10]}{' (dirty)' if vcs.get('dirty') else ''}")
    return " · ".join(filter(None, parts))


def nodes_line(report: Report) -> str:
    """The nodes of a cluster in one line, by their kind of machine; empty for fewer than two."""
    kinds = Counter(node.kind or "unknown" for node in report.nodes if BETWEEN_NODES not in node.node)
    if kinds.total() < 2:
        return ""
    nodes = "; ".join(
        f"{number} × {kind}" if len(kinds) > 1 else kind for kind, number in kinds.most_common()
    )
    return f"Ran on {kinds.total()} nodes: {nodes}"


def first_lines(text: str | None, limit: int = 2000) -> str:
    """The beginning of a long text, saying how much was left out."""
    text = text or ""
    return text if len(text) <= limit else f"{text[:limit]}\n… {len(text) - limit:,} more characters"


def last_lines(text: str | None, limit: int = 2000) -> str:
    """The end of a long text, where a log usually tells most."""
    text = text or ""
    return text if len(text) <= limit else f"{len(text) - limit:,} characters before this …\n{text[-limit:]}"
