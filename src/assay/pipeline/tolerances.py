"""Reads what is known about noise: how much results differ although nothing changed.

There are three sources: A/A runs (`assay noise`), the history of earlier runs, and the machine's own speed in both runs. The
comparison policy (`analysis/comparison/policy.py`) takes account of all of them; this module finds them in the store.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from assay.analysis.comparison.comparability import split_by_runs
from assay.analysis.comparison.compare import matching_trials
from assay.analysis.comparison.noise_floor import noise_floor, noise_floors, session_error
from assay.analysis.comparison.policy import Floors, KnownNoise, Sessions
from assay.analysis.comparison.severity import depends_on_machine
from assay.analysis.estimates.machine_speed import MachineShift, shift_between
from assay.analysis.estimates.treatment import same_value
from assay.model import Comparison, Doubt, Report, StoredTrial, Trial
from assay.model.precision import NOISE_FLOORS, TOLERANCE, NoiseFloor
from assay.pipeline.agent_history import TrialHistories, read_histories
from assay.pipeline.report import trial_report_of
from assay.stats.random_effects import ErrorPart, half_width
from assay.store.store import Store
from assay.units import percent, seconds

NOISE_TAG = "noise"
_NEWEST = 50
"""Only this many of the newest A/A runs are read."""


@dataclass(frozen=True, slots=True)
class KnownFloor:
    """A noise floor and the A/A run that measured it."""

    run: str
    found: NoiseFloor


Known = Mapping[tuple[str, str], KnownFloor]
"""By the name of the trial on side B, and the metric."""


@dataclass(frozen=True, slots=True)
class StoredNoise:
    """What the store knows of the noise of two sides: the A/A runs, and all that the comparison policy takes account of."""

    floors: Known
    noise: KnownNoise


def read_noise(
    store: Store,
    a: Report,
    b: Report,
    histories: TrialHistories | None = None,
    judged: Collection[str] | None = None,
) -> StoredNoise:
    """Trials that share a run have the noise floors of A/A runs; those of two runs also what two runs differ by.

    Runs that are `judged`, by default that of side B, are no part of the history. `histories` are read here unless the
    caller has them.
    """
    floors: dict[tuple[str, str], KnownFloor] = {}
    history: dict[tuple[str, str], float] = {}
    sessions: dict[tuple[str, str], ErrorPart] = {}
    shifts: dict[str, MachineShift] = {}
    for first, second in split_by_runs(a, b):
        known = known_floors(store, first, second)
        floors |= known
        # Sides that took turns in one run had the same machine at the same time: the noise between runs is none of theirs.
        if first.run.id == second.run.id:
            continue
        past = read_histories(store, second) if histories is None else histories
        left_out = {second.run.id} if judged is None else judged
        history |= history_floors(past, left_out)
        sessions |= session_errors(known, past, first, second, left_out)
        shift = shift_between(first.run.environment.facts, second.run.environment.facts)
        if shift is not None:
            shifts |= {trial.name: shift for trial in second.trials}
    shares = {key: floor.found.floor for key, floor in floors.items()}
    return StoredNoise(floors, KnownNoise(shares, history, sessions, shifts))


def known_floors(store: Store, a: Report, b: Report) -> Known:
    """The newest noise floors on this kind of machine; if both sides have one, the larger."""
    stored = _find_noise_trials(store, b.run.environment.machine_class)
    known: dict[tuple[str, str], KnownFloor] = {}
    for first, second in matching_trials(a, b):
        for point in dict.fromkeys((_point(first.stored.trial), _point(second.stored.trial))):
            if point not in stored:
                continue
            run, noise_trial = stored[point]
            for floor in noise_floors(trial_report_of(store, noise_trial, store.suite_of(run))):
                key = second.name, floor.metric.name
                if key not in known or known[key].found.floor < floor.floor:
                    known[key] = KnownFloor(run, floor)
    return known


def _find_noise_trials(store: Store, machine: str) -> dict[str, tuple[str, StoredTrial]]:
    """The newest trial of each agent at each point that `assay noise` made."""
    newest: dict[str, tuple[str, StoredTrial]] = {}
    for summary in store.runs(limit=_NEWEST, tag=NOISE_TAG):
        run = store.run(summary.id)
        if run.environment.machine_class == machine:
            for stored in run.trials:
                newest.setdefault(_point(stored.trial), (run.id, stored))
    return newest


def _point(trial: Trial) -> str:
    return same_value([trial.agent.name, trial.suite, trial.benchmark, dict(trial.params)])


def warn_about_floors(known: Known, comparisons: Sequence[Comparison]) -> Iterator[Doubt]:
    """A note for each tolerance that is wider than usual because of a measured noise floor."""
    for comparison in comparisons:
        floor = known.get((comparison.trial_b, comparison.metric.name))
        if (
            floor is not None
            and comparison.tolerance > TOLERANCE
            and floor.found.floor * NOISE_FLOORS == comparison.tolerance
        ):
            yield Doubt(
                "noise-floor",
                f"{comparison.metric.name}: differences within {percent(comparison.tolerance)} are not claimed: assay noise (run {floor.run}) "
                f"found a noise floor of {percent(floor.found.floor)}.",
                "",
                comparison.trial_b,
            )


def session_errors(
    known: Known, histories: TrialHistories, a: Report, b: Report, judged: Collection[str]
) -> Sessions:
    """The error of the difference between two runs, from an A/A run or from earlier runs, whichever is larger.

    Runs that are `judged` are no part of what is known.
    """
    # A noise floor is the standard deviation of one run as a share of its value. The difference of two independent runs varies by
    # √2 times as much, and errors are on the scale of logarithms, where a share of s becomes ln(1 + s).
    found = {
        key: ErrorPart(math.sqrt(2) * math.log1p(floor.found.floor), max(1, floor.found.rounds - 1))
        for key, floor in known.items()
        if depends_on_machine(floor.found.metric)
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
    """The noise floor between earlier runs, for each trial of B and each metric with enough history."""
    return {
        (trial, history.metric.name): floor
        for trial, history in histories
        if (floor := noise_floor(history, judged)) is not None
    }


def warn_about_hours(comparisons: Sequence[Comparison], a: Report, b: Report) -> Iterator[Doubt]:
    """A warning that times of two runs also contain what the machine did between them."""
    judged = [comparison for comparison in comparisons if comparison.verdict is not None]
    if a.run.id == b.run.id or not any(depends_on_machine(comparison.metric) for comparison in judged):
        return
    apart = abs((b.run.started - a.run.started).total_seconds())
    yield Doubt(
        "different-hours",
        f"The runs {a.run.id} and {b.run.id} started {seconds(apart)} apart: the machine's speed may have changed.",
        "To avoid this, measure both sides in one run.",
    )
