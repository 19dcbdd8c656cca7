"""The five ratings against examples worked out by hand from the formulas in docs/method.md."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from tests.ratings.tables import Row, failed, ok, rated, table
from tests.wording import Wording

from assay.analysis.ranking.ratings import curve
from assay.analysis.ranking.reference import typical_quantities
from assay.model import Limits, Rating, Ratings
from assay.stats.verdicts import consistency, pass_at, pass_hat


def value(ratings: Ratings, name: str) -> float | None:
    return ratings.dimensions[name].value


def ends(rating: Rating) -> tuple[float, float]:
    assert rating.low is not None
    assert rating.high is not None
    return rating.low, rating.high


def test_the_curve_is_a_half_at_the_reference_and_never_saturates() -> None:
    assert [curve(x, 2.0) for x in (0, 1, 2, 4, math.inf)] == pytest.approx([1, 2 / 3, 0.5, 1 / 3, 0])


def test_accuracy_is_the_mean_over_cases_whose_repetitions_were_averaged_first() -> None:
    rows = [ok("a", 1), ok("a", 0), ok("a", 0.5), ok("b", 1)]
    assert value(rated(rows), "accuracy") == pytest.approx((0.5 + 1) / 2)


def test_what_is_unscored_and_what_the_harness_spoiled_does_not_count() -> None:
    rows = [ok("a", 1), ok("a", None), failed("b", "harness_error"), failed("b", "cancelled"), ok("c", 0)]
    ratings = rated(rows)
    assert value(ratings, "accuracy") == 0.5
    assert ratings.unscored == 1
    assert ratings.outcomes == {"pass": 1, "fail": 1, "agent_error": 0, "limit": 0, "harness_error": 1}
    assert ratings.cases == 2
    assert ratings.solved == 1.0
    assert ratings.pass_at == {1: 0.5}


def test_what_is_unscored_is_not_held_against_cost_and_efficiency() -> None:
    paid = {"usd": 0.02, "tokens": 100}
    reference = {"usd": 0.02, "tokens": 100}
    judged = [ok(f"c{n}", 1.0, **paid) for n in range(10)]
    unjudged = [ok(f"u{n}", None, **paid) for n in range(10)]
    with_both, alone = rated(judged + unjudged, reference), rated(judged, reference)
    for ratings in (with_both, alone):
        assert (ratings.usd_per_solved, ratings.tokens_per_solved) == pytest.approx((0.02, 100))
        assert (value(ratings, "cost"), value(ratings, "efficiency")) == pytest.approx((0.5, 0.5))
    assert np.mean(with_both.marks["cost"]) == pytest.approx(0.5)


def test_where_nothing_was_scored_nobody_knows_what_a_solved_case_takes() -> None:
    ratings = rated([ok(f"c{n}", None, usd=0.02, tokens=100) for n in range(10)] * 2, {"usd": 1, "tokens": 1})
    assert (ratings.usd_per_solved, ratings.tokens_per_solved) == (None, None)
    assert value(ratings, "cost") is value(ratings, "efficiency") is None
    assert ratings.dimensions["cost"].basis == "nothing was scored"
    assert value(ratings, "reliability") is None
    assert ratings.completion == 1.0
    free = rated([ok("c", None, usd=0.0)])
    assert (free.usd_per_solved, free.dimensions["cost"].value) == (0.0, 1.0)


def test_an_execution_in_which_the_agent_failed_scores_nothing() -> None:
    rows = [ok("a", 1), failed("b"), failed("c", "timeout"), failed("d", "crashed")]
    ratings = rated(rows)
    assert value(ratings, "accuracy") == 0.25
    assert ratings.outcomes == {"pass": 1, "fail": 0, "agent_error": 2, "limit": 1, "harness_error": 0}


def test_speed_rates_the_median_of_the_completed_cases() -> None:
    rows = [ok("a", seconds=1), ok("a", seconds=3), ok("b", seconds=4), ok("c", seconds=6)]
    rows.append(failed("d", "timeout", seconds=100))
    # Case medians 2, 4, 6: the median is 4 s against a reference of 2 s.
    assert value(rated(rows, {"seconds": 2}), "speed") == pytest.approx(1 / (1 + 4 / 2))


def test_a_reference_comes_from_the_rubric_else_the_first_run_else_half_the_limit() -> None:
    rows, limits = [ok("a", seconds=1)], Limits(seconds=8)
    assert value(rated(rows, {"seconds": 1}, limits, {"seconds": 2}), "speed") == pytest.approx(1 / 2)
    assert value(rated(rows, {}, limits, {"seconds": 2}), "speed") == pytest.approx(1 / (1 + 1 / 2))
    assert value(rated(rows, {}, limits), "speed") == pytest.approx(1 / (1 + 1 / 4))
    sources = [
        rated(rows, {"seconds": 1}, limits, {"seconds": 2}).references["seconds"],
        rated(rows, {}, limits, {"seconds": 2}).references["seconds"],
        rated(rows, {}, limits).references["seconds"],
    ]
    assert [str(one) for one in sources] == ["rubric", "run r1, 2026-03-01", "half the limit"]
    unrated = rated(rows).dimensions["speed"]
    assert unrated.value is None
    assert unrated.basis.startswith("no reference")


def test_a_run_as_reference_has_the_median_over_its_agents_of_what_ratings_use() -> None:
    """One agent of the three solves nothing, so nobody knows what a solved case takes it."""
    first = table([ok("a", 1, seconds=1, usd=0.01, tokens=10), ok("b", 0, seconds=3, usd=0.03, tokens=30)])
    second = table(
        [ok("a", 1, seconds=6, usd=0.02), failed("b", usd=0.02), ok("c", None, seconds=6, usd=9.0)]
    )
    third = table([ok("a", 0, seconds=9, usd=5.0)])
    assert typical_quantities([first, second, third], 0.5) == pytest.approx(
        {"seconds": 6, "usd": 0.04, "tokens": 40}
    )


def test_agents_that_failed_everything_or_used_nothing_up_do_not_move_the_reference() -> None:
    paid = table([ok("a", seconds=2, usd=0.5, cpu_seconds=4, rss_max_bytes=2**22)])
    free = table([ok("a", seconds=2, usd=0.0)])
    broken = table([failed("a", seconds=100, usd=100)])
    assert typical_quantities([paid, free, broken], 0.5) == pytest.approx(
        {"seconds": 2, "usd": 0.5, "cpu_seconds": 4, "memory_mb": 4}
    )
    assert typical_quantities([broken], 0.5) == typical_quantities([], 0.5) == {}


def test_cost_is_what_a_solved_case_costs_all_in() -> None:
    rows = [ok("a", 1, usd=0.01), ok("b", 0, usd=0.03), failed("c", usd=0.02)]
    ratings = rated(rows, {"usd": 0.02})
    assert ratings.usd_per_solved == pytest.approx(0.06)
    assert value(ratings, "cost") == pytest.approx(1 / (1 + 0.06 / 0.02))


def test_an_agent_that_solves_nothing_for_money_has_the_lowest_cost_rating() -> None:
    ratings = rated([ok("a", 0, usd=0.01)], {"usd": 0.02})
    assert value(ratings, "cost") == 0.0
    assert ratings.usd_per_solved == math.inf


@pytest.mark.parametrize(
    "rows",
    [
        [ok(case, 0, seconds=1e-6, usd=0.0) for case in "aabb"],
        [failed(case, "failed", seconds=1e-6) for case in "aabb"],
        [failed(case, "timeout", seconds=9.0) for case in "ab"],
    ],
    ids=["wrong", "raising", "too slow"],
)
def test_an_agent_that_solves_nothing_is_rated_0_overall_whatever_else_it_is(rows: list[Row]) -> None:
    ratings = rated(rows, {"seconds": 1.0, "usd": 0.01})
    assert ratings.overall.value == 0.0
    assert [value(ratings, name) for name in ("accuracy", "speed", "cost")] == [0.0, 0.0, 0.0]
    assert {name: list(ratings.marks[name]) for name in ("speed", "cost")} == {
        "speed": [0.0, 0.0],
        "cost": [0.0, 0.0],
    }
    assert value(ratings, "efficiency") is None


def test_an_agent_that_fails_half_of_the_time_is_rated_by_the_other_half() -> None:
    rows = [ok("a", 1, seconds=1.0), ok("a", 1, seconds=1.0), failed("b"), failed("b")]
    ratings = rated(rows, {"seconds": 1.0})
    assert [value(ratings, name) for name in ("accuracy", "speed", "reliability")] == [0.5, 0.5, 0.5]
    assert ratings.overall.value == pytest.approx(0.5)


def test_where_accuracy_has_no_weight_an_agent_is_rated_by_the_rest() -> None:
    ratings = rated([ok("a", 0, seconds=1.0)], {"seconds": 1.0}, weights={"accuracy": 0.0})
    assert ratings.overall.value == value(ratings, "speed") == 0.5


def test_an_unknown_cost_is_unrated_and_a_free_agent_has_the_highest_rating() -> None:
    unknown = rated([ok("a", 1, usd=0.01), ok("b", 1)], {"usd": 0.02})
    assert (value(unknown, "cost"), unknown.usd_per_solved) == (None, None)
    assert value(rated([ok("a", 1, usd=0.0)]), "cost") == 1.0


def test_efficiency_is_the_geometric_mean_of_what_was_measured() -> None:
    rows = [ok("a", 1, tokens=100, cpu_seconds=1), ok("b", 0, tokens=200, cpu_seconds=3)]
    # 300 tokens for one solved case, 2 CPU seconds an execution.
    by_tokens, by_cpu = 1 / (1 + 300 / 150), 1 / (1 + 2 / 4)
    assert value(rated(rows, {"tokens": 150}), "efficiency") == pytest.approx(by_tokens)
    both = rated(rows, {"tokens": 150, "cpu_seconds": 4})
    assert value(both, "efficiency") == pytest.approx(math.sqrt(by_tokens * by_cpu))
    memory = rated([ok("a", rss_max_bytes=2.0**21)], {"memory_mb": 2})
    assert value(memory, "efficiency") == pytest.approx(0.5)
    assert value(rated(rows), "efficiency") is None


def test_executions_that_were_killed_make_an_agent_no_more_efficient() -> None:
    rows = [ok("a", cpu_seconds=2), failed("b", "timeout"), failed("c", "crashed")]
    assert value(rated(rows, {"cpu_seconds": 2}), "efficiency") == pytest.approx(0.5)


def test_reliability_is_completion_times_consistency() -> None:
    rows = [ok("a", 1), ok("a", 1), ok("a", 0), ok("b", 1), ok("b", 1), failed("b")]
    # 5 of 6 completed; two of three alike in both cases: a pair agrees in 1 of 3.
    assert value(rated(rows), "reliability") == pytest.approx(5 / 6 * 1 / 3)


def test_reliability_of_one_repetition_is_unrated_and_completion_is_known() -> None:
    rows = [ok("a", 1), ok("a", 0), ok("b", 1), ok("c", 1)]
    assert value(rated(rows), "reliability") == 0.0
    alone = rated([ok("a", 1), ok("b", 0), ok("c", 1), failed("d")])
    assert value(alone, "reliability") is None
    assert "one repetition" in alone.dimensions["reliability"].basis
    assert alone.completion == 0.75
    assert "reliability" in alone.overall.basis
    assert alone.overall.value == value(alone, "accuracy") == 0.5


def test_a_perfect_record_on_few_cases_is_not_certain() -> None:
    few, many = (
        rated([ok(f"c{n}", 1) for n in range(count) for _ in range(2)]).dimensions["reliability"]
        for count in (5, 100)
    )
    assert (few.value, many.value) == (1.0, 1.0)
    assert ends(few)[0] < ends(many)[0] < 1
    assert ends(few)[1] == 1.0


def test_overall_is_the_weighted_mean_of_the_rated_dimensions() -> None:
    rows = [ok("a", 1, seconds=1, usd=0.02, tokens=50), ok("b", 0, seconds=1, usd=0.02, tokens=50)] * 2
    ratings = rated(rows, {"seconds": 1, "usd": 0.04, "tokens": 100})
    assert {name: value(ratings, name) for name in ratings.dimensions} == pytest.approx(
        {"accuracy": 0.5, "speed": 0.5, "efficiency": 0.5, "cost": 0.5, "reliability": 1.0}
    )
    assert ratings.overall.value == pytest.approx(0.85 * 0.5 + 0.15 * 1.0)
    assert ratings.overall.basis == "all five dimensions"


def test_weights_are_renormalised_when_a_dimension_is_unrated_and_it_is_said() -> None:
    ratings = rated([ok("a", 0.4), ok("a", 0.4)])
    assert value(ratings, "speed") is None
    assert ratings.overall.value == pytest.approx((0.30 * 0.4 + 0.15 * 1.0) / 0.45)
    assert ratings.overall.basis.endswith(" speed, efficiency, cost")


def test_a_rubric_may_change_the_weights_and_the_pass_mark() -> None:
    ratings = rated([ok("a", 0.6), ok("b", 1.0)], weights={"reliability": 0}, pass_mark=0.7)
    assert ratings.overall.value == pytest.approx(0.8)
    assert ratings.outcomes["pass"] == 1


def test_nothing_at_all_is_rated_as_nothing() -> None:
    ratings = rated([])
    assert all(rating.value is None for rating in ratings.dimensions.values())
    assert ratings.overall.value is None


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_and_pass_hat_k_are_the_shares_of_all_choices_of_k(k: int) -> None:
    verdicts = [[1, 1, 0, 0, 1], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 1, 0]]
    choices = [[list(c) for c in combinations(one, k)] for one in verdicts]
    any_passes = np.mean([np.mean([any(c) for c in of_case]) for of_case in choices])
    all_pass = np.mean([np.mean([all(c) for c in of_case]) for of_case in choices])
    passed, tries = np.array([sum(one) for one in verdicts]), np.full(4, 5)
    assert pass_at(k, passed, tries) == pytest.approx(any_passes)
    assert pass_hat(k, passed, tries) == pytest.approx(all_pass)


def test_consistency_is_the_share_of_pairs_that_agree() -> None:
    verdicts = [[1, 1, 0, 1], [0, 0, 0, 0], [1, 0], [1]]
    expected = [
        np.mean([a == b for a, b in combinations(one, 2)]) if len(one) > 1 else 1.0 for one in verdicts
    ]
    passed, tries = np.array([sum(one) for one in verdicts]), np.array([len(one) for one in verdicts])
    assert consistency(passed, tries) == pytest.approx(expected)


def test_a_judge_that_contradicts_itself_is_reported(wording: Wording) -> None:
    rows = [ok(f"c{n}", 1, **{"score.judge_disagreement": 0.25}) for n in range(30)]
    (doubt,) = [doubt for doubt in rated(rows).doubts if " 0.25" in doubt]
    wording(doubt)


def test_a_cost_that_failures_did_not_tell_is_doubted_and_not_taken_for_nothing(wording: Wording) -> None:
    known = [ok("a", usd=1.0, tokens=0), ok("b", usd=1.0, tokens=0)]
    late = [failed("c", "timeout"), failed("d")]
    told = [doubt for doubt in rated([*known, *late]).doubts if "unknown" in doubt]
    (doubt,) = told
    assert "cost of 2" in doubt
    wording(doubt)
    paid = [failed("c", "timeout", usd=1.0), failed("d", usd=0.0)]
    free = [ok("a", usd=0.0), failed("b"), failed("c", "harness_error")]
    for rows in ([*known, *paid], free, [*known, ok("c", None, usd=1.0)]):
        assert not any("unknown" in doubt for doubt in rated(rows).doubts)
