from __future__ import annotations

from pathlib import Path

import pytest

from assay.plugin.experiment import ExperimentContext


@pytest.fixture
def context(tmp_path: Path) -> ExperimentContext:
    return ExperimentContext("run-1", tmp_path, seed=1, iteration_index=3, phase="measured", process=2)
