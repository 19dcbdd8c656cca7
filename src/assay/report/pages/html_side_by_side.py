"""What the HTML page shows of a contest: its charts, its warnings, and the cases that agents did not pass.

`details` collects the inputs and answers that the page shows when a reader selects a case in the matrix. Charts hang in a
`Gallery`, which gives each a number and a place; the script of the page draws them there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.model import Case, Report
from assay.model.standing import Lead
from assay.plugin.charts import Chart, Spec
from assay.report.cases import (
    CaseRow,
    CaseTally,
    case_rows,
    case_title,
    cases_of,
    expectation_text,
    input_text,
)
from assay.report.charts.side_by_side import contest_charts, select_cases
from assay.report.figures import trial_doubts
from assay.report.leads import lead_of
from assay.report.side_by_side import Contest, ContestRow, as_text, rating_doubts

MISSED = 50
"""Rows of missed cases for each contest; the other formats have them all."""
_TEXT = 400
_DETAILS = 1_500_000
"""Characters that the details of all cases share, so that they stay a small part of the page."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A case that an agent did not pass."""

    case: str
    title: str
    entry: ContestRow
    score: float
    outputs: tuple[tuple[str, str], ...]
    """Every different output, and which repetitions gave it."""
    expected: str
    why: str
    outcome: str


@dataclass(frozen=True, slots=True)
class ContestView:
    """A contest as the page shows it."""

    contest: Contest
    rows: Sequence[CaseRow]
    places: Mapping[str, ChartPlace]
    doubts: tuple[str, ...]
    missed: tuple[Missed, ...]
    missed_in_all: int
    lead: Lead | None
    titles: Mapping[str, str]
    """Case to its title, for the cases that can be chosen."""


def contest_views(report: Report, held: Sequence[Contest], gallery: Gallery) -> list[ContestView]:
    return [_view(report, contest, gallery) for contest in held]


def _view(report: Report, contest: Contest, gallery: Gallery) -> ContestView:
    """A contest with everything that the page shows of it.

    Rows of cases are computed once, as they take a pass over all executions.
    """
    rows = case_rows(contest)
    defined = cases_of(report, contest)
    missed = [(row.case, entry, tally) for row in rows for entry, tally in row.find_misses(contest)]
    charts = contest_charts(contest, rows)
    return ContestView(
        contest=contest,
        rows=rows,
        places={chart.name.partition("-")[0]: gallery.hang(chart) for chart in charts},
        doubts=tuple(_doubts(report, contest)),
        missed=tuple(
            _build_missed(case, entry, tally, defined.get(case)) for case, entry, tally in missed[:MISSED]
        ),
        missed_in_all=len(missed),
        lead=lead_of(report, contest.benchmark, is_simulated=contest.is_simulated),
        titles={row.case: case_title(defined.get(row.case)) for row in select_cases(rows)},
    )


def _doubts(report: Report, contest: Contest) -> list[str]:
    """List the warnings about the ratings, then those about the trials of the agents."""
    of_trials = [
        f"{entry.label}: {doubt.message} {doubt.hint}".strip()
        for entry in contest.entries
        for doubt in trial_doubts(report, entry.trial)
    ]
    return [*rating_doubts(contest), *of_trials]


def _build_missed(case: str, entry: ContestRow, tally: CaseTally, definition: Case | None) -> Missed:
    """A missed case for the table beneath a contest: what was answered, what was expected, and why that did not pass."""
    excerpt = tally.excerpt
    return Missed(
        case=case,
        title=case_title(definition),
        entry=entry,
        score=tally.mean or 0.0,
        outputs=tuple(
            (repetitions_text(repetitions, tally), as_text(answer.output, _TEXT))
            for answer, repetitions in tally.answers.items()
            if answer.output
        ),
        expected=expectation_text(definition, _TEXT),
        why=as_text(excerpt.why, _TEXT) if excerpt else "",
        outcome=excerpt.outcome if excerpt else "",
    )


def repetitions_text(repetitions: Sequence[int], tally: CaseTally) -> str:
    """Which repetitions gave an output; nothing where there is only one output."""
    if len(tally.answers) == 1 and not tally.unkept:
        return ""
    numbers = ", ".join(str(number + 1) for number in sorted(repetitions))
    return f"repetition{'s' * (len(repetitions) > 1)} {numbers}"


def details(report: Report, views: Sequence[ContestView]) -> dict[str, Any]:
    """Case by case what was asked and every answer to it, for the cases in the matrices; by contest and id."""
    answers = sum(
        len(tally.answers)
        for view in views
        for row in select_cases(view.rows)
        for tally in row.tallies
        if tally
    )
    # Input, expectation and answer share the room, so each text gets a third of what an answer may take, but never less than
    # a few words.
    limit = min(_TEXT, max(40, _DETAILS // max(1, 3 * answers)))
    return {view.contest.key: _details(report, view, limit) for view in views}


def _details(report: Report, view: ContestView, limit: int) -> dict[str, Any]:
    """Inputs and answers of the cases that the matrix shows, by case.

    The script of the page looks them up when a cell is clicked.
    """
    defined = cases_of(report, view.contest)
    return {
        row.case: {
            "title": case_title(defined.get(row.case)),
            "input": input_text(defined.get(row.case), limit),
            "expected": expectation_text(defined.get(row.case), limit),
            "answers": [
                _answer(entry.label, tally, limit)
                for entry, tally in zip(view.contest.entries, row.tallies, strict=True)
                if tally is not None
            ],
        }
        for row in select_cases(view.rows)
    }


def _answer(agent: str, tally: CaseTally, limit: int) -> dict[str, Any]:
    return {
        "agent": agent,
        "score": tally.mean,
        "outcomes": dict(tally.outcomes),
        "unkept": tally.unkept,
        "outputs": [
            {
                "repetitions": repetitions_text(repetitions, tally),
                "outcome": answer.outcome,
                "output": as_text(answer.output, limit),
                "why": as_text(answer.why, limit),
            }
            for answer, repetitions in tally.answers.items()
        ],
    }


@dataclass(frozen=True, slots=True)
class ChartPlace:
    """Where a chart will be drawn; its height is kept free so that nothing jumps when it is."""

    id: str
    name: str
    height: int
    text: str


@dataclass(slots=True)
class Gallery:
    """Hands out places and keeps the specifications for them."""

    specs: dict[str, Spec] = field(default_factory=dict)
    prefix: str = "c"
    """Prefix of the names of places; different ones where two galleries are on one page."""

    def hang(self, chart: Chart) -> ChartPlace:
        identity = f"{self.prefix}{len(self.specs)}"
        self.specs[identity] = chart.spec
        return ChartPlace(identity, chart.name, chart.spec.get("height", 200) + 96, chart.spec["description"])
