"""Comparisons of two sides, and of several over time, as a `Page`, for the terminal, Markdown and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model import Comparison, Verdict
from assay.model.head_to_head import Course, Flips, Showdown
from assay.model.page import ListItem, Points
from assay.report.change import change_text, sides_name
from assay.report.console.gate import lost_text
from assay.report.figures import NOTHING
from assay.report.leads import names_text
from assay.report.pages.page import Cell, Page, PageSection, Table
from assay.report.side_by_side import format_first_names
from assay.report.sides import side_lines
from assay.units import and_list, count, drop_rounding_error, format_count, percent, show, significant

if TYPE_CHECKING:
    from assay.model.comparison import Compared

_TONES = {Verdict.BETTER: "good", Verdict.WORSE: "bad", Verdict.UNSURE: "warn", Verdict.SAME: "quiet"}
_CASES = 30
_FLIPS = 2
"""More benchmarks than this share one line of a terminal."""
_NAMED_UNASKED = 4
"""Metrics without a verdict that are named; of more only their number is."""
_MOST_SIDES = 6
"""More than this do not fit a terminal."""


def comparison_page(found: Compared, refs: Sequence[str], metrics: Sequence[str] = ()) -> Page:
    """B against A: who wins, then the figures of each pair of trials.

    Who asks for single metrics is not shown the ratings, which rest on all of them.
    """
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
            *(_ratings(showdown) for showdown in found.showdowns if showdown.winners and not metrics),
            *trial_sections(found.comparisons),
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
            else Cell("not significant" if drop_rounding_error(a - b, a, b) else "equal", tone="quiet")
        )
        ends = found.intervals.get(name)
        apart = f" [{ends[0]:+.3f}, {ends[1]:+.3f}]" if ends else ""
        between = Cell(f"{b - a:+.3f}{apart}" if a != b or ends else NOTHING, sort=b - a)
        rows.append([Cell(name), Cell(f"{a:.3f}"), Cell(f"{b:.3f}"), between, better])
    difference = f"B − A{' [95 % interval]' if found.intervals else ''}"
    titles = ["Dimension", found.a, found.b, difference, "Better"]
    return PageSection("Ratings", [Table(titles, rows, words=(4,), minor=(3,))], notes=[overall_text(found)])


def overall_text(found: Showdown) -> str:
    """
    >>> overall_text(Showdown("a", "b", {}, {"accuracy": (1, 1), "speed": (1, 1), "overall": (1, 1)}, (), (), ("cost",)))
    'overall combines accuracy and speed, and leaves out cost, which is not rated on both sides'
    """
    parts = [name for name in found.ratings if name != "overall"]
    if "overall" not in found.ratings:
        return "no overall rating: scoring failed on one side"
    text = f"overall combines {and_list(parts)}"
    are = "is" if len(found.left_out) == 1 else "are"
    return (
        f"{text}, and leaves out {and_list(found.left_out)}, which {are} not rated on both sides"
        if found.left_out
        else text
    )


def trial_sections(comparisons: Sequence[Comparison]) -> list[PageSection]:
    """A section for each pair of trials, or a single one of a single metric, with the reasons of unsure verdicts."""
    by_trial = len({comparison.metric.name for comparison in comparisons}) == 1
    groups: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        heading = comparison.metric.name if by_trial else sides_name(comparison)
        groups.setdefault(heading, []).append(comparison)
    unasked = list(dict.fromkeys(found.metric.name for found in comparisons if found.verdict is None))
    titles = ["Trial" if by_trial else "Metric", "A", "B", "Change", "p (Holm)", "q", "Verdict"]
    sections = []
    for place, (heading, group) in enumerate(groups.items(), 1):
        table = Table(titles, [_row(found, by_trial=by_trial) for found in group], words=(6,), minor=(4, 5))
        reasons = Points([ListItem(text, "unsure") for text in _list_reasons(group, by_trial=by_trial)])
        notes = [_format_unasked(unasked)] if unasked and place == len(groups) else []
        sections.append(PageSection(heading, [table, *([reasons] if reasons.points else [])], notes=notes))
    return sections


def _list_reasons(group: Sequence[Comparison], *, by_trial: bool) -> list[str]:
    """Each once, after what it is about: one that refuses a benchmark holds for all of its metrics."""
    found: dict[str, list[str]] = {}
    for comparison in group:
        if comparison.reason:
            found.setdefault(comparison.reason, []).append(_name(comparison, by_trial=by_trial))
    return [f"{', '.join(names)}: {reason}" for reason, names in found.items()]


def _format_unasked(names: Sequence[str]) -> str:
    """
    >>> _format_unasked(["itl", "tpot"])
    'Not judged by default: itl, tpot. To judge them: --metric itl --metric tpot'
    """
    if len(names) <= _NAMED_UNASKED:
        hint = " ".join(f"--metric {name}" for name in names)
        return f"Not judged by default: {', '.join(names)}. To judge {'it' if len(names) == 1 else 'them'}: {hint}"
    return f"Not judged by default: {len(names)} other metrics (–). To judge one: --metric {names[0]}"


def _name(comparison: Comparison, *, by_trial: bool) -> str:
    return sides_name(comparison) if by_trial else comparison.metric.name


def _row(comparison: Comparison, *, by_trial: bool) -> list[Cell]:
    unit = comparison.metric.unit
    return [
        Cell(_name(comparison, by_trial=by_trial)),
        Cell(show(comparison.value_a, unit)),
        Cell(show(comparison.value_b, unit)),
        Cell(change_text(comparison)),
        *(Cell(_chance_text(p), tone="quiet") for p in (comparison.p_corrected, comparison.q)),
        _build_verdict_cell(comparison.verdict),
    ]


def _chance_text(p: float | None) -> str:
    return NOTHING if p is None else significant(p, 2) if p >= 0.0001 else "<0.0001"


def _build_verdict_cell(verdict: Verdict | None) -> Cell:
    """A dash for a metric that was not requested: it is shown, but is not part of the comparison."""
    return Cell(NOTHING, tone="quiet") if verdict is None else Cell(verdict.value, tone=_TONES[verdict])


def _cases(showdowns: Sequence[Showdown]) -> list[PageSection]:
    """Cases that one side passes and the other does not: what a change of the score consists of."""
    sections = []
    for showdown in showdowns:
        if not showdown.flips:
            continue
        rows = []
        for flips in showdown.flips:
            names = [format_first_names(cases, _CASES) or NOTHING for cases in (flips.won, flips.lost)]
            rows.append([Cell(flips.benchmark), *map(Cell, names), Cell(count(flips.unchanged))])
        sums = "; ".join(map(flips_text, showdown.flips))
        is_few = len(showdown.flips) <= _FLIPS
        table = Table(
            ["Benchmark", "Won by B", "Lost by B", "Unchanged"],
            rows,
            words=(1, 2),
            caption=None if is_few else Cell(sums),
            terminal=tuple(ListItem(lost_text(flips), "bad") for flips in showdown.flips if flips.lost),
        )
        title = "Cases" if len(showdowns) == 1 else f"Cases of {showdown.b} against {showdown.a}"
        sections.append(PageSection(title, [table], finding=sums if is_few else _sum_text(showdown.flips)))
    return sections


def flips_text(flips: Flips) -> str:
    """
    >>> flips_text(Flips("sums", ("a",), ("b", "c"), 7))
    'sums: 1 case won, 2 lost, 7 unchanged (70 %)'
    >>> flips_text(Flips("sums", (), (), 0))
    'sums: no case in common'
    """
    total = sum(map(len, (flips.won, flips.lost, flips.stronger, flips.weaker))) + flips.unchanged
    if not total:
        return f"{flips.benchmark}: no case in common"
    partly = [
        f"{count(len(cases))} {what}"
        for cases, what in ((flips.stronger, "stronger"), (flips.weaker, "weaker"))
        if cases
    ]
    won = f"{format_count(len(flips.won), 'case')} won"
    same = f"{count(flips.unchanged)} unchanged ({percent(flips.unchanged / total)})"
    return f"{flips.benchmark}: {', '.join((won, f'{count(len(flips.lost))} lost', *partly, same))}"


def _sum_text(flips: Sequence[Flips]) -> str:
    """Cases of all benchmarks together, then of each that has changed ones."""
    won, lost, same = (
        sum(numbers)
        for numbers in zip(*((len(each.won), len(each.lost), each.unchanged) for each in flips), strict=True)
    )
    changed = [
        f"{each.benchmark} +{len(each.won)} −{len(each.lost)}" for each in flips if each.won or each.lost
    ]
    sentence = f"{format_count(won, 'case')} won, {count(lost)} lost, {count(same)} unchanged"
    return f"{sentence}: {', '.join(changed)}" if changed else sentence


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
    # Of many sides a terminal shows the first and the newest, as the verdict is about these.
    middle = range(3, len(sides) + 3 - _MOST_SIDES + 1) if len(sides) > _MOST_SIDES else ()
    titles = ["Trial", "Metric", *sides, "Last against first"]
    table = Table(titles, rows, words=(1, len(sides) + 2), minor=middle)
    return Page(
        title=f"{sides[0]} to {sides[-1]}",
        kind="compare",
        facts=list(sides),
        verdict=f"{len(changed)} of {len(courses)} metrics changed" if changed else "No significant change",
        is_certain=bool(changed),
        reasons=[f"{names_text(changes)}."] if changes else [],
        sections=[PageSection("Over time", [table], notes=steps)],
    )
