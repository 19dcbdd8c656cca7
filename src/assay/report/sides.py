"""Which runs the figures of a comparison come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Report, Run
from assay.report.figures import when

if TYPE_CHECKING:
    from rich.console import Console

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def side_lines(refs: Sequence[str], reports: Sequence[Report]) -> list[str]:
    """One line a side, and one more where all of them took turns in one run."""
    lines = [f"{_letter(n)}  {_side(*side)}" for n, side in enumerate(zip(refs, reports, strict=True))]
    runs = {run.id: run for report in reports for run in report.runs}
    are_agents = all(not run.id.startswith(ref) for ref in refs for run in runs.values())
    if len(runs) == 1 and are_agents and len(set(refs)) > 1:
        is_recorded = any(trial.is_recorded for report in reports for trial in report.trials)
        is_interleaved = next(iter(runs.values())).order == "interleaved"
        turns = " and took turns in it" if is_interleaved and not is_recorded else ""
        lines.append(f"   {'Both' if len(refs) == 2 else 'All'} are from this run{turns}.")
    return lines


def print_sides(refs: Sequence[str], reports: Sequence[Report], console: Console) -> None:
    for line in side_lines(refs, reports):
        console.print(line, markup=False, highlight=False)
    console.print()


def _letter(number: int) -> str:
    return LETTERS[number] if number < len(LETTERS) else str(number + 1)


def _side(ref: str, report: Report) -> str:
    """What was asked for, and which runs that is; of several runs, with the benchmarks that each stands for."""
    simulated = ", simulated" if report.trials and all(one.is_simulated for one in report.trials) else ""
    if report.trials and all(one.is_recorded for one in report.trials):
        simulated += ", recorded"
    first, *others = report.runs
    if not others:
        asked = "" if first.id.startswith(ref) else f"{ref}, "
        return f"{asked}run {first.id} of {first.name}, {when(first.started)}{simulated}"
    parts = ", ".join(f"{run.id} ({_benchmarks(report, run)})" for run in report.runs)
    return f"{ref}, runs {parts} of {first.name}{simulated}"


def _benchmarks(report: Report, run: Run) -> str:
    own = (trial.stored.trial.benchmark for trial in report.trials if report.run_of(trial).id == run.id)
    return ", ".join(dict.fromkeys(own))
