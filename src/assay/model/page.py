"""What a section of a report is made of, whatever format it is written in.

Plug-ins build sections from these nouns; HTML, Markdown and the terminal each have one renderer for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from assay.model.rating import Rating


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a table: a text, or a rating, which HTML draws as a bar with its interval."""

    text: str
    """Beside a rating: what a terminal shows in place of the rating and the note."""
    rating: Rating | None = None
    tone: str = ""
    """good, bad, warn or quiet."""
    note: str = ""
    """A word beside it, as a rank or a version."""
    brief: str = ""
    """What a narrow terminal shows in place of the text and the note."""
    is_output: bool = False
    """Whether it is what a program wrote, whose lines are kept where there is room for them."""
    ref: str = ""
    """What the text names, such as `agents/NAME`. The dashboard links it; files do not."""
    sort: float | None = None
    """What a table is sorted by where the text would sort otherwise, as that of a duration."""


@dataclass(frozen=True, slots=True)
class ListItem:
    """One line of a list."""

    text: str
    tone: str = ""
    """good, bad, warn or unsure; each format has a mark or a colour for it."""
    title: str = ""
    """Stands before the text and is emphasized."""

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.title, self.text)))


@dataclass(frozen=True, slots=True)
class Points:
    """A list of lines."""

    points: Sequence[ListItem]


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first column names, the others hold figures unless they are among `words`."""

    titles: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    words: Collection[int] = ()
    breaks: frozenset[int] = frozenset()
    """Rows that begin a new tier, set apart from those above."""
    minor: Collection[int] = ()
    """Columns that a narrow terminal leaves out."""
    brief_titles: Sequence[str] = ()
    """What a narrow terminal calls the columns, where it has no room for their titles."""
    caption: Cell | None = None
    """How to read it, beneath the table."""
    terminal: Sequence[ListItem] | None = None
    """What a terminal shows in its place, where the table would be too wide for it."""

    @property
    def bars(self) -> frozenset[int]:
        """Columns that hold ratings."""
        return frozenset(n for row in self.rows for n, cell in enumerate(row) if cell.rating is not None)


@dataclass(frozen=True, slots=True)
class Chart:
    """A Vega-Lite specification and the words that make its file name."""

    name: str
    spec: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Charts:
    """Charts side by side where there is room; a terminal leaves them out."""

    charts: Sequence[Chart]
    is_single: bool = True
    """Whether each takes the whole width."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch of time on a lane, in seconds."""

    begin: float
    end: float
    is_waiting: bool = False


@dataclass(frozen=True, slots=True)
class Lane:
    """One line of a timeline."""

    group: str
    name: str
    bars: Sequence[Bar]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Who worked when, drawn with characters: for the terminal, in place of a chart."""

    lanes: Sequence[Lane]
    seconds: float
    """The length of every lane."""
    caption: str


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page with a heading of its own: first the answer, then the figures behind it."""

    title: str
    blocks: Sequence[Table | Points | Charts | Timeline | PageSection] = ()
    subtitle: str = ""
    finding: str = ""
    """The answer in a sentence."""
    notes: Sequence[str] = ()
    """Remarks on the figures, beneath them."""
    tone: str = ""
    """Tone of the finding: good, bad or warn."""
    is_simulated: bool = False
    chips: Sequence[ListItem] = ()
    """Short words beside the heading."""
    warnings: Sequence[str] = ()
    """Reasons for care. A terminal prints them with all other warnings of the run, and not here."""
    anchor: str = ""
    """By which links reach it."""
    is_folded: bool = False
    """Whether a page may show its heading only until the reader opens it."""
    is_detail: bool = False
    """Whether a terminal leaves it out, because another section sums it up."""

    def charts(self) -> Iterator[Chart]:
        """Every chart of the section and of those within it."""
        for block in self.blocks:
            if isinstance(block, Charts):
                yield from block.charts
            elif isinstance(block, PageSection):
                yield from block.charts()


@dataclass(frozen=True, slots=True)
class Tile:
    """A key figure at the head of the page."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a run came to, in a word."""

    text: str
    tone: str
    """`good`, `warn` or `bad`."""
