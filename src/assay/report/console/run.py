"""The report of one run for the terminal, lists of runs, and comparisons metric by metric.

All tables are readable at 80 and at 120 columns, with and without colour: on narrow screens columns that matter less are left
out, and numbers are never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from assay.model import Report, RunState, TrialReport
from assay.model.page import RunOutcome
from assay.report.console.screen import NARROW, bullet, join_texts, literal, new_table
from assay.report.console.sections import print_sections, print_table
from assay.report.console.side_by_side import print_contest
from assay.report.figures import (
    agents_text,
    best_text,
    budget_text,
    compute_run_seconds,
    effect_text,
    environment_line,
    failure_text,
    format_moment,
    nodes_line,
    others,
    question_text,
    suite_text,
    total,
)
from assay.report.findings import COLOURS, finding_sections, headlines, outcome, outcome_of
from assay.report.leads import lead_sentence, main_lead, reason_text
from assay.report.profiles import print_profiles
from assay.report.run_tables import metrics_table, trials_table
from assay.report.side_by_side import build_contests
from assay.report.warnings import run_warnings
from assay.units import count, format_count, seconds

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_METRICS = 24
"""More rows of further metrics than this are left to the other formats."""
_TRIALS, _FEW_METRICS, _FAILURES = 12, 8, 3
"""Rows in a summary."""

_EFFECTS = 6
"""Maximum lines of axes, and of best points."""


class ListedRun(Protocol):
    """What a list of runs shows of each."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def started(self) -> datetime: ...
    @property
    def ended(self) -> datetime | None: ...
    @property
    def trials(self) -> int: ...
    @property
    def executions(self) -> int: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def label(self) -> str: ...
    @property
    def verdicts(self) -> Sequence[str]: ...


def print_report(report: Report, console: Console) -> None:
    """One run: who leads, its trials, their other metrics, failures, doubts and the machine."""
    _print_head(report, console)
    console.print()
    for contest in build_contests(report):
        print_contest(contest, console)
    if (lead := main_lead(report)) is not None:
        console.print(bullet("=", f"{lead_sentence(lead)} {reason_text(lead)}", "cyan"))
        console.print()
    print_unrated(report, console)
    for trial in report.trials:
        print_profiles(trial, console)
    # Warnings come last, next to the prompt: what a user reads first in a terminal is what was printed last.
    rated = {trial.name for trial in report.trials if trial.ratings is not None}
    for doubt in run_warnings(report):
        # A contest says what failed in more detail.
        if doubt.trial not in rated or doubt.code not in ("failures", "nothing-ok"):
            console.print(bullet("!", str(doubt), "yellow"))
    console.print(literal(environment_line(report.run.environment), "dim"))
    if nodes := nodes_line(report):
        console.print(literal(nodes, "dim"))


def print_unrated(report: Report, console: Console, *, is_brief: bool = False) -> None:
    """What is no contest of agents: findings of experiments and the trials of code; in brief, the first of many rows."""
    if report.findings:
        print_sections([*headlines(report), *finding_sections(report, with_charts=False)], console)
    trials = [trial for trial in report.trials if trial.ratings is None and _is_listed(report, trial)]
    failing = [trial for trial in report.trials if not _is_listed(report, trial)]
    if trials or not report.trials:
        listed = replace(report, trials=tuple(trials[:_TRIALS] if is_brief else trials))
        print_table(trials_table(listed.trials), console)
        if len(trials) > len(listed.trials):
            console.print(literal(f"… and {format_count(len(trials) - _TRIALS, 'more trial')}", "dim"))
        console.print()
        _print_others(listed, console, _FEW_METRICS if is_brief else _METRICS)
        failing += trials
    for trial in [trial for trial in failing if trial.failures][: _FAILURES if is_brief else None]:
        _print_failure(trial, console)
    _print_sweep(report, console)


def _is_listed(report: Report, trial: TrialReport) -> bool:
    finding = report.finding_of(trial)
    return finding is None or finding.is_listed_in_terminal


def _print_sweep(report: Report, console: Console) -> None:
    """What the axes do to the leading metrics, and which point is best; the other formats tell of all metrics."""
    effects = [effect for effect in report.axes if effect_text(effect)][:_EFFECTS]
    for effect in effects:
        console.print(bullet("~", f"{effect.axis} → {effect.metric.name}: {effect_text(effect)}", "cyan"))
    for point in report.best[:_EFFECTS]:
        console.print(bullet("★", best_text(point), "cyan"))
    if effects or report.best:
        console.print()


def print_runs(runs: Iterable[ListedRun], console: Console) -> None:
    """What is stored, as it was asked for."""
    wide = console.width >= NARROW
    table = new_table()
    table.add_column("Run", no_wrap=True)
    table.add_column("Name", overflow="fold")
    for title in ("State", "Started"):
        table.add_column(title, no_wrap=True)
    for title in ("Trials", "Executions"):
        table.add_column(title, justify="right", no_wrap=True)
    if wide:
        table.add_column("Tags", overflow="fold")
    for run in runs:
        table.add_row(*_run_cells(run), *([literal(", ".join(run.tags), "dim")] if wide else []))
    console.print(table)


def _run_cells(run: ListedRun) -> list[Text]:
    state = RunState(run.state)
    return [
        literal(run.id),
        join_texts(literal(run.name, "bold"), literal(f" ({run.label})" if run.label else "")),
        _outcome(outcome(state, run.verdicts)),
        literal(f"{run.started:%Y-%m-%d %H:%M}", "dim"),
        literal(count(run.trials)),
        literal(count(run.executions)),
    ]


def _outcome(found: RunOutcome) -> Text:
    return literal(found.text, COLOURS[found.tone])


def _print_head(report: Report, console: Console) -> None:
    """What ran, when, how much of it, how long, and how it ended."""
    run, duration = report.run, compute_run_seconds(report)
    console.print(literal(run.name, "bold"), _outcome(outcome_of(report)))
    if suite := suite_text(run):
        console.print(literal(suite, "dim"))
    executed = sum(total(trial) for trial in report.trials)
    agents = "" if run.suite else agents_text(report)
    parts = [
        f"run {run.id}",
        run.label,
        format_moment(run.started),
        agents,
        format_count(executed, "execution"),
    ]
    if duration is not None:
        parts.append(seconds(duration))
    console.print(literal(" · ".join(filter(None, [*parts, budget_text(run)])), "dim"))
    if question := question_text(report):
        console.print(bullet("=", question, "cyan"))


def _print_others(report: Report, console: Console, most: int) -> None:
    """The experiments' own metrics; of very many the first, the rest being in every document."""
    rows = [(trial, estimate) for trial in report.trials for estimate in others(trial)]
    if not rows:
        return
    print_table(metrics_table(rows[:most], names_trials=len(report.trials) > 1), console)
    if len(rows) > most:
        run = report.run.id
        command = f"assay show {run}" if most < _METRICS else f"assay report {run} --format md"
        console.print(literal(f"… and {format_count(len(rows) - most, 'more metric')}: {command}", "dim"))
    console.print()


def _print_failure(trial: TrialReport, console: Console) -> None:
    if not trial.failures:
        return
    first = trial.failures[0]
    lines = (first.error or "").strip().splitlines()
    error = f": {lines[-1]}" if lines else ""
    console.print(bullet("✗", f"{trial.name}: {failure_text(first)}{error}", "red"))
