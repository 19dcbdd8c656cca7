"""The simulator of clusters that docs/scaling.md rests on gives what arithmetic gives where arithmetic can, and promises at size are
judged by what they say."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """Import a module of the folder `benchmarks`; it is forgotten after the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(BENCHMARKS)):
            del sys.modules[name]


@pytest.fixture
def simulator(benchmarks: Callable[[str], Any]) -> Any:
    return benchmarks("scale.simulator")


@pytest.mark.parametrize(
    ("times", "used", "holds", "unit"),
    [(2.1, 0.5, True, "times"), (1.8, 0.96, True, "share"), (1.8, 0.94, False, "share")],
)
def test_four_writers_store_twice_as_much_or_use_all_that_is_left_of_the_machine(
    benchmarks: Callable[[str], Any], tmp_path: Path, times: float, used: float, holds: bool, unit: str
) -> None:
    postgres, record = benchmarks("scale.postgres"), benchmarks("record")
    rate, left = 20_000 * times, 1.5
    seconds = used * left / rate
    alone = [postgres.Written(20_000, 1e-5, 1e-5, left)] * 3
    found = postgres._judge_writers(alone, [postgres.Written(rate, seconds / 2, seconds / 2, left)] * 3)
    assert (found.holds, found.promise.unit) == (holds, unit)
    assert found.values["used"] == pytest.approx([used] * 3)
    record.save(found, tmp_path)
    (stored,) = record.stored(tmp_path)
    assert (stored.holds, stored.promise) == (holds, found.promise)


def test_a_busy_driver_bounds_the_rate_by_its_cost(simulator: Any) -> None:
    """1,000 slots could do 10,000/s; a driver that takes 1 ms does 1,000/s."""
    found = simulator.simulate(simulator.Cluster(1000, 0.1), simulator.Costs(1e-3), 20_000)
    assert found.rate == pytest.approx(1000, rel=0.01)
    assert found.driver == pytest.approx(1, abs=0.01)


def test_batches_share_their_cost(simulator: Any) -> None:
    costs = simulator.Costs(1e-4, batch=9e-3)
    found = simulator.simulate(simulator.Cluster(1000, 0.1, batch=10), costs, 20_000)
    assert found.rate == pytest.approx(10 / (9e-3 + 10 * 1e-4), rel=0.01)


def test_few_slots_are_the_limit_themselves(simulator: Any) -> None:
    cluster, costs = simulator.Cluster(10, 1.0), simulator.Costs(1e-4)
    found = simulator.simulate(cluster, costs, 5_000)
    assert found.rate == pytest.approx(10, rel=0.01)
    assert found.efficiency == pytest.approx(1, abs=0.01)
    assert simulator.find_limit(cluster, costs) == ("slots", 10)


def test_a_narrow_network_is_found_out(simulator: Any) -> None:
    cluster, costs = simulator.Cluster(1000, 0.1), simulator.Costs(1e-6, bytes_per_execution=1e6)
    found = simulator.simulate(cluster, costs, 5_000)
    assert found.rate == pytest.approx(125, rel=0.02)
    assert simulator.find_limit(cluster, costs)[0] == "network"


def test_the_simulated_rate_is_never_above_its_bound(simulator: Any) -> None:
    for slots in (1, 16, 160, 1600):
        cluster, costs = simulator.Cluster(slots, 0.05, variation=0.5), simulator.Costs(3e-4)
        found = simulator.simulate(cluster, costs, 10 * slots + 2000)
        assert found.rate <= 1.05 * simulator.find_limit(cluster, costs)[1]


def test_the_time_between_two_executions_keeps_slots_from_the_next(simulator: Any) -> None:
    """Ten slots with executions of 0.1 s and 0.025 s in between do 80/s."""
    cluster, costs = simulator.Cluster(10, 0.1), simulator.Costs(1e-6, turn=0.025)
    found = simulator.simulate(cluster, costs, 5_000)
    assert found.rate == pytest.approx(80, rel=0.01)
    assert simulator.find_limit(cluster, costs) == ("slots", 80)


def test_placing_a_share_is_measured_with_the_dispatch_of_the_executor(
    benchmarks: Callable[[str], Any],
) -> None:
    pytest.importorskip("ray", reason="to enable: pip install 'assay-bench[ray]'")
    assert benchmarks("scale.placement").measure_placing(3, shares=10) > 0
