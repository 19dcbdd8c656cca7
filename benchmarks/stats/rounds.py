"""Times of two agents in rounds, some of which the machine makes slow: how often they are told apart."""

from __future__ import annotations

import numpy as np

from assay.analysis.comparison.rounds import compare_rounds
from assay.model import Series

CASES = 10
SEED = 20261117
ALPHA = 0.05
NOISES = ("normal", "bursts", "heavy tails", "stragglers")


def count_claims(noise: str, rounds: int, factor: float, times: int) -> float:
    """Share of comparisons with p below 5 %; B takes `factor` times as long as A."""
    chance = np.random.default_rng([SEED, NOISES.index(noise), rounds, round(100 * factor)])
    claims = 0
    for _ in range(times):
        shared = chance.normal(0, 0.2, rounds)
        a, b = (_measure(chance, noise, shared, by) for by in (1.0, factor))
        effect = compare_rounds(a, b, are_interleaved=True).effect
        claims += effect is not None and effect.p < ALPHA
    return claims / times


def _measure(chance: np.random.Generator, noise: str, shared: np.ndarray, factor: float) -> Series:
    """Cases of one agent: a pace that all agents share in a round, one of its own pass, and noise of each case."""
    rounds = shared.size
    own = {
        "heavy tails": lambda: 0.1 * chance.standard_t(3, rounds),
        "bursts": lambda: (
            np.where(chance.random(rounds) < 0.2, chance.exponential(0.5, rounds), 0.0)
            + chance.normal(0, 0.03, rounds)
        ),
    }.get(noise, lambda: chance.normal(0, 0.1, rounds))()
    logs = np.log(factor * (1 + np.arange(CASES)))[:, None] + (shared + own)[None, :]
    logs = logs + chance.normal(0, 0.02, (CASES, rounds))
    if noise == "stragglers":
        logs += np.where(chance.random((CASES, rounds)) < 0.05, 3.0, 0.0)
    cases, numbers = np.meshgrid(np.arange(CASES), np.arange(rounds), indexing="ij")
    return Series(
        cases.ravel().tolist(), numbers.ravel().tolist(), np.exp(logs).ravel().tolist(), unit="case"
    )
