"""Variances of two agents on the same cases, found again where they were planted."""

from __future__ import annotations

import numpy as np
import pytest

from assay.stats.variance import compute_paired_variances, repetition_variance


def agents(
    chance: np.random.Generator, cases: int, k: int, gap: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Right and wrong answers of two agents: cases of their own difficulty, a difference of its own in each."""
    skill = chance.uniform(0.3, 0.8, cases)
    other = np.clip(skill + gap + chance.uniform(-0.15, 0.15, cases), 0, 1)
    return tuple((chance.random((cases, k)) < p[:, None]).astype(float) for p in (skill, other))  # type: ignore[return-value]


def test_the_variances_are_found_again() -> None:
    a, b = agents(np.random.default_rng(1), 10_000, 30)
    found = compute_paired_variances(list(a), list(b))
    assert found is not None
    # Uniform ± 0.15 has the variance 0.3²/12; p(1 − p) over 0.3 to 0.8 has the mean 0.2267.
    assert found.case == pytest.approx(0.3**2 / 12, rel=0.15)
    assert found.repetition_a == pytest.approx(0.2267, rel=0.02)


def test_too_little_has_no_variance() -> None:
    assert compute_paired_variances([[1.0, 0.0]], [[1.0, 1.0]]) is None
    assert repetition_variance([[1.0], [0.0]]) == 0.0
