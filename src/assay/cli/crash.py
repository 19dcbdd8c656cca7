"""Errors that are nobody's mistake but Assay's: exit code 3, the traceback, and what a report of it needs."""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Sequence
from types import TracebackType

from assay import __version__
from assay.cli.output import echo, styled

# Every command imports this module: what only a crash needs is imported then.

EXIT_CODE = 3
_PACKAGE = __file__.rpartition("cli")[0]
_LONGEST = 20_000
"""Characters of a traceback; an exception may carry megabytes."""


def report_crash(error: BaseException, arguments: Sequence[str] | None) -> int:
    """Show the traceback and how to report it; returns the exit code."""
    import platform
    import shlex
    import traceback

    from assay.model.redaction import redact

    # Redacted before it is cut: nobody recognises half of a secret.
    trace = redact("".join(traceback.format_exception(error)))
    if len(trace) > _LONGEST:
        trace = f"{trace[: _LONGEST // 2]}\n… {len(trace) - _LONGEST} characters left out …\n{trace[-_LONGEST // 2 :]}"
    command = shlex.join(["assay", *(sys.argv[1:] if arguments is None else arguments)])
    echo(trace.rstrip(), err=True)
    echo(styled("Internal error: ", fg="red"), _summary(error), err=True)
    echo(
        "This is a bug in Assay or in a plug-in, not a result. Please report it with the traceback above and these lines:\n"
        f"  version: assay {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"  command: {command}\n"
        f"  where:   {_place(error.__traceback__)}",
        err=True,
    )
    return EXIT_CODE


def _summary(error: BaseException) -> str:
    import traceback

    text = "".join(traceback.format_exception_only(error)).strip()
    return text if len(text) <= 500 else text[:499] + "…"


def _place(trace: TracebackType | None) -> str:
    """The innermost line of ours, and the innermost of all where that is another's."""
    import traceback

    frames = traceback.extract_tb(trace)
    if not frames:
        return "unknown"
    ours = next((frame for frame in reversed(frames) if frame.filename.startswith(_PACKAGE)), None)
    last = frames[-1]
    places = [f"assay/{ours.filename.removeprefix(_PACKAGE)}:{ours.lineno} in {ours.name}"] if ours else []
    if last is not ours:
        places.append(f"{last.filename}:{last.lineno} in {last.name}")
    return ", called ".join(places)


_OF_THE_SYSTEM = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EEXIST, errno.ENOTEMPTY,
    errno.EAGAIN, errno.EFBIG, errno.ENXIO, errno.ENODEV, errno.ETXTBSY, errno.EADDRINUSE, errno.EADDRNOTAVAIL,
}  # fmt: skip
"""What files, folders and limits of a machine may answer at any time."""


def is_fault_of_system(error: OSError) -> bool:
    """Whether the user can put it right: a file, a permission or a limit, but not a file of Assay's own."""
    is_own = str(error.filename or "").startswith(_PACKAGE)
    return error.errno in _OF_THE_SYSTEM and not is_own


def describe_os_error(error: OSError) -> str:
    from pathlib import Path

    try:
        Path.cwd()
    except OSError:
        return "The current folder does not exist any more. Change to another folder and try again."
    names = [
        os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, (str, bytes))
    ]
    if not names:
        return (
            f"The output cannot be written: {error.strerror}."
            if error.errno == errno.ENOSPC
            else f"{error.strerror}."
        )
    return f"{' and '.join(repr(name) for name in names)}: {error.strerror}."


class ThreadWatch:
    """Notes what ends a thread of ours: the command must not pass for a success then."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._before = threading.excepthook

    def __enter__(self) -> ThreadWatch:
        threading.excepthook = self._note
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self._before

    def _note(self, ended: threading.ExceptHookArgs) -> None:
        if ended.exc_value is not None and _is_ours(ended.exc_traceback):
            self.error = self.error or ended.exc_value
        else:
            self._before(ended)


def _is_ours(trace: TracebackType | None) -> bool:
    """Whether Assay started the thread: the first frame below the standard library's is ours.

    A thread that an agent or a plug-in started is not: it ends as Python lets it end, with a traceback of its own.
    """
    import traceback

    for frame in traceback.extract_tb(trace):
        if frame.filename != threading.__file__:
            return frame.filename.startswith(_PACKAGE)
    return False
