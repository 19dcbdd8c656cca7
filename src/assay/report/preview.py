"""A plan before it is carried out: what would run, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from assay.model import Plan, Trial
from assay.model.forecast import Basis, Expected, Forecast, TrialForecast
from assay.units import count, counted, seconds, usd

if TYPE_CHECKING:
    from rich.console import Console


def _cell(expected: Expected, show: Callable[[float], str]) -> str:
    if expected.value is None:
        return "–" if expected.basis is Basis.NONE else "unknown"
    return f"{'≤ ' if expected.is_upper_bound else ''}{show(expected.value)}"


def executions_of(trial: Trial) -> int:
    """Executions at the most; cold ones share no process, so their warm-ups are not repeated in each."""
    if trial.agent_use is not None:
        cases = len(trial.cases)
        return min(trial.iterations.warmup, cases) + trial.iterations.measured * cases
    if trial.isolation == "cold":
        return trial.iterations.warmup + trial.iterations.measured * trial.processes
    return (trial.iterations.warmup + trial.iterations.measured) * trial.processes


def preview_document(plan: Plan, forecast: Forecast) -> dict[str, Any]:
    return {
        "name": plan.name,
        "seed": plan.seed,
        **_expected(forecast),
        "executions": sum(executions_of(trial) for trial in plan.trials),
        **({"question": asdict(plan.question)} if plan.question else {}),
        "trials": [
            {
                "name": t.name,
                "parameters": dict(t.params),
                "processes": t.processes,
                "executions": executions_of(t),
                **_expected(expected),
            }
            for t, expected in zip(plan.trials, forecast.trials, strict=True)
        ],
    }


def _expected(found: Forecast | TrialForecast) -> dict[str, Any]:
    """`expected_seconds` and `expected_usd` are null where nobody can tell; `expected_basis` says why."""
    return {
        "expected_seconds": found.seconds.value,
        "expected_usd": found.usd.value,
        "expected_basis": {
            name: {"basis": part.basis.value, "reason": part.reason}
            for name, part in (("seconds", found.seconds), ("usd", found.usd))
        },
    }


def expected_text(forecast: Forecast) -> str:
    """One line: how many executions, how long, at what price."""
    parts = [counted(forecast.executions, "execution")]
    for name, part, show in (("time", forecast.seconds, seconds), ("cost", forecast.usd, usd)):
        if part.basis is Basis.NONE:
            continue
        if part.value is None:
            parts.append(f"{name} unknown ({part.reason})")
        else:
            parts.append(
                f"{name} {'at most' if part.is_upper_bound else 'about'} {show(part.value)} ({part.reason})"
            )
    return " · ".join(parts)


def print_preview(plan: Plan, forecast: Forecast, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("trial", "processes", "warm-up", "measured", "executions", "time", "usd"):
        table.add_column(name, justify="left" if name == "trial" else "right")
    for trial, expected in zip(plan.trials[:50], forecast.trials, strict=False):
        how = trial.iterations
        measured = f"up to {how.measured}" if how.until else count(how.measured)
        table.add_row(
            Text(trial.name), str(trial.processes), count(how.warmup), measured, count(executions_of(trial)),
            _cell(expected.seconds, seconds), _cell(expected.usd, usd),
        )  # fmt: skip
    console.print(table)
    if len(plan.trials) > 50:
        console.print(f"… and {count(len(plan.trials) - 50)} more")
    total = sum(executions_of(trial) for trial in plan.trials)
    most = "at most " if plan.question else ""
    console.print(f"{count(len(plan.trials))} trials, {most}{count(total)} executions, seed {plan.seed}")
    console.print(f"Expected: {expected_text(forecast)}", markup=False, highlight=False)
    if plan.question is not None:
        first, second = plan.question.arms
        console.print(
            f"It ends as soon as it is decided whether {second} is better than {first} by {plan.question.metric}, "
            f"after {count(plan.question.max)} pairs at the latest.",
            markup=False,
            highlight=False,
        )
