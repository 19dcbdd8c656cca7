"""Where the time of an observation goes, and how it grows with the number of agents and with the radius."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, model_validator

from assay.builtin.experiments.observation_flow import FLOW_FACTS, measure_flow, read_settings
from assay.builtin.experiments.simulation_params import (
    STEADY,
    Count,
    Device,
    Radius,
    Several,
    WorldParams,
    world_config,
)
from assay.model import Better, Kind, Metric
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.simulation.perception import Perception, Storage
from assay.simulation.world import Array, World

_LOOKUPS = 20


class ObservationProfilerParams(WorldParams):
    """What is varied, one at a time, around a world with `num_agents` and a `radius`."""

    agent_counts: Several[Count] = Field(
        default=[10, 50, 100, 200], min_length=2, description="Numbers of agents, at the given radius."
    )
    radii: Several[Radius] = Field(
        default=[3, 5, 10, 15, 20], min_length=2, description="Radii, with the given number of agents."
    )
    radius: Radius = Field(default=6, description="The radius while the number of agents varies.")
    steps: Count = Field(default=20, description="Steps at each point.")
    storage_mode: Storage = Field(default="dense", description="How observations are kept in memory.")
    use_bilinear: bool = Field(default=True, description="Spread resources over four cells.")
    device: Device = Field(default="cpu", description="Where observations are computed.")

    @model_validator(mode="after")
    def _check_counts(self) -> ObservationProfilerParams:
        """All in one world: in a larger one agents would see less of each other, which is no growth."""
        cells, most = self.width * self.height, max(self.agent_counts)
        if most > cells:
            raise ValueError(
                f"'agent_counts' has {most:,}, but the world has {cells:,} cells, and each holds at most one agent. Increase width and height."
            )
        return self


class ObservationProfiler(Experiment):
    """The cost of observations against agents and radius, the parts of it, and the two ways to find what is near.

    `agents_exponent` is the power of the number of agents by which the time of a step grows, beside a fixed cost: 1 is linear. It has a 95 %
    interval, and needs three numbers of agents; `radius_exponent` is the same for radii. `lookup` compares a look into the grid with a
    comparison of every agent with every resource; both must find the same before they are timed. `share` splits the time at `num_agents` and `radius`.
    """

    Params = ObservationProfilerParams
    workload_params: ClassVar[Sequence[str]] = (
        "width",
        "height",
        "num_agents",
        "initial_resources",
        "agent_counts",
        "radii",
        "radius",
        "steps",
    )
    facts: ClassVar[Sequence[str]] = FLOW_FACTS
    metrics: ClassVar[Mapping[str, Metric]] = {
        "observes_per_sec": Metric("observes_per_sec", "1/s", Better.HIGHER),
        **{
            f"{axis}_exponent": Metric(f"{axis}_exponent", "", Better.LOWER, Kind.DERIVED)
            for axis in ("agents", "radius")
        },
        **{
            f"{axis}_exponent_{end}": Metric(f"{axis}_exponent_{end}", "", Better.UNKNOWN, Kind.DERIVED)
            for axis in ("agents", "radius")
            for end in ("low", "high")
        },
        "lookup.grid_seconds": Metric("lookup.grid_seconds", "s", Better.LOWER),
        "lookup.search_seconds": Metric("lookup.search_seconds", "s", Better.LOWER),
        "lookup.grid_speedup": Metric("lookup.grid_speedup", "", Better.HIGHER, Kind.DERIVED),
        **{
            f"share.{part}_percent": Metric(f"share.{part}_percent", "%", Better.UNKNOWN, Kind.DERIVED)
            for part in ("spatial_query", "bilinear", "nearest", "rebuild", "rest")
        },
    }

    params: ObservationProfilerParams

    def execute_once(self, context: ExperimentContext) -> dict[str, Any]:
        params = self.params
        base = self._perceive(params.num_agents, params.radius, context.seed)
        context.read_back(**read_settings(base))
        flow = measure_flow(base, params.steps)
        by_agents = {
            count: measure_flow(self._perceive(count, params.radius, context.seed), params.steps)
            for count in params.agent_counts
        }
        by_radius = {
            radius: measure_flow(self._perceive(params.num_agents, radius, context.seed), params.steps)
            for radius in params.radii
        }
        return {
            "observes_per_sec": flow["observes_per_sec"],
            **_fit_exponent("agents", by_agents),
            **_fit_exponent("radius", by_radius),
            "lookup": _compare_lookups(base),
            "share": _split(flow),
            **{f"agents_{n}": _select(found) for n, found in by_agents.items()},
            **{f"radius_{r}": _select(found) for r, found in by_radius.items()},
        }

    def _perceive(self, agents: int, radius: int, seed: int) -> Perception:
        params = self.params
        config = world_config(
            params.width, params.height, agents, params.initial_resources, seed=seed, **STEADY
        )
        world = World(config)
        return Perception(
            world, radius, None, params.storage_mode, "bilinear" if params.use_bilinear else "nearest"
        )


def _select(flow: Mapping[str, Any]) -> dict[str, float]:
    return {name: flow[name] for name in ("observes_per_sec", "mean_step_time_s")}


def _fit_exponent(axis: str, flows: Mapping[int, Mapping[str, Any]]) -> dict[str, float]:
    """By which power the time of a step grows, with the ends of its interval; nothing for two sizes, which prove no power."""
    from assay.stats.line import growth_exponent

    sizes = sorted(flows)
    line = growth_exponent(sizes, [flows[size]["mean_step_time_s"] for size in sizes])
    if line is None:
        return {}
    name = f"{axis}_exponent"
    return {name: line.slope, f"{name}_low": line.low, f"{name}_high": line.high}


def _compare_lookups(perception: Perception) -> dict[str, float]:
    chosen = np.arange(len(perception.world.agents))
    ways: dict[str, Callable[[Array], Array]] = {
        "grid": perception.find_resources_by_grid,
        "search": perception.find_resources_by_search,
    }
    if not np.array_equal(ways["grid"](chosen), ways["search"](chosen)):
        raise AssertionError("the two ways to look up resources disagree")
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(_LOOKUPS):
        for name, find in ways.items():
            began = perf_counter()
            find(chosen)
            times[name].append(perf_counter() - began)
    grid, search = (float(np.median(times[name])) for name in ways)
    return {"grid_seconds": grid, "search_seconds": search, "grid_speedup": search / grid}


def _split(flow: Mapping[str, Any]) -> dict[str, float]:
    profile, total = flow["perception_profile"], flow["total_time_s"]
    parts = {
        name: 100 * profile[f"{name}_time_s"] / total for name in ("spatial_query", "bilinear", "nearest")
    }
    parts["rebuild"] = 100 * flow["obs_dense_rebuild_time_s_total"] / total
    return {f"{name}_percent": share for name, share in {**parts, "rest": 100 - sum(parts.values())}.items()}
