"""Run a program in a sandbox to its end: watched while it runs, ended where it takes too much, with what it used and said.

The kernel limits each process by itself, and does not count processes at all where Assay runs as root. So this module looks
at all processes of the program together every few milliseconds. Memory and processes are those of the whole tree, CPU time
is what the kernel accounted for it at the end.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import tempfile
from dataclasses import dataclass, replace
from time import monotonic, sleep
from typing import IO

from assay.execute.process_tree import kill_tree, tree_usage
from assay.plugin.sandbox import Program, Sandbox

_LOOK_SECONDS = 0.01
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
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        started = monotonic()
        accounted = replace(program, is_accounted=True)
        process = sandbox.start(accounted, stdin=subprocess.DEVNULL, stdout=output, stderr=errors)
        watch = _Watch(process, program, started + seconds)
        try:
            code, cpu_seconds = watch.run()
        finally:
            _end(process, sandbox)
        return ConfinedRun(
            code, monotonic() - started, _tail(output), _tail(errors), watch.ended_for, cpu_seconds,
            watch.peak_bytes, watch.peak_processes,
        )  # fmt: skip


class _Watch:
    """Looks at the processes of a program until they have ended or have to be."""

    def __init__(self, process: subprocess.Popen[bytes], program: Program, deadline: float) -> None:
        self._process, self._ceilings, self._deadline = process, program.ceilings, deadline
        self.ended_for = ""
        self.peak_bytes = self.peak_processes = 0

    def run(self) -> tuple[int, float]:
        """Exit code and CPU seconds."""
        # A process that ends wakes the poll at once, so that short programs are timed well.
        descriptor = os.pidfd_open(self._process.pid) if hasattr(os, "pidfd_open") else None
        try:
            while (ended := self._wait(descriptor)) is None:
                self.ended_for = self.ended_for or self._look()
                if self.ended_for:
                    self._process.kill()
            return ended
        finally:
            if descriptor is not None:
                os.close(descriptor)

    def _wait(self, descriptor: int | None) -> tuple[int, float] | None:
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
        return self._process.returncode, usage.ru_utime + usage.ru_stime

    def _look(self) -> str:
        """What it takes too much of; empty where nothing."""
        most_processes, most_bytes = self._ceilings.processes, self._ceilings.memory_bytes
        used = tree_usage(self._process.pid, most_processes)
        self.peak_processes = max(self.peak_processes, used.processes)
        self.peak_bytes = max(self.peak_bytes, used.rss)
        if monotonic() > self._deadline:
            return "seconds"
        if most_processes is not None and used.processes > most_processes:
            return "processes"
        return "memory" if most_bytes is not None and used.rss > most_bytes else ""


def _end(process: subprocess.Popen[bytes], sandbox: Sandbox) -> None:
    """End what is left. In a sandbox everything ends with its first process; without one, it has to be looked for."""
    if not sandbox.is_confining:
        kill_tree(process.pid) if process.returncode is None else None
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
    if process.returncode is None:
        process.kill()
        process.wait()


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _MOST_TEXT))
    return file.read().decode(errors="replace").replace("\0", "�")
