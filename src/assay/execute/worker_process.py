"""Starts the process of a worker, which waits for its order: the job that it is to do.

A worker takes longer to start than a short job takes, and needs the job only then. So the first worker of a run can start while the
store is being opened (`start_ahead`); a later start of a worker with the same settings takes that one.

Four things connect the process to its supervisor: a pipe for results, a file for what it prints, shared memory that says what
it is doing (`StatusBlock`), and standard input, by which it learns that its order is there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from time import monotonic, sleep

from assay.execute import reaper
from assay.execute.guardian import Guardian
from assay.execute.process_tree import MARK, kill_tree
from assay.execute.worker import MODULE_FOLDERS
from assay.execute.worker_channel import AHEAD, StatusBlock, WorkerStage, create_shared_memory, memory_file
from assay.execute.worker_log import Log, log_file
from assay.model import Isolation, Plan

PIPE_BYTES = 1 << 20
ATTEMPT = "assay.execute.attempt:attempt"
"""What the runner attempts jobs with."""
_F_SETPIPE_SZ = 1031
_READY_SECONDS = 0.5
"""How long a noise probe waits for the worker that was started ahead, which takes a fifth of it on a quiet machine."""


class WorkerProcess:
    """A worker's process, with this end of everything that connects it to us.

    Four files connect them: the order in memory, the status block, the log, and the pipe on which results
    come back. A worker may be started before its job is known; it then imports what it will need and
    waits until `give_order` writes the order and wakes it. `close` gives the files back and does not end
    the process, which is the task of the supervisor.
    """

    def __init__(self, attempt: str, guardian: Guardian, seed: int, *words: str) -> None:
        self.mark = guardian.mark()
        self.started = monotonic()
        self._attempt, self._guardian = attempt, guardian
        self._settings = _build_variables(seed)
        with contextlib.ExitStack() as opened:
            self._start(words, opened)
            self._opened = opened.pop_all()
        guardian.watch(self.process.pid)

    def _start(self, words: Iterable[str], opened: contextlib.ExitStack) -> None:
        # The order is a file in memory: a pipe would have to be fed while the worker starts, and is limited.
        status_fd, self._order = create_shared_memory(), memory_file(())
        wait, self._go = os.pipe()
        self._until_ordered = opened.enter_context(contextlib.ExitStack())
        self._until_ordered.callback(os.close, self._order)
        self._until_ordered.callback(os.close, self._go)
        with _closing(status_fd, wait):
            self.status_block = StatusBlock(status_fd)
            opened.callback(self.status_block.close)
            self.status_block.enter(WorkerStage.STARTING)
            log_fd = log_file()
            opened.callback(os.close, log_fd)
            self.log = Log(log_fd)
            self.fd, write = os.pipe()
            opened.callback(os.close, self.fd)
            os.set_blocking(self.fd, False)
            with _closing(write):
                _widen(write)
                # Only these: a process that held the write end of another worker's pipe would hide that one's end.
                inherited = (write, log_fd, status_fd, self._order)
                worker = ("assay.execute.worker", *map(str, inherited), self._attempt, *words)
                self.process = subprocess.Popen(
                    [sys.executable, "-P", "-m", reaper.MODULE, str(status_fd), *worker],
                    stdin=wait,
                    stdout=log_fd,
                    stderr=log_fd,
                    pass_fds=inherited,
                    start_new_session=True,
                    env={**self._settings, MARK: self.mark},
                )

    def is_as_new(self, attempt: str, guardian: Guardian, seed: int) -> bool:
        """Say whether a worker that is started now would be no different.

        If not, the worker that was started ahead is dismissed, and a new one takes its place.
        """
        is_same = self._attempt == attempt and self._guardian is guardian
        return is_same and self._settings == _build_variables(seed) and self.process.poll() is None

    def give_order(self, pieces: Iterable[bytes]) -> None:
        """Write the job, and wake the worker that waits for it.

        A worker that has died meanwhile is no error here: the reader of its results finds out, and
        knows what to do about it.
        """
        self.status_block.enter(WorkerStage.STARTING)
        # The memory of the order is free once the worker has read it. One that has died is found by the reader of its results.
        with self._until_ordered, contextlib.suppress(BrokenPipeError):
            with open(self._order, "wb", closefd=False) as file:
                file.writelines(pieces)
            os.write(self._go, b"\n")

    def wait_until_ready(self) -> None:
        """Wait until the worker does nothing but wait for its job."""
        deadline = monotonic() + _READY_SECONDS
        while self.status_block.read().since_ns and self.process.poll() is None and monotonic() < deadline:
            sleep(0.002)

    def dismiss(self) -> None:
        """End it before it has an order."""
        kill_tree(self.process.pid)
        self.process.wait()
        self._guardian.release(self.process.pid)
        self.close()

    def close(self) -> None:
        self._opened.close()


class _Ahead:
    """The worker that was started ahead, until somebody takes it, and the guardian that watches over it."""

    worker: WorkerProcess | None = None
    guardian: Guardian | None = None


@contextlib.contextmanager
def start_ahead(plan: Plan) -> Iterator[None]:
    """Start the first worker of a plan; if it is not taken by the end, it is ended.

    Not on a single processor, which has nothing to gain, nor where another process does the work, or code of a different commit.
    """
    is_alone = len(os.sched_getaffinity(0)) < 2 if hasattr(os, "sched_getaffinity") else os.cpu_count() == 1
    is_elsewhere = plan.executor != "local" or any(
        trial.isolation is Isolation.INLINE for trial in plan.trials
    )
    if is_alone or is_elsewhere or plan.checkouts:
        yield
        return
    guardian = _Ahead.guardian = Guardian()
    try:
        start_first_worker(guardian, plan.seed)
        yield
    finally:
        dismiss_first_worker()
        if _Ahead.guardian is not None:
            _Ahead.guardian = None
            guardian.close()


def start_first_worker(guardian: Guardian, seed: int) -> None:
    """Start a worker that has no order yet; the caller must call `dismiss_first_worker` at the end."""
    # One that cannot be started now is started when it is needed, and then the reason is reported.
    with contextlib.suppress(OSError):
        _Ahead.worker = WorkerProcess(ATTEMPT, guardian, seed, AHEAD)


def dismiss_first_worker() -> None:
    """End the worker that was started ahead, if it was not taken."""
    worker, _Ahead.worker = _Ahead.worker, None
    if worker is not None:
        worker.dismiss()


def take_guardian() -> Guardian:
    """Return the guardian of the worker that was started ahead, or a new one; the caller closes it."""
    guardian, _Ahead.guardian = _Ahead.guardian, None
    return guardian or Guardian()


def take_process(attempt: str, guardian: Guardian, seed: int) -> WorkerProcess:
    """The one that was started ahead, if it is what a new one would be, or a new one."""
    worker, _Ahead.worker = _Ahead.worker, None
    if worker is not None:
        if worker.is_as_new(attempt, guardian, seed):
            return worker
        worker.dismiss()
    return WorkerProcess(attempt, guardian, seed)


def wait_until_quiet() -> None:
    """Let the worker that was started ahead finish starting: a noise probe would take it for another program."""
    if _Ahead.worker is not None:
        _Ahead.worker.wait_until_ready()


def _build_variables(seed: int) -> dict[str, str]:
    return {**os.environ, MODULE_FOLDERS: os.pathsep.join(sys.path), "PYTHONHASHSEED": str(seed)}


@contextlib.contextmanager
def _closing(*fds: int) -> Iterator[None]:
    try:
        yield
    finally:
        for fd in fds:
            os.close(fd)


def _widen(fd: int) -> None:
    """Enlarge the pipe, so that the worker is not held up while the runner stores."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _F_SETPIPE_SZ, PIPE_BYTES)
