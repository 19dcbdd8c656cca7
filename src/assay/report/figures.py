"""Figures, names and sentences as every format writes them.

An estimate, an interval or the state of a run reads the same in the terminal, in Markdown, in HTML and in JUnit because all of
them call these functions. Values come in seconds, bytes and usd; a unit that suits their size is chosen here and nowhere else.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from assay.model import (
    AxisEffect,
    BestPoint,
    Comparison,
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
from assay.units import (
    SIZES,
    TIMES,
    Steps,
    count,
    format_count,
    format_signed,
    percent,
    show,
    significant,
    size,
    step_for,
    usd,
)

NOTHING = "–"

_STEPS: Mapping[str, Steps] = {"s": TIMES, "bytes": SIZES, "share": ((0.01, "%"),)}
_LONG_TIMES: Steps = ((3600, "h"), (60, "min"))
_TURN = {"min": 600, "h": 3 * 3600}
"""Minutes and hours begin late, for 90 s is easier to read on an axis than 1.5 min."""


@dataclass(frozen=True, slots=True)
class UnitScale:
    """One shown unit for a whole chart or line: a value divided by `factor` is in `label`."""

    factor: float
    label: str

    def of(self, value: float) -> float:
        return value / self.factor


def scale_for(unit: str, magnitude: float) -> UnitScale:
    """
    >>> scale_for("s", 0.0123), scale_for("bytes", 5 * 2**20).label, scale_for("tokens", 7).label
    (UnitScale(factor=0.001, label='ms'), 'MiB', 'tokens')
    """
    steps = _STEPS.get(unit)
    if steps is None:
        return UnitScale(1.0, {"1/s": "per second", "usd": "USD"}.get(unit, unit))
    if not magnitude:
        return UnitScale(*next((step for step in steps if step[0] == 1), steps[-1]))
    long = [step for step in _LONG_TIMES if unit == "s" and abs(magnitude) >= _TURN[step[1]]]
    return UnitScale(*long[0]) if long else UnitScale(*step_for(magnitude, steps))


def with_interval(estimate: Estimate) -> str:
    """The median and its interval in one unit: `12.3 ms [11.9, 12.8]`."""
    return interval_text(estimate.median, estimate.low, estimate.high, estimate.metric.unit)


_FAR = 100


def interval_text(middle: float, low: float | None, high: float | None, unit: str) -> str:
    """
    >>> interval_text(0.0123, 0.0119, 0.0128, "s"), interval_text(100.2, 100.14, 100.31, "tokens")
    ('12.3 ms [11.9, 12.8]', '100.2 tokens [100.1, 100.3]')
    >>> interval_text(0.5, None, None, ""), interval_text(0.000882, -0.0000027, 0.139, "s")
    ('0.5', '0.882 ms [-0.0027, 139]')
    >>> interval_text(0.5, 0.45, 0.55, "share")
    '50 % [45, 55]'
    """
    if low is None or high is None or not math.isfinite(middle):
        return show(middle, unit)
    if unit == "s" and abs(middle) >= 60:
        return f"{show(middle, unit)} [{show(low, unit)}, {show(high, unit)}]"
    # All three numbers share one unit, so that they can be compared at a glance: 0.9 s [850 ms, 1.1 s] cannot.
    # Three digits, or as many as it takes to tell the ends of a narrow interval apart.
    digits = next((n for n in range(3, 7) if significant(low, n) != significant(high, n)), 3)
    largest = max(abs(low), abs(high))
    # In the unit of a middle that is close to 0, the ends would have many digits.
    magnitude = largest if not middle or largest > _FAR * abs(middle) else middle
    scale = scale_for(unit, magnitude) if unit in _STEPS else UnitScale(1.0, unit)
    texts = [significant(scale.of(value), digits) for value in (middle, low, high)]
    label = "/s" if unit == "1/s" else scale.label
    first = f"${texts[0]}" if unit == "usd" else f"{texts[0]} {label}".strip()
    return f"{first} [{texts[1]}, {texts[2]}]"


def ratio_text(comparison: Comparison) -> str:
    """
    The ratio B ÷ A with its interval: `1.08 [1.05, 1.12]`.
    """
    if comparison.difference is not None:
        ends = ", ".join(
            format_signed(end or 0.0) for end in (comparison.difference_low, comparison.difference_high)
        )
        return f"{format_signed(comparison.difference)} [{ends}]"
    if comparison.ratio is None:
        return NOTHING
    return interval_text(comparison.ratio, comparison.low, comparison.high, "")


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


def cv_text(estimate: Estimate) -> str:
    return NOTHING if estimate.cv is None else f"{significant(estimate.cv * 100, 2)} %"


def size_text(estimate: Estimate) -> str:
    """How much is behind an estimate: `500 / 10` is 500 executions in 10 units."""
    return f"{estimate.n:,} / {estimate.units:,}"


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
        "Commands or code written by models ran without a sandbox (--sandbox none): they could read and change whatever this user can, "
        "and forge their scores."
    )
    return [
        Doubt(
            "sandbox",
            message,
            "Install bubblewrap and run again, or judge the outputs again: assay rescore RUN",
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
        return (
            f"{point.metric.name}: '{point.trial}' has the best median, but no other point is certainly worse"
        )
    if not point.alike:
        others = f"all {point.others} others" if point.others > 1 else "the other"
        return f"{point.metric.name}: '{point.trial}' is best, certainly ahead of {others}"
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
    """How the question that ends a run was decided, or what it is while the run goes on; nothing for other runs."""
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
    """better, worse or same, of the second arm; higher or lower where nobody knows which is good; unsure if undecided."""
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
    """Seconds from start to end; None while the run goes on, or where the clock was set back in between."""
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
