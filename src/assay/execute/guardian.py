"""A process that outlives the runner by a moment: when the runner was killed, it ends the workers and all they started,
and removes the temporary folder that they worked in.

No other process could: the kernel can be asked to kill a worker along with the runner, but not the worker's children.

The protocol is one line for each message on the guardian's standard input: a process id when a worker starts, the same
negated when it has ended, `folder` with the folder in hexadecimal, `done` when the runner leaves in order. The end of the
input without `done` means that the runner was killed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from itertools import count
from typing import TYPE_CHECKING

from assay.execute.process_tree import kill_group, kill_marked, kill_tree

if TYPE_CHECKING:
    import subprocess

_FAREWELL = "done"
_FOLDER = "folder "
_APART = "apart"
_REMOVALS = 100


class Guardian:
    """The runner's end: starts the process with the first worker and reports each worker to it.

    Modules that only this end needs are imported late, so that the guardian process itself starts fast: it has to be up
    before the worker is, and to take little time from it.
    """

    def __init__(self, folder: str = "") -> None:
        """With a folder, the process starts now and leaves the tree of this one: a program that kills this process and its children does not
        kill the guardian, which then removes the folder."""
        import secrets

        self._token = secrets.token_hex(8)
        self._numbers = count()
        self._process: subprocess.Popen[str] | None = self._start(_APART) if folder else None
        self._folder = ""
        self.remove_at_end(folder)

    def mark(self) -> str:
        """A mark for one more worker, which its descendants inherit and are found by (see `process_tree.MARK`)."""
        if self._process is None:
            self._process = self._start()
            self._tell_folder()
        return f"{self._token}.{next(self._numbers)}."

    def remove_at_end(self, folder: str) -> None:
        """The temporary folder of the workers, if they have one; that of the first is the one that is removed."""
        if folder and not self._folder:
            self._folder = folder
            self._tell_folder()

    def _tell_folder(self) -> None:
        if self._folder:
            self._tell(_FOLDER + os.fsencode(self._folder).hex())

    def _start(self, *words: str) -> subprocess.Popen[str]:
        import subprocess

        return subprocess.Popen(
            [sys.executable, "-P", "-m", "assay.execute.guardian", f"{self._token}.", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def watch(self, pid: int) -> None:
        self._tell(f"{pid}")

    def release(self, pid: int) -> None:
        self._tell(f"{-pid}")

    def close(self) -> None:
        """A worker that is released later is no error: one that was started ahead may outlive the pool that did not take it."""
        if self._process is not None:
            self._tell(_FAREWELL)
            process, self._process = self._process, None
            with contextlib.suppress(OSError):
                process.communicate()

    def _tell(self, word: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                print(word, file=self._process.stdin, flush=True)


def main() -> None:
    if sys.argv[2:] == [_APART] and os.fork():
        os._exit(0)
    groups: set[int] = set()
    folder = ""
    for line in sys.stdin:
        if line.strip() == _FAREWELL:
            # At once: the runner waits for it.
            os._exit(0)
        if line.startswith(_FOLDER):
            folder = os.fsdecode(bytes.fromhex(line.removeprefix(_FOLDER)))
            continue
        pid = int(line)
        groups.add(pid) if pid > 0 else groups.discard(-pid)
    for pid in groups:
        kill_tree(pid)
        kill_group(pid)
    kill_marked(sys.argv[1])
    if folder:
        _remove(folder)


def _remove(folder: str) -> None:
    """Try for a while: a process that was killed just now may still be in the middle of writing there."""
    from pathlib import Path

    for _ in range(_REMOVALS):
        remove_folder(folder)
        if not Path(folder).exists():
            return
        time.sleep(0.05)


def remove_folder(folder: str) -> None:
    """Remove a folder that may have read-only ones in it, from which only root could remove anything; what cannot be removed stays."""
    import shutil
    from pathlib import Path

    for parent, _, _ in os.walk(folder):
        with contextlib.suppress(OSError):
            Path(parent).chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
