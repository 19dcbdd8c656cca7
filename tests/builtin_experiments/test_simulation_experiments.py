"""The experiments that run the simulated world, as a user runs them."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.command import Assay, AssayInline
from tests.wording import Wording

from assay.builtin.experiments import memory_db, observation_flow
from assay.builtin.experiments.memory_db import MemoryDb
from assay.builtin.experiments.observation_flow import FLOW_METRICS, read_settings
from assay.builtin.experiments.observation_profiler import ObservationProfiler
from assay.builtin.experiments.system_profiler import SystemProfiler, SystemProfilerParams, SystemWatch
from assay.builtin.instruments.sampling import Samples
from assay.simulation import Perception, SimulationConfig, World
from assay.simulation.run import SimulationResult, simulate

TINY = ["--set", "num_agents=9", "--set", "width=20", "--set", "height=20"]
QUICK = ["--warmup", "0", "--processes", "1", "--isolation", "inline", "--json", "-q"]


def run(assay: Assay, *words: str) -> list[dict[str, Any]]:
    trials: list[dict[str, Any]] = assay("run", *words, *QUICK).json["trials"]
    return trials


def values(trial: dict[str, Any]) -> dict[str, float]:
    return {name: found["median"] for name, found in trial["metrics"].items() if name != "seconds"}


def codes(assay: Assay) -> list[str]:
    return [warning["code"] for warning in assay("show", "last", "--json").json["warnings"]]


def executions(assay: Assay) -> list[dict[str, Any]]:
    """Those of the only trial of the last run."""
    assay("report", "last", "--format", "json", "--out", "report")
    (file,) = (assay.folder / "report").glob("*.json")
    (trial,) = json.loads(file.read_text(encoding="utf-8"))["trials"]
    found: list[dict[str, Any]] = trial["iteration_metrics"]
    return found


def test_memory_db_runs_every_leg_and_relates_them(assay_inline: AssayInline) -> None:
    (trial,) = run(assay_inline, "memory_db", *TINY, "--set", "num_steps=5", "--repetitions", "1")
    found = values(trial)
    assert set(found) == set(MemoryDb.metrics)
    assert found["disk_to_memory_speedup"] == pytest.approx(found["disk_time"] / found["memory_time"])
    assert found["simulation_seconds"] == pytest.approx(
        found["disk_time"] + found["memory_time"] + found["memory_persist_time"]
    )
    assert trial["applied"]["mode"] == "all"
    kept = trial["applied"]["kept_rows"]
    assert kept["memory"] == 0 < kept["disk"] == kept["memory_persist"]
    assert codes(assay_inline).count("setting-not-taken") == 0


def test_the_modes_of_memory_db_are_arms_that_differ(assay_inline: AssayInline) -> None:
    axes = ["--sweep", "mode=disk,memory,memory_persist"]
    trials = run(assay_inline, "memory_db", *TINY, "--set", "num_steps=3", *axes)
    assert [trial["applied"]["mode"] for trial in trials] == ["disk", "memory", "memory_persist"]
    assert {"setting-not-taken", "identical-arms"}.isdisjoint(codes(assay_inline))


def always_on_disk(config: SimulationConfig, database: Path) -> SimulationResult:
    """As the original of this experiment did: the setting is there, and nothing reads it."""
    on_disk = config.model_copy(update={"use_in_memory_db": False, "persist_db_on_completion": False})
    return simulate(on_disk, database)


@pytest.mark.parametrize("axes", [["--sweep", "mode=disk,memory"], []])
def test_a_mode_that_has_no_effect_is_found_out(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, axes: list[str], wording: Wording
) -> None:
    monkeypatch.setattr(memory_db, "simulate", always_on_disk)
    run(assay_inline, "memory_db", *TINY, "--set", "num_steps=3", *axes)
    warnings = assay_inline("show", "last", "--json").json["warnings"]
    (ignored,) = [warning for warning in warnings if warning["code"] == "setting-not-taken"]
    wording(ignored["message"])


def test_a_batch_size_that_has_no_effect_is_found_out(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def with_one_size(config: SimulationConfig, database: Path) -> SimulationResult:
        return simulate(config.model_copy(update={"buffer_size": 500}), database)

    words = [
        "memory_db",
        *TINY,
        "--set",
        "num_steps=5",
        "--set",
        "mode=memory",
        "--sweep",
        "buffer_size=5,500",
    ]
    run(assay_inline, *words)
    assert {"setting-not-taken", "identical-arms"}.isdisjoint(codes(assay_inline))
    monkeypatch.setattr(memory_db, "simulate", with_one_size)
    run(assay_inline, *words)
    assert "setting-not-taken" in codes(assay_inline)


@pytest.mark.parametrize("ignored", ["use_in_memory_db", "flush_frequency"])
def test_a_setting_that_only_the_first_batch_ignores_is_found_out(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch, ignored: str
) -> None:
    def ignore(config: SimulationConfig, database: Path) -> SimulationResult:
        wrong = {"use_in_memory_db": False, "flush_frequency": 50}[ignored]
        update = {ignored: wrong} if config.buffer_size == 10 else {}
        return simulate(config.model_copy(update=update), database)

    monkeypatch.setattr(memory_db, "simulate", ignore)
    parts = "parameters={buffer_sizes: [10, 100], flush_frequencies: [20], test_persistence: false}"
    run(assay_inline, "memory_db", *TINY, "--set", "num_steps=5", "--set", parts)
    assert codes(assay_inline).count("setting-not-taken") == 1


def test_each_combination_of_batches_has_its_own_figures(assay_inline: AssayInline) -> None:
    parts = "parameters={buffer_sizes: [10, 100], flush_frequencies: 50, test_persistence: false}"
    (trial,) = run(assay_inline, "memory_db", *TINY, "--set", "num_steps=3", "--set", parts)
    found = values(trial)
    assert "memory_persist_time" not in found
    times = [found[f"buffer_{size}.flush_50.disk_time"] for size in (10, 100)]
    assert found["disk_time"] == pytest.approx(sum(times))


def test_observation_flow_has_every_figure(assay_inline: AssayInline) -> None:
    (trial,) = run(assay_inline, "observation_flow", *TINY, "--set", "steps=4", "--set", "radius=3")
    found = values(trial)
    assert set(found) == set(FLOW_METRICS)
    assert (found["total_observes"], found["num_agents"], found["steps"]) == (36, 9, 4)
    assert found["obs_dense_bytes"] == 13 * 7 * 7 * 4
    assert (found["obs_cache_hit_rate"], found["obs_dense_rebuilds"]) == (0.5, 36)
    assert 50 < found["obs_memory_reduction_percent"] < 100
    assert found["observes_per_sec"] == pytest.approx(36 / found["total_time_s"])
    assert trial["applied"] == {
        "num_agents": 9,
        "radius": 3,
        "fov_radius": 3,
        "storage_mode": "hybrid",
        "use_bilinear": True,
        "channels": 13,
        "steps": 4,
    }


@pytest.mark.parametrize("mode", ["dense", "sparse", "hybrid"])
@pytest.mark.parametrize("bilinear", ["true", "false"])
def test_storage_and_interpolation_are_read_back(assay_inline: AssayInline, mode: str, bilinear: str) -> None:
    words = ["--set", f"storage_mode={mode}", "--set", f"use_bilinear={bilinear}", "--set", "steps=1"]
    (trial,) = run(assay_inline, "observation_flow", *TINY, *words)
    assert (trial["applied"]["storage_mode"], trial["applied"]["use_bilinear"]) == (mode, bilinear == "true")


def test_without_resources_nobody_can_tell_how_they_are_placed(assay_inline: AssayInline) -> None:
    small = ("--set", "width=5", "--set", "height=5", "--set", "num_agents=2", "--set", "steps=1")
    done = assay_inline.run_inline("observation_flow", *small, "--json").json
    codes = {warning["code"] for warning in done["warnings"]}
    assert codes & {"setting-not-taken", "setting-not-told"} == {"setting-not-told"}


@pytest.mark.parametrize(
    ("experiment", "axis"),
    [
        ("observation_flow", "fov_radius=2,4"),
        ("observation_flow", "steps=1,2"),
        ("system_profiler", "sampling_interval=0.01,0.02"),
    ],
)
def test_an_axis_that_nothing_tells_of_makes_no_arms_identical(
    assay_inline: AssayInline, experiment: str, axis: str
) -> None:
    steps = [] if axis.startswith("steps") else ["--set", "steps=1"]
    run(assay_inline, experiment, *TINY, *steps, "--sweep", axis, "--repetitions", "1")
    assert {"setting-not-taken", "setting-not-told", "identical-arms"}.isdisjoint(codes(assay_inline))


@pytest.mark.parametrize(("asked", "told"), [(1, 1), (2, 2), (3, 3), (4, 4), (5, None)])
def test_how_far_is_seen_is_read_back_from_what_is_visible(asked: int, told: int | None) -> None:
    """With a radius of 3, the whole window is visible from 5 on."""
    world = World(SimulationConfig(width=20, height=20, num_agents=2, initial_resources=4))
    assert read_settings(Perception(world, 3, asked))["fov_radius"] == told


def test_a_field_of_view_that_has_no_effect_is_found_out(
    assay_inline: AssayInline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        observation_flow,
        "Perception",
        lambda world, radius, fov_radius, *others: Perception(world, radius, None, *others),
    )
    run(assay_inline, "observation_flow", *TINY, "--set", "steps=1", "--sweep", "fov_radius=2,6")
    assert codes(assay_inline).count("setting-not-taken") == 1


def test_perception_metrics_covers_the_grid(assay_inline: AssayInline) -> None:
    words = ["--set", "agent_counts=[5, 8]", "--set", "radii=[2, 3]", "--set", "steps=1"]
    (trial,) = run(assay_inline, "perception_metrics", *words)
    points = [
        name
        for name in values(trial)
        if re.fullmatch(r"agents_\d+\.radius_\d\.\w+\.\w+\.observes_per_sec", name)
    ]
    assert len(points) == 16
    assert values(trial)["total_observes"] == 8 * (5 + 8)
    assert codes(assay_inline).count("setting-not-taken") == 0
    (execution,) = executions(assay_inline)
    runs = execution["output"]["runs"]
    assert len(runs) == 16
    assert {(one["agents"], one["R"]) for one in runs} == {(5, 2), (5, 3), (8, 2), (8, 3)}


def test_a_point_of_a_perception_sweep_has_all_figures(assay_inline: AssayInline) -> None:
    words = ["agent_counts=5", "radii=2", "storage_modes=dense", "use_bilinear_list=false", "steps=1"]
    (trial,) = run(assay_inline, "perception_metrics", *(word for one in words for word in ("--set", one)))
    assert set(values(trial)) == set(FLOW_METRICS)


def test_the_observation_profiler_splits_the_time_and_fits_its_growth(assay_inline: AssayInline) -> None:
    words = ["--set", "agent_counts=[5, 10, 20]", "--set", "radii=[2, 3, 4]", "--set", "steps=2"]
    (trial,) = run(assay_inline, "observation_profiler", *TINY, *words)
    found = values(trial)
    assert set(ObservationProfiler.metrics) <= set(found)
    assert found["agents_exponent_low"] <= found["agents_exponent"] <= found["agents_exponent_high"]
    shares = [value for name, value in found.items() if name.startswith("share.")]
    assert sum(shares) == pytest.approx(100)
    assert {"agents_5.observes_per_sec", "agents_20.mean_step_time_s", "radius_4.observes_per_sec"} <= set(
        found
    )


def test_the_system_profiler_samples_during_the_run(assay_inline: AssayInline) -> None:
    words = ["--set", "steps=60", "--set", "num_agents=300", "--set", "monitor_network=true"]
    (trial,) = run(assay_inline, "system_profiler", *words, "--set", "sampling_interval=0.002")
    found = values(trial)
    assert set(found) == set(SystemProfiler.metrics)
    assert found["samples"] >= 5
    assert 0 < found["sampling_percent"] < 100
    assert 0 < found["cpu_percent"] <= found["cpu_percent_max"] + 1
    assert found["memory_peak_mb"] >= found["memory_before_mb"]


def test_the_peak_of_memory_is_that_of_all_samples_and_not_only_of_those_kept() -> None:
    watch = SystemWatch(SystemProfilerParams())
    first = watch.take()
    held = bytearray(b"x") * 50_000_000
    watch.take()  # a sample that was thinned out
    del held
    last = watch.take()
    found = watch.compute(Samples([first, last], 3), 10)
    assert found["memory_peak_mb"] > found["memory_before_mb"] + 40


def test_too_few_samples_are_admitted_and_what_is_not_watched_is_left_out(assay_inline: AssayInline) -> None:
    off = [f"monitor_{name}=false" for name in ("cpu", "memory", "disk")]
    words = [word for one in (*off, "steps=1", "sampling_interval=10") for word in ("--set", one)]
    (trial,) = run(assay_inline, "system_profiler", *TINY, *words, "--repetitions", "2")
    assert {"cpu_percent", "memory_peak_mb", "disk_read_bytes", "machine_network_bytes"}.isdisjoint(
        values(trial)
    )
    warnings = assay_inline("show", "last", "--json").json["warnings"]
    assert len([warning for warning in warnings if "samples" in warning["message"]]) == 1


@pytest.mark.parametrize(
    ("experiment", "setting", "named"),
    [
        ("memory_db", "num_agents=-1", "num_agents"),
        ("memory_db", "num_agents=20000", "20,000 agents"),
        ("memory_db", "mode=tape", "mode"),
        ("memory_db", "parameters={buffer_sizes: [0]}", "parameters"),
        ("memory_db", "parameters={test_ram: true}", "test_ram"),
        ("observation_flow", "radius=0", "radius"),
        ("observation_flow", "device=cuda", "device"),
        ("observation_flow", "width=wide", "width"),
        ("perception_metrics", "radii=[5, 0]", "radii"),
        ("perception_metrics", "agent_counts=[]", "agent_counts"),
        ("perception_metrics", "agent_counts=[1000000]", "agent_counts"),
        ("observation_profiler", "agent_counts=[5]", "agent_counts"),
        ("observation_profiler", "agent_counts=[5, 50000]", "agent_counts"),
        ("system_profiler", "sampling_interval=0", "sampling_interval"),
        ("system_profiler", "agents=5", "agents"),
    ],
)
def test_impossible_params_are_refused(
    assay_inline: AssayInline, experiment: str, setting: str, named: str, wording: Wording
) -> None:
    refusal = assay_inline("run", experiment, "--set", setting).refusal
    assert named in refusal
    wording(refusal)


FULL = """
import resource
from assay.builtin.experiments.memory_db import MemoryDb

class Full(MemoryDb):
    \"\"\"On a disk with room for 100 kB.\"\"\"
    slug = "full"
    def setup(self, context):
        super().setup(context)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits differ")
def test_a_full_disk_fails_the_execution_with_one_clear_text(assay_inline: AssayInline) -> None:
    assay_inline.write("full.py", FULL)
    words = ["--set", "num_steps=40", "--set", "db_pragma_profile=memory"]
    assay_inline("run", "full.py::Full", *words, "--json", "-q")
    (trial,) = assay_inline("show", "last", "--json").json["trials"]
    assert set(trial["counts"]) == {"failed"}
    first = executions(assay_inline)[0]["error"].splitlines()[0]
    assert first.startswith("LogFailed: The log ")
    assert "SQLITE_IOERR_WRITE" in first
