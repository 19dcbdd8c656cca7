"""The worker process: reads one job, attempts it, writes each batch as lines.

It lives in a session of its own, below a reaper. Its arguments are the file descriptors for results, log, status_block and job, and the
function to attempt the job with, as `module:name`. The job is there once a byte comes by standard input. The code under test runs in this very process and may close files, replace
modules, fork or exit; most of what follows keeps the channel to the supervisor working, or its loss detectable.
"""

from __future__ import annotations

import contextlib
import faulthandler
import fcntl
import importlib
import os
import resource
import signal
import sys
import traceback
from functools import partial
from os import write as write_some  # ours from the start: a subject may put something else in its place
from pathlib import Path
from types import FrameType

from assay.execute.wire import decode_order, encode_batch
from assay.execute.worker_channel import AHEAD, CANCEL, StatusBlock, WorkerStage
from assay.execute.worker_log import Log
from assay.model import Batch, Job
from assay.plugin.interruption import Cancelled

HIGH = 900
"""Our file descriptors are moved up here, away from experiments that close or reuse all the low ones."""

MODULE_FOLDERS = "ASSAY_MODULE_FOLDERS"
"""Environment variable: where the runner finds modules, so that a worker finds whatever a script has imported."""


def main() -> None:
    """Do the job that this process was started for, and exit.

    The order of the steps matters. The channel to the supervisor, the handler of its signal and that of
    forks stand before any code of the experiment is imported, whatever that code does. The process then
    leaves by `os._exit`: threads that do not end and exit handlers of the experiment would keep it alive.
    """
    # Our own files first, then the signal and the fork handler: from the moment at which code of the experiment is imported
    # the channel to the supervisor must stand, whatever that code does.
    results, log_fd = (_move_descriptor_up(int(word)) for word in sys.argv[1:3])
    status_fd = int(sys.argv[3])
    status_block = StatusBlock(status_fd)
    os.close(status_fd)
    cancellation = Cancellation(status_block)
    signal.signal(CANCEL, cancellation)
    os.register_at_fork(after_in_child=partial(_detach_fork, status_block, results, log_fd))
    _prepare()
    module, _, name = sys.argv[5].partition(":")
    if sys.argv[6:] == [AHEAD]:
        importlib.import_module(module)
        status_block.wait()
    job, secret = decode_order(_read_order(int(sys.argv[4]), status_block))
    if job.gpus:
        # Before anything is imported that looks for GPUs.
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(job.gpus)
    if job.checkout is not None:
        from assay.execute.checkout import enter_checkout

        enter_checkout(job.checkout)
    attempt = getattr(importlib.import_module(module), name)
    batches = attempt(job, status_block, partial(_take_log, Log(log_fd)))
    try:
        for batch in batches:
            _write(results, encode_batch(batch, secret), status_block)
            if cancellation.is_requested:
                break
        batches.close()
        if job.checkout is not None and (strays := _strays(job)) is not None:
            _write(results, encode_batch(strays, secret), status_block)
    except Cancelled:
        pass
    except BaseException:
        traceback.print_exc()
        status_block.enter(WorkerStage.BROKEN)
    _flush()
    # Not sys.exit: threads that do not end and exit handlers of the experiment would keep the process.
    os._exit(0)


def _strays(job: Job) -> Batch | None:
    """A note about modules that were not imported from the checkout; only process 0 writes it."""
    from assay.execute.attempt import remark
    from assay.execute.checkout import find_strays

    assert job.checkout is not None
    files = find_strays(job.checkout) if job.process == 0 else []
    if not files:
        return None
    named = ", ".join(files[:3]) + (f" and {len(files) - 3} more" if len(files) > 3 else "")
    text = (
        f"not all code came from commit {job.checkout.commit[:10]}: {named} was imported as it is on disk now"
    )
    return Batch(artifacts=(remark(job, "checkout", text),))


def _prepare() -> None:
    faulthandler.enable(2)
    sys.path.append(str(Path.cwd()))
    folders = os.environ.pop(MODULE_FOLDERS, "").split(os.pathsep)
    sys.path += [folder for folder in folders if folder and folder not in sys.path]
    with contextlib.suppress(OSError):
        # When memory runs out, the kernel is to choose the worker and not the runner.
        Path("/proc/self/oom_score_adj").write_text("800")


def _read_order(order_fd: int, status_block: StatusBlock) -> bytes:
    """Wait until the order is there. Standard input is empty from then on, and the experiment cannot read the job."""
    is_wanted = os.read(0, 1)
    status_block.enter(WorkerStage.STARTING)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if not is_wanted:
        os._exit(0)
    # The supervisor has the same file, and has left off at its end.
    os.lseek(order_fd, 0, os.SEEK_SET)
    with open(order_fd, "rb") as order:
        return order.read()


def _move_descriptor_up(fd: int) -> int:
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    above = HIGH if allowed == resource.RLIM_INFINITY else min(HIGH, allowed - 8)
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, above)
    os.close(fd)
    return moved


def _detach_fork(status_block: StatusBlock, *fds: int) -> None:
    """Detach a forked child from the worker's pipes, so that it cannot report results."""
    status_block.detach()
    for fd in fds:
        with contextlib.suppress(OSError):
            os.close(fd)


def _take_log(log: Log) -> str | None:
    _flush()
    try:
        return log.take()
    except OSError:
        return None


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError, TypeError):
            # An experiment may have closed them, or put something else in their place.
            continue


def _write(fd: int, data: bytes, status_block: StatusBlock) -> None:
    """Write all of the data, as a pipe may take less at a time; exit if the experiment has closed the pipe."""
    view = memoryview(data)
    try:
        while view:
            view = view[write_some(fd, view) :]
    except OSError:
        status_block.enter(WorkerStage.SEVERED)
        os._exit(1)


class Cancellation:
    """Handles the signal CANCEL: interrupts the subject where it is; between executions, notes that no more are wanted."""

    def __init__(self, status_block: StatusBlock) -> None:
        self._status_block = status_block
        self.is_requested = False

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        self.is_requested = True
        # Only the experiment's own code is interrupted: an exception within ours could leave half of a line in the pipe.
        if self._status_block.read().stage in (
            WorkerStage.SETUP,
            WorkerStage.PREPARING,
            WorkerStage.EXECUTING,
        ):
            raise Cancelled


if __name__ == "__main__":
    main()
