"""A benchmark measures itself when it is called, in a script, without the command line."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from assay import BenchmarkResult, benchmark
from assay.execute.benchmark import FunctionBenchmark


@pytest.fixture(autouse=True)
def alone(own_names: None) -> None:
    """Benchmarks defined in tests are forgotten after them."""


def sync(iterations: int = 5) -> FunctionBenchmark:
    @benchmark(name="sum", iterations=iterations, warmup=1, loops=2)
    def measured(size: int = 100) -> dict[str, float]:
        return {"total": float(sum(range(size)))}

    return measured


def asynchronous() -> FunctionBenchmark:
    @benchmark(iterations=3, warmup=1, loops=1)
    async def waiting(seconds: float = 0.001) -> dict[str, float]:
        await asyncio.sleep(seconds)
        return {"asked": seconds}

    return waiting


def test_calling_a_benchmark_measures_it() -> None:
    result = sync()()

    assert isinstance(result, BenchmarkResult)
    assert (result.name, result.iterations, result.loops, len(result.times_s)) == ("sum", 5, 2, 5)


def test_the_figures_of_a_result_fit_its_times() -> None:
    result = sync(40)()
    times = [seconds * 1e3 for seconds in result.times_s]

    assert result.avg_time_ms == pytest.approx(statistics.fmean(times))
    assert result.std_dev_ms == pytest.approx(statistics.stdev(times))
    assert (result.min_time_ms, result.max_time_ms) == pytest.approx((min(times), max(times)))
    assert result.p50_ms == pytest.approx(statistics.median(times))
    assert result.min_time_ms <= result.p50_ms <= result.p95_ms <= result.p99_ms <= result.max_time_ms
    assert result.throughput == pytest.approx(1000 / result.avg_time_ms)
    assert result.total_time_ms == pytest.approx(sum(times))


def test_numbers_that_the_function_returns_are_metrics() -> None:
    assert sync()().metrics == {"total": 4950.0}


def test_arguments_of_the_call_reach_the_function() -> None:
    assert sync()(10).metrics == {"total": 45.0}
    assert sync()(size=4).metrics == {"total": 6.0}


def test_an_async_benchmark_is_measured_by_a_plain_call() -> None:
    result = asynchronous()()

    assert result.metrics == {"asked": 0.001}
    assert result.min_time_ms >= 1


def test_either_kind_can_be_awaited_within_a_loop() -> None:
    async def script() -> tuple[BenchmarkResult, BenchmarkResult]:
        return await sync()(), await asynchronous()(0.002)

    plain, waited = asyncio.run(script())

    assert (plain.metrics, waited.metrics) == ({"total": 4950.0}, {"asked": 0.002})


def test_without_arguments_the_decorator_takes_the_functions_name() -> None:
    @benchmark
    def empty() -> None: ...

    assert (empty.name, getattr(empty, "__name__", "")) == ("empty", "empty")


def test_one_iteration_has_no_spread() -> None:
    assert sync(1)().std_dev_ms == 0


def test_an_error_in_the_function_reaches_the_caller() -> None:
    @benchmark(iterations=1)
    def failing() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        failing()


def test_a_script_measures_without_numpy_or_a_database(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\nfrom assay import benchmark\n\n@benchmark(iterations=3)\ndef work(): sum(range(100))\n\n"
        "result = work()\nprint(result)\n"
        "print([name for name in ('numpy', 'sqlalchemy', 'rich', 'pydantic', 'click') if name in sys.modules])\n"
    )

    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("work: ")
    assert done.stdout.endswith("[]\n")
