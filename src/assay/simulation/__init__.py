"""A world of agents to simulate: small, seeded, and large enough that databases and indexes matter.

    from assay.simulation import SimulationConfig, simulate

    result = simulate(SimulationConfig(num_agents=30, simulation_steps=100, seed=1), "run-1.db")

docs/simulation.md explains the world and the experiments that run it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # `as` tells a type checker that the name is public
    from assay.simulation.config import SimulationConfig as SimulationConfig
    from assay.simulation.config import (
        configure_for_performance_with_persistence as configure_for_performance_with_persistence,
    )
    from assay.simulation.log import LogFailed as LogFailed
    from assay.simulation.perception import Observation as Observation
    from assay.simulation.perception import Perception as Perception
    from assay.simulation.recommendation import Recommendation as Recommendation
    from assay.simulation.recommendation import get_recommended_config as get_recommended_config
    from assay.simulation.recommendation import recommend as recommend
    from assay.simulation.run import SimulationResult as SimulationResult
    from assay.simulation.run import simulate as simulate
    from assay.simulation.world import StepMetrics as StepMetrics
    from assay.simulation.world import World as World

_PLACES = {
    "LogFailed": "log",
    "Observation": "perception",
    "Perception": "perception",
    "Recommendation": "recommendation",
    "SimulationConfig": "config",
    "SimulationResult": "run",
    "StepMetrics": "world",
    "World": "world",
    "configure_for_performance_with_persistence": "config",
    "get_recommended_config": "recommendation",
    "recommend": "recommendation",
    "simulate": "run",
}

if not TYPE_CHECKING:
    __all__ = list(_PLACES)

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay.simulation' has no attribute '{name}'")
        return getattr(import_module(f"assay.simulation.{_PLACES[name]}"), name)
