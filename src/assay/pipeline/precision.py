"""How precise results are, and how much it takes to make them so: the noise floor, and what an effect needs."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from assay.analysis.need import KnownNoise, Progress, needs
from assay.analysis.noise import noise_floors
from assay.errors import AssayError, LookupFailed, PlanError, RunNotFound, no_such
from assay.model import Plan, Report
from assay.model.precision import Need, NoiseFloor
from assay.pipeline.record import read_histories
from assay.pipeline.reporting import report_of, trial_report_of
from assay.pipeline.running import prepare
from assay.pipeline.tolerating import NOISE_TAG, history_floors, known_floors, session_errors, shares_of
from assay.plan.target import RunRequest, find_suite
from assay.spec.settings import Settings
from assay.store.store import Store
from assay.text import shell_command


def repeated(request: RunRequest, rounds: int, settings: Settings, store: Store) -> Plan:
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
    progress: Progress | None = None,
) -> list[Need]:
    """From stored results of a suite by its name or file, or of a run."""
    report = _only_agents(_stored(store, settings, target), agents)
    known = {one.metric.name for trial in report.trials for one in trial.estimates if one.n}
    for name in metrics:
        if name not in known:
            raise LookupFailed(no_such(name, f"metrics of '{target}'", known))
    repeated, histories, own = (
        known_floors(store, report, report),
        read_histories(store, report),
        {report.run.id},
    )
    noise = KnownNoise(
        shares_of(repeated),
        history_floors(histories, own),
        session_errors(repeated, histories, report, report, own),
    )
    found = list(needs(report.trials, effect, metrics, noise=noise, progress=progress))
    if not found:
        raise PlanError(
            f"What is stored of '{target}' does not tell what it varies by: that takes two cases, or two processes. "
            "Run it first, with --repetitions 3 or --processes 5."
        )
    return found


def _only_agents(report: Report, agents: Sequence[str]) -> Report:
    there = dict.fromkeys(trial.stored.trial.agent.name for trial in report.trials)
    for name in agents:
        if name not in there:
            raise LookupFailed(f"--agent: {no_such(name, 'agents with stored results', there)}")
    trials = tuple(one for one in report.trials if not agents or one.stored.trial.agent.name in agents)
    return replace(report, trials=trials)


def _stored(store: Store, settings: Settings, target: str) -> Report:
    """The latest results of each agent of a suite, or a run."""
    name = _suite_name(target, settings)
    latest = store.latest_trials(suite=name) if name else []
    if not latest:
        return _of_run(store, settings, target)
    runs = {run_id: store.run(run_id) for run_id in dict.fromkeys(one.run_id for one in latest)}
    trials, sources = [], {}
    for one in latest:
        stored = next(trial for trial in runs[one.run_id].trials if trial.id == one.trial_id)
        trials.append(trial_report_of(store, stored, store.suite_of(one.run_id)))
        sources[stored.id] = runs[one.run_id]
    return Report(next(iter(runs.values())), tuple(trials), (), (), sources=sources)


def _of_run(store: Store, settings: Settings, target: str) -> Report:
    """A run, or the newest run that is called like the target."""
    try:
        return report_of(store, target)
    except RunNotFound:
        name = _run_name(target, settings, store)
        named = next((run.id for run in store.runs() if run.name == name), None)
        if named is None:
            raise PlanError(
                f"Nothing is stored of '{target}', so what it varies by is not known. Run it first: {shell_command('run', str(target))}"
            ) from None
        return report_of(store, named)


def _run_name(target: str, settings: Settings, store: Store) -> str:
    """What a run of the target is called."""
    if Path(target).is_file():
        with contextlib.suppress(AssayError):
            return prepare(RunRequest(target), settings, store).name
    return target


def _suite_name(target: str, settings: Settings) -> str | None:
    if not Path(target).is_file():
        return target
    with contextlib.suppress(AssayError):
        return find_suite(target, settings).suite.name
    return None
