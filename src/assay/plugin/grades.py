"""Grades: words for figures, by thresholds that an experiment declares under `grades`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True, slots=True)
class GradeBand:
    """A range of values and the word for it; it reaches up to `below`, from where the band before it ends."""

    name: str
    below: float = math.inf
    tone: str = ""
    """good, warn or bad."""


@dataclass(frozen=True, slots=True)
class GradeScale:
    """What a figure is graded by.

    A grade is given where the whole 95 % interval of the figure lies within one band. Bands are in ascending order, and the last
    one has no end.

    >>> GradeScale("speed", ("seconds",), "p95", [GradeBand("good", 0.2), GradeBand("slow")]).find_band(0.1, 0.3) is None
    True
    """

    label: str
    """What is graded, as a report calls it."""
    metrics: Sequence[str]
    """The metric; of several, the first that a trial has."""
    statistic: str
    """median, p95, p99 or cv."""
    bands: Sequence[GradeBand]
    ends: tuple[str, str] | None = None
    """For a median: metrics that hold the ends of an interval of each execution, which count instead of those over executions."""

    def __post_init__(self) -> None:
        ends = [band.below for band in self.bands]
        if not ends or ends[-1] != math.inf or any(late <= early for early, late in pairwise(ends)):
            raise ValueError(f"The bands of '{self.label}' must ascend, and the last one must have no end.")

    def find_band(self, low: float, high: float) -> GradeBand | None:
        """The band that holds the whole interval; None where it reaches into two."""
        first, last = (
            next((band for band in self.bands if end < band.below), self.bands[-1]) for end in (low, high)
        )
        return first if first is last else None
