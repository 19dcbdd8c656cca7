"""Contests of a suite for the terminal.

Three tables share the first column: ratings with their intervals, outcomes of the executions, and times, tokens and costs. Each
fits into 80 columns; with more room, intervals move from a second line to the right of their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.model import Rating, TrialReport
from assay.report.cases import case_rows
from assay.report.console.screen import NARROW, bullet, join_texts, literal, new_table
from assay.report.figures import NOTHING, total
from assay.report.side_by_side import (
    COLUMNS,
    UNKNOWN,
    Contest,
    ContestRow,
    baseline_notes,
    describe_unrated_dimensions,
    ends_text,
    figures_of,
    format_first_names,
    format_solved_cases,
    heading,
    name_solved_cases,
    outcome_names,
    outcome_numbers,
    provenance_mark,
    reference_texts,
    spending_notes,
    tries_texts,
    value_text,
)
from assay.units import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_FEW = 5000
"""Executions that are looked through for cases that no agent solved; the documents have more."""
_NAMED = 6
_ONE_LINE = 150
"""From this width on a rating and its interval stand in one line."""
_GOOD, _POOR = 0.75, 0.4
_STYLES = {
    "pass": "green",
    "fail": "yellow",
    "agent error": "red",
    "limit": "red",
    "harness error": "magenta",
}


def print_contest(contest: Contest, console: Console) -> None:
    """Ratings, outcomes and what was used up, then why something is missing or doubtful."""
    tight = console.width < NARROW
    console.print(join_texts(literal(heading(contest), "bold"), literal(f"  {contest.size_text}", "dim")))
    tables = (_ratings(contest, console.width), _outcomes(contest, tight), _figures(contest, tight))
    for table in tables:
        console.print(table)
        console.print()
    notes = list(_notes(contest))
    for note in notes:
        console.print(note)
    if notes:
        console.print()


def _notes(contest: Contest) -> Iterator[Table]:
    """Remarks beneath the tables: why a rating is missing, what ratings are relative to, how costs are known, and what
    failed."""
    for reason in describe_unrated_dimensions(contest):
        yield bullet(NOTHING, reason, "dim")
    for text in reference_texts(contest):
        yield bullet("=", text, "dim")
    for text in baseline_notes(contest):
        yield bullet("=", text, "dim")
    for text in spending_notes(contest):
        yield bullet("$", text, "dim")
    for text in [
        *(text for entry in contest.entries for text in _failures(entry)),
        *_describe_unsolved(contest),
    ]:
        yield bullet("✗", text, "red")


def _agents(*, tight: bool) -> Table:
    table = new_table(tight=tight)
    table.add_column("Agent", overflow="fold", min_width=12)
    return table


def _agent(contest: Contest, entry: ContestRow) -> Text:
    return join_texts(literal(entry.label), literal(provenance_mark(entry, contest), "yellow"))


def _ratings(contest: Contest, width: int) -> Table:
    table = _agents(tight=width < NARROW)
    for name in COLUMNS:
        table.add_column(name, justify="right", no_wrap=True)
    for entry in contest.entries:
        cells = [_rating(entry.rating(name), width) for name in COLUMNS]
        version = f"\n{entry.version[:12]}" if entry.version else ""
        table.add_row(join_texts(_agent(contest, entry), literal(version, "dim")), *cells)
    return table


def _rating(rating: Rating, width: int) -> Text:
    """The value, and beneath or beside it the interval."""
    value = literal(value_text(rating), _style(rating.value))
    ends = ends_text(rating)
    if not ends:
        return value
    if width < NARROW:  # six columns of them leave no room for leading zeros
        ends = ends.replace("0.", ".").replace("1.00", "1")
    return join_texts(value, literal(f"{' ' if width >= _ONE_LINE else chr(10)}{ends}", "dim"))


def _style(value: float | None) -> str:
    if value is None:
        return "dim"
    return "bold green" if value >= _GOOD else "bold red" if value < _POOR else "bold"


def _outcomes(contest: Contest, tight: bool) -> Table:
    """What became of the executions, with the cases that were solved. Titles break at blanks, so that six columns fit."""
    table = _agents(tight=tight)
    tries = [name for name, _ in tries_texts(contest, contest.entries[0])]
    for title in (*outcome_names(contest), name_solved_cases(contest), *tries):
        table.add_column(literal(title.replace(" ", "\n")), justify="right", no_wrap=True)
    for entry in contest.entries:
        numbers = [
            literal(count(number), _STYLES.get(name, "yellow") if number else "dim")
            for name, number in outcome_numbers(contest, entry)
        ]
        cells = [literal(text) for _, text in tries_texts(contest, entry)]
        table.add_row(_agent(contest, entry), *numbers, literal(format_solved_cases(entry.ratings)), *cells)
    return table


def _figures(contest: Contest, tight: bool) -> Table:
    table = _agents(tight=tight)
    figures = figures_of(contest)
    for figure in figures:
        table.add_column(literal(figure.title.replace(" per", "\nper")), justify="right", no_wrap=True)
    for entry in contest.entries:
        table.add_row(_agent(contest, entry), *(_figure(figure.text(entry)) for figure in figures))
    return table


def _figure(text: str) -> Text:
    if text in (UNKNOWN, "none solved"):
        return literal(text, "dim" if text == UNKNOWN else "yellow")
    middle, bracket, ends = text.partition(" [")
    return join_texts(literal(middle, "dim" if text == NOTHING else ""), literal(bracket + ends, "dim"))


def _failures(entry: ContestRow) -> Iterator[str]:
    """What went wrong in an agent's executions, status by status, each with its first error and where it happened."""
    trial = entry.trial
    missing = {status: n for status, n in trial.counts.items() if status != "ok" and n}
    if missing:
        reasons = "; ".join(f"{count(n)} {_format_failure(trial, status)}" for status, n in missing.items())
        yield f"{entry.label}: {count(sum(missing.values()))} of {count(total(trial))} executions were not ok: {reasons}"


def _format_failure(trial: TrialReport, status: str) -> str:
    failures = [failure for failure in trial.failures if failure.status == status]
    errors = [failure.error.strip().splitlines()[-1] for failure in failures if failure.error]
    cases = format_first_names(
        dict.fromkeys(failure.case for failure in failures if failure.case), _NAMED // 2
    )
    details = ", ".join([*errors[:1], *([cases] if cases else [])])
    return status.replace("_", " ") + (f" ({details})" if details else "")


def _describe_unsolved(contest: Contest) -> Iterator[str]:
    """Cases that no agent passed, where a look at every execution is cheap."""
    if sum(total(entry.trial) for entry in contest.entries) > _FEW:
        return
    rows = case_rows(contest)
    missed = [row.case for row in rows if len(list(row.find_misses(contest))) == len(contest.entries)]
    if missed:
        subject = "the agent did not solve" if len(contest.entries) == 1 else "no agent solved"
        tries = contest.most_tries
        how = f", by the mean score of {count(tries)} repetitions" if tries > 1 else ""
        yield f"{subject} {count(len(missed))} of {count(len(rows))} cases{how}: {format_first_names(missed, _NAMED)}"
