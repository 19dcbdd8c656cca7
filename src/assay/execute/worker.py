"""The worker process: reads one job, attempts it, writes each batch as a line.

It lives in a session of its own, and dies with its supervisor: the kernel sees to it on Linux, and everywhere a
thread waits for the control pipe to close.
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
import threading
import traceback
from functools import partial
from pathlib import Path
from time import time
from types import FrameType

from assay.execute.attempt import Cancelled
from assay.execute.log import Log
from assay.execute.pulse import Pulse, Stage
from assay.execute.wire import decode_job, encode_batch
from assay.model import Batch, Execution, Job, Status

PR_SET_PDEATHSIG = 1


def main() -> None:
    control, results, pulse_fd, log_fd = (int(word) for word in sys.argv[1:5])
    die_with_the_supervisor()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    faulthandler.enable(2)
    sys.path.append(str(Path.cwd()))
    module, _, name = sys.argv[5].partition(":")
    with os.fdopen(control, "rb", closefd=False) as lines:
        job = decode_job(lines.readline())
    watch_the_supervisor(control)
    pulse, log = Pulse(pulse_fd), Log(log_fd)
    signal.signal(signal.SIGTERM, partial(cancel, pulse))
    attempt = getattr(importlib.import_module(module), name)
    batches = attempt(job, pulse, lambda: _printed(log))
    try:
        for batch in batches:
            write(results, encode_batch(batch))
            if _cancelled:
                batches.close()
    except Cancelled:
        batches.close()
    except Exception as error:
        write(results, encode_batch(_our_fault(job, pulse, error)))
    flush()
    os._exit(0)


def _our_fault(job: Job, pulse: Pulse, error: Exception) -> Batch:
    """Something broke that is not the experiment's: an instrument, or this program."""
    beat = pulse.read()
    text = "".join(traceback.format_exception(error))[-4000:]
    place = (job.trial, job.process, beat.phase, beat.repetition)
    execution = Execution(
        *place, Status.HARNESS_ERROR, time(), {}, error=f"{type(error).__name__}: {error}\n{text}"
    )
    return Batch((execution,), settled=((job.trial, job.process),))


def _printed(log: Log) -> str | None:
    flush()
    return log.take()


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue


def write(fd: int, data: bytes) -> None:
    """All of it: a pipe may take less at a time."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


_cancelled: list[bool] = []


def cancel(pulse: Pulse, signum: int, frame: FrameType | None) -> None:
    """Break off the subject where it is; between executions, note that no more are wanted."""
    _cancelled.append(True)
    if pulse.read().stage in (Stage.SETUP, Stage.EXECUTING):
        raise Cancelled


def die_with_the_supervisor() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def watch_the_supervisor(control: int) -> None:
    """The kernel kills this process only; closing the pipe takes its children along."""

    def wait_for_the_end() -> None:
        os.read(control, 1)
        os.killpg(0, signal.SIGKILL)

    threading.Thread(target=wait_for_the_end, daemon=True, name="assay-supervisor-watch").start()


if __name__ == "__main__":
    main()
