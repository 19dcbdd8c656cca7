from __future__ import annotations

from importlib import import_module
from importlib.resources import files
from pathlib import Path

import pytest
from tests.builtin_experiments.redis_server import redis_server
from tests.command import AssayInline
from tests.wording import Wording

from assay.builtin.experiments import spatial
from assay.plan.expand import expand
from assay.plan.target import Registry, RunRequest, plan_target
from assay.plugin import lookup
from assay.plugin.params import list_params
from assay.simulation.pragmas import PROFILES
from assay.simulator import SimOptions, SimServer
from assay.spec.read import load_spec
from assay.spec.settings import Settings

SPECS = sorted(Path(str(files("assay.builtin"))).glob("specs/*.yaml"))


ROOT = Path(__file__).parents[2]
POINT = ("queries=2", "steps=1")
SMALL: dict[str, tuple[int, dict[str, tuple[str, ...]]]] = {
    "algorithm_comparison": (4, {"algorithm": ("backend=stub", "episodes=2")}),
    "comprehensive_profiling_sweep": (
        32,
        {
            "memory_db": ("num_steps=2",),
            "pragma_profile": ("num_records=20", "db_size_mb=0.1"),
            "database_profiler": ("num_records=1000",),
            "spatial_comprehensive": ("agent_counts=[20]", *POINT),
            "spatial_index_profiler": ("agent_counts=[20]", *POINT),
            "spatial_memory_profiler": ("agent_counts=[20]", *POINT),
            "spatial_performance_analyzer": ("agent_counts=[10, 20, 40]", *POINT),
            "perception_metrics": ("steps=1", "agent_counts=[5]"),
            "observation_profiler": ("steps=1", "agent_counts=[5, 10]", "radii=[2, 3]"),
            "system_profiler": ("steps=2",),
        },
    ),
    "database_profiler_baseline": (12, {"database_profiler": ("num_records=1000",)}),
    "memory_db_baseline": (1, {"memory_db": ("num_steps=2",)}),
    "memory_db_sweep": (6, {"memory_db": ("num_steps=2",)}),
    "noop": (1, {}),
    "observation_baseline": (1, {"observation_flow": ("steps=1",)}),
    "observation_profiler_baseline": (1, {"observation_profiler": ("steps=1", "agent_counts=[5, 9]")}),
    "observation_sweep": (4, {"observation_flow": ("steps=1",)}),
    "perception_metrics_baseline": (1, {"perception_metrics": ("steps=1", "agent_counts=[5, 9]")}),
    "perception_metrics_sweep": (8, {"perception_metrics": ("steps=1", "agent_counts=5")}),
    "pragma_profile_baseline": (1, {"pragma_profile": ("num_records=20",)}),
    "pragma_profile_sweep": (12, {"pragma_profile": ("num_records=20", "db_size_mb=0.1")}),
    "redis_memory_baseline": (1, {"redis_memory": ("memory_entries=50", "num_agents=2")}),
    "spatial_comprehensive_baseline": (3, {"spatial_comprehensive": ("agent_counts=[20]", *POINT)}),
    "spatial_comprehensive_sweep": (9, {"spatial_comprehensive": ("agent_count=20", *POINT)}),
    "spatial_index_profiler_baseline": (12, {"spatial_index_profiler": ("agent_counts=[20]", *POINT)}),
    "spatial_memory_profiler_baseline": (6, {"spatial_memory_profiler": ("agent_counts=[20, 40]", *POINT)}),
    "spatial_performance_analyzer_baseline": (
        9,
        {"spatial_performance_analyzer": ("agent_counts=[10, 20, 40]", *POINT)},
    ),
    "system_profiler_baseline": (1, {"system_profiler": ("steps=2",)}),
}
"""By the name of the spec: how many trials it has, and what makes each experiment small."""
RUN_ELSEWHERE = {
    "agent_components": "test_agent_components runs it whole",
    "framework_comparison": "tests/rl runs it, with frameworks that take long to import",
    "serving_sweep": "below, as it needs a model server",
}


def test_every_shipped_spec_runs_in_a_test() -> None:
    assert {path.stem for path in SPECS} == SMALL.keys() | RUN_ELSEWHERE.keys()


@pytest.mark.parametrize("name", SMALL)
def test_a_shipped_spec_runs_and_every_setting_takes_effect(
    assay_inline: AssayInline, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spatial, "_GROWN", 100)
    monkeypatch.setattr(spatial, "release_free_memory", lambda: None)
    number, settings = SMALL[name]
    words = [word for slug, each in settings.items() for one in each for word in ("--set", f"{slug}.{one}")]
    once = ("--repetitions", "1", "--warmup", "0", "--processes", "1")
    if name.startswith("redis_"):
        with redis_server() as url:
            done = assay_inline.run_inline(name, *words, "--set", f"url={url}", *once, "--json").json
    else:
        done = assay_inline.run_inline(name, *words, *once, "--json").json

    assert [trial["counts"] for trial in done["trials"]] == [{"ok": 1}] * number
    assert {"setting-not-taken", "identical-arms"}.isdisjoint(one["code"] for one in done["warnings"])


def test_every_shipped_spec_runs_at_full_size_in_the_benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    packs = import_module("packs.specs")

    run = [name for names in packs.PACKS.values() for name in names]
    assert sorted([*run, *packs.LEFT_OUT]) == [path.stem for path in SPECS]


def test_every_shipped_spec_is_named_on_a_page() -> None:
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    assert [path.stem for path in SPECS if f"`{path.stem}`" not in pages] == []


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.stem)
def test_a_shipped_spec_can_be_planned(path: Path):
    experiments = {trial.experiment for trial in expand(load_spec(path)).trials}
    subject = path.stem.removesuffix("_baseline").removesuffix("_sweep").removesuffix("_comparison")
    assert len(experiments) > 1 or experiments.pop().startswith(subject)


def test_the_sweep_crosses_every_profile_with_every_workload():
    (path,) = [path for path in SPECS if path.stem == "pragma_profile_sweep"]
    points = {(trial.axes["profile"], trial.axes["workload"]) for trial in expand(load_spec(path)).trials}
    assert len(points) == 12
    assert {profile for profile, _ in points} == set(PROFILES)


def test_the_sweep_over_a_server_has_the_baseline_and_eighteen_other_points(
    assay_inline: AssayInline,
) -> None:
    with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2), in_thread=True) as server:
        words = ["--set", f"url={server.url}", "--processes", "1", "--isolation", "inline"]
        done = assay_inline("run", "serving_sweep", *words, "--report", "serving", "--out", "out", "--json")

    trials = done.json["trials"]
    assert [trial["counts"] for trial in trials] == [{"ok": 1}] * 19
    assert [trial["parameters"]["profile"] for trial in trials] == ["baseline"] + ["chimera"] * 18
    assert len(list((assay_inline.folder / "out").glob("*/reports/comparison_report.md"))) == 18


LISTED = {
    (path.stem, located.entry.experiment, name, param): value
    for path in SPECS
    for located in load_spec(path).entries
    for name, param in list_params(lookup.find("experiments", located.entry.experiment)).items()
    for value in ({**located.entry.params, **located.entry.sweep}.get(key) for key in (name, param))
    if value is not None
}
"""What shipped specs give of the params that have a name for lists."""


@pytest.mark.parametrize(("spec", "experiment", "name", "param"), LISTED)
def test_a_param_is_replaced_under_either_of_its_names(
    spec: str, experiment: str, name: str, param: str
) -> None:
    written = LISTED[spec, experiment, name, param]
    value = written[-1] if isinstance(written, list) else written
    for key, section, given in (
        (param, "params", value),
        (name, "params", value),
        (name, "params", [value]),
        (name, "sweep", [value]),
        (param, "sweep", [value]),
    ):
        request = RunRequest(spec, changes={section: {f"{experiment}.{key}": given}})
        plan = plan_target(request, Settings(Path.cwd(), "sqlite://"), Registry())
        own = [trial.params[param] for trial in plan.trials if trial.experiment == experiment]
        assert set(own) == {value}
        assert len(own) > 0


def test_a_param_that_is_given_under_both_names_is_refused_where_it_was_given(
    assay_inline: AssayInline, wording: Wording
) -> None:
    words = ("--set", "agent_count=100", "--set", "agent_counts=[100]", "--dry-run")
    refusal = assay_inline("run", "spatial_index_profiler_baseline", *words).refusal
    assert "--set: agent_counts:" in refusal
    wording(refusal)
