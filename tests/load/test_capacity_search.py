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

from assay.analysis.load import judged
from assay.execute.load.capacity import Search, breach
from assay.model.figure import Figure
from assay.model.load import Arrivals, Capacity, Load, LoadResult
from assay.report.capacity import capacity_document, capacity_text, step_text
from assay.spec.loading import objectives_of


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
        return judged(replace(found, **self.changed(load, offered)), load)

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
    assert found.broken == pytest.approx(capacity, rel=0.07)
    assert found.sustained < found.broken <= found.sustained * 1.031
    assert found.cause == "saturation"


def test_a_server_of_which_one_answer_takes_longer_than_a_step_gets_longer_steps() -> None:
    class Window(Server):
        """Nothing has come back when a step is over that is no longer than one answer."""

        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            return {"throughput": Figure(0.0)} if load.seconds <= self.seconds else {}

    server = Window(2.0, seconds=5.0)
    found = search(server)
    assert found.sustained == pytest.approx(2.0, rel=0.05)
    assert found.highest_throughput == pytest.approx(2.0, rel=0.05)
    assert min(load.seconds for load in server.loads[1:]) == 15.0
    assert any("steps lasted 30 s and not 4 s" in warning for warning in found.warnings)


def test_a_step_that_was_broken_off_decides_nothing() -> None:
    class Stopped(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            return {"is_cut": True, "throughput": Figure(0.0)} if len(self.loads) > 10 else {}

    server = Stopped(100.0)
    found = Search(Load(Arrivals.CLOSED), 4.0, server, lambda: len(server.loads) > 10).run()
    assert len(server.loads) == 11
    assert len(found.steps) == 10
    assert not any(step.result.is_cut for step in found.steps)
    assert any("cut short" in warning for warning in found.warnings)


def test_the_knee_is_where_more_at_a_time_no_longer_help() -> None:
    found = search(Server(160.0, 0.1))
    assert found.knee == 16
    assert found.highest_throughput == pytest.approx(160, rel=0.02)
    assert [step.concurrency for step in found.steps if step.concurrency] == [1, 2, 4, 8, 16, 32, 64]


def test_an_objective_may_break_before_the_server_is_full() -> None:
    """Times grow with the load from half of the capacity on."""

    class Slow(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            busy = min(offered / self.capacity, 0.999)
            return {"times": {"ttft": times(0.05 / (1 - busy)), "latency": times(0.1)}}

    found = search(Slow(200.0, 0.1), "ttft_p95<100ms")
    assert found.sustained == pytest.approx(100.0, rel=0.05)
    assert found.cause == "latency"
    assert "ttft_p95<100ms was not kept" in found.why
    assert found.confirmed


def test_errors_beyond_a_rate_are_named_as_the_cause() -> None:
    class Limited(Server):
        def changed(self, load: Load, offered: float) -> dict[str, Any]:
            share = max(0.0, 1 - 120 / offered) if load.is_open else 0.0
            return {"error_rate": Figure(share), "errors": {"http_429": int(share * 1000)} if share else {}}

    found = search(Limited(200.0), "error_rate<1%")
    assert found.sustained == pytest.approx(120.0, rel=0.05)
    assert found.cause == "errors"
    assert "most of them as http_429" in found.why


def test_our_own_limit_is_not_taken_for_the_servers() -> None:
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
    assert any("this machine could not send more" in warning for warning in found.warnings)  # fmt: skip


def test_a_server_that_answers_nothing_bears_nothing() -> None:
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


def test_an_objective_that_is_broken_from_the_start_bears_nothing() -> None:
    found = search(Server(100.0, 0.1), "latency_p95<1ms")
    assert found.sustained is None
    assert found.cause == "latency"
    assert len(found.steps) < 40


def test_a_limit_that_moves_is_told() -> None:
    """As soon as the answer is there, the server bears only half of it."""
    steps = len(search(Server(200.0)).steps)

    class Moody(Server):
        def __call__(self, load: Load) -> LoadResult:
            self.capacity = 200.0 if len(self.loads) < steps - 2 else 90.0
            return super().__call__(load)

    found = search(Moody(200.0))
    assert not found.confirmed
    assert any("The limit moves" in warning for warning in found.warnings)
    assert found.sustained is not None
    assert found.broken is not None
    assert found.highest_borne is not None
    tried = [step for step in found.steps if step.rate and step.broken_by]
    assert found.broken == min(step.rate for step in tried if step.rate)
    assert found.sustained < found.broken < found.highest_borne
    document = capacity_document(found)
    assert document["sustained_interval"] == [found.sustained, found.highest_borne]
    assert "the limit lies between" in capacity_text(document)


def test_where_all_that_was_borne_lies_above_what_was_not_the_search_goes_down() -> None:
    """From the second open step on it bears only a tenth: nothing that was borne before says anything."""

    class Fallen(Server):
        def __call__(self, load: Load) -> LoadResult:
            opened = sum(one.is_open for one in self.loads)
            self.capacity = 20.0 if load.is_open and opened >= 1 else 200.0
            return super().__call__(load)

    found = search(Fallen(200.0))
    assert found.sustained is None or found.sustained <= 20.5
    assert capacity_text(capacity_document(found)).count("180 requests/s") >= 1


def test_a_step_tells_the_time_that_the_objective_is_about() -> None:
    steps = search(Server(160.0, 0.1), "ttft_p99<500ms,error_rate<1%").steps
    assert "TTFT P99 50 ms" in step_text(steps[0])
    assert "latency P95 100 ms" in step_text(search(Server(160.0, 0.1)).steps[0])


def test_a_search_that_is_stopped_tells_what_it_knew() -> None:
    server = Server(160.0)
    found = Search(Load(Arrivals.CLOSED), 4.0, server, lambda: len(server.loads) >= 9).run()
    assert len(server.loads) == 9
    assert not found.confirmed
    assert any("cut short" in warning for warning in found.warnings)


def test_a_slow_server_gets_longer_steps_and_still_ends() -> None:
    server = Server(0.6, 20.0)
    found = search(server)
    assert found.sustained == pytest.approx(0.6, rel=0.05)
    assert all(math.isfinite(load.seconds) and load.seconds <= 2 * 6 * 20 for load in server.loads)


def test_what_was_borne_has_no_cause() -> None:
    load = Load(Arrivals.CONSTANT, stages=((4.0, 100.0, 100.0),), seconds=4.0)
    assert breach(result(), load) == (None, "")
