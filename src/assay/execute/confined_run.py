"""Runs a program in a sandbox to its end, enforces its limits, and returns its output and resource usage.

The kernel limits each process by itself, and does not count processes at all where Assay runs as root. So this module looks
at all processes of the program together every few milliseconds. Memory and processes are those of the whole tree, CPU time
is what the kernel accounted for at the end, or what the last look saw.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import IO

from assay.execute.process_tree import (
    MARK,
    adopt_orphans,
    find_children,
    find_namespace_inits,
    kill,
    kill_group,
    kill_received,
    kill_tree,
    tree_usage,
)
from assay.plugin.sandbox import Ceilings, Program, Sandbox

_LOOK_SECONDS = 0.01
_DEATH_LOOK_SECONDS = 0.001
_DEATH_SECONDS = 5.0
_MOST_TEXT = 8000
"""Bytes that are kept of the end of an output stream."""


@dataclass(frozen=True, slots=True)
class ConfinedRun:
    """How a program ended. `ended_for` is `seconds`, `memory` or `processes` where it was ended by us, else empty."""

    code: int
    """Negative for a signal; a shell reports a signal of its child as 128 + its number."""
    seconds: float
    output: str
    errors: str
    ended_for: str = ""
    cpu_seconds: float = 0.0
    peak_bytes: int = 0
    peak_processes: int = 0

    @property
    def is_ok(self) -> bool:
        return self.code == 0 and not self.ended_for


def run_confined(sandbox: Sandbox, program: Program, seconds: float) -> ConfinedRun:
    """Run it, for at most so many seconds. Nothing that it started is left afterwards."""
    # It begins with the mark of this worker, so a search for the worker's processes finds these as well.
    mark = f"{os.environ.get(MARK, '')}-{secrets.token_hex(8)}"
    program = replace(program, environment={**program.environment, MARK: mark})
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = monotonic()
        # A sandbox may leave its first process to us, which knows the CPU time of all others; without one, what the program left
        # is found among our children.
        with adopt_orphans():
            process = sandbox.start(program, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
            watch = _Watch(process, program.ceilings, started + seconds)
            try:
                code = watch.run()
            finally:
                _end(process, sandbox, mark, watch.killed)
        return ConfinedRun(
            code, monotonic() - started, _tail(output), _tail(errors), watch.ended_for, watch.cpu_seconds,
            watch.peak_bytes, watch.peak_processes,
        )  # fmt: skip


@contextlib.contextmanager
def _first_in_line() -> Iterator[None]:
    """Let this thread run before all others where Assay runs as root, whose processes the kernel does not count.

    A fork bomb doubles within milliseconds. If the thread that watches it had to wait for its turn among a hundred processes, there
    would be thousands by then, and they could no longer be ended.
    """
    if os.geteuid() != 0:  # who could not undo it either
        yield
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    has_policies = hasattr(os, "sched_setscheduler")
    policy = (os.sched_getscheduler(0), os.sched_getparam(0)) if has_policies else None
    _put_first(0)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if policy is not None:
                os.sched_setscheduler(0, *policy)
            os.setpriority(os.PRIO_PROCESS, 0, nice)


def _put_first(pid: int) -> None:
    """Let a process, or for 0 this thread, run before all ordinary ones.

    A nice value counts only within a session, and there it is one share among those of all processes, so it does not help against
    thousands.
    """
    try:
        os.sched_setscheduler(pid, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except (OSError, AttributeError):
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, pid, -20)


class _Watch:
    """Looks at the processes of a program until they have ended or have to be.

    In a sandbox, the process that was started has one child, the first process of the namespace: all others end with it, and it
    has waited for all of them when it ends.
    """

    def __init__(self, process: subprocess.Popen[bytes], ceilings: Ceilings, deadline: float) -> None:
        self._process = process
        self._ceilings, self._deadline = ceilings, deadline
        self._sampled = self._accounted = 0.0
        self.ended_for = ""
        self.peak_bytes = self.peak_processes = 0
        self.killed: set[int] = set()

    @property
    def cpu_seconds(self) -> float:
        """What the kernel accounted for is exact; where it accounted for less than was seen, a part was left out."""
        return max(self._sampled, self._accounted)

    def run(self) -> int:
        """Watch the program until it has ended, and return its exit code."""
        # A process that ends wakes the poll at once, so that short programs are timed well.
        descriptor = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else None
        with _first_in_line(), contextlib.ExitStack() as opened:
            if descriptor is not None:
                opened.callback(os.close, descriptor)
            while (code := self._wait(descriptor)) is None:
                self.ended_for = self.ended_for or self._look()
                if self.ended_for:
                    self._kill()
            self._end_namespace()
            return code

    def _kill(self) -> None:
        """End the first process of the namespace before the one that we started.

        It is put first, where we may do that: among a thousand processes of a fork bomb, it would take seconds until it is its turn
        to die. The one that we started is stopped before: a shell would continue with its next command.
        """
        kill(self._process.pid, signal.SIGSTOP)
        for first in find_children(self._process.pid):
            _put_first(first)
            kill(first)
            self.killed.add(first)
        # Not by the method of Popen, which would wait for a process that has ended meanwhile, and `_wait` could not.
        kill(self._process.pid)

    def _wait(self, descriptor: int | None) -> int | None:
        if descriptor is None:
            sleep(_LOOK_SECONDS)
        else:
            poll = select.poll()
            poll.register(descriptor, select.POLLIN)
            poll.poll(_LOOK_SECONDS * 1000)
        pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
        if pid == 0:
            return None
        # The Popen object must not wait again for a process that is gone.
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self._accounted += usage.ru_utime + usage.ru_stime
        return self._process.returncode

    def _end_namespace(self) -> None:
        """End what is left in the namespace, and wait for its first process: its usage is that of all others.

        When the process that we started has ended, its child is ours, since this process receives orphans.
        """
        for first in find_namespace_inits(os.getpid()):
            kill(first)
            until = monotonic() + _DEATH_SECONDS
            # Another thread that ran a program meanwhile may have waited for it.
            with contextlib.suppress(ChildProcessError):
                while not (ended := os.wait4(first, os.WNOHANG))[0] and monotonic() < until:
                    sleep(_DEATH_LOOK_SECONDS)
                self._accounted += ended[2].ru_utime + ended[2].ru_stime

    def _look(self) -> str:
        """What it takes too much of; empty where nothing."""
        most_processes, most_bytes = self._ceilings.processes, self._ceilings.memory_bytes
        used = tree_usage(self._process.pid, most_processes)
        self.peak_processes = max(self.peak_processes, used.processes)
        self.peak_bytes = max(self.peak_bytes, used.rss)
        self._sampled = max(self._sampled, used.cpu_seconds)
        if monotonic() > self._deadline:
            return "seconds"
        if most_processes is not None and used.processes > most_processes:
            return "processes"
        return "memory" if most_bytes is not None and used.rss > most_bytes else ""


def _end(process: subprocess.Popen[bytes], sandbox: Sandbox, mark: str, killed: set[int]) -> None:
    """End what is left. In a sandbox everything ends with its first process; without one, it has to be looked for."""
    if process.returncode is None:
        kill_tree(process.pid)
        process.wait()
    if not sandbox.is_confining:
        kill_group(process.pid)
        kill_received(mark, process.pid, killed)


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _MOST_TEXT))
    return file.read().decode(errors="replace").replace("\0", "�")
