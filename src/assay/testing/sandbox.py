"""The contract of sandboxes: a program can compute and write to its folder, and cannot reach anything else."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import ClassVar

from assay.execute.confined_run import ConfinedRun, run_confined
from assay.plugin import lookup
from assay.plugin.sandbox import Ceilings, Program, Sandbox

_CEILINGS = Ceilings(memory_bytes=256 << 20, processes=64, file_bytes=16 << 20)


class SandboxContract:
    """What every sandbox that confines must do. Name it."""

    sandbox: ClassVar[str]

    def test_it_works_here_and_says_its_version(self) -> None:
        assert self._make().problem() == ""
        assert isinstance(self._make().version(), str)

    def test_a_program_gives_its_output_and_its_exit_code(self, tmp_path: Path) -> None:
        done = self.run_shell(tmp_path, "echo said; exit 3")

        assert (done.output, done.code) == ("said\n", 3)

    def test_a_program_may_write_to_its_folder(self, tmp_path: Path) -> None:
        assert self.run_shell(tmp_path, "echo text > kept").code == 0
        assert (tmp_path / "kept").read_text() == "text\n"

    def test_a_program_reads_and_writes_no_other_file(self, tmp_path: Path) -> None:
        own, outside = tmp_path / "own", tmp_path / "outside"
        own.mkdir()
        outside.write_text("secret")

        assert self.run_shell(own, "cat ../outside").code != 0
        # It may seem to work, in a private /tmp, but nothing comes of it.
        self.run_shell(own, "echo changed > ../outside")
        assert outside.read_text() == "secret"

    def test_a_program_does_not_get_our_environment(self, tmp_path: Path) -> None:
        os.environ["ASSAY_SANDBOX_CONTRACT"] = "secret"
        try:
            assert "secret" not in self.run_shell(tmp_path, "env").output
        finally:
            del os.environ["ASSAY_SANDBOX_CONTRACT"]

    def test_a_program_reaches_no_server_of_this_machine(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]

            assert self.run_shell(tmp_path, f"exec 3<>/dev/tcp/127.0.0.1/{port}", "/bin/bash").code != 0

    def test_a_program_that_does_not_end_is_ended_with_all_that_it_started(self, tmp_path: Path) -> None:
        done = self.run_shell(tmp_path, "(sleep 0.6; echo alive > late) & sleep 60", seconds=0.3)

        assert done.ended_for == "seconds"
        assert not (tmp_path / "late").exists()

    def _make(self) -> Sandbox:
        made: Sandbox = lookup.find("sandboxes", self.sandbox)()
        return made

    def run_shell(
        self, folder: Path, script: str, shell: str = "/bin/sh", seconds: float = 10.0
    ) -> ConfinedRun:
        """Run a script in the sandbox, with `folder` as its one writable folder."""
        program = Program(
            [shell, "-c", script],
            folder=str(folder),
            is_writable=True,
            may_start_processes=True,
            ceilings=_CEILINGS,
        )
        return run_confined(self._make(), program, seconds)
