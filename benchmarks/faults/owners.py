"""One owner per run: several `--resume` at the same moment, and attempts to take or delete a run that is alive."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from faults.campaign import Fault, Outcome, Part, Size
from faults.project import Project, eventually, finish
from faults.workload import Place, Postgresql, Sqlite, Workload, postgres

KINDS = (
    "two resumes",
    "resume of a live run",
    "resume of a live run from another host",
    "delete of a live run",
    "three resumes",
)
_RIVALS = {"two resumes": 2, "three resumes": 3}
_TAKES_OVER = 120.0
_OTHER_HOST = "import socket\nsocket.gethostname = lambda: 'another-host'\n"


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    number = size.choose(2, 6, 60)
    with postgres(size is not Size.SMALLEST) as server:
        yield [_fault(seed, n, server) for n in range(number)]


def _fault(seed: int, number: int, server: Any) -> Fault:
    chance, kind = random.Random(f"{seed} owners {number}"), KINDS[number % len(KINDS)]
    is_remote = server is not None and (number // len(KINDS) + number) % 2 == 1
    place = "postgresql" if is_remote else "sqlite"

    def make(folder: Path) -> Place:
        return Postgresql(server.empty()) if is_remote else Sqlite(folder / "assay.db")

    return Fault(f"{number} {kind} on {place}", partial(_check, kind, chance, make))


def _check(kind: str, chance: random.Random, make: Callable[[Path], Place], folder: Path) -> Outcome:
    work = Workload(folder, make(folder), agents=("plain", "waiting"), cases=8 if kind in _RIVALS else 30)
    rivals = _RIVALS.get(kind)
    problems = _race(work, rivals, chance) if rivals else _intrude(work, kind, chance)
    problems += [f"left behind: {line}" for line in work.project.left_behind()]
    twice = [call for call, times in Counter(work.calls()).items() if times > (2 if rivals else 1)]
    if twice:
        problems.append(f"{len(twice)} executions were done by several owners, such as {twice[0]}")
    compared, counts = work.compare_with_plan()
    return Outcome(1, tuple((kind, problem) for problem in problems + compared), counts)


def _race(work: Workload, rivals: int, chance: random.Random) -> list[str]:
    """After a kill, all resume at once: one goes on, the others are refused."""
    first = _begun(work)
    time.sleep(chance.uniform(0, 0.4))
    os.killpg(first.pid, signal.SIGKILL)
    finish(first)
    before, calls = {row for row in work.rows() if row.is_finished}, len(work.calls())
    if not work.state():
        return ["the run was not stored although an agent was called"]
    deadline = time.monotonic() + _TAKES_OVER
    while True:
        started = []
        for _ in range(rivals):
            started.append(work.project.start("run", "--resume", "last", "--json"))
            time.sleep(chance.choice((0.0, 0.05, 0.3)))
        ends = [finish(process) for process in started]
        codes = sorted(done.code for done in ends)
        # All refused: the killed owner still holds the run for a while.
        if codes != [2] * rivals or time.monotonic() > deadline:
            break
        time.sleep(0.5)
    problems = [problem for done in ends if (problem := done.problem(0, 2))]
    went_on = codes.count(0)
    # One that comes when the run is over may find it completed, which is no second owner.
    finished = {(row.key[0], row.key[1], row.key[4]) for row in before}
    again = Counter(work.calls()[calls:])
    if any(call in finished for call in again) or any(times > 1 for times in again.values()):
        problems.append(f"{went_on} of {rivals} went on, and executions were done twice")
    if went_on == 0:
        problems.append(f"nobody could go on: {ends[0].err.strip()[-300:]}")
    return problems


def _intrude(work: Workload, kind: str, chance: random.Random) -> list[str]:
    first = _begun(work)
    time.sleep(chance.uniform(0, 0.2))
    project = work.project
    if kind.endswith("another host"):
        place = work.project.folder / "other"
        place.mkdir()
        (place / "sitecustomize.py").write_text(_OTHER_HOST)
        project = Project(project.folder, {**project.variables, "PYTHONPATH": str(place)}, project.db)
    words = ("runs", "delete", "last", "--yes") if kind.startswith("delete") else ("run", "--resume", "last")
    was_running = first.poll() is None
    intruder = project(*words)
    still_running = first.poll() is None
    owner = finish(first)
    problems = [owner.problem(0)] if owner.problem(0) else []
    if intruder.code != 2 and was_running and still_running:
        problems.append(f"{' '.join(words)} was not refused: exit code {intruder.code}")
    elif problem := intruder.problem(0, 2):
        problems.append(problem)
    return problems


def _begun(work: Workload) -> subprocess.Popen[str]:
    process = work.project.start("run", "suite.json", "--json")
    eventually(lambda: work.calls() or process.poll() is not None, 60)
    return process


PART = Part(
    "owners",
    "Of several `--resume` of one run at most one continues; a live run is neither taken over nor deleted.",
    prepare,
)
