"""What all executions of a workflow by one model show together, failed ones included, and which model leads on what.

Figures of a metric are over the executions that have it, and say how many these are: a model that fails early has no time of a
whole run, which is not a time of 0.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from assay.analysis.comparison.compare import compare_trials
from assay.model import Better, Comparison, Execution, Phase, Status, TrialReport
from assay.model.report import agent_labels
from assay.stats.correction import holm
from assay.stats.permutation import Repetitions, permutation_test
from assay.stats.verdicts import wilson
from assay.units import and_list, format_count

DURATION = "seconds"
_SIGNIFICANT = 0.05
RANKED = {
    "success_rate": Better.HIGHER,
    "avg_duration": Better.LOWER,
    "completed_steps_detected_ratio": Better.HIGHER,
    "steps_skipped_ratio": Better.HIGHER,
    "memory_usage": Better.LOWER,
    "cpu_usage": Better.LOWER,
    "error_indicators": Better.LOWER,
    "right_results": Better.HIGHER,
    "plan_f1": Better.HIGHER,
    "usd": Better.LOWER,
}
"""Figures of a summary by which models are ranked; the first seven as FlowAgent has them."""
_MEANS = (
    "plan_seconds", "run_seconds", "total_steps", "steps_done", "steps_failed", "steps_skipped", "right_results",
    "completed_steps_detected_ratio", "steps_skipped_ratio", "resume_detected_share", "steps_wasted", "steps_wrongly_skipped",
    "resume_seconds", "resumed_right_results", "steps_cpu_seconds", "command_count", "avg_command_length", "failed_commands", "forbidden_commands",
    "error_indicators", "plan_valid", "required_tools_share", "step_count_ok", "plan_f1", "tokens", "usd",
)  # fmt: skip


@dataclass(frozen=True)
class ModelSummary:
    """One model over its measured executions.

    Rates of success are shares with a Wilson interval; other figures are means or medians over the
    executions that have them.
    """

    label: str
    trial: TrialReport
    executions: tuple[Execution, ...]

    @property
    def model(self) -> object:
        """The model that answered, as the answers say."""
        return self.trial.applied.get("model")

    @property
    def is_simulated(self) -> bool:
        return self.trial.is_simulated

    @cached_property
    def succeeded(self) -> int:
        return sum(execution.status is Status.OK for execution in self.executions)

    @property
    def success_rate(self) -> float:
        return self.succeeded / len(self.executions) if self.executions else 0.0

    @property
    def success_interval(self) -> tuple[float, float]:
        return wilson(self.success_rate, len(self.executions))

    def values(self, metric: str) -> list[float]:
        """Return this metric of all executions that have it."""
        return [e.measurements[metric] for e in self.executions if metric in e.measurements]

    def mean(self, metric: str) -> float | None:
        values = self.values(metric)
        return statistics.fmean(values) if values else None

    def durations(self) -> list[float]:
        """Return the durations of the executions that succeeded: a workflow that fails early is not a quick one."""
        return [e.measurements[DURATION] for e in self.executions if e.status is Status.OK]

    def details(self) -> list[Mapping[str, Any]]:
        found = ((e.detail or {}).get("workflow") for e in self.executions)
        return [detail for detail in found if isinstance(detail, Mapping)]

    def uses(self, key: str) -> Counter[str]:
        """Tools or flags, over the plans of all executions."""
        total: Counter[str] = Counter()
        for detail in self.details():
            total.update(detail.get(key) or {})
        return total

    def causes(self) -> Counter[str]:
        """Why executions failed: faults of plans, codes of failed steps, and statuses where neither tells."""
        total: Counter[str] = Counter()
        for execution in self.executions:
            if execution.status is not Status.OK:
                detail: Any = (execution.detail or {}).get("workflow") or {}
                codes = [step["code"] for step in detail.get("steps", ()) if step["status"] == "failed"]
                total.update(
                    [f"plan: {detail['fault']}"] if detail.get("fault") else codes or [execution.status.value]
                )
        return total

    def attempts(self) -> Counter[str]:
        """What steps tried and the sandbox refused: `network` and `outside`, by the number of steps."""
        steps = (step for detail in self.details() for step in detail.get("steps") or ())
        return Counter(step["tried"] for step in steps if step.get("tried"))

    def document(self) -> dict[str, Any]:
        """The names of FlowAgent's summary, with what it lacks beside them; MB are 10⁶ bytes."""
        durations, (low, high) = self.durations(), self.success_interval
        peaks = self.values("steps_peak_bytes")
        return {
            "model": self.label,
            "answered_by": self.model,
            "simulated": self.is_simulated,
            "runs": len(self.executions),
            "success_rate": self.success_rate,
            "success_rate_interval": [low, high],
            "avg_duration": statistics.fmean(durations) if durations else None,
            "median_duration": statistics.median(durations) if durations else None,
            "memory_usage": max(peaks) / 1e6 if peaks else None,
            "cpu_usage": self.mean("steps_cpu_percent"),
            **{name: self.mean(name) for name in _MEANS},
            "tools_used": dict(self.uses("tools_used").most_common()),
            "flags_used": dict(self.uses("flags_used").most_common()),
            "failures": dict(self.causes().most_common()),
            "refused_attempts": dict(self.attempts().most_common()),
        }


def summarise_models(trials: Sequence[TrialReport]) -> tuple[ModelSummary, ...]:
    return tuple(
        ModelSummary(
            label,
            trial,
            tuple(e for e in trial.executions if e.phase is Phase.MEASURED and e.status.is_settled),
        )
        for label, trial in zip(agent_labels(trials), trials, strict=True)
    )


def find_best(models: Sequence[ModelSummary]) -> dict[str, dict[str, Any]]:
    """Who has the best value of each ranked figure; simulated models only where all are.

    A value that several share is no lead. How far a lead is evidence, the comparisons say.
    """
    measured = [model for model in models if not model.is_simulated] or list(models)
    documents = [model.document() for model in measured]
    best: dict[str, dict[str, Any]] = {}
    for name, direction in RANKED.items():
        known = {str(found["model"]): float(found[name]) for found in documents if found[name] is not None}
        if known:
            value = max(known.values()) if direction is Better.HIGHER else min(known.values())
            leaders = [model for model, held in known.items() if held == value]
            best[f"best_{name}"] = {
                "model": leaders[0] if len(leaders) == 1 else None,
                "value": value,
                "shared_by": leaders,
            }
    return best


def compare_with_first(models: Sequence[ModelSummary]) -> list[tuple[str, Comparison]]:
    """Durations of the others against the first model, by label; *better* means that the other one is quicker.

    Measured and simulated times are not compared with each other.
    """
    return [
        (other.label, comparison)
        for other in models[1:]
        if other.is_simulated == models[0].is_simulated and other.succeeded and models[0].succeeded
        for comparison in compare_trials(models[0].trial, other.trial, metrics=[DURATION])
        if comparison.verdict is not None
    ]


def describe_lead(models: Sequence[ModelSummary]) -> tuple[str, str]:
    """The answer for the measured models and, apart from them, for the simulated ones; and the tone of the first."""
    kinds = [[model for model in models if model.is_simulated is simulated] for simulated in (False, True)]
    found = [_describe_lead_of_kind(kind) for kind in kinds if kind]
    marks = ("", "Simulated models: ") if all(kinds) else ("", "")
    return " ".join(f"{mark}{text}" for mark, (text, _) in zip(marks, found, strict=False)), found[0][1]


def _describe_lead_of_kind(models: Sequence[ModelSummary]) -> tuple[str, str]:
    """The answer in a sentence, and its tone: which model succeeds most often, and which ones are proved to do so less often.

    Each of the others is held against the first by the exact test of pass and fail, corrected for their number (Holm).
    """
    ranked = sorted(models, key=lambda model: -model.success_rate)
    first = ranked[0]
    successes = f"{first.succeeded} of {format_count(len(first.executions), 'run')}"
    if len(models) == 1:
        return f"{first.label} succeeded in {successes}.", "good" if first.success_rate == 1 else "warn"
    names = and_list([model.label for model in ranked])
    if ranked[-1].success_rate == 1:
        return f"Every run of {names} succeeded.", "good"
    if not first.succeeded:
        return f"No run of {names} succeeded.", "bad"
    corrected = holm([_compare_success(first, other) for other in ranked[1:]])
    behind = [other for other, p in zip(ranked[1:], corrected, strict=True) if p < _SIGNIFICANT]
    if not behind:
        return f"With so few runs, the success rates of {names} cannot be distinguished.", "warn"
    inseparable = [model.label for model in ranked[1:] if model not in behind]
    also = f"; {and_list(inseparable)} cannot be distinguished from it" if inseparable else ""
    worse = and_list([model.label for model in behind])
    return f"{first.label} succeeds most often ({successes}), more often than {worse}{also}.", "good"


def _compare_success(a: ModelSummary, b: ModelSummary) -> float:
    """The p value of a difference between two success rates; all runs are of one case, so this is Fisher's exact test."""
    sides = [[float(e.status is Status.OK) for e in model.executions] for model in (a, b)]
    first, second = (Repetitions.of(scores, [0] * len(scores)) for scores in sides)
    test = permutation_test(first, second)
    return 1.0 if test is None else test.p
