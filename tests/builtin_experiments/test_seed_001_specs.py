"""Spec files with the keys of seed 001's own run unchanged: a list under the plural of a param is an axis."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.builtin_experiments.redis_server import redis_server
from tests.command import AssayInline

from assay.builtin.experiments import spatial
from assay.plan.expand import expand
from assay.spec.read import load_spec

SPECS = Path(__file__).parent / "seed_001_specs"
TRIALS = {
    "comprehensive_profiling_sweep": (22, 2),
    "database_profiler_baseline": (20, 1),
    "memory_db_baseline": (1, 1),
    "memory_db_sweep": (1, 2),
    "observation_baseline": (1, 1),
    "observation_profiler_baseline": (1, 2),
    "observation_sweep": (4, 2),
    "perception_metrics_baseline": (1, 1),
    "perception_metrics_sweep": (16, 1),
    "pragma_profile_baseline": (12, 1),
    "pragma_profile_sweep": (4, 2),
    "spatial_comprehensive_baseline": (24, 1),
    "spatial_comprehensive_sweep": (16, 1),
    "spatial_index_profiler_baseline": (18, 1),
    "spatial_memory_profiler_baseline": (9, 1),
    "spatial_performance_analyzer_baseline": (24, 1),
    "system_profiler_baseline": (1, 2),
}
"""How many trials each has, and how many executions each of them."""


@pytest.mark.parametrize("name", TRIALS)
def test_a_spec_runs_unchanged(assay_inline: AssayInline, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial, "_GROWN", 10)
    # Takes long in a process as large as that of all tests, and no figure of memory is read here.
    monkeypatch.setattr(spatial, "release_free_memory", lambda: None)
    shutil.copytree(SPECS, assay_inline.folder / "specs")

    done = assay_inline.run_inline(f"specs/{name}.yaml", "--json")

    trials, executions = TRIALS[name]
    assert [trial["counts"] for trial in done.json["trials"]] == [{"ok": executions}] * trials
    assert not {warning["code"] for warning in done.json["warnings"]} & {
        "setting-not-taken",
        "identical-arms",
    }
    results = assay_inline.folder / "specs" / "benchmarks" / "results"
    assert next(results.rglob("SWEEP_SUMMARY.md" if trials > 1 else "README.md"))


def test_the_spec_of_redis_runs_but_for_the_address(assay_inline: AssayInline) -> None:
    shutil.copytree(SPECS, assay_inline.folder / "specs")
    with redis_server() as url:
        done = assay_inline.run_inline("specs/redis_memory_baseline.yaml", "--set", f"url={url}", "--json")

    assert [trial["counts"] for trial in done.json["trials"]] == [{"ok": 1}]


def test_the_run_has_the_tags_of_its_experiments() -> None:
    plan = expand(load_spec(SPECS / "comprehensive_profiling_sweep.yaml"))

    own = ("comprehensive", "profiling", "sweep")
    assert plan.tags == (*own, "database", "baseline", "pragma", "perception", "spatial")


def test_a_list_is_refused_beside_the_param_that_it_lists(assay_inline: AssayInline) -> None:
    assay_inline.write(
        "twice.yaml",
        "experiment: pragma_profile\nparams:\n  profile: safety\n  profiles: [balanced, memory]\n",
    )

    refusal = assay_inline("run", "twice.yaml").refusal

    assert "twice.yaml:4: params.profiles" in refusal


def test_one_value_of_a_list_is_no_axis(assay_inline: AssayInline) -> None:
    done = assay_inline.run_inline(
        "pragma_profile", "--set", 'profiles=["safety"]', "--set", "num_records=20", "--json"
    )

    [trial] = done.json["trials"]
    assert (trial["name"], trial["parameters"]["profile"]) == ("pragma_profile", "safety")
