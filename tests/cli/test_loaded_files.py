"""`--load`, `load:` and `[assay] load`: what a file defines is known by its name, and what it prints is no result."""

from __future__ import annotations

import json
import re

import pytest

FILE = """
import os
import time
from assay import Experiment, benchmark, register_experiment

print("printed by the file")
os.write(1, b"written to the descriptor\\n")
os.system("echo printed by a process")

@benchmark(name="parse invoices", iterations=2, warmup=0)
def parse():
    sum(range(100))

@register_experiment("mine")
class Mine(Experiment):
    def execute_once(self, context):
        print("printed while it runs")
        return {"x": 1.0}

class Plain(Experiment):
    def execute_once(self, context):
        return {"y": 2.0}

def shout(text):
    return text.upper()

def as_expected(output, expected):
    return float(output == expected)
"""
SUITE = """
suite: loud
benchmarks:
  - id: b
    cases: [{id: one, input: hi, expected: HI}]
    scorer: as_expected
    iterations: {warmup: 0, measured: 1}
"""


@pytest.fixture
def folder(assay_inline):
    assay_inline.write("loaded.py", FILE)
    assay_inline.write("suite.yaml", SUITE)
    return assay_inline


@pytest.mark.parametrize("name", ["mine", "parse invoices", "parse", "Plain"])
def test_a_target_is_found_in_a_file_given_with_load(folder, name):
    document = folder("run", name, "--load", "loaded.py", "--json").json
    assert [trial["counts"].keys() for trial in document["trials"]] == [{"ok"}]


def test_agents_and_scorers_of_a_suite_are_found_in_a_file_given_with_load(folder):
    document = folder("run", "suite.yaml", "--load", "loaded.py", "--agent", "shout", "--json").json
    [trial] = document["trials"]
    assert trial["agent"]["name"] == "shout"
    assert trial["metrics"]["score"]["mean"] == 1.0


def test_agents_and_scorers_are_found_in_files_that_the_suite_loads(folder):
    folder.write("suite.yaml", SUITE + "load: loaded.py\nagents: [shout]\n")
    [trial] = folder("run", "suite.yaml", "--json").json["trials"]
    assert (trial["agent"]["name"], trial["metrics"]["score"]["mean"]) == ("shout", 1.0)


def test_names_are_found_in_files_that_the_project_loads(folder):
    folder.write("assay.toml", '[assay]\nload = ["loaded.py"]\n')
    assert folder("run", "mine", "--json").json["status"] == "completed"
    assert folder("run", "suite.yaml", "--agent", "shout", "--json").json["status"] == "completed"
    assert folder("validate", "suite.yaml").code == 0


def test_a_run_with_a_loaded_target_can_be_resumed_and_shown(folder):
    run = folder("run", "Plain", "--load", "loaded.py", "--json").json["run_id"]
    assert folder("run", "--resume", run, "--json").json["status"] == "completed"
    assert "y" in folder("show", run, "--json").json["trials"][0]["metrics"]


def test_a_file_to_load_that_is_missing_is_named(folder):
    assert "nowhere.py" in folder("run", "mine", "--load", "nowhere.py").refusal


def test_a_name_that_the_loaded_file_does_not_define_is_refused(folder, wording):
    refusal = folder("run", "mein", "--load", "loaded.py").refusal
    assert "'mein'" in refusal
    assert "'mine'" in refusal
    wording(re.sub(r"(\w+, ){4,}\w+( and \d+ more)?", "…", refusal), near="'mein'")


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_standard_output_holds_nothing_but_the_json_document(assay, isolation):
    assay.write("loaded.py", FILE)
    done = assay("run", "mine", "--load", "loaded.py", "--isolation", isolation, "--json")
    assert json.loads(done.out)["status"] == "completed"
    for text in ("printed by the file", "written to the descriptor", "printed by a process"):
        assert text in done.err


def test_what_a_loaded_file_prints_is_not_mixed_with_a_table(assay):
    assay.write("loaded.py", FILE)
    done = assay("run", "mine", "--load", "loaded.py", "--dry-run")
    assert done.code == 0
    assert "print" not in done.out
    printed = "printed by the file"
    assert printed in done.err
