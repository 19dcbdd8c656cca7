from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest
from tests.command import AssayInline

from assay.plan.expand import expand
from assay.simulation.pragmas import PROFILES
from assay.simulator import SimOptions, SimServer
from assay.spec.read import load_spec

SPECS = sorted(Path(str(files("assay.builtin"))).glob("specs/*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_shipped_spec_can_be_planned(path: Path):
    experiments = {trial.experiment for trial in expand(load_spec(path)).trials}
    subject = path.stem.removesuffix("_baseline").removesuffix("_sweep").removesuffix("_comparison")
    assert len(experiments) > 1 or experiments.pop().startswith(subject)


def test_the_sweep_crosses_every_profile_with_every_workload():
    (path,) = [path for path in SPECS if path.stem == "pragma_profile_sweep"]
    points = {(trial.axes["profile"], trial.axes["workload"]) for trial in expand(load_spec(path)).trials}
    assert len(points) == 12
    assert {profile for profile, _ in points} == set(PROFILES)


def test_the_sweep_over_a_server_has_the_baseline_and_eighteen_other_points(
    assay_inline: AssayInline,
) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2), in_thread=True) as server:
        words = ["--set", f"url={server.url}", "--processes", "1", "--isolation", "inline"]
        done = assay_inline("run", "serving_sweep", *words, "--report", "serving", "--out", "out", "--json")

    trials = done.json["trials"]
    assert [trial["counts"] for trial in trials] == [{"ok": 1}] * 19
    assert [trial["parameters"]["profile"] for trial in trials] == ["baseline"] + ["chimera"] * 18
    assert len(list((assay_inline.folder / "out").glob("*/reports/comparison_report.md"))) == 18
