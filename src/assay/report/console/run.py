"""The report of one run for the terminal, lists of runs, and comparisons metric by metric.

All tables are readable at 80 and at 120 columns, with and without colour: on narrow screens columns that matter less are left
out, and numbers are never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from assay.model import Comparison, Doubt, Estimate, Report, RunState, TrialReport
from assay.model.page import RunOutcome
from assay.report.change import sides_name
from assay.report.console.screen import NARROW, VERDICT_STYLES, bullet, join_texts, literal, new_table
from assay.report.console.side_by_side import print_contest
from assay.report.figures import (
    NOTHING,
    agents_text,
    best_text,
    budget_text,
    compute_run_seconds,
    cv_text,
    effect_text,
    environment_line,
    failure_text,
    leading,
    nodes_line,
    ok_text,
    others,
    percentile_text,
    question_text,
    ratio_text,
    size_text,
    suite_text,
    total,
    when,
    with_interval,
)
from assay.report.findings import COLOURS, finding_sections, headlines, outcome, outcome_of
from assay.report.leads import lead_sentence, main_lead, reason_text
from assay.report.profiles import print_profiles
from assay.report.side_by_side import contests
from assay.report.warnings import rank_warnings, run_warnings
from assay.units import count, format_count, seconds, show, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_METRICS = 24
"""More rows of further metrics than this are left to the other formats."""
_TRIALS, _FEW_METRICS, _FAILURES = 12, 8, 3
"""Rows in a summary."""

_EFFECTS = 6
"""Maximum lines of axes, and of best points."""
_NAMED_UNASKED = 4
"""Metrics without a verdict that are named; of more only their number is."""


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
    for contest in contests(report):
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
        from assay.report.console.sections import print_sections

        print_sections([*headlines(report), *finding_sections(report, with_charts=False)], console)
    trials = [trial for trial in report.trials if trial.ratings is None and _is_listed(report, trial)]
    failing = [trial for trial in report.trials if not _is_listed(report, trial)]
    if trials or not report.trials:
        listed = replace(report, trials=tuple(trials[:_TRIALS] if is_brief else trials))
        console.print(_trials(listed, narrow=console.width < NARROW))
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


def _format_unasked(names: Sequence[str]) -> str:
    """
    >>> _format_unasked(["itl", "tpot"])
    'Not judged by default: itl, tpot. To judge them: --metric itl --metric tpot'
    """
    if len(names) <= _NAMED_UNASKED:
        hint = " ".join(f"--metric {name}" for name in names)
        return f"Not judged by default: {', '.join(names)}. To judge {'it' if len(names) == 1 else 'them'}: {hint}"
    return f"Not judged by default: {len(names)} other metrics (–). To judge one: --metric {names[0]}"


def print_comparisons(comparisons: Sequence[Comparison], doubts: Iterable[Doubt], console: Console) -> None:
    """B against A: a table a pair of trials, or a single one when one metric was compared; reasons beneath."""
    by_trial = len({comparison.metric.name for comparison in comparisons}) == 1
    groups: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        heading = comparison.metric.name if by_trial else sides_name(comparison)
        groups.setdefault(heading, []).append(comparison)
    for heading, group in groups.items():
        if by_trial or len({sides_name(comparison) for comparison in comparisons}) > 1:
            console.print(literal(heading, "bold"))
        console.print(_comparison_table(group, by_trial=by_trial, narrow=console.width < NARROW))
        for reason, names in _reasons(group, by_trial=by_trial).items():
            console.print(bullet("?", f"{', '.join(names)}: {reason}", "yellow"))
        console.print()
    if unasked := dict.fromkeys(result.metric.name for result in comparisons if result.verdict is None):
        console.print(literal(_format_unasked(list(unasked)), "dim"))
        console.print()
    for doubt in rank_warnings(doubts):
        console.print(bullet("!", str(doubt), "yellow"))


def _reasons(group: Sequence[Comparison], *, by_trial: bool) -> dict[str, list[str]]:
    """Each once, to what it is about: one that refuses a benchmark holds for all of its metrics."""
    found: dict[str, list[str]] = {}
    for comparison in group:
        if comparison.reason:
            name = sides_name(comparison) if by_trial else comparison.metric.name
            found.setdefault(comparison.reason, []).append(name)
    return found


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
    parts = [f"run {run.id}", run.label, when(run.started), agents, format_count(executed, "execution")]
    if duration is not None:
        parts.append(seconds(duration))
    console.print(literal(" · ".join(filter(None, [*parts, budget_text(run)])), "dim"))
    if question := question_text(report):
        console.print(bullet("=", question, "cyan"))


def _trials(report: Report, *, narrow: bool) -> Table:
    table = new_table()
    table.add_column("Trial", overflow="fold", min_width=12)
    titles = ("Median [interval]", "Mean", "P95", *(() if narrow else ("CV", "n / units")), "ok")
    for title in titles:
        table.add_column(literal(title), justify="right", no_wrap=True)
    for trial in report.trials:
        is_whole = trial.ok == total(trial) and trial.ok > 0
        ok = literal(ok_text(trial), "green" if is_whole else "red" if not trial.ok else "yellow")
        table.add_row(literal(trial.name), *_figures(leading(trial), narrow=narrow), ok)
    return table


def _figures(estimate: Estimate | None, *, narrow: bool) -> list[Text]:
    """The cells of an estimate. The name of its metric stands before it unless that is seconds, which needs no name."""
    if estimate is None:
        return [literal(NOTHING, "dim")] * (3 if narrow else 5)
    name = "" if estimate.metric.name == "seconds" else f"{estimate.metric.name} "
    median = join_texts(literal(name, "dim"), _interval(estimate))
    cells = [
        median,
        literal(show(estimate.mean, estimate.metric.unit)),
        literal(percentile_text(estimate, "p95")),
    ]
    return cells if narrow else [*cells, literal(cv_text(estimate)), literal(size_text(estimate), "dim")]


def _interval(estimate: Estimate) -> Text:
    middle, bracket, ends = with_interval(estimate).partition(" [")
    mark = "" if estimate.metric.kind == "measured" else f" {estimate.metric.kind.value}"
    return join_texts(literal(middle, "bold"), literal(bracket + ends, "dim"), literal(mark, "yellow"))


def _print_others(report: Report, console: Console, most: int) -> None:
    """The experiments' own metrics; of very many the first, the rest being in every document."""
    rows = [(trial, estimate) for trial in report.trials for estimate in others(trial)]
    if not rows:
        return
    several = len(report.trials) > 1
    table = new_table()
    for title in ("Trial", "Metric") if several else ("Metric",):
        table.add_column(title, overflow="fold", min_width=14)
    for title in ("Median [interval]", "CV"):
        table.add_column(literal(title), justify="right", no_wrap=True)
    before = None
    for trial, estimate in rows[:most]:
        name = [literal("" if trial is before else trial.name)] if several else []
        figures = (literal(estimate.metric.name), _interval(estimate), literal(cv_text(estimate), "dim"))
        table.add_row(*name, *figures)
        before = trial
    console.print(table)
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


def _comparison_table(group: Sequence[Comparison], *, by_trial: bool, narrow: bool) -> Table:
    """Comparisons as rows, named by metric or, where only one metric was compared, by trial."""
    table = new_table()
    table.add_column("Trial" if by_trial else "Metric", overflow="fold")
    against = "B ÷ A or ± B − A" if any(row.difference is not None for row in group) else "B ÷ A"
    for title in ("A", "B", f"{against} [interval]", *(() if narrow else ("p (Holm)", "q"))):
        table.add_column(literal(title), justify="right", no_wrap=True)
    table.add_column("Verdict", no_wrap=True)
    for comparison in group:
        name = sides_name(comparison) if by_trial else comparison.metric.name
        *figures, verdict = _comparison_cells(comparison)
        chances = [] if narrow else [_chance(comparison.p_corrected), _chance(comparison.q)]
        table.add_row(literal(name), *figures, *chances, verdict)
    return table


def _chance(p: float | None) -> Text:
    if p is None:
        return literal(NOTHING, "dim")
    return literal(significant(p, 2) if p >= 0.0001 else "<0.0001", "dim")


def _comparison_cells(comparison: Comparison) -> list[Text]:
    unit = comparison.metric.unit
    ratio, bracket, ends = ratio_text(comparison).partition(" [")
    return [
        literal(show(comparison.value_a, unit)),
        literal(show(comparison.value_b, unit)),
        join_texts(literal(ratio, "bold"), literal(bracket + ends, "dim")),
        literal(comparison.verdict.value, VERDICT_STYLES[comparison.verdict])
        if comparison.verdict
        else literal(NOTHING, "dim"),
    ]
