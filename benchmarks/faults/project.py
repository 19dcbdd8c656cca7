"""The command in a folder of its own: started as a process that can be killed, and searched for what it leaves behind."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

COMMAND = Path(sys.executable).with_name("assay")
HANGS_AFTER = 120.0
"""Seconds; a busy machine may need many times what a quiet one does."""
MARK = "FAULTS_MARK"
"""Environment variable that says which folder a process works for."""
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


@dataclass(frozen=True, slots=True)
class Done:
    code: int
    out: str
    err: str

    def problem(self, *codes: int) -> str:
        """What is wrong with an end that should have had one of these codes; empty if nothing is."""
        if "Traceback" in self.err:
            return f"traceback: {self.err.strip().splitlines()[-1]}"
        if self.code not in codes:
            return (
                f"exit code {self.code} instead of {' or '.join(map(str, codes))}: {self.err.strip()[-300:]}"
            )
        return ""


class Hung(Exception):
    """A command that did not end."""


@dataclass(slots=True)
class Project:
    folder: Path
    variables: Mapping[str, str] = field(default_factory=dict)
    db: str = ""

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def start(self, *words: str) -> subprocess.Popen[str]:
        """In a session of its own, so that a signal to its group reaches nobody else."""
        return subprocess.Popen(
            [COMMAND, *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=_heed_signals,
        )

    def environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        database = {"ASSAY_DB": self.db} if self.db else {}
        return {**kept, "NO_COLOR": "1", MARK: str(self.folder), **database, **self.variables}

    def __call__(self, *words: str, seconds: float = HANGS_AFTER) -> Done:
        return finish(self.start(*words), seconds)

    def processes(self) -> list[psutil.Process]:
        """All that carry this folder's mark in their environment."""
        wanted = f"{MARK}={self.folder}".encode()
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                if wanted in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0"):
                    found.append(process)
        return found

    def left_behind(self, seconds: float = 15.0) -> list[str]:
        """Command lines of processes that are still there after a while; they are ended here."""
        eventually(lambda: not self.processes(), seconds)
        left = []
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                left.append(" ".join(process.cmdline())[:120])
                process.kill()
        return left


def finish(process: subprocess.Popen[str], seconds: float = HANGS_AFTER) -> Done:
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        words = process.args if isinstance(process.args, list) else [process.args]
        raise Hung(f"{words[1:]} did not end within {seconds:g} s: {err[-300:]}") from None
    return Done(process.returncode, out, err)


def eventually(is_true: Callable[[], object], seconds: float = 30.0) -> bool:
    deadline = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _heed_signals() -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
