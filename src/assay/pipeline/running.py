"""Plan and carry out: spec → plan → execute → store."""

from __future__ import annotations

import gc
import json
import logging
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from assay.errors import AssayError, Mistake, PlanError
from assay.execute.environment import environment, facts_after
from assay.execute.jobs import Assignment
from assay.execute.noise import PaceSampler
from assay.execute.runner import carry_out
from assay.execute.signals import interruptible
from assay.execute.spending import Spending
from assay.execute.steady_clock import SteadyClock
from assay.model import (
    AgentUse,
    Artifact,
    Batch,
    Budget,
    Order,
    Phase,
    Plan,
    Run,
    RunState,
    Status,
    StoredTrial,
    Suite,
    Trial,
)
from assay.model.plan import RECORDED
from assay.model.redaction import known_secrets, redact
from assay.model.run import RERUN_TAG
from assay.model.suite import SUITE_ITERATIONS
from assay.pipeline.ownership import own_run
from assay.pipeline.sandboxes import record_sandbox
from assay.plan.codebase import forget_commits
from assay.plan.load import find_agent
from assay.plan.suite import scorers_of
from assay.plan.target import (
    Registry,
    RunRequest,
    checked_suite,
    contents_of,
    located_warnings,
    plan_target,
)
from assay.plugin import lookup
from assay.plugin.private_files import make_folder
from assay.report.names import trial_folder
from assay.spec.agents import read_agents
from assay.spec.settings import Settings
from assay.store.processes import current_owner
from assay.store.store import Store

if TYPE_CHECKING:
    from assay.execute.deciding import Deciding

_log = logging.getLogger(__name__)
Watch = Callable[[Batch], None]
_MOMENT = 0.02
_NO_BUDGET = Budget()
GC_THRESHOLD = (700, 10, 10)
"""As Python has it: inline executions are measured with it, whatever the command line has set."""


def unwatched(_: Batch) -> None:
    """For runs that nobody looks at while they go on."""


def prepare(request: RunRequest | str, settings: Settings, store: Store | None = None) -> Plan:
    """Plan what is asked for: every name is known to exist, and every agent can be made, before anything runs."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    forget_commits()
    asked = RunRequest(request) if isinstance(request, str) else request
    start = perf_counter()
    plan = plan_target(asked, settings, replace(registry_of(store), default_warmup=default_warmup))
    plan = replace(_with_load_targets(plan, settings, store), label=asked.label)
    _check_makeable(plan)
    plan = _with_recorded_repetitions(plan)
    _log.info(
        "planned %s: %d trials in %.1f ms", plan.name, len(plan.trials), 1000 * (perf_counter() - start)
    )
    return plan


def _with_recorded_repetitions(plan: Plan) -> Plan:
    """Recorded agents have at most as many repetitions as answers, and a remark where that is fewer than asked for."""
    if not any(trial.is_recorded for trial in plan.trials):
        return plan
    from assay.execute.jobs import recorded_repetitions

    trials, remarks = list(plan.trials), {}
    for place, trial in enumerate(trials):
        counts = recorded_repetitions(trial) if trial.is_recorded and trial.cases else {}
        asked = trial.iterations.measured
        if counts and min(counts.values()) < asked:
            most = min(asked, max(counts.values()))
            trials[place] = replace(trial, iterations=replace(trial.iterations, measured=most))
            remarks[trial.index] = _few_recorded(counts, asked)
    return replace(plan, trials=tuple(trials), remarks=remarks)


def _few_recorded(counts: Mapping[str, int], asked: int) -> str:
    short = [number for number in counts.values() if number < asked]
    fewest, most = min(short), max(short)
    many = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    of_cases = "each case" if len(short) == len(counts) else f"{len(short)} of {len(counts)} cases"
    answers = "answer" if fewest == most == 1 else "answers"
    return (
        f"{many} recorded {answers} for {of_cases}, fewer than the {asked} repetitions asked for: "
        "a case is repeated only as often as answers are recorded"
    )


def _with_load_targets(plan: Plan, settings: Settings, store: Store | None) -> Plan:
    """Targets of loads are known before anything runs; registered agents are defined for workers, which have no store."""
    registered = store.agents() if store is not None else {}

    def resolved(trial: Trial) -> Trial:
        target, is_defined = trial.params.get("target"), trial.params.get("agent") is not None
        if trial.experiment != "load" or is_defined or not isinstance(target, str):
            return trial
        found = find_agent(target, settings, registered)
        if found is None or target not in registered:
            return trial
        return replace(trial, params={**trial.params, "agent": asdict(found.use)})

    return replace(plan, trials=tuple(map(resolved, plan.trials)))


def default_warmup(use: AgentUse) -> int:
    """One where a try costs nothing but time on this machine: none for agents that are remote or have a price."""
    from assay.execute.agents import make_agent
    from assay.execute.price import Price

    try:
        agent = make_agent(use)
    except AssayError:
        return 0  # whoever makes the agents to check them says what is wrong
    is_remote = use.type == RECORDED or bool(getattr(agent, "is_remote", False))
    return 0 if is_remote or Price(use, agent).is_priced else SUITE_ITERATIONS.warmup


def registry_of(store: Store | None) -> Registry:
    """Agents and suites that are registered in a store."""
    if store is None:
        return Registry()

    def registered(name: str) -> Suite | None:
        return store.suite(name) if any(one.name == name for one in store.suites()) else None

    return Registry(store.agents(), registered)


def _check_makeable(plan: Plan) -> None:
    """Make each agent and scorer once, unopened, so that what is wrong with any of them is told before anything runs."""
    uses = [t.agent_use for t in plan.trials if t.agent_use is not None]
    if any(trial.experiment == "team" for trial in plan.trials):
        from assay.plan.team import team_agents

        uses += team_agents(plan.trials)
    if uses or plan.suite is not None:
        _check_agents_and_scorers(uses, plan.suite)


def _check_agents_and_scorers(uses: Sequence[AgentUse], suite: Suite | None) -> None:
    from assay.execute.agents import agent_key, make_agent
    from assay.execute.judging import make_scorer

    agents = {agent_key(use): use for use in uses}
    makings: list[Callable[[], object]] = [partial(make_agent, use) for use in agents.values()]
    makings += [partial(make_scorer, use) for use in (scorers_of(suite) if suite else ())]
    problems: dict[str, None] = {}
    for make in makings:
        try:
            make()
        except AssayError as error:
            problems[str(error)] = None
    if problems:
        raise PlanError("\n".join(problems))


def check(target: str, settings: Settings, store: Store | None = None) -> Checked:
    """What a spec, a suite or a file of agents holds, if all of it is fine."""
    contents = contents_of(Path(target))
    summary = _summary(target, contents, settings, store)
    return Checked(summary, located_warnings(target, settings) if contents != "agents" else ())


class Checked(NamedTuple):
    """A file without mistakes: what it holds, in a few words, and what is odd about it."""

    summary: str
    warnings: tuple[Mistake, ...]


def _summary(target: str, contents: str, settings: Settings, store: Store | None) -> str:
    if contents == "agents":
        from assay.execute.agents import make_agent

        uses = read_agents(Path(target), checks_options=True)
        for use in uses.values():
            make_agent(use)
        return _counted(len(uses), "agent")
    if contents == "suite without agents":
        suite = checked_suite(target, settings)
        _check_agents_and_scorers((), suite)
        cases = sum(len(benchmark.cases) for benchmark in suite.benchmarks)
        return f"{_counted(len(suite.benchmarks), 'benchmark')}, {_counted(cases, 'case')}"
    return _counted(len(prepare(target, settings, store).trials), "trial")


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def run_plan(plan: Plan, store: Store, watch: Watch = unwatched) -> Run:
    """Carry out a plan from the beginning."""
    _refuse_secrets(plan)
    now = datetime.now(UTC)
    here = record_sandbox(environment(_code_folder(plan)), plan.suite)
    begun = store.begin(plan, here, secrets.token_hex(5), now, current_owner())
    if plan.remarks:
        remarks = (
            Artifact(index, "recorded.txt", "remark", text.encode()) for index, text in plan.remarks.items()
        )
        store.add(begun.id, Batch(artifacts=tuple(remarks)))
    return _carried_out(begun, plan, store, {}, watch, Spending(plan.budget))


def _refuse_secrets(plan: Plan) -> None:
    """What agents and experiments are made with is stored, and a run is carried out with what is stored: nothing may be redacted."""
    known = known_secrets()
    known.learn_environment(os.environ)
    for trial in plan.trials:
        options = trial.agent_use.options if trial.agent_use else {}
        for whose, given in (
            (f"Agent '{trial.agent.name}'", options),
            (f"'{trial.benchmark}'", trial.params),
        ):
            for name, value in given.items():
                if known.redact({name: value}) != {name: value}:
                    origin = known.origin_of_secret_in(json.dumps({name: value}, default=str))
                    raise PlanError(
                        f"{whose}: '{redact(name)}' holds {f'the value of {origin!r}' if origin else 'a secret'}, "
                        "and what is written there is stored. Write ${NAME} instead, or, if it is no secret, "
                        "rename the variable."
                    )


def resume(ref: str, store: Store, watch: Watch = unwatched, budget: Budget = _NO_BUDGET) -> Run:
    """Do what is missing of a run that was cut short; ceilings of `budget` take the place of those it was planned with."""
    found = store.run(ref)
    store.require_idle(found.id)
    _refuse_stress(found, store)
    if RERUN_TAG in found.tags:
        raise PlanError(f"Run '{found.id}' was made by a gate and cannot be resumed: run the gate again.")
    plan = plan_of(found, store)
    plan = replace(plan, budget=plan.budget.replaced_by(budget))
    spending = _spent_before(found, plan.budget, store)
    for file in plan.load:
        lookup.load_file(Path(file))
    _check_makeable(plan)
    reopened = store.reopen(found.id, current_owner(), plan.budget)
    here = record_sandbox(reopened.environment, plan.suite)
    if here != reopened.environment:
        store.set_environment(found.id, here)
        reopened = replace(reopened, environment=here)
    return _carried_out(reopened, plan, store, _progress(store, reopened), watch, spending)


def _spent_before(run: Run, budget: Budget, store: Store) -> Spending:
    """A budget is of the whole run: what was paid before it was cut short is paid."""
    spending = Spending(budget)
    if budget != _NO_BUDGET:
        for stored in run.trials:
            spending.add(store.executions(stored.id))
    if spending.is_over:
        raise PlanError(
            f"Run '{run.id}' has used up its budget ({spending}). Give it a larger one: --budget-usd, --budget-tokens."
        )
    return spending


def _refuse_stress(run: Run, store: Store) -> None:
    """Its scenarios start from one and the same calm, which is not there any more."""
    from assay.model.stress import STRESS

    if not any(stored.trial.experiment == STRESS for stored in run.trials):
        return
    if run.state is RunState.RUNNING:
        # Its process has ended: results that it could not store are stored now.
        store.reopen(run.id, current_owner())
        store.finish(run.id, RunState.INTERRUPTED, datetime.now(UTC))
    done = {trial for trial, _, _ in store.progress(run.id)}
    missing = [stored.trial.name for stored in run.trials if stored.trial.index not in done]
    asked = " ".join(
        ["assay stress", run.trials[0].trial.agent.name, *(f"--scenario {name}" for name in missing)]
    )
    raise PlanError(f"Run '{run.id}' is a stress test, which cannot be resumed. Run what it lacks: {asked}")


def _progress(store: Store, run: Run) -> dict[tuple[int, int, str], int]:
    """What is stored; a process of `measured: auto` that had seen enough counts as having done all it may."""
    from assay.execute.enough import Enough

    progress = dict(store.progress(run.id))
    for stored in run.trials:
        until = stored.trial.iterations.until
        series = store.series(stored.id).get(until.metric) if until else None
        if until is None or series is None:
            continue
        watches = {process: Enough(until) for process in set(series.processes)}
        for process, value in zip(series.processes, series.values, strict=True):
            if watches[process].is_reached(value):
                progress[stored.trial.index, process, Phase.MEASURED] = stored.trial.iterations.measured
    return progress


def _carried_out(
    begun: Run,
    plan: Plan,
    store: Store,
    progress: Mapping[tuple[int, int, str], int],
    watch: Watch,
    spending: Spending,
) -> Run:
    _log.info("run %s begins: seed %d, executor %s", begun.id, plan.seed, plan.executor)
    clock = SteadyClock(max(begun.started, datetime.now(UTC)) if progress else begun.started)
    start = perf_counter()
    executor = PaceSampler(lookup.find("executors", plan.executor)(plan.parallelism))
    places = _Folders(begun, plan)
    with (
        interruptible() as interrupt,
        own_run(store, begun.id, interrupt, clock, is_resumable=True),
        places as folders,
    ):
        deciding = _deciding(begun, plan, store)
        done = store.done(begun.id) if plan.suite else {}
        assignment = Assignment(plan, begun.id, folders, progress, done, places.temporary)
        ended = {stored.trial.index for stored in begun.trials if stored.stopped}
        if deciding is not None:
            deciding.see(Batch(), ended)
        elif plan.question is not None:
            ended.update(trial.index for trial in plan.trials)
        _remark_on_split_processes(begun, plan, progress, store)
        versions = _Versions(begun, store, {index: len(what) for index, what in done.items() if what})
        with _loading_ahead(plan):
            for batch in carry_out(
                assignment, executor, lambda: interrupt() or spending.is_over, ended, spending, deciding
            ):
                with interrupt.storing():
                    store.add(begun.id, versions.resolved(batch))
                _log_troubles(plan, batch)
                watch(batch)
        store.settle(begun.id)

        def conclude() -> RunState:
            run = begun
            if deciding is not None and deciding.is_over and not interrupt():
                run = _ruled(begun, plan, store, deciding)
            state = RunState.INTERRUPTED if interrupt() else _final_state(store, run, assignment, spending)
            if (pace := executor.summary()) is not None:
                store.set_environment(run.id, facts_after(run.environment, pace))
            if plan.suite is not None:
                _rate(store, run, plan.suite, state)
            store.finish(run.id, state, clock.now())
            return state

        state = store.insist(conclude)
    _log.info("run %s %s after %.2f s", begun.id, state.value, perf_counter() - start)
    finished = store.insist(lambda: store.run(begun.id))
    if plan.output_dir:
        from assay.pipeline.reporting import report_of
        from assay.report.document import write_output_dir

        write_output_dir(report_of(store, begun.id), Path(plan.output_dir))
    return finished


def _log_troubles(plan: Plan, batch: Batch) -> None:
    """Failures, retries and trials that are given up."""
    if not _log.isEnabledFor(logging.INFO):
        return
    names = {trial.index: trial.name for trial in plan.trials}
    for execution in batch.executions:
        name = f"{names[execution.trial]}, {execution.case or f'repetition {execution.repetition}'}"
        attempts = (execution.detail or {}).get("attempts")
        if isinstance(attempts, list) and attempts:
            _log.info("%s: asked again after %s", name, "; ".join(str(one.get("error")) for one in attempts))
        if execution.status is not Status.OK:
            error = (execution.error or "").strip().splitlines() or [""]
            _log.info("%s: %s: %s", name, execution.status.value, error[-1])
    for index, reason in batch.stopped.items():
        _log.info("%s stopped: %s", names[index], reason.splitlines()[0])


def _rate(store: Store, begun: Run, suite: Suite, state: RunState) -> None:
    from assay.pipeline.rating import rate_trials
    from assay.pipeline.references import establish_references

    if state is RunState.COMPLETED:
        establish_references(store, begun.id, datetime.now(UTC))
    rate_trials(store, begun, suite)


def _deciding(begun: Run, plan: Plan, store: Store) -> Deciding | None:
    """What watches over the question of a run, with what is stored of it already; None where there is nothing to decide."""
    if plan.question is None or plan.question.ruling is not None:
        return None
    from assay.execute.deciding import Deciding

    deciding = Deciding(plan)
    for stored in begun.trials:
        deciding.take(store.executions(stored.id))
    return deciding


def _ruled(begun: Run, plan: Plan, store: Store, deciding: Deciding) -> Run:
    """How it was decided, kept; the plan of the run is from now on what was made until then."""
    assert plan.question is not None
    store.rule(begun.id, replace(plan.question, ruling=deciding.ruling()), deciding.made())
    return store.run(begun.id)


@contextmanager
def _loading_ahead(plan: Plan) -> Iterator[None]:
    """While its first worker starts, load what the end of a run needs; before, where executions take place in this process.

    Two threads that import what needs each other may see half of it, so nothing else is loaded until this is done.
    """
    load = partial(import_module, "assay.pipeline.reporting")
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


def _final_state(store: Store, begun: Run, assignment: Assignment, spending: Spending) -> RunState:
    from assay.pipeline.completeness import final_state

    if spending.is_over and any(
        sum(store.counts(stored.id).values()) < stored.trial.planned_measured for stored in begun.trials
    ):
        return RunState.OVER_BUDGET
    return final_state(store, begun.id, assignment)


def _remark_on_split_processes(
    begun: Run, plan: Plan, progress: Mapping[tuple[int, int, str], int], store: Store
) -> None:
    """A process that is resumed in the middle is really two: say so beside its figures."""
    for trial in (trial for trial in plan.trials if trial.agent_use is None):
        split = [p for (index, p, phase), done in progress.items()
                 if (index, phase) == (trial.index, "measured") and 0 < done < trial.iterations.measured]  # fmt: skip
        if split and trial.isolation != "cold" and not trial.iterations.until:
            text = f"process {', '.join(map(str, sorted(split)))} was resumed: its executions come from two processes"
            name = f"resumed-{secrets.token_hex(3)}.txt"
            store.add(begun.id, Batch(artifacts=(Artifact(trial.index, name, "remark", text.encode()),)))


class _Versions:
    """Of agents that had done a part of their trial when a run was resumed: whoever changed meanwhile has two."""

    def __init__(self, begun: Run, store: Store, done: Mapping[int, int]) -> None:
        self._run_id, self._store, self._done = begun.id, store, done
        self._known = {t.trial.index: t.trial.agent.version for t in begun.trials if t.trial.index in done}

    def resolved(self, batch: Batch) -> Batch:
        """The batch with what is to be stored as the versions of its agents."""
        found = {index: self._together_with(index, version) for index, version in batch.versions.items()}
        return replace(batch, versions=found) if found else batch

    def _together_with(self, index: int, version: str) -> str:
        """What the trial's figures are of, with a remark beside them where that is more than one version."""
        before = self._known.get(index, "")
        if not before:
            return version
        if version not in (before, *before.split("+")):
            text = (
                f"the agent changed before the run was resumed: {self._done[index]:,} executions are of version {before}, "
                f"the others of {version}, and the figures of all of them; run it anew for figures of one"
            )
            remark = Artifact(index, f"versions-{secrets.token_hex(3)}.txt", "mixed-versions", text.encode())
            self._store.add(self._run_id, Batch(artifacts=(remark,)))
            self._known[index] = f"{before}+{version}"
        return self._known[index]


class _Folders:
    """A folder for each trial: in the output folder where the spec names one, else temporary."""

    def __init__(self, begun: Run, plan: Plan) -> None:
        self._begun, self._plan = begun, plan
        self.temporary = ""

    def __enter__(self) -> dict[int, str]:
        if self._plan.output_dir is None:
            self.temporary = tempfile.mkdtemp(prefix="assay-")
        root = Path(self._plan.output_dir or self.temporary)
        return {stored.trial.index: str(self._made(root, stored)) for stored in self._begun.trials}

    def _made(self, root: Path, stored: StoredTrial) -> Path:
        folder = root / trial_folder(
            stored.trial.name, self._begun.started, f"{self._begun.id}-{stored.trial.index}"
        )
        try:
            make_folder(folder)
        except OSError as error:
            raise PlanError(f"The output folder '{root}' cannot be written: {error.strerror}.") from None
        return folder

    def __exit__(self, *_: object) -> None:
        if self.temporary:
            shutil.rmtree(self.temporary, ignore_errors=True)


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


def _code_folder(plan: Plan) -> Path:
    return Path(plan.load[0]).parent if plan.load else Path.cwd()
