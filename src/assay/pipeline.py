"""The flow on one page: spec → plan → execute → store → analysis → show."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from assay.analysis import comparable, compare_reports, findings, trial_report
from assay.errors import AssayError, LookupFailed, MissingExtra, PlanError, no_such
from assay.execute.environment import environment
from assay.execute.jobs import Assignment
from assay.execute.runner import carry_out, interruptible
from assay.model import (
    Artifact,
    Batch,
    Comparison,
    Doubt,
    Metric,
    Order,
    Plan,
    Report,
    Run,
    RunState,
    StoredTrial,
    TrialReport,
)
from assay.plan import expand
from assay.plugin import lookup
from assay.report.document import read_result, seed_result, trial_folder, write_output_dir
from assay.spec.load import load_spec, spec_of
from assay.spec.settings import Settings, find_settings
from assay.spec.shipped import shipped_specs
from assay.store.store import Store

Watch = Callable[[Batch], None]


def unwatched(_: Batch) -> None:
    """For runs that nobody looks at while they go on."""


def run(target: str | Path, *, db: str | None = None, **changes: Any) -> Report:
    """Carry out a spec file, a Python file or an experiment and return what was found.

    `changes` are keys of a spec, laid over those of the file: `run("spec.yaml", processes=10, params={"size": 5})`.
    """
    settings = find_settings(Path.cwd())
    plan = prepare(str(target), settings, changes)
    with Store.open(db or settings.db) as store:
        done = run_plan(plan, store)
        return report_of(store, done.id)


def compare(
    a: str, b: str, *, db: str | None = None, metrics: Sequence[str] | None = None
) -> tuple[Comparison, ...]:
    """Compare two runs, or result files; A is the reference, so *better* means that B is better."""
    with Store.open(db or find_settings(Path.cwd()).db) as store:
        return compared(store, a, b, metrics=metrics).comparisons


def prepare(target: str, settings: Settings, changes: Mapping[str, Any] | None = None) -> Plan:
    """Read what the target names and plan it; nothing has run yet, and every name is known to exist."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))
    for file in settings.loaded_files():
        lookup.load_file(file)
    plan = _planned(target, changes or {})
    own = tuple(str(file.resolve()) for file in settings.loaded_files())
    return replace(plan, load=tuple(dict.fromkeys((*plan.load, *own))))


def _planned(target: str, changes: Mapping[str, Any]) -> Plan:
    path = Path(target)
    if path.suffix in (".yaml", ".yml", ".json") or path.is_dir():
        return expand(load_spec(path, changes))
    if path.suffix == ".py" or ".py::" in target:
        return _planned_from_file(target, changes)
    if target in lookup.known("experiments") or ":" in target:
        return expand(spec_of([target], Path.cwd(), changes))
    if target in shipped_specs():
        return replace(
            expand(load_spec(shipped_specs()[target], changes)), output_dir=_here(changes.get("output_dir"))
        )
    known = {*lookup.known("experiments"), *shipped_specs()}
    raise LookupFailed(
        no_such(target, "experiments and specs", known) + " A file ends in .yaml, .json or .py."
    )


def _here(output_dir: str | None) -> str | None:
    return str(Path.cwd() / output_dir) if output_dir else None


def _planned_from_file(target: str, changes: Mapping[str, Any]) -> Plan:
    """Every experiment that a Python file defines, or the one named after `::`."""
    file, _, name = target.partition("::")
    path = Path(file)
    if not path.is_file():
        raise PlanError(f"There is no file '{file}'.")
    lookup.load_file(path)
    names = [target] if name else lookup.registered_in(path, "experiments")
    if not names:
        raise PlanError(
            f"'{file}' defines no experiment. Mark one with @benchmark or @register_experiment(\"name\")."
        )
    plan = expand(spec_of(names, Path.cwd(), changes))
    return replace(plan, load=tuple(dict.fromkeys((str(path.resolve()), *plan.load))))


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
    plan = plan_of(found)
    for file in plan.load:
        lookup.load_file(Path(file))
    reopened = store.reopen(found.id, owner())
    return _carried_out(reopened, plan, store, store.progress(found.id), watch)


def _carried_out(
    begun: Run, plan: Plan, store: Store, progress: Mapping[tuple[int, int, str], int], watch: Watch
) -> Run:
    executor = lookup.find("executors", plan.executor)(plan.parallelism)
    with interruptible() as interrupt, _Folders(begun, plan) as folders:
        assignment = Assignment(plan, begun.id, folders, progress)
        ended = {stored.trial.index for stored in begun.trials if stored.stopped}
        _remark_on_split_processes(begun, plan, progress, store)
        for batch in carry_out(assignment, executor, interrupt, ended):
            store.add(begun.id, batch)
            watch(batch)
        state = RunState.INTERRUPTED if interrupt() else _final_state(store, begun)
        store.finish(begun.id, state, datetime.now(UTC))
    finished = store.run(begun.id)
    if plan.output_dir:
        write_output_dir(report_of(store, begun.id), Path(plan.output_dir))
    return finished


def _final_state(store: Store, begun: Run) -> RunState:
    has_failed = any(not store.counts(stored.id).get("ok") for stored in begun.trials)
    return RunState.FAILED if has_failed else RunState.COMPLETED


def _remark_on_split_processes(
    begun: Run, plan: Plan, progress: Mapping[tuple[int, int, str], int], store: Store
) -> None:
    """A process that is resumed in the middle is really two: say so beside its figures."""
    for trial in plan.trials:
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


def plan_of(run: Run) -> Plan:
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
    )


def report_of(store: Store, ref: str) -> Report:
    """A stored run with its findings."""
    found = store.run(ref)
    return findings(found, [_trial_report(store, stored) for stored in found.trials])


def _trial_report(store: Store, stored: StoredTrial) -> TrialReport:
    return trial_report(
        stored,
        series=store.series(stored.id),
        counts=store.counts(stored.id),
        failures=store.failures(stored.id),
        executions=store.executions(stored.id),
        applied=store.applied(stored.id),
        artifacts=store.artifacts(stored.id),
        metrics=declared_metrics(stored),
        watched=watched_metrics(stored),
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
        return report_of(store, ref)
    if not path.is_file():
        raise AssayError(f"There is no result file '{ref}'.")
    read = read_result(path)
    again = [
        trial_report(t.stored, series=t.series, counts=t.counts, failures=t.failures, executions=t.executions,
                     applied=t.applied, artifacts=t.artifacts, metrics={e.metric.name: e.metric for e in t.estimates})
        for t in read.trials
    ]  # fmt: skip
    return findings(read.run, again)


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
