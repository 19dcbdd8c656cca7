"""Which runs the figures of a comparison come from.

The user names the sides of `assay compare` by run, agent or baseline. These lines say which runs that turned out to be.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.model import Report
from assay.report.figures import format_moment

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def side_lines(refs: Sequence[str], reports: Sequence[Report]) -> list[str]:
    """One line a side, and one more where all of them took turns in one run."""
    lines = []
    for number, (ref, report) in enumerate(zip(refs, reports, strict=True)):
        letter = LETTERS[number] if number < len(LETTERS) else str(number + 1)
        lines.append(f"{letter}  {_side(ref, report)}")
    # That both sides come from one run matters: then nothing that the machine did between runs is in the difference.
    runs = {run.id: run for report in reports for run in report.runs}
    are_agents = all(not run.id.startswith(ref) for ref in refs for run in runs.values())
    if len(runs) == 1 and are_agents and len(set(refs)) > 1:
        is_recorded = any(trial.is_recorded for report in reports for trial in report.trials)
        is_interleaved = next(iter(runs.values())).order == "interleaved"
        turns = " and were interleaved" if is_interleaved and not is_recorded else ""
        lines.append(f"   {'Both' if len(refs) == 2 else 'All'} are from this run{turns}.")
    return lines


def _side(ref: str, report: Report) -> str:
    """What was asked for, and which runs that is; of several runs, with the benchmarks that each stands for."""
    simulated = (
        ", simulated"
        if report.trials and all(side_trial.is_simulated for side_trial in report.trials)
        else ""
    )
    if report.trials and all(side_trial.is_recorded for side_trial in report.trials):
        simulated += ", recorded"
    first, *others = report.runs
    if not others:
        prefix = "" if first.id.startswith(ref) else f"{ref}, "
        return f"{prefix}run {first.id} of {first.name}, {format_moment(first.started)}{simulated}"
    benchmarks: dict[str, dict[str, None]] = {run.id: {} for run in report.runs}
    for trial in report.trials:
        benchmarks[report.run_of(trial).id][trial.stored.trial.benchmark] = None
    runs = ", ".join(f"{run} ({', '.join(names)})" for run, names in benchmarks.items())
    return f"{ref}, runs {runs} of {first.name}{simulated}"
