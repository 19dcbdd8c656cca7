"""Gates of an agent on the same 30 cases, with and without lost ones: what the test within cases claims, and what it covers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from assay.stats.permutation import PermutationTest, Repetitions, permutation_test
from stats.simulate import Floats, chance_for

CASES = 30
LOST = 5
REPETITIONS = (1, 3, 5)
TAIL = 0.025

Draw = Callable[[np.random.Generator, Floats, int], Floats]


def _passes(chance: np.random.Generator, rates: Floats, repetitions: int) -> Floats:
    return (chance.random((rates.size, repetitions)) < rates[:, None]).astype(float)


def _tenths(chance: np.random.Generator, rates: Floats, repetitions: int) -> Floats:
    """Scores between fail and pass, as a rubric gives them."""
    return np.asarray(chance.binomial(10, rates[:, None], (rates.size, repetitions)) / 10)


@dataclass(frozen=True)
class Agent:
    """How often it passes each case, and what its scores look like."""

    rates: Callable[[np.random.Generator], Floats]
    draw: Draw = _passes


AGENTS: Mapping[str, Agent] = {
    "passes 9 in 10": Agent(lambda chance: np.full(CASES, 0.9)),
    "passes 7 in 10": Agent(lambda chance: np.full(CASES, 0.7)),
    "mostly always or never": Agent(lambda chance: chance.beta(0.5, 0.5, CASES)),
    "mostly always": Agent(lambda chance: chance.beta(1, 0.5, CASES)),
    "scores in tenths": Agent(lambda chance: chance.beta(2, 1, CASES), _tenths),
}


@dataclass(frozen=True)
class Rates:
    worse: float
    """Share of gates that claim *worse*."""
    covered: float
    """Share of intervals that hold the true difference of these cases."""


def simulate(name: str, repetitions: int, gates: int, *, lost: int = 0) -> Rates:
    agent, chance = AGENTS[name], chance_for(f"lost {name} {repetitions} {lost}")
    worse = covered = 0
    for _ in range(gates):
        before = agent.rates(chance)
        after = before.copy()
        after[:lost] = 0
        effect = _gate(*(agent.draw(chance, rates, repetitions) for rates in (before, after)))
        worse += effect.p_worse < TAIL
        interval = effect.effect()
        true = float((after - before).mean())
        covered += interval.low - 1e-12 <= true <= interval.high + 1e-12
    return Rates(worse / gates, covered / gates)


def _gate(before: Floats, after: Floats) -> PermutationTest:
    numbers = np.repeat(np.arange(CASES), before.shape[1])
    found = permutation_test(*(Repetitions.of(side.ravel(), numbers) for side in (before, after)))
    assert found is not None
    return found
