"""Efficiency, savings and the rules that find ways to spend less."""

from __future__ import annotations

import pytest
from tests.cost.subjects import analysis, found, planted, subject
from tests.ratings.tables import failed, ok

from assay.model.cost import CostAnalysis


def codes(made: CostAnalysis, configuration: str) -> list[str]:
    return [one.code for one in made.opportunities if one.configuration == configuration]


def test_efficiency_is_the_cheapest_of_equal_quality_by_its_own() -> None:
    made = analysis(planted("cheap", 0.001), planted("fair", 0.0011), planted("dear", 0.004))
    scores = {one.name: one.efficiency for one in made.configurations}
    assert scores == pytest.approx({"cheap": 1.0, "fair": 1 / 1.1, "dear": 0.25}, rel=1e-6)
    assert [one.name for one in made.optimal] == ["cheap", "fair"]


def test_a_cheaper_configuration_of_lower_quality_does_not_count() -> None:
    made = analysis(planted("cheap", 0.001, lambda case: case % 2 == 0), planted("good", 0.004))
    assert found(made, "good").efficiency == 1.0
    assert found(made, "good").undecided == ()


def test_a_cheaper_configuration_that_may_be_as_good_is_named_as_undecided() -> None:
    made = analysis(planted("cheap", 0.001, lambda case: case > 0), planted("good", 0.004))
    good = found(made, "good")
    assert (good.efficiency, good.undecided) == (1.0, ("cheap",))
    assert "measure_quality" in codes(made, "good")
    wide = analysis(planted("cheap", 0.001, lambda case: case > 0), planted("good", 0.004), tolerance=0.2)
    assert found(wide, "good").efficiency == pytest.approx(0.25 / 0.975)
    assert codes(wide, "good") == ["switch"]


def test_the_saving_of_a_month_is_the_volume_times_the_difference() -> None:
    made = analysis(planted("cheap", 0.001), planted("dear", 0.004), volume=50_000)
    saving = found(made, "cheap").saving
    assert saving is not None
    assert saving.instead_of == "dear"
    assert saving.per_month.value == pytest.approx(150.0, rel=1e-6)
    [switch] = made.opportunities
    assert (switch.code, switch.configuration, switch.is_certain) == ("switch", "dear", True)
    assert switch.saving.value == pytest.approx(150.0, rel=1e-6)


def test_a_point_of_a_sweep_is_held_against_its_own_agent_first() -> None:
    made = analysis(
        planted("a[n=1]", 0.001, agent="a"), planted("a[n=2]", 0.002, agent="a"), planted("b", 0.009)
    )
    saving = found(made, "a[n=1]").saving
    assert saving is not None
    assert saving.instead_of == "a[n=2]"


def test_a_cascade_asks_the_dear_one_only_where_the_cheap_one_failed() -> None:
    made = analysis(planted("cheap", 0.001, lambda case: case < 30), planted("dear", 0.010), volume=1)
    [cascade] = [one for one in made.opportunities if one.code == "cascade"]
    # 0.001 in every case, and 0.010 in a quarter of them, instead of 0.010 in all.
    assert cascade.saving.value == pytest.approx(0.010 - (0.001 + 0.25 * 0.010), rel=1e-5)
    assert not cascade.is_certain


def test_money_for_executions_that_failed_is_an_opportunity() -> None:
    rows = [ok(f"c{n}", usd=0.002) for n in range(15)] + [failed(f"d{n}", usd=0.002) for n in range(5)]
    made = analysis(subject("a", rows), volume=1000)
    [failures] = [one for one in made.opportunities if one.code == "failures"]
    assert failures.saving.value == pytest.approx(0.25 * 0.002 * 1000)


def test_an_agent_alone_with_fixed_costs_has_nothing_to_improve() -> None:
    made = analysis(planted("a", 0.002))
    assert made.opportunities == ()
    assert [one.name for one in made.optimal] == ["a"]
