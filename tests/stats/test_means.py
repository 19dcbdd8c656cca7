from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from assay.stats.effect import Effect
from assay.stats.means import (
    compute_unpaired_mean_difference,
    mean_difference,
    permutation_p,
    sign_flip_p,
    t_quantile,
    t_tail,
)

# NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, gives three decimals; the further digits are those of
# the closed forms for 1, 2 and 4 degrees of freedom, and of the table in Abramowitz and Stegun, 26.10.
PUBLISHED = {
    (0.975, 1): 12.706205,
    (0.975, 2): 4.302653,
    (0.975, 3): 3.182446,
    (0.975, 4): 2.776445,
    (0.975, 5): 2.570582,
    (0.975, 10): 2.228139,
    (0.975, 30): 2.042272,
    (0.975, 100): 1.983972,
    (0.995, 3): 5.840909,
    (0.995, 10): 3.169273,
    (0.9995, 5): 6.868827,
    (0.95, 20): 1.724718,
    (0.75, 7): 0.711142,
}


@pytest.mark.parametrize(("share", "freedom"), list(PUBLISHED))
def test_quantiles_of_t_agree_with_published_tables(share: float, freedom: int) -> None:
    assert t_quantile(share, freedom) == pytest.approx(PUBLISHED[share, freedom], abs=1e-6)


@pytest.mark.parametrize("freedom", [1, 2, 3, 7, 29, 400])
@pytest.mark.parametrize("share", [0.51, 0.9, 0.999])
def test_quantile_and_tail_are_inverse(share: float, freedom: int) -> None:
    assert t_tail(t_quantile(share, freedom), freedom) == pytest.approx(1 - share, rel=1e-9)


def some(effect: Effect | None) -> Effect:
    assert effect is not None
    return effect


def test_the_paired_t_is_that_of_scipy() -> None:
    from scipy import stats  # slow to import

    chance = np.random.default_rng(1)
    a, b = chance.beta(2, 3, 40), chance.beta(3, 3, 40)
    expected = stats.ttest_rel(b, a)
    interval = expected.confidence_interval()
    effect = some(mean_difference(a, b))
    assert effect.p == pytest.approx(expected.pvalue)
    assert (effect.low, effect.high) == pytest.approx((interval.low, interval.high))


def test_the_interval_of_few_pairs_is_wider_and_nearer_to_zero_than_that_of_a_textbook() -> None:
    # Student's own sleep data (1908): mean difference 1.58, interval 0.7001 to 2.4599; in tenths, for scores are shares.
    a = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]) / 10
    b = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]) / 10
    effect = some(mean_difference(a, b))
    assert effect.value == pytest.approx(0.158)
    assert 0.03 < effect.low < 0.07001
    assert 0.24599 - 0.07001 < effect.high - effect.low < 0.2


def flipped(steps: np.ndarray) -> tuple[float, float]:
    """Share of all choices of signs with a sum farther from zero than the one seen, and of those as far."""
    sums = np.array([abs(np.dot(signs, steps)) for signs in product((-1, 1), repeat=len(steps))])
    seen = abs(steps.sum())
    return float(np.mean(sums > seen + 1e-9)), float(np.mean(np.abs(sums - seen) <= 1e-9))


@pytest.mark.parametrize("parts", [1, 3, 15, 64])
def test_sign_flips_count_every_choice_of_signs_and_half_of_those_that_are_as_far(parts: int) -> None:
    steps = np.random.default_rng(parts).integers(1, parts + 1, size=9) / parts
    steps *= np.random.default_rng(parts).choice((-1, 1), 9)
    farther, as_far = flipped(steps)
    assert sign_flip_p(steps) == pytest.approx(farther + as_far / 2)


def test_sign_flips_of_uneven_steps_are_exact_but_for_rounding() -> None:
    steps = np.random.default_rng(3).normal(0.2, 0.5, 12)
    farther, as_far = flipped(steps)
    assert sign_flip_p(steps) == pytest.approx(farther + as_far / 2, abs=5e-3)


def test_five_of_a_kind_are_no_finding_and_six_are() -> None:
    assert sign_flip_p(np.ones(5)) == pytest.approx(2 / 32)
    assert sign_flip_p(np.ones(6)) == pytest.approx(1 / 64)
    assert sign_flip_p(np.array([])) == 1.0


def test_thirty_informative_pairs_are_judged_by_t() -> None:
    few = mean_difference(np.zeros(40), np.r_[np.linspace(0.1, 0.9, 29), np.zeros(11)])
    many = mean_difference(np.zeros(40), np.r_[np.linspace(0.1, 0.9, 30), np.zeros(10)])
    assert few is not None
    assert many is not None
    assert few.method.startswith("sign flips ")
    assert many.method.startswith("paired t ")
    assert many.p < 1e-6


def test_a_difference_that_is_the_same_in_every_case_is_no_less_certain_for_that() -> None:
    effect = mean_difference(np.zeros(100), np.ones(100))
    assert effect is not None
    assert effect.p < 0.001
    assert effect.low > 0.9


def test_two_cases_without_a_difference_do_not_prove_that_there_is_none() -> None:
    few, many = (mean_difference(np.ones(n), np.ones(n)) for n in (2, 1000))
    assert few is not None
    assert many is not None
    assert (few.value, few.p) == (0.0, 1.0)
    assert few.high > 0.5
    # The rule of three: what happens in none of n cases may happen in 3 of n.
    assert many.high == pytest.approx(3 / 1000, rel=0.01)


def test_one_pair_says_nothing() -> None:
    assert mean_difference([0.5], [1.0]) is None
    assert mean_difference([0.5, math.nan], [1.0, 1.0]) is None


def test_the_test_of_paired_means_holds_its_level() -> None:
    chance = np.random.default_rng(5)
    found = []
    for _ in range(400):
        right = chance.beta(1, 1, size=60)
        a, b = ((chance.random((60, 3)) < right[:, None]).mean(axis=1) for _ in range(2))
        effect = mean_difference(a, b)
        assert effect is not None
        found.append(effect.p < 0.05)
    assert np.mean(found) < 0.08


def test_different_cases_are_compared_by_welchs_t() -> None:
    from scipy import stats  # slow to import

    chance = np.random.default_rng(2)
    a, b = chance.beta(2, 3, 40), chance.beta(3, 3, 35)
    effect, expected = (
        some(compute_unpaired_mean_difference(a, b)),
        stats.ttest_ind(b, a, equal_var=False),
    )
    # Degrees of freedom are rounded to whole ones.
    assert effect.p == pytest.approx(expected.pvalue, rel=0.01)
    assert effect.method.startswith("Welch's t ")


def test_nearly_all_right_on_a_side_is_compared_by_newcombes_interval() -> None:
    # Newcombe (1998), table II, method 10: 9/10 against 3/10 gives 0.1705 to 0.8090.
    effect = some(compute_unpaired_mean_difference([1.0] * 3 + [0.0] * 7, [1.0] * 9 + [0.0]))
    assert (effect.low, effect.high) == pytest.approx((0.1705, 0.8090), abs=1e-4)
    assert "Newcombe" in effect.method


def test_the_p_value_of_newcombes_interval_is_that_of_the_one_that_touches_zero() -> None:
    a, b = [1.0] * 20 + [0.0] * 20, [1.0] * 38 + [0.0] * 2
    p = some(compute_unpaired_mean_difference(a, b)).p
    assert some(compute_unpaired_mean_difference(a, b, level=1 - p)).low == pytest.approx(0.0, abs=1e-9)


@given(
    st.lists(st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0]), min_size=2, max_size=40),
    st.lists(st.sampled_from([0.0, 1 / 3, 2 / 3, 1.0]), min_size=2, max_size=40),
)
def test_any_two_sides_have_an_interval_around_their_difference(a: list[float], b: list[float]) -> None:
    n = min(len(a), len(b))
    for effect in (
        some(compute_unpaired_mean_difference(a, b, (3 * len(a), 3 * len(b)))),
        some(mean_difference(a[:n], b[:n])),
    ):
        assert -1 <= effect.low <= effect.value <= effect.high <= 1
        assert 0 <= effect.p <= 1


def test_the_sides_of_different_cases_may_be_swapped() -> None:
    a, b = [1.0] * 19 + [0.0], [1.0] * 25 + [0.0] * 15
    forth, back = some(compute_unpaired_mean_difference(a, b)), some(compute_unpaired_mean_difference(b, a))
    assert (back.value, back.p) == pytest.approx((-forth.value, forth.p))
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))


@pytest.mark.parametrize("cases", [2, 3])
def test_two_or_three_cases_a_side_settle_nothing_even_if_all_differ(cases: int) -> None:
    once = some(compute_unpaired_mean_difference([1.0] * cases, [0.0] * cases))
    repeated = some(compute_unpaired_mean_difference([1.0] * cases, [1 / 3] * cases, (3 * cases, 3 * cases)))
    assert min(once.p, repeated.p) > 0.09
    assert min(once.high, repeated.high) >= 0.0


@given(
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=29),
    st.lists(st.sampled_from([0.0, 1.0]), min_size=2, max_size=60),
)
def test_few_single_verdicts_of_different_cases_are_compared_by_fishers_test(
    a: list[float], b: list[float]
) -> None:
    from scipy import stats  # slow to import

    table = [[sum(side), len(side) - sum(side)] for side in (a, b)]
    assert some(compute_unpaired_mean_difference(a, b)).p == pytest.approx(stats.fisher_exact(table)[1])


def test_the_permutation_p_is_that_of_enumeration() -> None:
    a, b = np.array([0, 1 / 3, 2 / 3, 1, 1]), np.array([1 / 3, 0, 0, 1 / 3])
    pooled, seen = np.concatenate((a, b)), abs(a.mean() - b.mean())
    dealt = [list(chosen) for chosen in combinations(range(9), 4)]
    gaps = [abs(np.delete(pooled, chosen).mean() - pooled[chosen].mean()) for chosen in dealt]
    assert permutation_p(a, b) == pytest.approx(np.mean([gap > seen - 1e-9 for gap in gaps]))


@pytest.mark.parametrize(
    ("n", "m", "k", "other"), [(2, 2, 3, 3), (8, 8, 1, 1), (5, 30, 3, 1), (15, 15, 5, 1)]
)
def test_few_different_cases_of_equals_are_rarely_told_apart(n: int, m: int, k: int, other: int) -> None:
    chance = np.random.default_rng(n)

    def means(cases: int, repetitions: int) -> NDArray[np.float64]:
        return np.asarray(chance.binomial(repetitions, chance.beta(2.8, 0.7, cases)) / repetitions)

    found = [
        compute_unpaired_mean_difference(means(n, k), means(m, other), (n * k, m * other)) for _ in range(500)
    ]
    assert np.mean([some(effect).p < 0.05 for effect in found]) < 0.08


def test_one_case_on_a_side_says_nothing() -> None:
    assert compute_unpaired_mean_difference([1.0], [0.0, 1.0]) is None


def test_differences_that_only_rounding_made_are_none() -> None:
    a = np.full(20, 0.1 + 0.2)
    effect = some(mean_difference(a, np.full(20, 0.3)))
    assert (effect.value, effect.p) == (0.0, 1.0)


def test_tiny_differences_are_flipped_like_others() -> None:
    assert sign_flip_p(np.full(6, 1e-10)) == pytest.approx(1 / 64)
