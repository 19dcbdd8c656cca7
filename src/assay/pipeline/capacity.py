"""The search for a capacity, each of its steps stored as soon as it is done.

A search decides each step by the results of those before, and by nothing else. So an interrupted search continues by being
run again from the start: loads that are stored already are answered with their stored results, and the others are measured.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from assay.analysis.load.judgement import judge_load
from assay.errors import PlanError
from assay.execute.environment import environment
from assay.execute.signals import interruptible
from assay.load.build import LoadOptions, PreparedLoad, spread_load
from assay.load.capacity import Search
from assay.load.engine import Watch
from assay.model import Artifact, Batch, Execution, Plan, Run, RunState
from assay.model.load import Arrivals, Capacity, Load, LoadResult, Step
from assay.model.load_document import CAPACITY_FILE, capacity_document
from assay.model.run import CAPACITY_TAG, MOST_SEARCH_STEPS, SEARCH_COMPLETE
from assay.pipeline.lifecycle import ActiveRun, open_run, reopen_run
from assay.pipeline.load import prepare_load
from assay.pipeline.load_record import execution_of, plan_load
from assay.plugin import lookup
from assay.plugin.json_data import to_json_data
from assay.spec.settings import Settings
from assay.store.store import Store
from assay.units import format_count

STEP_SECONDS = 4.0
_STEP = "step"
"""Key in the detail of an execution. Its value has the load and the result of the step, which a resumed search reads."""
Watching = Callable[[Load], AbstractContextManager[Watch]]


@dataclass(frozen=True, slots=True)
class CapacitySearchResult:
    run_id: str
    capacity: Capacity
    is_interrupted: bool


@dataclass(frozen=True, slots=True)
class CapacityRequest:
    """What to search for.

    `options` are those of the command line and go into the stored plan; `asked` is the load prepared from them. The option
    `--duration` is the length of one step, and `arrivals` is how requests arrive at each rate that is tried.
    """

    options: LoadOptions
    prepared: PreparedLoad
    arrivals: Arrivals = Arrivals.CONSTANT

    @property
    def step_seconds(self) -> float:
        return self.prepared.load.seconds if self.options.duration is not None else STEP_SECONDS

    @property
    def base(self) -> Load:
        return replace(self.prepared.load, concurrency=self.options.concurrency, arrivals=self.arrivals)


def find_capacity(
    request: CapacityRequest,
    store: Store,
    settings: Settings,
    tell: Callable[[Step], None],
    watching: Watching,
    tags: tuple[str, ...] = (),
) -> CapacitySearchResult:
    """Search for the highest sustained rate. `watching` is entered for each step, and `tell` is called with its result."""
    plan = _plan(request, settings, tags)
    here = environment(Path.cwd())
    with (
        interruptible() as interrupt,
        spread_load(request.options, request.prepared, settings) as prepared,
        open_run(plan, store, interrupt, here) as active,
    ):
        probe = _StoringProbe(active, prepared, watching)
        capacity = Search(request.base, request.step_seconds, probe, interrupt, tell).run()
        _finish(active, capacity)
    return CapacitySearchResult(active.id, capacity, interrupt())


def resume_capacity(
    run: Run, store: Store, settings: Settings, watch: Callable[[Batch], None] = lambda batch: None
) -> None:
    """Continue an interrupted search; one that has its answer only gets its final state."""
    params = dict(run.trials[0].trial.params)
    # A load takes arrivals only with a rate; a search has the rates itself.
    arrivals = Arrivals(str(params.pop("arrivals", None) or "constant"))
    options: LoadOptions = lookup.find("experiments", "load").Params.model_validate(params).options()
    request = CapacityRequest(options, prepare_load(options, settings, store), arrivals)
    with (
        interruptible() as interrupt,
        spread_load(options, request.prepared, settings) as prepared,
        reopen_run(run.id, store, interrupt, stays_open_on_error=True) as active,
    ):
        if (throughput := _read_throughput(active)) is not None:
            # The answer was stored, but not that the search has ended: the process died between the two.
            active.finish(lambda: RunState.COMPLETED if throughput > 0 else RunState.FAILED)
            return
        probe = _StoringProbe(active, prepared, lambda load: nullcontext(lambda progress, tally: None))
        probe.stored = watch
        probe.take_up(list(store.executions(active.run.trials[0].id)))
        capacity = Search(request.base, request.step_seconds, probe, interrupt).run()
        _finish(active, replace(capacity, warnings=(*capacity.warnings, *probe.warnings())))


def _finish(active: ActiveRun, capacity: Capacity) -> None:
    """Store the answer as an artifact of the only trial, and end the run."""
    document = json.dumps(capacity_document(capacity)).encode()
    artifact = Artifact(0, CAPACITY_FILE, "application/json", document)
    active.add(Batch(artifacts=(artifact,), stopped={0: SEARCH_COMPLETE}))
    active.finish(lambda: RunState.COMPLETED if capacity.highest_throughput > 0 else RunState.FAILED)


class _StoringProbe:
    """Runs the loads of a search and stores the result of each.

    After `take_up`, stored results of earlier steps are returned for the loads that produced them, in the order in which
    they were stored. The first load that differs from the stored one ends this, and it and all later loads are measured:
    a different version of Assay may search in a different way.
    """

    def __init__(self, active: ActiveRun, prepared: PreparedLoad, watching: Watching) -> None:
        self._active, self._prepared, self._watching = active, prepared, watching
        self._number = 0
        self._steps: Iterator[Mapping[str, Any]] = iter(())
        self._used = self._usable = 0
        self.stored: Callable[[Batch], None] = lambda batch: None
        """Called with each batch after it was stored."""

    def take_up(self, executions: list[Execution]) -> None:
        """Reuse the results of these executions. Steps that were cut short are measured again."""
        steps = [(execution.detail or {}).get(_STEP) for execution in executions]
        self._number = len(executions)
        # Prompts that were sent already would be answered from the server's prompt cache.
        self._prepared = replace(self._prepared, loads=count(len(executions)))
        whole = [step for step in steps if not (isinstance(step, dict) and step["result"]["is_cut"])]
        self._usable = len(whole)
        self._steps = iter([step if isinstance(step, dict) else {} for step in whole])

    def __call__(self, load: Load) -> LoadResult:
        """Measure the load, or return its stored result; this is how `Search` asks for a step."""
        # A search is deterministic: given the same results it asks for the same loads. So a resumed search is run from the
        # start and gets stored results as long as it asks for the stored loads; at the first difference the rest is dropped.
        step = next(self._steps, None)
        if step is not None and step.get("load") == _describe_load(load):
            self._used += 1
            return _read_result(step["result"])
        self._steps = iter(())
        started = time.time()
        with self._watching(load) as watch:
            result = judge_load(self._prepared.at(load).measure(watch, self._active.interrupt), load)
        execution = execution_of(result, 0, self._number, started)
        detail = {**(execution.detail or {}), _STEP: _build_step(load, result)}
        batch = Batch((replace(execution, detail=detail),))
        self._active.add(batch)
        self._number += 1
        self.stored(batch)
        if any(generator.lost for generator in result.generators):
            raise PlanError(
                f"The search ended: {result.aborted}. Resume it: assay run --resume {self._active.id}"
            )
        return result

    def warnings(self) -> tuple[str, ...]:
        """What a reader of the answer has to know about a search that was resumed."""
        texts = []
        if self._used:
            steps = format_count(self._used, "step")
            texts.append(f"The search was resumed and reuses {steps} from before the interruption.")
        if unused := self._usable - self._used:
            steps = format_count(unused, "stored step")
            texts.append(f"The search was resumed, but cannot use {steps} and measures them again.")
        return tuple(texts)


def _build_step(load: Load, result: LoadResult) -> dict[str, Any]:
    """What is stored of a step: of its result only what a search looks at, because curves and histograms are large."""
    facts = replace(result, curve=(), histograms={}, server=None, targets={}, error_reasons={})
    return {"load": _describe_load(load), "result": to_json_data(asdict(facts))}


def _read_result(stored: Mapping[str, Any]) -> LoadResult:
    """The result of a stored step, as `_build_step` wrote it."""
    from pydantic import TypeAdapter

    return TypeAdapter(LoadResult).validate_python(stored)


def _describe_load(load: Load) -> dict[str, Any]:
    """What tells the loads of one search apart."""
    described: dict[str, Any] = to_json_data(
        {
            "arrivals": load.arrivals.value,
            "concurrency": load.concurrency,
            "stages": load.stages,
            "seconds": load.seconds,
            "warmup": load.warmup,
        }
    )
    return described


def _read_throughput(active: ActiveRun) -> float | None:
    """The highest throughput that a finished search found; None where there is no answer, or an interrupted one."""
    for artifact in active.store.artifacts(active.run.trials[0].id):
        if artifact.name == CAPACITY_FILE:
            document = json.loads(artifact.content)
            if not document.get("interrupted"):
                return float(document["highest_throughput_rps"])
    return None


def _plan(request: CapacityRequest, settings: Settings, tags: tuple[str, ...]) -> Plan:
    """The plan of a search: one trial with more executions than any search takes.

    The trial is marked as stopped at the end, so that the steps that were not needed do not count as missing.
    """
    plan = plan_load(request.options, settings, MOST_SEARCH_STEPS, tags)
    plan = replace(plan, tags=(*plan.tags, CAPACITY_TAG))
    if request.arrivals is Arrivals.CONSTANT:
        return plan
    # A load takes arrivals only with a rate, so they are added to what was checked.
    arrivals = {"arrivals": request.arrivals.value}
    trials = (replace(trial, params={**trial.params, **arrivals}) for trial in plan.trials)
    return replace(plan, trials=tuple(trials))
