"""A plan before it is carried out: what would run, and how often."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from assay.model import Plan, Trial
from assay.units import count

if TYPE_CHECKING:
    from rich.console import Console


def executions_of(trial: Trial) -> int:
    """Executions at the most; cold ones share no process, so their warm-ups are not repeated in each."""
    if trial.agent_use is not None:
        cases = len(trial.cases)
        return min(trial.iterations.warmup, cases) + trial.iterations.measured * cases
    if trial.isolation == "cold":
        return trial.iterations.warmup + trial.iterations.measured * trial.processes
    return (trial.iterations.warmup + trial.iterations.measured) * trial.processes


def preview_document(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "seed": plan.seed,
        "executions": sum(executions_of(trial) for trial in plan.trials),
        **({"question": asdict(plan.question)} if plan.question else {}),
        "trials": [
            {
                "name": t.name,
                "parameters": dict(t.params),
                "processes": t.processes,
                "executions": executions_of(t),
            }
            for t in plan.trials
        ],
    }


def print_preview(plan: Plan, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("trial", "processes", "warm-up", "measured", "executions"):
        table.add_column(name, justify="left" if name == "trial" else "right")
    for trial in plan.trials[:50]:
        how = trial.iterations
        measured = f"up to {how.measured}" if how.until else count(how.measured)
        table.add_row(
            Text(trial.name), str(trial.processes), count(how.warmup), measured, count(executions_of(trial))
        )
    console.print(table)
    if len(plan.trials) > 50:
        console.print(f"… and {count(len(plan.trials) - 50)} more")
    total = sum(executions_of(trial) for trial in plan.trials)
    most = "at most " if plan.question else ""
    console.print(f"{count(len(plan.trials))} trials, {most}{count(total)} executions, seed {plan.seed}")
    if plan.question is not None:
        first, second = plan.question.arms
        console.print(
            f"It ends as soon as it is decided whether {second} is better than {first} by {plan.question.metric}, "
            f"after {count(plan.question.max)} pairs at the latest.",
            markup=False,
            highlight=False,
        )
