"""A process that outlives the runner by a moment: when the runner was killed, it ends the workers and all they started,
and removes the temporary folder that they worked in.

Nobody else could: the kernel can be asked to kill a worker along with the runner, but not the worker's children.
"""

from __future__ import annotations

import contextlib
import secrets
import subprocess
import sys
import time
from itertools import count
from pathlib import Path

from assay.execute.tree import kill_group, kill_marked, kill_tree

_FAREWELL = "done"
_REMOVALS = 100


class Guardian:
    """The runner's end of it. Started with the first worker, and told of each."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(8)
        self._numbers = count()
        self._process: subprocess.Popen[str] | None = None

    def mark(self, temporary: str = "") -> str:
        """A mark for one more worker; the folder of the first is the one to remove."""
        if self._process is None:
            self._process = self._start(temporary)
        return f"{self._token}.{next(self._numbers)}."

    def _start(self, temporary: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "assay.execute.guardian", f"{self._token}.", temporary],
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
        if self._process is not None:
            self._tell(_FAREWELL)
            with contextlib.suppress(OSError):
                self._process.communicate()

    def _tell(self, word: str) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                print(word, file=self._process.stdin, flush=True)


def main() -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        if line.strip() == _FAREWELL:
            return
        pid = int(line)
        groups.add(pid) if pid > 0 else groups.discard(-pid)
    for pid in groups:
        kill_tree(pid)
        kill_group(pid)
    kill_marked(sys.argv[1])
    if sys.argv[2]:
        _remove(sys.argv[2])


def _remove(folder: str) -> None:
    """Again for a while, because one that was killed just now may still be in the middle of writing there."""
    import shutil

    for _ in range(_REMOVALS):
        shutil.rmtree(folder, ignore_errors=True)
        if not Path(folder).exists():
            return
        time.sleep(0.05)


if __name__ == "__main__":
    main()
