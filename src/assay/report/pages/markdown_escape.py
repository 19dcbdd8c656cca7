"""Data in Markdown, without being read as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from assay.text import make_visible


def text(value: object) -> str:
    """Data as literal text within a line or a table cell: no markup, link or HTML of it is read."""
    # A line break would end a table, and everything that CommonMark or GitHub gives a meaning within a line is escaped; "-" and
    # "+" mean something only at the beginning of a line, where data never stands.
    line = make_visible(re.sub(r"\s+", " ", str(value)))
    return re.sub(r"([\\`*_\[\]<>|#~&])", r"\\\1", line)


def table(names: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    rule = ["---:" if number in right else "---" for number in range(len(names))]
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, rule, *rows))


def format_code_block(content: str) -> str:
    """A code block that its content cannot end."""
    content = make_visible(content)
    longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}text\n{content}\n{fence}"
