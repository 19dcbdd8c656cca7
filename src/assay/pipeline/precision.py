"""How precise results are, and how much it takes to make them so: the noise floor, and what an effect needs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from assay.analysis.need import needs
from assay.analysis.noise import noise_floors
from assay.errors import AssayError, PlanError, RunNotFound
from assay.model import Plan, Report, TrialReport
from assay.model.precision import Need, NoiseFloor
from assay.pipeline.reporting import report_of, trial_report_of
from assay.pipeline.running import prepare
from assay.pipeline.tolerating import NOISE_TAG
from assay.plan.target import Request, find_suite
from assay.spec.settings import Settings
from assay.store.store import Store

METRICS = ("score", "seconds", "usd")


def repeated(request: Request, rounds: int, settings: Settings, store: Store) -> Plan:
    """A plan of rounds in which nothing differs: those of a suite, or fresh processes of an experiment."""
    is_suite = prepare(request, settings, store).suite is not None
    changes = {"iterations": {"measured": rounds}} if is_suite else {"processes": rounds}
    return _alike(prepare(replace(request, changes={**request.changes, **changes}), settings, store))


def _alike(plan: Plan) -> Plan:
    """A plan in which nothing differs: one agent, no sweep; tagged, so that it can be found again."""
    agents = {trial.agent.name for trial in plan.trials}
    if len(agents) > 1:
        raise PlanError(
            f"Noise is measured with one agent at a time, not with {', '.join(sorted(agents))}. Name it: --agent A"
        )
    if swept := sorted({axis for trial in plan.trials for axis in trial.axes}):
        raise PlanError(
            f"Noise is measured where nothing is varied; '{swept[0]}' is swept here. Set it: --set {swept[0]}=VALUE"
        )
    return replace(plan, tags=(*plan.tags, NOISE_TAG))


def noise_of(store: Store, ref: str) -> tuple[Report, list[NoiseFloor]]:
    report = report_of(store, ref)
    return report, [floor for trial in report.trials for floor in noise_floors(trial)]


def needed(
    store: Store,
    settings: Settings,
    target: str,
    effect: float,
    *,
    agents: Sequence[str] = (),
    metrics: Sequence[str] = (),
) -> list[Need]:
    """From stored results of a suite by its name or file, or of a run."""
    groups: dict[str, list[TrialReport]] = {}
    for trial in _stored_trials(store, settings, target, agents):
        groups.setdefault(trial.stored.trial.benchmark, []).append(trial)
    found = [need for trials in groups.values() for need in needs(trials, effect, metrics or METRICS)]
    if not found:
        raise PlanError(
            f"What is stored of '{target}' does not tell what it varies by: that takes two cases, or two processes. "
            "Run it first, with --repetitions 3 or --processes 5."
        )
    return found


def _stored_trials(store: Store, settings: Settings, target: str, agents: Sequence[str]) -> list[TrialReport]:
    name = _suite_name(target, settings)
    latest = (
        [one for one in store.latest_trials(suite=name) if not agents or one.agent in agents] if name else []
    )
    if not latest:
        return _of_run(store, settings, target, agents)
    trials = []
    for one in latest:
        stored = next(t for t in store.run(one.run_id).trials if t.id == one.trial_id)
        trials.append(trial_report_of(store, stored, store.suite_of(one.run_id)))
    return trials


def _of_run(store: Store, settings: Settings, target: str, agents: Sequence[str]) -> list[TrialReport]:
    """Of a run, or of the newest run that is called like the target."""
    try:
        report = report_of(store, target)
    except RunNotFound:
        name = _run_name(target, settings, store)
        named = next((run.id for run in store.runs() if run.name == name), None)
        if named is None:
            raise PlanError(
                f"Nothing is stored of '{target}', so what it varies by is not known. Run it first: assay run {target}"
            ) from None
        report = report_of(store, named)
    return [trial for trial in report.trials if not agents or trial.stored.trial.agent.name in agents]


def _run_name(target: str, settings: Settings, store: Store) -> str:
    """What a run of the target is called."""
    if Path(target).is_file():
        with contextlib.suppress(AssayError):
            return prepare(Request(target), settings, store).name
    return target


def _suite_name(target: str, settings: Settings) -> str | None:
    if not Path(target).is_file():
        return target
    with contextlib.suppress(AssayError):
        return find_suite(target, settings).suite.name
    return None
