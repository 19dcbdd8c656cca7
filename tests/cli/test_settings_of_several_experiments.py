"""`--set` and `--sweep` on specs with several experiments, and on suites with several agents."""

from __future__ import annotations

from typing import Any

import pytest
from tests.command import AssayInline

FILE = """
from assay import Experiment, register_experiment

@register_experiment("wide")
class Wide(Experiment):
    def __init__(self, size: int = 1, parameters=None):
        super().__init__(parameters or {})
    def execute_once(self, context):
        return {}

@register_experiment("deep")
class Deep(Experiment):
    def __init__(self, size: int = 1, depth: int = 1, parameters=None):
        super().__init__(parameters or {})
    def execute_once(self, context):
        return {}
"""
SPEC = "load: both.py\nexperiments: [{experiment: wide}, {experiment: deep, params: {depth: 2}}]\n"


@pytest.fixture
def folder(assay_inline):
    assay_inline.write("both.py", FILE)
    assay_inline.write("both.yaml", SPEC)
    return assay_inline


def planned(folder: AssayInline, *options: str) -> list[tuple[Any, ...]]:
    trials = folder("run", "both.yaml", *options, "--dry-run", "--json").json["trials"]
    return [
        (trial["name"], trial["parameters"].get("size"), trial["parameters"].get("depth")) for trial in trials
    ]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("size=5", [("wide", 5, None), ("deep", 5, 2)]),
        ("depth=7", [("wide", 1, None), ("deep", 1, 7)]),
        ("deep.size=5", [("wide", 1, None), ("deep", 5, 2)]),
        ("wide.size=5", [("wide", 5, None), ("deep", 1, 2)]),
    ],
)
def test_a_setting_reaches_the_experiments_that_have_it_or_the_one_it_names(folder, option, expected):
    assert planned(folder, "--set", option) == expected


def test_an_axis_reaches_the_experiment_that_it_names(folder):
    assert planned(folder, "--sweep", "deep.size=3,4") == [
        ("wide", 1, None),
        ("deep[size=3]", 3, 2),
        ("deep[size=4]", 4, 2),
    ]


@pytest.mark.parametrize("option", ["--set", "--sweep"])
def test_a_key_that_no_experiment_has_is_refused_with_the_known_ones(folder, option, wording):
    refusal = folder("run", "both.yaml", option, "dept=3").refusal
    assert option in refusal
    assert "'dept'" in refusal
    assert "'depth'" in refusal
    assert "size" in refusal
    wording(refusal)


def test_a_key_that_the_named_experiment_does_not_have_is_refused(folder):
    refusal = folder("run", "both.yaml", "--set", "wide.depth=3").refusal
    assert "'wide'" in refusal
    assert "size" in refusal


def test_an_experiment_that_the_spec_does_not_have_is_refused(folder, wording):
    refusal = folder("run", "both.yaml", "--set", "dep.size=3").refusal
    assert "'deep'" in refusal
    wording(refusal)


def test_the_stored_spec_holds_what_each_experiment_was_set_to(folder):
    document = folder("run", "both.yaml", "--set", "deep.size=5", "--json").json
    assert document["spec"]["experiments"][1]["params"] == {"depth": 2, "size": 5}


def test_a_python_file_with_several_experiments_is_set_alike(folder):
    trials = folder("run", "both.py", "--set", "depth=9", "--dry-run", "--json").json["trials"]
    assert [trial["parameters"].get("depth") for trial in trials] == [None, 9]


def test_a_single_experiment_may_be_named_too(folder):
    command = ("run", "deep", "--load", "both.py", "--set", "deep.depth=4", "--dry-run", "--json")
    assert folder(*command).json["trials"][0]["parameters"]["depth"] == 4


def test_a_name_of_both_an_agent_and_an_experiment_is_refused(folder):
    folder.write("both.py", FILE.replace('"deep"', '"agent"'))
    folder.write("both.yaml", SPEC.replace("experiment: deep", "experiment: agent"))
    assert "ambiguous" in folder("run", "both.yaml", "--set", "agent.depth=3").refusal


SUITE = """
suite: desk
benchmarks: [{id: b, cases: [{id: one, input: hi, expected: hi}], scorer: exact}]
agents:
  - {name: first, type: stub, answer: a}
  - {name: second, type: stub, answer: b}
"""


def test_an_option_reaches_the_agent_of_a_suite_that_it_names(folder):
    folder.write("suite.yaml", SUITE)
    run = folder("run", "suite.yaml", "--set", "second.answer=hi", "--repetitions", "1", "--json").json
    scores = {trial["agent"]["name"]: trial["metrics"]["score"]["mean"] for trial in run["trials"]}
    assert scores == {"first": 0.0, "second": 1.0}


def test_an_axis_reaches_the_agent_of_a_suite_that_it_names(folder):
    folder.write("suite.yaml", SUITE)
    document = folder("run", "suite.yaml", "--sweep", "second.answer=x,y", "--dry-run", "--json").json
    assert [trial["parameters"] for trial in document["trials"]] == [{}, {"answer": "x"}, {"answer": "y"}]


def test_an_agent_that_the_suite_does_not_run_is_refused(folder, wording):
    folder.write("suite.yaml", SUITE)
    refusal = folder("run", "suite.yaml", "--set", "secnd.answer=hi").refusal
    assert "'second'" in refusal
    wording(refusal)
    document = folder("run", "suite.yaml", "--set", "agent.answer=hi", "--dry-run", "--json").json
    assert len(document["trials"]) == 2
