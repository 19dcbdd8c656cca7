"""What a simulation is told: the size of the world, who lives in it, and where its steps are logged.

Impossible settings are all reported at once and by name, before a world is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from assay.errors import PlanError
from assay.plugin.validation_messages import problem_and_hint
from assay.simulation.pragmas import ProfileName

KINDS = ("system", "independent", "control")
"""Kinds of agents, in the order of their numbers in arrays and in the log."""
MAX_CELLS = 100_000_000

Mode = Literal["disk", "memory", "memory_persist"]


class SimulationConfig(BaseModel):
    """The settings of a simulation. Each is checked when it is given and when it is changed; PlanError lists all mistakes.

    `num_agents=30` stands for ten agents of each kind; what thirds leave over goes to the first kinds.

    Example:
        config = SimulationConfig(width=50, height=50, num_agents=30, simulation_steps=100, seed=1)
        config.use_in_memory_db = True
    """

    model_config = ConfigDict(extra="forbid", strict=True, validate_assignment=True, allow_inf_nan=False)

    width: int = Field(default=100, ge=1, description="Cells from left to right.")
    height: int = Field(default=100, ge=1, description="Cells from top to bottom.")
    system_agents: int = Field(default=10, ge=0, description="Agents that share what they have to spare.")
    independent_agents: int = Field(default=10, ge=0, description="Agents that take from others when hungry.")
    control_agents: int = Field(default=10, ge=0, description="Agents that wander at random.")
    initial_resources: int = Field(
        default=20, ge=0, description="Cells where food grows; at most one per cell."
    )
    max_resource_amount: int = Field(default=30, ge=1, le=1000, description="Food that a resource can hold.")
    resource_regen_rate: float = Field(
        default=0.1, ge=0, le=1, description="Chance that a resource grows in a step."
    )
    resource_regen_amount: int = Field(default=5, ge=1, le=1000, description="Food by which it then grows.")
    initial_energy: int = Field(default=100, ge=1, le=10_000, description="Energy of the first agents.")
    base_consumption: int = Field(
        default=1, ge=0, le=1000, description="Energy that a step costs every agent."
    )
    reproduction_energy: int = Field(
        default=150,
        ge=2,
        le=1_000_000,
        description="From this energy on an agent reproduces; half goes to the child.",
    )
    simulation_steps: int = Field(default=100, ge=1, description="Steps to simulate.")
    seed: int = Field(default=42, ge=0, description="The same seed gives the same history.")
    log_steps: bool = Field(default=True, description="Whether steps are written to a database.")
    use_in_memory_db: bool = Field(default=False, description="Log to memory instead of a file.")
    persist_db_on_completion: bool = Field(
        default=False, description="Copy a log in memory to the file when the simulation ends."
    )
    buffer_size: int = Field(
        default=1000, ge=1, description="Rows that are collected before they are written."
    )
    flush_frequency: int = Field(default=1000, ge=1, description="Rows that are written before a commit.")
    db_pragma_profile: ProfileName = Field(
        default="balanced", description="Settings of SQLite by name, as in the experiment `pragma_profile`."
    )

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise PlanError(_describe(error)) from None

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            super().__setattr__(name, value)
        except ValidationError as error:
            raise PlanError(_describe(error)) from None

    @model_validator(mode="before")
    @classmethod
    def _split_agents(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or "num_agents" not in given:
            return given
        total = given["num_agents"]
        if type(total) is not int or total < 1:
            raise ValueError(f"'num_agents' must be a whole number of at least 1, not {total!r}.")
        settings = {name: value for name, value in given.items() if name != "num_agents"}
        if doubled := [f"{kind}_agents" for kind in KINDS if f"{kind}_agents" in settings]:
            raise ValueError(
                f"'num_agents' is the sum of all kinds: leave out either 'num_agents' or {' and '.join(doubled)}."
            )
        return settings | split_agents(total)

    @model_validator(mode="after")
    def _check_space(self) -> SimulationConfig:
        cells = self.width * self.height
        if cells > MAX_CELLS:
            raise ValueError(f"The world has {cells:,} cells; at most {MAX_CELLS:,} are possible.")
        if self.num_agents < 1:
            raise ValueError("The world needs at least one agent.")
        if self.num_agents > cells:
            raise ValueError(
                f"{self.num_agents:,} agents do not fit into {cells:,} cells ({self.width} × {self.height}), one in each. "
                "Use fewer agents or a larger world."
            )
        if self.initial_resources > cells:
            raise ValueError(
                f"{self.initial_resources:,} resources do not fit into {cells:,} cells ({self.width} × {self.height}), one in each."
            )
        return self

    @property
    def num_agents(self) -> int:
        """Agents of all kinds at the beginning. A number that is set is split among the kinds."""
        return sum(self.agents_by_kind)

    @num_agents.setter
    def num_agents(self, total: int) -> None:
        others = self.model_dump(exclude={f"{kind}_agents" for kind in KINDS})
        # All kinds at once: one by one, they might not fit into the world together with what the others were.
        self.__dict__.update(type(self)(num_agents=total, **others).__dict__)
        self.model_fields_set.update(f"{kind}_agents" for kind in KINDS)

    @property
    def agents_by_kind(self) -> tuple[int, int, int]:
        return self.system_agents, self.independent_agents, self.control_agents

    @property
    def mode(self) -> Mode:
        """Where the log is written: `disk`, `memory`, or `memory_persist` if it is copied to the file at the end."""
        if not self.use_in_memory_db:
            return "disk"
        return "memory_persist" if self.persist_db_on_completion else "memory"


def split_agents(total: int) -> dict[str, int]:
    """
    >>> split_agents(11)
    {'system_agents': 4, 'independent_agents': 4, 'control_agents': 3}
    """
    return {f"{kind}_agents": (total + 2 - place) // 3 for place, kind in enumerate(KINDS)}


MODES: Mapping[Mode, Mapping[str, bool]] = {
    "disk": {"use_in_memory_db": False, "persist_db_on_completion": False},
    "memory": {"use_in_memory_db": True, "persist_db_on_completion": False},
    "memory_persist": {"use_in_memory_db": True, "persist_db_on_completion": True},
}


def configure_for_performance_with_persistence(config: SimulationConfig) -> SimulationConfig:
    """Set `use_in_memory_db` and `persist_db_on_completion`, and return the same config.

    The log is in memory during the simulation and is copied to its file at the end. Whether that is quicker on this machine is what
    `get_recommended_config` measures; a simulation that is killed leaves no log.
    """
    for name, value in MODES["memory_persist"].items():
        setattr(config, name, value)
    return config


def _describe(error: ValidationError) -> str:
    """All mistakes, one a line, each beginning with the name of its setting."""
    lines = []
    for fault in error.errors():
        problem, hint = problem_and_hint([fault], sorted([*SimulationConfig.model_fields, "num_agents"]))
        name = f"'{fault['loc'][0]}' " if fault["loc"] else ""
        lines.append(f"{name}{problem} {hint}".strip())
    return "\n".join(lines)
