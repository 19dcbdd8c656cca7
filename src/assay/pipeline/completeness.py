"""Decides the final state of a run from what is stored: it is completed only if every planned execution is there.

`run` calls it when the loop over the jobs has ended without an interruption. What was planned is counted by generating the
jobs of the plan once more, as if nothing had been done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from assay.execute.jobs import Assignment, jobs
from assay.model import Job, Phase, Run, RunState, Status
from assay.model.execution import is_incomplete
from assay.pipeline.ratings import state_of
from assay.store.store import Store

Counts = Mapping[int, Mapping[str, int]]
"""Trial index to its measured executions by status."""


def final_state(store: Store, run_id: str, assignment: Assignment) -> RunState:
    """Determine the final state of a run that reached its end: completed only if nothing is missing.

    The store is read again, because what this process believes to have stored may differ from what
    arrived.
    """
    # Everything is read from the store again: what this process believes to have done may differ from what arrived.
    run = store.run(run_id)
    counts = {stored.trial.index: store.counts(stored.id) for stored in run.trials}
    state = state_of(store, run, list(counts.values()))
    incomplete = find_incomplete_trials(store, run, assignment, counts)

    def may_get_results(trial: int) -> bool:
        """Whether the trial has an ok execution, or may still get one."""
        count = counts[trial]
        has_settled = any(number and Status(status).is_settled for status, number in count.items())
        return bool(count.get(Status.OK)) or (trial in incomplete and not has_settled)

    # Where a trial with nothing ok has failures that stand, resuming would not help: the run has failed.
    has_failed = state is RunState.FAILED and not all(
        may_get_results(stored.trial.index) for stored in run.trials
    )
    return RunState.INCOMPLETE if incomplete and not has_failed else state


def find_incomplete_trials(store: Store, run: Run, assignment: Assignment, counts: Counts) -> set[int]:
    """Trials that lack executions for no reason that is stored with them, or have too many harness errors.

    A trial that was stopped says why. A question that was decided has made the plan what was executed by then. Of a trial
    that ends by itself (`until`), each process must have at least one execution.
    """
    if assignment.plan.question is not None:
        return set()
    until = {trial.index for trial in assignment.plan.trials if trial.iterations.until}
    executed = Counter(
        {
            index: sum(count.values()) - count.get(Status.CANCELLED, 0)
            for index, count in counts.items()
            if index not in until
        }
    )
    executed.update(
        trial for trial, _, phase in store.progress(run.id) if trial in until and phase == Phase.MEASURED
    )
    # The same generator that made the jobs of the run says how many executions there should be, so that the two cannot drift
    # apart when a new kind of trial is added.
    planned: Counter[int] = Counter()
    for job in jobs(replace(assignment, progress={}, done={}), set()):
        planned[job.trial] += min(1, _count_measured(job)) if job.trial in until else _count_measured(job)
    # A trial that was stopped, by a limit or because its agent failed over and over, is as complete as it will ever be. Harness
    # errors are counted apart: they are stored executions that say nothing about the agent.
    stopped = {stored.trial.index for stored in run.trials if stored.stopped}
    missing = {index for index, number in planned.items() if executed[index] < number} - stopped
    return missing | {
        index
        for index, count in counts.items()
        if is_incomplete(max(planned[index], sum(count.values())), count.get(Status.HARNESS_ERROR, 0))
    }


def _count_measured(job: Job) -> int:
    """Measured executions that a job still has to make."""
    spans = [(s.first, s.end) for s in job.stretches if s.phase == Phase.MEASURED]
    return sum(end - first - sum(first <= number < end for number in job.done) for first, end in spans)
