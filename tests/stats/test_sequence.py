from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.stats.sequence import Decision, Look, PairSequence, ScoreSequence


def fed(a: list[float], b: list[float], **options: float) -> list[Look]:
    """The looks until it is over."""
    sequence, looks = PairSequence(**options), []  # type: ignore[arg-type]
    for x, y in zip(a, b, strict=True):
        looks.append(sequence.add(x, y))
        if looks[-1].is_over:
            break
    return looks


def noisy(seed: int, ratio: float, n: int = 60, spread: float = 0.05) -> tuple[list[float], list[float]]:
    chance = np.random.default_rng(seed)
    a, b = chance.lognormal(0, spread, (2, n))
    return a.tolist(), (ratio * b).tolist()


def test_nothing_is_decided_before_the_tenth_pair() -> None:
    looks = fed(*noisy(1, 5.0))
    assert [look.decision for look in looks] == [Decision.OPEN] * 9 + [Decision.HIGHER]
    assert all(math.isinf(look.high) for look in looks[:9])


@pytest.mark.parametrize(("ratio", "decision"), [(1.3, Decision.HIGHER), (0.7, Decision.LOWER)])
def test_a_large_difference_is_decided_soon(ratio: float, decision: Decision) -> None:
    last = fed(*noisy(2, ratio))[-1]
    assert last.decision is decision
    assert last.pairs <= 15
    assert last.low < ratio < last.high


def test_sameness_is_decided_when_the_interval_lies_within_the_tolerance() -> None:
    last = fed(*noisy(3, 1.0, spread=0.01))[-1]
    assert (last.decision, last.is_over) == (Decision.SAME, True)
    assert last.low >= 1 / 1.03
    assert last.high <= 1.03


def test_a_certain_but_tiny_difference_is_no_difference() -> None:
    assert fed(*noisy(4, 1.01, spread=0.002))[-1].decision is Decision.SAME
    assert fed(*noisy(4, 1.01, spread=0.002), tolerance=0.005)[-1].decision is Decision.HIGHER


def test_at_the_cap_it_is_over_though_open() -> None:
    last = fed(*noisy(5, 1.0, spread=0.3))[-1]
    assert (last.pairs, last.decision, last.is_over) == (60, Decision.OPEN, True)


def test_a_straggler_does_not_hide_a_difference() -> None:
    a, b = noisy(6, 1.2)
    b[3] *= 20
    assert fed(a, b)[-1].decision is Decision.HIGHER
    assert fed(a, b)[-1].pairs <= 20


def test_pairs_that_tell_nothing_are_left_out_and_counted_but_do_not_go_on_for_ever() -> None:
    looks = fed([math.nan, 0.0, -1.0, 1e308] * 15, [1.0, 1.0, 1.0, math.inf] * 15)
    assert (looks[-1].pairs, looks[-1].left_out, looks[-1].is_over, len(looks)) == (0, 60, True, 60)


def test_equal_pairs_are_the_same_and_all_alike_pairs_are_different() -> None:
    assert fed([2.0] * 10, [2.0] * 10)[-1].decision is Decision.SAME
    assert fed([2.0] * 10, [3.0] * 10)[-1].decision is Decision.HIGHER


@given(st.lists(st.tuples(st.floats(1e-300, 1e300), st.floats(1e-300, 1e300)), min_size=10, max_size=30))
def test_any_pairs_have_an_interval_around_their_ratio(pairs: list[tuple[float, float]]) -> None:
    sequence = PairSequence()
    for a, b in pairs:
        look = sequence.add(a, b)
    assert look.low <= look.ratio <= look.high


@pytest.mark.parametrize("spread", [0.05, 0.2])
def test_looking_after_every_pair_keeps_the_rate_of_false_alarms(spread: float) -> None:
    ends = [fed(*noisy(seed, 1.0, spread=spread))[-1].decision for seed in range(400)]
    assert np.mean([end in (Decision.HIGHER, Decision.LOWER) for end in ends]) <= 0.05


def test_ten_percent_are_settled_after_about_fifteen_pairs() -> None:
    ends = [fed(*noisy(seed, 1.1, spread=0.07))[-1] for seed in range(300)]
    assert np.mean([end.decision is Decision.HIGHER for end in ends]) >= 0.97
    assert np.mean([end.pairs for end in ends]) <= 18


def scored(a: list[float], b: list[float], **options: float) -> Look:
    """The look at which it is over, or the last."""
    sequence = ScoreSequence(**{"cap": len(a), **options})  # type: ignore[arg-type]
    for x, y in zip(a, b, strict=True):
        look = sequence.add(x, y)
        if look.is_over:
            break
    return look


def passes(seed: int, better: float, n: int = 200) -> tuple[list[float], list[float]]:
    """Cases of different difficulty, passed or not by two agents of which the second is better by some points."""
    chance = np.random.default_rng(seed)
    hard = chance.uniform(0.2, 0.8 - better, n)
    a, b = chance.random((2, n)) < [hard, hard + better]
    return a.astype(float).tolist(), b.astype(float).tolist()


def test_scores_are_decided_by_the_difference_of_their_means() -> None:
    last = scored(*passes(1, 0.4))
    assert last.decision is Decision.HIGHER
    assert 10 <= last.pairs < 200
    assert 0 < last.low < last.ratio < last.high < 1
    assert scored(*reversed(passes(1, 0.4))).decision is Decision.LOWER


def test_scores_that_all_agree_are_the_same_once_there_are_enough_and_never_at_the_first_look() -> None:
    assert scored([1.0] * 30, [1.0] * 30).decision is Decision.OPEN
    wide = scored([1.0] * 400, [1.0] * 400, tolerance=0.05)
    assert wide.decision is Decision.SAME
    assert wide.pairs > 20
    assert -0.05 <= wide.low <= 0 <= wide.high <= 0.05


def test_scores_out_of_range_are_left_out_and_counted() -> None:
    last = scored([math.nan, 2.0, -0.1, 0.5] * 10, [0.5] * 40)
    assert (last.pairs, last.left_out, last.is_over) == (10, 30, True)
    nothing = scored([math.nan] * 12, [0.5] * 12)
    assert (nothing.pairs, nothing.decision, nothing.low, nothing.high) == (0, Decision.OPEN, -1.0, 1.0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=10, max_size=40))
def test_any_scores_have_an_interval_around_their_difference(pairs: list[tuple[float, float]]) -> None:
    last = scored([a for a, _ in pairs], [b for _, b in pairs])
    assert -1 <= last.low <= last.ratio + 1e-9
    assert last.ratio - 1e-9 <= last.high <= 1
    if last.decision is Decision.HIGHER:
        assert last.low >= 0
    if last.decision is Decision.LOWER:
        assert last.high <= 0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=10, max_size=30))
def test_sides_that_change_places_turn_the_decision_round(pairs: list[tuple[float, float]]) -> None:
    a, b = [one for one, _ in pairs], [other for _, other in pairs]
    turned = {Decision.HIGHER: Decision.LOWER, Decision.LOWER: Decision.HIGHER}
    there, back = scored(a, b), scored(b, a)
    assert back.decision is turned.get(there.decision, there.decision)
    assert back.low == pytest.approx(-there.high, abs=1e-9)


def test_looking_at_scores_after_every_case_keeps_the_rate_of_false_alarms() -> None:
    ends = [scored(*passes(seed, 0.0)).decision for seed in range(400)]
    assert np.mean([end in (Decision.HIGHER, Decision.LOWER) for end in ends]) <= 0.05


def test_thirty_points_are_settled_long_before_all_cases_are_asked() -> None:
    ends = [scored(*passes(seed, 0.3)) for seed in range(200)]
    assert np.mean([end.decision is Decision.HIGHER for end in ends]) >= 0.97
    assert np.mean([end.pairs for end in ends]) <= 100


def test_whoever_runs_the_pairs_need_not_load_numpy() -> None:
    code = "import sys, assay.stats.sequence; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
