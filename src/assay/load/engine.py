"""Starts the workers of a load, hands each its order, and adds up what they report until all are done.

The protocol with a worker, over its pipes: the engine writes an order (a line of JSON, with the columns of a trace after
it); the worker prepares itself and answers `ready`; the engine writes the moment on the monotonic clock at which the load
begins, the same for all workers; the worker then sends chunks of results (`worker_report`) about ten times a second until
one has `is_last`. Closing a worker's standard input ends its load early.

Workers are processes, because one Python process can send and time only so many requests per second, and they never talk to each
other: the engine divides the load beforehand (`part_of`), so that no lock or message delays a request. The engine itself sends
nothing. While the load runs it reads reports and adds them up, with little use of the processor that a worker may need; the statistics of
the result are computed after the last report.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from assay.errors import PlanError
from assay.execute import reaper
from assay.execute.guardian import Guardian
from assay.execute.process_tree import MARK, kill_all, kill_tree
from assay.load.histogram_bounds import SHORTEST, Bounds
from assay.load.priorities import BackgroundPriority
from assay.load.request import Target, head_of_requests, place_of
from assay.load.request_lengths import encode_load_order
from assay.load.warm_workers import SERVER_WORKER as SERVER_WORKER
from assay.load.warm_workers import server_worker
from assay.load.worker_report import Chunk, Unpacker
from assay.model import AgentUse
from assay.model.codec import to_plain
from assay.model.conversation import UserSession
from assay.model.load import Load, Trace

if TYPE_CHECKING:
    from assay.load.tally import LoadProgress, Tally

HEAD_START = 0.05
"""Seconds between the last worker's being ready and the first request."""
SHORT_HEAD_START = 0.02
"""The same for a single worker with few connections to open."""
_FEW_CONNECTIONS = 16
_TALLY = "assay.load.tally"
MOST_IN_FLIGHT = 20_000
MOST_AHEAD = 256
THINK_TIMES = 1024
"""Think times that are drawn beforehand; after the last the first is used again."""
_PIPE_BYTES = 2**20
_SECONDS_TO_START = 600.0
"""An agent may have a model to read first."""
SECONDS_OF_SILENCE = 30.0
"""Workers tell something ten times a second; one that is silent for so long beyond a request's limit is stuck."""
_GRACE = 2.0
_FEWEST_SLICES = 40
LOOK_AROUND = 0.1

Order = Iterable[bytes | memoryview]
"""In parts, as it is sent to a worker."""
Watch = Callable[["LoadProgress", "Tally"], None]
WatchChunk = Callable[[Chunk], None]


def order_for(
    target: Target,
    requests: Sequence[bytes],
    keeps_answers: bool = False,
    *,
    openings: Sequence[int] = (),
    template: Mapping[str, object] | None = None,
    sessions: Sequence[UserSession] = (),
    more_targets: Sequence[Target] = (),
) -> dict[str, object]:
    """All that a worker has to know of the server; when to send requests is added for each load (`timetable_of`).

    With `openings`, places in the requests, each request is opened there by words of its own. With a template, requests
    are made of it and of lengths: the rows of a trace, or what was drawn; or of the turns of sessions.
    """
    places, targets = [], (target, *more_targets)
    for server in targets:
        place = place_of(server.url)
        # As text: a worker may be on another machine, which does not have the file.
        trusted = (
            Path(server.ca_file).read_text(encoding="ascii", errors="replace") if server.ca_file else None
        )
        tls = {"name": place.host, "is_checked": server.is_checked, "trusted": trusted}
        places.append({"address": [place.family, place.address], "tls": tls if place.is_tls else None})
    is_get = bool(requests) and requests[0].startswith(b"GET ")
    return {
        "places": places,
        "heads": [head_of_requests(server, is_get=is_get) for server in targets],
        "sessions": [[to_plain(turn) for turn in session.turns] for session in sessions],
        "requests": [request.decode("latin-1") for request in requests],
        "openings": list(openings),
        "template": template,
        "stream": target.streams,
        "is_json": target.dialect != "http",
        "keeps_answers": keeps_answers,
    }


def order_for_agent(
    use: AgentUse,
    prompts: Sequence[object],
    max_tokens: Sequence[int | None],
    files: Sequence[str],
    keeps_answers: bool = False,
    replays: bool = False,
) -> dict[str, object]:
    """The same for an agent that runs its own code; `files` define what it needs by name.

    `max_tokens` are those of each prompt. With `replays`, the rows of a trace or lengths that were drawn say how long a
    prompt is; `prompts` are for those that do not.
    """
    return {
        "agent": to_plain(use),
        "prompts": list(prompts),
        "max_tokens": list(max_tokens),
        "load": list(files),
        "keeps_answers": keeps_answers,
        "replays": replays,
    }


def timetable_of(load: Load) -> dict[str, object]:
    """The keys of an order that say when requests are due and when to give up; all times are in seconds."""
    return {
        "concurrency": None if load.is_open else load.concurrency,
        "stages": [list(stage) for stage in load.stages] if load.is_open and load.stages else None,
        "is_poisson": load.arrivals == "poisson",
        "seconds": load.seconds,
        "count": load.count,
        "seconds_each": load.seconds_each,
        "think_times": load.think.draws(THINK_TIMES, load.seed) if load.think else [load.think_seconds],
        "cancel_after": load.cancel_after,
        "cancel_share": load.cancel_share,
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
    """Return how many of `whole` one of several workers has.

    >>> [part_of(5, worker, 2) for worker in (0, 1)]
    [3, 2]
    """
    return (whole + workers - 1 - worker) // workers


AGENT_WORKER = "assay.load.agent_worker"


def generate_load(
    load: Load,
    order: dict[str, object],
    watch: Watch,
    *,
    module: str = SERVER_WORKER,
    bounds: Bounds = Bounds(),  # noqa: B008  (frozen)
    is_stopped: Callable[[], bool] = lambda: False,
    watch_chunk: WatchChunk | None = None,
    once_begun: Callable[[], object] = lambda: None,
) -> Tally:
    """Run one load with as many workers as it asks for, and return what they reported, added up.

    Returns when every request has ended, or soon after `is_stopped` returns True, then with the results until then.

    `once_begun` is for what the first request need not wait for. Where this process has a core to itself, it is called when
    requests are under way.
    """
    workers = workers_of(load)
    whole = {**order, **timetable_of(load)}
    orders = (order_of_worker(whole, load.trace, worker, workers) for worker in range(workers))
    with _Crew(module, workers, orders, SECONDS_OF_SILENCE + load.seconds_each) as crew:
        if workers == 1 and _ahead(load) <= _FEW_CONNECTIONS:
            crew.head_start = SHORT_HEAD_START
        # With one core, work beside the load would take it from the workers: it is done before the load begins.
        if _shares_its_only_core():
            once_begun()
            import_module(_TALLY)
        began = crew.begin(is_stopped)
        with crew.priority:
            with crew.priority.idle():
                if began is not None and not _shares_its_only_core():
                    once_begun()
                # It needs numpy, which takes longer to load than a worker to start.
                from assay.load.tally import Tally
            tally = Tally(bounds, width=slice_width(load), think_seconds=load.think_seconds)
            tally.began = began
            if began is not None:
                crew.work(tally, watch, is_stopped, watch_chunk)
        return tally


def workers_of(load: Load) -> int:
    """Processes that it takes: none without a request of its own."""
    return min(load.workers, load.concurrency or load.workers)


def slice_width(load: Load) -> float:
    """Seconds of a slice at first: of a load that is over in a few seconds they are shorter, so that there are enough of them."""
    return min(SHORTEST, load.seconds / _FEWEST_SLICES)


def order_of_worker(order: dict[str, Any], trace: Trace | None, worker: int, workers: int) -> Order:
    """One worker's share of a load: of what may be in flight, and of the rows of a trace, which are dealt out in turn."""
    shared = {name: part_of(order[name], worker, workers) for name in ("in_flight", "ahead")}
    if trace is not None and workers > 1:
        trace = trace.part(slice(worker, None, workers))
    return encode_load_order({**order, **shared, "worker": worker, "workers": workers}, trace)


class _Crew:
    """The worker processes of one load: entered, they are started and have their orders; left, they have ended.

    `begin` waits until all are ready and starts the load, `work` adds up what they report. Whatever happens, no process
    stays behind: one that does not end by itself within the grace period is killed with all that it started.
    """

    def __init__(self, module: str, workers: int, orders: Iterable[Order], longest_silence: float) -> None:
        self._workers, self._orders = workers, orders
        self._module, self._longest_silence = module, longest_silence
        self._processes: list[subprocess.Popen[bytes]] = []
        self._guardian = Guardian()
        self._marks: dict[int, str] = {}
        self.priority = BackgroundPriority()
        self.head_start = HEAD_START

    def __enter__(self) -> _Crew:
        # All are started before the first order is written, so that they start side by side.
        for _ in range(self._workers):
            self._processes.append(self._start())
        for process, order in zip(self._processes, self._orders, strict=True):
            with contextlib.suppress(BrokenPipeError):
                for part in order:
                    stdin_of(process).write(part)
                stdin_of(process).flush()
        return self

    def _start(self) -> subprocess.Popen[bytes]:
        """Start a worker.

        Only agents start programs of their own, which must end with the worker, and with this process if
        it is killed. Their workers run below a reaper; the others need none.
        """
        if self._module == SERVER_WORKER:
            return server_worker()
        mark = self._guardian.mark()
        process = subprocess.Popen(
            [sys.executable, "-m", reaper.MODULE, "-1", self._module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, MARK: mark},
        )
        self._guardian.watch(process.pid)
        self._marks[process.pid] = mark
        return process

    def __exit__(self, *_: object) -> None:
        # Closing its input is how a worker is told to end, also one that was never given a moment to begin.
        self._close_inputs()
        try:
            for process in self._processes:
                self._end(process)
        finally:
            self._guardian.close()

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        end_worker(process)
        if mark := self._marks.get(process.pid):
            kill_all(process.pid, mark)
            self._guardian.release(process.pid)

    def work(
        self, tally: Tally, watch: Watch, is_stopped: Callable[[], bool], watch_chunk: WatchChunk | None
    ) -> None:
        """Add up what the workers report, until the last of them is done, or until the grace period after `is_stopped`."""
        stop_at = float("inf")
        for worker, chunk in self._chunks():
            if chunk is not None:
                tally.add(worker, chunk)
                chunk.facts["worker"] = worker
                if watch_chunk is not None:
                    watch_chunk(chunk)
                watch(tally.read_progress(), tally)
            now = time.monotonic()
            if stop_at == float("inf") and is_stopped():
                self._close_inputs()
                stop_at = now + _GRACE
            if now > stop_at:
                break
        self.priority.restore()
        tally.end(len(self._processes), is_stopped=stop_at < float("inf"))

    def begin(self, is_stopped: Callable[[], bool]) -> float | None:
        """When the load begins, on the monotonic clock; None if it was stopped before all workers were ready."""
        deadline = time.monotonic() + _SECONDS_TO_START
        for process in self._processes:
            widen_pipe(stdout_of(process))
            with selectors.DefaultSelector() as selector:
                selector.register(stdout_of(process), selectors.EVENT_READ)
                while not selector.select(0.1) and time.monotonic() < deadline:
                    if is_stopped():
                        return None
            if time.monotonic() >= deadline or stdout_of(process).readline() != b"ready\n":
                raise PlanError("A worker of the load engine could not start; its message is above.")
        # One moment for all workers: CLOCK_MONOTONIC is the same in every process of a machine.
        begin = time.monotonic() + self.head_start
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                stdin_of(process).write(f"{begin!r}\n".encode())
                stdin_of(process).flush()
        return begin

    def _close_inputs(self) -> None:
        """Tell all workers to end."""
        for process in self._processes:
            with contextlib.suppress(BrokenPipeError):
                stdin_of(process).close()

    def _chunks(self) -> Iterator[tuple[int, Chunk | None]]:
        """Chunks as they come, with the number of their worker, until each worker has sent its last or is gone.

        None comes in place of a chunk about ten times a second while workers are silent, so that the caller can check whether
        to stop. A worker that is silent for too long is stuck and is killed.
        """
        heard_at = [time.monotonic()] * len(self._processes)
        with selectors.DefaultSelector() as selector:
            for number, process in enumerate(self._processes):
                selector.register(stdout_of(process), selectors.EVENT_READ, (number, Unpacker()))
            while selector.get_map():
                asleep_since = time.monotonic()
                # How late this returns shows how much of the processor is left for us: see `BackgroundPriority.adapt`.
                ready = selector.select(LOOK_AROUND)
                self.priority.adapt(delay=time.monotonic() - asleep_since - LOOK_AROUND)
                if not ready:
                    yield 0, None
                for key, _ in ready:
                    number, unpacker = key.data
                    heard_at[number] = time.monotonic()
                    data = os.read(key.fd, _PIPE_BYTES)
                    self.priority.adapt(backlog=len(data) / _PIPE_BYTES)
                    is_done = not data
                    for chunk in unpacker.feed(data):
                        is_done = is_done or bool(chunk.facts["is_last"])
                        yield number, chunk
                    if is_done:
                        selector.unregister(key.fileobj)
                for process, last in zip(self._processes, heard_at, strict=True):
                    if time.monotonic() - last > self._longest_silence and process.poll() is None:
                        kill_tree(process.pid)


def _shares_its_only_core() -> bool:
    """Whether this process has no other core to work on than the workers'."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) == 1


def end_worker(process: subprocess.Popen[bytes]) -> None:
    """A worker whose input is closed ends by itself; one that does not within the grace period is killed."""
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        kill_tree(process.pid)
        process.wait()
    stdout_of(process).close()


def stdin_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdin is not None
    return process.stdin


def stdout_of(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout


def widen_pipe(pipe: IO[bytes]) -> None:
    """Enlarge the pipe buffer, so that a worker does not block on a full pipe during a measurement."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
