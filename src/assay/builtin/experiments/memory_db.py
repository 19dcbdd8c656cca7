"""What the log of a simulation costs: in a file, in memory, and in memory with a copy to a file at the end.

The original of this experiment set its modes where nothing read them, so all three were the same file; its 33.6 % came from nowhere.
Here each leg reads back from its database which mode, profile and batch sizes were in effect, and Assay warns where they are not those asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator

from assay.builtin.experiments.scratch_folder import ScratchExperiment
from assay.builtin.experiments.simulation_params import Count, Several, WorldParams
from assay.model import Better, Kind, Metric, describe_metrics
from assay.plugin.experiment import ExperimentContext
from assay.simulation.config import MODES, Mode
from assay.simulation.pragmas import ProfileName
from assay.simulation.run import SimulationResult, simulate

_FLAGS: Mapping[Mode, str] = {
    "disk": "test_disk_based",
    "memory": "test_in_memory",
    "memory_persist": "test_persistence",
}


class MemoryDbLegs(BaseModel):
    """Which legs `mode: all` has, and with which batches, by the names of AgentFarm's spec files."""

    model_config = ConfigDict(extra="forbid")

    test_in_memory: bool = Field(default=True, description="Whether to log to memory.")
    test_disk_based: bool = Field(default=True, description="Whether to log to a file.")
    test_persistence: bool = Field(
        default=True, description="Whether to log to memory and copy it to a file."
    )
    buffer_sizes: Several[Count] = Field(
        default=[], description="Values of buffer_size; each is combined with each flush frequency."
    )
    flush_frequencies: Several[Count] = Field(default=[], description="Values of flush_frequency.")


class MemoryDbParams(WorldParams):
    """A world, and how its log is kept."""

    width: int = Field(default=100, description="Cells from left to right.")
    height: int = Field(default=100, description="Cells from top to bottom.")
    num_agents: int = Field(default=30, description="Agents, a third of each kind; at most one per cell.")
    initial_resources: int | None = Field(default=20, description="Resources, at most one per cell.")
    num_steps: Count = Field(default=100, description="Steps to simulate.")
    mode: Literal["all", "disk", "memory", "memory_persist"] = Field(
        default="all",
        description="Where the log is written; all: one leg after the other, in an order that changes.",
    )
    buffer_size: Count = Field(default=1000, description="Rows that are collected before they are written.")
    flush_frequency: Count = Field(default=1000, description="Rows that are written before a commit.")
    db_pragma_profile: ProfileName = Field(
        default="balanced", description="Settings of SQLite by name, as in `pragma_profile`."
    )
    parameters: MemoryDbLegs = Field(
        default_factory=MemoryDbLegs, description="Legs of mode all, and batches to try with each."
    )

    @model_validator(mode="after")
    def _check_legs(self) -> MemoryDbParams:
        if not self.legs():
            raise ValueError(f"No leg is enabled: set one of {', '.join(_FLAGS.values())}.")
        return self

    def legs(self) -> list[Mode]:
        if self.mode != "all":
            return [self.mode]
        return [mode for mode, flag in _FLAGS.items() if getattr(self.parameters, flag)]

    def batches(self) -> list[tuple[int, int]]:
        """Pairs of buffer size and flush frequency."""
        sizes = self.parameters.buffer_sizes or [self.buffer_size]
        return list(itertools.product(sizes, self.parameters.flush_frequencies or [self.flush_frequency]))


class MemoryDb(ScratchExperiment):
    """The same simulation with its log in a file, in memory, and in memory with a copy at the end.

    A leg's time is that of the simulation from its first step until its log is closed, the copy included. With several batch sizes, each has
    its own figures, and those without a prefix are their sums. A speedup is the time of the file relative to that of the other leg.
    """

    Params = MemoryDbParams

    workload_params: ClassVar[Sequence[str]] = (
        "width",
        "height",
        "num_agents",
        "initial_resources",
        "num_steps",
    )
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(
        Metric("disk_time", "s", Better.LOWER),
        Metric("memory_time", "s", Better.LOWER),
        Metric("memory_persist_time", "s", Better.LOWER),
        Metric("disk_to_memory_speedup", "", Better.HIGHER, Kind.DERIVED),
        Metric("disk_to_memory_persist_speedup", "", Better.HIGHER, Kind.DERIVED),
        Metric("simulation_seconds", "s", Better.LOWER),
        Metric("rows_per_second", "1/s", Better.HIGHER),
        Metric("rows_written"),
        Metric("commits"),
    )

    params: MemoryDbParams

    def prepare_once(self, context: ExperimentContext) -> None:
        """Remove the logs of the execution before, which may take as long as writing them and is no part of a simulation."""
        self.delete_files()

    def execute_once(self, context: ExperimentContext) -> dict[str, Any]:
        legs, batches = self.params.legs(), self.params.batches()
        # Each leg is the first one in turn, so that what the first one pays, such as cold caches, hits all alike.
        first = context.execution % len(legs)
        results = {
            batch: {mode: self._simulate(mode, batch, context.seed) for mode in legs[first:] + legs[:first]}
            for batch in batches
        }
        self._read_back(context, results)
        by_leg = {mode: [legs_of[mode] for legs_of in results.values()] for mode in legs}
        figures: dict[str, Any] = _compute_figures(by_leg)
        if len(batches) > 1:
            for (size, frequency), legs_of in results.items():
                times = _compute_times({mode: [result] for mode, result in legs_of.items()})
                figures[f"buffer_{size}.flush_{frequency}"] = times
        return figures

    def _simulate(self, mode: Mode, batch: tuple[int, int], seed: int) -> SimulationResult:
        size, frequency = batch
        config = self.params.world_config(
            simulation_steps=self.params.num_steps,
            seed=seed,
            buffer_size=size,
            flush_frequency=frequency,
            db_pragma_profile=self.params.db_pragma_profile,
            **MODES[mode],
        )
        return simulate(config, self.folder / f"{mode}-{size}-{frequency}.db")

    def _read_back(
        self, context: ExperimentContext, results: Mapping[tuple[int, int], Mapping[Mode, SimulationResult]]
    ) -> None:
        """What the databases of all legs report; `all` only if every leg with every batch had the mode that it was meant to have."""
        by_leg = {mode: [legs[mode] for legs in results.values()] for mode in self.params.legs()}
        effective = {
            mode: _join(simulated.settings["mode"] for simulated in legs) for mode, legs in by_leg.items()
        }
        is_as_asked = all(mode == effective_mode for mode, effective_mode in effective.items())
        all_results = [result for legs in by_leg.values() for result in legs]
        firsts = [result.history[0] for result in all_results]
        context.read_back(
            mode=self.params.mode if is_as_asked else ", ".join(map(str, effective.values())),
            db_pragma_profile=_join(
                (simulated.settings["db_pragma_profile"] for simulated in all_results), ", "
            ),
            num_steps=_join(len(simulated.history) for simulated in all_results),
            num_agents=_join(first.num_agents + first.deaths - first.births for first in firsts),
            journal_modes={
                mode: _join(simulated.settings["journal_mode"] for simulated in legs)
                for mode, legs in by_leg.items()
            },
            kept_rows={mode: _add_up(legs, "kept_rows") for mode, legs in by_leg.items()},
            writes=_add_up(all_results, "writes"),
            commits=_add_up(all_results, "commits"),
            largest_write=max(int(str(simulated.settings["largest_write"])) for simulated in all_results),
        )
        self._read_back_batches(context, results)

    def _read_back_batches(
        self, context: ExperimentContext, results: Mapping[tuple[int, int], Mapping[Mode, SimulationResult]]
    ) -> None:
        """Both limits as the logs show them; those of a list, which are no param of their own, only where one was ignored."""
        by_size: dict[int, list[SimulationResult]] = {}
        by_frequency: dict[int, list[SimulationResult]] = {}
        for (size, frequency), legs in results.items():
            by_size.setdefault(size, []).extend(legs.values())
            by_frequency.setdefault(frequency, []).extend(legs.values())
        ignored: dict[str, list[int]] = {}
        for name, lists, found in (
            (
                "buffer_size",
                "buffer_sizes",
                {size: find_buffer_size(size, by_size[size]) for size in by_size},
            ),
            (
                "flush_frequency",
                "flush_frequencies",
                {
                    limit: find_limit(limit, "committed", results_of_limit)
                    for limit, results_of_limit in by_frequency.items()
                },
            ),
        ):
            if not getattr(self.params.parameters, lists):
                context.read_back(**{name: found[getattr(self.params, name)]})
            elif any(value not in (None, limit) for limit, value in found.items()):
                ignored[lists] = [limit if value is None else value for limit, value in found.items()]
        if ignored:
            context.read_back(parameters={**self.params.parameters.model_dump(), **ignored})


def _join(values: Iterable[object], between: str = "/") -> object:
    """The value that all have; several in one text."""
    found = list(dict.fromkeys(values))
    return found[0] if len(found) == 1 else between.join(map(str, found))


def _add_up(results: Iterable[SimulationResult], name: str) -> int:
    return sum(int(str(result.settings[name])) for result in results)


def find_limit(requested: int, name: str, results: Iterable[SimulationResult]) -> int | None:
    """A limit on rows as the logs show it: the one asked for where it fits all of them, else the one that a log had.

    None where no log had so many rows, as then it is unknown.
    """
    is_seen = False
    for result in results:
        above, at_most = cast(tuple[int, int | None], result.settings[name])
        if requested <= above:
            return at_most or above + 1
        if at_most is not None and at_most < requested:
            return at_most
        is_seen = is_seen or at_most is not None
    return requested if is_seen else None


def find_buffer_size(requested: int, results: Sequence[SimulationResult]) -> int | None:
    """As `find_limit`; what is written at once may not be larger either."""
    largest = max(int(str(result.settings["largest_write"])) for result in results)
    return largest if largest > requested else find_limit(requested, "collected", results)


Legs = Mapping[Mode, list[SimulationResult]]


def _compute_times(legs: Legs) -> dict[str, float]:
    times = {mode: sum(result.seconds for result in results) for mode, results in legs.items()}
    figures = {f"{mode}_time": seconds for mode, seconds in sorted(times.items())}
    for mode in ("memory", "memory_persist"):
        if "disk" in times and mode in times:
            figures[f"disk_to_{mode}_speedup"] = times["disk"] / times[mode]
    return figures


def _compute_figures(legs: Legs) -> dict[str, float]:
    all_results = [result for results in legs.values() for result in results]
    seconds = sum(result.seconds for result in all_results)
    rows = _add_up(all_results, "rows")
    return {
        **_compute_times(legs),
        "simulation_seconds": seconds,
        "rows_per_second": rows / seconds,
        "rows_written": rows,
        "commits": _add_up(all_results, "commits"),
    }
