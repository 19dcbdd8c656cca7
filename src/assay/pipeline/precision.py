"""Answers how precise results are, and how much it takes to make them so.

`assay noise` makes an A/A run, in which nothing differs, and measures the noise floor; `assay power` forecasts how many cases,
processes or repetitions it takes to find a difference of a given size.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from assay.analysis.comparison.noise_floor import noise_floors
from assay.analysis.comparison.policy import KnownNoise
from assay.analysis.comparison.sample_size import Progress, needs
from assay.errors import AssayError, LookupFailed, PlanError, RunNotFound, format_unknown_name
from assay.model import Plan, Report
from assay.model.precision import Need, NoiseFloor
from assay.pipeline.agent_history import read_histories
from assay.pipeline.planning import prepare
from assay.pipeline.report import report_of, trial_report_of
from assay.pipeline.tolerances import NOISE_TAG, history_floors, known_floors, session_errors
from assay.plan.target import RunRequest, find_suite
from assay.spec.settings import Settings
from assay.store.store import Store
from assay.text import shell_command


def plan_repetitions(request: RunRequest, rounds: int, settings: Settings, store: Store) -> Plan:
    """The plan of an A/A run: rounds of a suite, or fresh processes of an experiment."""
    # Planned once to learn what it is: the unit that has to be repeated is a round for a suite and a process for code.
    is_suite = prepare(request, settings, store).suite is not None
    changes = {"iterations": {"measured": rounds}} if is_suite else {"processes": rounds}
    return _check_nothing_differs(
        prepare(replace(request, changes={**request.changes, **changes}), settings, store)
    )


def _check_nothing_differs(plan: Plan) -> Plan:
    """Refuse plans with several agents or a sweep; the plan gets a tag by which its run is found again."""
    agents = {trial.agent.name for trial in plan.trials}
    if len(agents) > 1:
        raise PlanError(
            f"Noise is measured for one agent at a time, and this target has {', '.join(sorted(agents))}. Choose one: --agent A"
        )
    if swept := sorted({axis for trial in plan.trials for axis in trial.axes}):
        raise PlanError(
            f"A noise run must vary nothing, but '{swept[0]}' is swept. Fix it: --set {swept[0]}=VALUE"
        )
    return replace(plan, tags=(*plan.tags, NOISE_TAG))


def noise_of(store: Store, ref: str) -> tuple[Report, list[NoiseFloor]]:
    report = report_of(store, ref)
    return report, [floor for trial in report.trials for floor in noise_floors(trial)]


def compute_needs(
    store: Store,
    settings: Settings,
    target: str,
    effect: float,
    *,
    agents: Sequence[str] = (),
    metrics: Sequence[str] = (),
    progress: Progress | None = None,
) -> list[Need]:
    """What it takes to find a difference of size `effect`, from stored results of a suite (by name or file) or a run."""
    report = _only_agents(_read_report(store, settings, target), agents)
    known = {estimate.metric.name for trial in report.trials for estimate in trial.estimates if estimate.n}
    for name in metrics:
        if name not in known:
            raise LookupFailed(format_unknown_name(name, f"metrics of '{target}'", known))
    floors, histories, own = (
        known_floors(store, report, report),
        read_histories(store, report),
        {report.run.id},
    )
    noise = KnownNoise(
        {key: floor.found.floor for key, floor in floors.items()},
        history_floors(histories, own),
        session_errors(floors, histories, report, report, own),
    )
    found = list(needs(report.trials, effect, metrics, noise=noise, progress=progress))
    if not found:
        raise PlanError(
            f"The stored results of '{target}' do not show how much it varies: that takes two cases or two processes. "
            "Run it first, with --repetitions 3 or --processes 5."
        )
    return found


def _only_agents(report: Report, agents: Sequence[str]) -> Report:
    """The report without other agents; a name without stored results is refused, with those that there are."""
    stored_agents = dict.fromkeys(trial.stored.trial.agent.name for trial in report.trials)
    for name in agents:
        if name not in stored_agents:
            raise LookupFailed(
                f"--agent: {format_unknown_name(name, 'agents with stored results', stored_agents)}"
            )
    trials = tuple(trial for trial in report.trials if not agents or trial.stored.trial.agent.name in agents)
    return replace(report, trials=trials)


def _read_report(store: Store, settings: Settings, target: str) -> Report:
    """The latest results of each agent of a suite, or a run."""
    name: str | None = target
    if Path(target).is_file():
        name = None
        with contextlib.suppress(AssayError):
            name = find_suite(target, settings).suite.name
    latest = store.latest_trials(suite=name) if name else []
    if not latest:
        return _find_report(store, settings, target)
    runs = {run_id: store.run(run_id) for run_id in dict.fromkeys(summary.run_id for summary in latest)}
    trials, sources = [], {}
    for summary in latest:
        stored = next(trial for trial in runs[summary.run_id].trials if trial.id == summary.trial_id)
        trials.append(trial_report_of(store, stored, store.suite_of(summary.run_id)))
        sources[stored.id] = runs[summary.run_id]
    return Report(next(iter(runs.values())), tuple(trials), (), (), sources=sources)


def _find_report(store: Store, settings: Settings, target: str) -> Report:
    """The run `target`, or the newest run with the name that runs of this target have."""
    try:
        return report_of(store, target)
    except RunNotFound:
        name = target
        if Path(target).is_file():
            with contextlib.suppress(AssayError):
                name = prepare(RunRequest(target), settings, store).name
        named = next((run.id for run in store.runs() if run.name == name), None)
        if named is None:
            raise PlanError(
                f"There are no stored results of '{target}', so its variation is unknown. Run it first: {shell_command('run', str(target))}"
            ) from None
        return report_of(store, named)
