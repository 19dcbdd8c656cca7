"""Schedules of suites: when each is due next, and what was started for the times that came."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class SuiteSchedule:
    """When a suite is due next, and by which expression and in which time zone that was computed."""

    suite: str
    expression: str
    zone: str
    due: datetime


@dataclass(frozen=True, slots=True)
class ScheduledRun:
    """What was started for one time of a schedule, for one agent."""

    suite: str
    due: datetime
    agent: str
    """Empty where nothing could be started; then `error` says why."""
    run_id: str
    outcome: str = ""
    """The state in which its run ended, or what the queue says of a run that never began; empty while it is in progress."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class ScheduleStatus:
    """A suite with a schedule: when it is due next, and what became of the latest time."""

    suite: str
    expression: str
    zone: str
    next_due: datetime | None
    """None where the expression is wrong."""
    agents: tuple[str, ...]
    latest: tuple[ScheduledRun, ...]
    """What was started for the latest time; empty where none has come yet."""

    @property
    def outcome(self) -> str | None:
        """Return the outcome of the latest scheduled time: running, completed, cancelled or failed.

        None if no time has come yet. With several agents it is completed only if all of them are.
        """
        if not self.latest:
            return None
        outcomes = {run.outcome for run in self.latest}
        if "" in outcomes:
            return "running"
        bad = outcomes - {"completed"}
        return "completed" if not bad else "cancelled" if bad == {"cancelled"} else "failed"
