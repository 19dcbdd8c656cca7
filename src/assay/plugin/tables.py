"""Tables of findings: each column says in one place what its title and its cells are, and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from assay.model.page import Cell, ListItem, Table
from assay.plugin.figures import NOTHING

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table: its title, and the cell or the text of an item; for None it shows a dash."""

    title: str
    cell: Callable[[T], Cell | str | None]
    is_words: bool = False
    """Whether it holds words and not figures."""
    is_minor: bool = False
    """Whether a narrow terminal leaves it out."""


def build_table(
    items: Iterable[T],
    *columns: Column[T],
    caption: Cell | None = None,
    terminal: Sequence[ListItem] | None = None,
) -> Table:
    """A table with a row for each item; the first column names it."""
    return Table(
        [column.title for column in columns],
        [[_build_cell(column.cell(item)) for column in columns] for item in items],
        words=[place for place, column in enumerate(columns) if column.is_words],
        minor=[place for place, column in enumerate(columns) if column.is_minor],
        caption=caption,
        terminal=terminal,
    )


def _build_cell(content: Cell | str | None) -> Cell:
    return content if isinstance(content, Cell) else Cell(NOTHING if content is None else content)
