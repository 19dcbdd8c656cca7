"""What a load needs before its first request, and how much memory it takes and keeps."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from arms import PYTHON, CommandFailed, elsewhere, fresh_folder, interleaved
from record import Bound, Promise, Result, figure

from assay.units import count
from load.server import Answers, Server, pinned, serving
from load.tools import CLIENTS, assay_words, ran

FIRST = Promise("first-request", "From the start of the engine to its first request", Bound.AT_MOST, 0.5, "s")
SHELL = Promise(
    "first-request-shell",
    "From the shell to the first request",
    Bound.AT_MOST,
    0.5,
    "s",
)
IN_FLIGHT = 1000
WORKER = Promise(
    "memory-worker", "Peak memory of the worker, 1,000 requests in flight", Bound.BELOW, 100e6, "bytes"
)
PARENT = Promise(
    "memory-command",
    "Peak memory of the command, which stores and shows the results",
    Bound.BELOW,
    100e6,
    "bytes",
)
GROWTH = Promise(
    "memory-growth", "Growth of the two peaks from 30,000 to 300,000 requests", Bound.AT_MOST, 10e6, "bytes"
)

WORKER_MODULE = "assay.load.worker"
# An answer takes two seconds: then a thousand at a time are some five hundred a second.
_SLOW = Answers(ttft=1.0, itl=0.05, tokens=20)


@dataclass(frozen=True, slots=True)
class Peaks:
    """Bytes; of the command's processes, the largest worker and the command itself."""

    worker: float
    command: float
    in_flight: float
    """On average, as the command reports it."""


def start(quick: bool) -> list[Result]:
    with serving(Answers()) as server:
        arms: dict[str, Callable[[], float]] = {
            "engine": partial(_first_request, server),
            "command": partial(_first_request_of_command, server),
            "python -c pass": _bare,
        }
        found = interleaved(arms, 3 if quick else 7)
    taken, bare = found["engine"], {"python -c pass": figure(found["python -c pass"])}
    detail = "A worker is started, says that it is ready, and begins a moment later, so that several begin together."
    shell = found["command"]
    return [
        Result(FIRST, "s", figure(taken), figure(taken), bare, detail, {"seconds": taken}),
        Result(SHELL, "s", figure(shell), figure(shell), bare, values={"seconds": shell}),
    ]


def _first_request(server: Server) -> float:
    with fresh_folder() as folder:
        done = ran(server, [PYTHON, str(CLIENTS / "first_request.py"), server.url], folder)
    return done.truth.arrivals[0] - float(done.end.stdout)


def _first_request_of_command(server: Server) -> float:
    """As a user starts it, on whatever core is free."""
    server.truth()
    started = time.monotonic()
    elsewhere(*assay_words(server.url, "--requests", "1"))
    return server.truth().arrivals[0] - started


def _bare() -> float:
    return elsewhere(*pinned((PYTHON, "-c", "pass"), 1)).seconds


def memory(quick: bool) -> list[Result]:
    if sys.platform != "linux":
        return []
    sizes = (10_000, 40_000) if quick else (30_000, 300_000)
    with serving(_SLOW) as server:
        crowd = _peaks(server, "--concurrency", str(IN_FLIGHT), "--duration", "4s" if quick else "10s")
    with serving(Answers()) as server:
        few, many = (
            _peaks(server, "--concurrency", "64", "--duration", "10m", "--requests", str(n)) for n in sizes
        )
    growth = max(many.worker - few.worker, many.command - few.command)
    ends = "; ".join(
        f"{count(n)} requests: worker {peaks.worker / 1e6:.1f} MB, command {peaks.command / 1e6:.1f} MB"
        for n, peaks in zip(sizes, (few, many), strict=True)
    )
    whole, grown = figure([max(many.worker, many.command)]), figure([growth])
    worker, command = figure([crowd.worker]), figure([crowd.command])
    return [
        Result(WORKER, "bytes", worker, worker, detail=f"{crowd.in_flight:.0f} in flight on average."),
        Result(PARENT, "bytes", command, command),
        Result(GROWTH, "bytes", whole, grown, detail=f"{ends}."),
    ]


def _peaks(server: Server, *options: str) -> Peaks:
    """The kernel keeps the highest resident size of a process as long as it lives, so now and then it is read."""
    with fresh_folder() as folder, (folder / "out").open("wb+") as out:
        words = pinned(assay_words(server.url, *options), 1)
        process = subprocess.Popen(words, cwd=folder, stdout=out)
        worker = command = 0.0
        while process.poll() is None:
            command = max(command, _peak(process.pid))
            worker = max([worker, *map(_peak, _workers(process.pid))])
            time.sleep(0.05)
        out.seek(0)
        told = out.read()
    if process.returncode:
        raise CommandFailed(f"'{' '.join(words)}' ended with {process.returncode}; its message is above.")
    return Peaks(worker, command, json.loads(told)["concurrency"])


def _workers(pid: int) -> Sequence[int]:
    """Children that are what they are going to be: one that was only just forked has the size of the command."""
    children = _read(f"/proc/{pid}/task/{pid}/children").split()
    return [int(child) for child in children if WORKER_MODULE in _read(f"/proc/{child}/cmdline")]


def _peak(pid: int) -> float:
    lines = _read(f"/proc/{pid}/status").splitlines()
    return next((float(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0.0)


def _read(path: str) -> str:
    """Nothing, of a process that is gone."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
