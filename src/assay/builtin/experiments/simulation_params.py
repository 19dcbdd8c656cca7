"""What the experiments that run the simulated world have in common: its params, checked as the world itself checks them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator

from assay.errors import PlanError
from assay.simulation.config import SimulationConfig

T = TypeVar("T")

Several = Annotated[
    list[T],
    BeforeValidator(lambda value: value if isinstance(value, list) else [value]),
    AfterValidator(lambda values: list(dict.fromkeys(values))),
]
"""A list of different values; a single value is a list of one, so that it can be the axis of a sweep."""
Count = Annotated[int, Field(ge=1, le=1_000_000)]
Radius = Annotated[int, Field(ge=1, le=100)]
Device = Literal["cpu"]


class WorldParams(BaseModel):
    """The size of the world and who is in it."""

    width: int = Field(default=200, description="Cells from left to right.")
    height: int = Field(default=200, description="Cells from top to bottom.")
    num_agents: int = Field(default=100, description="Agents, a third of each kind; at most one per cell.")
    initial_resources: int | None = Field(
        default=None, description="Resources, at most one per cell. Default: one for a hundred cells."
    )

    @model_validator(mode="after")
    def _check_world(self) -> WorldParams:
        try:
            self.world_config()
        except PlanError as error:
            raise ValueError(str(error)) from None
        return self

    def world_config(self, **others: Any) -> SimulationConfig:
        return world_config(self.width, self.height, self.num_agents, self.initial_resources, **others)


def world_config(
    width: int, height: int, num_agents: int, initial_resources: int | None = None, **others: Any
) -> SimulationConfig:
    """PlanError where such a world cannot be."""
    resources = max(width * height // 100, 0) if initial_resources is None else initial_resources
    return SimulationConfig(
        width=width, height=height, num_agents=num_agents, initial_resources=resources, **others
    )


STEADY = {"base_consumption": 0, "reproduction_energy": 1_000_000}
"""Settings under which no agent is born or dies, so that every step has the same number of agents."""
