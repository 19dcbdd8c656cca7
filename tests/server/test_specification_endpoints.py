"""The endpoints of the performance specification say what the commands say, under its names."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from pydantic import BaseModel
from tests.command import Assay
from tests.server.service import Service

from assay.server.schemas import AgentResults, ComparisonAnswer, LeaderboardAnswer, RegressionsAnswer

DIMENSIONS = {"accuracy", "speed", "efficiency", "cost", "reliability"}


def test_results_have_the_columns_of_the_specification(server: Service, played: Path) -> None:
    found = server.get("/benchmarks/agents/bad/results").document
    assert (found["agent_id"], found["suite_id"], found["timeframe"]) == ("bad", None, "latest")
    [result] = found["results"]
    with closing(sqlite3.connect(played / ".assay" / "assay.db")) as connection:
        view = connection.execute("SELECT * FROM benchmark_executions WHERE agent_id = 'bad'")
        names = [column[0] for column in view.description]
        row = dict(zip(names, view.fetchone(), strict=True))
    assert result.keys() == {*names, "run_id", "overall_score", "simulated"}
    assert result["accuracy_score"] == pytest.approx(25.0)
    same = [name for name in names if not name.endswith(("_time", "_at", "_environment", "_configuration"))]
    assert {name: result[name] for name in same} == {name: row[name] for name in same}
    assert result["execution_environment"]["os"]["system"]
    assert result["created_at"].endswith("+00:00")


@pytest.mark.parametrize("timeframe", ["latest", "24h", "7d", "30d", "all"])
def test_results_of_every_period(server: Service, timeframe: str) -> None:
    asked = {"suite_id": "desk", "timeframe": timeframe}
    assert [
        one["status"] for one in server.get("/benchmarks/agents/good/results", **asked).document["results"]
    ] == ["success"]


def test_a_registered_agent_without_results_has_none(server: Service) -> None:
    assert server.get("/benchmarks/agents/slow/results").document["results"] == []


@pytest.mark.parametrize(
    ("path", "query", "status", "word"),
    [
        ("/benchmarks/agents/godo/results", {}, 404, "Did you mean 'good'?"),
        ("/benchmarks/agents/good/results", {"suite_id": "dsek"}, 404, "Did you mean 'desk'?"),
        ("/benchmarks/agents/good/results", {"timeframe": "1y"}, 422, "timeframe"),
        ("/benchmarks/agents/good/results", {"limit": 0}, 422, "limit"),
        ("/benchmarks/agents/go%00od/results", {}, 422, "NUL"),
        ("/benchmarks/leaderboard", {"category": "sped"}, 404, "sped"),
        ("/benchmarks/leaderboard", {"metric": "beauty"}, 422, "metric"),
        ("/benchmarks/leaderboard", {"limit": "many"}, 422, "limit"),
        ("/benchmarks/agents/nobody/regressions", {}, 404, "nobody"),
        ("/benchmarks/agents/good/regressions", {"baseline_version": "7"}, 404, "'7'"),
        ("/benchmarks/agents/good/regressions", {"threshold": "nan"}, 422, "threshold"),
        ("/benchmarks/agents/good/regressions", {"threshold": -1}, 422, "threshold"),
    ],
)
def test_what_cannot_be_read_is_reported(
    server: Service, path: str, query: dict[str, object], status: int, word: str
) -> None:
    answer = server.get(path, **query)
    assert answer.status == status
    assert word in answer.json["message"]


def test_the_leaderboard_has_the_figures_of_the_command(server: Service, played: Path) -> None:
    found = server.get("/benchmarks/leaderboard").document
    assert (found["category"], found["metric"], found["across_suites"]) == ("overall", "all", None)
    [board] = found["leaderboards"]
    assert (board["suite_id"], board["benchmark_category"]) == ("desk", "accuracy")
    [of_command] = Assay(played)("leaderboard", "--json").json
    for row, told in zip(board["standings"], of_command["standings"], strict=True):
        assert row["agent_id"] == told["agent"]
        assert row["rank"] == told["rank"]
        assert row["score"] == pytest.approx(100 * told["score"])
        assert row["interval"] == pytest.approx([100 * end for end in told["interval"]])
        assert {name: one["score"] for name, one in row["scores_and_ranks"].items()} == pytest.approx(
            {name: 100 * value for name, value in told["dimensions"].items()}
        )
    first, second = board["standings"]
    assert first["scores_and_ranks"]["accuracy"] == {"score": 100.0, "rank": 1}
    assert second["scores_and_ranks"]["accuracy"] == {"score": 25.0, "rank": 2}
    assert first["benchmarks_completed"] == first["benchmarks_total"] == 1


def test_the_leaderboard_of_a_category_and_a_metric(server: Service) -> None:
    asked = {"category": "accuracy", "metric": "accuracy", "limit": 1}
    [board] = server.get("/benchmarks/leaderboard", **asked).document["leaderboards"]
    assert [(row["agent_id"], row["score"]) for row in board["standings"]] == [("good", 100.0)]


def test_a_comparison_names_a_winner_only_where_it_is_proved(server: Service, played: Path) -> None:
    found = server.post("/benchmarks/compare", agent_ids=["good", "bad"], suite_id="desk").document
    assert found["comparison_type"] == "head_to_head"
    assert found["overall_winner"] == found["category_winners"]["accuracy"] == "good"
    assert found["category_winners"]["cost"] is found["category_winners"]["reliability"] is None
    metrics = {one["metric"]: one for one in found["detailed_metrics"]}
    assert metrics.keys() == found["statistical_significance"].keys() == DIMENSIONS
    accuracy = metrics["accuracy"]
    assert (accuracy["agent_a_score"], accuracy["agent_b_score"]) == (100.0, 25.0)
    assert (accuracy["difference"], accuracy["percentage_difference"]) == (75.0, 300.0)
    assert accuracy["winner"] == "good"
    [told] = Assay(played)("compare", "good", "bad", "--suite", "desk", "--json").json["agents"]
    assert told["ratings"]["accuracy"]["difference"] == pytest.approx(-0.75)
    assert found["statistical_significance"] == {
        name: one["p_corrected"] for name, one in told["ratings"].items() if name != "overall"
    }
    assert found["statistical_significance"]["accuracy"] < 0.001 < found["statistical_significance"]["cost"]
    assert found["recommendations"] == told["recommendations"]


def test_several_agents_are_compared_in_pairs(server: Service) -> None:
    asked = {"agent_ids": ["bad", "good"], "suite_id": "desk", "comparison_type": "multi_agent"}
    found = server.post("/benchmarks/compare", **asked).document
    assert found["overall_winner"] == found["category_winners"]["accuracy"] == "good"
    [accuracy] = [one for one in found["detailed_metrics"] if one["metric"] == "accuracy"]
    assert {
        accuracy["agent_a"]: accuracy["agent_a_score"],
        accuracy["agent_b"]: accuracy["agent_b_score"],
    } == {
        "good": pytest.approx(100.0),
        "bad": pytest.approx(25.0),
    }
    assert min(found["statistical_significance"].values()) < 0.001


def test_versions_are_compared_in_the_order_of_time(server: Service) -> None:
    asked = {"agent_ids": ["good@1", "bad"], "suite_id": "desk", "comparison_type": "time_series"}
    found = server.post("/benchmarks/compare", **asked).document
    [score] = [one for one in found["courses"] if one["metric"] == "score"]
    assert (score["values"], score["verdict"]) == ({"good@1": 1.0, "bad": 0.25}, "worse")
    assert found["overall_winner"] is None


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"agent_ids": ["good", "godo"], "suite_id": "desk"}, 404),
        ({"agent_ids": ["good", "slow"], "suite_id": "desk"}, 404),
        ({"agent_ids": ["good", "bad"], "suite_id": "elsewhere"}, 404),
        ({"agent_ids": ["good", "/etc/passwd"], "suite_id": "desk"}, 404),
        ({"agent_ids": ["good", "result.json"], "suite_id": "desk"}, 404),
        ({"agent_ids": ["good", "last"], "suite_id": "desk"}, 404),
        ({"agent_ids": ["good", "good"], "suite_id": "desk"}, 422),
        ({"agent_ids": ["good"], "suite_id": "desk"}, 422),
        ({"agent_ids": ["good", "bad"]}, 422),
        ({"agent_ids": ["good", "bad"], "suite_id": "desk", "comparison_type": "duel"}, 422),
        ({"agent_ids": ["good", "bad"], "suite_id": "desk", "file": "x"}, 422),
        ({"agent_ids": ["good", "bad", "good@1"], "suite_id": "desk"}, 422),
        ({"agent_ids": "good", "suite_id": "desk"}, 422),
    ],
)
def test_what_cannot_be_compared_is_reported(server: Service, asked: dict[str, object], status: int) -> None:
    assert server.post("/benchmarks/compare", **asked).status == status


def test_regressions_are_those_of_the_command(server: Service, played: Path) -> None:
    found = server.get("/benchmarks/agents/good/regressions").document
    told = Assay(played)("regressions", "good", "--threshold", "0.1", "--json").json
    assert found == told
    assert (found["has_regressions"], found["agent_id"]) == (False, "good")


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/benchmarks/agents/good/results", AgentResults),
        ("/benchmarks/leaderboard", LeaderboardAnswer),
        ("/benchmarks/agents/good/regressions", RegressionsAnswer),
    ],
)
def test_answers_are_as_the_schema_says(server: Service, path: str, model: type[BaseModel]) -> None:
    model.model_validate(server.get(path).document)


@pytest.mark.parametrize("kind", ["head_to_head", "multi_agent", "time_series"])
def test_comparisons_are_as_the_schema_says(server: Service, kind: str) -> None:
    asked = {"agent_ids": ["good", "bad"], "suite_id": "desk", "comparison_type": kind}
    ComparisonAnswer.model_validate(server.post("/benchmarks/compare", **asked).document)


def test_an_empty_store_has_an_empty_leaderboard(project: Path) -> None:
    from tests.server.service import serving

    with serving(project) as service:
        assert service.get("/benchmarks/leaderboard").document["leaderboards"] == []
        assert service.get("/benchmarks/agents/good/results").document["results"] == []
        assert service.get("/benchmarks/agents/good/regressions").status == 404
