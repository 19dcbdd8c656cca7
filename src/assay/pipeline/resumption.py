"""What a resumed run takes over from its first part: the work that is done, the money that is spent, the versions of agents.

`run.resume` uses it. Where the two parts do not fit together, because a process was split or an agent has changed, a remark
is stored beside the figures of the trial.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace

from assay.errors import PlanError
from assay.execute.budget import Spending
from assay.model import Artifact, Batch, Budget, Phase, Plan, Run
from assay.pipeline.lifecycle import ActiveRun
from assay.store.store import Store

StoredProgress = Mapping[tuple[int, int, str], int]
"""How many executions are stored of each trial, process and phase."""
NO_BUDGET = Budget()


def read_spending(run: Run, budget: Budget, store: Store) -> Spending:
    """A budget is of the whole run: what was paid before it was cut short is paid."""
    spending = Spending(budget)
    if budget != NO_BUDGET:
        for stored in run.trials:
            spending.add(store.executions(stored.id))
    if spending.is_over:
        raise PlanError(
            f"Run '{run.id}' has spent its budget ({spending}). Raise it: --budget-usd, --budget-tokens."
        )
    return spending


def read_progress(store: Store, run: Run) -> StoredProgress:
    """What is stored; a process of `measured: auto` that had seen enough counts as having done all it may."""
    from assay.execute.early_stop import StoppingRule

    # The rule of `measured: auto` is replayed over the stored values, with the same code that applied it in the worker.
    progress = dict(store.progress(run.id))
    for stored in run.trials:
        until = stored.trial.iterations.until
        series = store.series(stored.id).get(until.metric) if until else None
        if until is None or series is None:
            continue
        watches = {process: StoppingRule(until) for process in set(series.processes)}
        for process, value in zip(series.processes, series.values, strict=True):
            if watches[process].is_reached(value):
                progress[stored.trial.index, process, Phase.MEASURED] = stored.trial.iterations.measured
    return progress


def remark_on_split_processes(active: ActiveRun, plan: Plan, progress: StoredProgress) -> None:
    """A process that is resumed in the middle is really two: say so beside its figures.

    Intervals treat a process as one unit of replication, and half of this one was measured at another time, perhaps on a
    warmer machine. With cold isolation every execution has a process of its own, so there is nothing to split.
    """
    for trial in (trial for trial in plan.trials if trial.agent_use is None):
        split = [process for (index, process, phase), number in progress.items()
                 if (index, phase) == (trial.index, "measured") and 0 < number < trial.iterations.measured]  # fmt: skip
        if split and trial.isolation != "cold" and not trial.iterations.until:
            text = f"process {', '.join(map(str, sorted(split)))} was resumed: its executions come from two processes"
            name = f"resumed-{secrets.token_hex(3)}.txt"
            active.add(Batch(artifacts=(Artifact(trial.index, name, "remark", text.encode()),)))


class AgentVersions:
    """Versions of agents whose trials were done in part when the run was resumed: an agent that changed meanwhile has two."""

    def __init__(self, active: ActiveRun, done: Mapping[int, int]) -> None:
        """`done` is how many executions are stored of each trial."""
        self._active, self._done = active, done
        self._known = {
            t.trial.index: t.trial.agent.version for t in active.run.trials if t.trial.index in done
        }

    def resolve_versions(self, batch: Batch) -> Batch:
        """The batch with what is to be stored as the versions of its agents."""
        versions = {index: self._together_with(index, version) for index, version in batch.versions.items()}
        return replace(batch, versions=versions) if versions else batch

    def _together_with(self, index: int, version: str) -> str:
        """What the trial's figures are of, with a remark beside them where that is more than one version."""
        # Nothing is known of versions that agents do not report, so only two that are known and differ are a change.
        before = self._known.get(index, "")
        if not before:
            return version
        if version not in (before, *before.split("+")):
            text = (
                f"the agent changed before the run was resumed: {self._done[index]:,} executions used version {before}, "
                f"the others {version}, and the figures mix both; start a new run for figures of one version"
            )
            remark = Artifact(index, f"versions-{secrets.token_hex(3)}.txt", "mixed-versions", text.encode())
            self._active.add(Batch(artifacts=(remark,)))
            self._known[index] = f"{before}+{version}"
        return self._known[index]
