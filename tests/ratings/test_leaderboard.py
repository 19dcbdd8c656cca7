from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.command import AssayInline, Prepare
from tests.ratings.boards import board_of, contender, ratings
from tests.suites.project import numbers, suite
from tests.wording import Wording

from assay.analysis.ranking.leaderboard import leaderboard
from assay.model import Contender, Leaderboard, Rating

BENCHMARKS = ["b0", "b1"]


def ranks(board: Leaderboard) -> dict[str, tuple[int, int, int]]:
    return {row.contender.agent: (row.tier, row.best_rank, row.worst_rank) for row in board.standings}


@pytest.mark.parametrize("metric", ["overall", "accuracy"])
def test_equal_agents_are_hardly_ever_told_apart(metric: str) -> None:
    equal = dict.fromkeys("abcd", 0.6)
    apart = [
        max(row.tier for row in leaderboard("s", board_of(seed, equal), BENCHMARKS, metric).standings) > 1
        for seed in range(5000, 5030)
    ]
    assert np.mean(apart) < 0.06


def test_agents_that_are_certainly_better_are_apart() -> None:
    skills = {"good": 0.95, "middling": 0.6, "also middling": 0.6, "bad": 0.1}
    board = leaderboard("s", board_of(1, skills, cases=100), BENCHMARKS, "accuracy")
    assert ranks(board) == {
        "good": (1, 1, 1),
        "middling": (2, 2, 3),
        "also middling": (2, 2, 3),
        "bad": (3, 4, 4),
    }


def test_better_agents_are_told_apart_in_most_boards() -> None:
    skills = {"a": 0.9, "b": 0.5}
    found = [
        ranks(leaderboard("s", board_of(seed, skills, cases=60), BENCHMARKS, "accuracy"))
        for seed in range(30)
    ]
    assert np.mean([one["a"][0] < one["b"][0] for one in found]) > 0.9


def test_simulated_agents_have_a_board_of_their_own() -> None:
    real, dream = board_of(1, {"real": 0.5, "dream": 1.0})
    board = leaderboard("s", [real, replace(dream, is_simulated=True)], BENCHMARKS)
    assert [row.contender.agent for row in board.standings] == ["real"]
    assert [row.contender.agent for row in board.simulated] == ["dream"]
    assert ranks(board) == {"real": (1, 1, 1)}


def test_nobody_is_on_an_empty_board() -> None:
    board = leaderboard("s", [], [])
    assert (board.standings, board.simulated) == ((), ())


def test_dimensions_that_not_all_agents_have_are_left_out_of_the_ranking() -> None:
    a, b = board_of(2, {"a": 0.6, "b": 0.6})
    unknown = {
        name: replace(one, dimensions={**one.dimensions, "cost": Rating("cost", None, basis="unknown")})
        for name, one in b.ratings.items()
    }
    board = leaderboard("s", [a, replace(b, ratings=unknown)], BENCHMARKS)
    assert board.dimensions == ("accuracy", "speed", "reliability")
    assert "cost" in board.doubts[0]
    assert all(row.score.basis.endswith(" accuracy, speed, reliability") for row in board.standings)


def test_agents_are_told_apart_only_by_benchmarks_that_both_did(wording: Wording) -> None:
    whole, part = board_of(3, {"whole": 0.1, "part": 0.1}, cases=200)
    easy = contender("part", {"b0": part.ratings["b0"], "easy": board_of(4, {"x": 0.99})[0].ratings["b0"]})
    board = leaderboard("s", [whole, easy], ["b0", "b1", "easy"], "accuracy")
    assert {row.contender.agent: row.coverage for row in board.standings} == {"whole": "2/3", "part": "2/3"}
    assert {row.tier for row in board.standings} == {1}
    (doubt,) = [doubt for doubt in board.doubts if "whole, part " in doubt]
    wording(doubt)


def test_agents_without_a_common_benchmark_are_not_told_apart() -> None:
    a, b = board_of(5, {"a": 0.99, "b": 0.01}, cases=200)
    only = [
        replace(a, ratings={"b0": a.ratings["b0"]}),
        replace(b, ratings={"b1": b.ratings["b1"]}),
    ]
    assert {row.tier for row in leaderboard("s", only, BENCHMARKS, "accuracy").standings} == {1}


def test_a_score_without_an_interval_separates_nobody() -> None:
    def one(name: str, speed: float) -> Contender:
        chance = np.random.default_rng(1)
        made = ratings(chance, np.zeros(1), 1.0, speed, repetitions=1)
        return contender(name, {"b0": made})

    board = leaderboard("s", [one("slow", 100), one("fast", 0.001)], ["b0"], "speed")
    assert [row.contender.agent for row in board.standings] == ["fast", "slow"]
    assert {row.tier for row in board.standings} == {1}
    assert {(row.score.low, row.score.high) for row in board.standings} == {(None, None)}


def test_an_agent_that_is_worse_in_everything_is_dominated() -> None:
    board = leaderboard("s", board_of(6, {"good": 0.9, "bad": 0.1}, cases=200), BENCHMARKS)
    by_name = {row.contender.agent: row for row in board.standings}
    good, bad = by_name["good"], by_name["bad"]
    if bad.dimensions["speed"].value <= good.dimensions["speed"].value:  # type: ignore[operator]
        assert bad.dominated_by == ("good",)
    assert good.dominated_by == ()


AGENTS = """
def good(text): return text
def bad(text): return text if int(text) % 4 == 0 else "?"
"""


def play(assay: AssayInline) -> None:
    assay.write("agents.py", AGENTS)
    agents: list[dict[str, object]] = [
        {"name": "good", "type": "python", "target": "agents.py:good"},
        {"name": "bad", "type": "python", "target": "agents.py:bad"},
        {"name": "dream", "type": "simulated", "seconds": 0.0},
    ]
    benchmark = {"rubric": {"reference": {"seconds": 0.001}}}
    assay.write("s.yaml", suite(numbers(60), agents, benchmark=benchmark, category="accuracy"))
    assert assay.run_inline("s.yaml", "-q").code == 0


@pytest.fixture
def played(assay_inline: AssayInline, prepare: Prepare) -> AssayInline:
    prepare(assay_inline, play)
    return assay_inline


def test_the_command_shows_tiers_and_simulated_agents_apart(played: AssayInline) -> None:
    [board] = played("leaderboard", "--metric", "accuracy", "--json").json
    assert [(row["agent"], row["tier"], row["rank"]) for row in board["standings"]] == [
        ("good", 1, [1, 1]),
        ("bad", 2, [2, 2]),
    ]
    assert [row["agent"] for row in board["simulated"]] == ["dream"]
    told = played("leaderboard", "--suite", "s", "--category", "accuracy", COLUMNS="120")
    assert told.code == 0
    assert "good" in told.out
    assert "Simulated" in told.out


def test_a_run_of_a_few_cases_does_not_replace_a_full_result(played: AssayInline) -> None:
    before = played("leaderboard", "--json").json
    assert played.run_inline("s.yaml", "-q", "--agent", "bad", "--limit", "10").code == 0
    assert played("leaderboard", "--json").json == before


def test_two_agents_are_compared_case_by_case_by_their_names(played: AssayInline) -> None:
    done = played("compare", "bad", "good", "--metric", "score", "--json")
    [one] = done.json["comparisons"]
    assert (one["a"], one["b"], one["units_a"], one["verdict"]) == (0.25, 1.0, 60, "better")
    assert one["method"].startswith("paired t ")
    worse = played("compare", "good", "bad", "--fail-on", "worse", "--metric", "score")
    assert worse.code == 1


def test_a_suite_that_nobody_did_has_no_board(assay_inline: AssayInline, wording: Wording) -> None:
    refusal = assay_inline("leaderboard", "--suite", "x").refusal
    assert "'x'" in refusal
    wording(refusal)


def test_the_rows_of_a_document_are_plain(played: AssayInline) -> None:
    [board] = played("leaderboard", "--limit", "1", "--json").json
    [row] = board["standings"]
    assert json.dumps(row)
    assert set(row) >= {"agent", "version", "tier", "rank", "score", "interval", "dimensions"}
