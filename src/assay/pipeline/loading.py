"""A load from the command line: prepared, carried out while somebody looks on, judged, and stored like any other run."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import product
from pathlib import Path

from assay.analysis.load import judged
from assay.execute.environment import environment
from assay.execute.load.agents import prepared_for
from assay.execute.load.asking import Data, LoadOptions, Prepared
from assay.execute.load.engine import Watch, WatchChunk
from assay.execute.load.record import Chunk
from assay.execute.runner import interruptible
from assay.execute.steady_clock import SteadyClock
from assay.model import Batch, Execution, Phase, Plan, RunState, Status
from assay.model.load import LoadResult
from assay.pipeline.ownership import own_run
from assay.plan.load import find_agent, read_dataset
from assay.plan.target import Registry, Request, plan_target
from assay.report.load import load_document, load_metrics
from assay.spec.settings import Settings
from assay.store.processes import current_owner
from assay.store.store import Store

_PROBE_SECONDS = 0.02
"""A load sees noise in its own lag, and the first request waits for this."""


@dataclass(frozen=True, slots=True)
class Loaded:
    run_id: str
    results: tuple[LoadResult, ...]
    is_interrupted: bool


def prepare_load(options: LoadOptions, settings: Settings, store: Store) -> Prepared:
    """Of a URL, or of an agent that is known by its name."""
    found = find_agent(options.target, settings, store.agents())
    use, files = (found.use, found.files) if found is not None else (None, ())
    return prepared_for(options, use, files, data_of(options, settings))


def data_of(options: LoadOptions, settings: Settings) -> Data | None:
    """The data set that is asked for; None where every request asks the same."""
    if options.dataset is None:
        return None
    found = read_dataset(options.dataset, settings)
    return Data.of(found.prompts, found.scored, found.sessions)


def run_load(
    options: LoadOptions,
    asked: Prepared,
    store: Store,
    settings: Settings,
    watch: Watch,
    *,
    levels: Sequence[int] = (),
    repetitions: int = 1,
    tags: tuple[str, ...] = (),
    watch_chunk: WatchChunk | None = None,
) -> Loaded:
    """At each level, so often; every load is stored as soon as it is done, and interrupted with what there was."""
    plan = plan_load(options, settings, repetitions, tags, levels)
    clock = SteadyClock()
    here = environment(Path.cwd(), probe_seconds=_PROBE_SECONDS)
    begun = store.begin(plan, here, secrets.token_hex(5), clock.now(), current_owner())
    results: list[LoadResult] = []
    loads = [replace(asked.load, concurrency=level) for level in levels] or [asked.load]
    with interruptible() as interrupt, own_run(store, begun.id, interrupt, clock):
        for repetition, (trial, load) in product(range(repetitions), enumerate(loads)):
            started = time.time()
            keep = None if watch_chunk is None else partial(_numbered, watch_chunk, len(results))
            result = judged(asked.at(load).measured(watch, interrupt, keep), load)
            results.append(result)
            with interrupt.storing():
                store.add(begun.id, Batch((execution_of(result, trial, repetition, started),)))
            if interrupt() or result.aborted:
                break
        state = _state(results, interrupt)
        store.finish(begun.id, state, clock.now())
    return Loaded(begun.id, tuple(results), interrupt())


def _numbered(watch_chunk: WatchChunk, number: int, chunk: Chunk) -> None:
    chunk.facts["load"] = number
    watch_chunk(chunk)


def _state(results: list[LoadResult], is_interrupted: Callable[[], bool]) -> RunState:
    if is_interrupted():
        return RunState.INTERRUPTED
    return RunState.COMPLETED if any(result.requests_completed for result in results) else RunState.FAILED


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
    plan = plan_target(Request("load", changes), settings, Registry())
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
