"""Starts a program with a ceiling on its memory: `memory_limit.py BYTES COMMAND…`.

Run as a file, with Python's own start-up files left out, it needs nothing of Assay and leaves no trace in the program: it sets the
limit for itself, which the program inherits, and then becomes the program.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


def bound_command(command: Sequence[str], limit: int) -> list[str]:
    return [sys.executable, "-I", "-S", str(Path(__file__).resolve()), str(limit), *command]


def data_bytes(pid: int) -> int | None:
    """Memory that counts against the ceiling: what a process has for itself to write to; None where the system does not tell."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return next(
        (int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("VmData:")), None
    )


def is_enforced() -> bool:
    """Say whether the system enforces the limit: only Linux (from 4.7 on) counts all private memory
    against RLIMIT_DATA.
    """
    return sys.platform == "linux"


def bound_options(options: Mapping[str, object], limit: int) -> dict[str, object]:
    """Return the options of a `command` agent with its command under the memory limit."""
    command = options["command"]
    assert isinstance(command, Sequence)
    return {**options, "command": bound_command([str(word) for word in command], limit)}


def main() -> None:
    limit = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    os.execvp(sys.argv[2], sys.argv[2:])  # noqa: S606  (the user's own command, as written)


if __name__ == "__main__":
    main()
