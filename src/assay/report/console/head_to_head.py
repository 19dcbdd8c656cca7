"""The result of `assay compare` for the terminal: who wins, and how a metric developed over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model.head_to_head import Course, Flips, Showdown
from assay.report.console.gate import lost_text
from assay.report.console.run import print_comparisons
from assay.report.console.screen import VERDICT_STYLES, bullet, literal, new_table
from assay.report.sides import print_sides
from assay.units import and_list, count, format_count, percent, show, without_dust

if TYPE_CHECKING:
    from rich.console import Console

    from assay.model.comparison import Compared

_MOST_SIDES = 6
_FLIPS = 2
"""More benchmarks than this share one line."""


def print_comparison(found: Compared, refs: Sequence[str], console: Console, *, has_ratings: bool) -> None:
    """Two sides: the runs they come from, metric by metric, then agent by agent."""
    print_sides(refs, (found.a, found.b), console)
    print_comparisons(found.comparisons, found.doubts, console)
    for showdown in found.showdowns:
        print_showdown(showdown, console, has_ratings=has_ratings)


def print_showdown(found: Showdown, console: Console, *, has_ratings: bool = True) -> None:
    """Ratings by dimension, cases won and lost, and the verdict last."""
    if found.winners and has_ratings:
        table = new_table()
        table.add_column("Dimension")
        for side in (found.a, found.b):
            table.add_column(side, justify="right", overflow="fold")
        table.add_column("Better")
        for name, (a, b) in found.ratings.items():
            winner = found.winners.get(name)
            table.add_row(
                literal(name, "bold" if name == "overall" else ""),
                literal(f"{a:.3f}", "green" if winner == found.a else ""),
                literal(f"{b:.3f}", "green" if winner == found.b else ""),
                literal(
                    winner or ("equal" if not without_dust(a - b, a, b) else "not significant"),
                    "" if winner else "dim",
                ),
            )
        console.print(table)
        if found.left_out:
            console.print(literal(overall_text(found), "dim"))
    for line in (
        [flips_text(flips) for flips in found.flips]
        if len(found.flips) <= _FLIPS
        else [_sum_text(found.flips)]
    ):
        console.print(bullet("↔", line, "cyan"))
    for flips in found.flips:
        if flips.lost:
            console.print(bullet("✗", lost_text(flips), "red"))
    for number, text in enumerate(found.advice):
        # The first is the verdict, a result; what follows is what to do about it.
        console.print(bullet("→" if number else "=", text, "cyan"))


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
    won, lost = (
        sum(len(benchmark_flips.won) for benchmark_flips in flips),
        sum(len(benchmark_flips.lost) for benchmark_flips in flips),
    )
    sums = [
        f"{benchmark_flips.benchmark} +{len(benchmark_flips.won)} −{len(benchmark_flips.lost)}"
        for benchmark_flips in flips
        if benchmark_flips.won or benchmark_flips.lost
    ]
    same = count(sum(benchmark_flips.unchanged for benchmark_flips in flips))
    sentence = f"{format_count(won, 'case')} won, {count(lost)} lost, {same} unchanged"
    return f"{sentence}: {', '.join(sums)}" if sums else sentence


def print_courses(courses: Sequence[Course], sides: Sequence[str], console: Console) -> None:
    """Several sides as columns, oldest first. Of many, the first and the newest are shown, as the verdict is about these."""
    table = new_table()
    table.add_column("Trial", overflow="fold")
    table.add_column("Metric", no_wrap=True)
    columns = (
        list(range(len(sides)))
        if len(sides) <= _MOST_SIDES
        else [0, *range(len(sides) - _MOST_SIDES + 1, len(sides))]
    )
    for number in columns:
        table.add_column(sides[number], justify="right", overflow="fold")
    table.add_column("Last against first")
    for course in courses:
        values = [
            literal(show(course.values[n], course.metric.unit), "bold" if n in course.steps else "")
            for n in columns
        ]
        table.add_row(
            literal(course.trial),
            literal(course.metric.name),
            *values,
            literal(course.verdict, VERDICT_STYLES[course.verdict])
            if course.verdict
            else literal("–", "dim"),
        )
    console.print(table)
    for course in courses:
        for step in course.steps:
            text = f"{course.trial}, {course.metric.name}: the level changed at {sides[step]}"
            console.print(bullet("▲", text, "yellow"))
