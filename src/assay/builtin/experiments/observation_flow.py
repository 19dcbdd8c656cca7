"""How many observations a second the world gives its agents, and what storing them costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from assay.builtin.experiments.simulation_params import STEADY, Count, Device, Radius, WorldParams
from assay.model import Better, Kind, Metric, describe_metrics
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.simulation.perception import CHANNELS, Observation, Perception, Storage
from assay.simulation.world import Array, World

BATCH = 500
"""Agents that are observed at once; more would need hundreds of megabytes with a large radius."""
READS = 2
"""How often each observation is read as an array, as an agent that decides and a learner that stores it would."""

FLOW_METRICS: Mapping[str, Metric] = describe_metrics(
    Metric("observes_per_sec", "1/s", Better.HIGHER),
    Metric("total_observes"),
    Metric("total_time_s", "s", Better.LOWER),
    Metric("mean_step_time_s", "s", Better.LOWER),
    Metric("p95_step_time_s", "s", Better.LOWER),
    Metric("steps"),
    Metric("num_agents"),
    Metric("obs_dense_bytes", "bytes", Better.UNKNOWN, Kind.DERIVED),
    Metric("obs_sparse_bytes", "bytes", Better.LOWER),
    Metric("obs_memory_reduction_percent", "%", Better.HIGHER, Kind.DERIVED),
    Metric("obs_cache_hit_rate", "", Better.HIGHER),
    Metric("obs_dense_rebuilds", "", Better.LOWER),
    Metric("obs_dense_rebuild_time_s_total", "s", Better.LOWER),
    Metric("gflops_observation_est", "", Better.HIGHER, Kind.DERIVED),
    Metric("perception_profile.spatial_query_time_s", "s", Better.LOWER),
    Metric("perception_profile.bilinear_time_s", "s", Better.LOWER),
    Metric("perception_profile.nearest_time_s", "s", Better.LOWER),
    Metric("perception_profile.bilinear_points"),
    Metric("perception_profile.nearest_points"),
)
FLOW_FACTS = ("channels",)


class ObservationFlowParams(WorldParams):
    """A world, and what its agents see of it."""

    num_agents: int = Field(default=200, description="Agents, a third of each kind; at most one per cell.")
    steps: Count = Field(default=100, description="Steps; in each, every agent is given an observation.")
    radius: Radius = Field(default=6, description="Cells that an agent sees to each side.")
    fov_radius: Radius | None = Field(
        default=None, description="Distance beyond which nothing is seen. Default: the radius."
    )
    storage_mode: Storage = Field(default="hybrid", description="How observations are kept in memory.")
    use_bilinear: bool = Field(
        default=True, description="Spread resources over four cells; otherwise they are in their own."
    )
    device: Device = Field(default="cpu", description="Where observations are computed.")


class ObservationFlow(Experiment):
    """Observations of all agents, step after step; the world moves on between two steps.

    Only observing is in `total_time_s` and the rates: looking around, storing, and reading each observation twice as an array. The time of a whole
    execution, `seconds`, also has the steps of the world. Every execution begins with a new world of the same seed and one round of observations
    that is not counted.
    """

    Params = ObservationFlowParams
    workload_params: ClassVar[Sequence[str]] = (
        "width",
        "height",
        "num_agents",
        "initial_resources",
        "steps",
        "radius",
        "fov_radius",
    )
    facts: ClassVar[Sequence[str]] = FLOW_FACTS
    metrics: ClassVar[Mapping[str, Metric]] = FLOW_METRICS

    params: ObservationFlowParams

    def execute_once(self, context: ExperimentContext) -> dict[str, Any]:
        params = self.params
        world = World(params.world_config(seed=context.seed, **STEADY))
        perception = Perception(
            world,
            params.radius,
            params.fov_radius,
            params.storage_mode,
            "bilinear" if params.use_bilinear else "nearest",
        )
        context.read_back(**read_settings(perception))
        flow = measure_flow(perception, params.steps)
        context.read_back(steps=perception.world.number)
        return flow


def read_settings(perception: Perception) -> dict[str, object]:
    """How a perception really observes, told by one observation of all agents: its shape, what is visible in it, what it keeps, and
    how resources were placed, which nothing tells in a world without any.
    """
    before = perception.profile.bilinear_points
    observed = perception.observe()
    has_resources = len(perception.world.resources) > 0
    is_whole = observed.stored_bytes == observed.dense().nbytes
    kept = "hybrid" if observed.dense() is observed.dense() else "sparse"
    agents, _, side, _ = observed.dense().shape
    return {
        "num_agents": agents,
        "radius": side // 2,
        "fov_radius": _find_fov_radius(observed.dense()[0, CHANNELS.index("visibility")]),
        "storage_mode": "dense" if is_whole else kept,
        "use_bilinear": perception.profile.bilinear_points > before if has_resources else None,
        "channels": len(CHANNELS),
    }


def _find_fov_radius(visible: Array) -> int | None:
    """The least whole distance that has all visible cells; None where the whole window is visible, which then is the limit."""
    if visible.all():
        return None
    away = np.argwhere(visible) - len(visible) // 2
    return math.ceil(math.sqrt((away**2).sum(axis=1).max()))


def measure_flow(perception: Perception, steps: int) -> dict[str, Any]:
    """The figures of so many steps, by the names of `FLOW_METRICS`."""
    world = perception.world
    _observe_all(perception)
    perception.profile = type(perception.profile)()
    times = []
    for _ in range(steps):
        world.step()
        began = perf_counter()
        _observe_all(perception)
        times.append(perf_counter() - began)
    return _compute_flow(perception, times)


def _observe_all(perception: Perception) -> None:
    agents = len(perception.world.agents)
    for first in range(0, agents, BATCH):
        observed: Observation = perception.observe(np.arange(first, min(first + BATCH, agents)))
        for _ in range(READS):
            observed.dense()


def _compute_flow(perception: Perception, times: list[float]) -> dict[str, Any]:
    profile, seconds = perception.profile, sum(times)
    dense = len(CHANNELS) * perception.side**2 * 4
    stored = profile.stored_bytes / profile.observations
    looked = profile.hits + profile.misses
    operations = 2 * len(CHANNELS) * perception.side**2 * profile.rebuilds
    return {
        "observes_per_sec": profile.observations / seconds,
        "total_observes": profile.observations,
        "total_time_s": seconds,
        "mean_step_time_s": seconds / len(times),
        "p95_step_time_s": float(np.percentile(times, 95)),
        "steps": len(times),
        "num_agents": profile.observations // len(times),
        "obs_dense_bytes": dense,
        "obs_sparse_bytes": stored,
        "obs_memory_reduction_percent": 100 * (1 - stored / dense),
        "obs_cache_hit_rate": profile.hits / looked if looked else 1.0,
        "obs_dense_rebuilds": profile.rebuilds,
        "obs_dense_rebuild_time_s_total": profile.rebuild_seconds,
        "gflops_observation_est": operations / 1e9 / seconds,
        "perception_profile": {
            "spatial_query_time_s": profile.spatial_query_seconds,
            "bilinear_time_s": profile.bilinear_seconds,
            "nearest_time_s": profile.nearest_seconds,
            "bilinear_points": profile.bilinear_points,
            "nearest_points": profile.nearest_points,
        },
    }
