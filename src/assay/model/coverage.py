"""Which agents have results on which suites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

STALE_DAYS = 30


@dataclass(frozen=True, slots=True)
class Covered:
    """An agent on a suite; `latest` is None where it has no results."""

    agent: str
    suite: str
    runs: int = 0
    latest: datetime | None = None
    age_days: float | None = None

    @property
    def state(self) -> str:
        if self.age_days is None:
            return "never"
        return "stale" if self.age_days > STALE_DAYS else "fresh"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Agents on suites: every registered one and every one with results."""

    agents: tuple[str, ...]
    """Those of this page."""
    suites: tuple[str, ...]
    cells: tuple[Covered, ...]
    """Each agent of this page on each suite."""
    counts: Mapping[str, int]
    """State to the number of all cells, those of other pages too."""
    next_agent: str | None = None
    """The last agent of this page, if there are more."""
