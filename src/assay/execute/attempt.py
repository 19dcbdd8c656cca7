"""One job, carried out: setup, executions, teardown. Runs in a worker, or inline in the runner."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter, time
from typing import Any

from assay.execute.clock import Timed, loops_for, time_await, time_call
from assay.execute.instruments import Files, Instruments
from assay.execute.outcome import Outcome, sorted_out
from assay.execute.patience import Patience
from assay.execute.pulse import Pulse, Stage
from assay.model import Batch, Execution, Isolation, Job, Limits, Phase, Status, Stretch
from assay.plugin import lookup
from assay.plugin.experiment import ExperimentContext
from assay.stats.order import median_interval

LogReader = Callable[[], str | None]


class Cancelled(BaseException):
    """Raised in a worker that is asked to end: the execution under way is recorded as cancelled."""


def attempt(job: Job, pulse: Pulse | None = None, read_log: LogReader | None = None) -> Iterator[Batch]:
    """Carry out a job, yielding each execution as it ends; whatever happens, teardown runs."""
    pulse = pulse or Pulse()
    seed_chance(job.seed)
    pulse.enter(Stage.SETUP)
    started = time()
    context = ExperimentContext(job.run_id, Path(job.run_dir), job.seed, process=job.process)
    try:
        subject = Subject(job, context)
    except (Exception, SystemExit, Cancelled) as error:
        yield Batch(
            (_before_first(job, started, error, "could not be made"),), settled=((job.trial, job.process),)
        )
        return
    with contextlib.ExitStack() as stack:
        stack.callback(pulse.end)
        stack.callback(subject.close)
        stack.callback(pulse.enter, Stage.TEARDOWN)
        yield from _attempted(job, subject, pulse, read_log or (lambda: None))
    yield Batch(settled=((job.trial, job.process),))


def _attempted(job: Job, subject: Subject, pulse: Pulse, read_log: LogReader) -> Iterator[Batch]:
    started = time()
    try:
        subject.setup()
    except (Exception, SystemExit, Cancelled) as error:
        yield Batch((_before_first(job, started, error, "setup failed", read_log()),))
        return
    instruments = subject.instruments
    if job.process == 0:
        yield Batch(costs=instruments.costs(subject.context), unmeasured=instruments.unmeasured)
    patience = Patience()
    for stretch in job.stretches:
        for execution in _stretch(job, stretch, subject, pulse, read_log):
            if stretch.kept:
                yield Batch((execution,))
            if execution.status is Status.CANCELLED:
                return
            if reason := patience.see((execution,)):
                yield Batch(artifacts=subject.files.taken(), stopped={job.trial: reason})
                return
        yield Batch(artifacts=subject.files.taken())


def _stretch(
    job: Job, stretch: Stretch, subject: Subject, pulse: Pulse, read_log: LogReader
) -> Iterator[Execution]:
    phase = Phase(stretch.phase)
    context = subject.context
    context.phase = phase
    is_enough = _Enough(job) if phase is Phase.MEASURED and job.iterations.until else None
    for repetition in range(stretch.first, stretch.end):
        context.iteration_index = repetition if phase is Phase.MEASURED else None
        pulse.begin(phase, repetition)
        execution = subject.execute(phase, repetition)
        pulse.end()
        if log := read_log():
            execution = replace(execution, log=log)
        yield execution
        if is_enough and is_enough(execution):
            return


class Subject:
    """An experiment in one process, ready to be executed again and again."""

    def __init__(self, job: Job, context: ExperimentContext) -> None:
        self._job = job
        self.context = context
        context.run_dir.mkdir(parents=True, exist_ok=True)
        started = perf_counter()
        self._experiment = _made(job)
        self._import_seconds = perf_counter() - started
        self._setup_seconds = 0.0
        self._call = getattr(self._experiment, "call", None) or partial(
            self._experiment.execute_once, context
        )
        self._read: Callable[[Any], Outcome] = getattr(self._experiment, "read", sorted_out)
        self._runner: asyncio.Runner | None = None
        self._is_async = inspect.iscoroutinefunction(getattr(self._call, "func", self._call))
        self._loops = job.iterations.loops
        self.instruments = Instruments(job.instruments)
        self.files = Files(job)
        context.instruments = tuple(use.name for use in job.instruments)

    def setup(self) -> None:
        started = perf_counter()
        self._settle(self._experiment.setup(self.context))
        self._setup_seconds = perf_counter() - started

    def execute(self, phase: Phase, repetition: int) -> Execution:
        watching = self.instruments.for_phase(phase)
        started = time()
        states = watching.start(self.context) if watching else None
        status, outcome, loops, error = self._ventured()
        if watching:
            outcome.measurements.update(watching.stop(states, self.files))
        if status is Status.OK and self._job.isolation is Isolation.COLD:
            outcome.measurements["import_seconds"] = self._import_seconds
            outcome.measurements["setup_seconds"] = self._setup_seconds
        applied = dict(self.context.applied) if self.context.applied else None
        return Execution(
            self._job.trial, self._job.process, phase, repetition, status, started,
            outcome.measurements, loops, "", outcome.output, applied, error,
        )  # fmt: skip

    def _ventured(self) -> tuple[Status, Outcome, int, str | None]:
        """One execution, however it ends."""
        loops = self._loops or 1
        try:
            loops = self._loops or self._autorange()
            timed = self._timed(loops)
        except Cancelled:
            return Status.CANCELLED, Outcome(), loops, "The run was interrupted."
        except (Exception, SystemExit, KeyboardInterrupt) as raised:
            return Status.FAILED, Outcome(), loops, told(raised)
        outcome = self._read(timed.result)
        outcome.measurements["seconds"] = timed.seconds
        if outcome.problem:
            return Status.INVALID_OUTPUT, outcome, loops, outcome.problem
        if broken := broken_limit(outcome.measurements, self._job.limits):
            return Status.OVER_LIMIT, outcome, loops, broken
        return Status.OK, outcome, loops, None

    def _timed(self, loops: int) -> Timed:
        if not self._is_async:
            return time_call(self._call, loops)
        return self._async_runner().run(time_await(self._call, loops))

    def _autorange(self) -> int:
        """Find how many calls one execution needs so that the clock's grain does not show."""
        loops = 1
        while True:
            timed = self._timed(loops)
            wanted = loops_for(timed.seconds)
            if wanted <= loops * 2 or loops >= 10_000_000:
                self._loops = max(loops, wanted) if loops > 1 else wanted
                return self._loops
            loops = min(wanted, loops * 100)

    def _async_runner(self) -> asyncio.Runner:
        if self._runner is None:
            self._runner = asyncio.Runner()
        return self._runner

    def _settle(self, result: Any) -> None:
        if inspect.isawaitable(result):
            self._async_runner().run(_awaited(result))

    def close(self) -> None:
        """Teardown, whose failure is told on standard error and spoils no result."""
        try:
            self.context.phase, self.context.iteration_index = "teardown", None
            self._settle(self._experiment.teardown(self.context))
        except (Exception, SystemExit):
            traceback.print_exc()
        finally:
            if self._runner is not None:
                self._runner.close()


async def _awaited(result: Any) -> Any:
    return await result


def make(member: Any, params: Any) -> Any:
    """An instance of an experiment with its params."""
    if hasattr(member, "bound"):
        return member.bound(dict(params))
    if getattr(member, "Params", None) is None:
        return member(**params)
    experiment = member()
    experiment.params = member.Params.model_validate(dict(params))
    return experiment


def _made(job: Job) -> Any:
    for file in job.load:
        lookup.load_file(Path(file))
    return make(lookup.find("experiments", job.experiment), job.params)


class _Enough:
    """Whether `measured: auto` has seen enough: looks after every tenth more, so that looking stays cheap."""

    def __init__(self, job: Job) -> None:
        assert job.iterations.until is not None
        self._until = job.iterations.until
        self._values: list[float] = []
        self._next = self._until.min

    def __call__(self, execution: Execution) -> bool:
        value = execution.measurements.get(self._until.metric)
        if value is None or execution.status is not Status.OK:
            return False
        self._values.append(value)
        if len(self._values) < self._next:
            return False
        self._next = len(self._values) + max(1, len(self._values) // 10)
        return self._is_narrow()

    def _is_narrow(self) -> bool:
        ordered = sorted(self._values)
        interval = median_interval(ordered)
        if interval is None:
            return False
        middle = ordered[len(ordered) // 2]
        return bool((interval[1] - interval[0]) / 2 <= self._until.interval * abs(middle))


def seed_chance(seed: int) -> None:
    """The same chance for every arm: `random`, and numpy where the subject has brought it along."""
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)


def broken_limit(measurements: dict[str, float], limits: Limits) -> str | None:
    for name, ceiling in (("tokens", limits.tokens), ("usd", limits.usd)):
        if ceiling is not None and measurements.get(name, 0) > ceiling:
            return f"{name} {measurements[name]:g} is above the limit of {ceiling:g}"
    return None


def told(error: BaseException) -> str:
    """One line that names the error, and the last lines of where it was raised."""
    if isinstance(error, SystemExit):
        return f"SystemExit: the experiment called sys.exit({error.code!r})"
    trace = "".join(traceback.format_exception(error, limit=-5))
    return f"{type(error).__name__}: {error}\n{trace[-4000:]}"


def _before_first(
    job: Job, started: float, error: BaseException, what: str, log: str | None = None
) -> Execution:
    """A failure before any execution stands for the first one that was due."""
    first = next((s for s in job.stretches if s.kept), job.stretches[0])
    status = Status.CANCELLED if isinstance(error, Cancelled) else Status.FAILED
    text = f"{what}: {told(error)}"
    return Execution(
        job.trial, job.process, Phase(first.phase), first.first, status, started, {}, error=text, log=log
    )
