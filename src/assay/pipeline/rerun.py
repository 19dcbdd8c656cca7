"""Runs both sides of a gate again, interleaved in one new run (`assay gate --rerun-baseline`).

Times of two runs differ by what the machine did between them; times of two sides that take turns do not. What is run
again must be what was measured before: a remote agent is asked again as it was defined, and code on this machine is run
from disk if it has not changed, else from a temporary checkout of the commit that it was measured with.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from assay.analysis.comparison.compare import matching_trials
from assay.analysis.comparison.coverage import find_missing, warn_about_missing
from assay.errors import AssayError, PlanError, Unlike
from assay.execute.checkout import find_commit, find_repository, is_tracked, temporary_checkout
from assay.execute.environment import read_vcs
from assay.model import Batch, Budget, Isolation, Plan, Report, Run, RunState, Trial, TrialReport
from assay.model.regression import Gate, Missing, Rerun
from assay.model.run import RERUN_TAG
from assay.model.settings import Checkout
from assay.pipeline.gate import baseline_ref, unlike
from assay.pipeline.report import report_of
from assay.pipeline.run import plan_of, run_plan
from assay.plan.codebase import code_base, code_file, forget_commits
from assay.plan.expand import distribution_of
from assay.plugin import lookup
from assay.plugin.finding import finding_class
from assay.store.store import Store

Watching = Callable[[Plan], AbstractContextManager[Callable[[Batch], None]]]
Judge = Callable[[Store, tuple[Report, Report], str], Gate]
"""`gate_sides` with the user's options: takes the store, both sides and the name of the baseline."""
BASELINE, CURRENT = "baseline", "current"
_DIRTY = "-dirty"


def rerun_gate(
    store: Store, ref: str, baseline: str, judge: Judge, watching: Watching, repetitions: int | None = None
) -> Gate:
    """Run the agents of run `ref` and those of the baseline again, and judge that new run."""
    # Checkouts exist only while the run does; the exit stack removes them also after an error or Ctrl-C.
    before, after = _read_sides(store, ref, baseline)
    pairs = matching_trials(before, after)
    with ExitStack() as checkouts:
        plan = _build_plan(store, (before.run, after.run), pairs, repetitions, checkouts)
        with watching(plan) as watch:
            run = run_plan(plan, store, watch)
    if run.state is RunState.INTERRUPTED:
        raise KeyboardInterrupt
    # The new run is judged like any pair of sides. It is kept with a tag, by which `last` leaves it out and a later rerun
    # refuses it.
    report = report_of(store, run.id)
    sides = _half(report, 0), _half(report, 1)
    _refuse_failed(pairs, sides[0], plan)
    found = judge(store, sides, baseline)
    names = {trial.index: trial.name for trial in plan.trials}
    commits = {names[index]: checkout.commit for index, checkout in plan.checkouts.items()}
    remarks = tuple(doubt for doubt in report.doubts if doubt.code == "remark")
    missing = find_missing(before, after)
    return replace(
        found,
        rerun=Rerun(before.run.id, after.run.id, commits),
        missing=Missing(missing.trials, {**missing.cases, **found.missing.cases}),
        doubts=(*warn_about_missing(before, after, missing), *found.doubts, *remarks),
    )


def _read_sides(store: Store, ref: str, baseline: str) -> tuple[Report, Report]:
    """Read both sides as they were measured; refuse runs that cannot be run again or compared."""
    refs = baseline_ref(store, baseline), ref
    if files := [side for side in refs if Path(side).suffix == ".json"]:
        raise PlanError(
            f"--rerun-baseline takes stored runs, which say how to run their agents again; '{files[0]}' is a result file."
        )
    before, after = (report_of(store, side) for side in refs)
    for report in (before, after):
        if RERUN_TAG in report.run.tags:
            raise PlanError(
                f"Run '{report.run.id}' was made by assay gate --rerun-baseline and has both sides. Name the run that was judged instead."
            )
        experiments = {trial.stored.trial.experiment for trial in report.trials}
        if kinds := {
            name for name in experiments if (kind := finding_class(name)) is not None and not kind.can_rerun
        }:
            raise PlanError(
                f"--rerun-baseline runs suites and code experiments again; run '{report.run.id}' is a {min(kinds)} test."
            )
        if names := [trial.stored.trial.agent.name for trial in report.trials if trial.is_recorded]:
            raise PlanError(
                f"The answers of '{names[0]}' are recorded, so running it again measures nothing. "
                "Gate without --rerun-baseline: recorded times do not depend on this machine."
            )
    if why := unlike(before, after, []):
        raise Unlike(f"Run '{after.run.id}' cannot be compared with the baseline '{baseline}': {why}")
    return before, after


def _build_plan(
    store: Store,
    runs: tuple[Run, Run],
    pairs: Sequence[tuple[TrialReport, TrialReport]],
    repetitions: int | None,
    stack: ExitStack,
) -> Plan:
    """Build a plan with both sides of each pair next to each other, the baseline first, so that an agent's newest result is the current one."""
    plan = plan_of(runs[1], store)
    for file in plan.load:
        with contextlib.suppress(AssayError):  # a file that is gone is missed where it is needed
            lookup.load_file(Path(file))
    trials: list[Trial] = []
    places: dict[int, Place] = {}
    for pair in pairs:
        first, second = (report.stored.trial for report in pair)
        current = second
        if repetitions is not None and second.agent_use is None:
            current = replace(second, processes=repetitions)
        elif repetitions is not None:
            current = replace(second, iterations=replace(second.iterations, measured=repetitions))
        for side, run, trial in ((BASELINE, runs[0], first), (CURRENT, runs[1], second)):
            # An arm has the settings of the current trial and the agent of its own side: only the code may differ.
            place = _place_of(trial, run, side)
            if place is not None:
                places[len(trials)] = place
            name = f"{current.name} ({side})"
            arm = replace(current, index=len(trials), name=name, agent=trial.agent, agent_use=trial.agent_use)
            trials.append(arm)
    checkouts_by_place = {
        place: stack.enter_context(temporary_checkout(*place)) for place in dict.fromkeys(places.values())
    }
    checkouts = {index: checkouts_by_place[place] for index, place in places.items()}
    for index, checkout in checkouts.items():
        _refuse_missing_files(trials[index], checkout)
    if checkouts:
        # Two versions of one module do not fit into one process.
        trials = [
            replace(trial, isolation=Isolation.PROCESS) if trial.isolation is Isolation.INLINE else trial
            for trial in trials
        ]
    return replace(
        plan,
        trials=tuple(trials),
        checkouts=checkouts,
        tags=(*(tag for tag in plan.tags if tag != RERUN_TAG), RERUN_TAG),
        label=f"gate: {runs[1].id} against {runs[0].id}, run again",
        # Both sides are paid for.
        budget=Budget(
            *(None if most is None else 2 * most for most in (plan.budget.usd, plan.budget.tokens))
        ),
        question=None,
        output_dir=None,
    )


Place = tuple[str, str]
"""A repository and a commit of it."""


@dataclass(frozen=True, slots=True)
class CodeState:
    """The version of the code of a trial, either when it was measured or now on disk."""

    version: str
    """A commit, a hash of the file, or what else names it."""
    is_dirty: bool = False

    @classmethod
    def of(cls, version: str, vcs: dict[str, object]) -> CodeState:
        """Untracked files alone do not make the code dirty: all tracked files are still those of the commit."""
        commit = version.removesuffix(_DIRTY)
        is_tracked_clean = str(vcs.get("commit") or "").startswith(commit) and vcs.get("dirty") is False
        return cls(commit, version.endswith(_DIRTY) and not (commit and is_tracked_clean))


def _place_of(trial: Trial, run: Run, side: str) -> Place | None:
    """The repository and commit to check the code of a trial out from; None if it can be run as it is now."""
    files = _source_files(trial)
    if files is None:
        return None
    folder = files[0].parent if files else _folder(trial)
    today, then = CodeState.of(_version_now(trial, folder), read_vcs(folder)), _code_then(trial, run)
    subject = f"'{trial.agent.name}'"
    # Uncommitted changes are nowhere but on disk. Only the current side may have them, and only if they are still there; even
    # then it is unknown whether they are the same ones, but the user has just made that run.
    if then.is_dirty and not (side == CURRENT and then == today):
        raise PlanError(
            f"{subject} of the {side} run '{run.id}' was measured with uncommitted changes "
            f"(version {then.version}{_DIRTY}), so it cannot be run again as it was. Commit them, run it again"
            + (", and set that run as the baseline." if side == BASELINE else ".")
        )
    if then == today and then.version:
        return None
    repository = find_repository(folder)
    commit = find_commit(repository, then.version) if repository else ""
    if not commit:
        raise PlanError(_explain_lost_code(subject, (then.version, today), repository, (run.id, side)))
    return repository, commit


def _explain_lost_code(
    subject: str, versions: tuple[str, CodeState], repository: str, run: tuple[str, str]
) -> str:
    """Why the code of a trial cannot be had as it was: its version is unknown, it is not in git, or git does not have the
    commit."""
    then, today = versions
    again = (
        "Run the baseline again from its code, and set it again." if run[1] == BASELINE else "Run it again."
    )
    if not then:
        return f"Run '{run[0]}' does not say which version of {subject} it measured, so it cannot be run again. {again}"
    now = f"{today.version or 'unknown'}{_DIRTY * today.is_dirty}"
    changed = f"{subject} has changed since run '{run[0]}' (version {then} then, {now} now)"
    if not repository:
        return (
            f"{changed}, and it is not in a git repository, so the earlier version cannot be found. {again}"
        )
    return (
        f"{changed}, and '{repository}' has no commit {then}. If the clone is shallow: git fetch --unshallow. "
        f"Otherwise: {again}"
    )


def _source_files(trial: Trial) -> list[Path] | None:
    """The files of the code; None if it is not on this machine, or belongs to an installed package."""
    if trial.agent_use is None:
        return _experiment_files(trial)
    from assay.plugin.agent_pool import make_agent

    member = lookup.find("agents", trial.agent_use.type)
    if not hasattr(member, "source_files"):
        return None
    try:
        files: list[Path] = make_agent(trial.agent_use).source_files()  # type: ignore[attr-defined]
    except AssayError:
        return []  # such as a file that has another name today
    return [file.resolve() for file in files if file.is_file()]


def _experiment_files(trial: Trial) -> list[Path] | None:
    """The file of a code experiment; refuses installed code of a different version and files git does not track."""
    if distribution_of(trial.experiment) is not None:
        today = _version_now(trial, Path.cwd())
        if trial.agent.version != today:
            raise PlanError(
                f"'{trial.agent.name}' was measured in version {trial.agent.version or 'unknown'} and is installed in "
                f"version {today or 'unknown'}, so it cannot be run again as it was. Run the baseline again, and set it again."
            )
        return None
    try:
        file = code_file(lookup.find("experiments", trial.experiment))
    except AssayError:
        return []
    if file is not None and find_repository(file.resolve().parent) and not is_tracked(file.resolve()):
        raise PlanError(
            f"'{file}' is in a git repository but not tracked, so Assay cannot tell whether it changed since it was "
            "measured. Commit it, run it again, and set that run as the baseline."
        )
    return [] if file is None else [file.resolve()]


def _folder(trial: Trial) -> Path:
    if trial.agent_use is not None:
        return Path(trial.agent_use.folder or ".").resolve()
    return Path(trial.experiment.partition("::")[0]).resolve().parent


def _version_now(trial: Trial, folder: Path) -> str:
    """The version of a trial's code on disk; empty if it cannot be found out."""
    use = trial.agent_use
    if use is None:
        forget_commits()
        member = lookup.find("experiments", trial.experiment)
        return code_base(member, distribution_of(trial.experiment)).version
    if use.version:
        vcs = read_vcs(folder)
        return f"{vcs.get('commit') or ''}{_DIRTY * bool(vcs.get('dirty'))}"
    from assay.plugin.agent_pool import make_agent

    try:
        return make_agent(use).found_version()
    except AssayError:
        return ""


def _code_then(trial: Trial, run: Run) -> CodeState:
    """The version when the trial ran: the one that was found, or the run's commit if the user named a version."""
    vcs = dict(run.environment.vcs)
    if trial.agent_use is not None and trial.agent_use.version:
        return CodeState(str(vcs.get("commit") or ""), bool(vcs.get("dirty")))
    return CodeState.of(trial.agent.version, vcs)


def _refuse_missing_files(trial: Trial, checkout: Checkout) -> None:
    """Refuse a checkout without the trial's files, such as a program that was built and that git does not track."""
    for file in _source_files(trial) or ():
        if not Path(checkout.map_path(str(file))).exists():
            raise PlanError(
                f"'{file}' is not in commit {checkout.commit[:10]}, so '{trial.agent.name}' cannot be run from there. "
                "Programs that are built, and other files that git does not track, are not checked out."
            )


def _half(report: Report, side: int) -> Report:
    """One side of the run. `_build_plan` put the baseline at even indices and the current run at odd ones."""
    chosen = tuple(trial for trial in report.trials if trial.stored.trial.index % 2 == side)
    return replace(report, trials=chosen)


def _refuse_failed(pairs: Sequence[tuple[TrialReport, TrialReport]], baseline: Report, plan: Plan) -> None:
    """Refuse a baseline that worked before and fails now, for example because its commit needs another package."""
    worked = {2 * place for place, (before, _) in enumerate(pairs) if before.ok}
    for trial in baseline.trials:
        index = trial.stored.trial.index
        if index in worked and not trial.ok:
            where = f" from commit {plan.checkouts[index].commit[:10]}" if index in plan.checkouts else ""
            raise PlanError(
                f"{trial.name}: no execution{where} succeeded, although the baseline worked. "
                f"See why: assay show {baseline.run.id}"
            )
