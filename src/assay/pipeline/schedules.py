"""Finds suites that are due by their schedules (`assay suite list --due`), and runs them through the queue of the server.

The database has when each suite is due next. When that time comes, one server takes it: it queues the runs and moves the time on in
one transaction. A time that passed while no server ran is made up for once, unless a later one has passed too. Since only stored
times are taken, a clock that is put back runs nothing twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from assay.errors import SpecError
from assay.model.queue import QueuedRun, QueueState
from assay.model.schedule import ScheduledRun, ScheduleStatus, SuiteSchedule
from assay.pipeline.alerts import build_schedule_alert, first_state
from assay.pipeline.lifecycle import new_run_id
from assay.pipeline.registry import RegisteredSuite, find_registered_agents, find_registered_suites
from assay.spec.cron import Schedule, next_due
from assay.spec.settings import Settings
from assay.store.store import Store


def find_due_suites(store: Store, settings: Settings, now: datetime | None = None) -> list[str]:
    """Names to give to `assay run`: of suite files first, then of stored suites that no file defines.

    A suite is due if a time of its schedule lies between the start of its last run and now, or if it never ran.
    """
    from assay.pipeline.planning import registry_of
    from assay.plan.target import find_suite, suite_schedules

    # Files go before the registry: a schedule that was changed in a file must not be overruled by an older copy.
    registry = registry_of(store)
    scheduled = [target for target, schedule in suite_schedules(settings).items() if schedule]
    read = {target: find_suite(target, settings, registry) for target in scheduled}
    if mistakes := [mistake for document in read.values() for mistake in document.mistakes]:
        raise SpecError(mistakes)
    files = {target: document.suite for target, document in read.items()}
    defined = {suite.name for suite in files.values()}
    stored = {known.name: store.suite(known.name) for known in store.suites() if known.name not in defined}
    now = now or datetime.now(UTC)
    due_targets = []
    for target, suite in {**files, **stored}.items():
        if not suite.schedule:
            continue
        # By the start of the last run and not by its end, so that a run which takes long is not due again at once.
        latest = store.runs(limit=1, name=suite.name)
        due = next_due(suite.schedule, latest[0].started.astimezone(settings.zone)) if latest else now
        if due is not None and due <= now:
            due_targets.append(target)
    return due_targets


def run_due_suites(store: Store, settings: Settings, now: datetime) -> list[ScheduledRun]:
    """Queue the runs of every suite that is due, and plan the next time of each; what was started."""
    stored = store.schedules()
    try:
        due = _plan_next_times(store, settings, stored, now)
        # A server asks every second, and files of agents take long to read.
        known = set(find_registered_agents(settings, store)) if due else set()
    except SpecError as error:
        # A file that cannot be read must not silence the schedules: each time that comes is told to have failed.
        return [
            run
            for before in stored.values()
            if before.due <= now
            for run in _take_time(store, settings, before, (), str(error), now)
        ]
    started: list[ScheduledRun] = []
    for suite in due:
        agents = _find_agents(store, suite, known)
        why = "" if agents else "No agent is named in the suite, and no registered agent has run it."
        started += _take_time(store, settings, stored[suite.name], agents, why, now)
    return started


def _plan_next_times(
    store: Store, settings: Settings, stored: Mapping[str, SuiteSchedule], now: datetime
) -> list[RegisteredSuite]:
    """Store the first time of each schedule that is new or was changed, and forget those that are gone; the suites that are due."""
    due = []
    suites = find_registered_suites(settings, store)
    for name, gone in stored.items():
        # A suite that this server does not know at all may be a file of another one, whose own workspace this is.
        if name not in suites and settings.suites:
            store.forget_schedule(gone)
    for suite in suites.values():
        before, schedule = stored.get(suite.name), _parse(suite.schedule)
        if schedule is None:
            if before is not None:
                # Otherwise the suite would make up for the time without a schedule as soon as it has one again.
                store.forget_schedule(before)
            continue
        if before is None or (before.expression, before.zone) != (suite.schedule, _zone_name(settings)):
            first = schedule.next_after(now.astimezone(settings.zone))
            if first is not None:
                planned = SuiteSchedule(suite.name, str(suite.schedule), _zone_name(settings), first)
                store.plan_schedule(planned, before)
        elif before.due <= now:
            due.append(suite)
    return due


def _zone_name(settings: Settings) -> str:
    return str(settings.server.get("timezone", "UTC"))


def _parse(expression: str | None) -> Schedule | None:
    """Parse a schedule; None without one, and for text that is no schedule.

    `assay validate` says what is wrong with it; lists only have no next time for it.
    """
    try:
        return Schedule.parse(expression) if expression else None
    except ValueError:
        return None


def _find_agents(store: Store, suite: RegisteredSuite, known: set[str]) -> tuple[str, ...]:
    """Return the agents that the suite names, or else the registered agents that have run it."""
    if suite.named:
        return suite.named
    return tuple(name for name in store.agents_on(suite.name) if name in known)


def _take_time(
    store: Store, settings: Settings, before: SuiteSchedule, agents: Iterable[str], why: str, now: datetime
) -> list[ScheduledRun]:
    """Take the latest time that has come, and start a run of each agent; nothing if another server has taken it."""
    schedule, local = Schedule.parse(before.expression), now.astimezone(settings.zone)
    following = schedule.next_after(local)
    if following is None:
        return []
    due = max(before.due, schedule.latest_until(local) or before.due).astimezone(UTC)
    # An agent that is still busy with the time before is not queued a second time.
    busy = {run.agent: run.run_id for run in store.open_scheduled_runs() if run.suite == before.suite}
    queued = [QueuedRun(new_run_id(), agent, before.suite, {}, now) for agent in agents if agent not in busy]
    started = [ScheduledRun(before.suite, due, run.agent, run.id) for run in queued]
    started += [ScheduledRun(before.suite, due, agent, busy[agent]) for agent in agents if agent in busy]
    alerts = []
    if why:
        started = [ScheduledRun(before.suite, due, "", "", QueueState.REFUSED.value, why)]
        alerts = [build_schedule_alert(started[0], first_state(settings), now)]
    after = replace(before, due=following)
    is_ours = store.take_time(before, after, started, queued, [alert for alert in alerts if alert])
    return started if is_ours else []


def settle_scheduled_runs(store: Store, settings: Settings, now: datetime) -> list[ScheduledRun]:
    """Store how scheduled runs ended, and raise an alert for each that failed."""
    ended = store.find_ended_scheduled_runs()
    for run in ended:
        store.settle_scheduled_run(run, build_schedule_alert(run, first_state(settings), now))
    return ended


def list_schedules(store: Store, settings: Settings, now: datetime) -> list[ScheduleStatus]:
    """Every suite with a schedule, the one that is due next first."""
    stored, latest = store.schedules(), store.latest_scheduled_runs()
    known = set(find_registered_agents(settings, store))
    found = [
        ScheduleStatus(
            suite.name,
            str(suite.schedule),
            _zone_name(settings),
            _find_next(settings, suite, stored.get(suite.name), now),
            _find_agents(store, suite, known),
            tuple(latest.get(suite.name, ())),
        )
        for suite in find_registered_suites(settings, store).values()
        if suite.schedule
    ]
    return sorted(
        found, key=lambda schedule: (schedule.next_due is None, schedule.next_due or now, schedule.suite)
    )


def _find_next(
    settings: Settings, suite: RegisteredSuite, before: SuiteSchedule | None, now: datetime
) -> datetime | None:
    """Find when the suite is due next.

    The database knows, unless the suite or the time zone was changed since; then the time is computed
    anew.
    """
    schedule = _parse(suite.schedule)
    if schedule is None:
        return None
    if before is not None and (before.expression, before.zone) == (suite.schedule, _zone_name(settings)):
        return before.due.astimezone(settings.zone)
    return schedule.next_after(now.astimezone(settings.zone))
