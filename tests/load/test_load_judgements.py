"""May a load be believed, did the server keep up, was the objective met: by results made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.load.results import result, times
from tests.wording import Wording

from assay.analysis.load.judgement import judge_load
from assay.load.build import LoadOptions, bounds_of
from assay.load.load_shape import load_for
from assay.model.figure import Figure
from assay.model.load import Arrivals, Load, LoadResult, ObjectiveResult
from assay.model.load_generator import GeneratorResult
from assay.spec.load_settings import objectives_of

OPEN = Load(Arrivals.CONSTANT, stages=((10.0, 100.0, 100.0),), seconds=10.0)
CLOSED = Load(Arrivals.CLOSED, concurrency=10, seconds=10.0)


def judge(load: Load = OPEN, **changes: Any) -> LoadResult:
    return judge_load(result(**changes), load)


def test_a_load_as_it_should_be_is_valid_and_says_nothing() -> None:
    for load in (OPEN, CLOSED):
        found = judge(load)
        assert (found.is_valid, found.is_saturated, found.warnings) == (True, False, ())
        assert found.goodput is None


SHORT: dict[str, Any] = {"throughput": Figure(70.0, 69.0, 71.0), "latency_growth": 0.43}


def test_fewer_answers_than_were_offered_while_latency_grows_is_saturation(wording: Wording) -> None:
    found = judge(**SHORT)
    assert found.is_saturated
    assert found.is_valid
    assert "70 answers/s" in found.warnings[0]
    assert " 100 requests/s" in found.warnings[0]
    wording(found.warnings[0])


def test_fewer_answers_within_what_chance_explains_is_no_saturation() -> None:
    assert not judge(throughput=Figure(97.0, 93.0, 101.0)).is_saturated


def test_failed_answers_are_answers_to_what_was_offered() -> None:
    assert not judge(throughput=Figure(70.0, 69.0, 71.0), error_rate=Figure(0.3, 0.28, 0.32)).is_saturated


def test_a_server_that_only_fails_is_not_called_saturated() -> None:
    assert not judge(throughput=Figure(0.0), error_rate=Figure(1.0), requests_completed=0).is_saturated


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"lag_p99": 0.0051}, "5.1 ms"),
        ({"cpu_share": 0.91}, "91 %"),
    ],
)
def test_a_generator_that_is_the_limit_is_blamed_and_not_the_server(
    changes: dict[str, Any], told: str, wording: Wording
) -> None:
    found = judge(**changes, **SHORT)
    assert told in found.warnings[0]
    assert found.doubts == found.warnings
    assert not found.is_valid
    assert not found.is_saturated
    wording(*found.warnings)


@pytest.mark.parametrize("changes", [{"lag_p99": 0.005}, {"cpu_share": 0.9}, {"achieved_rate": 99.0}])
def test_at_the_limits_a_load_is_still_valid(changes: dict[str, Any]) -> None:
    assert judge(**changes).is_valid


@pytest.mark.parametrize("achieved", [98.9, 101.1])
def test_a_rate_off_by_more_than_a_percent_is_not_what_was_asked_for(
    achieved: float, wording: Wording
) -> None:
    found = judge(achieved_rate=achieved)
    assert not found.is_valid
    assert found.warnings[0].startswith(f"{achieved:.3g} of 100 ")
    wording(found.warnings[0])


def test_arrivals_by_chance_may_be_off_by_chance() -> None:
    chance = Load(Arrivals.POISSON, stages=((10.0, 100.0, 100.0),), seconds=10.0)
    assert judge(chance, achieved_rate=105.0).is_valid
    assert not judge(chance, achieved_rate=85.0).is_valid


def test_a_concurrency_off_by_more_than_two_percent_is_not_what_was_asked_for(wording: Wording) -> None:
    assert judge(CLOSED, concurrency=9.85).is_valid
    found = judge(CLOSED, concurrency=9.0)
    assert not found.is_valid
    assert found.warnings[0].startswith("9 of 10 ")
    wording(found.warnings[0])
    assert judge(Load(Arrivals.CLOSED, concurrency=10, think_seconds=1.0), concurrency=5.0).is_valid


def test_limits_of_this_machine_are_not_the_servers(wording: Wording) -> None:
    found = judge(errors={"no_descriptors": 5, "no_ports": 2})
    assert not found.is_valid
    assert "7 requests" in found.warnings[0]
    wording(found.warnings[0])


def test_a_worker_that_was_lost_makes_a_load_doubtful(wording: Wording) -> None:
    found = judge(workers_lost=1, errors={"worker_lost": 3})
    assert not found.is_valid
    assert found.warnings[0].startswith("1 of 1 ")
    assert "3 requests" in found.warnings[0]
    wording(found.warnings[0])


def test_lost_workers_are_counted_among_those_of_their_generator() -> None:
    fine = GeneratorResult("a", 2, 500, 500, 0.0002, 0.1, 1e-5)
    found = judge(workers_lost=1, generators=(fine, replace(fine, node="b", lost="a worker died")))
    assert found.warnings[0].startswith("1 of 2 ")


@pytest.mark.parametrize(
    ("changes", "figures"),
    [
        ({"is_steady": False}, []),
        ({"requests_completed": 29}, ["29 "]),
        ({"errors": {"http_500": 3, "timeout": 20}}, ["23 of 1,000 ", "timeout 20, http_500 3"]),
        ({"counts_pieces": True}, []),
    ],
    ids=["unsteady", "few", "errors", "pieces"],
)
def test_remarks_do_not_make_a_load_invalid(
    changes: dict[str, Any], figures: list[str], wording: Wording
) -> None:
    found = judge(**changes)
    assert found.is_valid
    assert not found.doubts
    assert all(figure in found.warnings[0] for figure in figures)
    wording(found.warnings[0])


def test_what_was_cut_off_has_not_failed() -> None:
    assert judge(errors={"cut_off": 32}).warnings == ()


def held(text: str, **changes: Any) -> list[bool | None]:
    load = Load(Arrivals.CONSTANT, stages=OPEN.stages, seconds=10.0, objectives=objectives_of(text))
    return [one.is_met for one in judge_load(result(**changes), load).held]


def test_an_objective_whose_limit_is_within_the_interval_is_not_certain() -> None:
    (objective,) = objectives_of("error_rate<1%")
    spans = {"wide": (0.0, 0.0188), "narrow": (0.0, 0.004), "above": (0.012, 0.03)}
    values = {"wide": 0.0, "narrow": 0.0, "above": 0.02}
    held = {
        name: ObjectiveResult(objective, Figure(values[name], *span), objective.is_met_by(values[name]))
        for name, span in spans.items()
    }
    assert {name: one.is_certain for name, one in held.items()} == {
        "wide": False, "narrow": True, "above": True,
    }  # fmt: skip
    assert ObjectiveResult(objective, Figure(0.0), True).is_certain is None


def test_objectives_are_held_against_their_figures() -> None:
    assert held("ttft_p95<60ms,ttft_p95<50ms,ttft_p95<=50ms,latency_max<0.2s") == [True, False, True, True]
    assert held("error_rate<1%, error_rate<=0%, error_rate<0%") == [True, True, False]
    assert held("throughput>=100,throughput>100,tokens>1e3,goodput>80") == [True, False, True, True]


def test_an_objective_that_nothing_was_measured_for_is_neither_met_nor_broken() -> None:
    assert held("itl_p95<10ms") == [None]
    assert held("error_rate<1%", requests_sent=0) == [None]


def test_an_objective_carries_its_interval_and_brings_goodput() -> None:
    load = Load(
        Arrivals.CONSTANT, stages=OPEN.stages, seconds=10.0, objectives=objectives_of("ttft_p95<60ms")
    )
    found = judge_load(result(times={"ttft": times(0.05)}), load)
    assert found.held[0].figure is not None
    assert found.held[0].figure.low == pytest.approx(0.045)
    assert found.goodput == Figure(90.0, 89.0, 91.0)


def test_goodput_asks_each_request_to_keep_to_the_strictest_limit() -> None:
    bounds = bounds_of(
        objectives_of("ttft_p99<2s,ttft_p50<1s,itl_p95<20ms,tpot_p50<30ms,latency_p95>1s,error_rate<1%")
    )
    assert (bounds.ttft, bounds.tpot, bounds.latency) == (1.0, 0.02, float("inf"))


def test_a_warmup_may_be_as_long_as_the_stages_have_time_for_it() -> None:
    stages = load_for(LoadOptions("http://127.0.0.1:9/v1", stages="30s@50,60s@200", warmup="15s"))
    assert (stages.warmup, stages.seconds) == (15.0, 90.0)


def test_a_load_that_was_over_before_its_warmup_says_so(wording: Wording) -> None:
    load = replace(CLOSED, warmup=5.0)
    assert judge(load, measured_from=5.0).warnings == ()
    (told,) = judge(load, measured_from=0.0).warnings
    assert " 5 s" in told
    wording(told)


def test_fewer_answers_than_were_offered_are_no_saturation_while_latency_stays_the_same() -> None:
    assert not judge(throughput=Figure(70.0, 69.0, 71.0)).is_saturated


def test_a_window_of_a_few_latencies_is_remarked_with_how_long_it_should_be() -> None:
    slow = {"latency": times(2.0)}
    assert judge(CLOSED, times=slow, measured_seconds=20.0).warnings == ()
    found = judge(CLOSED, times=slow, measured_seconds=7.0, measured_from=3.0)
    assert found.is_valid
    assert "--duration 26" in found.warnings[0]
    counted = judge(replace(CLOSED, count=100), times=slow, measured_seconds=7.0)
    assert "--requests" in counted.warnings[0]


def test_first_tokens_that_cannot_be_timed_are_counted_when_they_are_many() -> None:
    assert judge(ttft_censored=10).warnings == ()
    assert "11 of 1,000" in judge(ttft_censored=11).warnings[0]


def test_an_aborted_load_is_not_judged_by_its_length_or_its_rate() -> None:
    short: dict[str, Any] = {
        "requests_sent": 51,
        "requests_completed": 16,
        "measured_seconds": 0.25,
        "achieved_rate": 89.0,
        "is_cut": True,
    }
    assert not judge(**short).is_valid
    found = judge(**short, aborted="error_rate>5%: 28.6 %")
    assert (found.is_valid, found.warnings) == (True, ())
    assert not judge(**short, aborted="error_rate>5%: 28.6 %", cpu_share=0.95).is_valid
