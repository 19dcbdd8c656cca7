"""An experiment that imports numpy only in its setup."""

from __future__ import annotations

from typing import Any

from assay import Experiment, ExperimentContext, register_experiment


@register_experiment("late_numpy_drawer")
class LateNumpyDrawer(Experiment):
    def __init__(self, arm: str = "a", parameters: dict[str, Any] | None = None) -> None:
        super().__init__(parameters)

    def setup(self, context: ExperimentContext) -> None:
        import numpy

        self.draw = numpy.random.random

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        return {"drawn": self.draw()}
