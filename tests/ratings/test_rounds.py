"""What the machine did in a round is not taken for the agent's: neither on a leaderboard nor in a matrix."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tests.ratings.boards import contender

from assay.analysis.ranking.leaderboard import leaderboard
from assay.analysis.ranking.matrix import matrix
from assay.analysis.ranking.ratings import rate
from assay.model import CaseTable, Limits, Ratings, Rubric
from assay.model.standing import Contender

CASES = 10
Paces = np.ndarray


def rated(
    chance: np.random.Generator, paces: Paces, factor: float = 1.0, scores: list[float] | None = None
) -> Ratings:
    """An agent whose rounds each have a pace of their own."""
    places = [(case, number) for number in range(len(paces)) for case in range(CASES)]
    seconds = [
        factor * (1 + case) * float(np.exp(paces[number] + chance.normal(0, 0.02))) for case, number in places
    ]
    table = CaseTable(
        [f"c{case}" for case, _ in places],
        [number for _, number in places],
        ["ok"] * len(places),
        {
            "score": [1.0 if scores is None else scores[case] for case, _ in places],
            "seconds": seconds,
            "cpu_seconds": [one / 2 for one in seconds],
        },
        [number for _, number in places],
    )
    return rate(table, Rubric({}, {"seconds": 5.0, "cpu_seconds": 2.0}), Limits())


@cache
def agents(seed: int, factors: tuple[float, ...], rounds: int = 3, own: float = 0.1) -> list[Contender]:
    chance = np.random.default_rng(seed)
    common = chance.normal(0, 0.2, rounds)
    return [
        contender(f"a{n}", {"b": rated(chance, common + chance.normal(0, own, rounds), factor)})
        for n, factor in enumerate(factors)
    ]


def is_decided(contenders: list[Contender], metric: str = "speed") -> bool:
    board = leaderboard("s", contenders, ["b"], metric)
    return any((row.best_rank, row.worst_rank) != (1, len(contenders)) for row in board.standings)


def is_slowest_found(contenders: list[Contender], metric: str = "speed") -> bool:
    board = leaderboard("s", contenders, ["b"], metric)
    last = next(row for row in board.standings if row.contender.agent == "a0")
    return last.best_rank == len(contenders)


@pytest.mark.parametrize("metric", ["speed", "efficiency", "overall"])
@pytest.mark.parametrize("rounds", [3, 5])
def test_boards_of_eight_identical_agents_tell_nobody_apart(metric: str, rounds: int) -> None:
    found = [is_decided(agents(seed, (1.0,) * 8, rounds), metric) for seed in range(30)]
    assert sum(found) <= 3


def test_bursts_that_hit_one_pass_do_not_make_a_rank() -> None:
    def hit(seed: int) -> list[Contender]:
        chance = np.random.default_rng(seed)
        bursts = np.where(chance.random((8, 3)) < 0.1, 0.7, 0.0) + chance.normal(0, 0.03, (8, 3))
        return [contender(f"a{n}", {"b": rated(chance, paces)}) for n, paces in enumerate(bursts)]

    assert sum(is_decided(hit(seed)) for seed in range(30)) <= 3


@pytest.mark.parametrize("metric", ["speed", "overall"])
def test_among_eight_agents_one_that_is_twice_as_slow_is_found_with_three_rounds(metric: str) -> None:
    found = [is_slowest_found(agents(seed, (2.0, *(1.0,) * 7), own=0.04), metric) for seed in range(20)]
    assert sum(found) >= 15


def test_one_that_is_a_fifth_slower_is_found_with_ten_rounds() -> None:
    found = [
        is_slowest_found(agents(seed, (1.2, *(1.0,) * 3), rounds=10, own=0.05), "speed") for seed in range(20)
    ]
    assert sum(found) >= 18


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("metric", ["speed", "efficiency", "overall"])
def test_with_fewer_than_three_rounds_times_tell_nobody_apart(metric: str, rounds: int) -> None:
    contenders = agents(1, (5.0, 1.0), rounds, own=0.01)
    assert not is_decided(contenders, metric)
    assert not matrix("s", contenders, ["b"]).duels[0].won


def test_times_of_different_runs_tell_nobody_apart() -> None:
    contenders = agents(1, (5.0, 1.0), own=0.01)
    assert is_decided(contenders)
    apart = [replace(one, runs={"b": f"run{n}"}) for n, one in enumerate(contenders)]
    assert not is_decided(apart)
    assert not is_decided(apart, "overall")


def test_with_one_round_the_other_dimensions_still_decide() -> None:
    chance = np.random.default_rng(1)
    scores = {"good": [1.0] * CASES, "bad": [0.0] * CASES}
    contenders = [
        contender(name, {"b": rated(chance, np.zeros(1), 1.0, marks)}) for name, marks in scores.items()
    ]
    board = leaderboard("s", contenders, ["b"])
    assert [(row.contender.agent, row.worst_rank) for row in board.standings] == [("good", 1), ("bad", 2)]


def test_by_how_much_each_round_is_off_is_on_the_scale_of_ratings() -> None:
    paces = np.array([0.1, -0.1, 0.0])
    found = rated(np.random.default_rng(1), paces)
    value = found.dimensions["speed"].value
    assert value is not None
    assert found.by_round["speed"] == pytest.approx((-value * (1 - value) * paces).tolist(), abs=0.005)
    assert len(found.by_round["efficiency"]) == 3


def test_the_interval_of_a_speed_reaches_as_far_as_students_t_over_rounds() -> None:
    paces = np.array([-0.3, 0.0, 0.3])
    ratings = rated(np.random.default_rng(1), paces)
    half = 4.303 * 0.3 / np.sqrt(3)  # Student's t with two degrees of freedom
    speed, efficiency, overall = (
        ratings.dimensions["speed"],
        ratings.dimensions["efficiency"],
        ratings.overall,
    )
    for one in (speed, efficiency):
        assert one.value is not None
        assert one.low is not None
        assert one.high is not None
        reach = 0.9 * half * one.value * (1 - one.value)
        assert one.low <= one.value - reach
        assert one.high >= min(1.0, one.value + reach)
    assert overall.value is not None
    assert overall.low is not None
    # A slow round is slow in both, so their errors add up: a weight of 0.2 for each of 0.85.
    assert overall.value - overall.low >= 0.9 * half * 0.25 * (0.4 / 0.85)


@pytest.mark.parametrize("rounds", [1, 2])
def test_with_too_few_rounds_what_depends_on_the_machine_has_no_interval(rounds: int) -> None:
    ratings = rated(np.random.default_rng(1), np.zeros(rounds))
    for name in ("speed", "efficiency"):
        assert ratings.dimensions[name].value is not None
        assert (ratings.dimensions[name].low, ratings.dimensions[name].high) == (None, None)
    assert ratings.overall.value is not None
    assert ratings.overall.low is None
    assert ratings.dimensions["accuracy"].low is not None
    board = leaderboard("s", [contender("a", {"b": ratings})], ["b"], "overall")
    assert board.standings[0].score.low is None
