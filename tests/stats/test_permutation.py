"""Repetitions exchanged within cases: exact p values, their mirror images, and the rates that gates promise."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from assay.stats.permutation import PermutationTest, Repetitions, permutation_test, repetitions_to_settle

Table = list[tuple[list[float], list[float]]]
"""The scores of A and B, case by case."""


def run_test(table: Table) -> PermutationTest:
    sides = []
    for side in (0, 1):
        numbers = [number for number, case in enumerate(table) for _ in case[side]]
        sides.append(Repetitions.of([score for case in table for score in case[side]], numbers))
    found = permutation_test(*sides)
    assert found is not None
    return found


def of_deterministic(cases: int, lost: int, repetitions: int) -> Table:
    passed, failed = [1.0] * repetitions, [0.0] * repetitions
    return [(passed, failed if case < lost else passed) for case in range(cases)]


def tables(*scores: float) -> st.SearchStrategy[Table]:
    side = st.lists(st.sampled_from(scores), min_size=1, max_size=3)
    return st.lists(st.tuples(side, side), min_size=1, max_size=4)


def test_two_lost_cases_of_thirty_are_significant_with_three_repetitions() -> None:
    assert run_test(of_deterministic(30, 2, 3)).p_worse == pytest.approx(0.0025)
    assert run_test(of_deterministic(30, 5, 3)).p_worse == pytest.approx(1 / 20**5)


@given(tables(0.0, 1.0) | tables(0.0, 0.25, 0.5, 1.0))
@settings(max_examples=30, deadline=None)
def test_it_agrees_with_trying_every_exchange(table: Table) -> None:
    found = run_test(table)
    sums = [0.0]
    for before, after in table:
        pooled = [*before, *after]
        drawn = [sum(chosen) for chosen in itertools.combinations(pooled, len(after))]
        sums = [total + one for total in sums for one in drawn]
        if len(sums) > 20_000:
            return
    seen = sum(sum(after) for _, after in table)
    assert found.p_worse == pytest.approx(np.mean([one <= seen + 1e-9 for one in sums]))
    assert found.p_better == pytest.approx(np.mean([one >= seen - 1e-9 for one in sums]))


@given(tables(0.0, 1.0) | tables(0.0, 0.3, 0.7, 1.0))
@settings(max_examples=30, deadline=None)
def test_swapping_the_sides_mirrors_everything(table: Table) -> None:
    there, back = run_test(table), run_test([(after, before) for before, after in table])
    assert there.p_worse == pytest.approx(back.p_better)
    assert there.p == pytest.approx(back.p)
    assert there.difference == pytest.approx(-back.difference)
    assert there.effect().low == pytest.approx(-back.effect().high)


@given(tables(0.0, 1.0) | tables(0.0, 0.123456, 0.7, 1.0))
@settings(max_examples=30, deadline=None)
def test_identical_sides_have_p_one_and_no_width_where_nothing_varies(table: Table) -> None:
    assert run_test([(before, before) for before, _ in table]).p == 1.0
    constant = [(before[:1] * 3, before[:1] * 3) for before, _ in table]
    effect = run_test(constant).effect()
    assert effect.low == effect.value == effect.high == 0.0


@given(tables(0.0, 1.0), st.integers(1, 4))
@settings(max_examples=30, deadline=None)
def test_another_lost_case_never_raises_p(table: Table, repetitions: int) -> None:
    lost = ([1.0] * repetitions, [0.0] * repetitions)
    assert run_test([*table, lost]).p_worse <= run_test(table).p_worse * (1 + 1e-9)


@given(tables(0.0, 1.0))
@example([([0.0], [1.0])] * 3 + [([0.0, 0.0, 0.0], [0.0, 1.0, 1.0])])  # p is exactly 5 %
@settings(max_examples=30, deadline=None)
def test_the_interval_excludes_zero_exactly_when_p_is_below_five_percent(table: Table) -> None:
    found = run_test(table)
    assert found.effect().excludes_neutral == (found.p < 0.05)
    assert found.effect().low <= found.difference <= found.effect().high


def test_random_draws_and_the_normal_approximation_agree_with_the_exact_test() -> None:
    chance = np.random.default_rng(3)
    exact, drawn, normal = (
        _shifted(chance, cases, shift) for cases, shift in ((40, 0), (40, 1e-4), (200, 1e-4))
    )
    assert exact.method.startswith("exact")
    assert "Monte Carlo" in drawn.method
    assert "normal" in normal.method
    assert drawn.p_worse == pytest.approx(exact.p_worse, abs=0.01)
    assert normal.p_worse == pytest.approx(exact.p_worse, abs=0.01)


def _shifted(chance: np.random.Generator, cases: int, jitter: float) -> PermutationTest:
    """Tenths that fall by a twentieth on average; a `jitter` makes them fine, copies of the cases make them many."""
    base = np.random.default_rng(11)
    table: Table = []
    for _ in range(40):
        middle = base.uniform(0.3, 0.9)
        before, after = (np.round(base.normal(middle - fall, 0.15, 3).clip(0, 1), 1) for fall in (0.0, 0.03))
        table.append((list(before), list(after)))
    constant: Table = [([0.5] * 3, [0.5] * 3)] * (cases - 40)
    jittered = [
        tuple([x + jitter * chance.random() for x in side] for side in case) for case in (*table, *constant)
    ]
    return run_test(jittered)  # type: ignore[arg-type]


@pytest.mark.parametrize(("repetitions", "found"), [(1, 0.19), (3, 0.80), (5, 0.97)])
def test_lost_cases_of_a_flaky_agent_are_found_and_false_alarms_stay_rare(
    repetitions: int, found: float
) -> None:
    """30 cases that pass nine times in ten, of which 5 are lost; the design document measured these rates."""
    chance = np.random.default_rng(17)
    numbers = np.repeat(np.arange(30), repetitions)
    alarms = hits = 0
    for _ in range(400):
        before, same, broken = ((chance.random((30, repetitions)) < 0.9).astype(float) for _ in range(3))
        broken[:5] = 0
        sides = [Repetitions.of(side.ravel(), numbers) for side in (before, same, broken)]
        quiet, loud = (permutation_test(sides[0], side) for side in sides[1:])
        assert quiet is not None
        assert loud is not None
        alarms += quiet.p_worse < 0.025
        hits += loud.p_worse < 0.025
    assert alarms / 400 <= 0.025
    assert hits / 400 == pytest.approx(found, abs=0.06)


def test_intervals_cover_the_true_difference_of_these_cases() -> None:
    chance = np.random.default_rng(23)
    covered = 0
    for _ in range(400):
        before = chance.beta(1, 0.5, 30)
        after = np.where(chance.random(30) < 0.2, before * 0.5, before)
        numbers = np.repeat(np.arange(30), 3)
        sides = ((chance.random((30, 3)) < rate[:, None]).astype(float).ravel() for rate in (before, after))
        found = permutation_test(*(Repetitions.of(side, numbers) for side in sides))
        assert found is not None
        covered += found.effect().low <= (after - before).mean() <= found.effect().high
    assert covered / 400 >= 0.93


def test_cases_of_one_side_only_do_not_count() -> None:
    a = Repetitions.of([1, 1, 0, 0], [1, 1, 2, 2])
    b = Repetitions.of([0, 0, 1, 1], [1, 1, 3, 3])
    found = permutation_test(a, b)
    assert found is not None
    assert found.difference == -1
    assert found.p_worse == pytest.approx(1 / 6)
    assert permutation_test(a, Repetitions.of([1], [9])) is None


def test_the_repetitions_that_would_settle_flips_are_counted() -> None:
    assert repetitions_to_settle(1, 0, 0.05) == 4
    assert repetitions_to_settle(5, 0, 0.05) == 2
    assert repetitions_to_settle(0, 2, 0.05) == 3
    assert repetitions_to_settle(2, 2, 0.05) is None


def test_ten_thousand_cases_take_a_moment() -> None:
    chance = np.random.default_rng(1)
    rates = chance.beta(1, 0.5, 10_000)[:, None]
    numbers = np.repeat(np.arange(10_000), 5)
    sides = [
        Repetitions.of((chance.random((10_000, 5)) < rates).astype(float).ravel(), numbers) for _ in range(2)
    ]
    taken = []
    for _ in range(5):
        began = time.process_time()
        permutation_test(*sides)
        taken.append(time.process_time() - began)
    assert min(taken) < 0.05
