"""Contests of a suite in Markdown: ratings, outcomes, figures, and the cases that were not passed."""

from __future__ import annotations

from assay.model import Report, TrialReport
from assay.report.cases import case_rows, cases_of, expectation_text
from assay.report.contest_tables import figures_table, outcomes_table, ratings_table
from assay.report.pages.markdown_escape import table, text
from assay.report.pages.page import format_table
from assay.report.side_by_side import (
    Contest,
    as_text,
    baseline_notes,
    describe_unrated_dimensions,
    format_marked_label,
    has_own_title,
    heading,
    rating_doubts,
    rating_text,
    reference_texts,
    spending_notes,
)
from assay.units import count

_MISSED = 30
_TEXT = 120
_OUTPUTS = 5
"""Different outputs of the repetitions of a case."""


def contest_section(report: Report, contest: Contest) -> str:
    """Ratings, outcomes, what was used up, and the cases that were not passed."""
    parts = [
        f"## {text(heading(contest))}" + (f" (`{contest.benchmark}`)" if has_own_title(contest) else ""),
        f"{contest.size_text}; a case is passed from a score of {contest.pass_mark:g}.",
        format_table(ratings_table(contest)),
        "\n".join(
            f"- {text(reason)}"
            for reason in (*describe_unrated_dimensions(contest), *reference_texts(contest))
        ),
        "\n".join(f"> ⚠ {text(doubt)}  " for doubt in rating_doubts(contest)),
        format_table(outcomes_table(contest)),
        format_table(figures_table(contest)),
        "\n".join(f"- {text(note)}" for note in [*baseline_notes(contest), *spending_notes(contest)]),
        _format_missed(report, contest),
    ]
    return "\n\n".join(part for part in parts if part)


def _format_missed(report: Report, contest: Contest) -> str:
    """The hardest cases that were not passed.

    Different outputs of one case stand beside each other, as they show how steady it is.
    """
    found = [(row.case, *pair) for row in case_rows(contest) for pair in row.find_misses(contest)]
    if not found:
        return ""
    defined = cases_of(report, contest)
    rows = [
        (
            text(case),
            text(format_marked_label(entry, contest)),
            f"{tally.mean or 0:.2f}",
            text(
                " / ".join(
                    as_text(answer.output, _TEXT)
                    for answer in list(tally.answers)[:_OUTPUTS]
                    if answer.output
                )
            ),
            text(expectation_text(defined.get(case), _TEXT)),
            text(as_text(tally.excerpt.why, _TEXT) if tally.excerpt else ""),
        )
        for case, entry, tally in found[:_MISSED]
    ]
    whole = f"the hardest {_MISSED} of {count(len(found))}" if len(found) > _MISSED else count(len(found))
    names = ("Case", "Agent", "Score", "Outputs", "Expected", "Why")
    return f"### Cases not passed ({whole})\n\n" + table(names, rows, right=(2,))


def basis(trial: TrialReport) -> str:
    """What each rating of one trial rests on; nothing where there are none."""
    if trial.ratings is None:
        return ""
    marks = [*trial.ratings.dimensions.values(), trial.ratings.overall]
    rows = [(mark.dimension.capitalize(), rating_text(mark), text(mark.basis)) for mark in marks]
    return table(("Rating", "0 to 1 [interval]", "Rests on"), rows, right=(1,))
