"""The search for a capacity against servers that exist only as arithmetic."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.load.results import result, times
from tests.wording import Wording

from assay.analysis.load.judgement import judge_load
from assay.load.capacity import Search
from assay.load.saturation import breach
from assay.model.figure import Figure
from assay.model.load import Arrivals, Capacity, Load, LoadResult
from assay.report.capacity import step_text
from assay.spec.load_settings import objectives_of


class Server:
    """Bears `capacity` requests per second; one takes `seconds`. What it shows is off by `noise`."""

    def __init__(
        self, capacity: float, seconds: float = 0.1, noise: float = 0.01, seed: int = 1, **changes: Any
    ) -> None:
        self.capacity, self.seconds, self.noise, self.changes = capacity, seconds, noise, changes
        self.draw = random.Random(seed)
        self.loads: list[Load] = []

    def __call__(self, load: Load) -> LoadResult:
        self.loads.append(load)
        offered = load.offered if load.is_open else (load.concurrency or 1) / self.seconds
        assert offered is not None
        through = min(offered, self.capacity) * (
            1 + self.draw.uniform(-1, 1) * self.noise * (offered >= self.capacity)
        )
        late = max(0.0, offered - self.capacity) * load.seconds / self.capacity if load.is_open else 0.0
        latency = max(self.seconds, (load.concurrency or 0) / self.capacity) + late / 2
        found = result(
            throughput=Figure(through, through * 0.99, through * 1.01),
            offered_rate=load.offered,
            achieved_rate=load.offered or through,
            concurrency=through * latency,
            times={"ttft": times(latency / 2), "latency": times(latency)},
        )
        return judge_load(replace(found, **self.changed(load, offered)), load)

    def changed(self, load: Load, offered: float) -> dict[str, Any]:
        return self.changes


def search(server: Server, slo: str | None = None, **base: Any) -> Capacity:
    load = Load(Arrivals.CLOSED, objectives=objectives_of(slo) if slo else (), **base)
    return Search(load, 4.0, server).run()


@settings(max_examples=40)
@given(st.floats(0.5, 20_000), st.floats(0.001, 2.0), st.integers(0, 1000))
def test_a_known_capacity_is_found_within_five_percent(capacity: float, seconds: float, seed: int) -> None:
    assume(capacity * seconds < 3000)  # The closed loop tries no more in flight.
    found = search(Server(capacity, seconds, seed=seed))
    assert found.sustained is not None
    assert found.broken is not None
    assert found.sustained == pytest.approx(capacity, rel=0.05)
    assert found.sustained < found.broken <= found.sustained * 1.51
    assert found.cause == "saturation"
    assert found.confirmed


def test_a_step_that_was_broken_off_decides_nothing(wording: Wording) -> None:
    class Stopped(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            return {"is_cut": True, "throughput": Figure(0.0)} if len(self.loads) > 6 else {}

    server = Stopped(100.0)
    found = Search(Load(Arrivals.CLOSED), 4.0, server, lambda: len(server.loads) > 6).run()
    assert len(server.loads) == 7
    assert len(found.steps) == 6
    assert not any(step.result.is_cut for step in found.steps)
    assert found.is_cut
    wording(*found.warnings)


def test_the_knee_is_where_more_at_a_time_no_longer_help() -> None:
    found = search(Server(160.0, 0.1))
    assert found.knee == 16
    assert found.highest_throughput == pytest.approx(160, rel=0.02)
    assert [step.concurrency for step in found.steps if step.concurrency] == [1, 2, 4, 8, 16, 32, 32]


def test_an_objective_may_break_before_the_server_is_full(wording: Wording) -> None:
    """Times grow with the load from half of the capacity on."""

    class Slow(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            busy = min(offered / self.capacity, 0.999)
            return {"times": {"ttft": times(0.05 / (1 - busy)), "latency": times(0.1)}}

    found = search(Slow(200.0, 0.1), "ttft_p95<100ms")
    assert found.sustained == pytest.approx(100.0, rel=0.05)
    assert found.cause == "latency"
    assert "ttft_p95<100ms" in found.why
    wording(found.why)
    assert found.confirmed


def test_errors_beyond_a_rate_are_named_as_the_cause(wording: Wording) -> None:
    class Limited(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            share = max(0.0, 1 - 120 / offered) if load.is_open else 0.0
            return {"error_rate": Figure(share), "errors": {"http_429": int(share * 1000)} if share else {}}

    found = search(Limited(200.0), "error_rate<1%")
    assert found.sustained == pytest.approx(120.0, rel=0.05)
    assert found.cause == "errors"
    assert "http_429" in found.why
    wording(found.why)


def test_our_own_limit_is_not_taken_for_the_servers(wording: Wording) -> None:
    class Tired(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            if not load.is_open:
                return {}
            sent = min(offered, 150.0)
            return {
                "throughput": Figure(sent, sent * 0.99, sent * 1.01),
                "achieved_rate": sent,
                "cpu_share": 0.99 if offered > 150 else 0.5,
            }

    found = search(Tired(10_000.0, 1.0), concurrency=200)
    assert found.cause == "generator"
    wording("\n".join(found.warnings))


def test_a_step_in_which_this_machine_was_busy_for_a_moment_is_repeated() -> None:
    class OnceBusy(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            return {"cpu_share": 0.99} if len(self.loads) == 3 else {}

    found = search(OnceBusy(100.0))
    assert found.sustained == pytest.approx(100.0, rel=0.05)
    assert found.cause == "saturation"
    assert all(step.broken_by != "generator" for step in found.steps)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"error_rate": Figure(0.2), "errors": {"no_descriptors": 200}}, "generator"),
        ({"error_rate": Figure(0.2), "errors": {"no_ports": 190, "http_503": 10}}, "generator"),
        ({"error_rate": Figure(0.2), "errors": {"no_ports": 10, "http_503": 190}}, "errors"),
        ({"lag_p99": 0.03, "throughput": Figure(80.0, 79.0, 81.0)}, "generator"),
        ({"lag_p99": 0.001, "throughput": Figure(80.0, 79.0, 81.0)}, "saturation"),
        ({"cpu_share": 0.97, "throughput": Figure(80.0, 79.0, 81.0)}, "generator"),
        ({"lag_p99": 0.03}, None),
    ],
)
def test_limits_of_this_machine_are_no_errors_of_the_server(
    changes: dict[str, Any], cause: str | None
) -> None:
    load = Load(Arrivals.CONSTANT, stages=((4.0, 100.0, 100.0),), seconds=4.0)
    assert breach(result(**changes), load)[0] == cause


def test_a_server_that_answers_nothing_sustains_nothing() -> None:
    dead = Server(
        100.0,
        throughput=Figure(0.0),
        error_rate=Figure(1.0),
        errors={"refused": 9},
        requests_completed=0,
        times={},
    )
    found = search(dead)
    assert found.sustained is None
    assert found.cause == "errors"
    assert "refused" in found.why
    assert len(dead.loads) == 1


def test_an_objective_that_is_broken_from_the_start_sustains_nothing() -> None:
    found = search(Server(100.0, 0.1), "latency_p95<1ms")
    assert found.sustained is None
    assert found.cause == "latency"
    assert len(found.steps) < 40


def test_a_capacity_that_moves_is_reported(wording: Wording) -> None:
    """From one saturated step to the next it changes by a quarter."""

    class Moody(Server):
        def __call__(self, load: Load) -> LoadResult:
            self.noise = 0.25
            found = super().__call__(load)
            half = found.throughput.value * 0.05
            return replace(
                found,
                throughput=Figure(
                    found.throughput.value, found.throughput.value - half, found.throughput.value + half
                ),
            )

    found = search(Moody(200.0, seed=3))
    low, high = found.interval
    assert low is not None
    assert high is not None
    assert low < 0.9 * 200 < 200 < high
    wording("\n".join(found.warnings))


def test_a_step_tells_the_time_that_the_objective_is_about(wording: Wording) -> None:
    steps = search(Server(160.0, 0.1), "ttft_p99<500ms,error_rate<1%").steps
    told = step_text(steps[0])
    assert "P99 50 ms" in told
    wording(told)
    told = step_text(search(Server(160.0, 0.1)).steps[0])
    assert "P95 100 ms" in told
    wording(told)


def test_a_search_that_is_stopped_tells_what_it_knew(wording: Wording) -> None:
    server = Server(160.0)
    found = Search(Load(Arrivals.CLOSED), 4.0, server, lambda: len(server.loads) >= 7).run()
    assert len(server.loads) == 7
    assert found.is_cut
    assert not found.confirmed
    wording(*found.warnings)


def test_a_slow_server_gets_longer_steps_and_still_ends() -> None:
    server = Server(0.6, 20.0)
    found = search(server)
    assert found.sustained == pytest.approx(0.6, rel=0.05)
    assert all(math.isfinite(load.seconds) and load.seconds <= 6 * 20 for load in server.loads)


def test_what_was_borne_has_no_cause() -> None:
    load = Load(Arrivals.CONSTANT, stages=((4.0, 100.0, 100.0),), seconds=4.0)
    assert breach(result(), load) == (None, "")


def test_rates_are_offered_by_chance_where_that_is_asked_for() -> None:
    server = Server(100.0)
    Search(Load(Arrivals.POISSON), 4.0, server).run()
    assert {load.arrivals for load in server.loads} == {Arrivals.CLOSED, Arrivals.POISSON}
    server = Server(100.0)
    Search(Load(Arrivals.CONSTANT), 4.0, server).run()
    assert {load.arrivals for load in server.loads} == {Arrivals.CLOSED, Arrivals.CONSTANT}


@pytest.mark.parametrize(
    ("slo", "cause"), [(None, "errors"), ("error_rate<20%", None), ("error_rate<1%", "errors")]
)
def test_an_objective_on_errors_decides_how_many_are_too_many(slo: str | None, cause: str | None) -> None:
    load = Load(Arrivals.CLOSED, concurrency=10, objectives=objectives_of(slo) if slo else ())
    found = judge_load(
        result(offered_rate=None, errors={"http_500": 100}, error_rate=Figure(0.1, 0.08, 0.12)), load
    )
    assert breach(found, load)[0] == cause
