"""Which agents have results on which suites, and how old these are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.pipeline.registered import registered_agents, registered_suites
from assay.spec.settings import Settings
from assay.store.store import Store

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


def measure_coverage(store: Store, settings: Settings, now: datetime) -> Coverage:
    found = {(one.agent, one.suite): one for one in store.coverage()}
    agents = sorted({*registered_agents(settings, store), *(agent for agent, _ in found)})
    suites = sorted({*registered_suites(settings, store), *(suite for _, suite in found)})
    cells = []
    for agent in agents:
        for suite in suites:
            one = found.get((agent, suite))
            age = (now - one.latest) / timedelta(days=1) if one else None
            cells.append(Covered(agent, suite, one.runs, one.latest, age) if one else Covered(agent, suite))
    return Coverage(tuple(agents), tuple(suites), tuple(cells))
