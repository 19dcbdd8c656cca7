"""Raises alerts: new regressions, schedules that failed, agents that were not benchmarked for long; and has them delivered.

An alert is written to the database before anything is sent, and its key says what it is about. So each is raised once, whichever server
finds it first, and a restart neither loses nor repeats one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from assay.errors import AssayError, StoreError
from assay.model import Run
from assay.model.alert import Alert, AlertKind, AlertState
from assay.model.coverage import STALE_DAYS
from assay.model.regression import HIGH, Regression, RegressionState, Severity
from assay.model.schedule import ScheduledRun
from assay.pipeline.registry import find_registered_agents
from assay.pipeline.regressions import Inquiry, regressions_of
from assay.spec.settings import Settings
from assay.store.store import Store
from assay.text import make_line
from assay.units import show

_CLAIM = timedelta(seconds=30)
"""Seconds in which no other server sends an alert that a server has claimed; longer than a request may take."""
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=1), timedelta(hours=1)
_GIVE_UP = timedelta(days=1)
_GOOD = ("completed", "cancelled")
"""Ends of a scheduled run that need no alert: somebody who cancels it knows."""


def first_state(settings: Settings) -> AlertState:
    """Return the state in which an alert begins.

    Without a webhook it is listed and never sent, not even if a webhook is configured later.
    """
    return AlertState.PENDING if settings.server.get("webhook") else AlertState.UNSENT


def tell_regressions(store: Store, settings: Settings, run: Run, now: datetime) -> list[Alert]:
    """Look for regressions of the agents of a run that has ended, and raise an alert for each new one that is grave."""
    raised: list[Alert] = []
    pairs = {(stored.trial.agent.name, stored.trial.suite) for stored in run.trials}
    for agent, suite in sorted(pairs):
        try:
            found = regressions_of(store, Inquiry(agent, suite), now).regressions
        except StoreError:
            raise
        except AssayError:
            continue  # nothing to compare with
        # By when it was found, and not by what was known before: if this process ends before the alert is stored, the next
        # one finds the same.
        new = [
            regression
            for regression in found
            if regression.state is RegressionState.DETECTED and _is_since(regression, run)
        ]
        raised += [
            _build_regression_alert(regression, first_state(settings), now)
            for regression in new
            if regression.severity in HIGH
        ]
    return store.raise_alerts(raised)


def _is_since(regression: Regression, run: Run) -> bool:
    return regression.changed is not None and regression.changed >= run.started


def _build_regression_alert(regression: Regression, state: AlertState, now: datetime) -> Alert:
    before, after = (
        show(value, regression.metric.unit) for value in (regression.baseline_value, regression.current_value)
    )
    changed = regression.changed or now
    return Alert(
        key=f"regression:{regression.id}:{changed.isoformat()}",
        kind=AlertKind.REGRESSION,
        severity=regression.severity.value,
        text=make_line(
            f"Regression ({regression.severity}) of '{regression.agent}' on {regression.suite or 'its experiment'}, {regression.benchmark}: "
            f"{regression.metric.name} went from {before} (version {regression.before or 'without a name'}) to {after} "
            f"(version {regression.after or 'without a name'})."
        ),
        facts={
            "regression_id": regression.id,
            "agent_id": regression.agent,
            "suite_id": regression.suite,
            "benchmark_id": regression.benchmark,
            "metric": regression.metric.name,
            "baseline_value": regression.baseline_value,
            "current_value": regression.current_value,
            "versions": [regression.before, regression.after],
        },
        created=now,
        state=state,
    )


def build_schedule_alert(run: ScheduledRun, state: AlertState, now: datetime) -> Alert | None:
    """What to tell about a scheduled run that has ended; None if it went well."""
    if run.outcome in _GOOD:
        return None
    agent_text = f" with '{run.agent}'" if run.agent else ""
    why = f": {run.error}" if run.error else "."
    return Alert(
        key=f"schedule:{run.suite}:{run.due.isoformat()}:{run.agent}",
        kind=AlertKind.SCHEDULE_FAILED,
        severity=Severity.MAJOR.value,
        text=make_line(
            f"The scheduled run of '{run.suite}'{agent_text} due {run.due:%Y-%m-%d %H:%M} UTC ended as {run.outcome}{why}"
        ),
        facts={
            "suite_id": run.suite,
            "agent_id": run.agent or None,
            "run_id": run.run_id or None,
            "due": run.due.isoformat(),
            "outcome": run.outcome,
        },
        created=now,
        state=state,
    )


def tell_stale_agents(store: Store, settings: Settings, now: datetime) -> list[Alert]:
    """Raise an alert for each registered agent whose latest results are older than 30 days, once until it has new ones."""
    known = find_registered_agents(settings, store)
    stale = {
        agent: at
        for agent, at in store.latest_results().items()
        if agent in known and now - at > timedelta(days=STALE_DAYS)
    }
    return store.raise_alerts(
        Alert(
            key=f"stale:{agent}:{at.isoformat()}",
            kind=AlertKind.STALE_AGENT,
            severity=Severity.MODERATE.value,
            text=make_line(
                f"'{agent}' was last benchmarked {(now - at).days} days ago, on {at:%Y-%m-%d}. "
                f"Agents should be benchmarked every {STALE_DAYS} days."
            ),
            facts={"agent_id": agent, "latest": at.isoformat(), "age_days": (now - at).days},
            created=now,
            state=first_state(settings),
        )
        for agent, at in sorted(stale.items())
    )


def deliver_alerts(store: Store, send: Callable[[Alert], str], clock: Callable[[], datetime]) -> list[Alert]:
    """Send every alert that is due; `send` returns what went wrong, or nothing. Each as it stands then.

    A request may take long, so the clock is read before and after each. What becomes due meanwhile is for the next call: a
    webhook that always fails must not keep this one going for ever.
    """
    settled: list[Alert] = []
    began = clock()
    while (alert := store.claim_alert(began, clock() + _CLAIM)) is not None:
        settled.append(_settle(alert, send(alert), clock()))
        store.settle_alert(settled[-1])
    return settled


def _settle(alert: Alert, error: str, now: datetime) -> Alert:
    if not error:
        return replace(alert, state=AlertState.SENT, sent=now, error="", due=now)
    wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** min(alert.attempts - 1, 20))
    if now + wait > alert.created + _GIVE_UP:
        return replace(alert, state=AlertState.FAILED, error=error, due=now)
    return replace(alert, error=error, due=now + wait)
