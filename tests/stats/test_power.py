"""Forecasts of how much must be measured, held against simulations in which so much is measured."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.stats.effect import paired, unpaired
from assay.stats.means import mean_difference
from assay.stats.power import (
    MOST,
    Variances,
    case_variance,
    cases_needed,
    paired_variances,
    repetition_variance,
    smallest_effect,
    units_needed,
)


def test_the_example_of_miller() -> None:
    # Miller (2024), section 5: ω² = 1/9, no repetition variance, δ = 0.03, α = 0.05, β = 0.2 takes about 969 questions.
    assert cases_needed(0.03, Variances(1 / 9, 0.0, 0.0)) == 969


def test_more_repetitions_need_fewer_cases_but_never_fewer_than_the_cases_themselves_ask_for() -> None:
    variances = Variances(0.05, 0.15, 0.15)
    needed = [cases_needed(0.05, variances, (k, k)) for k in (1, 3, 10, 10_000)]
    assert needed == sorted(needed, reverse=True)
    assert needed[-1] == pytest.approx(cases_needed(0.05, Variances(0.05, 0, 0)), abs=1)


def test_the_smallest_effect_is_the_one_that_needs_so_many_cases() -> None:
    variances = Variances(0.05, 0.15, 0.2)
    effect = smallest_effect(300, variances, (3, 5))
    assert cases_needed(effect, variances, (3, 5)) in (300, 301)


def test_no_effect_is_never_found() -> None:
    assert cases_needed(0.0, Variances(0.1, 0.1, 0.1)) == MOST
    assert units_needed(1.0, 0.1, is_paired=True) == MOST


def agents(
    chance: np.random.Generator, cases: int, k: int, gap: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong answers of two agents: cases of their own difficulty, a difference of its own in each."""
    skill = chance.uniform(0.3, 0.8, cases)
    other = np.clip(skill + gap + chance.uniform(-0.15, 0.15, cases), 0, 1)
    return tuple((chance.random((cases, k)) < p[:, None]).astype(float) for p in (skill, other))  # type: ignore[return-value]


def test_the_variances_are_found_again() -> None:
    a, b = agents(np.random.default_rng(1), 10_000, 30)
    found = paired_variances(list(a), list(b))
    assert found is not None
    # Uniform ± 0.15 has the variance 0.3²/12; p(1 − p) over 0.3 to 0.8 has the mean 0.2267.
    assert found.case == pytest.approx(0.3**2 / 12, rel=0.15)
    assert found.repetition_a == pytest.approx(0.2267, rel=0.02)
    assert case_variance(list(a)) == pytest.approx(0.5**2 / 12, rel=0.1)


def test_too_little_has_no_variance() -> None:
    assert paired_variances([[1.0, 0.0]], [[1.0, 1.0]]) is None
    assert repetition_variance([[1.0], [0.0]]) == 0.0
    assert case_variance([]) == 0.0


def test_so_many_cases_find_the_effect_in_four_of_five_repeats() -> None:
    variances = Variances(0.3**2 / 12, 0.2267, 0.2267)
    n, chance = cases_needed(0.08, variances, (3, 3)), np.random.default_rng(2)
    found = [mean_difference(*(side.mean(axis=1) for side in agents(chance, n, 3, 0.08))) for _ in range(500)]
    assert np.mean([effect is not None and effect.p < 0.05 for effect in found]) == pytest.approx(
        0.8, abs=0.06
    )


@pytest.mark.parametrize("is_paired", [True, False])
@pytest.mark.parametrize(("ratio", "spread"), [(1.1, 0.1), (1.05, 0.08), (0.8, 0.5)])
def test_so_many_units_find_the_ratio_in_four_of_five_repeats(
    ratio: float, spread: float, is_paired: bool
) -> None:
    n, chance = units_needed(ratio, spread, is_paired=is_paired), np.random.default_rng(3)
    test = paired if is_paired else unpaired
    found = []
    for _ in range(600):
        a = chance.lognormal(0, 1e-9 if is_paired else spread, n)
        effect = test(
            a,
            ratio * a * chance.lognormal(0, spread, n)
            if is_paired
            else ratio * chance.lognormal(0, spread, n),
        )
        found.append(effect is not None and effect.p < 0.05)
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_beyond_what_is_simulated_the_number_grows_with_the_square() -> None:
    near, far = (units_needed(ratio, 0.1, is_paired=True) for ratio in (math.exp(0.005), math.exp(0.001)))
    assert far == pytest.approx(25 * near, rel=0.02)


def test_stragglers_that_were_seen_cost_a_rank_test_little() -> None:
    chance = np.random.default_rng(4)
    quiet = chance.normal(0, 0.05, 200)
    spiky = np.where(chance.random(200) < 0.05, 1.0, quiet)
    with_spikes = units_needed(1.05, spiky, is_paired=False)
    assert with_spikes < 1.5 * units_needed(1.05, quiet, is_paired=False)
    assert with_spikes < units_needed(1.05, float(spiky.std()), is_paired=False) / 3


def test_without_noise_it_takes_as_many_as_can_be_significant_at_all() -> None:
    assert units_needed(1.1, 0.0, is_paired=True) == 6
