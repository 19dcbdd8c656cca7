"""Observations over a grid of agents, radii, ways to store them and ways to place resources."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from pydantic import BaseModel, Field, model_validator

from assay.builtin.experiments.observation_flow import FLOW_METRICS, measure_flow, read_settings
from assay.builtin.experiments.simulation_params import (
    STEADY,
    Count,
    Device,
    Radius,
    Several,
    world_config,
)
from assay.errors import PlanError
from assay.model import Metric
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.simulation.config import SimulationConfig
from assay.simulation.perception import Perception, Storage
from assay.simulation.world import World

Point = tuple[int, int, Storage, bool]
_READ = {
    "agent_counts": "num_agents",
    "radii": "radius",
    "storage_modes": "storage_mode",
    "use_bilinear_list": "use_bilinear",
}


class PerceptionMetricsParams(BaseModel):
    """The axes of the grid; one value instead of a list is fine, also as an axis of a sweep."""

    agent_counts: Several[Count] = Field(
        default=[100, 1000, 10000], min_length=1, description="Numbers of agents."
    )
    radii: Several[Radius] = Field(
        default=[5, 8, 10], min_length=1, description="Cells that an agent sees to each side."
    )
    storage_modes: Several[Storage] = Field(
        default=["hybrid", "dense"],
        min_length=1,
        description="How observations are kept: dense, sparse, hybrid.",
    )
    use_bilinear_list: Several[bool] = Field(
        default=[True, False], min_length=1, description="Whether resources are spread over four cells."
    )
    steps: Count = Field(default=10, description="Steps at each point of the grid.")
    device: Device = Field(default="cpu", description="Where observations are computed.")

    @model_validator(mode="after")
    def _check_worlds(self) -> PerceptionMetricsParams:
        """The largest numbers make the largest world."""
        agents, radius = max(self.agent_counts), max(self.radii)
        try:
            _size_world(agents, radius)
        except PlanError as error:
            raise ValueError(
                f"'agent_counts' {agents:,} with 'radii' {radius} need a world that is too large: {error}"
            ) from None
        return self

    def points(self) -> Iterator[Point]:
        return itertools.product(self.agent_counts, self.radii, self.storage_modes, self.use_bilinear_list)


class PerceptionMetrics(Experiment):
    """The figures of `observation_flow` at every point of a grid, in one execution.

    The world grows with the number of agents n and the radius R, its side is max(200, 2.5 · R · √n), so that agent density stays constant. A grid of one point, as in
    a sweep, has all figures; of more points each has `observes_per_sec` after its name, all figures are in the output `runs`, and those without a prefix
    are over all points.
    """

    Params = PerceptionMetricsParams
    workload_params: ClassVar[Sequence[str]] = ("agent_counts", "radii", "steps")
    metrics: ClassVar[Mapping[str, Metric]] = FLOW_METRICS

    params: PerceptionMetricsParams

    def execute_once(self, context: ExperimentContext) -> dict[str, Any]:
        points = list(self.params.points())
        # Points take turns as the first, so that drift of the machine does not always hit the same one.
        first = context.execution % len(points)
        flows: dict[Point, dict[str, Any]] = {}
        settings: dict[Point, dict[str, object]] = {}
        for point in points[first:] + points[:first]:
            perception = _build_perception(point, context.seed)
            settings[point] = read_settings(perception)
            flows[point] = measure_flow(perception, self.params.steps)
        for axis, setting in _READ.items():
            context.read_back(**{axis: list(dict.fromkeys(settings[point][setting] for point in points))})
        return flows[points[0]] if len(points) == 1 else _sum_up({point: flows[point] for point in points})


def _size_world(agents: int, radius: int, **others: Any) -> SimulationConfig:
    """PlanError where there is none so large."""
    side = max(200, round(2.5 * radius * agents**0.5))
    return world_config(side, side, agents, **others)


def _build_perception(point: Point, seed: int) -> Perception:
    agents, radius, storage, is_bilinear = point
    world = World(_size_world(agents, radius, seed=seed, **STEADY))
    return Perception(world, radius, None, storage, "bilinear" if is_bilinear else "nearest")


def _sum_up(flows: Mapping[Point, dict[str, Any]]) -> dict[str, Any]:
    seconds, observed = (
        sum(flow[name] for flow in flows.values()) for name in ("total_time_s", "total_observes")
    )
    names = ("agents", "R", "storage_mode", "use_bilinear")
    figures: dict[str, Any] = {
        "observes_per_sec": observed / seconds,
        "total_observes": observed,
        "total_time_s": seconds,
        "runs": [flow | dict(zip(names, point, strict=True)) for point, flow in flows.items()],
    }
    for point, flow in flows.items():
        figures[name_point(point)] = {"observes_per_sec": flow["observes_per_sec"]}
    return figures


def name_point(point: Point) -> str:
    """
    >>> name_point((100, 5, "hybrid", True))
    'agents_100.radius_5.hybrid.bilinear'
    """
    agents, radius, storage, is_bilinear = point
    return f"agents_{agents}.radius_{radius}.{storage}.{'bilinear' if is_bilinear else 'nearest'}"
