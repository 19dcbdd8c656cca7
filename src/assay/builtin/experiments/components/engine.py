"""`computational_engine`: what several processes gain on work that keeps a core busy."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from typing import Any, ClassVar

from pydantic import BaseModel, Field

from assay.builtin.experiments.components.scales import COMMON
from assay.builtin.experiments.components.subject import time_call
from assay.model import AgentUse, Better, Metric, describe_metrics
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.units import format_count

_POOLS = "engine pools"


class EngineParams(BaseModel):
    """The work, and the processes that share it."""

    workers: int = Field(default=2, ge=2, le=256, description="Processes that share the work.")
    tasks: int = Field(default=8, ge=1, le=100_000, description="Tasks of one execution.")
    steps: int = Field(
        default=20_000, ge=10, le=10_000_000, description="Steps of the trajectory in each task."
    )


def compute_returns(seed: int, steps: int, discount: float = 0.99, smoothing: float = 0.95) -> float:
    """Generalised advantage estimates of a made trajectory (Schulman et al. 2016), in plain Python: their sum of squares."""
    chance = Random(seed)
    rewards = [chance.random() for _ in range(steps)]
    values = [math.sin(step) for step in range(steps + 1)]
    advantage = total = 0.0
    for step in reversed(range(steps)):
        surprise = rewards[step] + discount * values[step + 1] - values[step]
        advantage = surprise + discount * smoothing * advantage
        total += advantage * advantage
    return total


class ComputationalEngine(Experiment):
    """The same tasks in one process and in several, in an order that changes; `speedup` of two processes is at best 2."""

    Params: ClassVar[Any] = EngineParams
    workload_params: ClassVar[Any] = ("tasks", "steps")
    findings: ClassVar[Any] = ("grades",)
    grades: ClassVar[Any] = COMMON
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("speedup", "", Better.HIGHER), efficiency="higher"
    )
    params: EngineParams

    @staticmethod
    def params_of(use: AgentUse) -> None:
        """No agent has a part in it."""

    def setup(self, context: ExperimentContext) -> None:
        """Processes start here and do a task each, so that no execution pays for it."""
        spawn = get_context("spawn")
        sizes = (1, self.params.workers)
        context.extras[_POOLS] = self._pools = [ProcessPoolExecutor(size, mp_context=spawn) for size in sizes]
        for pool, size in zip(self._pools, sizes, strict=True):
            list(pool.map(compute_returns, range(size), [100] * size))
        cores = len(os.sched_getaffinity(0))
        if cores < self.params.workers:
            context.remark(f"{self.params.workers} processes share {format_count(cores, 'core')}.")

    def execute_once(self, context: ExperimentContext) -> Mapping[str, float]:
        order = self._pools if context.execution % 2 else self._pools[::-1]
        times = {id(pool): time_call(self._run, pool) for pool in order}
        (alone, expected), (together, found) = (times[id(pool)] for pool in self._pools)
        if found != expected:
            raise ArithmeticError("Several processes computed a different result than one process.")
        return {
            "alone_seconds": alone,
            "together_seconds": together,
            "tasks_per_second": self.params.tasks / together,
            "speedup": alone / together,
            "efficiency": alone / together / self.params.workers,
        }

    def _run(self, pool: ProcessPoolExecutor) -> list[float]:
        count = self.params.tasks
        return list(pool.map(compute_returns, range(count), [self.params.steps] * count))

    @staticmethod
    def teardown(context: ExperimentContext) -> None:
        for pool in context.extras.pop(_POOLS, ()):
            pool.shutdown()
