"""A load in the store: a run like any other, whose executions are the loads that were carried out."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace

from assay.execute.load.options import LoadOptions
from assay.execute.signals import Interrupt
from assay.execute.steady_clock import SteadyClock
from assay.model import Batch, Environment, Execution, Phase, Plan, RunState, Status
from assay.model.load import LoadResult
from assay.pipeline.ownership import own_run
from assay.plan.target import Registry, RunRequest, plan_target
from assay.report.load import load_document, load_metrics
from assay.spec.settings import Settings
from assay.store.processes import current_owner
from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class LoadRecord:
    """Of a run that is under way."""

    run_id: str
    _store: Store
    _clock: SteadyClock
    _interrupt: Interrupt

    def add(self, result: LoadResult, trial: int, repetition: int, started: float) -> None:
        with self._interrupt.storing():
            self._store.add(self.run_id, Batch((execution_of(result, trial, repetition, started),)))

    def finish(self, results: Sequence[LoadResult]) -> None:
        self._store.finish(self.run_id, self._state(results), self._clock.now())

    def _state(self, results: Sequence[LoadResult]) -> RunState:
        if self._interrupt():
            return RunState.INTERRUPTED
        return RunState.COMPLETED if any(result.requests_completed for result in results) else RunState.FAILED


@contextmanager
def record_load(
    plan: Plan, store: Store, here: Environment, clock: SteadyClock, interrupt: Interrupt
) -> Iterator[LoadRecord]:
    """Begins the run, and owns it until this is left; it started when the clock did."""
    begun = store.begin(plan, here, secrets.token_hex(5), clock.started, current_owner())
    with own_run(store, begun.id, interrupt, clock):
        yield LoadRecord(begun.id, store, clock, interrupt)


def plan_load(
    options: LoadOptions,
    settings: Settings,
    repetitions: int,
    tags: tuple[str, ...],
    levels: Sequence[int] = (),
) -> Plan:
    changes: dict[str, object] = {
        "params": given(options),
        "iterations": {"measured": repetitions, "warmup": 0},
        "isolation": "inline",
    }
    if tags:
        changes["tags"] = list(tags)
    if len(levels) > 1:
        changes["sweep"] = {"concurrency": list(levels)}
    plan = plan_target(RunRequest("load", changes), settings, Registry())
    named = (replace(trial, name=_trial_name(options.target, trial.axes)) for trial in plan.trials)
    return replace(plan, name="load", trials=tuple(named))


def _trial_name(target: str, axes: Mapping[str, object]) -> str:
    return " ".join([f"load {target}", *(f"{name}={value}" for name, value in axes.items())])


def given(options: LoadOptions) -> dict[str, object]:
    """Only what differs from the default, as a spec would say it."""
    plain = {field.name: getattr(options, field.name) for field in fields(options)}
    defaults = {field.name: field.default for field in fields(options)}
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in plain.items()
        if value != defaults[name]
    }


def execution_of(result: LoadResult, trial: int, repetition: int, started: float) -> Execution:
    is_ok = result.requests_completed > 0
    return Execution(
        trial=trial,
        process=0,
        phase=Phase.MEASURED,
        repetition=repetition,
        status=Status.OK if is_ok else Status.FAILED,
        started=started,
        measurements=load_metrics(result) if is_ok else {},
        output=load_document(result),
        error=None if is_ok else next(iter(result.warnings), "no request was answered"),
        detail={"simulated": True} if result.is_simulated else None,
    )
