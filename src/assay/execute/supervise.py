"""A worker seen from outside: started, listened to, kept within its limits, ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from time import monotonic, sleep, time

from assay.execute.log import Log
from assay.execute.pulse import Beat, Pulse, Stage, shared_file
from assay.execute.tree import MARK, kill_all, tree_rss
from assay.execute.wire import decode_batch, encode_job
from assay.model import Artifact, Batch, Execution, Job, Phase, Status, Stretch
from assay.units import size

DEFAULT_SECONDS = 600.0
GRACE_SECONDS = 2.0
_PIPE_BYTES = 1 << 20
_F_SETPIPE_SZ = 1031


class Worker:
    """One job in one process of its own."""

    def __init__(self, job: Job, attempt: str) -> None:
        self.job = job
        self.is_done = False
        self._mark = secrets.token_hex(8)
        self._pulse_fd = shared_file()
        self._pulse = Pulse(self._pulse_fd)
        self._log_file = tempfile.TemporaryFile(mode="a+b", buffering=0)  # noqa: SIM115 (closed in close)
        self._log = Log(self._log_file.fileno())
        self._rest = b""
        self._ended_by: tuple[Status, str, Beat] | None = None
        self._settled = False
        self._stopped = False
        self._next_look = 0.0
        self._memory_limit = job.limits.memory_bytes or most_of_the_memory()
        self.fd, self._process = self._start(attempt)

    def _start(self, attempt: str) -> tuple[int, subprocess.Popen[bytes]]:
        read, write = os.pipe()
        control_read, self._control = os.pipe()
        _widen(write)
        inherited = (control_read, write, self._pulse_fd, self._log_file.fileno())
        words = [sys.executable, "-P", "-m", "assay.execute.worker", *map(str, inherited), attempt]
        hash_seed = str(self.job.seed % 2**32)
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=self._log_file,
            stderr=self._log_file,
            pass_fds=inherited,
            start_new_session=True,
            env={**os.environ, MARK: self._mark, "PYTHONHASHSEED": hash_seed},
        )
        os.close(control_read)
        os.close(write)
        with contextlib.suppress(BrokenPipeError):
            os.write(self._control, encode_job(self.job))
        os.set_blocking(read, False)
        return read, process

    def listen(self) -> list[Batch]:
        """All batches that have arrived, without waiting; sets `is_done` once there will be no more."""
        batches: list[Batch] = []
        is_open = True
        while is_open:
            try:
                data = os.read(self.fd, _PIPE_BYTES)
            except BlockingIOError:
                break
            is_open = bool(data)
            *lines, self._rest = (self._rest + data).split(b"\n")
            batches += [decode_batch(line) for line in lines]
            if len(batches) > 5000:
                break
        for batch in batches:
            self._settled = self._settled or bool(batch.settled)
            self._stopped = self._stopped or bool(batch.stopped)
        self.is_done = not is_open
        return batches

    def keep_within_limits(self) -> None:
        """Kill the execution under way if it takes too long, too much memory, or floods the log."""
        now = monotonic()
        if now < self._next_look or self._ended_by:
            return
        self._next_look = now + 0.02
        self._log.drain_flood()
        beat = self._pulse.read()
        if beat.since_ns and beat.seconds() > (allowed := self._seconds_allowed(beat.stage)):
            self._end(Status.TIMEOUT, f"took longer than {allowed:g} s", beat)
        elif (held := tree_rss(self._process.pid)) > self._memory_limit:
            text = f"held {size(held)} of memory, more than {size(self._memory_limit)}"
            self._end(Status.OVER_LIMIT, text, beat)

    def _seconds_allowed(self, stage: Stage) -> float:
        limit = self.job.limits.seconds or DEFAULT_SECONDS
        return limit if stage is Stage.EXECUTING else max(60.0, 10 * limit)

    def _end(self, status: Status, text: str, beat: Beat) -> None:
        """Kill, unless what was too long has just ended: then the next is innocent."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, signal.SIGSTOP)
            now = self._pulse.read()
            if status is Status.TIMEOUT and (now.since_ns, now.repetition) != (
                beat.since_ns,
                beat.repetition,
            ):
                os.kill(self._process.pid, signal.SIGCONT)
                return
            self._ended_by = (status, text, beat)
            self._process.kill()

    def cancel(self) -> list[Batch]:
        """Ask it to end, so that teardown runs; kill it when it does not."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        batches: list[Batch] = []
        deadline = monotonic() + GRACE_SECONDS
        while not self.is_done and monotonic() < deadline:
            batches += self.listen()
            sleep(0.01)
        self._ended_by = (Status.CANCELLED, "The run was interrupted.", self._pulse.read())
        return batches

    def close(self) -> Batch:
        """Gather the end of a worker: what its death means, if it died, for the execution under way."""
        beat = self._pulse.read()
        outlived = kill_all(self._process.pid, self._mark)
        code = self._process.wait()
        batch = Batch()
        if not self._settled:
            batch = self._death(code, beat)
        elif outlived:
            batch = Batch(artifacts=(_outlived(self.job, outlived),))
        os.close(self._control)
        os.close(self.fd)
        self._pulse.close()
        os.close(self._pulse_fd)
        self._log_file.close()
        return batch

    def _death(self, code: int, beat: Beat) -> Batch:
        status, text, last = self._ended_by or (Status.CRASHED, died_of(code), beat)
        if last.stage in (Stage.STARTING, Stage.SETUP, Stage.TEARDOWN):
            text = f"{text}, during {last.stage.name.lower()}"
        if status is Status.CANCELLED and last.stage is not Stage.EXECUTING:
            return Batch()
        if last.stage is Stage.TEARDOWN:
            return Batch(settled=((self.job.trial, self.job.process),))
        if last.stage is Stage.STARTING and status is Status.CRASHED:
            status = Status.HARNESS_ERROR
        phase, repetition = last.phase, last.repetition
        if last.stage is not Stage.EXECUTING or not self._is_kept(phase):
            first = next(s for s in self.job.stretches if s.kept)
            phase, repetition = Phase(first.phase), first.first
        seconds = {"seconds": last.seconds()} if status is Status.TIMEOUT else {}
        execution = Execution(
            self.job.trial,
            self.job.process,
            phase,
            repetition,
            status,
            time(),
            seconds,
            error=text,
            log=self._log.take(),
        )
        return Batch((execution,))

    def _is_kept(self, phase: Phase) -> bool:
        return any(stretch.kept for stretch in self.job.stretches if stretch.phase == phase)

    def remaining(self, stored: dict[str, int]) -> Job | None:
        """The job that is left after a crash; `stored` counts what is done of each phase."""
        left = tuple(s for stretch in self.job.stretches if (s := _left(stretch, stored)))
        return replace(self.job, stretches=left) if any(s.kept for s in left) else None


def _left(stretch: Stretch, stored: dict[str, int]) -> Stretch | None:
    done = max(stretch.first, stored.get(stretch.phase, 0))
    if not stretch.kept or (stretch.phase == Phase.WARMUP and done >= stretch.end):
        return replace(stretch, kept=False)
    return replace(stretch, first=done) if done < stretch.end else None


def died_of(code: int) -> str:
    """
    >>> died_of(3), died_of(-11)
    ('the process ended itself with exit code 3', 'the process died of SIGSEGV')
    """
    if code < 0:
        return f"the process died of {signal.Signals(-code).name}"
    return f"the process ended itself with exit code {code}"


def most_of_the_memory() -> int:
    """The ceiling where a spec sets none: what would leave the machine without memory is ended before that."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 2**62
    return int(total * 0.8)


def _outlived(job: Job, number: int) -> Artifact:
    text = f"{number} processes that the experiment started outlived it and were ended"
    return Artifact(job.trial, f"outlived-p{job.process}.txt", "remark", text.encode())


def _widen(fd: int) -> None:
    """A large pipe lets the worker run on while the runner stores."""
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, _F_SETPIPE_SZ, _PIPE_BYTES)
