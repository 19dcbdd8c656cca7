"""Which agents have results on which suites, and how old these are."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from assay.model.coverage import Coverage, CoverageAges, Covered
from assay.pipeline.registry import find_registered_agents, find_registered_suites
from assay.spec.settings import Settings
from assay.store.search import CoverageCell
from assay.store.store import Store


class CoverageSource(Protocol):
    """Where coverage is read.

    A store reads it from the database each time; a server hands in a source that remembers it as long as
    nothing has changed.
    """

    def coverage(self, agents: Collection[str] | None = None) -> list[CoverageCell]: ...

    def latest_by_suite(self) -> Mapping[str, Mapping[str, datetime]]: ...


def read_coverage_ages(
    store: Store, settings: Settings, now: datetime, source: CoverageSource | None = None
) -> CoverageAges:
    """Read the ages of results for every agent and suite that is registered or has results."""
    latest = (source or store).latest_by_suite()
    agents = {*find_registered_agents(settings, store), *store.agents_with_trials()}.union(*latest.values())
    suites = {*find_registered_suites(settings, store), *store.categories(), *latest}
    return CoverageAges(tuple(sorted(agents)), tuple(sorted(suites)), latest, now)


def measure_coverage(
    store: Store,
    settings: Settings,
    now: datetime,
    after: str = "",
    limit: int = 1000,
    source: CoverageSource | None = None,
) -> Coverage:
    """A page of agents, those behind `after` by name, on all suites."""
    ages = read_coverage_ages(store, settings, now, source)
    page = tuple(agent for agent in ages.agents if agent > after)[:limit]
    found = {(cell.agent, cell.suite): cell for cell in (source or store).coverage(page)}
    cells = []
    for agent in page:
        for suite in ages.suites:
            coverage = found.get((agent, suite))
            age = (now - coverage.latest) / timedelta(days=1) if coverage else None
            cells.append(
                Covered(agent, suite, coverage.runs, coverage.latest, age)
                if coverage
                else Covered(agent, suite)
            )
    has_more = bool(page) and page[-1] != ages.agents[-1]
    return Coverage(page, ages.suites, tuple(cells), ages.count_states(), page[-1] if has_more else None)
