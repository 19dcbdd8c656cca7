"""What scenarios make of what they are answered, by rules with known figures."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.load.results import times
from tests.stress.benches import RuleBench, moment, stretch
from tests.wording import Wording

from assay.analysis.load.stress import score_of
from assay.builtin.scenarios.concurrent_requests import ConcurrentRequests
from assay.builtin.scenarios.failure_recovery import (
    _NAMES,
    FailureRecovery,
    count_injected_failures,
    judge_duplicates,
    lost,
)
from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.large_inputs import LargeInputs
from assay.builtin.scenarios.memory_pressure import MemoryPressure
from assay.builtin.scenarios.rate_limiting import RateLimiting, judge_completion
from assay.builtin.scenarios.spike_load import SpikeLoad
from assay.builtin.scenarios.sustained_load import SustainedLoad
from assay.load.build import LoadOptions
from assay.load.fault import NOTHING, Change, Fault, FaultKind, Passage, Traffic
from assay.load.stress.subject import StressSubject
from assay.load.tally import Bounds
from assay.model import AgentUse
from assay.model.figure import Figure
from assay.model.load import Arrivals, Load
from assay.model.stress import Breach, Sample, ScenarioFinding, ScenarioJudgement, Stretch
from assay.plugin import lookup
from assay.plugin.scenario import Scenario
from assay.report.stress import judgement_text
from assay.stats.verdicts import wilson
from assay.units import percent

LATE = Breach(0.0, 0.0, "at a time", "latency", "too late")
HIGH = Load(Arrivals.CONSTANT, stages=((1.0, 8.0, 8.0),), seconds=1.0)
CALM = (moment(0), moment(1), moment(2))


def judged(found: ScenarioFinding) -> dict[str, float | None]:
    return {one.name: one.value for one in found.judgements}


@pytest.mark.parametrize(
    ("changed", "held_up", "told"),
    [
        ({}, 2.0, " 2 s "),
        ({"errors": {"no_ports": 2, "no_descriptors": 1}}, 0.0, "3 requests "),
        ({"cpu_share": 0.99}, 0.0, " 1 of 1 "),
    ],
    ids=["held_up", "no_ports", "busy"],
)
def test_what_this_machine_could_not_do_is_reported(
    changed: dict[str, Any], held_up: float, told: str, wording: Wording
):
    bench = RuleBench(lambda load, prompts: replace(stretch(load, moments=CALM, **changed), held_up=held_up))
    (warning,) = HighLoad(seconds=1.0).run(bench).warnings
    assert told in warning
    wording(warning)


@pytest.mark.parametrize("given_", [{"header": ("x: y",)}, {"insecure": True}, {"ca_file": "some.pem"}])
@pytest.mark.parametrize("scenario", [FailureRecovery(), RateLimiting()], ids=lambda one: one.name)
def test_what_only_the_engine_can_send_leaves_out_what_an_agent_has_to_send(
    scenario: FailureRecovery | RateLimiting, given_: dict[str, Any], wording: Wording
):
    bench = RuleBench(lambda load, prompts: stretch(load))
    use = AgentUse("served", "openai", {"base_url": "https://127.0.0.1:9/v1", "model": "m"})
    bench.subject = StressSubject(LoadOptions("served"), use)
    assert scenario.not_for(bench) == ""
    bench.subject = StressSubject(LoadOptions("served", **given_), use)
    told = scenario.not_for(bench)
    assert re.findall(r"--[a-z-]+", told) == ["--header", "--insecure", "--ca-file"]
    wording(told)


def test_the_eight_scenarios_are_found_by_name_in_full_and_quick():
    names = lookup.known("scenarios")
    assert len(names) == 8
    for name in names:
        member = lookup.find("scenarios", name)
        for made in (member(), member.quick()):
            assert isinstance(made, Scenario)
            assert made.name == name
        assert member() != member.quick()


def test_sizes_are_those_of_the_method():
    assert (HighLoad().seconds, HighLoad().concurrency, HighLoad().times) == (300.0, 100, 10.0)
    assert SustainedLoad().seconds == 1800.0
    assert (SpikeLoad().before, SpikeLoad().spike, SpikeLoad().after) == (60.0, 30.0, 60.0)
    assert (SpikeLoad.quick().before, SpikeLoad.quick().spike, SpikeLoad.quick().after) == (3.0, 2.0, 3.0)
    assert ConcurrentRequests().levels == tuple(2**n for n in range(10))
    assert ConcurrentRequests.quick().levels[-1] == 64
    assert (LargeInputs().sizes[0], LargeInputs().sizes[-1], LargeInputs().each) == (1_000, 10_000_000, 20)
    assert LargeInputs.quick().sizes[-1] == 1_000_000
    assert (RateLimiting().share, RateLimiting().retry_after, RateLimiting.quick().seconds) == (0.5, 1.0, 5.0)
    assert (FailureRecovery().seconds, FailureRecovery().rounds) == (10.0, 3)
    times = FailureRecovery().timetable()
    assert [at for at, _ in times] == [10.0 * (n + 1) for n in range(30)]
    assert [fault.kind for _, fault in times[::2]] == [*["refuse", "answer", "reset", "stall", "slow"]] * 3
    assert {fault.kind for _, fault in times[1::2]} == {"none"}
    assert (MemoryPressure().steps[0], MemoryPressure().steps[-1], len(MemoryPressure.quick().steps)) == (
        4.0,
        1.0,
        3,
    )


def test_answers_that_take_long_are_no_load_that_was_not_sustained():
    """Those of the last requests come after the rate has ended."""

    def rule(load: Load, cases: Sequence[str]) -> Stretch:
        return stretch(load, completed=round(load.stages[0][1] * load.seconds), duration=load.seconds + 6.0)

    found = HighLoad(seconds=10.0, recovery_seconds=1.0).run(RuleBench(rule))
    assert found.load_borne == pytest.approx(found.load_asked)


def test_latency_that_grows_is_load_that_was_not_sustained():
    def rule(load: Load, cases: Sequence[str]) -> Stretch:
        return stretch(load, completed=round(load.stages[0][1] * load.seconds), latency_growth=1.0)

    found = HighLoad(seconds=10.0, recovery_seconds=1.0).run(RuleBench(rule))
    assert found.load_borne == pytest.approx(found.load_asked / 2)


def test_high_load_asks_ten_times_the_base_and_says_what_part_came_back():
    def rule(load: Load, prompts: object) -> Stretch:
        if load.concurrency == 100:
            return stretch(load, completed=250, good=100, offered=1000, breach=LATE, duration=10.0)
        return stretch(load, moments=CALM)

    bench = RuleBench(rule)
    found = HighLoad(seconds=10.0, recovery_seconds=3.0).run(bench)
    assert bench.put_so_far[0].stages == ((10.0, 100.0, 100.0),)
    assert (found.load_asked, found.load_borne) == (100.0, 25.0)
    assert judged(found)["load_borne"] == pytest.approx(0.25)
    assert (found.recovery, found.is_recovered) == (0.0, True)
    # 100 of 1,000 in time, a quarter borne, nothing to recover from
    assert score_of(found).value == pytest.approx(0.1 * 0.25)


def test_an_agent_that_answers_nothing_after_the_pressure_is_dead():
    def rule(load: Load, prompts: object) -> Stretch:
        return (
            stretch(load, breach=LATE)
            if load.concurrency == 100
            else stretch(load, completed=0, errors={"refused": 9})
        )

    found = HighLoad(seconds=1.0, recovery_seconds=1.0).run(RuleBench(rule))
    assert found.is_dead
    assert score_of(found).value == 0.0


def test_latency_and_memory_that_creep_are_found_with_their_slopes():
    course = tuple(moment(n, 0.1 + 0.01 * n) for n in range(30))
    bench = RuleBench(lambda load, prompts: stretch(load, moments=course, times={"latency": times(0.2)}))
    bench.sampled = tuple(Sample(float(n), 0.1, 10**8 + n * 10**7) for n in range(30))
    found = SustainedLoad(seconds=30.0).run(bench)
    by_name = {one.name: one for one in found.judgements}
    # A hundredth of a second each second, and ten million bytes
    assert by_name["latency_drift"].value == pytest.approx(0.6)
    assert by_name["memory_drift"].value == pytest.approx(6e8)
    assert by_name["latency_drift"].is_fine is False
    assert by_name["memory_drift"].is_fine is False
    assert by_name["late_errors"].is_fine is True


def test_what_stays_level_does_not_drift_and_errors_that_come_late_are_reported():
    steady = [moment(n, 0.1 + 0.001 * (n % 2)) for n in range(20)]
    course = tuple(steady + [moment(20 + n, 0.1 + 0.001 * (n % 2), 5, 5) for n in range(10)])
    found = SustainedLoad(seconds=30.0).run(RuleBench(lambda load, prompts: stretch(load, moments=course)))
    by_name = {one.name: one for one in found.judgements}
    assert by_name["latency_drift"].is_fine is True
    assert "memory_drift" not in by_name
    assert (by_name["late_errors"].value, by_name["late_errors"].is_fine) == (0.5, False)
    low, high = wilson(0.5, 100)
    assert judgement_text(by_name["late_errors"]).endswith(f"[{percent(low)}, {percent(high)}]")


def test_a_share_that_is_nothing_reads_as_0_percent_whatever_rounding_left_of_it():
    told = ScenarioJudgement("late_errors", "0 % failed", 0.0, 2.16e-19, 0.00252, "share")
    interval = "[0 %, 0.252 %]"
    assert judgement_text(told) == f"{told.text} {interval}"


def test_one_request_is_one_request(wording: Wording):
    twice = judge_duplicates(Traffic(())).text
    assert twice.startswith("0 requests ")
    lone = stretch(Load(Arrivals.CONSTANT, stages=((1.0, 1.0, 1.0),), seconds=1.0), offered=1, completed=0)
    assert lost(lone).text.startswith("1 of 1 ")
    assert judge_completion(lone).text.startswith("0 of 1 ")
    wording("\n".join((twice, lost(lone).text, judge_completion(lone).text)))


def test_a_spike_is_judged_by_what_came_back_in_it_and_how_long_it_was_felt():
    course = (moment(0), moment(1, 2.0, 30, 10), moment(2, 2.0, 30, 0), moment(3, 1.0), moment(4), moment(5))
    bench = RuleBench(lambda load, prompts: stretch(load, moments=course, breach=LATE, good=40, offered=220))
    found = SpikeLoad(before=1.0, spike=2.0, after=3.0).run(bench)
    assert bench.put_so_far[0].stages == ((1.0, 10.0, 10.0), (2.0, 100.0, 100.0), (3.0, 10.0, 10.0))
    assert (found.load_asked, found.load_borne) == (100.0, 30.0)
    assert (found.recovery, found.is_recovered) == (1.0, True)
    assert judged(found)["spike_errors"] == pytest.approx(10 / 70)
    assert score_of(found).value == pytest.approx(40 / 220 * 0.3 / (1 + 1 / 6))


def test_concurrency_shows_its_knee_and_the_level_at_which_it_broke():
    rates = {1: 10.0, 2: 20.0, 4: 40.0, 8: 41.0, 16: 41.0, 32: 41.0, 64: 41.0}

    def rule(load: Load, prompts: object) -> Stretch:
        level = load.concurrency or 0
        if load.is_open:
            return stretch(load, moments=CALM)
        breach = LATE if level > 13 else None
        rate = rates.get(level, 41.0)
        return stretch(load, throughput=Figure(rate), breach=breach, fairness=0.7 if level == 32 else 1.0)

    found = ConcurrentRequests(levels=tuple(rates), seconds=1.0, recovery_seconds=1.0).run(RuleBench(rule))
    told = judged(found)
    assert told["knee"] == 4.0
    assert told["speedup"] == pytest.approx(4.1)
    assert told["fairness"] == 0.7
    # 32 broke as well, so 64 was not tried any more; between 8 and 16 the gap was halved: 13 held, 14 did not
    assert (found.load_asked, found.load_borne, found.seconds) == (64.0, 13.0, 6.0)
    assert found.is_broken
    assert [(one.load, one.is_broken) for one in found.points if one.is_probe] == [
        (11.0, False),
        (13.0, False),
        (14.0, True),
    ]
    # What was only put to find the breaking point does not count in the score.
    assert found.offered == 600


def test_a_little_more_at_twice_the_level_does_not_move_the_knee():
    # A server with eight places whose callers need a moment between an answer and the next request
    rates = {1: 6.9, 2: 13.6, 4: 26.5, 8: 52.3, 16: 54.9, 32: 54.9}
    bench = RuleBench(
        lambda load, prompts: (
            stretch(load, moments=CALM)
            if load.is_open
            else stretch(load, throughput=Figure(rates[load.concurrency or 0]))
        )
    )
    found = ConcurrentRequests(levels=tuple(rates), seconds=1.0, recovery_seconds=1.0).run(bench)
    assert judged(found)["knee"] == 8.0


def test_large_inputs_grow_by_a_power_and_say_what_is_refused_and_how():
    def rule(load: Load, prompts: list[str]) -> Stretch:
        if not prompts:
            return stretch(load, moments=CALM)
        size = len(prompts[0])
        if size > 250_000:
            return stretch(load, completed=0, errors={"http_413": 4}, good=0)
        return stretch(load, completed=4, latencies=[1e-6 * size * wobble for wobble in (0.9, 1.1, 1.0, 1.0)])

    found = LargeInputs(each=4).run(RuleBench(rule))  # type: ignore[arg-type]
    by_name = {one.name: one for one in found.judgements}
    assert by_name["growth_exponent"].value == pytest.approx(1.0, abs=0.02)
    assert by_name["largest_accepted"].value == pytest.approx(250_000, rel=0.05)
    assert by_name["refusal"].is_fine is True
    assert found.breach is not None
    assert found.breach.load == pytest.approx(250_000, rel=0.05)
    assert found.breach.cause == "errors"
    # 12 of 20: the largest size was not even put, as nothing of the one before was accepted
    assert (found.offered, found.good) == (20, 12)
    assert score_of(found).value == pytest.approx(12 / 20 * found.load_borne / 10_000_000)


def test_longer_contexts_that_end_the_connection_are_no_graceful_refusal():
    def rule(load: Load, prompts: list[str]) -> Stretch:
        if not prompts:
            return stretch(load, moments=CALM)
        fails = len(prompts[0]) > 40_000
        return stretch(load, completed=0, errors={"reset": 4}) if fails else stretch(load, completed=4)

    found = MemoryPressure(contexts=(1_000, 10_000, 100_000, 1_000_000), each=4).run(RuleBench(rule))  # type: ignore[arg-type]
    by_name = {one.name: one for one in found.judgements}
    assert by_name["graceful"].is_fine is False
    # 40,000 bytes are ten thousand tokens
    assert (found.load_borne, found.load_asked, found.offered) == (10_000, 1_000_000, 16)


@pytest.mark.parametrize(
    ("scenario", "unit"),
    [
        (MemoryPressure(contexts=(1_000, 10_000, 100_000), each=4), "tokens"),
        (LargeInputs(sizes=(4_000, 40_000, 400_000), each=4), "bytes"),
    ],
)
def test_an_objective_that_was_given_can_be_broken_by_every_pressure(scenario: Scenario, unit: str):
    def rule(load: Load, prompts: Sequence[str]) -> Stretch:
        is_slow = bool(prompts) and len(prompts[0]) > 30_000
        return stretch(load, completed=4, good=0 if is_slow else 4, breach=LATE if is_slow else None)

    bench = RuleBench(rule)
    assert scenario.run(bench).breach is None or unit == "bytes"
    bench.is_derived = False
    found = scenario.run(bench)
    assert found.breach is not None
    assert (found.breach.cause, found.breach.unit, found.breach.why) == (LATE.cause, unit, LATE.why)
    assert found.load_borne < found.breach.load < found.load_asked


def passages(*told: tuple[FaultKind, float, float | None]) -> Traffic:
    """Read slowly from 10 to 20; each request by its fault, when it came and when its answer was over."""
    changes = (Change(10.0, Fault.slow(1000)), Change(20.0, NOTHING))
    return Traffic(
        tuple(
            Passage(
                number, 1, str(number), arrived, fault, None, arrived, 200 if ended else None, ended, ended
            )
            for number, (fault, arrived, ended) in enumerate(told)
        ),
        changes,
        unread=1,
    )


def test_what_was_read_slowly_or_ended_by_us_is_not_held_against_a_server():
    traffic = passages(
        (FaultKind.NONE, 1.0, 1.2),  # fine
        (FaultKind.NONE, 9.5, 14.0),  # under way when it became slow
        (FaultKind.SLOW, 12.0, 19.0),
        (FaultKind.SLOW, 19.5, 20.1),
        (FaultKind.NONE, 20.5, 28.0),  # slow by itself
        (FaultKind.STALL, 21.0, None),
    )
    whole = stretch(HIGH, completed=5, offered=8, errors={"timeout": 2, "refused": 1}, good=1)
    # Three slow ones, the stalled, the one that was never read whole, and the one that found nobody
    assert count_injected_failures(traffic, whole, Bounds(latency=0.5)) == 6
    # Without a limit there is nothing that slow ones could have broken.
    kept = stretch(HIGH, completed=5, offered=8, errors={"timeout": 2, "refused": 1}, good=5)
    assert count_injected_failures(traffic, kept, Bounds()) == 3


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_no_more_is_excused_than_did_not_end_well(good: int, more: int, unread: int):
    whole = stretch(HIGH, completed=good, offered=good + more, good=good)
    assert 0 <= count_injected_failures(Traffic((), unread=unread), whole, Bounds()) <= more


def test_the_slowest_way_back_is_reported_by_its_name():
    bench = RuleBench(lambda load, prompts: stretch(load))
    assert {fault.kind for _, fault in FailureRecovery().timetable()} - {FaultKind.NONE} == set(_NAMES)
    assert FailureRecovery().not_for(bench) == ""


@pytest.mark.parametrize("scenario", [LargeInputs(), MemoryPressure()])
def test_a_page_that_is_only_fetched_has_no_input_to_make_larger(scenario: Scenario):
    from assay.load.build import LoadOptions
    from assay.load.stress.subject import StressSubject

    bench = RuleBench(lambda load, prompts: stretch(load))
    bench.subject = StressSubject(LoadOptions("http://127.0.0.1:9/page"))
    assert "only fetched" in scenario.not_for(bench)
    bench.subject = StressSubject(LoadOptions("http://127.0.0.1:9/page", prompt="hello"))
    assert scenario.not_for(bench) == ""


def test_rate_limiting_is_for_agents_whose_model_can_be_found(monkeypatch: pytest.MonkeyPatch):
    from assay.load.build import LoadOptions
    from assay.load.stress.subject import StressSubject
    from assay.model import AgentUse

    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    bench = RuleBench(lambda load, prompts: stretch(load))
    assert "URL" in RateLimiting().not_for(bench)
    program = {"command": ["python3", "x.py"]}
    bench.subject = StressSubject(LoadOptions("mine"), AgentUse("mine", "command", program))
    assert "OPENAI_BASE_URL" in RateLimiting().not_for(bench)
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:9000/v1"}
    bench.subject = StressSubject(LoadOptions("mine"), AgentUse("mine", "command", {**program, "env": env}))
    assert RateLimiting().not_for(bench) == ""
    moved = bench.subject.with_upstream_at("http://127.0.0.1:7000/v1")
    assert moved.options["env"] == {"OPENAI_BASE_URL": "http://127.0.0.1:7000/v1"}


def test_a_model_elsewhere_that_was_not_named_leaves_rate_limiting_out():
    env = {"OPENAI_BASE_URL": "https://gateway.example/v1"}
    use = AgentUse("mine", "command", {"command": ["python3", "x.py"], "env": env})
    bench = RuleBench(lambda load, prompts: stretch(load))
    bench.subject = StressSubject(LoadOptions("mine"), use)
    assert "--allow-host gateway.example" in RateLimiting().not_for(bench)
    bench.subject = StressSubject(LoadOptions("mine", allow_host=("gateway.example",)), use)
    assert RateLimiting().not_for(bench) == ""


def test_only_addresses_of_the_model_are_moved_behind_the_proxy():
    env = {
        "SEARCH_URL": "http://127.0.0.1:7000/find",
        "OPENAI_BASE_URL": "http://127.0.0.1:9000/v1",
        "CHECK_URL": "http://127.0.0.1:9000/health",
    }
    subject = StressSubject(LoadOptions("mine"), AgentUse("mine", "command", {"command": ["x"], "env": env}))
    assert subject.upstream() == env["OPENAI_BASE_URL"]
    assert subject.with_upstream_at("http://127.0.0.1:1").options["env"] == {
        "SEARCH_URL": "http://127.0.0.1:7000/find",
        "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
        "CHECK_URL": "http://127.0.0.1:1/health",
    }


def test_headers_that_were_given_are_sent_with_prompts_of_a_scenario_too():
    use = AgentUse("mine", "openai", {"base_url": "http://127.0.0.1:9/v1", "model": "m"})
    subject = StressSubject(LoadOptions("mine", header=("X-Team: blue",)), use)
    assert "x-team: blue" in str(subject.loaded(["hello"]).order["requests"]).lower()
