"""A load from the command line: prepared, carried out while somebody looks on, judged, and stored like any other run.

The store, the planner and all that reads results are loaded by the functions that need them: the first request does not wait
for them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

from assay.execute.environment import environment
from assay.execute.load.asking import Data, LoadOptions, PreparedLoad
from assay.execute.load.engine import Watch, WatchChunk
from assay.execute.load.record import Chunk
from assay.execute.signals import interruptible
from assay.execute.steady_clock import SteadyClock
from assay.model.load import Load, LoadResult
from assay.spec.settings import Settings

if TYPE_CHECKING:
    from assay.pipeline.load_record import LoadRecord
    from assay.store.store import Store

_PROBE_SECONDS = 0.02
"""A load sees noise in its own lag, and the first request waits for this."""


@dataclass(frozen=True, slots=True)
class FinishedLoad:
    run_id: str
    results: tuple[LoadResult, ...]
    is_interrupted: bool


def prepare_load(options: LoadOptions, settings: Settings, store: Store) -> PreparedLoad:
    """Of a URL, or of an agent that is known by its name."""
    from assay.execute.load.agents import prepared_for
    from assay.plan.load import find_agent

    found = find_agent(options.target, settings, store.agents())
    use, files = (found.use, found.files) if found is not None else (None, ())
    return prepared_for(options, use, files, data_of(options, settings))


def data_of(options: LoadOptions, settings: Settings) -> Data | None:
    """The data set that is asked for; None where every request asks the same."""
    if options.dataset is None:
        return None
    from assay.plan.load import read_dataset

    found = read_dataset(options.dataset, settings)
    return Data.of(found.prompts, found.scored, found.sessions)


def run_load(
    options: LoadOptions,
    asked: PreparedLoad,
    open_store: Callable[[], Store],
    settings: Settings,
    watch: Watch,
    *,
    levels: Sequence[int] = (),
    repetitions: int = 1,
    tags: tuple[str, ...] = (),
    watch_chunk: WatchChunk | None = None,
) -> FinishedLoad:
    """At each level, so often; every load is stored as soon as it is done, and interrupted with what there was.

    The run is begun in the store when the first requests are under way. If that fails, they are stopped.
    """
    clock = SteadyClock()
    here = environment(Path.cwd(), probe_seconds=_PROBE_SECONDS)
    results: list[LoadResult] = []
    loads = [replace(asked.load, concurrency=level) for level in levels] or [asked.load]
    with interruptible() as interrupt, ExitStack() as until_done:
        record: LoadRecord | None = None

        def begun() -> LoadRecord:
            nonlocal record
            if record is None:
                from assay.pipeline.load_record import plan_load, record_load

                plan = plan_load(options, settings, repetitions, tags, levels)
                record = until_done.enter_context(record_load(plan, open_store(), here, clock, interrupt))
            return record

        for repetition, (trial, load) in product(range(repetitions), enumerate(loads)):
            started = time.time()
            keep = None if watch_chunk is None else partial(_numbered, watch_chunk, len(results))
            found = asked.at(load).measured(watch, interrupt, keep, once_begun=begun)
            results.append(_judged(found, load))
            begun().add(results[-1], trial, repetition, started)
            if interrupt() or results[-1].aborted:
                break
        begun().finish(results)
    return FinishedLoad(begun().run_id, tuple(results), interrupt())


def _judged(found: LoadResult, load: Load) -> LoadResult:
    from assay.analysis.load import judged

    return judged(found, load)


def _numbered(watch_chunk: WatchChunk, number: int, chunk: Chunk) -> None:
    chunk.facts["load"] = number
    watch_chunk(chunk)
