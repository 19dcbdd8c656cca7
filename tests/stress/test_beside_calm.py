"""Errors, latency and limits of our own, held against what was seen at the base rate: truth planted, no clock involved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.load.results import result, times
from tests.stress.benches import RuleBench, moment, stretch
from tests.stress.test_breaking import FINE, LATE, RATE, SLO, tally

from assay.analysis.load.stress import score_of, stress_finding
from assay.builtin.scenarios.high_load import HighLoad
from assay.builtin.scenarios.large_inputs import LargeInputs
from assay.builtin.scenarios.memory_pressure import MemoryPressure
from assay.builtin.scenarios.spike_load import SpikeLoad
from assay.builtin.scenarios.sustained_load import SustainedLoad
from assay.load.build import LoadOptions
from assay.load.stress.base_rate import deliverable, derive_objective
from assay.load.stress.breaking_point import Calm, breach_of, first_breach
from assay.load.stress.subject import StressSubject
from assay.model import AgentUse
from assay.model.bottleneck import rate_within
from assay.model.load import Arrivals, Load, Step
from assay.model.stress import CalmErrors, ErrorDetail, Sample, ScenarioFinding, ScenarioJudgement, Stretch
from assay.pipeline.stress import FULL, QUICK
from assay.plugin.scenario import Scenario
from assay.plugin.scenario_baseline import find_recovery_time

TEN_PERCENT = CalmErrors(10, 100, {"failed": 10}, (ErrorDetail("failed", "ValueError: row 17", 10),))
SLOT = (9, 1, 0.1)
"""Of a quarter of a second: nine answers, one failure, each after 100 ms."""


def test_one_quarter_of_a_second_breaks_nothing_and_a_breach_that_lasts_does():
    for sizes, enough in ((QUICK, 4), (FULL, 12)):
        for bad in (1, 2, 3):
            course = [FINE] * 6 + [LATE] * bad + [FINE] * (10 - bad)
            assert first_breach(tally(course), RATE, SLO, sizes.sustain) is None
        longer = replace(RATE, seconds=8.0, stages=((8.0, 40.0, 40.0),))
        course = [FINE] * 8 + [LATE] * enough + [FINE] * (24 - enough)
        breach = first_breach(tally(course), longer, SLO, sizes.sustain)
        assert breach is not None
        assert breach.at == 2.0
    assert FULL.sustain == 3.0


def test_a_quarter_of_a_second_after_the_pressure_is_nothing_to_recover_from():
    course = [moment(0.25 * n, 5.0 if n == 0 else 0.1, seconds=0.25) for n in range(8)]
    assert find_recovery_time(course, 0.0, times(0.1)) == (0.0, True)
    longer = [moment(0.25 * n, 5.0 if n < 4 else 0.1, seconds=0.25) for n in range(8)]
    assert find_recovery_time(longer, 0.0, times(0.1)) == (1.0, True)


def test_errors_that_are_there_in_calm_are_not_laid_at_the_load():
    failing = tally([SLOT] * 16)
    as_in_calm = first_breach(failing, RATE, SLO, 1.0, calm=Calm(errors=TEN_PERCENT))
    assert as_in_calm is not None
    assert (as_in_calm.cause, as_in_calm.is_in_calm, as_in_calm.is_by_pressure) == ("errors", True, False)
    clean = first_breach(failing, RATE, SLO, 1.0, calm=Calm(errors=CalmErrors(0, 100)))
    assert clean is not None
    assert clean.is_by_pressure
    worse = first_breach(tally([(4, 6, 0.1)] * 16), RATE, SLO, 1.0, calm=Calm(errors=TEN_PERCENT))
    assert worse is not None
    assert worse.is_by_pressure


def test_few_errors_of_few_requests_are_found_over_a_longer_time():
    # Five requests in a quarter of a second, and every other time one of them fails: no part is all bad.
    load = Load(Arrivals.CONSTANT, stages=((16.0, 20.0, 20.0),), seconds=16.0)
    course = [(4, 1, 0.1) if n % 2 else (5, 0, 0.1) for n in range(64)]
    breach = first_breach(tally(course), load, SLO, 1.0)
    assert breach is not None
    assert breach.cause == "errors"
    three_percent = [(4, 1, 0.1) if n % 7 == 0 else (5, 0, 0.1) for n in range(64)]
    assert first_breach(tally(three_percent), load, SLO, 1.0) is None


def test_latency_that_breaks_under_load_is_found_though_errors_are_there_in_calm():
    course = [SLOT] * 8 + [(9, 1, 0.3)] * 8
    breach = first_breach(tally(course), RATE, SLO, 1.0, calm=Calm(errors=TEN_PERCENT))
    assert breach is not None
    assert (breach.cause, breach.is_by_pressure, breach.at) == ("latency", True, 2.0)


def test_an_objective_that_is_not_kept_in_calm_is_not_broken_by_the_load():
    calm = Calm(times(0.3), unmet=frozenset({SLO[0].text}))
    breach = first_breach(tally([LATE] * 16), RATE, SLO, 1.0, calm=calm)
    assert breach is not None
    assert (breach.is_in_calm, breach.is_by_pressure) == (True, False)


@pytest.mark.parametrize(
    ("completed", "cause", "is_theirs"),
    [
        # 100 in flight for ten seconds: 0.1 s each is as at the base rate, 1 s each is not
        (10_000, "in_flight", False),
        (1_000, "latency", True),
    ],
)
def test_a_bound_of_ours_on_requests_in_flight_is_not_the_agents_limit(
    completed: int, cause: str, is_theirs: bool
):
    load = replace(RATE, concurrency=100)
    found = result(concurrency=100.0, requests_completed=completed, duration=10.0)
    breach = breach_of(tally([LATE] * 16), load, SLO, 1.0, found, calm=Calm(times(0.1)))
    assert breach is not None
    assert (breach.cause, breach.is_theirs) == (cause, is_theirs)


@pytest.mark.parametrize("scenario", [HighLoad(seconds=5.0), SpikeLoad()], ids=lambda one: one.name)
def test_answers_that_take_seconds_get_as_many_in_flight_as_they_need(scenario: Scenario):
    bench = RuleBench(lambda load, prompts: stretch(load, moments=(moment(0), moment(1))), base=20.0)
    bench.calm = times(3.0)
    bench.objectives = (derive_objective(bench.calm),)
    found = scenario.run(bench)
    load = bench.put_so_far[0]
    # 200/s of answers that may take 15 s
    assert max(rate for _, rate, _ in load.stages) == 200.0
    assert load.concurrency == 3000
    assert not found.warnings


def test_a_program_is_asked_no_more_than_its_processes_can_carry():
    bench = RuleBench(lambda load, prompts: stretch(load, moments=(moment(0), moment(1))), base=1000.0)
    use = AgentUse("mine", "command", {"command": ["x"]})
    bench.subject = StressSubject(LoadOptions("mine"), use)
    found = HighLoad(seconds=5.0).run(bench)
    most = bench.subject.most_in_flight
    # Half of the places, each for the 0.1 s that an answer takes at the base rate
    assert found.load_asked == pytest.approx(most / 2 / 0.1)
    assert " 10,000" in found.warnings[0]


def steps(*told: tuple[int, float, float, float]) -> list[Step]:
    """Requests at a time, answers per second, share of a core, latency."""
    from assay.model.figure import Figure

    return [
        Step(
            at_once,
            None,
            result(throughput=Figure(rate), cpu_share=share, times={"latency": times(latency)}),
            None,
        )
        for at_once, rate, share, latency in told
    ]


def test_the_base_is_bound_by_what_the_generator_can_deliver():
    # A core carries 1,000/s; half of it is what a load may need
    assert deliverable(steps((1, 20.0, 0.05, 0.05), (32, 600.0, 0.6, 0.05)), 1024) == pytest.approx(500.0)
    # Eight processes of 50 ms each: 160/s, and half of that
    assert deliverable(steps((1, 20.0, 0.01, 0.05), (8, 150.0, 0.05, 0.06)), 8) == pytest.approx(80.0)
    assert rate_within(8, 0.05) == 80.0
    assert deliverable([], 8) is None


def test_a_leak_and_a_retry_that_does_not_wait_lower_the_score():
    bench = RuleBench(lambda load, prompts: stretch(load, moments=tuple(moment(n) for n in range(30))))
    leak = tuple(Sample(float(n), 0.1, 10**8 + n * 47_000_000) for n in range(30))
    bench.sampled = leak
    found = SustainedLoad(seconds=30.0).run(bench)
    score = score_of(found)
    assert (score.share, score.sustained, score.recovering) == (1.0, 1.0, 0.5)
    assert (score.criteria_met, score.criteria_judged, score.faults, score.value) == (2, 3, 1, 0.5)
    drift = next(one for one in found.judgements if one.name == "memory_drift")
    assert drift.value == pytest.approx(60 * 47_000_000)
    bench.sampled = tuple(Sample(float(n), 0.1, 10**8 + 10_000 * (n % 3)) for n in range(30))
    assert score_of(SustainedLoad(seconds=30.0).run(bench)).value == 1.0


def test_what_a_program_needs_to_warm_up_is_no_leak():
    bench = RuleBench(lambda load, prompts: stretch(load, moments=tuple(moment(n) for n in range(30))))
    bench.sampled = tuple(Sample(float(n), 0.1, min(n, 5) * 10**7 + 10**7) for n in range(30))
    assert score_of(SustainedLoad(seconds=30.0).run(bench)).value == 1.0


def flaky(load: Load, prompts: Sequence[str]) -> Stretch:
    """One in three fails, whatever the input: with ten in a hundred at the base rate, that is no wonder of three."""
    if not prompts:
        return stretch(load, moments=(moment(0, 0.1, 9, 1), moment(1, 0.1, 9, 1)))
    return stretch(load, completed=2, errors={"failed": 1}, latencies=(0.1, 0.1))


@pytest.mark.parametrize(
    "scenario",
    [LargeInputs(each=3), MemoryPressure(each=3, contexts=(1_000, 8_000))],
    ids=lambda one: one.name,
)
def test_an_agent_that_fails_in_calm_gets_no_advice_about_size(scenario: Scenario):
    bench = RuleBench(flaky)
    bench.calm_errors = TEN_PERCENT
    found = scenario.run(bench)
    assert found.breach is None
    assert found.load_borne == found.load_asked
    assert [one.name for one in found.judgements if one.is_fine is False] == []
    assert found.recovery == 0.0


def test_advice_about_errors_in_calm_names_them_and_says_nothing_about_load():
    from dataclasses import asdict

    done = ScenarioFinding(
        "high_load",
        seconds=10.0,
        offered=1000,
        good=900,
        completed=900,
        errors={"failed": 100},
        load_asked=100.0,
        load_borne=90.0,
        unit="requests/s",
        breach=replace(
            first_breach(tally([SLOT] * 16), RATE, SLO, 1.0) or pytest.fail("it fails"), is_in_calm=True
        ),
    )
    whole = stress_finding("x", {"calm_errors": asdict(TEN_PERCENT)}, [done])
    (advice,) = whole.recommendations
    assert "10 %" in advice
    assert "ValueError: row 17" in advice
    assert "instance" not in advice
    assert score_of(done).value == pytest.approx(0.9)
    # Whoever runs it in a pipeline wants to know that it does not work.
    assert whole.is_broken
    assert not whole.scenarios[0].is_broken


def test_each_fault_that_stays_counts_as_a_recovery_as_long_as_the_scenario_and_figures_do_not():
    met = ScenarioJudgement("memory_drift", "no", is_fine=True, is_criterion=True)
    told = ScenarioJudgement("knee", "8", 8.0)
    judged = (met, replace(met, name="latency_drift", is_fine=False), told, replace(met, is_criterion=False))
    found = ScenarioFinding("sustained_load", seconds=10.0, offered=100, good=100, judgements=judged)
    score = score_of(found)
    assert (score.criteria_met, score.criteria_judged, score.value) == (1, 2, 0.5)
    # 5 s of recovery and one fault after 10 s: 1 / (1 + 0.5 + 1)
    assert score_of(replace(found, recovery=5.0)).value == pytest.approx(0.4)


def test_a_closed_loop_that_is_answered_nothing_before_we_leave_is_broken():
    """Each request takes longer than the level lasts and than anybody waits: no latency is known, and that is the news."""
    closed = Load(Arrivals.CLOSED, concurrency=64, seconds=1.0)
    whole = tally([(0, 0, 0.1)] * 4)
    whole.slices[0].sent = 64
    whole.slices[3].errors["cut_off"] = 64
    breach = first_breach(whole, closed, SLO, 1.0)
    assert breach is not None
    assert (breach.cause, breach.load, breach.is_by_pressure) == ("saturation", 64.0, True)
