"""A sandbox: Assay hands it untrusted programs, and it decides how they are confined."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any, ClassVar

from assay.plugin import Program, find


class TemplateNameSandbox:
    """Bubblewrap, with the lowest priority for what runs in it."""

    is_confining: ClassVar[bool] = True

    def __init__(self) -> None:
        self._inner = find("sandboxes", "bubblewrap")()

    def problem(self) -> str:
        """Why it does not work on this machine; empty where it does."""
        problem: str = self._inner.problem()
        return problem

    def version(self) -> str:
        version: str = self._inner.version()
        return version

    def start(
        self, program: Program, pass_fds: Sequence[int] = (), **streams: Any
    ) -> subprocess.Popen[bytes]:
        from dataclasses import replace

        process: subprocess.Popen[bytes] = self._inner.start(
            replace(program, argv=["nice", "-n", "19", *program.argv]), pass_fds, **streams
        )
        return process

    def program_pid(self, pid: int) -> int:
        """`nice` becomes the program, so it has the same process."""
        found: int = self._inner.program_pid(pid)
        return found
