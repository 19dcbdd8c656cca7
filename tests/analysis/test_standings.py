"""Boards and matrices of agents whose every answer is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest
from tests.ratings.tables import ok, rated
from tests.wording import Wording

from assay.analysis.ranking.leaderboard import leaderboard
from assay.analysis.ranking.matrix import matrix
from assay.model import Contender, Leaderboard, Rating, Ratings
from assay.model.standing import RankRange

REFERENCE = {"seconds": 1.0, "usd": 0.01}


def answers(
    right: float,
    *,
    seconds: float = 1.0,
    usd: float = 0.01,
    cases: int = 100,
    first: int = 0,
    seed: int = 0,
    rounds: int = 1,
) -> Ratings:
    """Right in that share of the cases, which are hard in one order for everybody; times vary a little."""
    chance = np.random.default_rng([seed, cases, first])
    rows = [
        ok(
            f"c{first + n}",
            float(n % 10 < right * 10),
            seconds=seconds * float(chance.lognormal(0, 0.05)),
            usd=usd,
        )
        for _ in range(rounds)
        for n in range(cases)
    ]
    return rated(rows, REFERENCE)


def agent(name: str, ratings: Ratings | Mapping[str, Ratings], **more: object) -> Contender:
    by_benchmark = {"b": ratings} if isinstance(ratings, Ratings) else ratings
    return Contender(name, "1", by_benchmark, False, None, **more)  # type: ignore[arg-type]


def board(
    *contenders: Contender, metric: str = "overall", benchmarks: tuple[str, ...] = ("b",)
) -> Leaderboard:
    return leaderboard("s", contenders, benchmarks, metric)


def ranks(found: Leaderboard) -> dict[str, tuple[int, int]]:
    return {row.contender.agent: (row.best_rank, row.worst_rank) for row in found.standings}


def test_a_tier_ends_only_where_everybody_above_is_certainly_better_than_everybody_below() -> None:
    """The one in the middle is apart from neither, so the first and the last, though apart, share its tier."""
    names = {"first": 0.7, "middle": 0.5, "last": 0.3}
    found = board(
        *(agent(name, answers(right, cases=20)) for name, right in names.items()), metric="accuracy"
    )
    assert ranks(found) == {"first": (1, 2), "middle": (1, 3), "last": (2, 3)}
    assert {row.tier for row in found.standings} == {1}
    apart = board(*(agent(name, answers(right)) for name, right in names.items()), metric="accuracy")
    assert [row.tier for row in apart.standings] == [1, 2, 3]


def test_agents_that_answer_alike_share_every_rank() -> None:
    same = answers(0.7)
    found = board(*(agent(name, same) for name in "abc"))
    assert ranks(found) == dict.fromkeys("abc", (1, 3))
    assert {row.tier for row in found.standings} == {1}
    assert all(row.is_pareto and not row.dominated_by for row in found.standings)


def test_a_single_agent_is_first_among_itself() -> None:
    assert ranks(board(agent("a", answers(0.7)))) == {"a": (1, 1)}


def test_one_case_tells_nobody_apart() -> None:
    found = board(agent("a", answers(1.0, cases=1)), agent("b", answers(0.0, cases=1)), metric="accuracy")
    assert ranks(found) == {"a": (1, 2), "b": (1, 2)}


def test_an_agent_that_did_other_cases_is_compared_on_the_common_ones() -> None:
    """Its own share of right answers is as low as that of the worst, but on the cases that both did it is far better."""
    hard = rated(
        [ok(f"c{n}", 0.0, seconds=1.0) for n in range(40, 100)]
        + [ok(f"c{n}", 1.0, seconds=1.0) for n in range(40)],
        REFERENCE,
    )
    few = rated([ok(f"c{n}", 1.0, seconds=1.0) for n in range(60, 100)], REFERENCE)
    found = board(agent("all", hard), agent("few", few), metric="accuracy")
    assert ranks(found) == {"few": (1, 1), "all": (2, 2)}


def test_results_of_another_definition_are_not_compared() -> None:
    old, new = agent("old", answers(0.1), hashes={"b": "h1"}), agent("new", answers(0.9), hashes={"b": "h2"})
    assert ranks(board(old, new, metric="accuracy")) == {"new": (1, 2), "old": (1, 2)}


def test_ratings_by_other_references_are_not_compared_and_a_note_says_so(wording: Wording) -> None:
    other = replace(answers(0.1), yardstick="another")
    found = board(agent("a", answers(0.9)), agent("b", other), metric="accuracy")
    assert ranks(found) == {"a": (1, 2), "b": (1, 2)}
    alike = board(agent("a", answers(0.9)), agent("b", answers(0.1)), metric="accuracy")
    (doubt,) = set(found.doubts) - set(alike.doubts)
    assert re.search(r"\bb\b", doubt)
    wording(doubt)


def test_the_weights_of_the_rubric_decide_what_overall_is() -> None:
    right, quick = answers(1.0, seconds=20.0), answers(0.5, seconds=0.05)
    speed_only = {"accuracy": 0.0, "speed": 1.0, "efficiency": 0.0, "cost": 0.0, "reliability": 0.0}
    usual = board(agent("right", right), agent("quick", quick))
    for_speed = board(
        agent("right", replace(right, weights=speed_only)), agent("quick", replace(quick, weights=speed_only))
    )
    assert for_speed.standings[0].contender.agent == "quick"
    assert for_speed.standings[0].score.value == pytest.approx(quick.dimensions["speed"].value)
    assert usual.standings[0].score.value != for_speed.standings[0].score.value


def test_who_is_certainly_worse_in_one_and_better_in_nothing_is_dominated() -> None:
    found = board(
        agent("good", answers(0.9, seconds=1.0, rounds=3)),
        agent("slow", answers(0.9, seconds=5.0, rounds=3)),
        agent("cheap", answers(0.9, seconds=5.0, usd=0.001, rounds=3)),
    )
    rows = {row.contender.agent: row for row in found.standings}
    assert rows["slow"].dominated_by == ("good", "cheap")
    assert (rows["good"].dominated_by, rows["cheap"].dominated_by) == ((), ())
    assert {name for name, row in rows.items() if row.is_pareto} == {"good", "cheap"}
    assert found.pareto == ("accuracy", "cost", "speed")


def test_nobody_is_dominated_by_a_better_figure_alone() -> None:
    found = board(
        agent("a", answers(0.9, seconds=1.0, seed=1)), agent("b", answers(0.9, seconds=1.0, seed=2))
    )
    assert [row.dominated_by for row in found.standings] == [(), ()]
    assert sum(row.is_pareto for row in found.standings) == 1


def test_there_are_no_pareto_marks_where_only_one_of_three_is_known() -> None:
    only = rated([ok(f"c{n}") for n in range(20)])
    found = board(agent("a", only), agent("b", only))
    assert found.pareto == ()
    assert not any(row.is_pareto for row in found.standings)


def test_among_those_who_are_not_apart_the_one_who_completed_more_stands_first() -> None:
    part = agent("part", {"b": answers(0.9)})
    whole = agent("whole", {"b": answers(0.9, seed=3), "c": answers(0.4)})
    found = board(part, whole, metric="accuracy", benchmarks=("b", "c"))
    assert [row.contender.agent for row in found.standings] == ["whole", "part"]
    assert [row.coverage for row in found.standings] == ["2/2", "1/2"]


def test_partial_and_outdated_results_are_not_completed_ones(wording: Wording) -> None:
    ratings = {"b": answers(0.9), "c": answers(0.9), "d": answers(0.9)}
    change = "the benchmark has changed"
    one = agent(
        "a",
        ratings,
        partial={"b": "3 of 100"},
        stale={"c": change},
        outdated=frozenset("c"),
    )
    found = board(one, agent("x", ratings), benchmarks=("b", "c", "d"))
    assert {row.contender.agent: row.coverage for row in found.standings} == {"a": "1/3", "x": "3/3"}
    (partial,) = (text for text in found.doubts if re.search(r"\bb\b", text))
    (outdated,) = (text for text in found.doubts if change in text)
    assert re.search(r"\ba\b", partial)
    assert {"a", "c", "stale"} <= set(re.findall(r"\w+", outdated))
    wording(partial)
    wording(outdated)


def test_agents_that_nothing_is_known_of_are_named_instead_of_ranked(wording: Wording) -> None:
    rating = answers(0.9)
    blank = replace(
        rating, dimensions={name: Rating(name, None, basis="why") for name in rating.dimensions}, marks={}
    )
    found = board(agent("a", blank), agent("b", blank))
    assert found.standings == ()
    wording("\n".join(found.doubts), near="a, b")
    by_speed = board(agent("a", blank), agent("b", rating), metric="speed")
    assert ranks(by_speed) == {"b": (1, 1)}
    (unrated,) = (text for text in by_speed.doubts if "(why)" in text)
    assert unrated.startswith("a: speed ")
    wording(unrated)


@pytest.mark.parametrize("value", [1e300, 0.0])
def test_extreme_figures_do_not_stop_a_board(value: float) -> None:
    rows = [ok(f"c{n}", seconds=value, usd=value) for n in range(8)]
    extreme = rated(rows, REFERENCE)
    found = board(agent("extreme", extreme), agent("usual", answers(0.9, cases=8)))
    assert len(found.standings) == 2
    assert all(0 <= (row.score.value or 0.0) <= 1 for row in found.standings)


def test_a_column_of_the_matrix_is_the_leaderboard_of_that_dimension() -> None:
    contenders = [
        agent("a", answers(0.9, seconds=3.0)),
        agent("b", answers(0.5, seconds=0.3)),
        agent("c", answers(0.5, seconds=0.3, seed=5)),
    ]
    made = matrix("s", contenders, ["b"])
    for metric in ("overall", "accuracy", "speed", "cost"):
        places = {row.contender.agent: row.places[metric] for row in made.rows}
        assert places == {
            name: RankRange(*ends) for name, ends in ranks(board(*contenders, metric=metric)).items()
        }
    assert {row.contender.agent: row.places["accuracy"] for row in made.rows} == {
        "a": RankRange(1, 1),
        "b": RankRange(2, 3),
        "c": RankRange(2, 3),
    }


def test_what_is_unrated_has_no_place_in_the_matrix() -> None:
    made = matrix("s", [agent("a", answers(0.9)), agent("b", answers(0.4))], ["b"])
    assert all("efficiency" not in row.places for row in made.rows)
    assert made.dimensions == ("accuracy", "speed", "cost")


def test_two_agents_head_to_head_win_lose_and_leave_open() -> None:
    made = matrix(
        "s",
        [agent("a", answers(0.9, seconds=3.0, rounds=3)), agent("b", answers(0.3, seconds=0.3, rounds=3))],
        ["b"],
    )
    [duel] = made.duels
    assert (duel.a, duel.b, duel.won, duel.lost) == ("a", "b", ("accuracy", "cost"), ("speed",))
    assert duel.undecided == ("efficiency", "reliability")


def test_simulated_agents_meet_only_each_other() -> None:
    names = {"real": False, "other": False, "dream": True, "fancy": True}
    contenders = [replace(agent(name, answers(0.9)), is_simulated=made_up) for name, made_up in names.items()]
    made = matrix("s", contenders, ["b"])
    assert [row.contender.agent for row in made.rows] == ["other", "real"]
    assert [row.contender.agent for row in made.simulated] == ["dream", "fancy"]
    assert {(duel.a, duel.b) for duel in made.duels} == {("real", "other"), ("dream", "fancy")}


def test_a_matrix_of_one_agent_or_none_has_no_duels() -> None:
    assert matrix("s", [agent("a", answers(0.9))], ["b"]).duels == ()
    assert matrix("s", [], []).rows == ()
