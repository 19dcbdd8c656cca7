"""Runs of two arms that end as soon as it is decided which is better."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.command import COMMAND, Assay, AssayInline, environment
from tests.suites.project import Stored, numbers, python_agent, suite
from tests.wording import Wording

from assay.model import RunState

AGENTS = """
import os, time

def right(text): return text
def wrong(text): return "?"
def often(text): return text if int(text) % 10 else "?"

asked = 0
def held(text):
    "Wrong; and in the second block it waits, until the test has done to the run what it wanted to."
    folder = os.path.dirname(__file__)
    with open(os.path.join(folder, "asked"), "a") as file: file.write(text + "\\n")
    with open(os.path.join(folder, "asked")) as file: number = len(file.readlines())
    while number == 7 and not os.path.exists(os.path.join(folder, "go")): time.sleep(0.02)
    return "?"

def broken(text):
    if int(text) % 3: raise ValueError("no")
    return text
"""
CASES = 60


@pytest.fixture
def project(assay_inline: AssayInline) -> AssayInline:
    assay_inline.write("agents.py", AGENTS)
    return assay_inline


def write(assay: Assay | AssayInline, *agents: str, cases: int = CASES, **keys: Any) -> None:
    made = [python_agent(agent) for agent in agents]
    assay.write("s.yaml", suite(numbers(cases), made, **{"until": {"decided": "score"}, "seed": 7, **keys}))


def asked(stored: Stored) -> list[set[str]]:
    return [{one.case for one in executions} for executions in stored.by_trial.values()]


def test_a_run_ends_as_soon_as_it_is_decided_which_agent_is_better(
    project: AssayInline, wording: Wording
) -> None:
    write(project, "wrong", "right")
    result = project("run", "s.yaml", COLUMNS="200")
    stored = Stored(project.folder)
    question = stored.run.question
    assert question is not None
    assert question.ruling is not None
    assert (result.code, stored.run.state) == (0, RunState.COMPLETED)
    assert (question.arms, question.ruling.decision, question.max) == (("wrong", "right"), "higher", CASES)
    assert 10 <= question.ruling.pairs < CASES
    first, second = asked(stored)
    assert first == second
    assert len(first) == question.ruling.pairs == len(stored.run.trials[0].trial.cases)
    summary = project("show", "last", "--json").json["question"]["summary"]
    assert summary in result.out
    assert summary.index("right") < summary.index("wrong") < summary.index("score")
    wording(summary)


def test_the_cases_that_are_asked_are_drawn_and_not_the_first_ones(project: AssayInline) -> None:
    write(project, "wrong", "right")
    project("run", "s.yaml")
    first, _ = asked(Stored(project.folder))
    assert first != {f"c{number}" for number in range(len(first))}


def test_agents_that_are_too_alike_stay_undecided_and_all_cases_are_asked(
    project: AssayInline, wording: Wording
) -> None:
    write(project, "right", "often", cases=30)
    result = project("run", "s.yaml", "--json")
    question = result.json["question"]
    assert question["ruling"]["decision"] == "open"
    assert question["verdict"] == "unsure"
    assert question["ruling"]["low"] <= question["ruling"]["effect"] <= question["ruling"]["high"]
    assert question["summary"].count("30 ") == 2
    wording(question["summary"])
    assert [len(cases) for cases in asked(Stored(project.folder))] == [30, 30]


def test_a_wider_tolerance_and_fewer_pairs_can_be_asked_for_on_the_command_line(project: AssayInline) -> None:
    write(project, "right", "often", until=None)
    result = project(
        "run", "s.yaml", "--until-decided", "score", "--tolerance", "30%", "--max-pairs", "50", "--json"
    )
    question = result.json["question"]
    assert (question["tolerance"], question["max"], question["verdict"]) == (0.3, 50, "same")


def test_an_agent_that_fails_has_the_score_0(project: AssayInline) -> None:
    write(project, "right", "broken")
    result = project("run", "s.yaml", "--json")
    assert result.json["question"]["verdict"] == "worse"


def test_an_unknown_metric_ends_the_run_after_the_first_pairs_and_the_known_ones_are_named(
    project: AssayInline, wording: Wording
) -> None:
    write(project, "right", "wrong", until={"decided": "secnds"})
    result = project("run", "s.yaml", "--json")
    summary = result.json["question"]["summary"]
    assert "'secnds'" in summary
    assert "seconds" in summary
    wording(summary)
    assert [len(cases) for cases in asked(Stored(project.folder))] == [10, 10]


@pytest.mark.parametrize("format_", ["md", "html", "json"])
def test_every_document_tells_how_it_was_decided(project: AssayInline, format_: str) -> None:
    write(project, "wrong", "right")
    summary = project("run", "s.yaml", "--json").json["question"]["summary"]
    project("report", "last", "--format", format_, "--out", "r")
    files = [file.read_text(encoding="utf-8") for file in (project.folder / "r").glob(f"*.{format_}")]
    assert any(summary in text.replace("\\", "") for text in files)


def test_a_comparison_says_that_the_run_had_ended_when_it_was_decided(project: AssayInline) -> None:
    write(project, "wrong", "right")
    project("run", "s.yaml")
    result = project("compare", "wrong", "right", "--json")
    assert "ended-when-decided" in {doubt["code"] for doubt in result.json["warnings"]}


def test_a_run_that_stayed_undecided_is_not_said_to_have_ended_when_decided(project: AssayInline) -> None:
    write(project, "right", "often")
    run = project("run", "s.yaml", "--json").json
    assert run["question"]["verdict"] == "unsure"
    assert run["question"]["ruling"]["decision"] == "open"
    for shown in (project("show", "last", "--json"), project("compare", "right", "often", "--json")):
        assert "ended-when-decided" not in {doubt["code"] for doubt in shown.json["warnings"]}


def test_a_decided_run_that_is_resumed_asks_nobody_anything(project: AssayInline) -> None:
    write(project, "wrong", "right")
    project("run", "s.yaml")
    before = Stored(project.folder)
    assert project("run", "--resume", "last").code == 0
    after = Stored(project.folder)
    assert after.run.question == before.run.question
    assert len(after.all) == len(before.all)


@pytest.mark.parametrize(
    ("agents", "keys", "told"),
    [
        (("right",), {}, "1"),
        (("right", "wrong", "often"), {}, "3"),
        (("right", "wrong"), {"cases": 9}, "10 9"),
        (("right", "wrong"), {"order": "sequential"}, "order: sequential"),
        (("right", "wrong"), {"until": {"decided": "accuracy"}}, "decided: score"),
        (("right", "wrong"), {"until": {"max": 20}}, "decided"),
        (("right", "wrong"), {"until": {"decided": "score", "max": 5}}, "10"),
    ],
    ids=["one", "three", "cases", "order", "rating", "nothing", "max"],
)
def test_what_cannot_be_decided_is_refused_before_anything_runs(
    project: AssayInline, wording: Wording, agents: tuple[str, ...], keys: dict[str, Any], told: str
) -> None:
    write(project, *agents, **keys)
    result = project("run", "s.yaml")
    assert result.code == 2
    place, _, problem = result.err.partition("until")
    assert "s.yaml:1: " in place
    assert set(re.findall(r"\w+", told)) <= set(re.findall(r"\w+", problem))
    wording(result.err)


def test_a_run_that_was_killed_is_decided_as_it_would_have_been(assay: Assay) -> None:
    assay.write("agents.py", AGENTS)
    write(assay, "right", "held")
    process = subprocess.Popen(
        [COMMAND, "run", "s.yaml", "-q"],
        cwd=assay.folder,
        env=environment({}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    log = assay.folder / "asked"
    _wait(lambda: log.exists() and len(_lines(log)) == 7)
    # What was answered before is stored by then: the runner does so while it waits.
    _wait(lambda: len(Stored(assay.folder).by_trial["b · held"]) >= 5)
    process.kill()
    process.wait()
    kept = {(one.trial, one.case) for one in Stored(assay.folder).all}
    (assay.folder / "go").touch()
    assert assay("run", "--resume", "last", "-q").code == 0
    stored = Stored(assay.folder)
    assert stored.run.question is not None
    assert stored.run.question.ruling is not None
    assert stored.run.question.ruling.decision == "lower"
    assert len(stored.all) == len({(one.trial, one.case) for one in stored.all})
    assert kept <= {(one.trial, one.case) for one in stored.all}
    first, second = asked(stored)
    assert first == second
    whole = assay("run", "s.yaml", "--json").json
    assert whole["question"]["ruling"]["pairs"] == stored.run.question.ruling.pairs


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def _wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.02)


POINTS = """
from assay import Experiment, register_experiment

@register_experiment("points")
class Points(Experiment):
    def __init__(self, parameters=None, size=1.0):
        super().__init__(parameters or {"size": size})

    def execute_once(self, context):
        self.number = getattr(self, "number", 0) + 1
        return {"points_per_sec": self.params["size"] * (1 + 0.01 * ((context.seed + self.number) % 3))}
"""


def spec(project: AssayInline, **keys: Any) -> None:
    import json

    project.write("points.py", POINTS)
    defaults = {
        "experiment": "points",
        "load": "points.py",
        "sweep": {"size": [1.0, 1.3]},
        "iterations": {"measured": 3},
        "until": {"decided": "points_per_sec", "max": 20},
        "seed": 1,
    }
    project.write("spec.yaml", json.dumps({**defaults, **keys}))


def test_two_points_of_a_sweep_are_decided_by_pairs_of_processes(project: AssayInline) -> None:
    spec(project)
    result = project("run", "spec.yaml", "--json")
    question = result.json["question"]
    assert question["arms"] == ["points[size=1.0]", "points[size=1.3]"]
    assert (question["verdict"], question["ruling"]["pairs"], question["max"]) == ("better", 10, 20)
    assert question["ruling"]["effect"] == pytest.approx(1.3)
    assert [trial["processes"] for trial in result.json["trials"]] == [10, 10]
    assert [trial["counts"] for trial in result.json["trials"]] == [{"ok": 30}, {"ok": 30}]


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"sweep": {"size": [1.0, 2.0, 3.0]}}, "3"),
        ({"isolation": "cold"}, "isolation: process"),
        ({"iterations": {"measured": "auto"}}, "measured: auto"),
        ({"processes": 30}, "max processes"),
    ],
    ids=["sweep", "isolation", "iterations", "processes"],
)
def test_what_cannot_be_paired_is_refused_with_the_line(
    project: AssayInline, wording: Wording, keys: dict[str, Any], told: str
) -> None:
    spec(project, **keys)
    result = project("run", "spec.yaml")
    assert result.code == 2
    place, _, problem = result.err.partition("until")
    assert "spec.yaml:1" in place
    assert set(re.findall(r"\w+", told)) <= set(re.findall(r"\w+", problem))
    wording(result.err)
