"""Imports user files in a supervised child process first: code that hangs or ends its process must not do so to the runner.

The child is a fork of the command, so it costs what the import itself takes and little more. Only when it has come to the end
of the import, with or without an exception, does the command import the file too. The child is used on Linux, and only by
the command line: a program that calls `assay.run` has imported its own code already.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module
from time import monotonic

from assay.errors import LookupFailed
from assay.units import signal_name

SECONDS = "ASSAY_IMPORT_SECONDS"
"""Environment variable: how long the import of one file may take."""
_DEFAULT_SECONDS = 30.0
_MOST_OUTPUT = 10_000_000
_POLL_SECONDS = 0.02
_DONE = b"d"
_INTERRUPTED = b"i"
_is_on = False
_problems: dict[str, str] = {}
"""What was found wrong in this command: a file that hangs is not waited for again each time that it is needed."""


class ImportEnded(LookupFailed):
    """The import of a user's file hung, ended its process or flooded the output."""


def check_imports() -> None:
    """Import user files in a child process first, from now on.

    A file that ends or kills its process then only ends the child, and is refused by its name.
    """
    global _is_on
    _problems.clear()
    _is_on = sys.platform == "linux" and "ASSAY_WORKER" not in os.environ


def check_import(name: str, import_it: Callable[[], object]) -> None:
    """Raises ImportEnded if the import hangs, ends the process or floods the output. An exception is left to the real import."""
    if not _is_on:
        return
    import threading

    # A fork has only the thread that forked: what another one holds locked at that moment stays locked in the child.
    if threading.active_count() > 1:
        return
    if name not in _problems:
        _problems[name] = _find_problem(import_it, _read_limit())
    if problem := _problems[name]:
        raise ImportEnded(f"{name} cannot be imported: {problem}")


def _find_problem(import_it: Callable[[], object], allowed: float) -> str:
    """Import in a child; what is wrong with that, or ""."""
    output, output_end = os.pipe()
    result, result_end = os.pipe()
    child = os.fork()
    if child == 0:
        _import_in_child(import_it, output_end, result_end)
    os.close(output_end)
    os.close(result_end)
    try:
        return _watch(child, output, result, allowed)
    finally:
        _end(child)
        os.close(output)
        os.close(result)


def check_module(name: str) -> None:
    """Check the import of a module that is named, as `check_import` does for any import."""
    if name not in sys.modules:
        check_import(f"Module '{name}'", partial(import_module, name))


def _read_limit() -> float:
    text = os.environ.get(SECONDS, "")
    try:
        seconds = float(text) if text else _DEFAULT_SECONDS
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise LookupFailed(f"{SECONDS} must be a number of seconds above 0, not '{text}'.")
    return seconds


def _import_in_child(import_it: Callable[[], object], output: int, result: int) -> None:
    """Import in the child, in a session of its own.

    One byte reports that the import came to its end; then the child exits without cleaning up.
    """
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        import_it()
        os.write(result, _DONE)
    except KeyboardInterrupt:
        os.write(result, _INTERRUPTED)
    except BaseException:
        os.write(result, _DONE)
    finally:
        os._exit(0)


def _watch(child: int, output: int, result: int, allowed: float) -> str:
    """What is wrong with the import; "" if it came to its end."""
    import select

    deadline, printed = monotonic() + allowed, 0
    poll = select.poll()
    for fd in (output, result):
        poll.register(fd, select.POLLIN)
    while True:
        # In this order: a child that has ended has said what it had to say before.
        has_ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        ready = [fd for fd, _ in poll.poll(1000 * _POLL_SECONDS)]
        if result in ready or has_ended:
            return _describe_end(child, os.read(result, 1) if result in ready else b"")
        if output in ready:
            printed += len(os.read(output, 1 << 20))
        if printed > _MOST_OUTPUT:
            return f"the import prints more than {_MOST_OUTPUT // 10**6} MB."
        if monotonic() > deadline:
            hint = f"Move slow work out of the top level, or set {SECONDS}."
            return f"the import takes longer than {allowed:g} s. {hint}"


def _describe_end(child: int, message: bytes) -> str:
    """What is wrong with how the import ended; empty for one that came to its end, also with an exception."""
    if message == _DONE:
        return ""
    if message == _INTERRUPTED:
        return "the import raises KeyboardInterrupt."
    ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    if ended.si_code == os.CLD_EXITED:
        return f"importing it exits the process with code {ended.si_status}."
    return f"importing it ends the process with {signal_name(ended.si_status)}."


def _end(child: int) -> None:
    """The child and what the file has started in its session."""
    from signal import SIGKILL

    for kill in (os.killpg, os.kill):
        try:
            kill(child, SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
    os.waitpid(child, 0)
