"""kill -9 of the runner, its group, its tree or a worker at random moments; then resume, and compare with the plan."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from faults.campaign import Fault, Outcome, Part, Size
from faults.project import Done, eventually, finish
from faults.workload import Place, Postgresql, Sqlite, Workload, postgres

TARGETS = ("runner", "group", "tree", "worker")
MOMENTS = ("start-up", "work", "write", "resume")
_START, _WORK = 1.2, 1.6
"""Seconds until the first call, and from there to the end, on a quiet machine: only where moments are drawn from."""
_TAKES_OVER = 90.0
"""Seconds within which a run whose owner was killed can be resumed."""


@contextmanager
def prepare(seed: int, size: Size) -> Iterator[Sequence[Fault]]:
    number = size.choose(3, 14, 320)
    with postgres(size is not Size.SMALLEST) as server:
        losses = size.choose(0, 2, 20) if server is not None else 0
        yield [
            *(_fault(seed, n, size, server) for n in range(number)),
            *(
                Fault(f"{n} connections lost", partial(_lose_database, f"{seed} {n}", server))
                for n in range(losses)
            ),
        ]


def _lose_database(seed: str, server: Any, folder: Path) -> Outcome:
    """All connections of the server end while agents work, as when it is restarted: the run goes on by itself."""
    chance, work = random.Random(f"{seed} losses"), Workload(folder, Postgresql(server.empty()))
    process = work.project.start(*work.resume())
    eventually(lambda: work.calls() or process.poll() is not None, 60)
    for _ in range(chance.randint(1, 4)):
        time.sleep(chance.uniform(0, 0.5))
        server.hang_up()
    done = finish(process)
    problem = done.problem(0)
    compared, counts = work.compare_with_plan()
    left = [f"left behind: {line}" for line in work.project.left_behind()]
    problems = [*([problem] if problem else []), *left, *compared]
    return Outcome(1, tuple(("connections lost", text) for text in problems), counts)


def _fault(seed: int, number: int, size: Size, server: Any) -> Fault:
    chance = random.Random(f"{seed} kills {number}")
    target, moment = TARGETS[number % 4], MOMENTS[number // 4 % 4] if number >= 4 else chance.choice(MOMENTS)
    if size is Size.SMALLEST:
        target, moment = (("group", "work"), ("tree", "write"), ("worker", "start-up"))[number]
    place = "postgresql" if server is not None and chance.random() < 0.4 else "sqlite"
    make = (lambda folder: Postgresql(server.empty())) if place == "postgresql" else _sqlite
    small = size is Size.SMALLEST
    return Fault(
        f"{number} {target} at {moment} on {place}", partial(_check, target, moment, chance, make, small)
    )


def _sqlite(folder: Path) -> Place:
    return Sqlite(folder / "assay.db")


def _check(
    target: str,
    moment: str,
    chance: random.Random,
    make: Callable[[Path], Place],
    is_small: bool,
    folder: Path,
) -> Outcome:
    size: dict[str, Any] = {"agents": ("plain", "program"), "cases": 4} if is_small else {}
    work = Workload(folder, make(folder), **size)
    name = f"{target} at {moment}"
    problems: list[str] = []
    kills = chance.choice((1, 2, 3)) if moment == "resume" else 1
    moments = ["work", *["start-up", "work"][: kills - 1]] if moment == "resume" else [moment]
    if moment == "resume" and kills == 1:
        moments = ["work", "work"]
    hits = 0
    for each in moments:
        before, calls = {row for row in work.rows() if row.is_finished}, len(work.calls())
        done, has_hit = _kill(work, target, each, chance)
        hits += has_hit
        problems += _done_again(work, before, calls)
        if target != "worker":
            problems += [f"left behind: {line}" for line in work.project.left_behind()]
        elif work.state() == "completed" and (problem := done.problem(0)):
            problems.append(problem)
    problems += _resume(work)
    left = [f"left behind: {line}" for line in work.project.left_behind()]
    compared, counts = work.compare_with_plan(("ok", "crashed") if target == "worker" else ("ok",))
    crashed = sum(row.status == "crashed" for row in work.rows())
    if crashed > 2 * hits:
        problems.append(f"{crashed} executions crashed by {hits} kills of one worker")
    problems += left + compared
    counts["kills"] = hits
    return Outcome(1, tuple((name, problem) for problem in dict.fromkeys(problems)), counts)


def _kill(work: Workload, target: str, moment: str, chance: random.Random) -> tuple[Done, bool]:
    """Starts or resumes the run and kills once; a run that was over before is no hit."""
    process = work.project.start(*work.resume())
    _wait_for(moment, work, process, chance)
    is_running = process.poll() is None
    has_hit = is_running and _strike(process.pid, target)
    return finish(process), has_hit


def _wait_for(moment: str, work: Workload, process: subprocess.Popen[str], chance: random.Random) -> None:
    if moment == "start-up":
        time.sleep(chance.uniform(0, _START))
        return
    calls = len(work.calls())
    eventually(lambda: len(work.calls()) > calls or process.poll() is not None, 60)
    if moment == "work":
        time.sleep(chance.uniform(0, _WORK))
        return
    journal = work.project.folder / "assay.db-wal"
    for _ in range(chance.randint(1, 5)):
        seen, deadline = _size_of(journal), time.monotonic() + 0.5
        while _size_of(journal) == seen and time.monotonic() < deadline:
            time.sleep(0.0005)
    time.sleep(chance.uniform(0, 0.002))


def _size_of(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_size, found.st_mtime_ns


def _strike(pid: int, target: str) -> bool:
    """Whether there was somebody to kill."""
    if target == "runner":
        os.kill(pid, signal.SIGKILL)
        return True
    if target == "group":
        os.killpg(pid, signal.SIGKILL)
        return True
    with contextlib.suppress(psutil.Error):
        runner = psutil.Process(pid)
        if target == "tree":
            for process in [runner, *runner.children(recursive=True)]:
                with contextlib.suppress(psutil.Error):
                    process.kill()
            return True
        return _kill_a_worker(runner)
    return False


def _kill_a_worker(runner: psutil.Process) -> bool:
    """The first that is there, within a while: none is between two workers."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and runner.is_running():
        for process in runner.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "assay.execute.worker" in " ".join(process.cmdline()):
                    process.kill()
                    return True
        time.sleep(0.001)
    return False


def _done_again(work: Workload, before: set[Any], calls: int) -> list[str]:
    """What was finished before must neither change nor be asked of an agent again."""
    finished = {(row.key[0], row.key[1], row.key[4]) for row in before}
    again = [call for call in work.calls()[calls:] if call in finished]
    problems = [f"{len(again)} finished executions were done again, such as {again[0]}"] if again else []
    if before - set(work.rows()):
        problems.append(f"{len(before - set(work.rows()))} finished executions changed or went away")
    return problems


def _resume(work: Workload) -> list[str]:
    """Until the run is done; an owner that was killed may hold its run for a while."""
    problems: list[str] = []
    deadline = time.monotonic() + _TAKES_OVER
    while work.state() != "completed":
        before, calls = {row for row in work.rows() if row.is_finished}, len(work.calls())
        done = work.project(*work.resume())
        problems += _done_again(work, before, calls)
        if done.code == 2 and "Traceback" not in done.err and time.monotonic() < deadline:
            time.sleep(0.5)
        elif problem := done.problem(0):
            return [*problems, problem]
    return problems


PART = Part(
    "kills",
    "After `kill -9` and `--resume`, every planned execution is stored exactly once and no finished one is done again.",
    prepare,
)
