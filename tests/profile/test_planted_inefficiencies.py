"""`assay profile` on agents with a known inefficiency, and on honest ones: really run and really sampled."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline, Prepare

PLANTED = {
    "serial": "parallelization",
    "repeated": "caching",
    "n_plus_one": "batching",
    "locked": "lock contention",
    "growing": "growing context",
    "reparsed": "repeated parsing",
    "sleepy": "sleep",
}
UNTOLD = {"sleepy_async": "sleep", "sql_loop": "batching"}
"""Agents that have no spans at all."""
HONEST = ("clean", "busy", "waiting", "parsing", "quick", "in_thread", "together")
AGENTS = Path(__file__).with_name("planted_agents.py")

pytestmark = pytest.mark.slow


def profile_all(assay: AssayInline) -> None:
    shutil.copy(AGENTS, assay.folder)
    agents = [
        {"name": name, "type": "python", "target": f"planted_agents.py:{name}"}
        for name in (*PLANTED, *UNTOLD, *HONEST)
    ]
    case = {"id": "a", "input": "Do it"}
    suite = {
        "suite": "planted",
        "agents": agents,
        "benchmarks": [{"id": "one", "cases": [case], "iterations": {"warmup": 0}}],
    }
    assay.write("suite.yaml", json.dumps(suite))
    done = assay("profile", "suite.yaml", "--repetitions", "1", "--no-memory", "--json")
    assay.write("profile.json", done.out)
    assert done.code == 0, done.err


@pytest.fixture
def profiles(assay_inline: AssayInline, prepare: Prepare) -> dict[str, dict[str, Any]]:
    prepare(assay_inline, profile_all)
    document = json.loads((assay_inline.folder / "profile.json").read_text())
    return {profile["agent_id"]: profile for profile in document["profiles"]}


def test_a_planted_inefficiency_is_the_first_opportunity(profiles: dict[str, dict[str, Any]]):
    named = {
        agent: [found["category"] for found in profiles[agent]["optimization_opportunities"]][:1]
        for agent in PLANTED
    }
    assert sum(named[agent] == [category] for agent, category in PLANTED.items()) >= 6, named


def test_a_sleep_in_an_event_loop_and_queries_in_a_loop_are_found_without_spans(
    profiles: dict[str, dict[str, Any]],
):
    for agent, category in UNTOLD.items():
        (found,) = profiles[agent]["optimization_opportunities"]
        assert found["category"] == category
    # It sleeps for 400 ms. Samples that a busy machine drops are lost, and nothing is claimed for them.
    (found,) = profiles["sleepy_async"]["optimization_opportunities"]
    assert 200 < found["saved_ms"] <= profiles["sleepy_async"]["duration_ms"]


def test_nothing_is_claimed_about_honest_agents(profiles: dict[str, dict[str, Any]]):
    claimed = {agent: profiles[agent]["optimization_opportunities"] for agent in HONEST}
    assert claimed == {agent: [] for agent in HONEST}


def test_savings_are_those_that_were_planted(profiles: dict[str, dict[str, Any]]):
    saved = {agent: profiles[agent]["optimization_opportunities"][0]["saved_ms"] for agent in PLANTED}
    assert 300 < saved["serial"] < 900  # three of four calls of 120 ms
    assert 320 < saved["sleepy"] < 500  # it sleeps for 400 ms
    assert 300 < saved["locked"] < 900  # three threads wait for 150, 300 and 450 ms
    assert profiles["growing"]["optimization_opportunities"][0]["saved_tokens"] > 900


def test_bottlenecks_name_the_line_and_what_it_waits_for(profiles: dict[str, dict[str, Any]], wording: Any):
    source = AGENTS.read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(source) if "time.sleep(0.4)" in text)
    worst = profiles["sleepy"]["profile_data"]["bottlenecks"][0]
    assert worst["location"] == f"planted_agents.py:{line} sleepy"
    assert worst["cause"] == "sleeping"
    assert 300 < worst["impact_ms"] < 500
    assert profiles["busy"]["profile_data"]["bottlenecks"][0]["cause"] == "computing"
    wording(profiles["waiting"]["profile_data"]["bottlenecks"][0]["cause"])


def test_an_agent_that_ends_before_the_first_sample_is_recorded_as_such(profiles: dict[str, dict[str, Any]]):
    quick = profiles["quick"]
    assert quick["profile_data"]["bottlenecks"] == []
    assert [problem for problem in quick["problems"] if "sampled" in problem]
    assert quick["profile_data"]["execution_phases"][0]["phase_name"] == "agent"


def test_utilization_tells_computing_from_waiting(profiles: dict[str, dict[str, Any]]):
    busy, waiting, serial, clean = (
        profiles[agent]["profile_data"]["resource_utilization"]
        for agent in ("busy", "waiting", "serial", "clean")
    )
    assert busy["io_efficiency"] > 0.9
    waited_ms = (1 - waiting["io_efficiency"]) * profiles["waiting"]["duration_ms"]
    # It waits for 400 ms. On a busy machine the sampler comes late, and counts the time until then to what was before.
    assert 150 < waited_ms < 600
    assert waiting["cpu_efficiency"] < 0.1
    assert serial["parallelization_score"] == pytest.approx(0, abs=0.02)
    assert clean["parallelization_score"] > 0.8


def test_tokens_are_those_of_the_calls(profiles: dict[str, dict[str, Any]]):
    tokens = profiles["repeated"]["profile_data"]["token_analysis"]
    assert tokens["input_tokens"] == 50
    assert tokens["output_tokens"] == 5
    assert tokens["cache_hits"] == 0
    assert tokens["wasted_tokens"] == 44  # four of the five calls
    assert tokens["token_efficiency"] == pytest.approx(1 - 44 / 55)


def test_the_run_is_stored_like_any_other(assay_inline: AssayInline, prepare: Prepare):
    prepare(assay_inline, profile_all)
    assert assay_inline("show", "last").code == 0
    written = assay_inline(
        "report", "last", "--format", "html,json,speedscope", "--out", "out", "--json"
    ).json
    names = {Path(file).name for file in written["files"]}
    assert {"report.html", "0-profile-000.speedscope.json"} <= names
    page = (assay_inline.folder / "out" / "report.html").read_text()
    assert "one · sleepy" in page
    result = next((assay_inline.folder / "out").glob("*.json"))
    assert result.is_file()
