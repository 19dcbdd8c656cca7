"""Experiments whose outcome is known before: the contracts of executors and experiments run them in real workers."""

from __future__ import annotations

import time

from assay.model import Better, Metric
from assay.plugin.experiment import Experiment, ExperimentContext


class Steady(Experiment):
    """Counts its executions."""

    metrics = {"count": Metric("count", better=Better.HIGHER)}  # noqa: RUF012 (read only, like in any experiment)

    def __init__(self) -> None:
        super().__init__()

    def setup(self, context: ExperimentContext) -> None:
        self._count = 0

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        self._count += 1
        return {"count": self._count}


class Failing(Experiment):
    """Raises in every execution."""

    def __init__(self) -> None:
        super().__init__()

    def execute_once(self, context: ExperimentContext) -> None:
        raise RuntimeError("This experiment always fails.")


class Costly(Experiment):
    """Says that it has used ten tokens."""

    metrics = {"tokens": Metric("tokens", better=Better.LOWER)}  # noqa: RUF012 (read only, like in any experiment)

    def __init__(self) -> None:
        super().__init__()

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        return {"tokens": 10.0}


class Endless(Experiment):
    """Takes far longer than a test would wait."""

    def __init__(self) -> None:
        super().__init__()

    def execute_once(self, context: ExperimentContext) -> None:
        time.sleep(60)
