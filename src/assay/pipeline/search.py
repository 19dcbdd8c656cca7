"""Finds agents, suites, runs and cases by a part of their names: what is stored, and what is registered and never ran."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assay.model.search import SearchResult
from assay.pipeline.registry import find_registered_agents, find_registered_suites
from assay.spec.settings import Settings
from assay.store.store import Store


def search_everything(store: Store, settings: Settings, text: str, limit: int) -> SearchResult:
    """Search agents, suites and runs, at most `limit` of each kind.

    Agents and suites are ordered by name, runs by time with the newest first.
    """
    found = store.search(text, limit)

    def merge(stored: Iterable[str], registered: Iterable[str]) -> list[str]:
        known = (name for name in registered if text.casefold() in name.casefold())
        return sorted({*stored, *known})[:limit]

    return replace(
        found,
        agents=merge(found.agents, find_registered_agents(settings, store)),
        suites=merge(found.suites, find_registered_suites(settings, store)),
    )
