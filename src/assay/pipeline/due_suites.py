"""Which suites should be run again, by the schedules in their files (`assay suite list --due`)."""

from __future__ import annotations

from datetime import UTC, datetime

from assay.errors import SpecError
from assay.plan.target import find_suite, suite_schedules
from assay.spec.cron import next_due
from assay.spec.settings import Settings
from assay.store.store import Store


def find_due_suites(store: Store, settings: Settings, now: datetime | None = None) -> list[str]:
    """Names to give to `assay run`: of suite files first, then of stored suites that no file defines.

    A suite is due if a time of its schedule lies between the start of its last run and now, or if it never ran.
    """
    from assay.pipeline.planning import registry_of

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
