"""The command line as tests use it: as a real process, or within this one where that is quick enough to prove it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = Path(sys.executable).with_name("assay")
KEPT = ("ASSAY_SANDBOX", "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START")


@dataclass(frozen=True)
class Done:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document of a command that went well."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def refusal(self) -> str:
        """What was told about a request that could not be done: nothing but a message."""
        assert self.code == 2, f"exit code {self.code}: {self.out}{self.err}"
        assert self.out == ""
        assert "Traceback" not in self.err
        return self.err


_HANGS_AFTER = 600
"""Seconds; a machine that does ten things at once may need minutes for what takes seconds."""


class Assay:
    """The command in a folder of its own, with none of this machine's settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    def __call__(self, *arguments: str | Path, cwd: Path | None = None, **variables: str) -> Done:
        done = subprocess.run(
            [COMMAND, *map(str, arguments)],
            cwd=cwd or self.folder,
            env=environment(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_HANGS_AFTER,
        )
        return Done(done.returncode, done.stdout, done.stderr)


class AssayInline(Assay):
    """The same without a new process; workers are processes all the same."""

    def __call__(self, *arguments: str | Path, cwd: Path | None = None, **variables: str) -> Done:
        from assay.cli.main import main

        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        with contextlib.ExitStack() as stack:
            stack.enter_context(_variables(environment(variables)))
            stack.enter_context(contextlib.chdir(cwd or self.folder))
            stack.enter_context(contextlib.redirect_stdout(out))
            stack.enter_context(contextlib.redirect_stderr(err))
            try:
                main([str(argument) for argument in arguments])
            except SystemExit as end:
                code = int(end.code or 0)
        return Done(code, _written(out), _written(err))

    def run_inline(self, *arguments: str | Path) -> Done:
        """`assay run` without workers: for tests of what comes of results, where processes would only take time.

        A module is imported once per test, so a test that changes the file of an agent between two runs needs workers.
        """
        return self("run", *arguments, "--isolation", "inline")


Prepare = Callable[[Assay, Callable[[Any], object]], None]
"""The fixture `prepare`: fills the folder of a command as a function does, which is called once per file."""


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {name: os.environ[name] for name in KEPT if name in os.environ} | dict(variables)


def heeding_signals() -> None:
    """For a process that a test interrupts: tests that run in the background were told to ignore what a terminal sends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@contextlib.contextmanager
def _variables(wanted: Mapping[str, str]) -> Any:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(wanted)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
