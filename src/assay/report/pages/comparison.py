"""Comparisons of two sides, and of several over time, as a `Page`, from which Markdown and HTML are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Comparison, Verdict
from assay.model.head_to_head import Course, Showdown
from assay.report.change import change_text, sides_name
from assay.report.console.head_to_head import flips_text, overall_text
from assay.report.figures import NOTHING
from assay.report.leads import names_text
from assay.report.pages.page import Cell, Page, PageSection, Table
from assay.report.side_by_side import format_first_names
from assay.report.sides import side_lines
from assay.units import count, show, significant

if TYPE_CHECKING:
    from assay.model.comparison import Compared

_TONES = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.UNSURE: "warn", Verdict.SAME: "quiet"}
_CASES = 30


def comparison_page(found: Compared, refs: Sequence[str]) -> Page:
    """B against A: who wins, then the figures of each pair of trials."""
    if found.showdowns:
        is_certain = any(showdown.winner for showdown in found.showdowns)
    else:
        is_certain = any(
            comparison.verdict in (Verdict.BETTER, Verdict.WORSE) for comparison in found.comparisons
        )
    return Page(
        title=f"{refs[1]} against {refs[0]}",
        kind="compare",
        facts=side_lines(refs, (found.a, found.b)),
        verdict=_verdict(found),
        is_certain=is_certain,
        reasons=[text for showdown in found.showdowns for text in showdown.advice],
        sections=[
            *(_ratings(showdown) for showdown in found.showdowns if showdown.winners),
            *_trials(found.comparisons),
            *_cases(found.showdowns),
        ],
        warnings=found.doubts,
    )


def _verdict(found: Compared) -> str:
    """The comparison in a sentence: by the ratings where there are some, else by the verdicts on metrics, worse ones first."""
    if len(found.showdowns) == 1:
        single = found.showdowns[0]
        ahead = {
            who: [name for name, best in single.winners.items() if best == who]
            for who in (single.a, single.b)
        }
        if single.winner:
            return f"{single.winner} is better"
        parts = [f"{who} is better in {names_text(names)}" for who, names in ahead.items() if names]
        return "; ".join(parts) or f"{single.a} and {single.b} are tied"
    if found.showdowns:
        won = [showdown.winner for showdown in found.showdowns if showdown.winner]
        return f"{len(won)} of {len(found.showdowns)} pairs of agents differ{'s' * (len(won) == 1)} significantly"
    parts = [
        f"{verdict.value} in {names_text(list(dict.fromkeys(comparison.metric.name for comparison in comparisons)))}"
        for verdict in (Verdict.WORSE, Verdict.BETTER)
        if (comparisons := [comparison for comparison in found.comparisons if comparison.verdict is verdict])
    ]
    return f"B is {', and '.join(parts)}" if parts else "B is not significantly better or worse than A"


def _ratings(found: Showdown) -> PageSection:
    rows = []
    for name, (a, b) in found.ratings.items():
        winner = found.winners.get(name)
        better = (
            Cell(winner, tone="good")
            if winner
            else Cell("equal" if a == b else "not significant", tone="quiet")
        )
        ends = found.intervals.get(name)
        apart = f" [{ends[0]:+.3f}, {ends[1]:+.3f}]" if ends else ""
        difference = Cell(f"{b - a:+.3f}{apart}" if a != b or ends else NOTHING, sort=b - a)
        rows.append([Cell(name), Cell(f"{a:.3f}"), Cell(f"{b:.3f}"), difference, better])
    table = Table(["Dimension", found.a, found.b, "B − A", "Better"], rows, words=(4,))
    notes = ["B − A with its 95 % interval"] if found.intervals else []
    return PageSection("Ratings", [table], notes=[*notes, overall_text(found)])


def _trials(comparisons: Sequence[Comparison]) -> list[PageSection]:
    """A section for each pair of trials, with the reasons of unsure verdicts beneath its table."""
    pairs: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        pairs.setdefault(sides_name(comparison), []).append(comparison)
    titles = ["Metric", "A", "B", "Change", "p (Holm)", "Verdict"]
    return [
        PageSection(
            name,
            [Table(titles, [_row(comparison) for comparison in trial_comparisons], words=(5,))],
            notes=list(
                dict.fromkeys(
                    f"{comparison.metric.name}: {comparison.reason}"
                    for comparison in trial_comparisons
                    if comparison.reason
                )
            ),
        )
        for name, trial_comparisons in pairs.items()
    ]


def _row(comparison: Comparison) -> list[Cell]:
    unit, p = comparison.metric.unit, comparison.p_corrected
    p_text = NOTHING if p is None else significant(p, 2) if p >= 0.0001 else "<0.0001"
    return [
        Cell(comparison.metric.name),
        Cell(show(comparison.value_a, unit)),
        Cell(show(comparison.value_b, unit)),
        Cell(change_text(comparison)),
        Cell(p_text, tone="quiet"),
        _build_verdict_cell(comparison.verdict),
    ]


def _build_verdict_cell(verdict: Verdict | None) -> Cell:
    """A dash for a metric that was not requested: it is shown, but is not part of the comparison."""
    return Cell(NOTHING, tone="quiet") if verdict is None else Cell(verdict.value, tone=_TONES[verdict])


def _cases(showdowns: Sequence[Showdown]) -> list[PageSection]:
    """Cases that one side passes and the other does not: what a change of the score consists of."""
    flips = [flip for showdown in showdowns for flip in showdown.flips]
    if not flips:
        return []
    rows = []
    for flip in flips:
        names = [format_first_names(cases, _CASES) or NOTHING for cases in (flip.won, flip.lost)]
        rows.append([Cell(flip.benchmark), *map(Cell, names), Cell(count(flip.unchanged))])
    table = Table(["Benchmark", "Won by B", "Lost by B", "Unchanged"], rows, words=(1, 2))
    return [PageSection("Cases", [table], notes=[flips_text(flip) for flip in flips])]


def history_page(courses: Sequence[Course], sides: Sequence[str]) -> Page:
    """Several sides in the order of time: the last against the first, and where the level changed."""
    changed = [course for course in courses if course.verdict in (Verdict.BETTER, Verdict.WORSE)]
    changes = [f"{course.trial}, {course.metric.name}: {course.verdict}" for course in changed]
    steps = [
        f"{course.trial}, {course.metric.name}: the level changed at {sides[step]}"
        for course in courses
        for step in course.steps
    ]
    rows = [
        [
            Cell(course.trial),
            Cell(course.metric.name),
            *(Cell(show(value, course.metric.unit), tone="" if n not in course.steps else "warn") for n, value in enumerate(course.values)),
            _build_verdict_cell(course.verdict),
        ]
        for course in courses
    ]  # fmt: skip
    table = Table(["Trial", "Metric", *sides, "Last against first"], rows, words=(1, len(sides) + 2))
    return Page(
        title=f"{sides[0]} to {sides[-1]}",
        kind="compare",
        facts=list(sides),
        verdict=f"{len(changed)} of {len(courses)} metrics changed" if changed else "No significant change",
        is_certain=bool(changed),
        reasons=[f"{names_text(changes)}."] if changes else [],
        sections=[PageSection("Over time", [table], notes=steps)],
    )
