"""Starts the workers of a load, hands each its order, and adds up what they tell until all are done."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import IO

from assay.errors import PlanError
from assay.execute.load.record import Chunk, Unpacker
from assay.execute.load.request import Target, place_of
from assay.execute.load.tally import Bounds, Pulse, Tally
from assay.model import AgentUse
from assay.model.load import Load

HEAD_START = 0.05
"""Seconds between the last worker's being ready and the first request."""
MOST_IN_FLIGHT = 20_000
MOST_AHEAD = 256
_PIPE_BYTES = 2**20
_SECONDS_TO_START = 30.0
_GRACE = 2.0

Watch = Callable[[Pulse, Tally], None]
WatchChunk = Callable[[Chunk], None]


def order_for(target: Target, requests: Sequence[bytes], keeps_answers: bool = False) -> dict[str, object]:
    """All that a worker has to know of the server; when to ask is added for each load."""
    place = place_of(target.url)
    tls = {"name": place.host, "is_checked": target.is_checked} if place.is_tls else None
    return {
        "address": [place.family, place.address],
        "tls": tls,
        "requests": [one.decode("latin-1") for one in requests],
        "stream": target.streams,
        "is_json": target.dialect != "http",
        "stamps": True,
        "keeps_answers": keeps_answers,
    }


def order_for_agent(
    use: AgentUse,
    prompts: Sequence[object],
    max_tokens: int | None,
    files: Sequence[str],
    keeps_answers: bool = False,
) -> dict[str, object]:
    """The same for an agent that is asked through its own code; `files` define what it needs by name."""
    return {
        "agent": asdict(use),
        "prompts": list(prompts),
        "max_tokens": max_tokens,
        "load": list(files),
        "keeps_answers": keeps_answers,
    }


def timetable_of(load: Load) -> dict[str, object]:
    return {
        "concurrency": None if load.is_open else load.concurrency,
        "stages": [list(stage) for stage in load.stages] if load.is_open and load.stages else None,
        "is_poisson": load.arrivals == "poisson",
        "moments": list(load.moments) if load.moments else None,
        "seconds": load.seconds,
        "count": load.count,
        "seconds_each": load.seconds_each,
        "think_seconds": load.think_seconds,
        "in_flight": load.concurrency or MOST_IN_FLIGHT,
        "seed": load.seed,
        "workers": load.workers,
        "ahead": _ahead(load),
    }


def _ahead(load: Load) -> int:
    """Connections to open before the start, in each worker: all of a closed loop, or those of a quarter of a second."""
    if not load.is_open:
        return -(-(load.concurrency or 1) // load.workers)
    highest = max((max(first, last) for _, first, last in load.stages[:1]), default=4.0)
    return min(load.concurrency or MOST_AHEAD, MOST_AHEAD, max(1, int(highest * 0.25 / load.workers)))


SERVER_WORKER, AGENT_WORKER = "assay.execute.load.worker", "assay.execute.load.agent_worker"


def carry_out(
    load: Load,
    order: dict[str, object],
    watch: Watch,
    *,
    module: str = SERVER_WORKER,
    bounds: Bounds = Bounds(),  # noqa: B008  (frozen)
    is_stopped: Callable[[], bool] = lambda: False,
    watch_chunk: WatchChunk | None = None,
) -> Tally:
    """Returns when every request has ended, or soon after `is_stopped`; then with what there was."""
    with _Crew(module, {**order, **timetable_of(load)}, load.workers) as crew:
        return crew.work(Tally(bounds), watch, is_stopped, watch_chunk)


class _Crew:
    """The worker processes of one load."""

    def __init__(self, module: str, order: dict[str, object], workers: int) -> None:
        self._orders = [json.dumps({**order, "worker": number}).encode() + b"\n" for number in range(workers)]
        self._module = module
        self._processes: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Crew:
        for _ in self._orders:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", self._module],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    start_new_session=True,
                )
            )
        for process, order in zip(self._processes, self._orders, strict=True):
            with contextlib.suppress(BrokenPipeError):
                _stdin(process).write(order)
                _stdin(process).flush()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                _stdin(process).close()
        for process in self._processes:
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _stdout(process).close()

    def work(
        self,
        tally: Tally,
        watch: Watch,
        is_stopped: Callable[[], bool],
        watch_chunk: WatchChunk | None,
    ) -> Tally:
        self._begin()
        stop_at = float("inf")
        for worker, chunk in self._chunks():
            if chunk is not None:
                tally.add(worker, chunk)
                if watch_chunk is not None:
                    watch_chunk(chunk)
                watch(tally.pulse(), tally)
            now = time.monotonic()
            if stop_at == float("inf") and is_stopped():
                self._stop()
                stop_at = now + _GRACE
            if now > stop_at:
                break
        return tally

    def _begin(self) -> None:
        for process in self._processes:
            _widen(_stdout(process))
            if _stdout(process).readline() != b"ready\n":
                raise PlanError("A worker of the load engine could not be started; its message is above.")
        begin = time.monotonic() + HEAD_START
        for process in self._processes:
            _stdin(process).write(f"{begin!r}\n".encode())
            _stdin(process).flush()

    def _stop(self) -> None:
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                _stdin(process).close()

    def _chunks(self) -> Iterator[tuple[int, Chunk | None]]:
        """Chunks as they come; now and then nothing, so that whoever waits may look around."""
        with selectors.DefaultSelector() as selector:
            for number, process in enumerate(self._processes):
                selector.register(_stdout(process), selectors.EVENT_READ, (number, Unpacker()))
            while selector.get_map():
                ready = selector.select(0.1)
                if not ready:
                    yield 0, None
                for key, _ in ready:
                    number, unpacker = key.data
                    data = os.read(key.fd, _PIPE_BYTES)
                    if not data:
                        selector.unregister(key.fileobj)
                    for chunk in unpacker.feed(data):
                        yield number, chunk


def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _widen(pipe: IO[bytes]) -> None:
    """A worker must not wait for us in the middle of a measurement."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
