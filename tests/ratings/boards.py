"""Agents with known chances of being right, put through simulated suites."""

from __future__ import annotations

import numpy as np
from tests.ratings.tables import Row, table

from assay.analysis.ranking.ratings import rate
from assay.model import Contender, Limits, Ratings, Rubric

REFERENCE = {"seconds": 1.0, "usd": 0.01}


def ratings(
    chance: np.random.Generator,
    difficulty: np.ndarray,
    skill: float,
    seconds: float = 1.0,
    repetitions: int = 2,
) -> Ratings:
    """Cases that are hard for one are hard for all: `difficulty` moves everybody's chance to be right."""
    rows: list[Row] = []
    for case, hard in enumerate(difficulty):
        right = np.clip(skill + hard, 0, 1)
        for _ in range(repetitions):
            measured = {
                "score": float(chance.random() < right),
                "seconds": seconds * float(chance.lognormal(0, 0.3)),
                "usd": 0.005,
            }
            rows.append((f"c{case}", "ok", measured))
    return rate(table(rows), Rubric({}, REFERENCE), Limits())


def contender(name: str, by_benchmark: dict[str, Ratings], *, simulated: bool = False) -> Contender:
    return Contender(name, "1", by_benchmark, simulated, None)


def board_of(seed: int, skills: dict[str, float], cases: int = 40, benchmarks: int = 2) -> list[Contender]:
    chance = np.random.default_rng(seed)
    difficulty = [chance.normal(0, 0.2, cases) for _ in range(benchmarks)]
    return [
        contender(name, {f"b{n}": ratings(chance, hard, skill) for n, hard in enumerate(difficulty)})
        for name, skill in skills.items()
    ]
