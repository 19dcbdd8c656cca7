"""Alerts: what the server tells people who are not looking at it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class AlertKind(StrEnum):
    """What an alert is about."""

    REGRESSION = "regression"
    SCHEDULE_FAILED = "schedule_failed"
    STALE_AGENT = "stale_agent"


class AlertState(StrEnum):
    """The state of the delivery of an alert."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"
    """The receiver did not take it within a day."""
    UNSENT = "unsent"
    """There was no webhook when it was raised."""


@dataclass(frozen=True, slots=True)
class Alert:
    """One thing to tell, once: a second alert with the same key is not raised."""

    key: str
    kind: AlertKind
    severity: str
    text: str
    """One sentence for people."""
    facts: Mapping[str, object]
    """The same for programs."""
    created: datetime
    state: AlertState = AlertState.PENDING
    attempts: int = 0
    due: datetime | None = None
    """When it is sent next, while it is pending."""
    sent: datetime | None = None
    error: str = ""
    """What went wrong with the last attempt; never the URL."""
    id: int = 0
