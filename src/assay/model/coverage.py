"""Which agents have results on which suites."""

from __future__ import annotations

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
    """Every registered agent and every one with results, on every such suite."""

    agents: tuple[str, ...]
    suites: tuple[str, ...]
    cells: tuple[Covered, ...]

    def count(self, state: str) -> int:
        return sum(cell.state == state for cell in self.cells)
