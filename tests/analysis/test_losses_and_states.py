"""Losses, severities, patterns, health and states of regressions, from exact figures."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.wording import Wording

from assay.analysis.comparison.noise_floor import noise_floor
from assay.analysis.comparison.policy import KnownNoise, judge
from assay.analysis.comparison.severity import dimension_of, loss_of, severity_of
from assay.analysis.comparison.verdict import Contrast
from assay.analysis.estimates.machine_speed import compute_slowdown, pace_of
from assay.analysis.history.change_points import find_shifts, is_back, typical
from assay.analysis.history.patterns import patterns_in
from assay.analysis.history.promotion import advise, health_of
from assay.analysis.history.regressions import by_history, merge_regressions, update_regression_states
from assay.model import Better, Comparison, Metric, Series, Verdict
from assay.model.regression import (
    Action,
    Loss,
    MetricHistory,
    Pace,
    Point,
    Regression,
    RegressionState,
    Severity,
)
from assay.stats.effect import Effect
from assay.stats.sample import Scale

SECONDS = Metric("seconds", "s", Better.LOWER)
SPEED = Metric("rows_per_sec", "1/s", Better.HIGHER)
SCORE = Metric("score", "", Better.HIGHER)
USD = Metric("usd", "usd", Better.LOWER)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def comparison(
    metric: Metric = SECONDS,
    ratio: tuple[float, float, float] | None = (1.2, 1.15, 1.25),
    difference: tuple[float, float, float] | None = None,
    a: float = 1.0,
    b: float = 1.2,
    verdict: Verdict = Verdict.WORSE,
    trial: str = "parse",
) -> Comparison:
    value, low, high = ratio or (None, None, None)
    made = Comparison(metric, trial, trial, a, b, 20, 20, value, low, high, 0.01, 0.02, 0.03, verdict, "")
    if difference is None:
        return made
    middle, lower, upper = difference
    return replace(made, difference=middle, difference_low=lower, difference_high=upper)


def regression(metric: Metric = SECONDS, loss: float = 0.2, low: float = 0.15, **more: object) -> Regression:
    values: dict[str, object] = {
        "id": "r1",
        "agent": "gpt",
        "suite": "desk",
        "benchmark": "refunds",
        "metric": metric,
        "before": "1",
        "after": "2",
        "baseline_value": 1.0,
        "current_value": 1.2,
        "loss": Loss(loss, low, 2 * loss),
        "tolerance": 0.03,
        "severity": severity_of(Loss(loss, low, 2 * loss)),
        "found_by": ("baseline",),
    }
    return Regression(**{**values, **more})  # type: ignore[arg-type]


def history(values, metric: Metric = SECONDS, paces=None, versions=None) -> MetricHistory:
    paces = paces or [None] * len(values)
    versions = versions or [f"1.{number}" for number in range(len(values))]
    points = [
        Point(f"r{number}", version, NOON + timedelta(hours=number), float(value), pace)
        for number, (value, pace, version) in enumerate(zip(values, paces, versions, strict=True))
    ]
    return MetricHistory("desk", "refunds", metric, tuple(points))


def quiet(chance: np.random.Generator, *levels: tuple[float, int]) -> list[float]:
    return [level * float(np.exp(chance.normal(0, 0.01))) for level, count in levels for _ in range(count)]


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(3)


def test_a_loss_is_positive_whichever_way_is_good() -> None:
    for one in (comparison(SECONDS, (1.25, 1.125, 1.5)), comparison(SPEED, (0.75, 0.5, 0.875))):
        assert loss_of(one) == Loss(0.25, 0.125, 0.5)


def test_a_loss_of_scores_is_in_points() -> None:
    found = loss_of(comparison(SCORE, None, (-0.2, -0.3, -0.1), a=0.4, b=0.2))
    assert found == Loss(0.2, 0.1, 0.3)


def test_from_a_baseline_of_zero_the_loss_is_a_share_of_the_new_value() -> None:
    found = loss_of(comparison(USD, None, (0.02, 0.01, 0.03), a=0.0, b=0.02))
    assert found == Loss(1.0, 0.5, 1.5)
    assert regression(USD, baseline_value=0.0).percentage is None
    assert regression(USD, baseline_value=0.0, loss=0.0).percentage == 0.0


def test_without_interval_or_direction_there_is_no_loss() -> None:
    few = replace(comparison(), low=None, high=None)
    assert loss_of(few) is None
    assert loss_of(comparison(Metric("oddness"))) is None


@pytest.mark.parametrize(
    ("low", "severity"),
    [
        (0.01, Severity.MINOR),
        (0.1, Severity.MINOR),
        (0.11, Severity.MODERATE),
        (0.21, Severity.MAJOR),
        (0.31, Severity.CRITICAL),
        (-math.inf, Severity.MINOR),
    ],
)
def test_severity_goes_by_the_end_that_is_certain(low: float, severity: Severity) -> None:
    assert severity_of(Loss(0.9, low, 2.0)) is severity


def test_every_metric_counts_in_one_dimension() -> None:
    names = ("score", "seconds", "usd", "tokens", "cpu_seconds", "completed", "rss_max_bytes")
    units = ("", "s", "usd", "tokens", "s", "", "bytes")
    found = [dimension_of(Metric(name, unit, Better.LOWER)) for name, unit in zip(names, units, strict=True)]
    assert found == ["accuracy", "speed", "cost", "efficiency", "efficiency", "reliability", "efficiency"]


def test_health_falls_by_weight_and_loss() -> None:
    assert health_of([], 2) == 1.0
    assert health_of([regression(SCORE, 0.15)], 1) == pytest.approx(1 - 0.3 * 0.5)
    assert health_of([regression(SCORE, 0.15)], 2) == pytest.approx(1 - 0.3 * 0.25)
    assert health_of([regression(SCORE, 9.0)], 1) == pytest.approx(0.7)


def test_of_several_metrics_of_a_dimension_the_worst_counts() -> None:
    tokens = Metric("tokens", "tokens", Better.LOWER)
    cpu = Metric("cpu_seconds", "s", Better.LOWER)
    assert health_of([regression(tokens, 0.1), regression(cpu, 0.3)], 1) == pytest.approx(0.8)


@given(st.lists(st.floats(0, 10), max_size=20), st.integers(1, 30))
def test_health_stays_between_0_and_1(losses: list[float], benchmarks: int) -> None:
    metrics = (SCORE, SECONDS, USD)
    found = [regression(metrics[n % 3], loss, benchmark=str(n)) for n, loss in enumerate(losses)]
    assert 0 <= health_of(found, benchmarks) <= 1


def test_a_critical_regression_is_rolled_back(wording: Wording) -> None:
    advice = advise([regression(loss=0.5, low=0.4)], [], benchmarks=10)
    assert advice.action is Action.ROLL_BACK
    assert all(part in advice.reason for part in ("'seconds'", "refunds", "40 %"))
    wording(advice.reason)


def test_smaller_regressions_hold_a_version_back() -> None:
    assert advise([regression(loss=0.1, low=0.05)], [], benchmarks=1).action is Action.HOLD


def test_what_a_person_called_a_false_positive_counts_for_nothing() -> None:
    one = regression(loss=0.5, low=0.4, state=RegressionState.FALSE_POSITIVE)
    assert advise([one], [comparison(verdict=Verdict.SAME)], benchmarks=1).action is Action.PROMOTE


def test_pending_and_unsure_are_held() -> None:
    pending = advise([regression(loss=0.5, low=0.4, is_pending=True)], [], benchmarks=1)
    unsure = advise([], [comparison(verdict=Verdict.UNSURE)], benchmarks=1)
    assert (pending.action, pending.health) == (Action.HOLD, 1.0)
    assert unsure.action is Action.HOLD


def test_a_machine_that_changed_asks_for_another_run_unless_something_else_is_proved() -> None:
    told = "The machine changed."
    suspect = regression(loss=0.5, low=0.4, is_suspect=True)
    assert advise([suspect], [], benchmarks=1, machine=told).action is Action.RERUN
    assert (
        advise([suspect, regression(SCORE, 0.1, 0.05)], [], benchmarks=1, machine=told).action is Action.HOLD
    )


def test_the_same_or_better_is_promoted(wording: Wording) -> None:
    verdicts = [comparison(verdict=Verdict.SAME), comparison(verdict=Verdict.BETTER)]
    advice = advise([], verdicts, benchmarks=1)
    assert (advice.action, re.findall(r"\d+", advice.reason)) == (Action.PROMOTE, ["1", "2"])
    wording(advice.reason)


def alike(*ratios: float) -> list[Comparison]:
    return [
        comparison(ratio=(ratio, ratio * 0.97, ratio * 1.03), trial=f"b{number}")
        for number, ratio in enumerate(ratios)
    ]


def test_benchmarks_that_slow_down_alike_point_to_the_machine(wording: Wording) -> None:
    (pattern,) = patterns_in(alike(1.2, 1.21, 1.19), pace=1.18)
    assert pattern.factor == pytest.approx(1.2)
    assert pattern.benchmarks == ("b0", "b1", "b2")
    assert "18 %" in pattern.message
    wording(pattern.message)
    (unmoved,) = patterns_in(alike(1.2, 1.21, 1.19), pace=None)
    assert "18 %" not in unmoved.message
    wording(unmoved.message)


def test_benchmarks_that_differ_are_no_pattern() -> None:
    assert patterns_in(alike(1.2, 1.5, 1.19), pace=1.2) == ()
    assert patterns_in(alike(1.2, 1.2), pace=1.2) == ()
    assert patterns_in(alike(1.0, 1.01, 0.99), pace=None) == ()


def test_the_machines_pace_moves_only_beyond_what_its_probes_vary_by() -> None:
    slow, fast = Pace(1.2, 0.05), Pace(1.0, 0.05)
    assert compute_slowdown([fast], [slow]) == pytest.approx(1.2)
    assert compute_slowdown([Pace(1.0, 0.6)], [slow]) is None
    assert compute_slowdown([None], [slow]) is None


def test_the_pace_leaves_out_time_without_a_processor() -> None:
    facts = {"noise": {"seconds": 0.06, "chunks": 60, "lost": 0.5, "spread": 0.1}}
    pace = pace_of(facts)
    assert pace is not None
    assert pace.seconds == pytest.approx(0.0005)
    assert pace_of({}) is pace_of({"noise": None}) is pace_of({"noise": {"seconds": 1}}) is None


def test_a_step_in_the_history_names_the_guilty_versions(chance: np.random.Generator) -> None:
    found = find_shifts(history(quiet(chance, (1.0, 15), (1.2, 10))))
    (step,) = found.shifts
    assert (step.kind, step.before.version, step.after.version) == ("step", "1.14", "1.15")
    assert step.loss.low < 0.2 < step.loss.high
    (one,) = by_history("gpt", found.shifts)
    assert (one.before, one.after, one.severity) == ("1.14", "1.15", Severity.MODERATE)
    assert one.impact.per_1000 == pytest.approx(200, rel=0.05)


def test_a_step_within_one_version_names_the_runs(chance: np.random.Generator) -> None:
    values = quiet(chance, (1.0, 12), (1.2, 12))
    (one,) = by_history("gpt", find_shifts(history(values, versions=["7"] * 24)).shifts)
    assert (one.before, one.after) == ("7 run r11", "7 run r12")


def test_a_step_back_ends_the_regression(chance: np.random.Generator) -> None:
    past = history(quiet(chance, (1.0, 12), (1.3, 12), (1.0, 12)))
    found = find_shifts(past)
    assert [(step.loss.value > 0, step.is_over) for step in found.shifts] == [(True, True), (False, False)]
    assert by_history("gpt", found.shifts) == []
    assert is_back(past, 1.0)
    assert not is_back(past, 0.8)


def test_a_step_for_the_better_is_no_regression(chance: np.random.Generator) -> None:
    values = quiet(chance, (1.0, 12), (1.3, 12))
    assert by_history("gpt", find_shifts(history(values, SPEED)).shifts) == []


def test_a_step_that_the_machine_made_as_well_is_suspect(chance: np.random.Generator) -> None:
    values = quiet(chance, (1.0, 12), (1.3, 12))
    paces = [Pace(0.001, 0.05)] * 12 + [Pace(0.0013, 0.05)] * 12
    (one,) = by_history("gpt", find_shifts(history(values, paces=paces)).shifts)
    assert one.is_suspect
    (score,) = by_history("gpt", find_shifts(history([1 / v for v in values], SCORE, paces)).shifts)
    assert not score.is_suspect


def test_a_loss_of_scores_in_the_history_is_in_points(chance: np.random.Generator) -> None:
    (one,) = by_history("gpt", find_shifts(history(quiet(chance, (0.5, 12), (0.4, 12)), SCORE)).shifts)
    assert one.loss.value == pytest.approx(0.1, abs=0.01)


def test_a_slow_drift_is_one_regression_with_one_id(chance: np.random.Generator) -> None:
    values = [float(np.exp(chance.normal(0, 0.005) + 0.15 * n / 79)) for n in range(80)]
    (drift,) = find_shifts(history(values)).shifts
    (one,) = by_history("gpt", [drift])
    assert one.found_by == ("drift",)
    assert one.loss.value == pytest.approx(0.15, abs=0.04)
    (longer,) = by_history("gpt", [replace(drift, after=replace(drift.after, version="9.9"))])
    assert (longer.id, longer.after) == (one.id, "9.9")


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 40, [0.0] * 40, [1.0] * 7, [-1.0] * 20, [1e300] * 20])
def test_histories_without_anything_to_find_find_nothing(values: list[float]) -> None:
    found = find_shifts(history(values))
    assert found.shifts == ()
    assert bool(found.reason) == (len(values) < 8)


def test_a_smaller_step_than_tolerated_counts_for_nothing(chance: np.random.Generator) -> None:
    past = history(quiet(chance, (1.0, 20), (1.08, 20)))
    assert len(find_shifts(past).shifts) == 1
    assert find_shifts(past, tolerance=0.1).shifts == ()


def test_the_value_of_a_trial_is_the_mean_of_scores_and_the_median_of_the_rest() -> None:
    series = Series([0, 0, 1, 2], [0, 1, 0, 0], [1.0, 0.0, 1.0, 1.0], unit="case")
    assert typical(SCORE, series) == pytest.approx(2.5 / 3)
    assert typical(SECONDS, Series([0, 1, 2], [0] * 3, [1.0, 9.0, 2.0], unit="case")) == 2.0
    assert math.isnan(typical(SECONDS, Series([0], [0], [math.nan])))


def test_the_noise_floor_is_what_neighbours_differ_by(chance: np.random.Generator) -> None:
    values = [float(np.exp(chance.normal(0, 0.05))) for _ in range(200)]
    assert noise_floor(history(values), ()) == pytest.approx(0.05, rel=0.25)
    stepped = values[:100] + [2 * value for value in values[100:]]
    assert noise_floor(history(stepped), ()) == pytest.approx(0.05, rel=0.25)


def test_the_noise_floor_needs_runs_other_than_the_judged_one() -> None:
    past = history([1.0, 1.1, 1.0, 1.1, 1.0, 9.0])
    assert noise_floor(past, ()) is not None
    assert noise_floor(past, {"r5"}) is None
    assert noise_floor(history([0.0] * 10), ()) is None


def test_a_claim_within_the_noise_floor_is_unsure(wording: Wording) -> None:
    effect = Effect(Scale.RATIO, 1.1, 1.05, 1.15, 0.001, "")
    contrast = Contrast(SECONDS, "parse", "parse", 1.0, 1.1, 20, 20, effect, is_paired=False)
    (quiet,) = judge([contrast], KnownNoise(history={("parse", "seconds"): 0.01}))
    assert (quiet.verdict, quiet.tolerance) == (Verdict.WORSE, 0.03)
    (unsure,) = judge([contrast], KnownNoise(history={("parse", "seconds"): 0.06}))
    assert (unsure.verdict, unsure.tolerance) == (Verdict.UNSURE, 0.12)
    assert "6 %" in unsure.reason
    wording(unsure.reason)


def test_what_two_ways_found_is_reported_once_and_the_worst_first() -> None:
    by_baseline = regression(id="x", loss=0.1, low=0.05)
    by_step = replace(by_baseline, found_by=("step",), is_pending=True)
    worse = regression(id="y", loss=0.5, low=0.4)
    found = merge_regressions([by_baseline, by_step, worse])
    assert [one.id for one in found] == ["y", "x"]
    assert (found[1].found_by, found[1].is_pending) == (("baseline", "step"), False)


def states(found, kept, gone=None) -> dict[str, RegressionState]:
    known = {one.id: one for one in kept}
    return {one.id: one.state for one in update_regression_states(found, known, gone or {}, NOON)}


def test_what_is_new_is_detected_now() -> None:
    (one,) = update_regression_states([regression()], {}, {}, NOON)
    assert (one.state, one.detected, one.changed) == (RegressionState.DETECTED, NOON, NOON)


def test_what_is_found_again_keeps_what_a_person_said() -> None:
    for state in RegressionState:
        kept = regression(state=state, note="mine", is_marked=True, detected=NOON, changed=NOON)
        (one,) = update_regression_states([regression()], {"r1": kept}, {}, NOON + timedelta(1))
        assert (one.state, one.note, one.detected, one.changed) == (state, "mine", NOON, NOON)


def test_what_resolved_itself_and_is_found_again_is_detected_again() -> None:
    kept = regression(state=RegressionState.RESOLVED, note="gone", detected=NOON, changed=NOON)
    assert states([regression()], [kept]) == {"r1": RegressionState.DETECTED}


def test_what_is_not_found_stays_open_until_newer_data_say_otherwise() -> None:
    kept = regression(state=RegressionState.CONFIRMED, note="mine", is_marked=True)
    assert states([], [kept]) == {"r1": RegressionState.CONFIRMED}
    newer = "2 is the same as 1."
    (one,) = update_regression_states([], {"r1": kept}, {"r1": newer}, NOON)
    assert (one.state, one.note, one.changed) == (RegressionState.RESOLVED, f"mine {newer}", NOON)


def test_a_false_positive_stays_one_whatever_newer_data_say() -> None:
    kept = regression(state=RegressionState.FALSE_POSITIVE, is_marked=True)
    assert states([], [kept], {"r1": "gone"}) == {"r1": RegressionState.FALSE_POSITIVE}
