"""A history of values for the terminal: a line of bars, the change points in it, and a sentence that sums them up.

A change point is pending while too few points follow it to be certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from assay.report.console.screen import bullet, join_texts, literal, new_table
from assay.report.figures import NOTHING
from assay.stats.changepoint import ChangePoint, Drift, History
from assay.units import count, percent, significant

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

_BLOCKS = "▁▂▃▄▅▆▇█"
_LEVELS = ("cyan", "blue")
_MARK, _PENDING_MARK = "▲", "△"
_WIDEST = 100


def print_history(values: Sequence[float], found: History, console: Console) -> None:
    """The series as a line of bars with marks beneath, its change points, its drift, and what that means."""
    if values:
        for line in _picture(values, found, min(console.width - 24, _WIDEST)):
            console.print(line, no_wrap=True)
        console.print()
    if found.change_points:
        console.print(_table(found.change_points))
    if found.drift is not None:
        console.print(
            bullet("↗" if found.drift.after > found.drift.before else "↘", _drift_text(found.drift), "yellow")
        )
    console.print(literal(sentence(found), "bold"))


def sentence(found: History) -> str:
    """The finding in words.

    >>> sentence(History((), None, 5, "5 points, but at least 16 are needed"))
    'Too few points to find a change: 5 points, but at least 16 are needed.'
    """
    if found.reason:
        return f"Too few points to find a change: {found.reason}."
    size = f"{count(found.n)} points"
    if not found.change_points:
        nothing = "No change point" if found.drift is None else "One slow drift, no steps"
        return f"{nothing} in {size}."
    settled, pending = (
        [change_point for change_point in found.change_points if change_point.is_pending is so]
        for so in (False, True)
    )
    sentences = []
    if len(settled) == 1:
        sentences.append(f"{_describe_change(settled[0])}, in {size}.")
    elif settled:
        largest = max(settled, key=lambda change_point: abs(change_point.change or 0.0))
        sentences.append(
            f"{len(settled)} change points in {size}, the largest {_describe_change(largest, 'a')}."
        )
    sentences += [
        f"{_describe_change(change_point)} is pending: wait for the next points." for change_point in pending
    ]
    return " ".join(sentences)


def _describe_change(change_point: ChangePoint, article: str = "A") -> str:
    return f"{article} change{'' if change_point.change is None else f' of {_format_signed_percent(change_point.change)}'} at {change_point.index}"


def _picture(values: Sequence[float], found: History, width: int) -> list[Text]:
    columns = min(len(values), max(width, 10))
    edges = [len(values) * column // columns for column in range(columns + 1)]
    bars = [median(values[start:stop]) for start, stop in pairwise(edges)]
    low, high = min(bars), max(bars)
    scale = literal(f"  {significant(low)} … {significant(high)}", "dim")
    return [join_texts(_bars(bars, low, high, edges, found), scale), *_marks(edges, found)]


def _bars(bars: Sequence[float], low: float, high: float, edges: Sequence[int], found: History) -> Text:
    """Neighbouring levels differ in colour; the halves keep a range beyond the largest number finite."""
    reach = high / 2 - low / 2
    heights = [(bar / 2 - low / 2) / reach if reach > 0 else 0.0 for bar in bars]
    cuts = [change_point.index for change_point in found.change_points]
    return join_texts(
        *(
            literal(
                _BLOCKS[round(height * (len(_BLOCKS) - 1))], _LEVELS[sum(cut <= edge for cut in cuts) % 2]
            )
            for height, edge in zip(heights, edges, strict=False)
        )
    )


def _marks(edges: Sequence[int], found: History) -> list[Text]:
    if not found.change_points:
        return []
    row = [" "] * (len(edges) - 1)
    for change_point in found.change_points:
        column = sum(edge <= change_point.index for edge in edges) - 1
        row[column] = _PENDING_MARK if change_point.is_pending else _MARK
    return [literal("".join(row).rstrip(), "bold")]


def _table(change_points: Sequence[ChangePoint]) -> Table:
    table = new_table()
    for title in ("Index", "Before", "", "After", "Change", "p"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("State", no_wrap=True)
    for change_point in change_points:
        table.add_row(
            literal(str(change_point.index)),
            literal(significant(change_point.before, 4)),
            literal("→", "dim"),
            literal(significant(change_point.after, 4)),
            literal(
                NOTHING if change_point.change is None else _format_signed_percent(change_point.change),
                "bold",
            ),
            literal(
                "< 0.0001" if change_point.p_value < 1e-4 else significant(change_point.p_value, 2), "dim"
            ),
            literal("pending", "yellow") if change_point.is_pending else literal("settled", "dim"),
        )
    return table


def _drift_text(drift: Drift) -> str:
    """A drift in a sentence, with its interval where there is one."""
    text = (
        f"Slow drift from point {drift.start} to {drift.end}: "
        f"{significant(drift.before, 4)} → {significant(drift.after, 4)}"
    )
    if drift.change is None:
        return text
    interval = (
        ""
        if drift.low is None or drift.high is None
        else f" [{_format_signed_percent(drift.low)} to {_format_signed_percent(drift.high)}]"
    )
    return f"{text}, {_format_signed_percent(drift.change)}{interval}"


def _format_signed_percent(share: float) -> str:
    return f"{'+' if share > 0 else '−' if share < 0 else '±'}{percent(abs(share))}"
