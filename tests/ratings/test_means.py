from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from assay.stats.means import mean_difference, sign_flip_p, t_quantile, t_tail

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


def test_the_difference_of_paired_means_has_the_interval_of_a_textbook() -> None:
    # Student's own sleep data (1908): mean difference 1.58, t = 4.0621 with 9 degrees, interval 0.7001 to 2.4599;
    # here in tenths, because scores are shares.
    a = np.array([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0]) / 10
    b = np.array([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4]) / 10
    effect = mean_difference(a, b)
    assert effect is not None
    assert effect.value == pytest.approx(0.158)
    assert (effect.low, effect.high) == pytest.approx((0.07001, 0.24599), abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_sign_flips_count_every_choice_of_signs(seed: int) -> None:
    steps = np.random.default_rng(seed).integers(-3, 5, size=9) / 4
    steps = steps[steps != 0]
    sums = [abs(sum(s * x for s, x in zip(signs, steps, strict=True)))
            for signs in product((-1, 1), repeat=len(steps))]  # fmt: skip
    expected = np.mean([total >= abs(steps.sum()) - 1e-12 for total in sums])
    assert sign_flip_p(steps) == pytest.approx(expected)


def test_many_flips_are_drawn_instead_of_counted() -> None:
    steps = np.full(20, 0.5)
    assert sign_flip_p(steps) == pytest.approx(2**-19, abs=2e-4)
    assert sign_flip_p(np.array([])) == 1.0


def test_thirty_informative_pairs_are_judged_by_t() -> None:
    few = mean_difference(np.zeros(40), np.r_[np.linspace(0.1, 0.9, 29), np.zeros(11)])
    many = mean_difference(np.zeros(40), np.r_[np.linspace(0.1, 0.9, 30), np.zeros(10)])
    assert few is not None
    assert many is not None
    assert (few.method, many.method) == ("sign flips of case means", "paired t of case means")
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
