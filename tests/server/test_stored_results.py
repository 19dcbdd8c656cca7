"""Agents, suites, runs, trials, executions and documents, as they are stored."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from tests.command import Assay
from tests.server.service import Service, serving

from assay.server.catalog import AgentList, SuiteAnswer, SuiteList
from assay.server.results import CostAnswer, ExecutionPage, ResultDocument
from assay.server.runs import RunPage
from assay.server.schemas import ResultPage, ResultRow


@pytest.fixture
def run_id(server: Service) -> str:
    return str(server.get("/runs").document["runs"][-1]["id"])


@pytest.fixture
def trial(server: Service, run_id: str) -> dict[str, Any]:
    [found] = server.get("/trials", agent_id="bad", run_id=run_id).document["results"]
    return dict(found)


def test_agents_are_those_that_can_be_run_and_those_with_results(server: Service) -> None:
    found = {one["agent_id"]: one for one in server.get("/agents").document["agents"]}
    assert list(found) == ["bad", "good", "slow"]
    assert found["slow"] == {
        "agent_id": "slow", "type": "python", "agent_version": "1", "is_registered": True, "has_results": False,
    }  # fmt: skip
    assert found["good"]["has_results"]


def test_suites_have_the_fields_of_the_specification(server: Service) -> None:
    assert server.get("/suites").document["suites"] == [
        {
            "suite_id": "desk",
            "version": "1",
            "category": "accuracy",
            "is_registered": True,
            "has_results": True,
        }
    ]
    found = server.get("/suites/desk").document
    assert (found["suite_id"], found["suite_name"], found["version"]) == ("desk", "desk", "1")
    [benchmark] = found["benchmarks"]
    assert (benchmark["benchmark_id"], benchmark["dataset"]["size"]) == ("refunds", 40)
    assert benchmark["constraints"]["time_limit_ms"] is None
    assert not {"suite", "title"} & found.keys()
    assert server.get("/suites/dsek").status == 404


def test_runs_are_listed_as_by_the_command(server: Service, played: Path, run_id: str) -> None:
    listed = Assay(played)("runs", "list", "--json").json
    found = server.get("/runs", limit=200).document
    assert (len(found["runs"]), found["next_cursor"]) == (len(listed), None)
    assert found["runs"][-1]["id"] == listed[-1]["id"] == run_id
    assert server.get("/runs", limit=1).document["next_cursor"] == found["runs"][0]["id"]
    assert server.get("/runs", cursor=run_id).document["runs"] == []
    assert server.get("/runs", tag="nothing").document["runs"] == []
    assert server.get("/runs", cursor="nothing").status == 404


def test_a_trial_and_its_executions(server: Service, trial: dict[str, Any]) -> None:
    path = f"/trials/{trial['id']}"
    assert server.get(path).document == trial
    whole = server.get(f"{path}/executions", limit=1000).document
    assert (len(whole["executions"]), whole["next_cursor"]) == (120, None)
    assert Counter(one["score"] for one in whole["executions"]) == {1.0: 30, 0.0: 90}
    first = server.get(f"{path}/executions", limit=50).document
    second = server.get(f"{path}/executions", limit=100, cursor=first["next_cursor"]).document
    assert first["executions"] + second["executions"] == whole["executions"]
    of_case = server.get(f"{path}/executions", case="c4", phase="measured", status="ok").document[
        "executions"
    ]
    assert [(one["case"], one["output"]) for one in of_case] == [("c4", "4")] * 3
    assert server.get(f"{path}/executions", status="failed").document["executions"] == []


def test_a_result_is_that_of_the_command(server: Service, played: Path, run_id: str) -> None:
    found = server.get(f"/runs/{run_id}/result").document
    told = Assay(played)("show", run_id, "--json").json
    assert [one["overall"] for one in found["trials"]] == [one["overall"] for one in told["trials"]]
    assert server.get(f"/runs/{run_id}/findings/stress").status == 404


def test_runs_are_listed_by_agent_and_state(server: Service) -> None:
    [run] = server.get("/runs").document["runs"]
    assert server.get("/runs", agent_id="bad", state="completed").document["runs"] == [run]
    assert server.get("/runs", agent_id="slow").document["runs"] == []
    assert server.get("/runs", state="failed").document["runs"] == []
    assert server.get("/runs", state="fine").status == 422


def test_costs_are_those_of_the_command(server: Service, played: Path) -> None:
    assert (
        server.get("/cost", suite_id="desk").document
        == Assay(played)("cost", "--suite", "desk", "--json").json
    )
    assert server.get("/cost", agent_id=["good", "nobody"]).status == 404


@pytest.mark.parametrize(
    "path", ["/trials/0", "/trials/x", "/trials/99999999999", "/trials/1/executions?status=fine", "/runs?limit=0",
             "/trials?cursor=-1", "/cost?volume=0", "/trials?agent_id=%00"],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(server: Service, path: str) -> None:
    assert server.get(path).status == 422


def test_what_is_not_stored_is_not_found(server: Service) -> None:
    for path in ("/trials/77777", "/trials/77777/executions", "/runs/nothing/result"):
        assert server.get(path).status == 404


def test_figures_for_prometheus(server: Service) -> None:
    before = server.get("/metrics")
    assert before.headers["content-type"].startswith("text/plain; version=0.0.4")
    server.get("/suites/nothing")
    lines = server.get("/metrics").body.decode().splitlines()
    figures = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert float(figures['assay_requests_total{method="GET",route="/suites/{suite_id}",status="404"}']) >= 1
    assert float(figures['assay_runs{state="completed"}']) >= 1
    assert float(figures["process_resident_memory_bytes"]) > 1e7
    assert not any("nothing" in line for line in lines)


@pytest.mark.parametrize(
    ("path", "model"),
    [("/agents", AgentList), ("/suites", SuiteList), ("/suites/desk", SuiteAnswer), ("/runs", RunPage),
     ("/trials", ResultPage), ("/trials/1", ResultRow), ("/trials/1/executions", ExecutionPage),
     ("/runs/last/result", ResultDocument), ("/cost", CostAnswer)],
)  # fmt: skip
def test_answers_are_as_the_schema_says(server: Service, path: str, model: type[BaseModel]) -> None:
    model.model_validate(server.get(path).document)


def test_the_dashboard_of_a_suite_that_nobody_has_a_rank_on_says_what_to_do(project: Path) -> None:
    """As while its first run goes on."""
    (project / "agents.py").write_text("def good(text): raise ValueError\n")
    assert Assay(project)("run", "desk", "--agent", "good", "--repetitions", "1", "-q").code == 1
    with serving(project) as service:
        answer = service.get("/")
    assert answer.status == 200
    assert "to rank" in answer.body.decode()
