"""What a search found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run whose id begins with the text, or whose name, label or tag has it."""

    id: str
    name: str
    label: str
    state: str
    started: datetime


@dataclass(frozen=True, slots=True)
class FoundCase:
    """A case of a suite as it was last run or registered."""

    suite: str
    benchmark: str
    case: str
    input: str


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Things whose names have a text, of each kind as many as were asked for."""

    agents: Sequence[str]
    suites: Sequence[str]
    runs: Sequence[FoundRun]
    cases: Sequence[FoundCase]
