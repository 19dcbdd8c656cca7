"""The status of a run: queued, running or ended, and its progress."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from assay.errors import RunNotFound
from assay.model import Run, RunState
from assay.model.queue import QueuedRun, QueueState
from assay.store.store import Store


class RunProgress(BaseModel):
    """Executions of all phases; `planned` may shrink, as where a trial is given up."""

    done: int
    planned: int


class RunStatus(BaseModel):
    """A run that was asked for, or that is stored."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "run_id": "9b2f51c07a",
                "status": "running",
                "agent_ids": ["careful"],
                "suite_id": "support-desk",
                "created": "2026-11-17T21:40:02+00:00",
                "started": "2026-11-17T21:40:03+00:00",
                "ended": None,
                "position": None,
                "progress": {"done": 12, "planned": 120},
                "error": "",
                "is_over": False,
            }
        }
    )

    run_id: str
    status: str = Field(
        description="queued, running, cancelling, cancelled, refused, failed, completed, incomplete, interrupted or over_budget."
    )
    agent_ids: list[str]
    suite_id: str | None
    created: datetime | None
    started: datetime | None
    ended: datetime | None
    position: int | None = Field(
        description="Place among the runs of the workspace that wait, from 1; null if it does not wait."
    )
    progress: RunProgress
    error: str
    is_over: bool


def read_status(store: Store, run_id: str) -> dict[str, Any]:
    """The document of `RunStatus`; RunNotFound for an id that is neither queued nor stored."""
    try:
        run = store.run(run_id)
    except RunNotFound:
        run = None
    # By its whole id, also where the run was asked for by a prefix of it or as the last one.
    queued = store.read_queued_run(run.id if run else run_id)
    if run is None and (queued is None or queued.state is QueueState.DONE):
        raise RunNotFound(f"There is no run '{run_id}'.")
    waiting = (
        [queued_run.id for queued_run in store.queue() if queued_run.state is QueueState.QUEUED]
        if queued
        else []
    )
    status = _find_status(store, queued, run)
    is_open = queued.state.is_open if queued else status == RunState.RUNNING
    done = store.count_executions(run.id) if run else 0
    planned = sum(stored.trial.most_executions for stored in run.trials) if run else 0
    return {
        "run_id": run.id if run else run_id,
        "status": status,
        "agent_ids": list(dict.fromkeys(stored.trial.agent.name for stored in run.trials))
        if run
        else [queued.agent if queued else ""],
        "suite_id": queued.suite if queued else run.suite.name if run and run.suite else None,
        "created": queued.created if queued else run.started if run else None,
        "started": run.started if run else None,
        "ended": run.ended if run and not is_open else None,
        "position": waiting.index(run_id) + 1 if run_id in waiting else None,
        "progress": {"done": done, "planned": max(planned, done)},
        "error": queued.error if queued else "",
        "is_over": not is_open,
    }


def _find_status(store: Store, queued: QueuedRun | None, run: Run | None) -> str:
    """The state in the queue, unless that says only that the run was executed."""
    if queued is not None and (queued.state is not QueueState.DONE or run is None):
        return queued.state.value
    assert run is not None
    if run.state is RunState.RUNNING and store.is_abandoned(run.id):
        return RunState.INTERRUPTED.value
    return run.state.value
