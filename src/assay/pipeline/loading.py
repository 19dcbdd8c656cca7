"""A load from the command line: prepared, carried out while somebody looks on, judged, and stored like any other run."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from itertools import product
from pathlib import Path

from assay.analysis.load import judged
from assay.errors import LookupFailed, Mistake, PlanError, SpecError, did_you_mean
from assay.execute.agents import make_agent
from assay.execute.environment import environment
from assay.execute.load.agents import KINDS, target_of_agent
from assay.execute.load.asking import Data, LoadOptions, Prepared, prepared, prepared_agent
from assay.execute.load.engine import Watch, WatchChunk
from assay.execute.load.quality import Checker
from assay.execute.load.record import Chunk
from assay.execute.runner import interruptible
from assay.model import AgentUse, Batch, Execution, Phase, Plan, RunState, Status
from assay.model.load import LoadResult
from assay.pipeline.ownership import owner
from assay.plan.suite import function_agent
from assay.plan.target import (
    Registry,
    Request,
    checked_suite,
    known_agents,
    load_project_files,
    plan_target,
)
from assay.report.load import load_document, load_metrics
from assay.spec.settings import Settings
from assay.store.store import Store

_URLS = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class Loaded:
    run_id: str
    results: tuple[LoadResult, ...]
    is_interrupted: bool


def prepare_load(options: LoadOptions, settings: Settings, store: Store) -> Prepared:
    """Of a URL, or of an agent that is known by its name."""
    data = suite_data(options, settings, store)
    if options.target.startswith(_URLS):
        return prepared(options, data=data)
    use = agent_named(options.target, settings, store)
    if use.type in KINDS:
        return prepared(options, target_of_agent(use, options, os.environ), data)
    files = load_project_files(settings)
    make_agent(use)
    return prepared_agent(options, use, files, data)


def suite_data(options: LoadOptions, settings: Settings, store: Store) -> Data | None:
    """A suite as the data set: its inputs are asked, and answers are scored as it says."""
    if options.dataset is None or Path(options.dataset).suffix not in (".yaml", ".yml"):
        return None
    if options.prompt is not None:
        raise SpecError([Mistake("--dataset", None, "", "Give either --prompt or --dataset.")])
    suite = checked_suite(options.dataset, settings)
    pairs = [
        (benchmark, case) for benchmark in suite.benchmarks for case in benchmark.cases if not case.turns
    ]
    if not pairs:
        raise PlanError(f"'{options.dataset}' has no case that can be asked in one turn.")
    return Data([case.input for _, case in pairs], Checker(pairs))


def agent_named(name: str, settings: Settings, store: Store) -> AgentUse:
    known = known_agents(settings, Registry(store.agents()))
    if name not in known:
        load_project_files(settings)
        if (use := function_agent(name)) is not None:
            return use
        hint = did_you_mean(name, known) or "See: assay agent list"
        raise LookupFailed(f"'{name}' is neither a URL nor an agent. {hint}")
    return known[name]


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
    now = datetime.now(UTC)
    begun = store.begin(plan, environment(Path.cwd()), secrets.token_hex(5), now, owner())
    results: list[LoadResult] = []
    loads = [replace(asked.load, concurrency=level) for level in levels] or [asked.load]
    with interruptible() as interrupt, finished_at_all_events(store, begun.id):
        for repetition, (trial, load) in product(range(repetitions), enumerate(loads)):
            started = time.time()
            keep = None if watch_chunk is None else partial(_numbered, watch_chunk, len(results))
            result = judged(asked.at(load).measured(watch, interrupt, keep), load)
            results.append(result)
            with interrupt.storing():
                store.add(begun.id, Batch((execution_of(result, trial, repetition, started),)))
            if interrupt():
                break
        state = _state(results, interrupt)
        store.finish(begun.id, state, datetime.now(UTC))
    return Loaded(begun.id, tuple(results), interrupt())


@contextlib.contextmanager
def finished_at_all_events(store: Store, run: str) -> Iterator[None]:
    """A load that breaks off by an error is not left as one that still runs."""
    try:
        yield
    except BaseException as error:
        state = RunState.INTERRUPTED if isinstance(error, KeyboardInterrupt) else RunState.FAILED
        store.finish(run, state, datetime.now(UTC))
        raise


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
