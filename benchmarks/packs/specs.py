"""Every shipped spec of the packs at full size: each must end with nothing but successful executions."""

from __future__ import annotations

import json

from arms import ASSAY, ended, fresh_folder, tell
from record import Bound, Promise, Result, figure

PACKS: dict[str, tuple[str, ...]] = {
    "simulation": (
        "memory_db_baseline",
        "memory_db_sweep",
        "observation_baseline",
        "observation_sweep",
        "observation_profiler_baseline",
        "perception_metrics_baseline",
        "perception_metrics_sweep",
        "system_profiler_baseline",
    ),
    "indexes and databases": (
        "pragma_profile_baseline",
        "pragma_profile_sweep",
        "database_profiler_baseline",
        "spatial_comprehensive_baseline",
        "spatial_comprehensive_sweep",
        "spatial_index_profiler_baseline",
        "spatial_memory_profiler_baseline",
        "spatial_performance_analyzer_baseline",
        "comprehensive_profiling_sweep",
    ),
}
"""By the name of the pack; another spec is one more line."""
_SMALL = ("--processes", "1", "--warmup", "0", "--repetitions", "1")


def measure(quick: bool) -> list[Result]:
    return [_run_pack(pack, names, quick) for pack, names in PACKS.items()]


def _run_pack(pack: str, names: tuple[str, ...], quick: bool) -> Result:
    problems: list[str] = []
    took: dict[str, float] = {}
    for name in names:
        tell(f"  {name}")
        with fresh_folder() as folder:
            done = ended((ASSAY, "run", name, "--json", "-q", *(_SMALL if quick else ())), folder)
            told = json.loads(ended((ASSAY, "show", "last", "--json"), folder).stdout)
        took[name] = done.seconds
        failed = [trial["name"] for trial in told["trials"] if set(trial["counts"]) != {"ok"}]
        ignored = [
            one["message"]
            for one in told["warnings"]
            if one["code"] in ("setting-not-taken", "identical-arms")
        ]
        problems += [f"{name}: {one}" for one in (*failed, *ignored)]
    slowest = max(took, key=lambda name: took[name])
    detail = f"{len(names)} specs took {sum(took.values()):.0f} s, the longest, `{slowest}`, {took[slowest]:.0f} s."
    promise = Promise(
        f"specs-{pack}", f"Trials of the pack `{pack}` that fail or ignore a setting", Bound.AT_MOST, 0, ""
    )
    ours = figure([float(len(problems))])
    return Result(
        promise, "", ours, ours, detail=" ".join([detail, *problems]), values={name: [took[name]] for name in names}
    )  # fmt: skip
