"""Which agents have results on which suites.

A cell is a pair of agent and suite. It is fresh if the agent ran the suite recently, stale if its latest
results are old, and missing if there are none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

STALE_DAYS = 30


def find_coverage_state(age_days: float | None) -> str:
    """
    >>> find_coverage_state(30.0), find_coverage_state(30.1), find_coverage_state(None)
    ('fresh', 'stale', 'never')
    """
    if age_days is None:
        return "never"
    return "stale" if age_days > STALE_DAYS else "fresh"


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
        return find_coverage_state(self.age_days)


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


@dataclass(frozen=True, slots=True)
class CoverageCounts:
    """A suite over all agents, or an agent over all suites: how many cells are in each state."""

    name: str
    fresh: int = 0
    stale: int = 0
    never: int = 0
    latest_days: float | None = None
    """The age of its latest result."""


@dataclass(frozen=True)
class CoverageAges:
    """How old the latest result of every agent on every suite is.

    A cell is fresh, stale after 30 days, or missing. Agents and suites that need runs the most come
    first.
    """

    agents: tuple[str, ...]
    suites: tuple[str, ...]
    latest: Mapping[str, Mapping[str, datetime]]
    """Suite to agent to when its latest trial began; what never ran is missing."""
    now: datetime

    def read_age(self, agent: str, suite: str) -> float | None:
        """Return the age of the newest results in days; None if the agent never ran the suite."""
        at = self.latest.get(suite, {}).get(agent)
        return None if at is None else (self.now - at) / timedelta(days=1)

    def list_states(self, agent: str) -> set[str]:
        """Return the states that occur for this agent on any suite."""
        return {find_coverage_state(self.read_age(agent, suite)) for suite in self.suites}

    def list_by_need(self, suite: str | None, agent: str | None) -> dict[str, float | None]:
        """The agents on a suite, or else the suites of an agent, to the ages in days: what never ran first, then the oldest."""
        if suite is not None:
            cells = {name: self.read_age(name, suite) for name in self.agents}
        else:
            cells = {name: self.read_age(agent or "", name) for name in self.suites}
        return dict(sorted(cells.items(), key=lambda cell: (cell[1] is not None, -(cell[1] or 0), cell[0])))

    def count_states(self) -> dict[str, int]:
        """State to the number of cells."""
        return {
            state: sum(getattr(row, state) for row in self.counts_by_suite)
            for state in ("fresh", "stale", "never")
        }

    @cached_property
    def counts_by_suite(self) -> list[CoverageCounts]:
        """Count cells by state; rows with the most cells that are not fresh come first."""
        of_suite = ((suite, self.latest.get(suite, {}).values()) for suite in self.suites)
        return _sort_by_need([self._count(suite, list(times), len(self.agents)) for suite, times in of_suite])

    def count_by_agent(self) -> list[CoverageCounts]:
        """Count cells by state; rows with the most cells that are not fresh come first."""
        times: dict[str, list[datetime]] = {agent: [] for agent in self.agents}
        for suite in self.suites:
            for agent, at in self.latest.get(suite, {}).items():
                times[agent].append(at)
        return _sort_by_need([self._count(agent, own, len(self.suites)) for agent, own in times.items()])

    def _count(self, name: str, times: list[datetime], number: int) -> CoverageCounts:
        since = self.now - timedelta(days=STALE_DAYS)
        fresh = sum(at >= since for at in times)
        latest = (self.now - max(times)) / timedelta(days=1) if times else None
        return CoverageCounts(name, fresh, len(times) - fresh, number - len(times), latest)


def _sort_by_need(rows: list[CoverageCounts]) -> list[CoverageCounts]:
    return sorted(rows, key=lambda row: (-row.never - row.stale, -row.never, row.name))
