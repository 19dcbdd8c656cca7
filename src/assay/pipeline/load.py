"""A load from the command line: prepared, run with a live view, judged, and stored like any other run.

The store, the planner and all that reads results are loaded by the functions that need them: the first request does not wait
for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from assay.execute.environment import environment
from assay.execute.signals import interruptible
from assay.load.build import Data, LoadOptions, PreparedLoad, check_division, spread_load
from assay.load.engine import Watch, WatchChunk
from assay.load.worker_report import Chunk
from assay.model.load import Load, LoadResult
from assay.plugin.steady_clock import SteadyClock
from assay.spec.settings import Settings

if TYPE_CHECKING:
    from assay.model import Batch, RunState
    from assay.pipeline.lifecycle import ActiveRun
    from assay.store.store import Store


@dataclass(frozen=True, slots=True)
class FinishedLoad:
    run_id: str
    results: tuple[LoadResult, ...]
    is_interrupted: bool


def prepare_load(options: LoadOptions, settings: Settings, store: Store) -> PreparedLoad:
    """The load of a URL, or of an agent that is known by its name, checked and ready to start."""
    from assay.load.build import build_prepared_load_for
    from assay.plan.load import find_agent

    found = find_agent(options.target, settings, store.agents())
    use, files = (found.use, found.files) if found is not None else (None, ())
    return build_prepared_load_for(options, use, files, data_of(options, settings))


def data_of(options: LoadOptions, settings: Settings) -> Data | None:
    """The data set that the options name; None where every request has the same prompt."""
    if options.dataset is None:
        return None
    from assay.plan.load import read_dataset

    found = read_dataset(options.dataset, settings)
    return Data.of(found.prompts, found.scored, found.sessions)


def run_load(
    options: LoadOptions,
    prepared: PreparedLoad,
    open_store: Callable[[], Store],
    settings: Settings,
    watch: Watch,
    *,
    levels: Sequence[int] = (),
    repetitions: int = 1,
    tags: tuple[str, ...] = (),
    watch_chunk: WatchChunk | None = None,
) -> FinishedLoad:
    """Run a load at each level of concurrency, `repetitions` times; every load is stored as soon as it is done.

    A load that the user interrupts is stored with the results until then. The run is begun in the store when the first requests are under way. If that fails, they are stopped.
    """
    clock = SteadyClock()
    here = environment(Path.cwd())
    results: list[LoadResult] = []
    loads = [replace(prepared.load, concurrency=level) for level in levels] or [prepared.load]
    with (
        interruptible() as interrupt,
        spread_load(options, prepared, settings) as prepared,
        ExitStack() as until_done,
    ):
        check_division(loads, len(prepared.sites))

        # Called by the engine once the first requests are under way, and again whenever the run is needed: the cache makes
        # it begin once. Opening a database before would delay the first request by as long as importing SQLAlchemy takes.
        @cache
        def begin_run() -> ActiveRun:
            from assay.pipeline.lifecycle import open_run
            from assay.pipeline.load_record import plan_load

            plan = plan_load(options, settings, repetitions, tags, levels)
            return until_done.enter_context(open_run(plan, open_store(), interrupt, here, clock))

        # All levels in turn, and then all again: a machine that slows down over time slows all levels alike.
        for repetition, (trial, load) in product(range(repetitions), enumerate(loads)):
            started = time.time()
            keep = None if watch_chunk is None else partial(_number_chunk, watch_chunk, len(results))
            measured = prepared.at(load).measure(watch, interrupt, keep, once_begun=begin_run)
            result, batch = _judge_and_record(measured, load, trial, repetition, started)
            results.append(result)
            begin_run().add(batch)
            if interrupt() or results[-1].aborted:
                break
        begin_run().finish(partial(_decide_state, results))
    return FinishedLoad(begin_run().id, tuple(results), interrupt())


def _judge_and_record(
    measured: LoadResult, load: Load, trial: int, repetition: int, started: float
) -> tuple[LoadResult, Batch]:
    """The load with its judgement, and the execution that is stored of it."""
    from assay.analysis.load.judgement import judge_load
    from assay.model import Batch
    from assay.pipeline.load_record import execution_of

    result = judge_load(measured, load)
    return result, Batch((execution_of(result, trial, repetition, started),))


def _decide_state(results: Sequence[LoadResult]) -> RunState:
    from assay.model import RunState

    is_done = any(
        result.requests_completed and not any(generator.lost for generator in result.generators)
        for result in results
    )
    return RunState.COMPLETED if is_done else RunState.FAILED


def _number_chunk(watch_chunk: WatchChunk, number: int, chunk: Chunk) -> None:
    """Pass a chunk on with the number of its load, by which counters tell the loads of a run apart."""
    chunk.facts["load"] = number
    watch_chunk(chunk)
