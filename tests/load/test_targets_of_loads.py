"""`assay run load` finds the agents that `assay load` finds, before anything runs."""

from __future__ import annotations

import pytest

SUITE = """
suite: desk
agents:
  - {name: only-here, type: stub, answer: "4"}
benchmarks:
  - {id: b, cases: [{id: c, input: a, expected: a}], scorer: exact}
"""
AGENTS = "agents:\n  - {name: registered, type: stub, answer: '4'}\n"


@pytest.fixture
def desk(assay_inline):
    assay_inline.write("suite.yaml", SUITE)
    return assay_inline


@pytest.mark.parametrize(
    "given", [("--agent", "only-here"), ("--set", "target=only-here")], ids=["agent", "set"]
)
def test_an_agent_that_only_a_suite_defines_can_be_loaded(desk, given):
    done = desk("run", "load", *given, "--set", "requests=3", "--isolation", "inline", "--json")
    assert done.json["trials"][0]["counts"] == {"ok": 1}


@pytest.mark.parametrize("command", ["load", "stress"])
def test_recorded_answers_cannot_be_load_tested(desk, command, wording):
    desk.write("answers.jsonl", '{"id": "c", "output": "a"}')
    desk.write("agents.yaml", "agents:\n  - {name: past, type: recorded, answers: answers.jsonl}\n")
    desk("agent", "add", "agents.yaml")
    refusal = desk(command, "past").refusal
    assert "'past'" in refusal
    wording(refusal)


@pytest.mark.parametrize("name", ["--agent", "--set"])
def test_a_registered_agent_can_be_loaded(desk, name):
    desk("agent", "add", str(desk.write("agents.yaml", AGENTS)))
    given = "registered" if name == "--agent" else "target=registered"
    done = desk("run", "load", name, given, "--set", "requests=3", "--isolation", "inline", "--json")
    assert done.json["trials"][0]["counts"] == {"ok": 1}


@pytest.mark.parametrize("given", [("--set", "target=only-her"), ("--sweep", "target=only-here,only-her")])
def test_a_target_that_does_not_exist_is_refused_before_anything_runs(desk, given, wording):
    refusal = desk("run", "load", *given, "--set", "requests=3").refusal
    assert "'only-here'" in refusal
    wording(refusal)
    assert desk("runs", "list", "--json").json == []
