"""Which agents have results on which suites, and how old these are."""

from __future__ import annotations

from datetime import datetime, timedelta

from assay.model.coverage import Coverage, Covered
from assay.pipeline.registered import registered_agents, registered_suites
from assay.spec.settings import Settings
from assay.store.store import Store


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
