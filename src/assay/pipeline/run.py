"""Executes a plan: plan → execute → store.

`run_plan` begins a run and `resume` continues an interrupted one; both end in `_execute_plan`, the main loop, which
takes batches of results from the runner (`execute.runner.carry_out`), stores each, and shows it to the caller. Loads
and stress tests have loops of their own; all of them share `lifecycle`.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING

from assay.errors import PlanError
from assay.execute.budget import Spending
from assay.execute.environment import environment, facts_after
from assay.execute.jobs import Assignment
from assay.execute.noise import PaceSampler
from assay.execute.runner import carry_out
from assay.execute.signals import interruptible
from assay.execute.worker_process import wait_until_quiet
from assay.model import Artifact, Batch, Budget, Order, Placement, Plan, Run, RunState, Status, Suite
from assay.model.redaction import known_secrets, redact
from assay.model.run import RERUN_TAG
from assay.pipeline.executor import check_executor_options, open_executor
from assay.pipeline.lifecycle import ActiveRun, open_run, reopen_run
from assay.pipeline.placements import PlacementLog
from assay.pipeline.planning import check_makeable
from assay.pipeline.resumption import (
    NO_BUDGET,
    AgentVersions,
    StoredProgress,
    read_progress,
    read_spending,
    remark_on_split_processes,
)
from assay.pipeline.sandboxes import record_sandbox
from assay.plugin import lookup
from assay.plugin.executor import Executor
from assay.plugin.file_names import trial_folder
from assay.plugin.private_files import make_folder
from assay.plugin.steady_clock import SteadyClock
from assay.spec.settings import Settings, find_settings
from assay.store.store import Store

if TYPE_CHECKING:
    from assay.execute.decision import Deciding

_log = logging.getLogger(__name__)
Watch = Callable[[Batch], None]
_MOMENT = 0.002
GC_THRESHOLD = (700, 10, 10)
"""As Python has it: inline executions are measured with it, whatever the command line has set."""


def ignore_batch(_: Batch) -> None:
    """Ignore a batch, for runs without a progress display."""


def run_plan(plan: Plan, store: Store, watch: Watch = ignore_batch, *, run_id: str | None = None) -> Run:
    """Execute a plan from the beginning, under an id that is chosen unless it is given."""
    _refuse_secrets(plan)
    # The clock starts before the environment is recorded, which takes a while: the run began when the user asked for it.
    clock = SteadyClock()
    code_folder = Path(plan.load[0]).parent if plan.load else Path.cwd()
    wait_until_quiet()
    here = record_sandbox(environment(code_folder), plan)
    with (
        interruptible() as interrupt,
        open_executor(plan) as (plan, executor),
        open_run(plan, store, interrupt, here, clock, run_id=run_id, stays_open_on_error=True) as active,
    ):
        if plan.remarks:
            remarks = (
                Artifact(index, "recorded.txt", "remark", text.encode())
                for index, text in plan.remarks.items()
            )
            active.add(Batch(artifacts=tuple(remarks)))
        _execute_plan(active, plan, executor, {}, watch, Spending(plan.budget))
    return _read_finished(active, plan)


def resume(
    ref: str,
    store: Store,
    watch: Watch = ignore_batch,
    budget: Budget = NO_BUDGET,
    executor_options: Mapping[str, object] | None = None,
) -> Run:
    """Do what is missing of a run that was cut short; ceilings of `budget` take the place of those it was planned with.

    The plan comes from the database and not from the files of the spec, which may have changed since. Everything that can
    refuse (another owner, a used-up budget, an agent that cannot be made) is checked before the run is taken over, so that a
    refused resumption leaves the run as it was.
    """
    found = store.run(ref)
    store.require_idle(found.id)
    if RERUN_TAG in found.tags:
        raise PlanError(f"Run '{found.id}' was made by a gate and cannot be resumed: run the gate again.")
    if (resume_own := _find_own_resumption(found)) is not None:
        resume_own(found, store, find_settings(Path.cwd()), watch)
        return store.run(found.id)
    plan = plan_of(found, store)
    settings = find_settings(Path.cwd())
    options = {**settings.executors.get(plan.executor, {}), **(executor_options or {})}
    plan = replace(plan, budget=plan.budget.override_with(budget), executor_options=options)
    check_executor_options(plan.executor, options)
    spending = read_spending(found, plan.budget, store)
    for file in plan.load:
        lookup.load_file(Path(file))
    check_makeable(plan)
    with (
        interruptible() as interrupt,
        open_executor(plan) as (plan, executor),
        reopen_run(found.id, store, interrupt, plan.budget, stays_open_on_error=True) as active,
    ):
        here = record_sandbox(active.run.environment, plan)
        if here != active.run.environment:
            store.set_environment(found.id, here)
        _execute_plan(active, plan, executor, read_progress(store, active.run), watch, spending)
    return _read_finished(active, plan)


def _execute_plan(
    active: ActiveRun,
    plan: Plan,
    executor: Executor,
    progress: StoredProgress,
    watch: Watch,
    spending: Spending,
) -> None:
    """Execute what `progress` does not have of the plan, store it, and finish the run.

    The loop ends when all is done, or when the user, the budget or the plan's question has ended it. What is decided after the
    loop, it decides from what is stored.
    """
    _log.info("run %s begins: seed %d, executor %s", active.id, plan.seed, plan.executor)
    start, store = perf_counter(), active.store
    # The sampler times a fixed workload beside the executions: how fast the machine was is stored with the results.
    sampler = PaceSampler(executor)
    with _make_trial_folders(active.run, plan) as folders:
        done_cases = store.read_done(active.id) if plan.suite else {}
        assignment = Assignment(plan, active.id, folders.by_trial, progress, done_cases, folders.temporary)
        deciding = _watch_question(active, plan)
        ended = _find_ended_trials(active, plan, deciding)
        remark_on_split_processes(active, plan, progress)
        placements = PlacementLog(active, progress)
        versions = AgentVersions(active, {index: len(cases) for index, cases in done_cases.items() if cases})

        def store_batches() -> None:
            # A function of its own, so that the last batch is gone before the results are rated: it may hold a thousand executions.
            is_stopped = lambda: active.interrupt() or spending.is_over  # noqa: E731
            for batch in carry_out(assignment, sampler, is_stopped, ended, spending, deciding):
                # Stored first, shown second: what a user has seen on the screen is never lost.
                active.add(placements.resolve_placements(versions.resolve_versions(batch)))
                _log_troubles(plan, batch)
                watch(batch)

        with _loading_ahead(plan):
            store_batches()

        def decide_state() -> RunState:
            if deciding is not None and deciding.is_over:
                assert plan.question is not None
                # The plan of the run is from now on what was executed until the question was decided.
                ruled = replace(plan.question, ruling=deciding.ruling())
                store.rule(active.id, ruled, deciding.trim_trials())
            return _decide_state(active, assignment, spending)

        def conclude(state: RunState) -> None:
            if (pace := sampler.summary()) is not None:
                run = store.run(active.id)
                store.set_environment(run.id, facts_after(run.environment, pace))
            if plan.suite is not None:
                _rate(active, plan.suite, state)

        state = active.finish(decide_state, conclude)
    _log.info("run %s %s after %.2f s", active.id, state.value, perf_counter() - start)


@dataclass(frozen=True, slots=True)
class _TrialFolders:
    """The folders that the trials of a run write to, by the index of the trial."""

    by_trial: Mapping[int, str]
    temporary: str
    """The folder that holds them and is removed with them; empty where the spec names an output folder."""


@contextmanager
def _make_trial_folders(run: Run, plan: Plan) -> Iterator[_TrialFolders]:
    """A folder for each trial: in the output folder where the spec names one, else temporary."""
    temporary = tempfile.mkdtemp(prefix="assay-") if plan.output_dir is None else ""
    root = Path(plan.output_dir or temporary)
    try:
        folders: dict[int, str] = {}
        for stored in run.trials:
            name = trial_folder(stored.trial.name, run.started, f"{run.id}-{stored.trial.index}")
            try:
                make_folder(root / name)
            except OSError as error:
                raise PlanError(f"The output folder '{root}' cannot be written: {error.strerror}.") from None
            folders[stored.trial.index] = str(root / name)
        yield _TrialFolders(folders, temporary)
    finally:
        if temporary:
            shutil.rmtree(temporary, ignore_errors=True)


def _read_finished(active: ActiveRun, plan: Plan) -> Run:
    """The run as it is stored now, after its results are written to the output folder where the spec names one."""
    store = active.store
    finished = store.insist(lambda: store.run(active.id))
    if plan.output_dir:
        from assay.pipeline.report import report_of
        from assay.report.documents.result import write_output_dir

        write_output_dir(report_of(store, active.id), Path(plan.output_dir))
    return finished


def _refuse_secrets(plan: Plan) -> None:
    """What agents and experiments are made with is stored, and a run is executed with what is stored: nothing may be redacted."""
    known = known_secrets()
    known.learn_environment(os.environ)
    for trial in plan.trials:
        options = trial.agent_use.options if trial.agent_use else {}
        for holder, given in (
            (f"Agent '{trial.agent.name}'", options),
            (f"'{trial.benchmark}'", trial.params),
        ):
            for name, value in given.items():
                if known.redact({name: value}) != {name: value}:
                    origin = known.origin_of_secret_in(json.dumps({name: value}, default=str))
                    raise PlanError(
                        f"{holder}: '{redact(name)}' holds {f'the value of {origin!r}' if origin else 'a secret'}, "
                        "and this value would be stored. Use ${NAME} instead or, if it is not a secret, rename the variable."
                    )


def _find_own_resumption(run: Run) -> Callable[[Run, Store, Settings, Watch], None] | None:
    """What resumes a run whose executions are not jobs of the runner; None for all others."""
    # Imported only to resume: what a load and a stress test consist of is most of the nouns.
    from assay.model.stress import STRESS

    if not any(stored.trial.experiment in ("load", STRESS) for stored in run.trials):
        return None
    from assay.pipeline.capacity import resume_capacity
    from assay.pipeline.stress_resumption import is_stress_run, resume_stress

    if is_stress_run(run):
        return resume_stress
    return resume_capacity if run.is_capacity_search else None


def _watch_question(active: ActiveRun, plan: Plan) -> Deciding | None:
    """What watches over the question of a run, with what is stored of it already; None where there is nothing to decide."""
    if plan.question is None or plan.question.ruling is not None:
        return None
    from assay.execute.decision import Deciding

    deciding = Deciding(plan)
    for stored in active.run.trials:
        index, placed = stored.trial.index, active.store.placements(stored.id)
        deciding.place(Placement(index, process, node) for process, node in placed.items())
        deciding.take(active.store.executions(stored.id))
    return deciding


def _find_ended_trials(active: ActiveRun, plan: Plan, deciding: Deciding | None) -> set[int]:
    """Trials that get no further jobs: they were stopped, or their question is decided."""
    ended = {stored.trial.index for stored in active.run.trials if stored.stopped}
    if deciding is not None:
        deciding.see(Batch(), ended)
    elif plan.question is not None:
        ended.update(trial.index for trial in plan.trials)
    return ended


def _decide_state(active: ActiveRun, assignment: Assignment, spending: Spending) -> RunState:
    """Over budget only if the budget left something out: one that was used up by the last execution has kept nothing back."""
    from assay.pipeline.completeness import final_state

    store = active.store
    if spending.is_over and any(
        sum(store.counts(stored.id).values()) < stored.trial.number_of_planned_executions
        for stored in store.run(active.id).trials
    ):
        return RunState.OVER_BUDGET
    return final_state(store, active.id, assignment)


def _rate(active: ActiveRun, suite: Suite, state: RunState) -> None:
    """References come first, as the ratings of this very run are relative to them. Only a completed run may set them: an
    incomplete one would bind all later ratings to a part of the cases."""
    from assay.pipeline.ratings import rate_trials
    from assay.pipeline.references import establish_references

    if state is RunState.COMPLETED:
        establish_references(active.store, active.id, active.clock.now())
    rate_trials(active.store, active.store.run(active.id), suite)


def _log_troubles(plan: Plan, batch: Batch) -> None:
    """Failures, retries and trials that are given up."""
    if not _log.isEnabledFor(logging.INFO):
        return
    names = {trial.index: trial.name for trial in plan.trials}
    for execution in batch.executions:
        name = f"{names[execution.trial]}, {execution.case or f'repetition {execution.repetition}'}"
        attempts = (execution.detail or {}).get("attempts")
        if isinstance(attempts, list) and attempts:
            _log.info(
                "%s: asked again after %s", name, "; ".join(str(attempt.get("error")) for attempt in attempts)
            )
        if execution.status is not Status.OK:
            error = (execution.error or "").strip().splitlines() or [""]
            _log.info("%s: %s: %s", name, execution.status.value, error[-1])
    for index, reason in batch.stopped.items():
        _log.info("%s stopped: %s", names[index], reason.splitlines()[0])


@contextmanager
def _loading_ahead(plan: Plan) -> Iterator[None]:
    """While its first worker starts, load what the end of a run needs; before, where executions take place in this process.

    Two threads that import what needs each other may see half of it, so nothing else is loaded until this is done.
    """
    needed = ["assay.pipeline.report"]
    if any(trial.number_of_planned_executions > 1 for trial in plan.trials):
        needed.append("assay.analysis.estimates.estimate")
    if plan.suite is not None:
        needed.append("assay.analysis.ranking.ratings")

    def load() -> None:
        for module in needed:
            import_module(module)

    # The command line lets garbage collection run seldom, to start fast. Code that is measured in this process runs with
    # Python's own threshold, as it would anywhere else.
    if plan.executor != "local" or any(trial.isolation == "inline" for trial in plan.trials):
        load()
        before = gc.get_threshold()
        gc.set_threshold(*GC_THRESHOLD)
        try:
            yield
        finally:
            gc.set_threshold(*before)
        return
    # A moment later, so that the worker is on its way before this process is busy.
    loading = Timer(_MOMENT, load)
    loading.daemon = True
    loading.start()
    try:
        yield
    finally:
        loading.join()


def plan_of(run: Run, store: Store) -> Plan:
    """The plan that a stored run was made from."""
    return Plan(
        name=run.name,
        trials=tuple(stored.trial for stored in run.trials),
        seed=run.seed,
        order=Order(run.order),
        parallelism=run.parallelism,
        executor=run.executor,
        load=run.load,
        output_dir=run.output_dir,
        tags=run.tags,
        notes=run.notes,
        source=run.source,
        suite=store.suite_of(run.id),
        budget=run.budget,
        question=run.question,
        label=run.label,
    )
