"""The server whose times are known: compiled, started on a core of its own, and asked afterwards what it did."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

from arms import CommandFailed

SOURCE = Path(__file__).parent / "server.c"


@dataclass(frozen=True, slots=True)
class Answers:
    """How the server answers; with slots, only so many requests at a time."""

    ttft: float = 0.0
    itl: float = 0.0
    tokens: int = 16
    slots: int = 0

    @property
    def seconds(self) -> float:
        """From the start of an answer to its end."""
        return self.ttft + (self.tokens - 1) * self.itl


@dataclass(frozen=True, slots=True)
class Truth:
    """What the server did, in seconds; `arrivals` on the monotonic clock, in order."""

    ttft: dict[str, float]
    itl: dict[str, float]
    arrivals: Sequence[float]

    @property
    def requests(self) -> int:
        return len(self.arrivals)

    @property
    def rate(self) -> float:
        """Requests per second between the first and the last tenth: how a tool starts and stops does not count."""
        tenth = self.requests // 10
        first, last = tenth, self.requests - 1 - tenth
        if last <= first:
            raise CommandFailed(f"only {self.requests} requests reached the server")
        return (last - first) / (self.arrivals[last] - self.arrivals[first])


class Server:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def truth(self) -> Truth:
        """Since it was asked last."""
        arrivals = array("q")
        arrivals.frombytes(self._got("/arrivals"))
        told = json.loads(self._got("/truth"))
        return Truth(
            _in_seconds(told["ttft_us"]),
            _in_seconds(told["itl_us"]),
            [one / 1e9 for one in sorted(arrivals)],
        )

    def _got(self, path: str) -> bytes:
        with urlopen(self.url + path, timeout=60) as answer:
            body: bytes = answer.read()
        return body


def _in_seconds(told: dict[str, float] | None) -> dict[str, float]:
    return {name: told[name] / 1e6 for name in ("p50", "p99", "max")} if told else {}


def pinned(words: Sequence[str], place: int) -> list[str]:
    """The command on one core: 0 is the server's, 1 the tool's. Untouched where there are not two."""
    if not hasattr(os, "sched_getaffinity"):
        return list(words)
    cores = sorted(os.sched_getaffinity(0))
    taskset = shutil.which("taskset")
    return [taskset, "-c", str(cores[place]), *words] if taskset and len(cores) > 1 else list(words)


@contextmanager
def serving(answers: Answers) -> Iterator[Server]:
    port = _free_port()
    times = [str(round(seconds * 1e6)) for seconds in (answers.ttft, answers.itl)]
    words = [str(compiled(SOURCE)), str(port), *times, str(answers.tokens), str(answers.slots)]
    process = subprocess.Popen(pinned(words, 0), stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        if process.stdout.readline() != b"ready\n":
            raise CommandFailed("The server of the benchmark could not be started; its message is above.")
        yield Server(port)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def compiled(source: Path) -> Path:
    """The program of a file in C."""
    program = source.parent / "build" / source.stem
    if not program.is_file() or program.stat().st_mtime < source.stat().st_mtime:
        compiler = shutil.which("gcc") or shutil.which("cc")
        if compiler is None:
            raise CommandFailed("A C compiler is needed for the server. On Debian: apt-get install gcc")
        program.parent.mkdir(exist_ok=True)
        subprocess.run([compiler, "-O2", "-o", str(program), str(source)], check=True)
    return program


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port
