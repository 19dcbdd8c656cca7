"""Contests of a suite for the terminal: its tables, then why something is missing or failed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from assay.model import TrialReport
from assay.report.cases import case_rows
from assay.report.console.screen import bullet, join_texts, literal
from assay.report.console.sections import print_table
from assay.report.contest_tables import figures_table, outcomes_table, ratings_table
from assay.report.figures import NOTHING, total
from assay.report.side_by_side import (
    Contest,
    ContestRow,
    baseline_notes,
    describe_unrated_dimensions,
    format_first_names,
    heading,
    reference_texts,
    spending_notes,
)
from assay.units import count

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_FEW = 5000
"""Executions that are looked through for cases that no agent solved; the documents have more."""
_NAMED = 6


def print_contest(contest: Contest, console: Console) -> None:
    """Ratings, outcomes and what was used up, then why something is missing or doubtful."""
    console.print(join_texts(literal(heading(contest), "bold"), literal(f"  {contest.size_text}", "dim")))
    for table in (ratings_table(contest), outcomes_table(contest), figures_table(contest)):
        print_table(table, console)
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
