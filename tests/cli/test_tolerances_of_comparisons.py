"""What is known of noise widens tolerances and holds claims back, and says so."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from tests.command import AssayInline, Prepare
from tests.wording import Wording

from assay.execute.noise import Noise, PaceSummary
from assay.units import percent

NOISY = """
import random
from pathlib import Path
from assay import Experiment, register_experiment

LUCK = (1.1, -0.5, -1.0, 0.8, 0.6, -1.0)

@register_experiment("noisy")
class Noisy(Experiment):
    def __init__(self, parameters=None, level=1.0, spread=0.0):
        super().__init__(parameters or {"level": level, "spread": spread})

    def setup(self, context):
        # A process of its own has luck of its own, which nothing in it can average away.
        with Path(__file__).with_name("processes").open("a") as processes:
            number = processes.tell()
            processes.write("x")
        self.luck = 1 + self.params["spread"] * LUCK[number % len(LUCK)]

    def execute_once(self, context):
        steps = 1 + 0.001 * random.Random().random()
        return {"work_ms": 10 * self.params["level"] * self.luck * steps}
"""
QUIET = NOISY.replace("LUCK[number % len(LUCK)]", "0")


@pytest.fixture
def project(assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch) -> AssayInline:
    """On a machine whose pace is always the same: a slower one would excuse what is slower."""
    even = Noise(spread=0.01, worst=1.1, cv=0.01, lost=0.0, chunks=60, seconds=0.06)
    monkeypatch.setattr("assay.execute.environment.probe", lambda seconds: even)
    steady = PaceSummary(samples=20, chunk_seconds=0.001, spread=0.01, lost=0.0)
    monkeypatch.setattr("assay.execute.noise.PaceSampler.summary", lambda self: steady)
    assay_inline.write("noisy.py", NOISY)
    return assay_inline


def run(project: AssayInline, command: str = "run", processes: int = 6, **params: float) -> dict[str, Any]:
    given = [f"--set={name}={value}" for name, value in params.items()]
    size = "--processes" if command == "run" else "--repetitions"
    done = project(command, "noisy.py::noisy", *given, f"{size}={processes}", "--json")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def compared(project: AssayInline, *options: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The comparison of the metric, and the doubts by their codes."""
    found = project("compare", "@a", "last", "--metric", "work_ms", "--json", *options).json
    return found["comparisons"][0], {doubt["code"]: doubt for doubt in found["warnings"]}


def change(project: AssayInline) -> None:
    """A baseline `a` without noise, and a run that is a tenth slower."""
    project.write("noisy.py", QUIET)
    run(project, spread=0.15)
    project("baseline", "set", "a", "last")
    project.write("noisy.py", QUIET.replace("10 *", "11 *"))
    run(project, spread=0.15)


def change_after_noise(project: AssayInline) -> None:
    """The same where the noise had been measured before, when there was much of it."""
    noise = run(project, "noise", spread=0.15)
    project.write("noise.json", json.dumps(noise))
    change(project)


def test_a_measured_noise_floor_becomes_the_tolerance_and_is_reported(
    project: AssayInline, prepare: Prepare
) -> None:
    prepare(project, change_after_noise)
    noise = json.loads((project.folder / "noise.json").read_text())
    floor = next(one for one in noise["floors"] if one["metric"] == "work_ms")
    project("baseline", "set", "a", noise["run_id"])
    comparison, doubts = compared(project)
    assert comparison["tolerance"] == pytest.approx(2 * floor["noise_floor"])
    assert comparison["tolerance"] > 0.1
    told = doubts["noise-floor"]["message"]
    assert told.startswith("work_ms: ")
    assert percent(floor["noise_floor"]) in told
    assert percent(comparison["tolerance"]) in told
    assert "noise-floor" not in compared(project, "--tolerance", "2%")[1]
    assert compared(project, "--tolerance", "2%")[0]["tolerance"] == 0.02


def test_a_difference_within_the_noise_floor_is_unsure_and_not_called_the_same(
    project: AssayInline, prepare: Prepare, wording: Wording
) -> None:
    prepare(project, change_after_noise)
    comparison, _ = compared(project)
    assert comparison["ratio"] == pytest.approx(1.1, abs=0.01)
    assert comparison["verdict"] == "unsure"
    assert percent(comparison["tolerance"] / 2) in comparison["reason"]
    wording(comparison["reason"], numbers=False)


def test_a_quiet_noise_floor_leaves_the_tolerance_as_it_is(project: AssayInline) -> None:
    run(project, "noise")
    project("baseline", "set", "a", "last")
    run(project)
    comparison, doubts = compared(project)
    assert comparison["tolerance"] == 0.03
    assert "noise-floor" not in doubts


def test_the_noise_of_another_point_is_nothing_to_go_by(project: AssayInline, prepare: Prepare) -> None:
    prepare(project, change_after_noise)
    run(project, level=2.0)
    project("baseline", "set", "a", "last")
    run(project, level=2.0)
    assert compared(project)[0]["tolerance"] == 0.03


def test_times_of_two_runs_are_told_to_be_of_different_hours(project: AssayInline, prepare: Prepare) -> None:
    prepare(project, change)
    runs = [project("show", ref, "--json").json["run_id"] for ref in ("@a", "last")]
    _, doubts = compared(project)
    assert all(run_id in doubts["different-hours"]["message"] for run_id in runs)


def test_a_claim_that_runs_of_the_past_differ_by_anyway_is_unsure(
    project: AssayInline, wording: Wording
) -> None:
    """Seven runs that differ by some 20 %, each quite sure of itself."""
    levels = [1.0, 1.25, 0.95, 1.2, 1.0, 1.22, 0.98]
    for level in levels:
        project.write("noisy.py", NOISY.replace("10 *", f"{10 * level} *"))
        run(project, processes=6 if level == levels[-1] else 4)
    project("baseline", "set", "a", "last")
    project.write("noisy.py", NOISY.replace("10 *", "11.5 *"))
    run(project)
    comparison, _ = compared(project)
    assert comparison["verdict"] == "unsure"
    assert re.search(r"\d %", comparison["reason"])
    wording(comparison["reason"], numbers=False)
    assert compared(project, "--tolerance", "3%")[0]["verdict"] in ("worse", "unsure")


@pytest.mark.parametrize("is_known", [False, True])
def test_a_gate_goes_by_a_measured_noise_floor_too(
    project: AssayInline, prepare: Prepare, is_known: bool
) -> None:
    prepare(project, change_after_noise if is_known else change)
    done = project("gate", "last", "--baseline", "a", "--metric", "work_ms", "--json")
    found = json.loads(done.out)
    assert found["comparisons"][0]["verdict"] == ("unsure" if is_known else "worse")
    assert done.code == (0 if is_known else 1)
    assert ("noise-floor" in {doubt["code"] for doubt in found["warnings"]}) is is_known
