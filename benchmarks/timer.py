"""What is reported for functions whose cost other tools report, too, and what the timing loop adds by itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial

from arms import ASSAY, PYTHON, SUBJECTS, ended, fresh_folder, interleaved
from record import Bound, Figure, Promise, Result, figure, ratio

EMPTY = Promise(
    "empty-function",
    "The figure for an empty function",
    Bound.WITHIN,
    5e-9,
    "s",
    "of timeit, `pass` subtracted",
)
TEN_BY_PYPERF = Promise(
    "ten-microseconds-pyperf", "The figure for a function of 10 µs", Bound.WITHIN, 0.03, "share", "of pyperf"
)
TEN_BY_PYTEST = Promise(
    "ten-microseconds-pytest-benchmark",
    "The figure for a function of 10 µs",
    Bound.WITHIN,
    0.03,
    "share",
    "of pytest-benchmark",
)
OVERHEAD = Promise(
    "timing-overhead",
    "An empty function in the timing loop, before anything is subtracted",
    Bound.BELOW,
    1.0,
    "times",
    "pytest-benchmark's figure",
)

VALUE = "0.001"
"""Seconds of one timed value. Assay's own length, asked of all: single calls and long loops catch other noise."""

Medians = dict[str, float]
"""Seconds of one call by function, as one process of a tool found them."""


def measure(quick: bool) -> list[Result]:
    pyperf_options = ("--processes", "1", "--values", "10" if quick else "50", "--min-time", VALUE)
    arms: dict[str, Callable[[], Medians]] = {
        "assay": _assay,
        "assay, nothing subtracted": partial(_script, "with_clock.py"),
        "timeit": partial(_script, "with_timeit.py"),
        "pyperf": partial(_pyperf, pyperf_options),
        "pytest-benchmark": partial(_pytest_benchmark, "0.1" if quick else "0.5"),
    }
    found = interleaved(arms, 2 if quick else 41)
    return [
        _empty(found),
        _ten_microseconds(TEN_BY_PYPERF, found, "pyperf"),
        _ten_microseconds(TEN_BY_PYTEST, found, "pytest-benchmark"),
        _overhead(found),
    ]


def _assay() -> Medians:
    with fresh_folder() as folder:
        done = ended((ASSAY, "run", str(SUBJECTS / "with_assay.py"), "--json", "-q"), folder)
    trials = json.loads(done.stdout)["trials"]
    return {trial["experiment"]: trial["metrics"]["seconds"]["median"] for trial in trials}


def _script(name: str) -> Medians:
    with fresh_folder() as folder:
        medians: Medians = json.loads(ended((PYTHON, str(SUBJECTS / name)), folder).stdout)
    return medians


def _pyperf(options: Sequence[str]) -> Medians:
    import pyperf

    with fresh_folder() as folder:
        words = (PYTHON, str(SUBJECTS / "with_pyperf.py"), "--quiet", "--output", "found.json", *options)
        ended(words, folder)
        suite = pyperf.BenchmarkSuite.load(str(folder / "found.json"))
    return {bench.get_name(): bench.median() for bench in suite}


def _pytest_benchmark(seconds: str) -> Medians:
    options = ("-q", "-c", "/dev/null", "-p", "no:cacheprovider", "-p", "pytest_benchmark.plugin")
    with fresh_folder() as folder:
        asked = (
            f"--benchmark-min-time={VALUE}",
            f"--benchmark-max-time={seconds}",
            "--benchmark-json=found.json",
        )
        ended((PYTHON, "-m", "pytest", *options, *asked, str(SUBJECTS / "test_functions.py")), folder)
        benches = json.loads((folder / "found.json").read_text())["benchmarks"]
    return {bench["name"].removeprefix("test_"): bench["stats"]["median"] for bench in benches}


def _of(found: dict[str, list[Medians]], tool: str, function: str) -> list[float]:
    return [medians[function] for medians in found[tool]]


def _figures(found: dict[str, list[Medians]], tools: Sequence[str], function: str) -> dict[str, Figure]:
    return {tool: figure(_of(found, tool, function)) for tool in tools}


def _empty(found: dict[str, list[Medians]]) -> Result:
    ours, theirs = _of(found, "assay", "empty"), _of(found, "timeit", "empty")
    return Result(
        EMPTY,
        "s",
        figure(ours),
        figure([mine - other for mine, other in zip(ours, theirs, strict=True)]),
        _figures(found, ("timeit", "pyperf", "pytest-benchmark"), "empty"),
        "pyperf and pytest-benchmark do not subtract their loops, so their figures for an empty function are higher.",
        {"assay": ours, "timeit": theirs},
    )


def _ten_microseconds(promise: Promise, found: dict[str, list[Medians]], peer: str) -> Result:
    ours, theirs = _of(found, "assay", "ten_microseconds"), _of(found, peer, "ten_microseconds")
    times = ratio(ours, theirs)
    return Result(
        promise,
        "s",
        figure(ours),
        Figure(times.value - 1, times.low - 1, times.high - 1, times.n),
        _figures(found, (peer,), "ten_microseconds"),
        values={"assay": ours, peer: theirs},
    )


def _overhead(found: dict[str, list[Medians]]) -> Result:
    ours = _of(found, "assay, nothing subtracted", "empty")
    theirs = _of(found, "pytest-benchmark", "empty")
    return Result(
        OVERHEAD,
        "s",
        figure(ours),
        ratio(ours, theirs),
        _figures(found, ("pytest-benchmark", "pyperf"), "empty"),
        values={"assay": ours, "pytest-benchmark": theirs},
    )
