"""What a comparison of two sides is made of: the sides as reports, and what was found between them."""

from __future__ import annotations

from dataclasses import dataclass

from assay.model.estimate import Comparison
from assay.model.head_to_head import Showdown
from assay.model.report import Doubt, Report


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of comparing two sides."""

    a: Report
    b: Report
    comparisons: tuple[Comparison, ...]
    doubts: tuple[Doubt, ...]
    showdowns: tuple[Showdown, ...] = ()
    """Who wins, dimension by dimension; only for suites."""
    incomplete: tuple[str, ...] = ()
    """Trials of B that were compared although too many of their executions have no result."""


@dataclass(frozen=True, slots=True)
class ComparisonSides:
    """What the words on the command line stand for, and which results of agents were left out for them."""

    reports: tuple[Report, ...]
    doubts: tuple[Doubt, ...] = ()
