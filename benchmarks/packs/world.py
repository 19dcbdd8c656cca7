"""How fast the simulated world steps and looks around, without a log."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from arms import interleaved
from record import Bound, Promise, Result, figure, ratio

from assay.simulation import Perception, SimulationConfig, World

SIZES = (10_000, 40_000)
SEED_RATE = 2400
"""Observations a second that the authors of AgentFarm published for 100 agents and radius 6."""

SPEED = Promise("world-speed", "Steps of single agents, 10,000 agents, no log", Bound.AT_LEAST, 1e6, "1/s")
GROWTH = Promise(
    "world-growth",
    "Time of one agent's step with 40,000 agents",
    Bound.AT_MOST,
    1.5,
    "times",
    "that with 10,000",
)
OBSERVATIONS = Promise(
    "observations",
    "Observations of 100 agents, radius 6, 13 channels",
    Bound.AT_LEAST,
    20 * SEED_RATE,
    "1/s",
)


def measure(quick: bool) -> list[Result]:
    arms: dict[str, Callable[[], float]] = {str(size): _stepper(size) for size in SIZES}
    rates = interleaved({**arms, "observations": _observer()}, 3 if quick else 12)
    small, large = (rates[str(size)] for size in SIZES)
    growth = Result(
        GROWTH,
        "1/s",
        figure(large),
        ratio(small, large),
        {"10,000 agents": figure(small)},
        values={"small": small, "large": large},
    )
    published = f"Twenty times the {SEED_RATE:,}/s that AgentFarm published for these sizes."
    return [_judge(SPEED, small), growth, _judge(OBSERVATIONS, rates["observations"], published)]


def _judge(promise: Promise, rates: list[float], detail: str = "") -> Result:
    ours = figure(rates)
    return Result(promise, promise.unit, ours, ours, detail=detail, values={"rates": rates})


def _stepper(agents: int) -> Callable[[], float]:
    """Ten steps of a world with a tenth of its cells taken, and food enough that nobody starves meanwhile."""
    side = round((10 * agents) ** 0.5)
    world = World(
        SimulationConfig(
            width=side, height=side, num_agents=agents, initial_resources=2 * agents, log_steps=False
        )
    )

    def step() -> float:
        began = perf_counter()
        done = sum(world.step().num_agents for _ in range(10))
        return done / (perf_counter() - began)

    return step


def _observer() -> Callable[[], float]:
    world = World(
        SimulationConfig(
            width=200, height=200, num_agents=100, initial_resources=400,
            base_consumption=0, reproduction_energy=1_000_000,
        )
    )  # fmt: skip
    perception = Perception(world, radius=6)

    def observe() -> float:
        seconds = 0.0
        for _ in range(50):
            world.step()
            began = perf_counter()
            perception.observe().dense()
            seconds += perf_counter() - began
        return 50 * 100 / seconds

    return observe
