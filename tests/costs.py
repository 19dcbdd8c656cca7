"""What tests cost, as `make test-costs` measured it.

`make test-fast` leaves out the tests that `tests/slow_tests.txt` names. A test is slow if it starts processes, computes for
longer than `MOST_CPU_SECONDS` or takes longer than `MOST_SECONDS`. All parameters of a test count as one. A test that was never
measured counts as quick, so new tests run at once. Tests that are marked as needing a server or a browser, or as slow, are left
out whatever they cost.

`make test` plans by `tests/file_costs.txt`, which has the sums for each file (see `tests/parallel.py`).
"""

from __future__ import annotations

import resource
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import pytest
from tests import forking

SLOW_TESTS = Path(__file__).parent / "slow_tests.txt"
FILE_COSTS = Path(__file__).parent / "file_costs.txt"
FAST = "--fast"
WRITE_COSTS = "--write-costs"
MOST_CPU_SECONDS = 0.1
MOST_SECONDS = 2.0
LEAST_CHILD_SECONDS = 0.01
"""A process that used less CPU time than this is `true` or `git`, not Python."""
_PROPERTY = "cost"
_MARKS = frozenset({"postgres", "browser", "slow"})
_HEADER = "# Tests that `make test-fast` leaves out. Written by `make test-costs`; do not edit.\n"
_FILES_HEADER = "# Seconds and CPU seconds of each test file. Written by `make test-costs`; do not edit.\n"


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU seconds of the test process, CPU seconds of the processes that it waited for, and seconds by the clock."""

    own: float
    children: float
    seconds: float

    @property
    def is_slow(self) -> bool:
        return (
            self.own > MOST_CPU_SECONDS or self.children >= LEAST_CHILD_SECONDS or self.seconds > MOST_SECONDS
        )


def function_of(nodeid: str) -> str:
    """The test without its parameters."""
    return nodeid.partition("[")[0]


def read_slow_tests() -> set[str]:
    lines = SLOW_TESTS.read_text(encoding="utf-8").splitlines() if SLOW_TESTS.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def write_slow_tests(functions: Iterable[str]) -> None:
    SLOW_TESTS.write_text(_HEADER + "".join(f"{name}\n" for name in sorted(functions)), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class FileCost:
    """What the tests of a file took together, by the clock and in CPU time of all their processes."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    def __add__(self, other: FileCost) -> FileCost:
        return FileCost(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


def read_file_costs() -> dict[str, FileCost]:
    lines = FILE_COSTS.read_text(encoding="utf-8").splitlines() if FILE_COSTS.exists() else []
    rows = (line.split(maxsplit=2) for line in lines if not line.startswith("#"))
    return {file: FileCost(float(seconds), float(cpu)) for seconds, cpu, file in rows}


def write_file_costs(costs: Mapping[str, FileCost]) -> None:
    rows = (f"{cost.seconds:7.1f} {cost.cpu_seconds:7.1f} {file}\n" for file, cost in sorted(costs.items()))
    FILE_COSTS.write_text(_FILES_HEADER + "".join(rows), encoding="utf-8")


def deselect_slow_tests(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of `make test-fast`."""
    slow = read_slow_tests()
    left_out = [
        item
        for item in items
        if function_of(item.nodeid) in slow or any(mark.name in _MARKS for mark in item.iter_markers())
    ]
    config.hook.pytest_deselected(items=left_out)
    unwanted = set(left_out)
    items[:] = [item for item in items if item not in unwanted]


class CostMeter:
    """Leaves the cost of each test with the report of its teardown, for the process that gathers the reports."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._began = _used()
        return (yield)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> None:
        if call.when == "teardown":
            cost = [now - before for now, before in zip(_used(), self._began, strict=True)]
            item.user_properties.append((_PROPERTY, cost))


def _used() -> tuple[float, float, float]:
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    of_children = children.ru_utime + children.ru_stime + forking.cpu_seconds
    return own.ru_utime + own.ru_stime, of_children, perf_counter()


class CostWriter:
    """Gathers the costs of all tests and writes the files when the tests end. What did not run keeps its entries."""

    def __init__(self) -> None:
        self._slow: set[str] = set()
        self._measured: set[str] = set()
        self._files: dict[str, FileCost] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _PROPERTY and report.when == "teardown":
                assert isinstance(value, list)
                function = function_of(report.nodeid)
                self._measured.add(function)
                cost, file = Cost(*value), file_of(report.nodeid)
                if cost.is_slow:
                    self._slow.add(function)
                own = FileCost(cost.seconds, cost.own + cost.children)
                self._files[file] = self._files.get(file, FileCost()) + own

    def pytest_sessionfinish(self) -> None:
        write_slow_tests((read_slow_tests() - self._measured) | self._slow)
        write_file_costs(read_file_costs() | self._files)
