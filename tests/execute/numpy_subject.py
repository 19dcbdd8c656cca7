"""An experiment whose module alone imports numpy."""

from __future__ import annotations

from typing import Any

import numpy

from assay import Experiment, ExperimentContext, register_experiment


@register_experiment("numpy_drawer")
class NumpyDrawer(Experiment):
    def __init__(self, arm: str = "a", parameters: dict[str, Any] | None = None) -> None:
        super().__init__(parameters)

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        return {"drawn": numpy.random.random()}
