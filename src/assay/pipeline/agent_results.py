"""Chooses which stored results stand for an agent, when a side of a comparison is an agent instead of a run.

`choose_results` states the rules. It chooses for all sides together, so that they have been asked the same and, if possible,
come from one run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assay.analysis.estimates.treatment import same_value
from assay.model import Doubt
from assay.store.history import AgentTrial
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class ChosenResults:
    """The results that stand for each reference, such as `agent` or `agent@version`."""

    trials: Mapping[str, tuple[AgentTrial, ...]]
    """Reference to the trials that stand for it, one for each benchmark and point."""
    doubts: tuple[Doubt, ...]
    """Newer results that are not used, and why."""


def trials_of(store: Store, ref: str, suite: str | None = None) -> list[AgentTrial]:
    """The trials of `agent` or `agent@version`, the oldest first: on this suite, or on the one that it ran last."""
    name, _, version = ref.partition("@")
    trials = (
        [trial for trial in store.agent_trials(name, suite) if version in ("", trial.version)] if name else []
    )
    wanted = suite if suite is not None or not trials else trials[-1].suite
    return [trial for trial in trials if trial.suite == wanted]


def find_shared_suite(store: Store, refs: Sequence[str]) -> str | None:
    """The newest suite that all of these agents ran; None if there is none, or if one of the words is no agent."""
    names = [ref.partition("@") for ref in refs]
    suites_of_agents = [
        [trial.suite for trial in store.agent_trials(name) if trial.suite and version in ("", trial.version)]
        if name
        else []
        for name, _, version in names
    ]
    return next(
        (
            name
            for name in reversed(suites_of_agents[-1])
            if all(name in suites for suites in suites_of_agents)
        ),
        None,
    )


def choose_results(trials_by_ref: Mapping[str, Sequence[AgentTrial]]) -> ChosenResults:
    """One trial of each reference at each benchmark and point.

    1. Where all references have results by one definition of the benchmark, only results by the newest such definition count.
    2. The newest result stands, but one with fewer cases never replaces one with more.
    3. Where one run has results of all references that are as complete and of the same known versions, that run is
       used for all of them: its agents took turns, so nothing that the machine did between runs is in the difference.
    """
    by_point: dict[str, dict[str, list[AgentTrial]]] = {}
    for ref, trials in trials_by_ref.items():
        for trial in trials:
            point = f"{trial.benchmark} {same_value(dict(trial.params))}"
            by_point.setdefault(point, {}).setdefault(ref, []).append(trial)
    chosen: dict[str, list[AgentTrial]] = {ref: [] for ref in trials_by_ref}
    doubts: list[Doubt] = []
    for at_point in by_point.values():
        used = _choose_at_point(at_point, are_all=len(at_point) == len(trials_by_ref) > 1)
        for ref, trial in used.items():
            chosen[ref].append(trial)
            doubts += _about_newer(ref, trial, at_point[ref], used)
    return ChosenResults({ref: tuple(trials) for ref, trials in chosen.items()}, tuple(dict.fromkeys(doubts)))


def _choose_at_point(
    trials_by_ref: Mapping[str, Sequence[AgentTrial]], *, are_all: bool
) -> dict[str, AgentTrial]:
    """The trial of each reference at one point, by the rules of `choose_results`; `are_all` if all have results here."""
    definition = _find_shared_definition(trials_by_ref.values()) if are_all else None
    usable = {
        ref: [trial for trial in trials if definition in (None, trial.benchmark_hash)]
        for ref, trials in trials_by_ref.items()
    }
    standing = {ref: _standing(trials) for ref, trials in usable.items()}
    # Rule 3, newest run first. It is enough to go through the runs of one reference, since the run must have all of them.
    if are_all:
        for run_id in dict.fromkeys(trial.run_id for trial in reversed(next(iter(usable.values())))):
            in_run = {
                ref: next((trial for trial in reversed(trials) if trial.run_id == run_id), None)
                for ref, trials in usable.items()
            }
            found = {
                ref: trial for ref, trial in in_run.items() if trial and _is_as_good(trial, standing[ref])
            }
            if len(found) == len(trials_by_ref):
                return found
    return standing


def _find_shared_definition(trials_of_agents: Iterable[Sequence[AgentTrial]]) -> str | None:
    """The newest definition of the benchmark by which all references have results."""
    first, *others = trials_of_agents
    return next(
        (
            trial.benchmark_hash
            for trial in reversed(first)
            if all(any(other.benchmark_hash == trial.benchmark_hash for other in trials) for trials in others)
        ),
        None,
    )


def _standing(trials: Sequence[AgentTrial]) -> AgentTrial:
    """Rule 2, from the oldest to the newest. A changed definition always counts as newer: its cases are other ones."""
    kept = trials[0]
    for trial in trials[1:]:
        is_part = kept.benchmark_hash == trial.benchmark_hash and len(trial.cases) < len(kept.cases)
        kept = kept if is_part else trial
    return kept


def _is_as_good(trial: AgentTrial, standing: AgentTrial) -> bool:
    """Whether a trial may stand in for the newest one: same known version, same definition, and no fewer cases."""
    return trial is standing or (
        trial.version == standing.version != ""
        and trial.benchmark_hash == standing.benchmark_hash
        and len(trial.cases) >= len(standing.cases)
    )


def _about_newer(
    ref: str, used: AgentTrial, trials: Sequence[AgentTrial], beside: Mapping[str, AgentTrial]
) -> Iterable[Doubt]:
    """A warning about the newest result if it is not used, and why."""
    newer = [trial for trial in trials if trial.started > used.started]
    if not newer:
        return
    newest = newer[-1]
    if newest.benchmark_hash != used.benchmark_hash:
        why = f"ran a changed '{newest.benchmark}', for which the other side has no results"
    elif len(newest.cases) < len(used.cases):
        why = f"ran only {len(newest.cases)} of the {len(used.cases)} cases of '{newest.benchmark}'"
    else:
        others = ", ".join(f"'{other}'" for other in beside if other != ref)
        why = f"does not have {others}, and run {used.run_id} has both at the same versions"
    version = f" (version {newest.version})" if newest.version != used.version else ""
    yield Doubt(
        "newer-run",
        f"'{ref}' has a newer run {newest.run_id}{version} that is not used: it {why}. Run {used.run_id} is used.",
        f"To use it, name the run: assay compare {newest.run_id} …",
    )
