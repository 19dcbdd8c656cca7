"""Prices: what a cost is made of, where the cheaper one changes, caching, months and budgets."""

from __future__ import annotations

import numpy as np
import pytest
from tests.cost.subjects import analysis, billed, found, planted

from assay.analysis.cost.analyse import forecast_budget, forecast_month
from assay.stats.means import t_quantile

PRICES = {"input": 2.0, "cached": 0.5, "output": 10.0}
TOKENS = [(1000, 400, 100)] * 20


def test_the_parts_of_a_cost_add_up_and_move_with_their_price() -> None:
    one = found(analysis(billed("a", TOKENS, PRICES)), "a")
    parts = {part.name: part for part in one.prices}
    # 600 × $2 + 400 × $0.5 + 100 × $10 for a million.
    assert {name: part.per_task for name, part in parts.items()} == pytest.approx(
        {"input": 0.0012, "cached": 0.0002, "output": 0.001}
    )
    assert one.whole.cost_per_task.value == pytest.approx(0.0024)
    assert (parts["output"].at_half_less, parts["output"].at_half_more) == pytest.approx((0.0019, 0.0029))
    assert sum(part.share for part in one.prices) == pytest.approx(1.0)


def test_a_cost_that_prices_do_not_explain_has_one_part() -> None:
    one = found(analysis(planted("a", 0.003)), "a")
    assert [(part.name, part.price, part.share) for part in one.prices] == [("all", None, 1.0)]


def test_at_the_break_even_price_both_cost_the_same_per_solved_task() -> None:
    cheap, dear = billed("cheap", TOKENS, PRICES), billed("dear", [(1000, 0, 300)] * 20, PRICES)
    turning = {(one.configuration, one.part): one.break_even for one in analysis(cheap, dear).break_even}
    at = turning["cheap", "output"]
    assert at is not None
    moved = billed("cheap", TOKENS, {**PRICES, "output": at})
    other = found(analysis(moved, dear), "dear").whole.cost_per_success.value
    assert found(analysis(moved, dear), "cheap").whole.cost_per_success.value == pytest.approx(
        other, rel=1e-5
    )
    # Cheaper by 0.0026 of 0.005 in all: no price of input alone below zero would do.
    assert ("dear", "input") not in turning
    assert ("dear", "output") in turning


def test_caching_counts_what_it_saved_and_what_it_could() -> None:
    made = analysis(
        billed("half", [(1000, 500, 10)] * 20, PRICES), billed("none", [(1000, 0, 10)] * 20, PRICES)
    )
    half, none = found(made, "half").cache, found(made, "none").cache
    assert half is not None
    assert none is not None
    # $1.5 less for each million of cached tokens.
    assert (half.cached_share, half.saved) == pytest.approx((0.5, 0.00075))
    assert (none.saved, none.at_best_share, none.at_most) == pytest.approx((0.0, 0.00075, 0.0015))


def test_input_that_is_not_cached_is_an_opportunity_with_an_upper_bound() -> None:
    [idea] = analysis(billed("none", [(1000, 0, 10)] * 20, PRICES), volume=1000).opportunities
    assert (idea.code, idea.is_certain) == ("prompt_cache", False)
    assert idea.saving.value == pytest.approx(1.5)


def test_without_a_price_for_cached_tokens_there_is_nothing_to_save() -> None:
    assert found(analysis(billed("a", TOKENS, {"input": 2.0, "output": 10.0})), "a").cache is None


def test_a_month_costs_the_volume_times_the_mean() -> None:
    month = forecast_month(np.array([1.0, 3.0]), 100)
    half = t_quantile(0.975, 1) * np.sqrt(2.0) * np.sqrt(100 + 100**2 / 2)
    assert month.value == 200.0
    assert month.high == pytest.approx(200.0 + half)
    assert month.low == 0.0


def test_the_ends_of_a_budget_are_where_it_meets_the_ends_of_the_forecast() -> None:
    usd = np.random.default_rng(3).lognormal(-6, 0.4, 50)
    budget = forecast_budget(usd, 20.0, 5000)
    assert budget is not None
    assert budget.tasks.value == pytest.approx(20.0 / usd.mean())
    assert budget.tasks.low is not None
    assert budget.tasks.high is not None
    low, high = forecast_month(usd, round(budget.tasks.low)), forecast_month(usd, round(budget.tasks.high))
    assert high.low == pytest.approx(20.0, rel=1e-3)
    assert low.high == pytest.approx(20.0, rel=1e-3)


@pytest.mark.parametrize(("budget", "lasts"), [(1.0, True), (0.99, False), (0.0005, False)])
def test_a_budget_for_a_fixed_price_lasts_or_not(budget: float, lasts: bool) -> None:
    made = found(analysis(planted("a", 0.001), volume=1000, budget=budget), "a").budget
    assert made is not None
    assert made.lasts is lasts
    assert made.days.value == pytest.approx(30 * budget)


def test_a_budget_at_the_edge_of_a_varying_cost_is_undecided() -> None:
    made = found(analysis(planted("a", lambda case: 0.001 + 0.0002 * (case % 3 - 1)), budget=1.0), "a").budget
    assert made is not None
    assert made.lasts is None
