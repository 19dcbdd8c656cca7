"""A program that answers over its pipes: started, written to, read from, ended.

Nothing here waits: reads and writes take what is possible now, and `command` waits between them. Only `end` may take time,
and it is bounded.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import clock_gettime
from typing import Any

from assay.execute.resource_usage import Peak
from assay.execute.worker_log import Log
from assay.http.events import LineSplitter
from assay.plugin import AgentError, Program, Sandbox

_READ_BYTES = 1 << 20
_EXIT_SECONDS = 0.5


class Child:
    """The process of a program that is an agent.

    Its pipes never block this process, because one event loop serves many agents. Its standard error goes
    to a file, where a flood can stop neither the program nor us; the file is emptied after each answer.
    `fault` says why the program cannot be asked any more; it is then replaced by a new one.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        env: Mapping[str, str],
        sandbox: Sandbox | None = None,
        confined: Program | None = None,
    ) -> None:
        """Start a program. With a sandbox, `confined` says what runs in it, in which folder and with which environment."""
        log = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 (closed in `end`)
        # Appending: the file is emptied after each answer, and writing must then begin at its start.
        fcntl.fcntl(log, fcntl.F_SETFL, os.O_APPEND)
        try:
            streams: dict[str, Any] = {
                "bufsize": 0,
                "stdin": subprocess.PIPE,
                "stdout": subprocess.PIPE,
                "stderr": log,
            }
            self._process = (
                subprocess.Popen(command, cwd=folder, env=dict(env), **streams)
                if sandbox is None or confined is None
                else sandbox.start(confined, **streams)
            )
        except (OSError, ValueError) as error:
            log.close()
            raise AgentError(f"'{command[0]}' cannot be started: {error}") from None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._files = (self._process.stdin, self._process.stdout, log)
        self.stdin, self.stdout = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        os.set_blocking(self.stdout, False)
        self._log = Log(log.fileno())
        self._peak: Peak | None = None
        self._sandbox = sandbox
        self._remarks = ""
        self.lines = LineSplitter()
        self.served = 0
        """Requests it was sent."""
        self.fault = ""
        """Why it cannot be asked any more."""

    def write(self, data: bytes | memoryview) -> int:
        """How much of it the pipe took; BrokenPipeError when the program has closed its input."""
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0

    def count_unread_bytes(self) -> int:
        """Bytes that were written to it and that it has not read."""
        unread = fcntl.ioctl(self.stdin, termios.FIONREAD, struct.pack("i", 0))
        return int(struct.unpack("i", unread)[0])

    def has_closed_input(self) -> bool:
        """Whether the pipe has no reader any more; poll reports that even if no event is requested."""
        pipe = select.poll()
        pipe.register(self.stdin, 0)
        return bool(pipe.poll(0))

    def finish_writing(self) -> None:
        with contextlib.suppress(OSError):
            self._files[0].close()

    def read(self) -> bytes | None:
        """What there is to read now: None for nothing yet, nothing at all for the end."""
        try:
            return os.read(self.stdout, _READ_BYTES)
        except BlockingIOError:
            return None

    def remark(self, text: str) -> None:
        """A word of ours in its log."""
        self._remarks += f"[{text}]\n"

    def take_log(self) -> str:
        """What it printed since the last time, after our remarks."""
        log = self._remarks + (self._log.take() or "")
        self._remarks = ""
        return log

    def drain_flood(self) -> None:
        self._log.drain_flood()

    def catch_up(self, most_bytes: int) -> int:
        """Ignore what it said unasked, and count the lines; also find out whether it can still be asked."""
        lines, size = 0, 0
        while data := self.read():
            lines += len(self.lines.feed(data, 0.0))
            size += len(data)
            if size > most_bytes:
                self.fault = f"it wrote more than {most_bytes:,} bytes with no request pending"
                return lines
        if data is not None:
            self.fault = "it ended after its last answer"
        return lines

    def exit_code(self) -> int | None:
        return self._process.poll()

    def cpu_seconds(self) -> float:
        """Return the CPU seconds of the program itself, without those of the programs that it starts.

        0 where the system does not say, and after the program has ended.
        """
        if sys.platform != "linux" or self._process.returncode is not None:
            return 0.0
        try:
            # How the kernel writes the CPU clock of another process (clock_getcpuclockid).
            return clock_gettime((~self._program_pid() << 3) | 2)
        except OSError:
            return 0.0

    def _program_pid(self) -> int:
        pid = self._process.pid
        return pid if self._sandbox is None else self._sandbox.program_pid(pid)

    def peak_bytes(self) -> int | None:
        """The most memory that the program itself held since this was asked last, or since it was started."""
        if self._peak is None:
            try:
                self._peak = Peak(self._program_pid())
            except OSError:
                return None
        return self._peak.read()

    def end(self, timeout: float = 0.0) -> None:
        """Close the input of the program and kill it if it does not exit within `timeout` seconds."""
        self.finish_writing()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_EXIT_SECONDS)
        for file in self._files:
            with contextlib.suppress(OSError):
                file.close()
        if self._peak is not None:
            self._peak.close()
