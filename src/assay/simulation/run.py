"""A whole simulation: the world from its first step to its last, and its log."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from assay.simulation.config import SimulationConfig
from assay.simulation.log import SimulationLog
from assay.simulation.world import StepMetrics, World

StepObserver = Callable[[World, StepMetrics], None]


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """What became of a simulation."""

    config: SimulationConfig
    """As it was given."""
    history: tuple[StepMetrics, ...]
    """One entry for each step."""
    seconds: float
    """From the first step until the log is complete, its copy included."""
    digest: str
    """A hash of the last state: equal for equal histories."""
    database: Path | None
    """The file with the log; None where none was kept."""
    settings: Mapping[str, object]
    """What the log's database reports as in effect: mode, pragmas, rows, writes, commits. Empty without a log."""

    @property
    def agent_steps(self) -> int:
        """Steps of single agents: the agents that were alive after each step, added up."""
        return sum(metrics.num_agents for metrics in self.history)


def simulate(
    config: SimulationConfig,
    database: str | Path = "simulation.db",
    on_step: StepObserver | None = None,
) -> SimulationResult:
    """Run a simulation and log it as its config says.

    The same config gives the same history in every process. Raises LogFailed, an AssayError, where the log cannot be written.

    Args:
        config: The world, who lives in it, and how it is logged.
        database: The file of the log; it must not exist yet. Unused without a log, or if the log stays in memory.
        on_step: A function that is called with the world and the metrics after each step.

    Example:
        result = simulate(SimulationConfig(num_agents=30, simulation_steps=100), "run-1.db")
        print(result.history[-1].num_agents, result.settings["mode"])
    """
    world, file = World(config), Path(database)
    log = SimulationLog(config, file) if config.log_steps else None
    try:
        began, history = perf_counter(), []
        for _ in range(config.simulation_steps):
            metrics = world.step()
            history.append(metrics)
            if log:
                log.add(world, metrics)
            if on_step:
                on_step(world, metrics)
        if log:
            log.finish()
        seconds = perf_counter() - began
        settings = log.settings() if log else {}
    finally:
        if log:
            began = perf_counter()
            log.close()
    if log:
        # Closing counts: it writes back what a write-ahead log has put off.
        seconds += perf_counter() - began
        settings["kept_rows"] = log.count_kept_rows()
    kept = file if settings.get("kept_rows") else None
    return SimulationResult(config, tuple(history), seconds, world.digest(), kept, settings)
