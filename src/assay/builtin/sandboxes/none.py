"""No confinement, for machines without a sandbox and programs that the operator trusts."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from typing import Any, ClassVar

from assay.builtin.sandboxes.ceilings import with_ceilings
from assay.plugin import Program


class Unconfined:
    """Run programs as this user, with an empty environment but without a sandbox; chosen only by `--sandbox none`."""

    is_confining: ClassVar[bool] = False

    def problem(self) -> str:
        return ""

    def version(self) -> str:
        return ""

    def start(
        self, program: Program, pass_fds: Sequence[int] = (), **streams: Any
    ) -> subprocess.Popen[bytes]:
        """The limits on each process hold; files and network are those of the user."""
        folder = {"cwd": program.folder} if program.is_writable else {}
        return subprocess.Popen(
            with_ceilings(program.argv, program.ceilings, counts_processes=False),
            env=program.whole_environment(),
            pass_fds=pass_fds,
            start_new_session=True,
            **{**folder, **streams},
        )

    def program_pid(self, pid: int) -> int:
        return pid
