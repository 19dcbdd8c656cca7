"""The experiment of a job, ready to be executed again and again in this process.

`attempt.py` makes one `Subject` for a job, calls `setup`, then `execute` for each repetition, then `close`. Whatever the code of
the experiment raises becomes the status of an execution; only the user's interrupt passes through.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any

from assay.errors import AssayError
from assay.execute.answer_limits import (
    ITEMS,
    SHORTENED,
    TooLong,
    copy_whole,
    limit_execution,
    limit_returned,
    shorten,
    store_span,
)
from assay.execute.clock import Timed, find_loop_count, time_await, time_call
from assay.execute.error_text import format_error, summary
from assay.execute.instruments import Files, InstrumentFailed, Instruments
from assay.execute.resource_usage import Peak, UsageMeter, cpu_time
from assay.execute.worker_channel import StatusBlock, WorkerStage
from assay.model import Batch, Execution, Isolation, Job, Phase, Span, Status
from assay.plugin import lookup
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.interruption import BY_USER, UserInterrupt, run_coroutine
from assay.plugin.outcome import Outcome, plain, split_result
from assay.plugin.process_memory import peak_memory
from assay.plugin.spans import SpanCollector

if TYPE_CHECKING:
    import asyncio


INTERRUPTED = "The run was interrupted."
Ended = tuple[Status, Outcome, str | None]
"""How an execution ended: its status, what it returned, and what went wrong."""


def blame_for_start(error: BaseException) -> Status:
    """The status for an error while the experiment was made or set up.

    The experiment failed, unless it was not found, an instrument broke, or the user interrupted.
    """
    is_missing = isinstance(error, AssayError) and error.__cause__ is None
    if is_missing or isinstance(error, InstrumentFailed):
        return Status.HARNESS_ERROR
    return Status.CANCELLED if isinstance(error, BY_USER) else Status.FAILED


class Subject:
    """An experiment with everything around it: params, clock, instruments, limits, and scorers where it is in a suite.

    Three kinds of experiments look the same from outside: classes with `execute_once`, functions with `@benchmark`, which
    offer `call` to be timed without a detour, and either of them sync or async.
    """

    def __init__(self, job: Job, context: ExperimentContext) -> None:
        self._job = job
        self.context = context
        started = perf_counter()
        for file in job.load:
            lookup.load_file(Path(file))
        self._experiment = make(lookup.find("experiments", job.experiment), job.params)
        self._import_seconds = perf_counter() - started
        self._setup_seconds = 0.0
        self._call = getattr(self._experiment, "call", None) or partial(
            self._experiment.execute_once, context
        )
        prepare = getattr(type(self._experiment), "prepare_once", None)
        has_prepare = prepare not in (None, Experiment.prepare_once)
        self._prepare: Callable[[ExperimentContext], Any] | None = (
            self._experiment.prepare_once if has_prepare else None
        )
        """What runs before each execution, untimed; None where the experiment has nothing to prepare."""
        self._read: Callable[[Any], Outcome] = getattr(self._experiment, "read", split_result)
        # Experiments with a `read` of their own return what an analysis knows how to read.
        self._returns_anything = self._read is split_result or hasattr(self._experiment, "call")
        self._runner: asyncio.Runner | None = None
        self._is_async = inspect.iscoroutinefunction(getattr(self._call, "func", self._call))
        ceilings = (("tokens", job.limits.tokens), ("usd", job.limits.usd))
        self._ceilings = [(name, ceiling) for name, ceiling in ceilings if ceiling is not None]
        self._seconds_allowed = job.limits.seconds or math.inf
        self.loops = job.iterations.loops
        """Calls in one execution; None until `find_loops` has found it."""
        self._instruments = Instruments(job.instruments)
        self.files = Files(job)
        self.meter = UsageMeter(None if job.isolation is Isolation.INLINE else peak_memory)
        self._peak = Peak(os.getpid()) if job.wants_memory else None
        self._panel, self._pool = _panel(job)
        context.instruments = tuple(use.name for use in job.instruments)

    def setup(self) -> None:
        started = perf_counter()
        self._settle(self._experiment.setup(self.context))
        self._setup_seconds = perf_counter() - started

    def about_instruments(self) -> Batch:
        """What each instrument costs, and which ones have nothing to measure here."""
        return Batch(costs=self._instruments.costs(self.context), unmeasured=self._instruments.unmeasured)

    def find_loops(self) -> None:
        """Find how many calls an execution needs to be timed well; left open if the subject fails, as the next one will show."""
        try:
            self.loops = find_loop_count(self._time_loops)
        except BY_USER:
            raise
        except BaseException:
            self.loops = None

    def execute(self, phase: Phase, repetition: int, status_block: StatusBlock) -> Execution:
        """One execution, from its preparation to its limits; it never raises for what the experiment does."""
        failed = None
        if self._prepare is not None:
            status_block.enter(WorkerStage.PREPARING)
            failed = self._try_prepare()
            status_block.begin(phase, repetition)
        started = time()
        try:
            watching = self._instruments.watching(phase, repetition) if failed is None else None
            states = watching.start(self.context) if watching else []
            status, outcome, error = failed or self._try_execute(phase)
            # Also after a failure: what the instruments saw until then belongs to it, and they must not run on.
            if watching:
                outcome.measurements.update(watching.stop(states, self.files))
        except InstrumentFailed as failure:
            status, outcome, error = Status.HARNESS_ERROR, Outcome(), str(failure)
        if outcome.output and self._panel is None and self._returns_anything:
            limit_returned(outcome)
        if self._job.isolation is Isolation.COLD and status is Status.OK:
            outcome.measurements["import_seconds"] = self._import_seconds
            outcome.measurements["setup_seconds"] = self._setup_seconds
        applied: dict[str, Any] | None = plain(self.context.applied) if self.context.applied else None
        execution = Execution(
            self._job.trial, self._job.process, phase, repetition, status, started, outcome.measurements,
            self.loops or 1, self._job.case_id, outcome.output, applied, error, None, outcome.detail,
        )  # fmt: skip
        return limit_execution(execution)

    def _try_prepare(self) -> Ended | None:
        """How the execution ended if its preparation failed; None where it can begin."""
        assert self._prepare is not None
        try:
            self._settle(self._prepare(self.context))
        except BaseException as raised:
            return self._build_failure(raised)
        return None

    def _build_failure(self, raised: BaseException) -> Ended:
        """Whatever the experiment raised is its own failure; only the user can cancel it."""
        if isinstance(raised, BY_USER):
            return Status.CANCELLED, Outcome(), INTERRUPTED
        return Status.FAILED, Outcome(), format_error(raised)

    def _try_execute(self, phase: Phase) -> Ended:
        """One execution, however it ends."""
        if phase is Phase.PROFILED:
            return self._try_profiled()
        return self._try_timed(phase)

    def _try_profiled(self) -> Ended:
        """An execution with the spans that its code opened; they are collected only here, where no time counts."""
        with SpanCollector() as collector:
            status, outcome, error = self._try_timed(Phase.PROFILED)
        ran = outcome.measurements.get("seconds", 0.0) * (self.loops or 1)
        harness = Span("harness", "harness", ran, max(0.0, perf_counter() - collector.began - ran))
        spans = [store_span(span) for span in (*collector.take()[:ITEMS], harness)]
        outcome.detail = {**(outcome.detail or {}), "spans": spans}
        return status, outcome, error

    def _try_timed(self, phase: Phase) -> Ended:
        try:
            seconds, result, used = self._call_and_measure(
                self.loops or 1, is_measured=phase is Phase.MEASURED
            )
            outcome = self._read(result)
            outcome.measurements = {**used, **outcome.measurements}
        except BaseException as raised:
            return self._build_failure(raised)
        if outcome.seconds is not None:
            seconds = outcome.seconds
        outcome.measurements["seconds"] = seconds
        if outcome.failure:
            return Status.FAILED, outcome, outcome.failure
        if outcome.problem:
            return Status.INVALID_OUTPUT, outcome, outcome.problem
        if seconds * (self.loops or 1) > self._seconds_allowed:
            return Status.TIMEOUT, outcome, f"took longer than {self._seconds_allowed:g} s"
        for name, ceiling in self._ceilings:
            if outcome.measurements.get(name, 0) > ceiling:
                text = f"used {outcome.measurements[name]:g} {name}, more than the limit of {ceiling:g}"
                return Status.OVER_LIMIT, outcome, text
        if self._panel is not None:
            try:
                self._judge(result, outcome)
            except TooLong as too_long:
                return Status.INVALID_OUTPUT, outcome, str(too_long)
        return Status.OK, outcome, None

    def _call_and_measure(self, loops: int, *, is_measured: bool) -> tuple[float, Any, dict[str, float]]:
        """Seconds of one call, its result, and what it used of the machine: CPU time where executions are rated, peak
        memory where it is wanted. Both are read outside of the timer."""
        if self._peak:
            self._peak.read()
        cpu = cpu_time()
        seconds, result = self._time_loops(loops)
        cpu = cpu_time() - cpu
        if is_measured:
            self.meter.add(cpu, seconds * loops)
        used = {"cpu_seconds": cpu / loops} if self._job.is_rated else {}
        if self._peak and (peak := self._peak.read()) is not None:
            used["rss_max_bytes"] = float(peak)
        return seconds, result, used

    def _judge(self, result: Any, outcome: Outcome) -> None:
        """Score what the experiment returned for its case: its `output` where it names one, else all of it.

        The output is judged whole and stored shortened; what else was returned moves to the detail.
        """
        from assay.execute.scoring import score_detail, score_measurements
        from assay.model import Answer, Score

        judged = result.get("output", result) if isinstance(result, Mapping) else result
        scores: list[Score] = []
        complete = copy_whole(judged)
        waiting = self._panel.judge(self._job.cases[0], [Answer(complete)], scores)
        if waiting is not None:
            self._pool.wait(waiting)
        outcome.measurements.update(score_measurements(scores))
        others = {name: value for name, value in (outcome.output or {}).items() if name != "output"}
        shortened: dict[str, int] = {}
        outcome.output = shorten(complete, shortened, "output")
        detail = {
            **(outcome.detail or {}),
            **score_detail(scores),
            **({"returned": others} if others else {}),
            **({SHORTENED: shortened} if shortened else {}),
        }
        outcome.detail = detail or None

    def _time_loops(self, loops: int) -> Timed:
        if not self._is_async:
            return time_call(self._call, loops)
        timed: Timed = run_coroutine(self._async_runner(), time_await(self._call, loops))
        return timed

    def _async_runner(self) -> asyncio.Runner:
        if self._runner is None:
            import asyncio

            self._runner = asyncio.Runner()
        return self._runner

    def _settle(self, result: Any) -> None:
        if inspect.isawaitable(result):
            run_coroutine(self._async_runner(), _await_result(result))

    def close(self) -> str | None:
        """Tear the experiment down; returns what went wrong, which spoils no result."""
        self.context.phase, self.context.iteration_index = "teardown", None
        try:
            try:
                self._settle(self._experiment.teardown(self.context))
            finally:
                if self._pool is not None:
                    self._pool.close()
                if self._runner is not None:
                    self._runner.close()
        except UserInterrupt:
            raise
        except BaseException as error:
            return summary(error)
        return None


async def _await_result(result: Any) -> Any:
    return await result


def _panel(job: Job) -> tuple[Any, Any]:
    """The scorers of the job's case, and the agents that judges among them ask; nothing where nothing is judged."""
    if not job.scorers or not job.cases:
        return None, None
    from assay.execute.scoring import Panel
    from assay.plugin.agent_pool import AgentPool

    pool = AgentPool()
    return Panel(job.scorers, job.cases, pool), pool


def make(member: Any, params: Any) -> Any:
    """An instance of an experiment with its params."""
    if hasattr(member, "bound"):
        return member.bound(dict(params))
    if getattr(member, "Params", None) is None:
        return member(**params)
    experiment = member()
    experiment.params = member.Params.model_validate(dict(params))
    return experiment
