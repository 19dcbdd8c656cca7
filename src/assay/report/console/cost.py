"""Cost analyses for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from assay.model.cost import CostAnalysis
from assay.report.console.screen import bullet
from assay.report.console.sections import print_sections
from assay.report.pages.cost import cost_sections

if TYPE_CHECKING:
    from rich.console import Console

_WIDE = 130
"""Columns that the table of configurations takes with intervals."""


def print_costs(found: Sequence[CostAnalysis], console: Console) -> None:
    """The same sections as on the page, without charts and details, then the warnings."""
    for analysis in found:
        print_sections(cost_sections(analysis, with_ends=console.width >= _WIDE), console)
    for doubt in dict.fromkeys(doubt for analysis in found for doubt in analysis.doubts):
        console.print(bullet("!", doubt, "yellow"))
