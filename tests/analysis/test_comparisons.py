from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.computing import at_most
from tests.wording import Wording

from assay.analysis.comparison.comparability import list_comparability_doubts
from assay.analysis.comparison.compare import compare_reports, compare_trials
from assay.analysis.comparison.policy import KnownNoise, Tolerances
from assay.errors import LookupFailed
from assay.model import Better, Comparison, Kind, Metric, Report, Series, Verdict
from assay.report.change import change_text


def one(comparisons: Sequence[Comparison]) -> Any:
    """The only one; its optional figures are there when a test asks for them."""
    (comparison,) = comparisons
    return comparison


def needed(comparison: Comparison) -> int:
    """How many units would settle it: the last number of the reason."""
    return int(re.findall(r"\d+", comparison.reason)[-1])


def against(lab, ratio: float, **more: Any) -> tuple[Report, Report]:
    """A report of a trial and one of a trial that takes `ratio` times as long."""
    base, other = lab.times(**more), lab.times(ratio, **more)
    return lab.report(lab.trial(seconds=base)), lab.report(lab.trial(seconds=other), run_id="r2")


def test_twice_as_slow_is_worse_and_twice_as_fast_is_better(lab, wording: Wording) -> None:
    a, b = against(lab, 2.0)
    worse, better = one(compare_reports(a, b)), one(compare_reports(b, a))
    assert (worse.verdict, better.verdict) == (Verdict.WORSE, Verdict.BETTER)
    assert worse.ratio == pytest.approx(2, rel=0.05)
    assert worse.low < 2 < worse.high
    assert better.ratio == pytest.approx(1 / worse.ratio)
    assert (worse.units_a, worse.units_b) == (10, 10)
    assert "Mann–Whitney" in worse.method
    assert "Hodges–Lehmann" in worse.method
    wording(worse.method)


def test_more_of_what_is_better_higher_is_better(lab) -> None:
    a = lab.trial(more={"rows_per_sec": lab.times(100)})
    b = lab.trial(more={"rows_per_sec": lab.times(200)})
    assert one(compare_trials(a, b)).verdict is Verdict.BETTER


def test_a_narrow_interval_around_one_is_the_same(lab) -> None:
    a, b = against(lab, 1.0, spread=0.002)
    comparison = one(compare_reports(a, b))
    assert (comparison.verdict, comparison.reason) == (Verdict.SAME, "")


def test_a_certain_but_tiny_difference_is_the_same(lab) -> None:
    a, b = against(lab, 1.01, spread=0.0005)
    comparison = one(compare_reports(a, b))
    assert comparison.p < 0.001
    assert comparison.verdict is Verdict.SAME
    assert one(compare_reports(a, b, tolerances=Tolerances(0.005))).verdict is Verdict.WORSE


def test_a_wide_interval_is_unsure_and_says_how_many_processes_would_settle_it(lab, wording: Wording) -> None:
    a, b = against(lab, 1.02, spread=0.05)
    comparison = one(compare_reports(a, b))
    assert comparison.verdict is Verdict.UNSURE
    assert 20 <= needed(comparison) <= 400
    assert "processes" in comparison.reason
    wording(comparison.reason, numbers=False)


def test_the_number_that_would_settle_it_does(lab) -> None:
    a, b = against(lab, 1.08, spread=0.1)
    comparison = one(compare_reports(a, b))
    assert comparison.verdict is Verdict.UNSURE
    processes = needed(comparison)
    again = [
        one(compare_reports(*against(lab, comparison.ratio, spread=0.1, processes=processes)))
        for _ in range(20)
    ]
    assert sum(found.verdict is not Verdict.UNSURE for found in again) >= 11


@pytest.mark.parametrize("processes", [1, 4])
def test_few_processes_are_unsure_however_many_executions_they_made(
    lab, processes: int, wording: Wording
) -> None:
    comparison = one(compare_reports(*against(lab, 2.0, processes=processes, each=100)))
    assert comparison.verdict is Verdict.UNSURE
    assert re.findall(r"\d+", comparison.reason) == (["10"] if processes == 1 else ["4", "10"])
    wording(comparison.reason)
    assert comparison.ratio == pytest.approx(2, rel=0.1)
    assert comparison.p is comparison.low is comparison.p_corrected is None


def test_a_metric_of_unknown_direction_is_never_better_or_worse(lab, wording: Wording) -> None:
    a, b = (lab.trial(more={"oddness": lab.times(level)}) for level in (1, 2))
    comparison = one(compare_trials(a, b))
    assert comparison.verdict is Verdict.UNSURE
    assert "'oddness'" in comparison.reason
    wording(comparison.reason)
    c, d = (lab.trial(more={"oddness": lab.times(spread=0.001)}) for _ in range(2))
    assert one(compare_trials(c, d)).verdict is Verdict.SAME


def test_metrics_of_unknown_direction_do_not_burden_the_others(lab) -> None:
    odd = {f"odd{i}": lab.times() for i in range(5)}
    a, b = lab.trial(seconds=lab.times(), more=odd), lab.trial(seconds=lab.times(1.2), more=odd)
    seconds = compare_trials(a, b, interleaved=False)[0]
    assert seconds.p_corrected == seconds.p


def test_identical_values_do_not_burden_the_others(lab) -> None:
    free = {"usd": lab.series([0.0] * 50, 10)}
    a, b = (lab.trial(seconds=lab.times(factor), more=free) for factor in (1.0, 1.2))
    found = {one.metric.name: one for one in compare_trials(a, b, interleaved=False)}
    assert found["seconds"].p_corrected == found["seconds"].p
    assert (found["usd"].verdict, found["usd"].p_corrected) == (Verdict.SAME, 1.0)


def test_p_values_are_corrected_over_the_whole_family(lab) -> None:
    names = [f"part{i}_seconds" for i in range(10)]
    a = lab.trial(more={name: lab.times() for name in names})
    b = lab.trial(more={name: lab.times(2.0 if name == names[0] else 1.0) for name in names})
    found: Any = compare_trials(a, b, interleaved=False)
    assert found[0].p_corrected == pytest.approx(10 * found[0].p)
    assert found[0].verdict is Verdict.WORSE
    assert all(comparison.verdict is not Verdict.WORSE for comparison in found[1:])


def test_what_is_only_significant_by_itself_is_unsure_in_a_family(lab, wording: Wording) -> None:
    names = [f"part{i}_seconds" for i in range(40)]
    a = lab.trial(more={name: lab.times(processes=5) for name in names})
    b = lab.trial(more={name: lab.times(2.0 if name == names[0] else 1.0, processes=5) for name in names})
    first: Any = compare_trials(a, b)[0]
    assert first.p < 0.05 <= first.p_corrected
    assert first.verdict is Verdict.UNSURE
    assert "40" in re.findall(r"[\d.]+", first.reason)
    wording(first.reason, numbers=False)


def test_interleaved_arms_are_paired_by_round_so_that_drift_of_the_machine_cancels(
    lab, wording: Wording
) -> None:
    drift = np.exp(np.linspace(0, 1, 12))
    a = lab.trial(seconds=lab.series(drift * lab.chance.lognormal(0, 0.005, 12), 12))
    b = lab.trial(seconds=lab.series(1.1 * drift * lab.chance.lognormal(0, 0.005, 12), 12))
    paired, unpaired = one(compare_trials(a, b)), one(compare_trials(a, b, interleaved=False))
    assert "Wilcoxon" in paired.method
    assert "Walsh" in paired.method
    wording(paired.method)
    assert (paired.verdict, unpaired.verdict) == (Verdict.WORSE, Verdict.UNSURE)
    assert paired.ratio == pytest.approx(1.1, rel=0.01)


def test_only_rounds_that_both_arms_have_are_paired(lab) -> None:
    a = lab.trial(seconds=Series(list(range(8)), [0] * 8, [1.0 + i / 100 for i in range(8)]))
    b = lab.trial(seconds=Series(list(range(2, 10)), [0] * 8, [2.0 + i / 100 for i in range(8)]))
    assert one(compare_trials(a, b)).units_a == 6


def test_different_runs_are_not_paired(lab) -> None:
    assert "Mann–Whitney" in one(compare_reports(*against(lab, 1.0))).method


def test_trials_are_matched_by_benchmark_and_params(lab) -> None:
    a = lab.report(*(lab.trial(f"a{n}", lab.times(n), params={"n": n}) for n in (1, 2, 3)))
    b = lab.report(*(lab.trial(f"b{n}", lab.times(n), params={"n": n}) for n in (3, 2, 7)), run_id="r2")
    found = compare_reports(a, b)
    assert [(comparison.trial_a, comparison.trial_b) for comparison in found] == [("a2", "b2"), ("a3", "b3")]


def test_agents_are_matched_with_themselves_where_they_are_on_both_sides(lab) -> None:
    def report(run_id: str, *agents: str) -> Any:
        return lab.report(*(lab.trial(agent, lab.times(), agent=agent) for agent in agents), run_id=run_id)

    found = compare_reports(report("r1", "x", "y"), report("r2", "y", "x"))
    assert [(comparison.trial_a, comparison.trial_b) for comparison in found] == [("x", "x"), ("y", "y")]
    assert one(compare_reports(report("r1", "x"), report("r2", "z"))).trial_b == "z"


def test_the_only_trials_are_compared_whatever_their_params(lab, wording: Wording) -> None:
    a = lab.report(lab.trial("old", lab.times(), params={"n": 1}))
    b = lab.report(lab.trial("new", lab.times(2), params={"n": 2}), run_id="r2")
    assert one(compare_reports(a, b)).verdict is Verdict.WORSE
    (doubt,) = list_comparability_doubts(a, b)
    assert doubt.code == "params"
    assert re.findall(r"'(\w+)'", doubt.message) == ["1", "2"]
    wording(doubt)


def test_only_the_metrics_asked_for_are_compared_and_an_unknown_one_is_refused(lab, wording: Wording) -> None:
    a, b = (lab.trial(seconds=lab.times(), more={"rows_per_sec": lab.times()}) for _ in range(2))
    assert one(compare_trials(a, b, metrics=["rows_per_sec"])).metric.name == "rows_per_sec"
    with pytest.raises(LookupFailed, match="'secs'") as refused:
        compare_trials(a, b, metrics=["secs"])
    wording(refused.value)


def test_arms_that_turn_out_identical_are_not_judged(lab, wording: Wording) -> None:
    a = lab.trial("safe", lab.times(), axes={"profile": "safe"}, applied={"sync": 2})
    b = lab.trial("fast", lab.times(2), axes={"profile": "fast"}, applied={"sync": 2})
    comparison = one(compare_trials(a, b))
    assert comparison.verdict is Verdict.UNSURE
    assert "'profile'" in comparison.reason
    wording(comparison.reason)


def test_an_arm_whose_setting_was_ignored_is_not_judged(lab, wording: Wording) -> None:
    a = lab.trial("on", lab.times(), params={"cache": True}, applied={"cache": "off"})
    comparison = one(compare_trials(a, lab.trial("off", lab.times(2), params={"cache": False})))
    assert comparison.verdict is Verdict.UNSURE
    assert comparison.reason.startswith("on: ")
    assert "'cache'" in comparison.reason
    wording(comparison.reason)


def test_measured_and_simulated_numbers_are_not_compared(lab, wording: Wording) -> None:
    simulated = {"usd": Metric("usd", "usd", Better.LOWER, Kind.SIMULATED)}
    a = lab.trial(more={"usd": lab.times()}, metrics={"usd": replace(simulated["usd"], kind=Kind.MEASURED)})
    b = lab.trial(more={"usd": lab.times(2)}, metrics=simulated)
    comparison = one(compare_trials(a, b))
    assert comparison.verdict is Verdict.UNSURE
    assert all(kind in comparison.reason for kind in ("measured", "simulated"))
    wording(comparison.reason)
    assert [doubt.code for doubt in list_comparability_doubts(lab.report(a), lab.report(b, run_id="r2"))] == [
        "kind"
    ]


def test_values_that_may_be_zero_are_compared_by_their_difference(lab, wording: Wording) -> None:
    a = lab.trial(more={"load_seconds": lab.series([0.0, 1.0] * 5, 10)})
    b = lab.trial(more={"load_seconds": lab.series([5.0, 7.0] * 5, 10)})
    comparison = one(compare_trials(a, b, interleaved=False))
    assert (comparison.verdict, comparison.ratio, comparison.low) == (Verdict.WORSE, None, None)
    ends = (comparison.difference, comparison.difference_low, comparison.difference_high)
    assert ends == (5.5, 4.0, 7.0)
    assert re.findall(r"[\d.]+ s\b", comparison.reason) == ["5.5 s", "4 s", "7 s"]
    wording(comparison.reason)


@pytest.mark.parametrize("value", [0.0, 7.0, -3.0, 1e300])
def test_equal_constants_are_the_same(lab, value: float) -> None:
    a, b = (lab.trial(seconds=lab.series([value] * 10, 10)) for _ in range(2))
    assert one(compare_trials(a, b)).verdict is Verdict.SAME


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=12),
    st.booleans(),
)
def test_any_two_series_are_compared_and_an_unsure_verdict_has_a_reason(
    lab, a: list[float], b: list[float], interleaved: bool
) -> None:
    first, second = (lab.trial(seconds=lab.series(values, len(values))) for values in (a, b))
    comparison = one(compare_trials(first, second, interleaved=interleaved))
    assert comparison.verdict is not Verdict.UNSURE or comparison.reason
    assert comparison.ratio is None or math.isfinite(comparison.ratio)


def test_runs_of_one_machine_and_spec_are_comparable(lab) -> None:
    assert list_comparability_doubts(*against(lab, 1.0)) == ()


def test_other_machines_and_python_versions_are_reported_with_their_values(lab, wording: Wording) -> None:
    other = {"cpu": {"model": "Apple M2", "cores_logical": 8}, "python": {"version": "3.13.0"}, "os": None}
    a, b = lab.report(lab.trial(seconds=lab.times())), lab.report(lab.trial(seconds=lab.times()), facts=other)
    doubts = list_comparability_doubts(a, b)
    assert [doubt.code for doubt in doubts] == ["machine", "machine", "python"]
    assert re.findall(r"'([^']+)'", doubts[0].message) == ["AMD EPYC 7763", "Apple M2"]
    wording(doubts[0].message)


def test_trials_without_a_counterpart_are_named(lab, wording: Wording) -> None:
    a = lab.report(*(lab.trial(f"{n}", lab.times(), params={"n": n}) for n in (1, 2, 3)))
    b = lab.report(lab.trial("2", lab.times(), params={"n": 2}), run_id="r2")
    doubt = list_comparability_doubts(a, b)[0]
    assert doubt.code == "unmatched"
    assert re.findall(r"\d+", doubt.message) == ["1", "3"]
    wording(doubt.message)


def test_a_hundred_trials_of_five_metrics_and_thirty_processes_take_less_than_two_seconds(lab) -> None:
    names = ["seconds", "a_seconds", "b_seconds", "rss_bytes", "rows_per_sec"]
    series = {name: lab.times(processes=30, each=3) for name in names}
    trials = [lab.trial(f"{n}", params={"n": n}, more=series) for n in range(100)]
    a, b = lab.report(*trials), lab.report(*trials, run_id="r2")
    with at_most(2):
        assert len(compare_reports(a, b)) == 500


def test_q_values_stand_beside_the_corrected_p(lab) -> None:
    names = [f"part{i}_seconds" for i in range(10)]
    a = lab.trial(more={name: lab.times() for name in names})
    b = lab.trial(more={name: lab.times(1.1 if name in names[:5] else 1.0) for name in names})
    found: Any = compare_trials(a, b, interleaved=False)
    assert all(one.p <= one.q <= one.p_corrected for one in found)
    assert found[0].q < found[0].p_corrected


def test_the_effect_size_says_how_far_one_side_leads(lab) -> None:
    assert one(compare_reports(*against(lab, 2.0))).effect_size == 1.0
    assert abs(one(compare_reports(*against(lab, 1.0))).effect_size) < 0.6


def floor_of(share: float, trial: str = "parse") -> KnownNoise:
    """What an A/A run of a trial found for its seconds."""
    return KnownNoise(repeated={(trial, "seconds"): share})


def test_nothing_within_two_noise_floors_is_claimed(lab, wording: Wording) -> None:
    a, b = against(lab, 1.08, spread=0.005)
    assert one(compare_reports(a, b)).verdict is Verdict.WORSE
    noisy = one(compare_reports(a, b, noise=floor_of(0.05)))
    assert (noisy.verdict, noisy.tolerance) == (Verdict.UNSURE, 0.1)
    assert "5 %" in noisy.reason
    wording(noisy.reason, numbers=False)
    assert one(compare_reports(a, b, noise=floor_of(0.05, trial="another"))).tolerance == 0.03
    same = one(compare_reports(*against(lab, 1.0, spread=0.05), noise=floor_of(0.2)))
    assert same.verdict is Verdict.SAME
    assert one(compare_reports(a, b, noise=floor_of(0.001))).tolerance == 0.03


def scored(lab, cases: Sequence[int], share: float, repetitions: int = 3) -> Any:
    """A trial in which each case was right in about that share of its repetitions."""
    right = lab.chance.random((len(cases), repetitions)) < share
    series = Series(
        [case for case in cases for _ in range(repetitions)],
        list(range(repetitions)) * len(cases),
        right.astype(float).ravel().tolist(),
        unit="case",
    )
    return lab.trial(more={"score": series})


def test_scores_of_the_same_cases_are_paired(lab, wording: Wording) -> None:
    a, b = scored(lab, range(100), 0.5), scored(lab, range(100), 0.9)
    comparison = one(compare_trials(a, b))
    assert (comparison.verdict, "paired" in comparison.method) == (Verdict.BETTER, True)
    wording(comparison.method)
    assert comparison.tolerance == 0.01


@pytest.mark.parametrize("first", [100, 98])
def test_sides_that_share_too_few_cases_are_shown_without_a_verdict(
    lab, first: int, wording: Wording
) -> None:
    a, b = scored(lab, range(100), 0.5), scored(lab, range(first, first + 60), 0.9)
    comparison = one(compare_trials(a, b))
    assert (comparison.verdict, "Welch" in comparison.method) == (Verdict.UNSURE, True)
    assert (comparison.units_a, comparison.units_b) == (100, 60)
    assert comparison.difference_low < 0.4 < comparison.difference_high
    assert ("2" in re.findall(r"[\d.]+", comparison.reason)) is (first == 98)
    wording(comparison.method)
    wording(comparison.reason)


def test_a_percentile_is_compared_where_it_is_asked_for(lab, wording: Wording) -> None:
    a, b = against(lab, 1.5, processes=20, each=20)
    comparison = one(compare_reports(a, b, metrics=["seconds.p95"]))
    assert (comparison.metric.name, comparison.verdict) == ("seconds.p95", Verdict.WORSE)
    assert all(name in comparison.method for name in ("bootstrap", "P95"))
    wording(comparison.method)
    assert len(compare_reports(a, b)) == 1


def test_a_percentile_of_too_few_executions_is_unsure(lab, wording: Wording) -> None:
    a, b = against(lab, 1.5, processes=10, each=5)
    comparison = one(compare_reports(a, b, metrics=["seconds.p99"]))
    assert comparison.verdict is Verdict.UNSURE
    assert re.findall(r"P?\d[\d,]*\b", comparison.reason) == ["P99", "1,000", "50"]
    wording(comparison.reason)


def test_scores_that_differ_by_a_rounding_error_differ_by_exactly_nothing(lab) -> None:
    """The mean of 0.1, 0.2 and 0.3 is not quite 0.2 in floating point."""
    sides = {0: [0.1, 0.2, 0.3] * 4, 100: [0.2] * 12}
    a, b = (
        lab.trial(more={"score": Series([first + n for n in range(12)], [0] * 12, scores, unit="case")})
        for first, scores in sides.items()
    )
    found = one(compare_trials(a, b))
    assert found.value_a != found.value_b
    assert found.difference == 0.0
    assert change_text(found).split()[0] == "0"


def test_ratios_that_differ_by_a_rounding_error_are_exactly_one(lab) -> None:
    times = [0.1 * n + 1 for n in range(12)]
    a, b = (
        lab.trial(seconds=lab.series(side, 12))
        for side in (times, [t * 3 / 3.0000000000000004 for t in times])
    )
    found = one(compare_trials(a, b))
    assert (found.ratio, found.low, found.high) == (1.0, 1.0, 1.0)
    nothing = "0 % [0, 0]"
    assert change_text(found) == nothing
