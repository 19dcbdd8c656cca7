"""The search for a capacity, each of its steps stored as soon as it is done."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from assay.analysis.load import judged
from assay.execute.environment import environment
from assay.execute.load.asking import LoadOptions, PreparedLoad
from assay.execute.load.capacity import Search
from assay.execute.load.engine import Watch
from assay.execute.signals import interruptible
from assay.execute.steady_clock import SteadyClock
from assay.model import Artifact, Batch, Plan, RunState
from assay.model.load import Arrivals, Capacity, Load, LoadResult, Step
from assay.model.run import SEARCH_COMPLETE
from assay.pipeline.load_record import execution_of, plan_load
from assay.pipeline.ownership import own_run
from assay.report.capacity import FILE, capacity_document
from assay.spec.settings import Settings
from assay.store.processes import current_owner
from assay.store.store import Store

STEP_SECONDS = 4.0
MOST_STEPS = 200
"""More than any search takes; what is not needed is stopped."""


@dataclass(frozen=True, slots=True)
class Found:
    run_id: str
    capacity: Capacity
    is_interrupted: bool


def find_capacity(
    options: LoadOptions,
    asked: PreparedLoad,
    store: Store,
    settings: Settings,
    tell: Callable[[Step], None],
    watching: Callable[[Load], AbstractContextManager[Watch]],
    tags: tuple[str, ...] = (),
    arrivals: Arrivals = Arrivals.CONSTANT,
) -> Found:
    """`--duration` is the length of one step; `watching` is entered for each; `arrivals` are those of the rates tried."""
    plan = _plan(options, settings, tags, arrivals)
    clock = SteadyClock()
    begun = store.begin(plan, environment(Path.cwd()), secrets.token_hex(5), clock.now(), current_owner())
    done = 0
    with interruptible() as interrupt, own_run(store, begun.id, interrupt, clock):

        def probe(load: Load) -> LoadResult:
            nonlocal done
            started = time.time()
            with watching(load) as watch:
                result = judged(asked.at(load).measured(watch, interrupt), load)
            with interrupt.storing():
                store.add(begun.id, Batch((execution_of(result, 0, done, started),)))
            done += 1
            return result

        seconds = asked.load.seconds if options.duration is not None else STEP_SECONDS
        base = replace(asked.load, concurrency=options.concurrency, arrivals=arrivals)
        capacity = Search(base, seconds, probe, interrupt, tell).run()
        document = json.dumps(capacity_document(capacity)).encode()
        artifact = Artifact(0, FILE, "application/json", document)
        store.add(begun.id, Batch(artifacts=(artifact,), stopped={0: SEARCH_COMPLETE}))
        state = RunState.INTERRUPTED if interrupt() else _state(capacity)
        store.finish(begun.id, state, clock.now())
    return Found(begun.id, capacity, interrupt())


def _plan(options: LoadOptions, settings: Settings, tags: tuple[str, ...], arrivals: Arrivals) -> Plan:
    plan = plan_load(options, settings, MOST_STEPS, (*tags, "capacity"))
    if arrivals is Arrivals.CONSTANT:
        return plan
    # A load takes arrivals only with a rate, so they are added to what was checked.
    trials = (replace(trial, params={**trial.params, "arrivals": arrivals.value}) for trial in plan.trials)
    return replace(plan, trials=tuple(trials))


def _state(capacity: Capacity) -> RunState:
    return RunState.COMPLETED if capacity.highest_throughput > 0 else RunState.FAILED
