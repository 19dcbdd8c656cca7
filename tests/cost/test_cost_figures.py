"""Cost per task, per solved task and performance per dollar: exact where everything is planted."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.cost.subjects import REFERENCE, analysis, found, planted, subject
from tests.ratings.tables import failed, ok, rated

from assay.analysis.cost.estimates import estimate_cost_per_success, estimate_costs
from assay.model.cost import FrontStatus


def test_figures_of_planted_costs_and_skill_are_exact() -> None:
    whole = found(analysis(planted("a", 0.002, lambda case: case % 4 != 0)), "a").whole
    assert whole.cases == 40
    assert whole.accuracy.value == pytest.approx(0.75)
    assert whole.cost_per_task.value == pytest.approx(0.002)
    assert whole.cost_per_success.value == pytest.approx(0.002 / 0.75)
    # A second is the reference, so the speed rating is a half.
    assert whole.performance_per_dollar.value == pytest.approx(0.75 * 0.5 / 0.002)


def test_repetitions_of_a_case_are_averaged_before_cases_are() -> None:
    rows = [ok("often", usd=0.001)] * 9 + [ok("once", usd=0.003)]
    assert estimate_costs([rated(rows)]).cost_per_task.value == pytest.approx(0.002)


def test_cost_per_success_is_undefined_where_nothing_was_solved() -> None:
    whole = found(analysis(planted("a", 0.002, lambda case: False)), "a").whole
    assert whole.cost_per_task.value == pytest.approx(0.002)
    assert (whole.cost_per_success.value, whole.cost_per_success.reason) == (None, "nothing was solved")


def test_without_scores_the_cost_of_a_task_is_known_and_that_of_a_success_is_not() -> None:
    one = found(analysis(subject("a", [ok(f"c{n}", None, usd=0.5) for n in range(10)])), "a")
    assert one.whole.cost_per_task.value == pytest.approx(0.5)
    assert (one.whole.cost_per_success.value, one.whole.cost_per_success.reason) == (
        None,
        "nothing was scored",
    )
    assert (one.place, one.efficiency) == (None, None)


def test_an_unknown_cost_is_never_zero() -> None:
    made = analysis(subject("a", [ok(f"c{n}", seconds=1.0) for n in range(10)]), planted("b", 0.001))
    one = found(made, "a")
    assert one.whole.cost_per_task.value is None
    assert "unknown" in one.whole.cost_per_task.reason
    assert (one.place, one.per_month.value, one.prices) == (None, None, ())
    assert [opportunity.code for opportunity in made.opportunities] == ["unknown_cost"]
    assert made.configurations[-1] is one


def test_a_free_agent_costs_nothing_and_may_be_on_the_front() -> None:
    made = analysis(planted("local", 0.0, lambda case: case < 20), planted("paid", 0.01), budget=5.0)
    local = found(made, "local")
    assert local.whole.cost_per_task.value == 0.0
    assert local.whole.cost_per_success.value == 0.0
    assert local.whole.performance_per_dollar.value is None
    assert local.budget is None
    assert local.efficiency == 1.0
    assert local.place is not None
    assert local.place.status is FrontStatus.FRONT


def test_failed_executions_of_unknown_cost_are_left_out_and_said() -> None:
    rows = [ok(f"c{n}", usd=0.002) for n in range(10) for _ in range(2)] + [failed("c0")]
    one = found(analysis(subject("a", rows)), "a")
    assert one.whole.cost_per_task.value == pytest.approx(0.002)
    assert len(one.doubts) == 1


def test_an_agent_that_only_fails_is_not_asked_for_a_price() -> None:
    made = analysis(subject("a", [failed(f"c{n}") for n in range(10)]))
    assert found(made, "a").whole.cost_per_task.value is None
    assert made.opportunities == ()


def test_one_case_has_figures_without_an_interval() -> None:
    whole = estimate_costs([rated([ok("only", usd=0.25, seconds=1.0)], REFERENCE)])
    assert (whole.cost_per_task.value, whole.cost_per_task.low) == (0.25, None)
    assert (whole.cost_per_success.value, whole.cost_per_success.low) == (0.25, None)


def test_one_repetition_gives_performance_without_an_interval() -> None:
    whole = estimate_costs([rated([ok(f"c{n}", usd=0.25, seconds=1.0) for n in range(20)], REFERENCE)])
    assert whole.performance_per_dollar.value == pytest.approx(2.0)
    assert whole.performance_per_dollar.low is None
    assert whole.cost_per_success.high is not None


def test_the_interval_of_cost_per_success_stays_wide_where_every_case_passed() -> None:
    few = estimate_cost_per_success(np.full(10, 0.01), np.ones(10))
    many = estimate_cost_per_success(np.full(1000, 0.01), np.ones(1000))
    assert (few.value, many.value) == pytest.approx((0.01, 0.01))
    assert few.low == pytest.approx(0.01)
    assert few.high is not None
    assert many.high is not None
    # Wilson's lower end of 10 of 10 is 0.722.
    assert few.high == pytest.approx(0.01 / 0.7225, rel=1e-3)
    assert many.high < 0.0101


def test_intervals_of_cost_per_success_hold_the_truth_as_often_as_they_say() -> None:
    chance = np.random.default_rng(7)
    held = []
    for _ in range(400):
        solved = (chance.random(60) < 0.6).astype(float)
        # Failures cost twice as much, so cost and success go together.
        usd = chance.lognormal(0, 0.5, 60) * np.where(solved == 1, 1.0, 2.0)
        amount = estimate_cost_per_success(usd, solved)
        truth = math.exp(0.125) * (0.6 * 1.0 + 0.4 * 2.0) / 0.6
        assert amount.low is not None
        assert amount.high is not None
        held.append(amount.low <= truth <= amount.high)
    assert 0.93 <= np.mean(held) <= 0.99


def test_figures_of_several_benchmarks_count_every_case_once() -> None:
    first, second = planted("a", 0.001, cases=10), planted("a", 0.004, cases=30)
    both = type(first)(
        "a",
        "a",
        "1",
        {("b", "h"): first.trials[("b", "hash")], ("d", "h"): second.trials[("b", "hash")]},
    )
    one = found(analysis(both), "a")
    assert one.whole.cost_per_task.value == pytest.approx((10 * 0.001 + 30 * 0.004) / 40)
    assert one.benchmarks["d"].cost_per_task.value == pytest.approx(0.004)
