"""The flow on one page: spec → plan → execute → store → analysis → show."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assay.analysis import comparable, compare_reports, findings, trial_report
from assay.analysis.health import SuiteHealth, suite_health
from assay.analysis.leaderboard import leaderboard
from assay.analysis.ratings import rate
from assay.analysis.tally import case_series
from assay.errors import AssayError, LookupFailed, MissingExtra, PlanError, no_such
from assay.execute.agents import agent_key, make_agent
from assay.execute.enough import Enough
from assay.execute.environment import environment
from assay.execute.jobs import Assignment
from assay.execute.judging import judged_again, make_scorer
from assay.execute.runner import carry_out, interruptible
from assay.execute.spending import Spending
from assay.model import (
    Artifact,
    Batch,
    Budget,
    CaseTable,
    Comparison,
    Contender,
    Doubt,
    Leaderboard,
    Metric,
    Order,
    Phase,
    Plan,
    Ratings,
    Report,
    Run,
    RunState,
    StoredTrial,
    Suite,
    TrialReport,
)
from assay.plan.suite import scorers_of
from assay.plan.target import Registry, Request, checked_suite, contents_of, plan_target
from assay.plugin import lookup
from assay.report.cases import case_table
from assay.report.document import read_result, seed_result, trial_folder, write_output_dir
from assay.spec.agents import read_agents
from assay.spec.settings import Settings, find_settings
from assay.store.listing import TrialSummary
from assay.store.store import Store

Watch = Callable[[Batch], None]


def unwatched(_: Batch) -> None:
    """For runs that nobody looks at while they go on."""


def run(target: str | Path, *, db: str | None = None, **changes: Any) -> Report:
    """Carry out a spec file, a Python file or an experiment and return what was found.

    `changes` are keys of a spec, laid over those of the file: `run("spec.yaml", processes=10, params={"size": 5})`.
    """
    settings = find_settings(Path.cwd())
    with Store.open(db or settings.db) as store:
        done = run_plan(prepare(Request(str(target), changes), settings, store), store)
        return report_of(store, done.id)


def compare(
    a: str, b: str, *, db: str | None = None, metrics: Sequence[str] | None = None
) -> tuple[Comparison, ...]:
    """Compare two runs, or result files; A is the reference, so *better* means that B is better."""
    with Store.open(db or find_settings(Path.cwd()).db) as store:
        return compared(store, a, b, metrics=metrics).comparisons


def prepare(request: Request | str, settings: Settings, store: Store | None = None) -> Plan:
    """Plan what is asked for: every name is known to exist, and every agent can be made, before anything runs."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    asked = Request(request) if isinstance(request, str) else request
    plan = plan_target(asked, settings, _registry(store))
    _check_makeable(plan)
    return plan


def _registry(store: Store | None) -> Registry:
    if store is None:
        return Registry()

    def registered(name: str) -> Suite | None:
        return store.suite(name) if any(one.name == name for one in store.suites()) else None

    return Registry(store.agents(), registered)


def _check_makeable(plan: Plan) -> None:
    """Make each agent and scorer once, unopened, so that what is wrong with any of them is told before anything runs."""
    agents = {agent_key(t.agent_use): t.agent_use for t in plan.trials if t.agent_use is not None}
    makings: list[Callable[[], object]] = [partial(make_agent, use) for use in agents.values()]
    if plan.suite is not None:
        makings += [partial(make_scorer, use) for use in scorers_of(plan.suite)]
    problems: dict[str, None] = {}
    for make in makings:
        try:
            make()
        except AssayError as error:
            problems[str(error)] = None
    if problems:
        raise PlanError("\n".join(problems))


def check(target: str, settings: Settings, store: Store | None = None) -> str:
    """What a spec, a suite or a file of agents holds, in a few words, if all of it is fine."""
    contents = contents_of(Path(target))
    if contents == "agents":
        uses = read_agents(Path(target))
        for use in uses.values():
            make_agent(use)
        return _counted(len(uses), "agent")
    if contents == "suite without agents":
        suite = checked_suite(target, settings)
        cases = sum(len(benchmark.cases) for benchmark in suite.benchmarks)
        return f"{_counted(len(suite.benchmarks), 'benchmark')}, {_counted(cases, 'case')}"
    return _counted(len(prepare(target, settings, store).trials), "trial")


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def run_plan(plan: Plan, store: Store, watch: Watch = unwatched) -> Run:
    """Carry out a plan from the beginning."""
    now = datetime.now(UTC)
    begun = store.begin(plan, environment(_code_folder(plan)), secrets.token_hex(5), now, owner())
    return _carried_out(begun, plan, store, {}, watch)


def resume(ref: str, store: Store, watch: Watch = unwatched) -> Run:
    """Do what is missing of a run that was cut short."""
    found = store.run(ref)
    if found.state is RunState.RUNNING and is_alive(store.owner(found.id)):
        raise PlanError(
            f"Run '{found.id}' is still going on ({store.owner(found.id)}). Wait for it, or end it first."
        )
    plan = plan_of(found, store)
    for file in plan.load:
        lookup.load_file(Path(file))
    _check_makeable(plan)
    reopened = store.reopen(found.id, owner())
    return _carried_out(reopened, plan, store, _progress(store, reopened), watch)


def _progress(store: Store, run: Run) -> dict[tuple[int, int, str], int]:
    """What is stored; a process of `measured: auto` that had seen enough counts as having done all it may."""
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
    begun: Run, plan: Plan, store: Store, progress: Mapping[tuple[int, int, str], int], watch: Watch
) -> Run:
    executor = lookup.find("executors", plan.executor)(plan.parallelism)
    spending = Spending(plan.budget)
    with interruptible() as interrupt, _Folders(begun, plan) as folders:
        assignment = Assignment(plan, begun.id, folders, progress, store.done(begun.id) if plan.suite else {})
        ended = {stored.trial.index for stored in begun.trials if stored.stopped}
        _remark_on_split_processes(begun, plan, progress, store)
        for batch in carry_out(
            assignment, executor, lambda: interrupt() or spending.is_over, ended, spending
        ):
            store.add(begun.id, batch)
            for index, version in batch.versions.items():
                store.set_agent_version(begun.id, index, version)
            watch(batch)
        state = _final_state(store, begun, interrupt(), spending)
        rate_trials(store, begun, plan)
        store.finish(begun.id, state, datetime.now(UTC))
    finished = store.run(begun.id)
    if plan.output_dir:
        write_output_dir(report_of(store, begun.id), Path(plan.output_dir))
    return finished


def rate_trials(store: Store, begun: Run, plan: Plan) -> None:
    """Work out the five ratings of each trial of a suite, and keep them for leaderboards."""
    if plan.suite is None:
        return
    for stored in begun.trials:
        store.rate(stored.id, ratings_of(store, stored, plan.suite))


def ratings_of(store: Store, stored: StoredTrial, suite: Suite, table: CaseTable | None = None) -> Ratings:
    benchmark = next(one for one in suite.benchmarks if one.id == stored.trial.benchmark)
    baseline = store.baseline_quantities(suite.name).get(benchmark.id, {})
    return rate(table or store.case_table(stored.id), benchmark.rubric, benchmark.limits, baseline)


def failed_cases(store: Store, ref: str) -> dict[str, frozenset[str]]:
    """Cases that were not passed by every agent in every repetition, by benchmark."""
    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' is not of a suite, so it has no cases.")
    marks = {benchmark.id: benchmark.rubric.pass_mark for benchmark in suite.benchmarks}
    failed: dict[str, set[str]] = {}
    for stored in found.trials:
        table = store.case_table(stored.id)
        scores = table.metrics.get("score") or [None] * len(table.cases)
        for case, status, score in zip(table.cases, table.statuses, scores, strict=True):
            if status != "ok" or (score is not None and score < marks[stored.trial.benchmark]):
                failed.setdefault(stored.trial.benchmark, set()).add(case)
    if not failed:
        raise PlanError(f"Every case of run '{found.id}' was passed.")
    return {benchmark: frozenset(cases) for benchmark, cases in failed.items()}


def rescore(store: Store, ref: str) -> Run:
    """Judge the stored outputs of a run again, with the scorers that its suite has; nothing is run."""
    found = store.run(ref)
    suite = store.suite_of(found.id)
    if suite is None:
        raise PlanError(f"Run '{found.id}' is not of a suite, so there is nothing to judge.")
    for file in found.load:
        lookup.load_file(Path(file))
    for stored in found.trials:
        benchmark = next(one for one in suite.benchmarks if one.id == stored.trial.benchmark)
        store.rescore(stored.id, judged_again(benchmark, store.scored_executions(stored.id)))
    rate_trials(store, found, plan_of(found, store))
    return store.run(found.id)


def check_suite(target: str, settings: Settings, store: Store) -> SuiteHealth:
    """Put `oracle` and `nop` through a suite, and look at what real agents made of it."""
    with (
        tempfile.TemporaryDirectory(prefix="assay-") as folder,
        Store.open(f"sqlite:///{folder}/check.db") as aside,
    ):
        changes = {"iterations": {"measured": 1, "warmup": 0}}
        request = Request(target, changes, agents=("oracle", "nop"))
        plan = replace(prepare(request, settings, store), output_dir=None, budget=Budget())
        assert plan.suite is not None
        done = run_plan(plan, aside)
        tables = {(t.trial.agent.name, t.trial.benchmark): aside.case_table(t.id) for t in done.trials}
    oracle, nop = ({b: table for (a, b), table in tables.items() if a == name} for name in ("oracle", "nop"))
    history: dict[str, dict[str, CaseTable]] = {}
    for latest in store.latest_trials(suite=plan.suite.name):
        history.setdefault(latest.agent, {})[latest.benchmark] = store.case_table(latest.trial_id)
    return suite_health(plan.suite, oracle, nop, list(history.values()))


def leaderboards(
    store: Store, *, suite: str | None = None, category: str | None = None, metric: str = "overall"
) -> list[Leaderboard]:
    """A board for each suite asked for; without a name, for that of the latest trials."""
    latest = store.latest_trials(suite=suite)
    latest = [one for one in latest if one.suite and category in (None, one.category)]
    if not latest:
        asked = f" of suite '{suite}'" if suite else ""
        raise PlanError(
            f"There are no results{asked} to rank. Make some: assay run SUITE --agent A --agent B"
        )
    names = list(dict.fromkeys(one.suite for one in latest))
    return [_board(store, name, [one for one in latest if one.suite == name], metric) for name in names]


def _board(store: Store, suite: str, trials: Sequence[TrialSummary], metric: str) -> Leaderboard:
    contenders: dict[str, Contender] = {}
    asked: dict[str, set[object]] = {}
    for one in trials:
        definition = store.suite_of(one.run_id)
        stored = next(t for t in store.run(one.run_id).trials if t.id == one.trial_id)
        if definition is None:
            continue
        asked.setdefault(one.benchmark, set()).add((one.benchmark_hash, stored.trial.cases))
        before = contenders.get(one.agent)
        ratings = {**(before.ratings if before else {}), one.benchmark: ratings_of(store, stored, definition)}
        is_simulated = one.simulated or (before is not None and before.is_simulated)
        contenders[one.agent] = Contender(one.agent, one.agent_version, ratings, is_simulated, one.ended)
    board = leaderboard(suite, list(contenders.values()), list(asked), metric)
    if differing := [benchmark for benchmark, questions in asked.items() if len(questions) > 1]:
        doubt = f"Not all agents were asked the same cases of {', '.join(differing)}. Run them together."
        board = replace(board, doubts=(*board.doubts, doubt))
    return board


def _final_state(store: Store, begun: Run, is_interrupted: bool, spending: Spending) -> RunState:
    if is_interrupted:
        return RunState.INTERRUPTED
    counts = [store.counts(stored.id) for stored in begun.trials]
    if spending.is_over and not _is_all_done(begun, counts):
        return RunState.OVER_BUDGET
    has_failed = any(not count.get("ok") for count in counts)
    return RunState.FAILED if has_failed else RunState.COMPLETED


def _is_all_done(begun: Run, counts: Sequence[Mapping[str, int]]) -> bool:
    """Whether the budget was used up by the very last execution, so that nothing is missing."""
    planned = (
        t.trial.iterations.measured * (len(t.trial.cases) if t.trial.cases else t.trial.processes)
        for t in begun.trials
    )
    return all(sum(count.values()) >= number for count, number in zip(counts, planned, strict=True))


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


class _Folders:
    """A folder for each trial: in the output folder where the spec names one, else temporary."""

    def __init__(self, begun: Run, plan: Plan) -> None:
        self._begun, self._plan = begun, plan
        self._temporary: str | None = None

    def __enter__(self) -> dict[int, str]:
        if self._plan.output_dir is None:
            self._temporary = tempfile.mkdtemp(prefix="assay-")
        root = Path(self._plan.output_dir or self._temporary or "")
        return {stored.trial.index: str(self._made(root, stored)) for stored in self._begun.trials}

    def _made(self, root: Path, stored: StoredTrial) -> Path:
        folder = root / trial_folder(
            stored.trial.name, self._begun.started, f"{self._begun.id}-{stored.trial.index}"
        )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PlanError(f"The output folder '{root}' cannot be written: {error.strerror}.") from None
        return folder

    def __exit__(self, *_: object) -> None:
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


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
    )


def report_of(store: Store, ref: str) -> Report:
    """A stored run with its findings."""
    found = store.run(ref)
    suite = store.suite_of(found.id)
    for file in found.load:
        # Units and directions that an experiment declares are in its file; a report is fine without.
        with contextlib.suppress(LookupFailed, MissingExtra):
            lookup.load_file(Path(file))
    return findings(found, [_trial_report(store, stored, suite) for stored in found.trials], suite)


def _trial_report(store: Store, stored: StoredTrial, suite: Suite | None) -> TrialReport:
    table = store.case_table(stored.id) if stored.trial.agent_use is not None and suite is not None else None
    return trial_report(
        stored,
        series=store.series(stored.id) if table is None else case_series(table),
        counts=store.counts(stored.id),
        failures=store.failures(stored.id),
        executions=store.executions(stored.id),
        applied=store.applied(stored.id),
        artifacts=store.artifacts(stored.id),
        metrics=declared_metrics(stored),
        watched=watched_metrics(stored),
        ratings=ratings_of(store, stored, suite, table) if table is not None and suite is not None else None,
    )


def declared_metrics(stored: StoredTrial) -> dict[str, Metric]:
    """Units and directions that the instruments and the experiment of a trial declare, where they can still be found."""
    declared: dict[str, Metric] = {}
    members = [
        ("experiments", stored.trial.experiment),
        *(("instruments", use.name) for use in stored.trial.instruments),
    ]
    for kind, name in members:
        try:
            declared.update(getattr(lookup.find(kind, name), "metrics", {}))
        except (LookupFailed, MissingExtra):
            continue
    return declared


def only_trial(report: Report, wanted: str) -> Report:
    """The report of one trial, by its name or its number."""
    chosen = [t for t in report.trials if wanted in (t.name, str(t.stored.trial.index))]
    if not chosen:
        raise LookupFailed(no_such(wanted, "trials of this run", [t.name for t in report.trials]))
    doubts = tuple(doubt for doubt in report.doubts if doubt.trial in (None, chosen[0].name))
    return replace(report, trials=tuple(chosen), doubts=doubts)


def watched_metrics(stored: StoredTrial) -> set[str]:
    """Metrics that instruments gave: they stand behind the experiment's own."""
    found: set[str] = set()
    for use in stored.trial.instruments:
        try:
            found |= set(getattr(lookup.find("instruments", use.name), "metrics", {}))
        except (LookupFailed, MissingExtra):
            continue
    return found - {"seconds"}


def write_reports(report: Report, formats: Iterable[str], folder: Path) -> list[Path]:
    """Write a report in each of the formats; older-style reporters are plain functions."""
    reporters = [lookup.find("reporters", name) for name in formats]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PlanError(f"The folder '{folder}' cannot be written: {error.strerror}.") from None
    files: list[Path] = []
    for reporter in reporters:
        if hasattr(reporter, "write"):
            files += reporter().write(report, folder)
        else:
            files += _written_by_function(reporter, report, folder)
    return files


def _written_by_function(function: Callable[..., Any], report: Report, folder: Path) -> list[Path]:
    before = set(folder.iterdir())
    function([SimpleNamespace(**seed_result(report, trial)) for trial in report.trials], str(folder))
    return sorted(set(folder.iterdir()) - before)


@dataclass(frozen=True, slots=True)
class Compared:
    """Two sides, put beside each other."""

    a: Report
    b: Report
    comparisons: tuple[Comparison, ...]
    doubts: tuple[Doubt, ...]


def compared(
    store: Store, a: str, b: str, *, metrics: Sequence[str] | None = None, tolerance: float | None = None
) -> Compared:
    side_a, side_b = _side(store, a), _side(store, b)
    return Compared(
        side_a,
        side_b,
        compare_reports(side_a, side_b, metrics=metrics, tolerance=tolerance),
        comparable(side_a, side_b),
    )


def _side(store: Store, ref: str) -> Report:
    path = Path(ref)
    if path.suffix != ".json" and not path.is_file():
        return agent_report(store, ref) or report_of(store, ref)
    if not path.is_file():
        raise AssayError(f"There is no result file '{ref}'.")
    read = read_result(path)
    return findings(read.run, [_estimated_again(trial) for trial in read.trials])


def _estimated_again(trial: TrialReport) -> TrialReport:
    """A trial that was read from a file, with estimates by the method of today."""
    return trial_report(
        trial.stored,
        series=trial.series if trial.ratings is None else case_series(case_table(trial.executions)),
        counts=trial.counts,
        failures=trial.failures,
        executions=trial.executions,
        applied=trial.applied,
        artifacts=trial.artifacts,
        metrics={estimate.metric.name: estimate.metric for estimate in trial.estimates},
        ratings=trial.ratings,
    )


def agent_report(store: Store, ref: str) -> Report | None:
    """The latest trials of an agent, or of `agent@version`, as one report; None where no agent is called so."""
    name, _, version = ref.partition("@")
    latest = [
        one for one in store.latest_trials() if one.agent == name and version in ("", one.agent_version)
    ]
    if not name or not latest:
        return None
    newest = max(latest, key=lambda one: one.ended or one.started)
    chosen = [one for one in latest if one.suite == newest.suite]
    trials = []
    for one in chosen:
        stored = next(t for t in store.run(one.run_id).trials if t.id == one.trial_id)
        trials.append(_trial_report(store, stored, store.suite_of(one.run_id)))
    return findings(store.run(newest.run_id), trials)


def owner() -> str:
    """Who carries out a run: host and process, so that another can tell whether it is still at it."""
    return f"{socket.gethostname()} process {os.getpid()}"


def is_alive(owner: str) -> bool:
    host, _, pid = owner.partition(" process ")
    if host != socket.gethostname() or not pid.isdigit() or int(pid) == os.getpid():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(int(pid))


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False


def _code_folder(plan: Plan) -> Path:
    return Path(plan.load[0]).parent if plan.load else Path.cwd()
