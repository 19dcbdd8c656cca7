"""A plan before it runs, for the terminal: its trials, how many executions they make, and the forecast of time and cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from assay.model import Plan, Trial
from assay.model.forecast import Basis, Expected, Forecast, add_up
from assay.units import count, format_count, seconds, usd

_ROWS = 50

if TYPE_CHECKING:
    from rich.console import Console


def _cell(expected: Expected, show: Callable[[float], str]) -> str:
    if expected.value is None:
        return "–" if expected.basis is Basis.NONE else "unknown"
    return f"{'≤ ' if expected.is_upper_bound else ''}{show(expected.value)}"


def _alike(trials: Sequence[Trial]) -> list[tuple[str, list[Trial]]]:
    """Trials that differ only in the values of a sweep's axes, under the name that they share."""
    found: dict[tuple[object, ...], list[Trial]] = {}
    for trial in trials:
        name = trial.name.partition("[")[0] if trial.axes else trial.name
        how = trial.iterations
        key = (name, tuple(trial.axes), trial.processes, how.warmup, how.measured, how.until, trial.isolation)
        found.setdefault(key, []).append(trial)
    return [(str(key[0]) if len(own) > 1 else own[0].name, own) for key, own in found.items()]


def _axis_lines(trials: Sequence[Trial], width: int) -> list[str]:
    """`num_ctx: 512, 1024, 2048`; of very many values, the first."""
    if len(trials) == 1:
        return []
    lines = []
    for axis in trials[0].axes:
        line = f"  {axis}: {', '.join(dict.fromkeys(str(trial.axes[axis]) for trial in trials))}"
        lines.append(line if len(line) <= width else f"{line[: width - 2]} …")
    return lines


def forecast_text(forecast: Forecast) -> str:
    """One line: how many executions, how long, at what price."""
    parts = [format_count(forecast.executions, "execution")]
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


def start_text(plan: Plan, forecast: Forecast) -> str:
    """One line before a run starts: how many executions it makes and, unless its agents are free, what they cost."""
    warmups = sum(min(trial.iterations.warmup, len(trial.cases)) for trial in plan.trials)
    counts = f"{format_count(len(plan.trials), 'trial')}, {'at most ' * bool(plan.question)}{format_count(forecast.executions, 'execution')}"
    if warmups:
        counts += f" ({format_count(warmups, 'warm-up')} included)"
    cost = forecast.usd
    if cost.value is None and cost.basis is not Basis.NONE:
        return f"{plan.name}: {counts}; cost unknown: {cost.reason}"
    if cost.value:
        return f"{plan.name}: {counts}; cost {'at most' if cost.is_upper_bound else 'about'} {usd(cost.value)} ({cost.reason})"
    return f"{plan.name}: {counts}"


def print_preview(plan: Plan, forecast: Forecast, console: Console) -> None:
    """A row for each trial; the points of a sweep share one, with the values of each axis beneath."""
    from assay.report.console.screen import RowGroup, literal, print_groups

    expected = {trial.index: estimate for trial, estimate in zip(plan.trials, forecast.trials, strict=True)}
    groups = _alike(plan.trials)
    row_groups = []
    for name, trials in groups[:_ROWS]:
        own = [expected[trial.index] for trial in trials]
        iterations = trials[0].iterations
        cells = (
            f"  {count(len(trials))} trials" if len(trials) > 1 else name,
            str(trials[0].processes),
            count(iterations.warmup),
            f"up to {iterations.measured}" if iterations.until else count(iterations.measured),
            count(sum(trial.most_executions for trial in trials)),
            _cell(add_up([(estimate.trial, estimate.seconds) for estimate in own]), seconds),
            _cell(add_up([(estimate.trial, estimate.usd) for estimate in own]), usd),
        )
        note = "\n".join(_axis_lines(trials, console.width))
        heading = literal(name) if len(trials) > 1 else None
        row_groups.append(RowGroup(heading, [[literal(cell) for cell in cells]], note))
    print_groups(
        ("Trial", "Processes", "Warm-up", "Measured", "Executions", "Time", "Cost"), row_groups, console
    )
    if len(groups) > _ROWS:
        console.print(f"… and {count(len(groups) - _ROWS)} more")
    most = "at most " if plan.question else ""
    console.print(
        f"{format_count(len(plan.trials), 'trial')}, {most}{format_count(plan.most_executions, 'execution')}, seed {plan.seed}"
    )
    console.print(f"Expected: {forecast_text(forecast)}", markup=False, highlight=False)
    if plan.question is not None:
        first, second = plan.question.arms
        console.print(
            f"The run ends as soon as it is clear whether {second} is better than {first} by {plan.question.metric}, "
            f"after at most {format_count(plan.question.max, 'pair')}.",
            markup=False,
            highlight=False,
        )
