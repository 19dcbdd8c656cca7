from __future__ import annotations

from assay.plugin.experiment import Experiment, ExperimentContext


class Noop(Experiment):
    """Does nothing: what is measured is the harness itself."""

    def __init__(self) -> None:
        super().__init__()

    def execute_once(self, context: ExperimentContext) -> None:
        pass
