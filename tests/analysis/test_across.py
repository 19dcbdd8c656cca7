from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.ratings.boards import board_of, contender
from tests.wording import Wording

from assay.analysis.ranking.across_suites import rank_across_suites
from assay.model import Contender


def suites(seed: int, skills: dict[str, float], cases: int = 30) -> dict[str, list[Contender]]:
    """Two suites of two benchmarks each."""
    return {name: board_of(seed + n, skills, cases) for n, name in enumerate(("s", "t"))}


def test_an_agent_that_is_better_everywhere_comes_first_with_an_interval_around_its_figure() -> None:
    found = rank_across_suites(suites(1, {"low": 0.3, "high": 0.8, "middle": 0.31}), "accuracy")
    assert found is not None
    assert (found.suites, found.benchmarks) == (("s", "t"), 4)
    first, *others = found.rows
    assert (first.agent, first.place.best, first.place.worst) == ("high", 1, 1)
    assert {(row.place.best, row.place.worst) for row in others} == {(2, 3)}
    for row in found.rows:
        assert row.score.value is not None
        assert row.score.low is not None
        assert row.score.high is not None
        assert row.score.low < row.score.value < row.score.high


def test_equal_agents_are_seldom_put_above_each_other() -> None:
    agents = {f"a{n}": 0.5 for n in range(6)}
    boards = [rank_across_suites(suites(seed, agents), "accuracy") for seed in range(20)]
    apart = [any(row.place.worst < 6 for row in found.rows) for found in boards if found is not None]
    assert np.mean(apart) <= 0.1


def test_an_agent_that_solves_everything_has_an_interval_all_the_same() -> None:
    found = rank_across_suites(suites(2, {"all": 2.0, "none": -1.0}), "accuracy")
    assert found is not None
    best, worst = found.rows
    assert best.score.value == 1
    assert best.score.low is not None
    assert 0.8 < best.score.low < 1
    assert worst.score.high is not None
    assert 0 < worst.score.high < 0.2


def test_fewer_than_three_benchmarks_have_no_middle_half() -> None:
    assert rank_across_suites({"s": board_of(1, {"a": 0.5, "b": 0.6}, benchmarks=2)}) is None
    assert rank_across_suites({"s": board_of(1, {"a": 0.5, "b": 0.6}, benchmarks=3)}) is not None


def test_agents_that_did_not_run_every_benchmark_have_no_rank_and_a_note_says_so(wording: Wording) -> None:
    boards = suites(3, {"a": 0.5, "b": 0.6})
    boards["t"] = [one for one in boards["t"] if one.agent == "a"]
    found = rank_across_suites(boards)
    assert found is not None
    assert [row.agent for row in found.rows] == ["a"]
    assert re.search(r"\bb\b", found.doubts[0])
    wording(found.doubts[0])


def test_benchmarks_on_which_agents_ran_different_cases_are_left_out_and_a_note_says_so(
    wording: Wording,
) -> None:
    boards = suites(4, {"a": 0.5, "b": 0.6})
    changed = replace(boards["s"][0], hashes={"b0": "other"})
    found = rank_across_suites({"s": [changed, boards["s"][1]], "t": boards["t"]})
    assert found is not None
    assert found.benchmarks == 3
    assert "b0" in found.doubts[0]
    wording(found.doubts[0])


def test_simulated_agents_stand_among_themselves() -> None:
    boards = suites(5, {"a": 0.5, "b": 0.6})
    made_up = {
        name: [*some, contender("sim", dict(some[0].ratings), simulated=True)]
        for name, some in boards.items()
    }
    found = rank_across_suites(made_up)
    assert found is not None
    assert [row.agent for row in found.simulated] == ["sim"]
    assert "sim" not in [row.agent for row in found.rows]


@pytest.mark.parametrize("metric", ["overall", "speed", "cost", "reliability"])
def test_every_metric_of_a_leaderboard_has_one(metric: str) -> None:
    found = rank_across_suites(suites(6, {"a": 0.5, "b": 0.6}), metric)
    assert found is not None
    assert len(found.rows) == 2


def test_where_nobody_is_rated_there_is_none() -> None:
    assert rank_across_suites(suites(7, {"a": 0.5, "b": 0.6}), "efficiency") is None
