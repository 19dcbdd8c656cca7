"""What the experiments on spatial indexes add to SciPy: a batch of queries through our index, beside the same call to cKDTree."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from arms import interleaved
from record import Bound, Promise, Result, figure, ratio
from scipy.spatial import cKDTree

from assay.builtin.experiments.spatial_indexes import build_index
from assay.builtin.experiments.spatial_workloads import WorkloadSize, draw_workload

QUERIES = Promise(
    "kd-tree-queries",
    "Time of a radius query in the index `kd_tree`, 10,000 entities",
    Bound.AT_MOST,
    1.3,
    "times",
    "that of calling SciPy's cKDTree",
)
_SIZE = WorkloadSize(entities=10_000, side=1000, radius=20, queries=1000, steps=1)


def measure(quick: bool) -> list[Result]:
    workload = draw_workload(_SIZE, ["radius"], 42)
    (queries,) = workload.queries
    index = build_index("kd_tree", workload.places, cell_size=20, leaf_size=16)
    tree = cKDTree(workload.places, leafsize=16)
    arms: dict[str, Callable[[], object]] = {
        "ours": lambda: queries.ask(index, workload.places),
        "scipy": lambda: tree.query_ball_point(queries.centres, queries.radius),
    }
    seconds = interleaved({name: _timed(call) for name, call in arms.items()}, 20 if quick else 100)
    return [
        Result(
            QUERIES,
            "s",
            figure(seconds["ours"]),
            ratio(seconds["ours"], seconds["scipy"]),
            {"SciPy": figure(seconds["scipy"])},
            values=seconds,
        )
    ]


def _timed(call: Callable[[], object]) -> Callable[[], float]:
    def measure_one() -> float:
        began = perf_counter()
        call()
        return (perf_counter() - began) / _SIZE.queries

    return measure_one
