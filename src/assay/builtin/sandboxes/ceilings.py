"""Ceilings that the kernel keeps for each process, set by a shell that then becomes the program.

A shell takes a millisecond. Setting them between fork and exec instead (`preexec_fn`) is unsafe in a process with threads,
and prevents the quick way to start a process.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.plugin import Ceilings

_ADDRESS_SPACE = 4
"""Interpreters reserve far more memory than they use, so the address space gets a multiple of the ceiling on memory."""
_SET = (
    'ulimit -c 0; [ "$1" = - ] || ulimit -v "$1"; [ "$2" = - ] || ulimit -f "$2"; '
    # The number of processes is -p in dash and -u in bash.
    '[ "$3" = - ] || ulimit -p "$3" 2>/dev/null || ulimit -u "$3"; shift 3; exec "$@"'
)


def with_ceilings(argv: Sequence[str], ceilings: Ceilings, *, counts_processes: bool = True) -> list[str]:
    """The command line that sets the ceilings and runs the program.

    The kernel counts processes by user; without a user namespace that is every process of the operator, so the ceiling would
    hit the innocent.
    """
    if ceilings == Ceilings():
        return list(argv)
    memory, size, processes = ceilings.memory_bytes, ceilings.file_bytes, ceilings.processes
    values = (
        None if memory is None else memory * _ADDRESS_SPACE // 1024,
        None if size is None else max(1, size // 512),
        processes if counts_processes else None,
    )
    return ["/bin/sh", "-c", _SET, "sh", *("-" if value is None else str(value) for value in values), *argv]
