"""The figures of one execution of a workflow, and their metrics.

Groups as in FlowAgent's benchmark: execution, smart resume, resources, command quality; and whether the plan and its results
are right. A figure that an execution does not have, because it did not get that far, is left out and never 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from assay.builtin.experiments.shell_commands import CommandCounts, parse_command, token_f1
from assay.builtin.experiments.workflow_run import StepStatus, WorkflowRun
from assay.builtin.experiments.workflow_task import REQUIRED, reference_plan
from assay.model import Better, Metric, describe_metrics
from assay.units import format_count, percent

if TYPE_CHECKING:
    from assay.builtin.experiments.workflow import WorkflowAttempt, WorkflowParams

_MOST_EVENTS = 600

METRICS: Mapping[str, Metric] = describe_metrics(
    Metric("plan_seconds", "s", Better.LOWER),
    Metric("run_seconds", "s", Better.LOWER),
    Metric("total_steps", "steps"),
    Metric("steps_done", "steps"),
    Metric("steps_failed", "steps", Better.LOWER),
    Metric("steps_skipped", "steps", Better.LOWER),
    Metric("right_results", "", Better.HIGHER),
    Metric("completed_steps_detected_ratio", ""),
    Metric("steps_skipped_ratio", ""),
    Metric("resume_detected_share", "", Better.HIGHER),
    Metric("steps_wasted", "steps", Better.LOWER),
    Metric("steps_wrongly_skipped", "steps", Better.LOWER),
    Metric("resume_seconds", "s", Better.LOWER),
    Metric("resumed_right_results", "", Better.HIGHER),
    Metric("steps_peak_bytes", "bytes", Better.LOWER),
    Metric("steps_cpu_seconds", "s", Better.LOWER),
    Metric("steps_cpu_percent", "%"),
    Metric("command_count", "commands"),
    Metric("avg_command_length", "characters"),
    Metric("failed_commands", "commands", Better.LOWER),
    Metric("forbidden_commands", "commands", Better.LOWER),
    Metric("error_indicators", "commands", Better.LOWER),
    Metric("plan_valid", "", Better.HIGHER),
    Metric("required_tools_share", "", Better.HIGHER),
    Metric("step_count_ok", "", Better.HIGHER),
    Metric("plan_f1", "", Better.HIGHER),
    Metric("tokens", "tokens", Better.LOWER),
    Metric("usd", "usd", Better.LOWER),
)


def compute_measurements(
    attempt: WorkflowAttempt, params: WorkflowParams
) -> tuple[dict[str, float], dict[str, Any], dict[str, Any]]:
    """Measurements, what is kept as output, and the detail that the finding reads."""
    found: dict[str, float | None] = {"plan_seconds": attempt.plan_seconds, **_answer(attempt)}
    counts = CommandCounts()
    detail: dict[str, Any] = {"fault": attempt.fault.code if attempt.fault else None}
    output: dict[str, Any] = {}
    if attempt.answer is not None:
        found["plan_valid"] = float(attempt.plan is not None)
        output["model"] = attempt.answer.model
    if attempt.plan is not None:
        found |= _plan(attempt, params, counts)
        output["plan"] = attempt.plan.document()
        detail |= {"tools_used": dict(counts.tools), "flags_used": dict(counts.flags)}
    elif attempt.answer is not None:
        output["answer"] = str(attempt.answer.output)[:2000]
    if attempt.run is not None:
        found |= _run(attempt.run)
        found["right_results"] = attempt.right_results
        detail |= {
            "events": attempt.run.events[:_MOST_EVENTS],
            "steps": [_step(attempt.run, step.name) for step in attempt.run.plan.steps],
        }
    if attempt.resume is not None and attempt.plan is not None:
        found |= _resume(attempt)
        detail["resume_events"] = attempt.resume_events[:_MOST_EVENTS]
    measurements = {name: float(value) for name, value in found.items() if value is not None}
    return measurements, output, {"workflow": detail}


def describe_failure(attempt: WorkflowAttempt) -> str | None:
    """Why the workflow counts as failed; None where it was executed, or had no plan to execute."""
    if attempt.error:
        return attempt.error
    if attempt.run is None:
        return None
    failed = [result for result in attempt.run.results.values() if result.status is StepStatus.FAILED]
    if failed:
        more = f" ({format_count(len(failed) - 1, 'more step')} failed)" if len(failed) > 1 else ""
        return f"Step '{failed[0].name}' {failed[0].message}.{more}"
    if attempt.right_results is not None and attempt.right_results < 1:
        return f"Every step succeeded, but only {percent(attempt.right_results)} of the results are right."
    if attempt.resume is not None and not attempt.resume.is_finished:
        return "The workflow succeeded, but failed when it was resumed after an interruption."
    if attempt.resumed_right_results is not None and attempt.resumed_right_results < 1:
        share = percent(attempt.resumed_right_results)
        return f"The workflow succeeded, but only {share} of the results are right when it is interrupted and resumed."
    return None


def _answer(attempt: WorkflowAttempt) -> dict[str, float | None]:
    if attempt.answer is None:
        return {}
    usage = attempt.answer.usage
    return {
        "tokens": usage.tokens,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "usd": attempt.usd,
    }


def _plan(attempt: WorkflowAttempt, params: WorkflowParams, counts: CommandCounts) -> dict[str, float | None]:
    """Command quality and correctness of the plan as written, whether or not it succeeded."""
    assert attempt.plan is not None
    commands = [step.command for step in attempt.plan.steps]
    lines = [parse_command(command) for command in commands]
    for line in lines:
        counts.add(line)
    forbidden = frozenset(params.forbidden_tools)
    required = params.required_tools
    if required is None:
        required = list(REQUIRED) if params.is_shipped_task else []
    reference = [step.command for step in reference_plan().steps] if params.is_shipped_task else None
    return {
        "total_steps": len(commands),
        "command_count": len(commands),
        "avg_command_length": sum(map(len, commands)) / len(commands),
        "forbidden_commands": sum(bool(line.tools & forbidden) for line in lines),
        "required_tools_share": sum(tool in counts.tools for tool in required) / len(required)
        if required
        else None,
        "step_count_ok": float(params.min_steps <= len(commands) <= params.max_steps),
        "plan_f1": None if reference is None else token_f1(commands, reference),
    }


def _run(run: WorkflowRun) -> dict[str, float]:
    step_runs = [result.run for result in run.results.values() if result.run is not None]
    cpu, seconds = (
        sum(step_run.cpu_seconds for step_run in step_runs),
        sum(step_run.seconds for step_run in step_runs),
    )
    return {
        "run_seconds": run.seconds,
        "steps_done": run.count(StepStatus.DONE),
        "steps_failed": run.count(StepStatus.FAILED),
        "steps_skipped": run.count(StepStatus.SKIPPED),
        "steps_peak_bytes": max((step_run.peak_bytes for step_run in step_runs), default=0),
        "steps_cpu_seconds": cpu,
        "steps_cpu_percent": 100 * cpu / seconds if seconds else 0.0,
        "failed_commands": run.count(StepStatus.FAILED),
        "error_indicators": sum(result.has_error_text for result in run.results.values()),
    }


def _resume(attempt: WorkflowAttempt) -> dict[str, float | None]:
    """The ratios are those of FlowAgent, over all steps; `resume_detected_share` is over those that could be detected."""
    assert attempt.plan is not None
    assert attempt.resume is not None
    total, resume = len(attempt.plan.steps), attempt.resume
    return {
        "completed_steps_detected_ratio": resume.detected / total,
        "steps_skipped_ratio": resume.skipped / total,
        "resume_detected_share": (resume.detected - resume.wrongly_skipped) / resume.completed
        if resume.completed
        else None,
        "steps_wasted": resume.wasted,
        "steps_wrongly_skipped": resume.wrongly_skipped,
        "resume_seconds": resume.seconds,
        "resumed_right_results": attempt.resumed_right_results,
    }


def _step(run: WorkflowRun, name: str) -> dict[str, Any]:
    result = run.results[name]
    used = (
        {}
        if result.run is None
        else {"exit_code": result.run.code, "cpu_seconds": round(result.run.cpu_seconds, 6)}
    )
    used |= (
        {}
        if result.run is None
        else {"peak_bytes": result.run.peak_bytes, "processes": result.run.peak_processes}
    )
    facts = {
        "status": result.status.value,
        "code": result.code,
        "message": result.message,
        "tried": result.tried,
    }
    return {"name": name, "seconds": round(result.seconds, 6), **facts, **used}
