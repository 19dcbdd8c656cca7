"""A suite to run on a cluster, and what to look at while it runs."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
from tests.cluster.conftest import SimulatedCluster
from tests.command import COMMAND, Assay, environment

from assay.model.execution import BETWEEN_NODES
from assay.store.store import Store

SUITE = """
suite: sums
version: "1"
agents:
  - {name: right, type: python, target: "agents.py:right"}
  - {name: unsteady, type: python, target: "agents.py:unsteady"}
benchmarks:
  - id: sums
    cases: cases.jsonl
    scorer: numeric
    iterations: {warmup: 1, measured: 2}
    limits: {seconds: 20}
"""
AGENTS = """
import os, random, time

def right(question):
    a, b = question.split("+")
    if a == "3":
        raise ValueError("no threes")
    return str(int(a) + int(b))

def unsteady(question):
    a, b = question.split("+")
    if a == "5":
        os._exit(3)
    return str(int(a) + int(b) + (random.random() < 0.5))

def keen(question, key):
    other = "other" if "OTHER_TOKEN" in os.environ else "no other"
    return f"{key[:8]}, {len(key)} characters, {other}"

def reader(question):
    from pathlib import Path
    here = Path(__file__).parent
    place = "in" if here == Path(USER) else "not in"
    mode = "cannot write" if not (here / "notes").stat().st_mode & 0o222 else "can write"
    return f"{(here / 'notes' / 'answer.txt').read_text()}, {place} the folder of the user, {mode}"

def loud(question):
    return question[0] * 2_000_000

def surroundings(question):
    return f"{os.environ.get('OMP_NUM_THREADS')} {os.getpriority(os.PRIO_PROCESS, 0)}"

def on_gpu(question, folder):
    here = folder.removeprefix("file://")
    open(f"{here}/{os.getpid()}", "w").close()
    deadline = time.monotonic() + 20
    while len(os.listdir(here)) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    return os.environ["CUDA_VISIBLE_DEVICES"]

def counted(question, file):
    time.sleep(0.02)
    with open(file.removeprefix("file://"), "a") as finished:
        finished.write("1")
    return question

def slow(question, flag):
    if not os.path.exists(flag.removeprefix("file://")):
        time.sleep(0.2)
    return question
"""


def write_suite(assay: Assay, cases: int = 8, agents: str = "") -> None:
    assay.write(
        "suite.yaml",
        SUITE if not agents else SUITE.split("agents:")[0] + agents + SUITE[SUITE.index("benchmarks:") :],
    )
    assay.write("agents.py", f"USER = {str(assay.folder)!r}\n{AGENTS}")
    lines = [f'{{"id": "c{n}", "input": "{n}+1", "expected": "{n + 1}"}}' for n in range(cases)]
    assay.write("cases.jsonl", "\n".join(lines))


def read_executions(assay: Assay) -> dict[str, list[Any]]:
    """What is comparable of the executions of each trial of the latest run."""
    with Store.open(f"sqlite:///{assay.folder}/.assay/assay.db") as store:
        run = store.run("last")
        return {
            stored.trial.name: sorted(
                (e.process, e.phase, e.case, e.repetition, e.status, e.output, e.measurements.get("score"))
                for e in store.executions(stored.id)
            )
            for stored in run.trials
        }


def start(assay: Assay, *words: str, **variables: str) -> subprocess.Popen[bytes]:
    """The command as a process that goes on while the test does something else."""
    with (assay.folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            [COMMAND, *words], cwd=assay.folder, env=environment(variables), stdout=log, stderr=log
        )


def count_executions(assay: Assay) -> int:
    """Stored so far, without keeping the run from storing more."""
    file = assay.folder / ".assay" / "assay.db"
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return int(connection.execute("SELECT count(*) FROM executions").fetchone()[0])


def wait_for_executions(assay: Assay, least: int, seconds: float = 60) -> None:
    """Until so many executions of the run are stored."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(sqlite3.OperationalError):
            if count_executions(assay) >= least:
                return
        time.sleep(0.1)
    raise AssertionError((assay.folder / "log.txt").read_text())


def find_workers(cluster: SimulatedCluster) -> list[psutil.Process]:
    """Worker processes of Assay on the nodes of this cluster; the parent of each is, or was, an actor of Ray."""
    return list(_find_workers(cluster))


def _find_workers(cluster: SimulatedCluster) -> Iterator[psutil.Process]:
    for process in psutil.process_iter(["cmdline", "environ"]):
        words, variables = process.info["cmdline"] or [], process.info["environ"] or {}
        if "assay.execute.reaper" in words and variables.get("TMPDIR") == cluster.temporary:
            yield process


def read_nodes(assay: Assay) -> set[str]:
    """The nodes that have carried out something of the latest run."""
    with Store.open(f"sqlite:///{assay.folder}/.assay/assay.db") as store:
        placed = [name for trial in store.run("last").trials for name in store.placements(trial.id).values()]
    return {node for name in placed for node in name.split(BETWEEN_NODES)}


def build_slow_agent(flag: Path) -> str:
    """An agent that takes its time with every case until the file is there.

    As a URL, because a path in the folder of the suite would become one in the copy that a node has.
    """
    agent = f'{{name: slow, type: python, target: "agents.py:slow", params: {{flag: "file://{flag}"}}}}'
    return f"agents: [{agent}]\n"


def wait_until(is_so: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)
