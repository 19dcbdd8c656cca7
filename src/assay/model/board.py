"""Leaderboards as they are kept: each with what it was computed from, and until when it is right."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class BoardKey:
    """A board of a suite, or without a suite one across all suites of a category; an empty category means all suites."""

    suite: str
    category: str
    metric: str


@dataclass(frozen=True, slots=True)
class StoredBoard:
    """A board as a JSON document."""

    key: BoardKey
    changes: int
    """The count of changes of its suites when it was computed: with another count, it is out of date."""
    computed: datetime
    expires: datetime
    """When a result in it becomes stale, or a day older."""
    document: str

    def is_current(self, changes: int, now: datetime) -> bool:
        return self.changes == changes and now < self.expires
