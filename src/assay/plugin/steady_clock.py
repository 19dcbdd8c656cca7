"""Dates that a change of the system clock does not disturb; apart from `clock`, which workers load without `datetime`."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic


class SteadyClock:
    """Dates whose differences are durations: the system clock is read once, then the monotonic clock counts.

    A system clock that is set during a run changes neither the length of the run nor the order of its events.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self.started = start or datetime.now(UTC)
        self._begun = monotonic()

    def now(self) -> datetime:
        return self.started + timedelta(seconds=monotonic() - self._begun)
