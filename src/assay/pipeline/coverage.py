"""Which agents have results on which suites, and how old these are."""

from __future__ import annotations

from datetime import datetime, timedelta

from assay.model.coverage import STALE_DAYS, Coverage, Covered
from assay.pipeline.registered import registered_agents, registered_suites
from assay.spec.settings import Settings
from assay.store.store import Store


def measure_coverage(
    store: Store, settings: Settings, now: datetime, after: str = "", limit: int = 1000
) -> Coverage:
    """A page of agents, those behind `after` by name, on all suites."""
    agents = sorted({*registered_agents(settings, store), *store.agents_with_trials()})
    suites = sorted({*registered_suites(settings, store), *store.categories()})
    page = [agent for agent in agents if agent > after][:limit]
    found = {(one.agent, one.suite): one for one in store.coverage(page)}
    cells = []
    for agent in page:
        for suite in suites:
            one = found.get((agent, suite))
            age = (now - one.latest) / timedelta(days=1) if one else None
            cells.append(Covered(agent, suite, one.runs, one.latest, age) if one else Covered(agent, suite))
    covered, fresh = store.count_coverage(now - timedelta(days=STALE_DAYS))
    counts = {"fresh": fresh, "stale": covered - fresh, "never": len(agents) * len(suites) - covered}
    has_more = bool(page) and page[-1] != agents[-1]
    return Coverage(tuple(page), tuple(suites), tuple(cells), counts, page[-1] if has_more else None)
