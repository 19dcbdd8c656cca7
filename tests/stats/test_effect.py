"""Rank tests of two samples against enumeration, textbooks and each other."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.computing import at_most

from assay.stats.effect import Effect, compare_paired, compare_unpaired
from assay.stats.rank_distributions import compute_signed_rank_cdf, rank_sum_cdf
from assay.stats.sample import Scale

# Permeability constants of the human chorioamnion, at term and at 12 to 26 weeks: Hollander and Wolfe (1973), p. 69.
AT_TERM = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46]
EARLIER = [1.15, 0.88, 0.90, 0.74, 1.21]
# Depression scale before and after tranquillisers: Hollander and Wolfe (1973), p. 29.
BEFORE = [1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30]
AFTER = [0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29]

positive = st.floats(1e-3, 1e3)
anything = st.floats(allow_nan=False, allow_infinity=False)


def some(effect: Effect | None) -> Effect:
    assert effect is not None
    return effect


def below_zero(sample: list[float]) -> list[float]:
    """Shifted, so that differences rather than ratios are taken."""
    return [value - 100 for value in sample]


def enumerated_rank_sum_p(a: list[float], b: list[float]) -> float:
    """Every way to deal the values to the two sides, one by one."""
    values = [*a, *b]

    def count(chosen: tuple[int, ...]) -> int:
        rest = [values[i] for i in range(len(values)) if i not in chosen]
        return sum(values[i] > other for i in chosen for other in rest)

    seen = count(tuple(range(len(a), len(values))))
    counts = [count(chosen) for chosen in itertools.combinations(range(len(values)), len(b))]
    tail = min(sum(c <= seen for c in counts), sum(c >= seen for c in counts))
    return min(1.0, 2 * tail / len(counts))


def enumerated_signed_rank_p(steps: list[float]) -> float:
    ranks = {abs(step): rank for rank, step in enumerate(sorted(steps, key=abs), 1)}
    seen = sum(ranks[abs(step)] for step in steps if step > 0)
    sums = [sum(chosen) for chosen in itertools.product(*((0, rank) for rank in ranks.values()))]
    tail = min(sum(s <= seen for s in sums), sum(s >= seen for s in sums))
    return min(1.0, 2 * tail / len(sums))


@settings(max_examples=60)
@given(st.lists(positive, min_size=2, max_size=9, unique=True), st.data())
def test_the_unpaired_p_is_that_of_enumeration(values: list[float], data) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    a, b = values[:cut], values[cut:]
    assert some(compare_unpaired(a, b)).p == pytest.approx(enumerated_rank_sum_p(a, b))


@settings(max_examples=60)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=9, unique=True), st.data())
def test_the_paired_p_is_that_of_enumeration(sizes: list[int], data) -> None:
    steps = [float(size * data.draw(st.sampled_from([-1, 1]))) for size in sizes]
    effect = some(compare_paired([-1000.0] * len(steps), [-1000.0 + step for step in steps]))
    assert effect.p == pytest.approx(enumerated_signed_rank_p(steps))


def test_the_unpaired_textbook_example() -> None:
    effect = some(compare_unpaired(below_zero(EARLIER), below_zero(AT_TERM)))
    # One-sided 0.1272 there, and the estimate of the shift 0.305.
    assert effect.p == pytest.approx(2 * 0.1272, abs=1e-4)
    assert effect.value == pytest.approx(0.305)
    assert (effect.low, effect.high) == pytest.approx((-0.15, 0.76))
    assert effect.scale is Scale.DIFFERENCE


def test_the_paired_textbook_example() -> None:
    effect = some(compare_paired(below_zero(AFTER), below_zero(BEFORE)))
    # One-sided 0.0195 there (T = 40 of 45), and the estimate 0.46.
    assert effect.p == pytest.approx(2 * 0.01953125)
    assert effect.value == pytest.approx(0.46)
    assert effect.method.startswith("exact Wilcoxon")


def test_the_critical_values_are_those_of_the_tables() -> None:
    # Two-sided 5 %: U <= 23 for 10 and 10, U <= 2 for 5 and 5; T <= 8 for ten pairs, T <= 434 for fifty.
    assert rank_sum_cdf(10, 10)[23] <= 0.025 < rank_sum_cdf(10, 10)[24]
    assert rank_sum_cdf(5, 5)[2] <= 0.025 < rank_sum_cdf(5, 5)[3]
    assert compute_signed_rank_cdf(10)[8] <= 0.025 < compute_signed_rank_cdf(10)[9]
    assert compute_signed_rank_cdf(50)[434] <= 0.025 < compute_signed_rank_cdf(50)[435]


@given(
    st.lists(positive, min_size=5, max_size=12, unique=True),
    st.lists(positive, min_size=5, max_size=12, unique=True),
)
def test_interval_and_p_say_the_same(a: list[float], b: list[float]) -> None:
    assume(not set(a) & set(b))
    assume(all(math.log(x) != math.log(y) for x in a for y in b))
    effect = some(compare_unpaired(a, b))
    assert effect.excludes_neutral == (effect.p <= 0.05)
    assert effect.low <= effect.value <= effect.high


@given(st.lists(positive, min_size=2, max_size=12), st.lists(positive, min_size=2, max_size=12))
def test_a_ratio_scales_with_b_and_inverts_when_the_sides_are_swapped(a: list[float], b: list[float]) -> None:
    effect, scaled, swapped = (
        some(compare_unpaired(a, b)),
        some(compare_unpaired(a, [8 * x for x in b])),
        some(compare_unpaired(b, a)),
    )
    assert scaled.value == pytest.approx(8 * effect.value)
    assert scaled.high == pytest.approx(8 * effect.high)
    assert swapped.value == pytest.approx(1 / effect.value)
    assert swapped.p == pytest.approx(effect.p)
    assert swapped.low == pytest.approx(1 / effect.high if math.isfinite(effect.high) else 0.0)


@given(st.lists(positive, min_size=2, max_size=12), st.lists(positive, min_size=2, max_size=12), st.randoms())
def test_the_order_of_independent_values_does_not_matter(a: list[float], b: list[float], chance) -> None:
    shuffled = list(b)
    chance.shuffle(shuffled)
    assert compare_unpaired(a, b) == compare_unpaired(a, shuffled)


@given(st.lists(st.tuples(positive, positive), min_size=1, max_size=12), st.randoms())
def test_the_order_of_pairs_does_not_matter(pairs: list[tuple[float, float]], chance) -> None:
    shuffled = list(pairs)
    chance.shuffle(shuffled)
    first, second = (some(compare_paired([a for a, _ in p], [b for _, b in p])) for p in (pairs, shuffled))
    assert first.p == pytest.approx(second.p)
    assert (first.value, first.low, first.high) == (second.value, second.low, second.high)


@given(st.lists(anything, max_size=8), st.lists(anything, max_size=8))
def test_any_floats_are_compared_without_a_warning(a: list[float], b: list[float]) -> None:
    effect = compare_unpaired(a, b)
    assert (effect is None) == (not a or not b)
    pairs = min(len(a), len(b))
    assert (compare_paired(a[:pairs], b[:pairs]) is None) == (pairs == 0)
    if effect is not None:
        assert 0 <= effect.p <= 1
        assert effect.low <= effect.value <= effect.high


def test_equal_constants_are_certainly_equal() -> None:
    for compare in (compare_unpaired, compare_paired):
        effect = some(compare([5.0] * 10, [5.0] * 10))
        assert (effect.value, effect.low, effect.high, effect.p) == (1.0, 1.0, 1.0, 1.0)


def test_different_constants_are_certainly_different() -> None:
    for compare in (compare_unpaired, compare_paired):
        effect = some(compare([5.0] * 10, [6.0] * 10))
        assert effect.value == pytest.approx(1.2)
        assert effect.excludes_neutral
        assert effect.p < 0.01


def test_zeros_are_compared_by_differences() -> None:
    effect = some(compare_unpaired([0.0] * 6, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]))
    assert (effect.scale, effect.value) == (Scale.DIFFERENCE, 2.5)


def test_so_few_values_that_none_could_be_significant_leave_the_interval_unbounded() -> None:
    effect = some(compare_unpaired([1.0, 2.0], [3.0, 4.0]))
    assert (effect.low, effect.high) == (0.0, math.inf)
    assert effect.p == pytest.approx(1 / 3)
    assert some(compare_paired([1.0], [2.0])).p == 1.0


def test_ratios_too_large_for_a_number_stay_finite() -> None:
    assert math.isfinite(some(compare_unpaired([1e-300] * 6, [1e300] * 6)).high)


def test_pairs_with_a_missing_half_are_left_out() -> None:
    effect = some(compare_paired([1.0, math.nan, 1.0], [2.0, 5.0, 2.0]))
    assert effect.value == pytest.approx(2.0)


def enumerated_tied_p(a: list[float], b: list[float]) -> float:
    """Every way to deal the values, where equal ones count half."""
    values = [*a, *b]

    def above(chosen: tuple[int, ...]) -> float:
        rest = [values[i] for i in range(len(values)) if i not in chosen]
        return sum((values[i] > other) + (values[i] == other) / 2 for i in chosen for other in rest)

    seen = above(tuple(range(len(a), len(values))))
    counts = [above(chosen) for chosen in itertools.combinations(range(len(values)), len(b))]
    tail = min(sum(c <= seen for c in counts), sum(c >= seen for c in counts))
    return min(1.0, 2 * tail / len(counts))


@given(st.lists(st.integers(1, 4), min_size=2, max_size=9), st.data())
def test_the_unpaired_p_of_tied_values_is_that_of_enumeration(values: list[int], data) -> None:
    cut = data.draw(st.integers(1, len(values) - 1))
    a, b = [float(v) for v in values[:cut]], [float(v) for v in values[cut:]]
    assert some(compare_unpaired(a, b)).p == pytest.approx(enumerated_tied_p(a, b))


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9))
def test_the_paired_p_of_tied_values_is_that_of_enumeration(steps: list[int]) -> None:
    moved = [step for step in steps if step]
    sizes = sorted(abs(step) for step in moved)
    ranks = [sizes.index(abs(step)) + (sizes.count(abs(step)) + 1) / 2 for step in moved]
    seen = sum(rank for rank, step in zip(ranks, moved, strict=True) if step > 0)
    sums = [sum(chosen) for chosen in itertools.product(*((0, rank) for rank in ranks))]
    tail = min(sum(s <= seen for s in sums), sum(s >= seen for s in sums))
    effect = some(compare_paired([-100.0] * len(steps), [-100.0 + step for step in steps]))
    assert effect.p == pytest.approx(min(1.0, 2 * tail / len(sums)))


def test_many_tied_values_use_the_corrected_normal_approximation() -> None:
    # Siegel and Castellan (1988), section 6.4: variance nm/12 · (N + 1 - Σ(t³ - t) / (N(N - 1))).
    a, b = [1.0, 2.0, 2.0, 3.0, 4.0, 4.0] * 4, [2.0, 3.0, 4.0, 5.0, 5.0, 6.0] * 4
    ties = [(a + b).count(value) for value in set(a + b)]
    variance = 24 * 24 / 12 * (49 - sum(t**3 - t for t in ties) / (48 * 47))
    statistic = sum((y > x) + (y == x) / 2 for x in a for y in b)
    z = (abs(statistic - 24 * 12) - 0.5) / math.sqrt(variance)
    assert some(compare_unpaired(a, b)).p == pytest.approx(math.erfc(z / math.sqrt(2)))


@given(st.lists(positive, min_size=1, max_size=12), st.lists(positive, min_size=1, max_size=12))
def test_dominance_is_the_chance_to_be_above_less_that_to_be_below(a: list[float], b: list[float]) -> None:
    wins = sum((y > x) - (y < x) for x in a for y in b)
    assert some(compare_unpaired(a, b)).dominance == pytest.approx(wins / (len(a) * len(b)))
    n = min(len(a), len(b))
    pairs = [(y > x) - (y < x) for x, y in zip(a, b, strict=False) if math.log(x) != math.log(y)]
    assert some(compare_paired(a[:n], b[:n])).dominance == pytest.approx(sum(pairs) / n)


@pytest.mark.parametrize("compare", [compare_unpaired, compare_paired])
def test_large_samples_are_selected_from_rather_than_written_out(compare) -> None:
    chance = np.random.default_rng(4)
    a = chance.lognormal(0, 0.1, 1500)
    b = a * 1.1 if compare is compare_paired else chance.lognormal(math.log(1.1), 0.1, 1500)
    with at_most(1):
        effect = some(compare(a, b))
    assert effect.value == pytest.approx(1.1, rel=0.01)
    thinned = some(compare(a[:900], b[:900]))
    assert thinned.low - 1e-9 <= effect.value <= thinned.high + 1e-9


@pytest.mark.parametrize("scale", [0.1, 0.3, 7.0, 1e-7, 1e9 / 3])
def test_equal_ratios_are_ties_at_any_magnitude(scale: float) -> None:
    ratios = np.array([2, 2, 2, 0.5, 0.5, 2, 0.5, 2, 4, 0.25])
    a = np.arange(1.0, 11.0)
    scaled, exact = (
        some(compare_paired(scale * a, scale * a * ratios)),
        some(compare_paired(np.ones(10), ratios)),
    )
    assert scaled.p == exact.p
    assert (scaled.value, scaled.low, scaled.high) == pytest.approx((exact.value, exact.low, exact.high))


def test_differences_that_are_equal_but_for_rounding_are_ties() -> None:
    a = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    assert some(compare_paired(a, [x + 0.1 for x in a])).p == some(compare_paired([0.0] * 7, [0.1] * 7)).p
    assert some(compare_paired(a, [x + 0.1 - 0.1 for x in a])).p == 1.0
