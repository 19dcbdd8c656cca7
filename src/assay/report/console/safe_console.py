"""The consoles that people read on: data cannot command the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from assay.model.redaction import make_showable


class SafeConsole(Console):
    """Shows control characters of all text that it draws; colours and cursor movements of rich's own are no text."""

    def render(self, renderable: Any, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            text = segment.text if segment.control else make_showable(segment.text)
            yield segment if text == segment.text else Segment(text, segment.style)
