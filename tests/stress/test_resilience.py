"""The score of a scenario and of all together, worked out by hand."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from tests.load.results import times
from tests.stress.benches import moment
from tests.wording import Wording

from assay.analysis.load.stress import scenario_of, score_of, stress_finding
from assay.builtin.findings.stress_charts import scores
from assay.model.figure import Figure
from assay.model.stress import Breach, Resources, Sample, ScenarioFinding, ScenarioJudgement
from assay.plugin.json_data import to_json_data
from assay.plugin.scenario_baseline import find_recovery_time
from assay.report.stress import headline

BROKE = Breach(2.0, 100.0, "requests/s", "errors", "9 % of the requests failed (mostly http_503)")


def found(name: str = "high_load", **changes: object) -> ScenarioFinding:
    whole = ScenarioFinding(
        name,
        seconds=10.0,
        offered=1000,
        good=900,
        completed=950,
        errors={"http_503": 50},
        load_asked=100.0,
        load_borne=40.0,
        unit="requests/s",
    )
    return replace(whole, **changes)  # type: ignore[arg-type]


def test_what_did_not_break_and_had_nothing_to_recover_from_scores_its_share():
    score = score_of(found())
    assert (score.share, score.sustained, score.recovering) == (0.9, 1.0, 1.0)
    assert score.value == pytest.approx(0.9)


def test_the_three_factors_are_multiplied():
    # 900 of 1,000 in time, 40 of 100 requests/s borne, 5 s of recovery after 10 s: 0.9 × 0.4 × 1/(1 + 0.5)
    score = score_of(found(breach=BROKE, recovery=5.0))
    assert score.value == pytest.approx(0.9 * 0.4 / 1.5)
    assert score.value == pytest.approx(0.24)


def test_the_interval_is_that_of_the_share_by_wilson():
    # Wilson (1927) for 900 of 1,000: 0.8799 to 0.9171, each times 0.4
    score = score_of(found(breach=BROKE))
    assert [score.low, score.high] == pytest.approx([0.4 * 0.8799, 0.4 * 0.9171], abs=1e-4)


def test_a_breach_that_is_our_own_fault_is_not_held_against_the_agent():
    ours = replace(BROKE, cause="generator")
    assert score_of(found(breach=ours)).sustained == 1.0


def test_what_never_answers_again_scores_nothing():
    assert score_of(found(recovery=3.0, is_recovered=False, is_dead=True)).value == 0.0


def test_resilience_is_the_mean_over_scenarios_that_apply():
    scenarios = [
        found("high_load", breach=BROKE, recovery=5.0),  # 0.24
        found("sustained_load", good=1000),  # 1
        ScenarioFinding("rate_limiting", skipped="a URL has no retries"),
        found("spike_load", good=500, recovery=10.0),  # 0.5 × 1 × 0.5
    ]
    whole = stress_finding("x", {}, scenarios)
    assert whole.resilience is not None
    assert whole.resilience.value == pytest.approx((0.24 + 1.0 + 0.25) / 3)
    assert whole.resilience.low is not None
    assert whole.resilience.high is not None
    assert whole.resilience.low < whole.resilience.value < whole.resilience.high
    assert [score.scenario for score in whole.scores] == ["high_load", "sustained_load", "spike_load"]


def test_without_a_scenario_that_applies_there_is_no_resilience():
    assert stress_finding("x", {}, [ScenarioFinding("rate_limiting", skipped="no")]).resilience is None


def test_limits_and_recommendations_carry_the_figures_they_follow_from(wording: Wording):
    whole = stress_finding("x", {}, [found(breach=BROKE, recovery=5.0), found("sustained_load", good=1000)])
    limit, beyond = whole.limits
    assert "40 of 100 " in limit
    assert "http_503" in limit
    assert "sustained_load (100 requests/s)" in beyond
    wording("\n".join(whole.limits))
    first, second = whole.recommendations
    assert " 40 requests/s" in first
    assert "2 instances" in first
    assert " 5 s " in second
    assert " 50 %" in second
    wording("\n".join(whole.recommendations))


def test_an_agent_that_collapses_is_advised_to_let_in_what_it_sustains_in_calm(wording: Wording):
    collapsed = found(breach=BROKE, load_borne=2.0)
    (told,) = stress_finding("x", {"base": 10.0}, [collapsed]).recommendations
    assert " 10 requests/s" in told
    assert "9 instances" in told
    wording(told)


def test_a_program_that_was_killed_has_time_to_start_before_anybody_is_advised(wording: Wording):
    killed = found("failure_recovery", good=1000, unit="kills", recovery=2.0)
    assert stress_finding("x", {}, [killed]).recommendations == ()
    (told,) = stress_finding("x", {}, [replace(killed, recovery=9.0)]).recommendations
    assert told.startswith("failure_recovery: ")
    wording(told)


def test_where_nothing_is_wrong_nothing_is_recommended():
    assert stress_finding("x", {}, [found(good=1000)]).recommendations == ()


def test_a_judgement_against_it_becomes_a_recommendation_and_one_for_it_does_not(wording: Wording):
    bad = ScenarioJudgement(
        "memory_drift", "Memory changed by 3 MiB a minute", 3e6, 2e6, 4e6, "bytes", is_fine=False
    )
    whole = stress_finding(
        "x", {}, [found(judgements=(bad, replace(bad, name="latency_drift", is_fine=True)))]
    )
    (told,) = whole.recommendations
    assert told.startswith(f"high_load: {bad.text}")
    wording(told)


def test_recovery_counts_from_the_end_of_the_pressure_to_the_first_of_two_calm_moments():
    course = [moment(0, 0.1), moment(1, 5.0), moment(2, 3.0), moment(3, 0.105), moment(4, 0.1)]
    assert find_recovery_time(course, 2.0, times(0.1)) == (1.0, True)
    assert find_recovery_time(course, 3.0, times(0.1)) == (0.0, True)


def test_answers_to_what_was_due_before_say_nothing_about_the_time_after_the_load():
    course = [moment(0, 3.0), moment(1, 0.1), replace(moment(2, None), sent=0)]
    assert find_recovery_time(course, 0.0, times(0.1)) == (1.0, True)


def test_where_nothing_that_is_due_is_sent_any_more_it_has_not_recovered_for_as_long_as_was_watched():
    # All that is sent then was due in the spike.
    course = [moment(0, 0.1), moment(1, 5.0), *(replace(moment(n, None), sent=0) for n in range(2, 62))]
    assert find_recovery_time(course, 2.0, times(0.1)) == (60.0, False)


def test_one_calm_moment_among_bad_ones_is_no_recovery():
    course = [moment(0, 3.0), moment(1, 0.1), moment(2, 3.0), moment(3, 0.1), moment(4, 0.1)]
    assert find_recovery_time(course, 0.0, times(0.1)) == (3.0, True)


def test_fast_errors_are_no_recovery():
    course = [moment(0, 0.1, completed=5, failed=5), moment(1, 0.1, completed=5, failed=5)]
    assert find_recovery_time(course, 0.0, times(0.1)) == (2.0, False)


def test_a_finding_comes_back_from_the_store_as_it_went_in():
    whole = found(
        breach=BROKE,
        recovery=1.5,
        throughput=Figure(10.0, 9.0, 11.0),
        times={"latency": times(0.2)},
        judgements=(ScenarioJudgement("knee", "up to 8", 8.0),),
        resources=Resources("server (1)", (Sample(0.0, 0.0, 100), Sample(1.0, 0.5, 200))),
        moments=(moment(0), moment(1)),
        warnings=("careful",),
    )
    assert scenario_of(to_json_data(asdict(whole))) == whole


def test_the_chart_of_the_factors_does_not_call_a_load_borne_that_was_not():
    """Unbroken counts as 1 in the score, though less than half of the load came back: the column says so."""
    finding = stress_finding("it", {}, [found(), found("spike_load", breach=BROKE)])
    drawn = scores(finding)["data"]["values"]
    titles = {one["factor"] for one in drawn}
    assert "load sustained" not in titles
    told = {one["scenario"]: one["value"] for one in drawn if one["factor"] == "unbroken, or load sustained"}
    assert told == {"high_load": 1.0, "spike_load": 0.4}
    assert headline(finding).endswith("over 2 scenarios")
    assert headline(stress_finding("it", {}, [found()])).endswith("over 1 scenario")
