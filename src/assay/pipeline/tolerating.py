"""What is known of how much results differ though nothing changed: from A/A runs, from the history, from the machine's pace."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.analysis.compare import matching_trials
from assay.analysis.floor import excused, noise_floor, session_error, steadied
from assay.analysis.losses import depends_on_machine
from assay.analysis.noise import noise_floors
from assay.analysis.pace import MachineShift, shift_between
from assay.analysis.same import same_value
from assay.analysis.verdict import Floors, Sessions
from assay.execute.environment import machine_class
from assay.model import Comparison, Doubt, Report, StoredTrial, Trial, TrialReport
from assay.model.precision import NOISE_FLOORS, TOLERANCE, NoiseFloor
from assay.pipeline.record import TrialHistories
from assay.pipeline.reporting import trial_report_of
from assay.stats.random_effects import ErrorPart, half_width
from assay.store.store import Store
from assay.units import percent, seconds

NOISE_TAG = "noise"
_NEWEST = 50
"""Of A/A runs, as many are looked through."""


@dataclass(frozen=True, slots=True)
class KnownFloor:
    """What an A/A run found."""

    run: str
    found: NoiseFloor


Known = Mapping[tuple[str, str], KnownFloor]
"""By the name of the trial on side B, and the metric."""


def known_floors(store: Store, a: Report, b: Report) -> Known:
    """Of either side the newest on this kind of machine; of two, the larger one."""
    stored = _repeated(store, machine_class(b.run.environment))
    known: dict[tuple[str, str], KnownFloor] = {}
    for first, second in matching_trials(a, b):
        for point in dict.fromkeys((_point(first.stored.trial), _point(second.stored.trial))):
            for found in _floors_of(store, stored.get(point)):
                key = second.name, found.found.metric.name
                if key not in known or known[key].found.floor < found.found.floor:
                    known[key] = found
    return known


def _repeated(store: Store, machine: str) -> dict[str, tuple[str, StoredTrial]]:
    """The newest trial of each agent at each point that `assay noise` made."""
    newest: dict[str, tuple[str, StoredTrial]] = {}
    for summary in store.runs(limit=_NEWEST, tag=NOISE_TAG):
        run = store.run(summary.id)
        if machine_class(run.environment) == machine:
            for stored in run.trials:
                newest.setdefault(_point(stored.trial), (run.id, stored))
    return newest


def _point(trial: Trial) -> str:
    return same_value([trial.agent.name, trial.suite, trial.benchmark, dict(trial.params)])


def _floors_of(store: Store, found: tuple[str, StoredTrial] | None) -> list[KnownFloor]:
    if found is None:
        return []
    run, stored = found
    trial: TrialReport = trial_report_of(store, stored, store.suite_of(run))
    return [KnownFloor(run, floor) for floor in noise_floors(trial)]


def shares_of(known: Known) -> Floors:
    return {key: one.found.floor for key, one in known.items()}


def about_floors(known: Known, comparisons: Sequence[Comparison]) -> Iterator[Doubt]:
    """Tolerances that are wider than usual, because somebody measured that they must be."""
    for one in comparisons:
        floor = known.get((one.trial_b, one.metric.name))
        if (
            floor is not None
            and one.tolerance > TOLERANCE
            and floor.found.floor * NOISE_FLOORS == one.tolerance
        ):
            yield Doubt(
                "noise-floor",
                f"{one.metric.name}: differences within {percent(one.tolerance)} are not claimed: assay noise (run {floor.run}) "
                f"found a noise floor of {percent(floor.found.floor)}.",
                "",
                one.trial_b,
            )


def guarded(
    comparisons: tuple[Comparison, ...], histories: TrialHistories, a: Report, b: Report, *, is_asked: bool
) -> tuple[Comparison, ...]:
    """Claims about times of two runs, unsure where hours or the machine explain them.

    Where a tolerance `is_asked` for, the history widens none.
    """
    steady = comparisons if is_asked else steadied(comparisons, history_floors(histories, {b.run.id}))
    return excused(steady, pace_between(a, b))


def session_errors(
    known: Known, histories: TrialHistories, a: Report, b: Report, judged: Collection[str]
) -> Sessions:
    """Of the difference of two runs: from an A/A run, or from earlier runs on this kind of machine; the larger one.

    Runs that are `judged` are no part of what is known.
    """
    found = {
        key: ErrorPart(math.sqrt(2) * math.log1p(one.found.floor), max(1, one.found.rounds - 1))
        for key, one in known.items()
        if depends_on_machine(one.found.metric)
    }
    versions = {second.name: first.stored.trial.agent.version for first, second in matching_trials(a, b)}
    for trial, history in histories:
        key = trial, history.metric.name
        if depends_on_machine(history.metric) and trial in versions:
            part = session_error(history, judged, versions[trial])
            if part is not None and (key not in found or half_width([found[key]]) < half_width([part])):
                found[key] = part
    return found


def history_floors(histories: TrialHistories, judged: Collection[str]) -> Floors:
    """What runs of the past differ by, of each trial of B and each metric with enough of a past."""
    return {
        (trial, history.metric.name): floor
        for trial, history in histories
        if (floor := noise_floor(history, judged)) is not None
    }


def pace_between(a: Report, b: Report) -> MachineShift | None:
    return shift_between(a.run.environment.facts, b.run.environment.facts)


def about_hours(comparisons: Sequence[Comparison], a: Report, b: Report) -> Iterator[Doubt]:
    """Two runs: what the machine did between them is in their times, too."""
    judged = [one for one in comparisons if one.verdict is not None]
    if a.run.id == b.run.id or not any(depends_on_machine(one.metric) for one in judged):
        return
    apart = abs((b.run.started - a.run.started).total_seconds())
    yield Doubt(
        "different-hours",
        f"The runs {a.run.id} and {b.run.id} started {seconds(apart)} apart: the machine's speed may have changed.",
        "To rule that out, measure both sides in one run.",
    )
