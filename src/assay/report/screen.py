"""Tables and texts as every console report draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

NARROW = 100
"""Below this width the tables leave out what is in every document anyway."""


def new_table(*, tight: bool = False) -> Table:
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
    """A sign, then the text with its lines aligned."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(literal(sign, style), literal(text))
    return grid


def literal(text: str, style: str = "") -> Text:
    """Data as it is: no markup of rich's is read in it, and control characters cannot move the cursor."""
    from rich.control import strip_control_codes
    from rich.text import Text

    return Text(strip_control_codes(text).replace("\x1b", "␛"), style)


def joined(*parts: Text) -> Text:
    from rich.text import Text

    return Text().join(parts)
