"""Plans and trials of workflows for tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.builtin.experiments.workflow_plan import WorkflowStep, sort_steps
from assay.builtin.experiments.workflow_run import RunRules, StepStatus, WorkflowRun
from assay.model import Execution, Phase, Status, TrialReport
from assay.plugin import lookup
from assay.plugin.sandbox import Ceilings
from assay.testing import sample_report


def step(
    name: str, command: str, *needs: str, inputs: Sequence[str] = (), outputs: Sequence[str] = ()
) -> WorkflowStep:
    return WorkflowStep(name, command, tuple(needs), tuple(inputs), tuple(outputs))


def make_run(
    folder: Path, *steps: WorkflowStep, name: str = "w", seconds: float = 5.0, **rules: Any
) -> WorkflowRun:
    """A run in a folder that has the file `in.txt`; with the name of an earlier one, it resumes that."""
    own = folder / name
    own.mkdir(exist_ok=True)
    if not (folder / f"{name}.checkpoints").exists():
        (own / "in.txt").write_text("given\n")
    sandbox = lookup.find("sandboxes", rules.pop("sandbox", "bubblewrap"))()
    held = RunRules(sandbox, seconds, Ceilings(128 << 20, 40, 4 << 20), **rules)
    return WorkflowRun(sort_steps(steps), own, folder / f"{name}.checkpoints", held, ("in.txt",))


def statuses(run: WorkflowRun) -> dict[str, tuple[StepStatus, str]]:
    return {name: (result.status, result.code) for name, result in run.results.items()}


def build_workflow_trials() -> Sequence[TrialReport]:
    """Two models: one that succeeds and resumes, and one whose second run has no plan."""
    first, second = (sample_report().trials * 2)[:2]
    return [_trial(first, 1, "steady", 3), _trial(second, 2, "hasty", 2, "not_json")]


def _trial(sample: TrialReport, number: int, agent: str, ok: int, fault: str = "") -> TrialReport:
    point = replace(
        sample.stored.trial,
        experiment="workflow",
        axes={},
        params={"prompt": "Sort it."},
        agent=replace(sample.stored.trial.agent, name=agent),
    )
    good = {
        "seconds": 1.5, "run_seconds": 1.0, "plan_seconds": 0.5, "total_steps": 4.0, "steps_done": 4.0, "steps_failed": 0.0,
        "steps_wasted": 1.0, "steps_wrongly_skipped": 0.0, "completed_steps_detected_ratio": 0.25, "steps_skipped_ratio": 0.25,
        "resume_detected_share": 0.5, "steps_peak_bytes": 2e7 * number, "steps_cpu_percent": 40.0, "plan_valid": 1.0, "plan_f1": 0.8,
        "right_results": 1.0, "usd": 0.01, "error_indicators": 0.0,
    }  # fmt: skip
    detail: dict[str, Any] = {
        "workflow": {"tools_used": {"sort": 2}, "flags_used": {"-u": 1}, "steps": [], "fault": None}
    }
    made = [
        Execution(
            number, 0, Phase.MEASURED, n, Status.OK, 1.0 * n, {**good, "seconds": 1.5 + n}, detail=detail
        )
        for n in range(ok)
    ]
    if fault:
        made.append(
            Execution(
                number,
                0,
                Phase.MEASURED,
                ok,
                Status.INVALID_OUTPUT,
                9.0,
                {"seconds": 0.1, "plan_valid": 0.0},
                error="The answer is no plan: it is prose.",
                detail={"workflow": {"fault": fault}},
            )
        )
    stored = replace(sample.stored, id=number, trial=point)
    counts = {"ok": ok, **({"invalid_output": 1} if fault else {})}
    return replace(sample, stored=stored, executions=tuple(made), applied={"model": agent}, counts=counts)
