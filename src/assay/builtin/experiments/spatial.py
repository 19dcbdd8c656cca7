"""Experiments on spatial indexes: how quickly they build, answer and follow moving entities, and what memory they take.

All of them draw a `SpatialWorkload` from the seed of the run, which every index and every process gets alike, check the index against brute
force in `setup`, and read back what index it really is. Times are those of the index alone: `seconds` is the whole execution.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from time import perf_counter
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from assay.builtin.experiments.spatial_indexes import Algorithm, SpatialIndex, build_index
from assay.builtin.experiments.spatial_workloads import (
    Distribution,
    QueryPattern,
    QueryType,
    SpatialWorkload,
    WorkloadSize,
    WrongIndex,
    check_index,
    count_found,
    draw_workload,
)
from assay.model import Better, Metric
from assay.plugin.experiment import Experiment, ExperimentContext

_IMMEDIATE = 50
"""Moves that are applied one by one: a static tree is built again for each."""
_GROWN = 50_000
"""Entities in all copies of an index together, so that their memory is far above the size of a page."""


def _lower(unit: str, *names: str) -> dict[str, Metric]:
    return {name: Metric(name, unit, Better.LOWER) for name in names}


class SpatialParams(BaseModel):
    """What all experiments on spatial indexes have in common."""

    model_config = ConfigDict(allow_inf_nan=False)

    algorithm: Algorithm = Field(
        default="kd_tree",
        description="The index; `kd_tree` is SciPy's cKDTree, `brute_force` searches without an index.",
    )
    agent_count: int = Field(default=1000, ge=1, le=10_000_000, description="Entities in the world.")
    world_size: float = Field(default=1000, gt=0, description="Side of the square world.")
    steps: int = Field(
        default=35, ge=1, le=100_000, description="Steps of a simulation: 18 entities move, then 25 queries."
    )
    distribution: Distribution = Field(
        default="uniform", description="Where entities are; sparse: in a world with ten times the side."
    )
    query_radius: float = Field(
        default=20, gt=0, description="Radius of queries, and half the width of boxes."
    )
    queries: int = Field(default=100, ge=1, le=1_000_000, description="Queries of each type in an execution.")
    cell_size: float | None = Field(
        default=None, gt=0, description="Side of the cells of a spatial hash. Default: the query radius."
    )
    leaf_size: int = Field(default=16, ge=1, description="Maximum entities in a leaf of a tree.")


LISTS = {
    "algorithms": "algorithm",
    "agent_counts": "agent_count",
    "world_sizes": "world_size",
    "query_radii": "query_radius",
    "distributions": "distribution",
}


class _SpatialExperiment(Experiment):
    """Draws the workload, checks the index before anything is timed, and records what index it is."""

    params: Any
    workload_params: ClassVar[Sequence[str]] = (
        "agent_count",
        "world_size",
        "steps",
        "distribution",
        "query_radius",
        "queries",
        "query_type",
        "query_pattern",
    )
    list_params: ClassVar[Mapping[str, str]] = LISTS
    _workload: SpatialWorkload
    _known: tuple[tuple[int, ...], int]

    def setup(self, context: ExperimentContext) -> None:
        params = self.params
        size = WorkloadSize(
            params.agent_count,
            params.world_size,
            params.query_radius,
            params.queries,
            params.steps,
            params.distribution,
            getattr(params, "query_pattern", "random"),
        )
        # The seed of the run and not of the process: every process and every arm gets the same entities and queries.
        self._workload = draw_workload(size, self._query_types(), (context.seed - context.process) % 2**32)
        index = self._build()
        self._read_back(index, context)
        check_index(index, self._workload)
        # What brute force finds is worked out now, so that no execution pays for it.
        self._known = (self._workload.results, self._workload.step_results)

    def _query_types(self) -> tuple[QueryType, ...]:
        return ("radius", "nearest", "range")

    def _build(self) -> SpatialIndex:
        params = self.params
        return build_index(
            params.algorithm,
            self._workload.places,
            cell_size=params.cell_size or params.query_radius,
            leaf_size=params.leaf_size,
        )

    def _read_back(self, index: SpatialIndex, context: ExperimentContext) -> None:
        context.read_back(**index.describe(), steps=len(self._workload.steps), workload=self._workload.digest)

    def _time_build(self) -> tuple[SpatialIndex, float]:
        begin = perf_counter()
        index = self._build()
        return index, perf_counter() - begin

    def _time_queries(self, index: SpatialIndex, number: int) -> float:
        """Seconds of one query in a batch of the workload; WrongIndex if the batch does not find what brute force finds."""
        queries, places = self._workload.queries[number], self._workload.places
        begin = perf_counter()
        found = queries.ask(index, places)
        seconds = perf_counter() - begin
        if count_found(found) != self._workload.results[number]:
            raise WrongIndex(
                f"The index found {count_found(found):,} entities; brute force finds {self._workload.results[number]:,}."
            )
        return seconds / len(queries.centres)

    def _time_updates(self, index: SpatialIndex, *, is_immediate: bool) -> float:
        """Seconds for each entity that moved."""
        moves = self._workload.moves.first(_IMMEDIATE) if is_immediate else self._workload.moves
        begin = perf_counter()
        moves.apply(index, is_immediate=is_immediate)
        return (perf_counter() - begin) / len(moves.ids)

    def _time_steps(self, *, is_immediate: bool) -> float:
        return self._workload.run_steps(self._build(), is_immediate=is_immediate)


class SpatialComprehensive(_SpatialExperiment):
    """One index: build it, query it, move entities in a batch and one by one, and both within a simulation.

    `batch_…` updates apply all moves at once, `immediate_…` ones each by itself; both are seconds per moved entity, and
    `…_step_seconds` is a step of moves and queries. `batch_speedup` is how much quicker the batch is, below 1 if it is slower.
    """

    Params = SpatialParams
    metrics: ClassVar[Mapping[str, Metric]] = {
        **_lower(
            "s", "build_seconds", "radius_query_seconds", "nearest_query_seconds", "range_query_seconds"
        ),
        **_lower("s", "batch_update_seconds", "immediate_update_seconds"),
        **_lower("s", "batch_step_seconds", "immediate_step_seconds"),
        "batch_speedup": Metric("batch_speedup"),
        "results_per_query": Metric("results_per_query"),
    }

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        index, build = self._time_build()
        radius, nearest, box = (self._time_queries(index, number) for number in range(3))
        batch = self._time_updates(index, is_immediate=False)
        immediate = self._time_updates(self._build(), is_immediate=True)
        return {
            "build_seconds": build,
            "radius_query_seconds": radius,
            "nearest_query_seconds": nearest,
            "range_query_seconds": box,
            "batch_update_seconds": batch,
            "immediate_update_seconds": immediate,
            "batch_speedup": immediate / batch,
            "batch_step_seconds": self._time_steps(is_immediate=False),
            "immediate_step_seconds": self._time_steps(is_immediate=True),
            "results_per_query": self._workload.results[0] / self.params.queries,
        }


class SpatialIndexProfilerParams(SpatialParams):
    """Params with one type of query."""

    query_type: QueryType = Field(
        default="radius",
        description="Entities in a circle, the nearest one, those in a box (range), or those that touch it (intersection).",
    )


class SpatialIndexProfiler(_SpatialExperiment):
    """One index under one type of query: the cost of building, of a query, of an update, and of a step of both."""

    Params = SpatialIndexProfilerParams
    list_params: ClassVar[Mapping[str, str]] = {**LISTS, "query_types": "query_type"}
    findings: ClassVar[Sequence[str]] = ("scaling",)
    metrics: ClassVar[Mapping[str, Metric]] = {
        **_lower(
            "s",
            "build_seconds",
            "build_seconds_per_entity",
            "query_seconds",
            "update_seconds",
            "step_seconds",
        ),
        "queries_per_second": Metric("queries_per_second", "1/s", Better.HIGHER),
        "results_per_query": Metric("results_per_query"),
    }

    def _query_types(self) -> tuple[QueryType, ...]:
        return (self.params.query_type,)

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        index, build = self._time_build()
        query = self._time_queries(index, 0)
        return {
            "build_seconds": build,
            "build_seconds_per_entity": build / self.params.agent_count,
            "query_seconds": query,
            "queries_per_second": 1 / query,
            "update_seconds": self._time_updates(index, is_immediate=False),
            "step_seconds": self._time_steps(is_immediate=False),
            "results_per_query": self._workload.results[0] / self.params.queries,
        }

    def _read_back(self, index: SpatialIndex, context: ExperimentContext) -> None:
        super()._read_back(index, context)
        context.read_back(query_type=self._workload.queries[0].type)


class SpatialMemoryProfilerParams(SpatialParams):
    """Params with the data structure of the entities and what is measured."""

    data_structure: Literal["list", "dict", "numpy_array"] = Field(
        default="numpy_array", description="What holds the places of the entities."
    )
    track_memory_usage: bool = Field(
        default=True, description="Whether memory is read after queries and moves, too."
    )
    track_garbage_collection: bool = Field(
        default=True, description="Whether to run the garbage collector at the end and report what it frees."
    )


class SpatialMemoryProfiler(_SpatialExperiment):
    """The memory of one index, from the resident memory of the process before and after each stage.

    It sees memory that libraries in C allocate, which tracemalloc does not, and slows nothing. An index is built so many times that
    the growth is far above the size of a page, and all figures are divided by the number of copies. Run it with `isolation: cold`: a
    process that has freed memory takes it again before it grows, so in any other one the figures are too low, and a warning says so.
    """

    Params = SpatialMemoryProfilerParams
    list_params: ClassVar[Mapping[str, str]] = {**LISTS, "data_structures": "data_structure"}
    metrics: ClassVar[Mapping[str, Metric]] = {
        **_lower("bytes", "entities_bytes", "index_bytes", "bytes_per_entity"),
        **_lower("bytes", "queries_bytes", "updates_bytes"),
        "collected_bytes": Metric("collected_bytes", "bytes"),
        "collected_objects": Metric("collected_objects"),
    }

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        params, workload = self.params, self._workload
        copies = max(1, ceil(_GROWN / params.agent_count))
        if context.isolation != "cold":
            context.remark(
                f"With 'isolation: {context.isolation}' memory is counted too low, down to zero: the process takes what it has freed "
                "before it grows. Run with 'isolation: cold'."
            )
        release_free_memory()
        levels = [resident_bytes()]
        held: list[Any] = [_store_places(params.data_structure, workload) for _ in range(copies)]
        context.read_back(
            data_structure={"ndarray": "numpy_array"}.get(type(held[0]).__name__, type(held[0]).__name__)
        )
        levels.append(resident_bytes())
        indexes = [self._build() for _ in range(copies)]
        levels.append(resident_bytes())
        entities, index = (max(0, after - before) / copies for before, after in pairwise(levels))
        found = {
            "entities_bytes": entities,
            "index_bytes": index,
            "bytes_per_entity": index / params.agent_count,
        }
        if params.track_memory_usage:
            found |= self._watch_use(indexes, levels[2])
        if params.track_garbage_collection:
            del indexes, held
            before = resident_bytes()
            found["collected_objects"] = gc.collect()
            found["collected_bytes"] = max(0, before - resident_bytes())
        return found

    def _watch_use(self, indexes: list[SpatialIndex], before: int) -> dict[str, float]:
        """What queries and moves leave behind in each index."""
        for index in indexes:
            for queries in self._workload.queries:
                queries.ask(index, self._workload.places)
        queried = resident_bytes()
        for index in indexes:
            self._workload.moves.apply(index, is_immediate=False)
        return {
            "queries_bytes": max(0, queried - before) / len(indexes),
            "updates_bytes": max(0, resident_bytes() - queried) / len(indexes),
        }


class SpatialPerformanceAnalyzerParams(SpatialParams):
    """Params with the places of queries and the analyses of the report."""

    query_pattern: QueryPattern = Field(
        default="random", description="Where queries are asked; `uniform` is a lattice."
    )
    analyze_complexity: bool = Field(
        default=True, description="Fit the power of the number of entities by which times grow."
    )
    analyze_scalability: bool = Field(
        default=True, description="Compare the largest world with the smallest."
    )
    analyze_memory_efficiency: bool = Field(
        default=True, description="Measure the memory of the index before anything is timed."
    )


class SpatialPerformanceAnalyzer(_SpatialExperiment):
    """How an index grows with the number of entities: sweep `agent_count`, and the report has the power and its interval.

    Memory is measured once in each process, in `setup`, as `spatial_memory_profiler` measures it.
    """

    Params = SpatialPerformanceAnalyzerParams
    list_params: ClassVar[Mapping[str, str]] = {**LISTS, "query_patterns": "query_pattern"}
    findings: ClassVar[Sequence[str]] = ("scaling",)
    metrics: ClassVar[Mapping[str, Metric]] = {
        **_lower("s", "build_seconds", "query_seconds", "update_seconds", "step_seconds"),
        **_lower("bytes", "bytes_per_entity"),
        "results_per_query": Metric("results_per_query"),
    }
    _memory: Mapping[str, float]

    def _query_types(self) -> tuple[QueryType, ...]:
        return ("radius",)

    def setup(self, context: ExperimentContext) -> None:
        super().setup(context)
        self._memory = {}
        if self.params.analyze_memory_efficiency:
            copies = max(1, ceil(_GROWN / self.params.agent_count))
            if context.isolation == "inline":
                context.remark(
                    "With 'isolation: inline' bytes_per_entity is counted too low, down to zero: the process takes what other trials "
                    "have freed before it grows. Run with 'isolation: process'."
                )
            grown = measure_growth(lambda: [self._build() for _ in range(copies)])
            self._memory = {"bytes_per_entity": grown / copies / self.params.agent_count}

    def execute_once(self, context: ExperimentContext) -> dict[str, float]:
        index, build = self._time_build()
        return {
            "build_seconds": build,
            "query_seconds": self._time_queries(index, 0),
            "update_seconds": self._time_updates(index, is_immediate=False),
            "step_seconds": self._time_steps(is_immediate=False),
            "results_per_query": self._workload.results[0] / self.params.queries,
            **self._memory,
        }


def _store_places(kind: str, workload: SpatialWorkload) -> Any:
    rows = workload.places.tolist()
    match kind:
        case "list":
            return [(x, y) for x, y in rows]
        case "dict":
            return {number: (x, y) for number, (x, y) in enumerate(rows)}
        case _:
            return workload.places.copy()


def measure_growth(make: Callable[[], Any]) -> int:
    """Measure by how many bytes the process grows while something is created and kept."""
    release_free_memory()
    before = resident_bytes()
    structure = make()
    grown = resident_bytes() - before
    del structure
    return max(0, grown)


def resident_bytes() -> int:
    from psutil import Process

    return int(Process().memory_info().rss)


def release_free_memory() -> None:
    """Give what was freed back to the system, so that taking it again shows as growth; where the C library cannot, do nothing."""
    import ctypes

    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
