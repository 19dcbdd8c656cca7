from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from assay.builtin.experiments.pragma_profile import PROFILES
from assay.plan.expand import expand
from assay.spec.load import load_spec

SPECS = sorted(Path(str(files("assay.builtin"))).glob("specs/*.yaml"))


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_shipped_spec_can_be_planned(path: Path):
    assert path.stem.startswith(expand(load_spec(path)).trials[0].experiment)


def test_the_sweep_crosses_every_profile_with_every_workload():
    (path,) = [path for path in SPECS if path.stem == "pragma_profile_sweep"]
    points = {(trial.axes["profile"], trial.axes["workload"]) for trial in expand(load_spec(path)).trials}
    assert len(points) == 12
    assert {profile for profile, _ in points} == set(PROFILES)
