"""A plan before it is carried out: what would run, and how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from assay.model import Plan, Trial
from assay.model.forecast import Basis, Expected, Forecast, TrialForecast, add_up
from assay.units import count, counted, seconds, usd

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


def _measured(trial: Trial) -> str:
    how = trial.iterations
    return f"up to {how.measured}" if how.until else count(how.measured)


def preview_document(plan: Plan, forecast: Forecast) -> dict[str, Any]:
    return {
        "name": plan.name,
        "seed": plan.seed,
        **_expected(forecast),
        "executions": plan.most_executions,
        **({"question": asdict(plan.question)} if plan.question else {}),
        "trials": [
            {
                "name": t.name,
                "parameters": dict(t.params),
                "processes": t.processes,
                "executions": t.most_executions,
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


def start_text(plan: Plan, forecast: Forecast) -> str:
    """One line before a run starts: how many executions it makes and, unless its agents are free, what they cost."""
    warmups = sum(min(trial.iterations.warmup, len(trial.cases)) for trial in plan.trials)
    counts = f"{counted(len(plan.trials), 'trial')}, {'at most ' * bool(plan.question)}{counted(forecast.executions, 'execution')}"
    if warmups:
        counts += f" ({counted(warmups, 'warm-up')} included)"
    cost = forecast.usd
    if cost.value is None and cost.basis is not Basis.NONE:
        return f"{plan.name}: {counts}; cost unknown: {cost.reason}"
    if cost.value:
        return f"{plan.name}: {counts}; cost {'at most' if cost.is_upper_bound else 'about'} {usd(cost.value)} ({cost.reason})"
    return f"{plan.name}: {counts}"


def print_preview(plan: Plan, forecast: Forecast, console: Console) -> None:
    """A row for each trial; the points of a sweep share one, with the values of each axis beneath."""
    from assay.report.screen import RowGroup, literal, print_groups

    expected = {trial.index: each for trial, each in zip(plan.trials, forecast.trials, strict=True)}
    groups = _alike(plan.trials)
    shown = []
    for name, trials in groups[:_ROWS]:
        own = [expected[trial.index] for trial in trials]
        cells = (
            f"  {count(len(trials))} trials" if len(trials) > 1 else name,
            str(trials[0].processes),
            count(trials[0].iterations.warmup),
            _measured(trials[0]),
            count(sum(trial.most_executions for trial in trials)),
            _cell(add_up([(each.trial, each.seconds) for each in own]), seconds),
            _cell(add_up([(each.trial, each.usd) for each in own]), usd),
        )
        note = "\n".join(_axis_lines(trials, console.width))
        heading = literal(name) if len(trials) > 1 else None
        shown.append(RowGroup(heading, [[literal(cell) for cell in cells]], note))
    print_groups(("Trial", "Processes", "Warm-up", "Measured", "Executions", "Time", "Cost"), shown, console)
    if len(groups) > _ROWS:
        console.print(f"… and {count(len(groups) - _ROWS)} more")
    most = "at most " if plan.question else ""
    console.print(
        f"{counted(len(plan.trials), 'trial')}, {most}{counted(plan.most_executions, 'execution')}, seed {plan.seed}"
    )
    console.print(f"Expected: {expected_text(forecast)}", markup=False, highlight=False)
    if plan.question is not None:
        first, second = plan.question.arms
        console.print(
            f"It ends as soon as it is decided whether {second} is better than {first} by {plan.question.metric}, "
            f"after {count(plan.question.max)} pairs at the latest.",
            markup=False,
            highlight=False,
        )
