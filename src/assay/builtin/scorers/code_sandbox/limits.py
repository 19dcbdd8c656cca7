"""Resource limits and closed streams of the two processes, set before they load anything foreign."""

from __future__ import annotations

import os
import resource

try:
    # signal itself imports much.
    from _signal import alarm  # type: ignore[import-not-found]
except ImportError:
    from signal import alarm


def limit_resources(seconds: float, memory_bytes: int) -> None:
    """Limits of this process that it cannot raise again; the parent ends it at its deadline anyway."""
    whole = int(seconds) + 1
    # Ends this process also when no other process is left to end it.
    alarm(whole + 2)
    _lower(resource.RLIMIT_CPU, whole + 1)
    _lower(resource.RLIMIT_AS, memory_bytes)
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 64 * 2**20)
    _lower(resource.RLIMIT_NOFILE, 64)
    # Without a sandbox it counts every thread of this user, so it cannot be tight.
    _lower(resource.RLIMIT_NPROC, 4096)


def _lower(kind: int, value: int) -> None:
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    try:
        resource.setrlimit(kind, (value, value))
    except (OSError, ValueError):
        # Not every system has every limit; the parent's clock holds everywhere.
        return


def take_streams() -> tuple[int, int]:
    """Descriptors of standard input and output, which from now on are closed to others, like standard error."""
    kept = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    return kept


def describe_error(error: BaseException) -> str:
    try:
        return f"{type(error).__name__}: {error}"[:200].removesuffix(": ")
    except BaseException:
        return "an error that cannot be shown"
