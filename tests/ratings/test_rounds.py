"""What the machine did in a round is not taken for the agent's: neither on a leaderboard nor in a matrix."""

from __future__ import annotations

import numpy as np
import pytest
from tests.ratings.boards import contender

from assay.analysis.leaderboard import leaderboard
from assay.analysis.ratings import rate
from assay.analysis.rounds import half_widths
from assay.model import CaseTable, Limits, Ratings, Rubric
from assay.stats.means import t_quantile

CASES, ROUNDS = 30, 3


def paced(chance: np.random.Generator, factor: float, between: float, rounds: int = ROUNDS) -> Ratings:
    """An agent whose rounds each have a pace of their own."""
    pace = chance.normal(0, between, rounds)
    places = [(case, number) for number in range(rounds) for case in range(CASES)]
    seconds = [
        factor * (1 + case / 10) * float(np.exp(pace[number] + chance.normal(0, 0.02)))
        for case, number in places
    ]
    table = CaseTable(
        [f"c{case}" for case, _ in places],
        [number for _, number in places],
        ["ok"] * len(places),
        {"score": [1.0] * len(places), "seconds": seconds},
    )
    return rate(table, Rubric({}, {"seconds": 1.0}), Limits())


def is_decided(seed: int, factor: float, between: float, metric: str = "speed", rounds: int = ROUNDS) -> bool:
    chance = np.random.default_rng(seed)
    sides = [
        contender(name, {"b": paced(chance, by, between, rounds)}) for name, by in (("a", 1.0), ("b", factor))
    ]
    board = leaderboard("s", sides, ["b"], metric)
    return board.standings[0].worst_rank == 1


@pytest.mark.parametrize("metric", ["speed", "overall"])
def test_equal_agents_tie_though_rounds_differ(metric: str) -> None:
    assert sum(is_decided(seed, 1.0, 0.2, metric) for seed in range(100)) <= 8


def test_where_rounds_agree_a_faster_agent_leads() -> None:
    assert all(is_decided(seed, 1.2, 0.005) for seed in range(20))


def test_one_round_says_nothing_about_rounds() -> None:
    found = paced(np.random.default_rng(1), 1.0, 0.2, rounds=1)
    assert found.rounds == {}
    assert is_decided(1, 3.0, 0.2, rounds=1)


def test_what_a_round_varies_by_is_on_the_scale_of_ratings() -> None:
    found = paced(np.random.default_rng(1), 1.0, 0.1)
    number, spread = found.rounds["speed"]
    pace = np.random.default_rng(1).normal(0, 0.1, ROUNDS)
    value = found.dimensions["speed"].value
    assert number == ROUNDS
    assert value is not None
    assert spread == pytest.approx(value * (1 - value) * pace.std(ddof=1), rel=0.1)


def test_half_widths_are_students() -> None:
    wide = half_widths(np.array([3.0, 5.0, 1.0]), np.array([0.2, 0.1, np.nan]))
    pooled = (2 * 0.2**2 + 4 * 0.1**2) / 6
    expected = t_quantile(0.975, 6) * np.sqrt(np.pi / 2 * pooled * (1 / 3 + 1 / 5))
    assert wide[0, 1] == wide[1, 0] == pytest.approx(expected)
    assert wide[0, 2] == wide[2, 1] == 0
