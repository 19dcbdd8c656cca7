"""`@benchmark`: a plain function becomes something to measure, by the command line or by calling it.

The decorated function is registered as an experiment under its name, so that a spec or `assay run` can name it; a worker
then executes it through `Bound`. Called from a script, it measures itself in the process of the caller and returns a
`BenchmarkResult`, without a worker and without storing anything.
"""

from __future__ import annotations

import inspect
import statistics
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any, overload

from assay.execute.clock import Timed, autorange, find_loop_count, time_await, time_call
from assay.model import Iterations, Metric
from assay.plugin.experiment import ExperimentContext
from assay.plugin.lookup import register
from assay.plugin.outcome import Outcome, split_result


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """The result of calling a benchmark. Times are those of one call, in milliseconds if the name says so.

    It may be awaited, which returns it unchanged: scripts that await every benchmark work for sync functions, too.
    """

    name: str
    iterations: int
    loops: int
    times_s: tuple[float, ...]
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Means of the numbers that the function returned."""

    @property
    def total_time_ms(self) -> float:
        """Time of all measured executions together."""
        return sum(self.times_s) * 1e3

    @property
    def avg_time_ms(self) -> float:
        """Mean time of a call."""
        return statistics.fmean(self.times_s) * 1e3

    @property
    def min_time_ms(self) -> float:
        """Time of the fastest call."""
        return min(self.times_s) * 1e3

    @property
    def max_time_ms(self) -> float:
        """Time of the slowest call."""
        return max(self.times_s) * 1e3

    @property
    def std_dev_ms(self) -> float:
        """Standard deviation of the time of a call; 0 for one execution."""
        return statistics.stdev(self.times_s) * 1e3 if len(self.times_s) > 1 else 0.0

    @property
    def p50_ms(self) -> float:
        """Median time of a call."""
        return self._percentile(0.50)

    @property
    def p95_ms(self) -> float:
        """95th percentile of the time of a call."""
        return self._percentile(0.95)

    @property
    def p99_ms(self) -> float:
        """99th percentile of the time of a call."""
        return self._percentile(0.99)

    @property
    def throughput(self) -> float:
        """Calls per second, one after the other."""
        return len(self.times_s) / sum(self.times_s) if sum(self.times_s) else float("inf")

    def _percentile(self, share: float) -> float:
        """Interpolated linearly between the two nearest values, as numpy does by default."""
        ordered = sorted(self.times_s)
        place = share * (len(ordered) - 1)
        below = int(place)
        above = min(below + 1, len(ordered) - 1)
        return (ordered[below] + (ordered[above] - ordered[below]) * (place - below)) * 1e3

    def __await__(self) -> Generator[Any, None, BenchmarkResult]:
        return self
        yield

    def __str__(self) -> str:
        return f"{self.name}: {self.p50_ms:.6g} ms median, {self.iterations} iterations of {self.loops} calls"


class Bound:
    """A benchmark's function with its arguments: what a worker executes."""

    def __init__(self, function: Callable[..., Any], params: Mapping[str, Any]) -> None:
        self.call = partial(function, **params) if params else function

    def setup(self, context: ExperimentContext) -> None: ...

    def execute_once(self, context: ExperimentContext) -> Any:
        return self.call()

    def teardown(self, context: ExperimentContext) -> None: ...

    def read(self, result: Any) -> Outcome:
        return build_outcome(result)


class FunctionBenchmark:
    """A function to be measured, as `@benchmark` returns it.

    Calling it measures it, with the arguments that the call is given. The result has the time of every
    measured call and the means of the metrics that the function returned. An async function is measured
    in the loop that runs, or in a new one.
    """

    metrics: Mapping[str, Metric] = {}

    def __init__(self, function: Callable[..., Any], name: str, defaults: Iterations) -> None:
        self.experiment = function
        self.name = name
        self.slug = name
        self.defaults = defaults
        self._is_async = inspect.iscoroutinefunction(function)
        update_wrapper(self, function)

    def bound(self, params: Mapping[str, Any]) -> Bound:
        return Bound(self.experiment, params)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = partial(self.experiment, *args, **kwargs) if args or kwargs else self.experiment
        if not self._is_async:
            loops = self.defaults.loops or find_loop_count(partial(time_call, call))
            for _ in range(self.defaults.warmup):
                time_call(call, loops)
            return self._result(loops, [time_call(call, loops) for _ in range(self.defaults.measured)])
        import asyncio

        measuring = self._measure_async(call)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(measuring)
        return measuring

    async def _measure_async(self, call: Callable[[], Awaitable[Any]]) -> BenchmarkResult:
        loops = self.defaults.loops or await _find_loop_count_async(call)
        for _ in range(self.defaults.warmup):
            await time_await(call, loops)
        return self._result(loops, [await time_await(call, loops) for _ in range(self.defaults.measured)])

    def _result(self, loops: int, timed: list[Timed]) -> BenchmarkResult:
        times = tuple(execution.seconds for execution in timed)
        measured = [build_outcome(execution.result).measurements for execution in timed]
        means = {
            name: statistics.fmean(values[name] for values in measured if name in values)
            for name in sorted({name for values in measured for name in values})
        }
        return BenchmarkResult(self.name, len(timed), loops, times, means)


async def _find_loop_count_async(call: Callable[[], Awaitable[Any]]) -> int:
    """Drive the same search as `find_loop_count` does: it yields a number of loops and is sent the seconds they took."""
    ranging = autorange()
    loops = next(ranging)
    while True:
        try:
            loops = ranging.send((await time_await(call, loops)).seconds)
        except StopIteration as end:
            return int(end.value)


def build_outcome(result: Any) -> Outcome:
    """Numbers and other values from what a function returned, if that is a mapping; anything else is ignored."""
    if result is None:
        return Outcome()
    if isinstance(result, Mapping):
        return split_result(result)
    if inspect.isawaitable(result):
        return Outcome(problem="The function returned an awaitable; declare it with `async def`.")
    return Outcome()


@overload
def benchmark(function: Callable[..., Any], /) -> FunctionBenchmark: ...


@overload
def benchmark(
    *, name: str | None = None, iterations: int = 100, warmup: int = 5, loops: int | None = None
) -> Callable[[Callable[..., Any]], FunctionBenchmark]: ...


def benchmark(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    iterations: int = 100,
    warmup: int = 5,
    loops: int | None = None,
) -> Any:
    """Mark a function, sync or async, as a benchmark.

    `iterations` executions are measured after `warmup` others; each makes `loops` calls, by default as many as the
    clock needs to see them. If the function returns a mapping, its numbers are metrics.
    """

    def mark(marked: Callable[..., Any]) -> FunctionBenchmark:
        function_benchmark = FunctionBenchmark(
            marked, name or marked.__name__, Iterations(warmup, iterations, None, loops)
        )
        register("experiments", function_benchmark.name, function_benchmark)
        return function_benchmark

    return mark(function) if function is not None else mark
