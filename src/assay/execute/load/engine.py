"""Starts the workers of a load, hands each its order, and adds up what they tell until all are done."""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import IO, Any

from assay.errors import PlanError
from assay.execute import reaper
from assay.execute.guardian import Guardian
from assay.execute.load.record import Chunk, Unpacker
from assay.execute.load.replay import written
from assay.execute.load.request import Target, place_of
from assay.execute.load.tally import Bounds, Pulse, Tally
from assay.execute.tree import MARK, kill_all, kill_tree
from assay.model import AgentUse
from assay.model.load import Load, Trace

HEAD_START = 0.05
"""Seconds between the last worker's being ready and the first request."""
MOST_IN_FLIGHT = 20_000
MOST_AHEAD = 256
_PIPE_BYTES = 2**20
_SECONDS_TO_START = 600.0
"""An agent may have a model to read first."""
_SECONDS_OF_SILENCE = 30.0
"""Workers tell something ten times a second; one that is silent for so long beyond a request's limit is stuck."""
_GRACE = 2.0

Order = Iterable[bytes | memoryview]
"""In parts, as it is sent to a worker."""
Watch = Callable[[Pulse, Tally], None]
WatchChunk = Callable[[Chunk], None]


def order_for(
    target: Target,
    requests: Sequence[bytes],
    keeps_answers: bool = False,
    mould: Mapping[str, object] | None = None,
) -> dict[str, object]:
    """All that a worker has to know of the server; when to ask is added for each load.

    With a mould, requests are made of it and the rows of a trace.
    """
    place = place_of(target.url)
    tls = {"name": place.host, "is_checked": target.is_checked, "ca_file": target.ca_file}
    return {
        "address": [place.family, place.address],
        "tls": tls if place.is_tls else None,
        "requests": [one.decode("latin-1") for one in requests],
        "mould": mould,
        "stream": target.streams,
        "is_json": target.dialect != "http",
        "keeps_answers": keeps_answers,
    }


def order_for_agent(
    use: AgentUse,
    prompts: Sequence[object],
    max_tokens: int | None,
    files: Sequence[str],
    keeps_answers: bool = False,
    replays: bool = False,
) -> dict[str, object]:
    """The same for an agent that is asked through its own code; `files` define what it needs by name.

    With `replays`, the rows of a trace say how long a prompt is; `prompts` are for those that do not.
    """
    return {
        "agent": asdict(use),
        "prompts": list(prompts),
        "max_tokens": max_tokens,
        "load": list(files),
        "keeps_answers": keeps_answers,
        "replays": replays,
    }


def timetable_of(load: Load) -> dict[str, object]:
    return {
        "concurrency": None if load.is_open else load.concurrency,
        "stages": [list(stage) for stage in load.stages] if load.is_open and load.stages else None,
        "is_poisson": load.arrivals == "poisson",
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
    """Connections that workers open before the start: all of a closed loop, or those of a quarter of a second."""
    if not load.is_open:
        return load.concurrency or 1
    highest = max((max(first, last) for _, first, last in load.stages[:1]), default=4.0)
    return min(load.concurrency or MOST_AHEAD, MOST_AHEAD, max(1, int(highest * 0.25)))


def part_of(whole: int, worker: int, workers: int) -> int:
    """Of so many, how many one of several workers has.

    >>> [part_of(5, worker, 2) for worker in (0, 1)]
    [3, 2]
    """
    return (whole + workers - 1 - worker) // workers


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
    workers = min(load.workers, load.concurrency or load.workers)
    orders = (
        written(
            _order_of_one({**order, **timetable_of(load)}, worker, workers), _rows_of(load, worker, workers)
        )
        for worker in range(workers)
    )
    with _Crew(module, workers, orders, _SECONDS_OF_SILENCE + load.seconds_each) as crew, _behind_the_crew():
        return crew.work(Tally(bounds), watch, is_stopped, watch_chunk)


def _order_of_one(order: dict[str, Any], worker: int, workers: int) -> dict[str, Any]:
    shared = {name: part_of(order[name], worker, workers) for name in ("in_flight", "ahead")}
    return {**order, **shared, "worker": worker, "workers": workers}


def _rows_of(load: Load, worker: int, workers: int) -> Trace | None:
    if load.trace is None or workers == 1:
        return load.trace
    return load.trace.part(slice(worker, None, workers))


class _Crew:
    """The worker processes of one load."""

    def __init__(self, module: str, workers: int, orders: Iterable[Order], longest_silence: float) -> None:
        self._workers, self._orders = workers, orders
        self._module, self._longest_silence = module, longest_silence
        self._processes: list[subprocess.Popen[bytes]] = []
        self._guardian = Guardian()
        self._marks: dict[int, str] = {}

    def __enter__(self) -> _Crew:
        for _ in range(self._workers):
            self._processes.append(self._start())
        for process, order in zip(self._processes, self._orders, strict=True):
            with contextlib.suppress(BrokenPipeError):
                for part in order:
                    _stdin(process).write(part)
                _stdin(process).flush()
        return self

    def _start(self) -> subprocess.Popen[bytes]:
        """Only agents start programs of their own, which are to end with the worker, and with us if we are killed."""
        has_programs = self._module == AGENT_WORKER
        mark = self._guardian.mark() if has_programs else ""
        process = subprocess.Popen(
            [sys.executable, "-m", *([reaper.MODULE, "-1"] if has_programs else []), self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, MARK: mark} if has_programs else None,
        )
        if has_programs:
            self._guardian.watch(process.pid)
            self._marks[process.pid] = mark
        return process

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                _stdin(process).close()
        try:
            for process in self._processes:
                self._end(process)
        finally:
            self._guardian.close()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        try:
            process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            kill_tree(process.pid)
            process.wait()
        if mark := self._marks.get(process.pid):
            kill_all(process.pid, mark)
            self._guardian.release(process.pid)
        _stdout(process).close()

    def work(
        self,
        tally: Tally,
        watch: Watch,
        is_stopped: Callable[[], bool],
        watch_chunk: WatchChunk | None,
    ) -> Tally:
        if not self._begin(is_stopped):
            return tally
        stop_at = float("inf")
        for worker, chunk in self._chunks():
            if chunk is not None:
                tally.add(worker, chunk)
                chunk.facts["worker"] = worker
                if watch_chunk is not None:
                    watch_chunk(chunk)
                watch(tally.pulse(), tally)
            now = time.monotonic()
            if stop_at == float("inf") and is_stopped():
                self._stop()
                stop_at = now + _GRACE
            if now > stop_at:
                break
        tally.end(len(self._processes), is_stopped=stop_at < float("inf"))
        return tally

    def _begin(self, is_stopped: Callable[[], bool]) -> bool:
        """Whether the load has begun; not if it was stopped before all workers were ready."""
        deadline = time.monotonic() + _SECONDS_TO_START
        for process in self._processes:
            _widen(_stdout(process))
            while not _is_readable(_stdout(process)) and time.monotonic() < deadline:
                if is_stopped():
                    return False
            if time.monotonic() >= deadline or _stdout(process).readline() != b"ready\n":
                raise PlanError("A worker of the load engine could not be started; its message is above.")
        begin = time.monotonic() + HEAD_START
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                _stdin(process).write(f"{begin!r}\n".encode())
                _stdin(process).flush()
        return True

    def _stop(self) -> None:
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                _stdin(process).close()

    def _chunks(self) -> Iterator[tuple[int, Chunk | None]]:
        """Chunks as they come, until each worker told its last or is gone; now and then nothing, so that whoever waits may look around."""
        heard = [time.monotonic()] * len(self._processes)
        with selectors.DefaultSelector() as selector:
            for number, process in enumerate(self._processes):
                selector.register(_stdout(process), selectors.EVENT_READ, (number, Unpacker()))
            while selector.get_map():
                ready = selector.select(0.1)
                if not ready:
                    yield 0, None
                for key, _ in ready:
                    number, unpacker = key.data
                    heard[number] = time.monotonic()
                    data = os.read(key.fd, _PIPE_BYTES)
                    is_done = not data
                    for chunk in unpacker.feed(data):
                        is_done = is_done or bool(chunk.facts["is_last"])
                        yield number, chunk
                    if is_done:
                        selector.unregister(key.fileobj)
                self._end_the_stuck(heard)

    def _end_the_stuck(self, heard: Sequence[float]) -> None:
        for process, last in zip(self._processes, heard, strict=True):
            if time.monotonic() - last > self._longest_silence and process.poll() is None:
                kill_tree(process.pid)


@contextlib.contextmanager
def _behind_the_crew() -> Iterator[None]:
    """While workers have to be on time, this process waits for a processor to be free instead of taking it from one of them."""
    if not _is_usual():
        yield
        return
    priority = os.sched_param(0)
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, priority)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_OTHER, priority)


def _is_usual() -> bool:
    """Whether this process is given processors as most are; who has chosen another way is left to it."""
    try:
        return sys.platform == "linux" and os.sched_getscheduler(0) == os.SCHED_OTHER
    except OSError:
        return False


def _stdin(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def _stdout(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def _is_readable(pipe: IO[bytes]) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(0.1))


def _widen(pipe: IO[bytes]) -> None:
    """A worker must not wait for us in the middle of a measurement."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
