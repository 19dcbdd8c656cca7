"""Comparisons of two sides, and of several over time, as a `Page`, from which Markdown and HTML are written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Comparison, Verdict
from assay.model.showdown import Course, Showdown
from assay.report.change import change_text, sides_name
from assay.report.console.showdown import flips_text, overall_text
from assay.report.contests import format_first_names
from assay.report.figures import NOTHING
from assay.report.leads import names_text
from assay.report.pages.page import Cell, Page, PageSection, Table
from assay.report.sides import side_lines
from assay.units import count, show, significant

if TYPE_CHECKING:
    from assay.pipeline.compare import Compared

_TONES = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.UNSURE: "warn", Verdict.SAME: "quiet"}
_CASES = 30


def comparison_page(found: Compared, refs: Sequence[str]) -> Page:
    """B against A: who wins, then the figures of each pair of trials."""
    if found.showdowns:
        is_certain = any(showdown.winner for showdown in found.showdowns)
    else:
        is_certain = any(one.verdict in (Verdict.BETTER, Verdict.WORSE) for one in found.comparisons)
    return Page(
        title=f"{refs[1]} against {refs[0]}",
        kind="compare",
        facts=side_lines(refs, (found.a, found.b)),
        verdict=_verdict(found),
        is_certain=is_certain,
        reasons=[text for one in found.showdowns for text in one.advice],
        sections=[
            *(_ratings(one) for one in found.showdowns if one.winners),
            *_trials(found.comparisons),
            *_cases(found.showdowns),
        ],
        warnings=found.doubts,
    )


def _verdict(found: Compared) -> str:
    """The comparison in a sentence: by the ratings where there are some, else by the verdicts on metrics, worse ones first."""
    if len(found.showdowns) == 1:
        one = found.showdowns[0]
        ahead = {who: [name for name, best in one.winners.items() if best == who] for who in (one.a, one.b)}
        if one.winner:
            return f"{one.winner} is better"
        parts = [f"{who} is better in {names_text(names)}" for who, names in ahead.items() if names]
        return "; ".join(parts) or f"{one.a} and {one.b} are tied"
    if found.showdowns:
        won = [one.winner for one in found.showdowns if one.winner]
        return f"{len(won)} of {len(found.showdowns)} agents differ for certain"
    parts = [
        f"{verdict.value} in {names_text(list(dict.fromkeys(one.metric.name for one in alike)))}"
        for verdict in (Verdict.WORSE, Verdict.BETTER)
        if (alike := [one for one in found.comparisons if one.verdict is verdict])
    ]
    return f"B is {', and '.join(parts)}" if parts else "B is not certainly better or worse than A"


def _ratings(found: Showdown) -> PageSection:
    rows = []
    for name, (a, b) in found.ratings.items():
        winner = found.winners.get(name)
        better = (
            Cell(winner, tone="good") if winner else Cell("equal" if a == b else "not certain", tone="quiet")
        )
        ends = found.intervals.get(name)
        apart = f" [{ends[0]:+.3f}, {ends[1]:+.3f}]" if ends else ""
        difference = Cell(f"{b - a:+.3f}{apart}" if a != b or ends else NOTHING, sort=b - a)
        rows.append([Cell(name), Cell(f"{a:.3f}"), Cell(f"{b:.3f}"), difference, better])
    table = Table(["Dimension", found.a, found.b, "B − A", "Better"], rows, words=(4,))
    told = ["B − A with its 95 % interval"] if found.intervals else []
    return PageSection("Ratings", [table], notes=[*told, overall_text(found)])


def _trials(comparisons: Sequence[Comparison]) -> list[PageSection]:
    """A section for each pair of trials, with the reasons of unsure verdicts beneath its table."""
    pairs: dict[str, list[Comparison]] = {}
    for one in comparisons:
        pairs.setdefault(sides_name(one), []).append(one)
    titles = ["Metric", "A", "B", "Change", "p (Holm)", "Verdict"]
    return [
        PageSection(
            name,
            [Table(titles, [_row(one) for one in alike], words=(5,))],
            notes=list(dict.fromkeys(f"{one.metric.name}: {one.reason}" for one in alike if one.reason)),
        )
        for name, alike in pairs.items()
    ]


def _row(one: Comparison) -> list[Cell]:
    unit, p = one.metric.unit, one.p_corrected
    p_text = NOTHING if p is None else significant(p, 2) if p >= 0.0001 else "<0.0001"
    return [
        Cell(one.metric.name),
        Cell(show(one.value_a, unit)),
        Cell(show(one.value_b, unit)),
        Cell(change_text(one)),
        Cell(p_text, tone="quiet"),
        _build_verdict_cell(one.verdict),
    ]


def _build_verdict_cell(verdict: Verdict | None) -> Cell:
    """A dash for a metric that nobody asked about: it is shown, and no part of the comparison."""
    return Cell(NOTHING, tone="quiet") if verdict is None else Cell(verdict.value, tone=_TONES[verdict])


def _cases(showdowns: Sequence[Showdown]) -> list[PageSection]:
    """Cases that one side passes and the other does not: what a change of the score consists of."""
    flips = [flip for one in showdowns for flip in one.flips]
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
    changed = [one for one in courses if one.verdict in (Verdict.BETTER, Verdict.WORSE)]
    told = [f"{one.trial}, {one.metric.name}: {one.verdict}" for one in changed]
    steps = [
        f"{one.trial}, {one.metric.name}: the level changed at {sides[step]}"
        for one in courses
        for step in one.steps
    ]
    rows = [
        [
            Cell(one.trial),
            Cell(one.metric.name),
            *(Cell(show(value, one.metric.unit), tone="" if n not in one.steps else "warn") for n, value in enumerate(one.values)),
            _build_verdict_cell(one.verdict),
        ]
        for one in courses
    ]  # fmt: skip
    table = Table(["Trial", "Metric", *sides, "Last against first"], rows, words=(1, len(sides) + 2))
    return Page(
        title=f"{sides[0]} to {sides[-1]}",
        kind="compare",
        facts=list(sides),
        verdict=f"{len(changed)} of {len(courses)} metrics changed"
        if changed
        else "Nothing changed for certain",
        is_certain=bool(changed),
        reasons=[f"{names_text(told)}."] if told else [],
        sections=[PageSection("Over time", [table], notes=steps)],
    )
