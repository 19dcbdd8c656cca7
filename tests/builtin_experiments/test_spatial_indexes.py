from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.command import AssayInline

from assay.builtin.experiments import spatial, spatial_indexes
from assay.builtin.experiments.spatial_indexes import Algorithm, BruteForce, Quadtree, build_index
from assay.builtin.experiments.spatial_workloads import (
    Distribution,
    QueryType,
    WorkloadSize,
    WrongIndex,
    check_index,
    draw_workload,
    scatter,
)
from assay.errors import MissingExtra
from assay.plugin.experiment import ExperimentContext

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)
TYPES: tuple[QueryType, ...] = get_args(QueryType)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@settings(max_examples=12)
@given(
    entities=st.integers(1, 150),
    radius=st.sampled_from([0.5, 10.0, 400.0]),
    distribution=st.sampled_from(get_args(Distribution)),
    seed=st.integers(0, 1000),
)
def test_an_index_finds_what_brute_force_finds_before_and_after_moves(
    algorithm: Algorithm, entities: int, radius: float, distribution: Distribution, seed: int
) -> None:
    workload = draw_workload(WorkloadSize(entities, 100, radius, 10, 2, distribution), TYPES, seed)
    index = build_index(algorithm, workload.places, cell_size=radius, leaf_size=3)

    check_index(index, workload)

    index = build_index(algorithm, workload.places, cell_size=radius, leaf_size=3)
    assert index.describe()["algorithm"] == algorithm
    assert index.describe()["agent_count"] == entities
    assert workload.run_steps(index, is_immediate=bool(seed % 2)) > 0


@pytest.mark.parametrize("algorithm", ["sklearn_kd_tree", "sklearn_ball_tree"])
def test_the_leaf_size_is_that_of_the_tree(algorithm: Algorithm) -> None:
    pytest.importorskip("sklearn")
    places = np.random.default_rng(1).random((100, 2))
    assert build_index(algorithm, places, cell_size=1, leaf_size=7).describe()["leaf_size"] == 7


def test_entities_at_one_place_are_all_found() -> None:
    places = np.full((50, 2), 7.0)
    for algorithm in ALGORITHMS:
        index = build_index(algorithm, places, cell_size=1.0, leaf_size=2)
        assert sorted(map(int, index.radius(places[:1], 0.1)[0])) == list(range(50))


def test_an_entity_may_leave_the_square_in_which_the_quadtree_began() -> None:
    index, truth = (make(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 1.0]])) for make in (_quadtree, BruteForce))
    for one in (index, truth):
        one.move(np.array([1]), np.array([[-500.0, 900.0]]))
        one.move(np.array([2]), np.array([[800.0, -3.0]]))
        one.move(np.array([1, 2]), np.array([[-499.0, 900.0], [3.0, 1.0]]))

    centres = np.array([[-490.0, 905.0], [1.2, 1.0]])
    assert index.nearest(centres).tolist() == truth.nearest(centres).tolist()


def _quadtree(places: np.ndarray) -> Quadtree:
    return Quadtree(places, leaf_size=1)


def test_a_sparse_world_has_a_hundredth_of_the_density() -> None:
    uniform, sparse = (
        draw_workload(WorkloadSize(2000, 100, 5, 10, 1, distribution), ["radius"], 1).places
        for distribution in ("uniform", "sparse")
    )
    density = [len(places) / np.ptp(places, axis=0).prod() for places in (uniform, sparse)]
    assert density[0] / density[1] == pytest.approx(100, rel=0.05)


@pytest.mark.parametrize("distribution", get_args(Distribution))
def test_everyone_is_within_the_world(distribution: Distribution) -> None:
    places = scatter(distribution, 500, 10.0, np.random.default_rng(1))
    assert places.min() >= 0
    assert places.max() <= 10


def test_the_same_seed_draws_the_same_workload_in_another_process() -> None:
    code = (
        "from assay.builtin.experiments.spatial_workloads import *;"
        "print(draw_workload(WorkloadSize(50, 10, 1, 5, 2, 'clustered'), ['radius'], 7).digest)"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    here = [
        draw_workload(WorkloadSize(50, 10, 1, 5, 2, "clustered"), ["radius"], seed).digest for seed in (7, 8)
    ]
    assert other.strip() == here[0] != here[1]


def test_an_index_that_forgets_to_look_beyond_a_corner_is_found_out() -> None:
    class Careless(Quadtree):
        def _candidates(self, x0, y0, x1, y1):
            return super()._candidates(x0, y0, (x0 + x1) / 2, y1)

    workload = draw_workload(WorkloadSize(200, 100, 20, 20, 1), ["radius"], 1)
    with pytest.raises(WrongIndex, match="'quadtree' is wrong: query"):
        check_index(Careless(workload.places, 4), workload)


SMALL = ["--set", "agent_count=60", "--set", "steps=3", "--set", "queries=8"]
SLUGS = (
    "spatial_comprehensive",
    "spatial_index_profiler",
    "spatial_memory_profiler",
    "spatial_performance_analyzer",
)
MEMBERS = {
    "spatial_comprehensive": spatial.SpatialComprehensive,
    "spatial_index_profiler": spatial.SpatialIndexProfiler,
    "spatial_memory_profiler": spatial.SpatialMemoryProfiler,
    "spatial_performance_analyzer": spatial.SpatialPerformanceAnalyzer,
}


@pytest.fixture(autouse=True)
def few_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index is built less often for its memory than it takes to know that well."""
    monkeypatch.setattr(spatial, "_GROWN", 500)


@pytest.mark.parametrize("slug", SLUGS)
def test_every_index_meets_the_same_workload_and_says_what_it_is(
    assay_inline: AssayInline, slug: str
) -> None:
    done = assay_inline.run_inline(
        slug, *SMALL, "--sweep", "algorithm=kd_tree,quadtree,spatial_hash", "--json"
    )

    trials = done.json["trials"]
    assert [trial["counts"] for trial in trials] == [{"ok": 1}] * 3
    assert [trial["applied"]["algorithm"] for trial in trials] == ["kd_tree", "quadtree", "spatial_hash"]
    assert len({trial["applied"]["workload"] for trial in trials}) == 1
    assert not {warning["code"] for warning in done.json["warnings"]} & {
        "setting-not-taken",
        "identical-arms",
    }
    measured = {name for trial in trials for name in trial["metrics"]}
    assert measured >= set(MEMBERS[slug].metrics)


def test_a_wrong_index_fails_its_executions_and_no_others(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spatial_indexes.SpatialHash, "_within", lambda self, x, y, radius: [0])

    done = assay_inline.run_inline(
        "spatial_comprehensive", *SMALL, "--sweep", "algorithm=quadtree,spatial_hash", "--json"
    )

    trials = assay_inline("show", "last", "--json").json["trials"]
    assert done.code == 1
    assert [trial["counts"] for trial in trials] == [{"ok": 1}, {"failed": 1}]
    assert re.search(r"WrongIndex: .*'spatial_hash'.* 1 ", done.out)


def test_an_index_that_is_not_the_one_asked_for_is_reported(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = spatial_indexes.build_index
    monkeypatch.setattr(
        spatial, "build_index", lambda algorithm, places, **sizes: build("quadtree", places, **sizes)
    )

    done = assay_inline.run_inline(
        "spatial_index_profiler", *SMALL, "--sweep", "algorithm=quadtree,spatial_hash", "--json"
    )

    [doubt] = [warning for warning in done.json["warnings"] if warning["code"] == "setting-not-taken"]
    assert re.findall(r"'([a-z_]+)'", doubt["message"]) == ["algorithm", "spatial_hash", "quadtree"]


@pytest.mark.parametrize(
    ("slug", "isolation", "remarks"),
    [
        ("spatial_memory_profiler", "inline", 1),
        ("spatial_memory_profiler", "process", 1),
        ("spatial_memory_profiler", "cold", 0),
        ("spatial_performance_analyzer", "inline", 1),
        ("spatial_performance_analyzer", "process", 0),
    ],
)
def test_memory_of_a_process_that_has_freed_some_is_doubted(
    tmp_path: Path, slug: str, isolation: str, remarks: int
) -> None:
    context = ExperimentContext("run-1", tmp_path, seed=7, isolation=isolation)
    experiment = MEMBERS[slug]()
    experiment.params = MEMBERS[slug].Params(agent_count=20, steps=1, queries=2)
    experiment.setup(context)
    experiment.execute_once(context)
    assert len(context.remarks) == remarks


def test_memory_counts_what_libraries_in_c_allocate(assay_inline: AssayInline) -> None:
    words = ["--set", "agent_count=20000", "--sweep", "algorithm=kd_tree,quadtree", "--isolation", "cold"]
    done = assay_inline("run", "spatial_memory_profiler", *SMALL[2:], *words, "--json")

    tree, quadtree = (trial["metrics"]["bytes_per_entity"]["median"] for trial in done.json["trials"])
    assert 16 < tree < 120  # two coordinates and a number, with the nodes above them
    assert quadtree > tree


def test_the_analyzer_fits_the_growth_of_a_known_power(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        spatial.SpatialPerformanceAnalyzer,
        "execute_once",
        lambda self, context: {
            "build_seconds": 1e-9 * self.params.agent_count**1.5,
            "query_seconds": 3e-6,
            "bytes_per_entity": 100.0,
        },
    )

    done = assay_inline.run_inline(
        "spatial_performance_analyzer", *SMALL[2:], "--sweep", "agent_count=100,1000,10000", "--json"
    )

    [series] = done.json["scaling"]
    build, query = series["metrics"]["build_seconds"], series["metrics"]["query_seconds"]
    assert series["sizes"] == [100, 1000, 10000]
    assert build["exponent"] == pytest.approx(1.5, abs=0.02)
    assert build["exponent_interval"][0] <= 1.5 <= build["exponent_interval"][1]
    assert build["ratio"] == pytest.approx(1000)
    assert query["exponent"] == pytest.approx(0, abs=0.01)


BOTH = """
experiments:
  - {experiment: spatial_index_profiler}
  - {experiment: spatial_performance_analyzer, params: {algorithm: quadtree}}
params: {steps: 1, queries: 2, agent_counts: [10, 20, 40, 80]}
"""


def test_two_experiments_of_one_run_have_their_growth_in_one_section(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One series lost its largest size, so that the ends are not the same for all."""
    monkeypatch.setattr(spatial.SpatialIndexProfiler, "execute_once", quick_unless_large)
    monkeypatch.setattr(spatial.SpatialPerformanceAnalyzer, "execute_once", quick_unless_large)
    assay_inline.write("both.yaml", BOTH)

    assay_inline.run_inline("both.yaml", "--report", "json,md", "--out", "report")
    document, page = (assay_inline.folder / "report" / name for name in ("result.json", "report.md"))

    found = [
        (one["benchmark"], one["settings"], one["sizes"])
        for one in json.loads(document.read_text())["scaling"]
    ]
    assert found == [
        ("spatial_index_profiler", {}, [10, 20, 40, 80]),
        ("spatial_performance_analyzer", {}, [10, 20, 40]),
    ]
    text = page.read_text(encoding="utf-8").replace("\\", "")
    assert text.count("## Growth with the number of entities") == 1
    assert "spatial_performance_analyzer: all (10 to 40 entities)" in text
    assert "at 80 entities" not in text


def quick_unless_large(self: Any, context: object) -> dict[str, float]:
    if (self.params.algorithm, self.params.agent_count) == ("quadtree", 80):
        raise MemoryError
    return {"build_seconds": 1e-6 * self.params.agent_count, "query_seconds": 2e-6}


def test_two_sizes_are_too_few_for_a_power(assay_inline: AssayInline) -> None:
    done = assay_inline.run_inline(
        "spatial_performance_analyzer", *SMALL[2:], "--sweep", "agent_count=20,40", "--json"
    )

    assert "scaling" not in done.json


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("query_radius: 0", "query_radius"),
        ("world_size: -5", "world_size"),
        ("world_size: .inf", "world_size"),
        ("query_radii: [10, .inf]", "query_radii"),
        ("agent_count: 0", "agent_count"),
        ("agent_counts: [10, many]", "agent_counts"),
        ("algorithms: [quadtree, octree]", "algorithms"),
        ("algorithms: []", "algorithms"),
        ("steps: a lot", "steps"),
        ("colour: red", "colour"),
    ],
)
def test_a_wrong_param_is_refused_with_file_line_and_key(
    assay_inline: AssayInline, line: str, key: str
) -> None:
    assay_inline.write("spec.yaml", f"experiment: spatial_comprehensive\nparams:\n  queries: 5\n  {line}\n")

    refusal = assay_inline("run", "spec.yaml").refusal

    assert f"spec.yaml:4: params.{key}" in refusal
    assert len(refusal.strip().splitlines()) == 1


def test_one_entity_is_enough(assay_inline: AssayInline) -> None:
    done = assay_inline.run_inline("spatial_comprehensive", *SMALL[2:], "--set", "agent_count=1", "--json")
    assert done.json["trials"][0]["counts"] == {"ok": 1}


@pytest.mark.parametrize(("algorithm", "module", "told"), [
    ("kd_tree", "scipy.spatial", "assay-bench[simulation]"),
    ("sklearn_kd_tree", "sklearn", "scikit-learn"),
])  # fmt: skip
def test_without_its_package_an_index_says_what_to_install(
    algorithm: Algorithm, module: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as missing:
        build_index(algorithm, np.zeros((2, 2)), cell_size=1.0, leaf_size=4)
    assert told in str(missing.value)
