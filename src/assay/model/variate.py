"""A quantity that differs from one request to the next: a number of tokens, or a time to think."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variate:
    """`constant` (first), `normal` (mean, standard deviation), `uniform` (from, to) or `exponential` (mean)."""

    kind: str
    first: float
    second: float = 0.0

    @property
    def mean(self) -> float:
        return (self.first + self.second) / 2 if self.kind == "uniform" else self.first

    def draws(self, number: int, seed: int, least: float = 0.0) -> list[float]:
        """So many values by chance, none of them below `least`; the same for the same seed.

        >>> Variate("constant", 3).draws(2, seed=1), Variate("uniform", 2, 2).draws(1, seed=1)
        ([3, 3], [2.0])
        """
        chance = random.Random(f"{seed} {self.kind} {self.first} {self.second}")
        return [max(least, self._draw(chance)) for _ in range(number)]

    def _draw(self, chance: random.Random) -> float:
        match self.kind:
            case "normal":
                return chance.gauss(self.first, self.second)
            case "uniform":
                return chance.uniform(self.first, self.second)
            case "exponential":
                return chance.expovariate(1 / self.first) if self.first else 0.0
            case _:
                return self.first
