"""The tables of a contest for the terminal and Markdown: ratings, outcomes, and times, tokens and costs.

They share the first column. Each fits into 80 columns, for which titles break and intervals stand beneath their values.
"""

from __future__ import annotations

from assay.model import Rating
from assay.model.page import Cell, Table
from assay.report.figures import NOTHING
from assay.report.side_by_side import (
    COLUMNS,
    UNKNOWN,
    Contest,
    ContestRow,
    ends_text,
    figures_of,
    format_marked_label,
    format_solved_cases,
    name_solved_cases,
    outcome_names,
    outcome_numbers,
    tries_texts,
    value_text,
)
from assay.units import count

_GOOD, _POOR = 0.75, 0.4
_TONES = {"pass": "good", "agent error": "bad", "limit": "bad"}


def ratings_table(contest: Contest) -> Table:
    rows = [
        [_agent(contest, entry, entry.version), *(_rating(entry.rating(name)) for name in COLUMNS)]
        for entry in contest.entries
    ]
    return Table(["Agent", *(name.capitalize() for name in COLUMNS)], rows)


def _agent(contest: Contest, entry: ContestRow, version: str = "") -> Cell:
    label = format_marked_label(entry, contest)
    short = version[:12]
    return Cell(label, note=short, brief=f"{label}\n{short}" if short else "")


def _rating(rating: Rating) -> Cell:
    if rating.value is None:
        return Cell(NOTHING, tone="quiet")
    value, ends = value_text(rating), ends_text(rating)
    # Six columns leave no room for leading zeros on a narrow terminal.
    short = ends.replace("0.", ".").replace("1.00", "1")
    tone = "good" if rating.value >= _GOOD else "bad" if rating.value < _POOR else ""
    return Cell(f"{value}\n{ends}".strip(), rating, tone, brief=f"{value}\n{short}".strip())


def outcomes_table(contest: Contest) -> Table:
    """What became of each agent's executions, and how many cases it solved."""
    tries = [name for name, _ in tries_texts(contest, contest.entries[0])]
    names = ["agent", *outcome_names(contest), name_solved_cases(contest)]
    rows = [
        [
            _agent(contest, entry),
            *(
                Cell(count(number), tone=_TONES.get(name, "warn") if number else "quiet")
                for name, number in outcome_numbers(contest, entry)
            ),
            Cell(format_solved_cases(entry.ratings)),
            *(Cell(text) for _, text in tries_texts(contest, entry)),
        ]
        for entry in contest.entries
    ]
    titles = [*(name.capitalize() for name in names), *tries]
    return Table(titles, rows, brief_titles=[title.replace(" ", "\n") for title in titles])


def figures_table(contest: Contest) -> Table:
    """Times, tokens and costs, after what the benchmark leads with."""
    figures = figures_of(contest)
    names = [
        "Agent",
        *(figure.title.capitalize() if figure.title != figure.metric else figure.title for figure in figures),
    ]
    tones = {NOTHING: "quiet", UNKNOWN: "quiet", "none solved": "warn"}
    rows = [
        [
            _agent(contest, entry),
            *(Cell(text, tone=tones.get(text, "")) for text in (figure.text(entry) for figure in figures)),
        ]
        for entry in contest.entries
    ]
    titles = [f"{name} case" if name.endswith("per solved") else name for name in names]
    return Table(titles, rows, brief_titles=[name.replace(" per", "\nper") for name in names])
