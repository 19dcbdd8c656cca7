"""What the answers to larger questions cost: profiles, costs, and commands in a sandbox."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

from arms import ASSAY, PYTHON, SUBJECTS, ended, fresh_folder, interleaved, tell
from record import Bound, Promise, Result, figure

from assay.plugin import lookup
from assay.plugin.sandbox import Program
from assay.units import count

COST = Promise("cost-seconds", "`assay cost` over 1,000,000 executions", Bound.BELOW, 1.0, "s")
SANDBOX = Promise(
    "sandbox-start",
    "A command in bubblewrap beyond the same one in a plain process",
    Bound.AT_MOST,
    0.015,
    "s",
)
PROFILE = Promise(
    "profile-overhead", "Time that sampling adds to a profiled execution", Bound.BELOW, 0.05, "share"
)
_STARTS = 50
"""Starts that one observation is the mean of."""


def measure(quick: bool) -> list[Result]:
    return [_cost(quick), _sandbox(quick), _profile(quick)]


def _cost(quick: bool) -> Result:
    number = 20_000 if quick else 1_000_000
    with fresh_folder() as folder:
        tell(f"  a database of {count(number)} executions")
        url = f"sqlite:///{folder}/large.db"
        ended((PYTHON, str(SUBJECTS / "million_executions.py"), url, str(number)), folder)
        words = (ASSAY, "cost", "--suite", "large", "--volume", "100000", "--db", url)
        arms = {
            "assay cost": lambda: ended(words, folder).seconds,
            "assay --help": lambda: ended((ASSAY, "--help"), folder).seconds,
        }
        found = interleaved(arms, 3 if quick else 21)
    ours, start = figure(found["assay cost"]), figure(found["assay --help"])
    return Result(COST, "s", ours, ours, {"assay --help": start}, values=found)


def _sandbox(quick: bool) -> Result:
    arms: dict[str, Callable[[], float]] = {name: partial(_start, name) for name in ("bubblewrap", "none")}
    found = interleaved(arms, 3 if quick else 41)
    more = [ours - plain for ours, plain in zip(found["bubblewrap"], found["none"], strict=True)]
    return Result(
        SANDBOX,
        "s",
        figure(found["bubblewrap"]),
        figure(more),
        {"plain process": figure(found["none"])},
        values=found,
    )


def _start(name: str) -> float:
    """Seconds from start to end of a program that does nothing."""
    sandbox, program = lookup.find("sandboxes", name)(), Program(["/bin/true"])
    sandbox.version()
    began = perf_counter()
    for _ in range(_STARTS):
        sandbox.start(program).wait()
    return (perf_counter() - began) / _STARTS


def _profile(quick: bool) -> Result:
    with fresh_folder() as folder:
        _write_project(folder)
        repetitions = "3" if quick else "20"
        words = (ASSAY, "profile", "busy", "--no-memory", "--repetitions", repetitions, "--json", "-q")
        found = interleaved(
            {"overhead": partial(_overhead, (*words, "--input", "Which page?"), folder)}, 2 if quick else 11
        )
    ours = figure(found["overhead"])
    detail = f"Each observation is the geometric mean over {repetitions} pairs of executions with and without sampling."
    return Result(PROFILE, "share", ours, ours, detail=detail, values=found)


def _write_project(folder: Path) -> None:
    function = f"{SUBJECTS / 'busy_agent.py'}:answer"
    agents = {"agents": [{"name": "busy", "type": "python", "target": function}]}
    (folder / "agents.yaml").write_text(json.dumps(agents))
    (folder / "assay.toml").write_text('[assay]\nagents = ["agents.yaml"]\n')


def _overhead(words: tuple[str, ...], folder: Path) -> float:
    told = json.loads(ended(words, folder).stdout)
    return float(told["sampling_overhead"]["value"])
