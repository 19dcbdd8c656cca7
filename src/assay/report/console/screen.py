"""The tables, bullets and texts that all console reports are made of.

Names, errors and outputs come from whatever was measured. They go through `literal`, which reads no markup in them and shows
control characters instead of obeying them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assay.model import Verdict
from assay.model.redaction import make_showable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

NARROW = 100
"""Below this width the tables leave out what is in every document anyway."""
VERDICT_STYLES = {
    Verdict.BETTER: "green",
    Verdict.WORSE: "red",
    Verdict.SAME: "dim",
    Verdict.UNSURE: "yellow",
}
"""The colours of verdicts, the same in every command that shows them."""


def new_table(*, tight: bool = False) -> Table:
    """The look of all tables: a rule beneath the titles and nothing else. `tight` leaves out the blanks around cells."""
    from rich import box
    from rich.table import Table

    return Table(
        box=box.SIMPLE_HEAD,
        header_style="dim",
        show_edge=False,
        pad_edge=False,
        padding=0 if tight else (0, 1),
        collapse_padding=True,
    )


def bullet(sign: str, text: str, style: str) -> Table:
    """A sign, then the text with its lines aligned; a quiet terminal tells by `sign` and `note` what it may leave out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.sign, grid.note = sign, text  # type: ignore[attr-defined]
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(literal(sign, style), literal(text))
    return grid


def literal(text: str, style: str = "") -> Text:
    """Data as it is: no markup of rich's is read in it, and control characters cannot move the cursor."""
    from rich.text import Text

    return Text(make_showable(text), style)


def warn(text: str) -> None:
    """A warning to people while a report is written, beside what the report itself says."""
    sys.stderr.write(f"Warning: {make_showable(text)}\n")
    sys.stderr.flush()


def join_texts(*parts: Text) -> Text:
    from rich.text import Text

    return Text().join(parts)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows of a table under a heading of their own, which takes the whole width."""

    heading: Text | None
    rows: Sequence[Sequence[Text]]
    note: str = ""


def print_groups(titles: Sequence[str], groups: Sequence[RowGroup], console: Console) -> None:
    """One table whose columns line up over all groups; the first column wraps, numbers on its right never do.

    A heading holds what would be a wide column, so that the table fits 80 columns.
    """
    rows = [row for group in groups for row in group.rows]
    # Widths are computed over all groups and fixed: rich would otherwise lay out every group on its own. `cell_len` counts
    # columns of the terminal, which differ from characters for East Asian text and emoji.
    widths = [max([len(title), *(row[n].cell_len for row in rows)]) for n, title in enumerate(titles)]
    gap = 2 if console.width >= sum(widths) + 2 * len(widths) else 1
    room = console.width - sum(widths[1:]) - gap * (len(widths) - 1)
    widths[0] = max(8, min(widths[0], room))
    head = _grid(widths, gap)
    head.add_row(*(literal(title, "dim") for title in titles))
    console.print(head)
    console.print(literal("─" * min(console.width, sum(widths) + gap * (len(widths) - 1)), "dim"))
    for group in groups:
        if group.heading is not None:
            console.print(group.heading)
        grid = _grid(widths, gap)
        for row in group.rows:
            grid.add_row(*row)
        if group.rows:
            console.print(grid)
        if group.note:
            console.print(literal(group.note, "dim"))


def _grid(widths: Sequence[int], gap: int) -> Table:
    from rich.table import Table

    grid = Table.grid(padding=(0, gap, 0, 0))
    for number, width in enumerate(widths):
        grid.add_column(
            width=width, justify="right" if number else "left", no_wrap=number > 0, overflow="fold"
        )
    return grid
