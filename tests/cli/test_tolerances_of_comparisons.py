"""What is known of noise widens tolerances and holds claims back, and says so."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.command import AssayInline

from assay.execute.noise import Noise, PaceSummary

NOISY = """
import os, random
from assay import Experiment, register_experiment

@register_experiment("noisy")
class Noisy(Experiment):
    def __init__(self, parameters=None, level=1.0, spread=0.0):
        super().__init__(parameters or {"level": level, "spread": spread})

    def setup(self, context):
        # A process of its own has luck of its own, which nothing in it can average away.
        self.luck = 1 + self.params["spread"] * random.Random(os.getpid()).gauss(0, 1)

    def execute_once(self, context):
        steps = 1 + 0.001 * random.Random().random()
        return {"work_ms": 10 * self.params["level"] * self.luck * steps}
"""


@pytest.fixture
def project(assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch) -> AssayInline:
    """On a machine whose pace is always the same: a slower one would excuse what is slower."""
    even = Noise(spread=0.01, worst=1.1, cv=0.01, lost=0.0, chunks=60, seconds=0.06)
    monkeypatch.setattr("assay.execute.environment.probe", lambda seconds: even)
    steady = PaceSummary(samples=20, chunk_seconds=0.001, spread=0.01, lost=0.0)
    monkeypatch.setattr("assay.execute.noise.PaceSampler.summary", lambda self: steady)
    assay_inline.write("noisy.py", NOISY)
    return assay_inline


def run(project: AssayInline, command: str = "run", **params: float) -> dict[str, Any]:
    given = [f"--set={name}={value}" for name, value in params.items()]
    size = ["--processes=12"] if command == "run" else ["--repetitions=12"]
    done = project(command, "noisy.py::noisy", *given, *size, "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def compared(project: AssayInline, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The comparison of the metric, and the doubts by their codes."""
    found = project("compare", "@a", "last", "--metric", "work_ms", "--json", *options).json
    return found["comparisons"][0], {doubt["code"]: doubt for doubt in found["warnings"]}


def test_a_measured_noise_floor_becomes_the_tolerance_and_is_told(project: AssayInline) -> None:
    floors = run(project, "noise", spread=0.15)["floors"]
    floor = next(one for one in floors if one["metric"] == "work_ms")
    project("baseline", "set", "a", "last")
    run(project, spread=0.15)
    comparison, doubts = compared(project)
    assert comparison["tolerance"] == pytest.approx(2 * floor["noise_floor"])
    assert comparison["tolerance"] > 0.1
    assert "found a noise floor of" in doubts["noise-floor"]["message"]
    assert "noise-floor" not in compared(project, "--tolerance", "2%")[1]
    assert compared(project, "--tolerance", "2%")[0]["tolerance"] == 0.02


def test_a_difference_within_the_noise_floor_is_unsure_and_not_called_the_same(project: AssayInline) -> None:
    run(project, "noise", spread=0.15)
    quiet = NOISY.replace("random.Random(os.getpid()).gauss(0, 1)", "0")
    project.write("noisy.py", quiet)
    run(project, spread=0.15)
    project("baseline", "set", "a", "last")
    project.write("noisy.py", quiet.replace("10 *", "11 *"))
    run(project, spread=0.15)
    comparison, _ = compared(project)
    assert comparison["ratio"] == pytest.approx(1.1, abs=0.01)
    assert comparison["verdict"] == "unsure"
    assert "noise floor" in comparison["reason"]


def test_a_quiet_noise_floor_leaves_the_tolerance_as_it_is(project: AssayInline) -> None:
    run(project, "noise")
    project("baseline", "set", "a", "last")
    run(project)
    comparison, doubts = compared(project)
    assert comparison["tolerance"] == 0.03
    assert "noise-floor" not in doubts


def test_the_noise_of_another_point_is_nothing_to_go_by(project: AssayInline) -> None:
    run(project, "noise", spread=0.15)
    run(project, level=2.0)
    project("baseline", "set", "a", "last")
    run(project, level=2.0)
    assert compared(project)[0]["tolerance"] == 0.03


def test_times_of_two_runs_are_told_to_be_of_different_hours(project: AssayInline) -> None:
    run(project)
    project("baseline", "set", "a", "last")
    run(project, level=1.0)
    _, doubts = compared(project)
    assert " apart" in doubts["different-hours"]["message"]


def test_a_claim_that_runs_of_the_past_differ_by_anyway_is_unsure(project: AssayInline) -> None:
    """Seven runs that differ by some 20 %, each quite sure of itself."""
    levels = [1.0, 1.25, 0.95, 1.2, 1.0, 1.22, 0.98]
    for level in levels:
        project.write("noisy.py", NOISY.replace("10 *", f"{10 * level} *"))
        run(project)
    project("baseline", "set", "a", "last")
    project.write("noisy.py", NOISY.replace("10 *", "11.5 *"))
    run(project)
    comparison, _ = compared(project)
    assert comparison["verdict"] == "unsure"
    assert "noise floor" in comparison["reason"]
    assert compared(project, "--tolerance", "3%")[0]["verdict"] in ("worse", "unsure")


@pytest.mark.parametrize("is_known", [False, True])
def test_a_gate_goes_by_a_measured_noise_floor_too(project: AssayInline, is_known: bool) -> None:
    if is_known:
        run(project, "noise", spread=0.15)
    quiet = NOISY.replace("random.Random(os.getpid()).gauss(0, 1)", "0")
    project.write("noisy.py", quiet)
    run(project, spread=0.15)
    project("baseline", "set", "a", "last")
    project.write("noisy.py", quiet.replace("10 *", "11 *"))
    run(project, spread=0.15)
    done = project("gate", "last", "--baseline", "a", "--metric", "work_ms", "--json")
    found = json.loads(done.out)
    assert found["comparisons"][0]["verdict"] == ("unsure" if is_known else "worse")
    assert done.code == (0 if is_known else 1)
    assert ("noise-floor" in {doubt["code"] for doubt in found["warnings"]}) is is_known
