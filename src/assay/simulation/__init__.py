"""A world of agents to simulate: small, seeded, and large enough that databases and indexes matter.

    from assay.simulation import SimulationConfig, simulate

    result = simulate(SimulationConfig(num_agents=30, simulation_steps=100, seed=1), "run-1.db")

docs/simulation.md explains the world and the experiments that run it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.simulation.config import SimulationConfig, configure_for_performance_with_persistence
    from assay.simulation.log import LogFailed
    from assay.simulation.perception import Observation, Perception
    from assay.simulation.recommendation import Recommendation, get_recommended_config, recommend
    from assay.simulation.run import SimulationResult, simulate
    from assay.simulation.world import StepMetrics, World

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

__all__ = [
    "LogFailed",
    "Observation",
    "Perception",
    "Recommendation",
    "SimulationConfig",
    "SimulationResult",
    "StepMetrics",
    "World",
    "configure_for_performance_with_persistence",
    "get_recommended_config",
    "recommend",
    "simulate",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _PLACES:
            raise AttributeError(f"module 'assay.simulation' has no attribute '{name}'")
        return getattr(import_module(f"assay.simulation.{_PLACES[name]}"), name)
