"""A benchmark may run any experiment: then a suite tests code, beside agents or without any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.command import AssayInline
from tests.execute.running import Running
from tests.suites.project import QUICK, Stored, numbers
from tests.wording import Wording

CODE = """
import time
import pydantic
from assay import Experiment, register_experiment, benchmark

@register_experiment("echo")
class Echo(Experiment):
    class Params(pydantic.BaseModel):
        text: str = "x"
        times: int = 1
        fail: bool = False

    def execute_once(self, context):
        if self.params.fail:
            raise RuntimeError("asked to fail")
        until = time.process_time() + 0.01
        while time.process_time() < until: pass
        return {"length": len(self.params.text) * self.params.times, "output": self.params.text * self.params.times}

@benchmark(name="tiny")
def tiny():
    return None
"""
HOW = {"warmup": 0, "measured": 2}


@pytest.fixture
def assay(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("code.py", CODE)
    return assay_inline


def written(*benchmarks: dict[str, Any], **keys: Any) -> str:
    whole = [{"iterations": HOW, **benchmark} for benchmark in benchmarks]
    return json.dumps({"suite": "s", "load": "code.py", "benchmarks": whole, **keys})


def test_a_suite_of_code_runs_without_agents_and_is_rated_by_its_executions(
    assay: AssayInline, wording: Wording
) -> None:
    reference = {"seconds": 0.01, "cpu_seconds": 0.01}
    assay.write(
        "s.yaml",
        written({"id": "e", "experiment": "echo", "processes": 2, "rubric": {"reference": reference}}),
    )
    trial = assay("run", "s.yaml", "--json").json["trials"][0]
    ratings = {name: rating["value"] for name, rating in trial["ratings"].items()}
    assert trial["counts"] == {"ok": 4}
    assert trial["agent"]["name"] == "code"  # the code base that the experiment belongs to
    assert ratings["accuracy"] is None
    assert ratings["reliability"] == 1.0
    assert 0 < ratings["speed"] <= 0.51  # wall time, so a busy machine makes it lower
    assert ratings["efficiency"] == pytest.approx(0.5, abs=0.1)
    assert trial["unscored"] == 0
    assert (trial["processes"], trial["iterations"]["measured"]) == (2, 2)
    [told] = [line for line in assay("show", "last").out.splitlines() if line.startswith("e  ")]
    assert told.count("2 ") == 2
    wording(told)
    assert "code" in assay("leaderboard", "--json").out


def test_the_first_completed_run_of_code_is_its_own_reference(assay: AssayInline) -> None:
    assay.write("s.yaml", written({"id": "e", "experiment": "echo", "processes": 2}))
    first, second = (assay("run", "s.yaml", "--json").json for _ in range(2))
    speeds = [run["trials"][0]["ratings"]["speed"]["value"] for run in (first, second)]
    assert speeds[0] == pytest.approx(0.5)
    assert 0 < speeds[1] < 1
    references = assay("suite", "reference", "s", "--json").json["references"]
    assert {one["run_id"] for one in references if one["quantity"] == "seconds"} == {first["run_id"]}


def test_failing_code_costs_reliability_and_is_no_wrong_answer(assay: AssayInline) -> None:
    assay.write("s.yaml", written({"id": "e", "experiment": "echo", "params": {"fail": True}}))
    done = assay("run", "s.yaml", "--json")
    assert done.code == 1
    trial = json.loads(done.out)["trials"][0]
    assert trial["ratings"]["accuracy"]["value"] is None
    assert trial["ratings"]["reliability"]["value"] == 0.0


def test_the_input_of_a_case_is_laid_over_the_params_and_the_output_is_scored(assay: AssayInline) -> None:
    cases = [
        {"id": "right", "input": {"text": "a"}, "expected": "aa"},
        {"id": "wrong", "input": {"text": "b"}, "expected": "b"},
    ]
    assay.write(
        "s.yaml", written({"id": "e", "experiment": "code.py::echo", "params": {"times": 2}, "cases": cases})
    )
    trial = assay("run", "s.yaml", "--json").json["trials"][0]
    assert trial["ratings"]["accuracy"]["value"] == 0.5
    assert (trial["cases"], trial["solved"]) == (2, 1.0)
    stored = Stored(assay.folder)
    assert stored.metric("score") == {"right": 1.0, "wrong": 0.0}
    assert {one.case: one.output for one in stored.measured} == {"right": "aa", "wrong": "bb"}
    assert assay("rescore", "last", "-q").code == 0
    assert Stored(assay.folder).metric("score") == {"right": 1.0, "wrong": 0.0}
    assert (
        assay("show", "last", "--case", "wrong", "--json").json[0]["answers"][0]["executions"][0]["output"]
        == "bb"
    )


def test_agents_and_code_stand_in_one_suite(assay: AssayInline) -> None:
    assay.write(
        "s.yaml",
        written(
            {"id": "ask", "cases": numbers(2), "iterations": QUICK},
            {"id": "code", "experiment": "echo", "sweep": {"times": [1, 2]}},
            {"id": "function", "experiment": "tiny"},
            agents=[{"name": "one", "type": "oracle"}, {"name": "two", "type": "nop"}],
        ),
    )
    names = [trial["name"] for trial in assay("run", "s.yaml", "--json").json["trials"]]
    assert names == ["ask · one", "ask · two", "code[times=1]", "code[times=2]", "function"]
    assert assay("compare", "last", "last", "--json").code == 0
    assert assay("run", "s.yaml", "--agent", "one", "--case", "c0", "-q").code == 0
    assert list(Stored(assay.folder).by_trial) == [
        "ask · one"
    ]  # code without cases is none of the chosen ones


def test_a_suite_of_code_refuses_what_only_agents_could_heed(assay: AssayInline, wording: Wording) -> None:
    assay.write("s.yaml", written({"id": "e", "experiment": "echo"}))
    refusal = assay("run", "s.yaml", "--agent", "oracle").refusal
    assert "'oracle'" in refusal
    wording(refusal)
    refusal = assay("run", "s.yaml", "--set", "times=2").refusal
    assert "'params'" in refusal
    wording(refusal)


def test_another_param_is_another_definition(assay: AssayInline) -> None:
    hashes = []
    for times in (1, 2):
        assay.write("s.yaml", written({"id": "e", "experiment": "echo", "params": {"times": times}}))
        hashes.append(assay("suite", "show", "s.yaml", "--json").json["hash"])
    assert hashes[0] != hashes[1]


def test_a_killed_run_of_code_in_a_suite_resumes_without_repeating_work(tmp_path: Path) -> None:
    running = Running(tmp_path)
    (running.folder / "code.py").write_text(CODE)
    cases = [{"id": f"c{n}", "input": {"text": str(n)}, "expected": str(n)} for n in range(3)]
    how = {"warmup": 1, "measured": 20}
    suite = written({"id": "e", "experiment": "echo", "cases": cases, "processes": 2, "iterations": how})
    (running.folder / "s.yaml").write_text(suite)
    process = running.start("run", "s.yaml")
    while len(running.executions) < 30 and process.poll() is None:
        pass
    process.kill()
    process.communicate()
    before = len(running.executions)
    assert 0 < before < 126
    resumed = running("run", "--resume", "last")
    assert resumed.returncode == 0, resumed.stderr
    assert running.state == "completed"
    planned = sorted(
        (0, process, phase, repetition, "ok")
        for process in range(6)
        for phase, number in (("warmup", 1), ("measured", 20))
        for repetition in range(number)
    )
    assert sorted(running.executions) == planned
    trial = json.loads(resumed.stdout)["trials"][0]
    assert trial["ratings"]["accuracy"]["value"] == 1.0
