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
POINTS = {
    "pragma_profile_baseline": 8,
    "pragma_profile_sweep": 4,
    "spatial_comprehensive_baseline": 12,
    "spatial_comprehensive_sweep": 8,
    "spatial_index_profiler_baseline": 9,
    "spatial_memory_profiler_baseline": 3,
    "spatial_performance_analyzer_baseline": 12,
    "database_profiler_baseline": 10,
    "comprehensive_profiling_sweep": 8,
}


@pytest.mark.parametrize("name", POINTS)
def test_a_spec_runs_unchanged(assay_inline: AssayInline, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spatial, "_GROWN", 100)
    shutil.copytree(SPECS, assay_inline.folder / "specs")

    done = assay_inline.run_inline(f"specs/{name}.yaml", "--json")

    assert [trial["counts"] for trial in done.json["trials"]] == [{"ok": 2}] * POINTS[name]
    assert not {warning["code"] for warning in done.json["warnings"]} & {
        "setting-not-taken",
        "identical-arms",
    }
    assert next((assay_inline.folder / "specs" / "benchmarks" / "results").rglob("SWEEP_SUMMARY.md"))


def test_the_spec_of_redis_runs_but_for_the_address(assay_inline: AssayInline) -> None:
    shutil.copytree(SPECS, assay_inline.folder / "specs")
    with redis_server() as url:
        done = assay_inline.run_inline("specs/redis_memory_baseline.yaml", "--set", f"url={url}", "--json")

    assert [trial["counts"] for trial in done.json["trials"]] == [{"ok": 2}]


def test_the_run_has_the_tags_of_its_experiments() -> None:
    plan = expand(load_spec(SPECS / "comprehensive_profiling_sweep.yaml"))

    assert plan.tags == ("comprehensive", "profiling", "sweep", "database", "pragma", "spatial", "baseline")


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
