"""Reads how an agent did over its versions: the history of every metric, and where its level changed.

`regressions_of` asks the same histories what to do about the newest version, and stores what it finds; here nothing is stored.
"""

from __future__ import annotations

from assay.model.regression import AgentTimeline
from assay.pipeline.agent_history import past_of, record_of, report_on
from assay.pipeline.regressions import search_histories, select_metrics
from assay.store.store import Store


def timeline_of(store: Store, agent: str, suite: str | None = None) -> AgentTimeline:
    """Build the timeline of an agent on this suite, or on the suite that it ran last."""
    record = record_of(store, agent, suite)
    current = record.latest(record.version)
    metrics = select_metrics(report_on(store, current.values()), current)
    past = past_of(store, record, current, metrics)
    known = [regression for regression in store.regressions(agent) if regression.suite == record.suite]
    return AgentTimeline(
        agent,
        record.suite,
        tuple(record.versions),
        past.histories,
        search_histories(past.histories).shifts,
        tuple(known),
        past.doubts,
    )
