"""Reports internal errors, and decides which errors of the operating system are not internal.

`cli.main` calls `report_crash` for every exception that is neither an AssayError nor a fault of the machine: it shows the
traceback and the lines that a bug report needs, and the command exits with 3. A full disk or a missing permission is
the user's to put right, so `describe_os_error` makes an ordinary message of it.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections.abc import Sequence
from types import TracebackType

from assay import __version__
from assay.cli.output import echo, style_text

# Every command imports this module: what only a crash needs is imported then.

EXIT_CODE = 3
_PACKAGE = __file__.rpartition("cli")[0]
_LONGEST = 20_000
"""Characters of a traceback that are shown; an exception may carry megabytes."""
_LONGEST_SUMMARY = 500


def report_crash(error: BaseException, arguments: Sequence[str] | None) -> int:
    """Show the traceback and how to report it; returns the exit code."""
    import platform
    import shlex
    import traceback

    from assay.model.redaction import redact

    # Redacted before it is cut: half of a secret would not be recognised.
    trace = redact("".join(traceback.format_exception(error)))
    if len(trace) > _LONGEST:
        trace = f"{trace[: _LONGEST // 2]}\n… {len(trace) - _LONGEST} characters left out …\n{trace[-_LONGEST // 2 :]}"
    summary = "".join(traceback.format_exception_only(error)).strip()
    if len(summary) > _LONGEST_SUMMARY:
        summary = summary[: _LONGEST_SUMMARY - 1] + "…"
    command = shlex.join(["assay", *(sys.argv[1:] if arguments is None else arguments)])
    echo(trace.rstrip(), err=True)
    echo(style_text("Internal error: ", fg="red"), summary, err=True)
    echo(
        "This is a bug in Assay or in a plug-in, not a benchmark result. Please report it with the traceback above and these lines:\n"
        f"  version: assay {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"  command: {command}\n"
        f"  where:   {_place(error.__traceback__)}",
        err=True,
    )
    return EXIT_CODE


def _place(trace: TracebackType | None) -> str:
    """Return the innermost frame in Assay's code and, if different, the innermost frame overall."""
    import traceback

    # An error deep within a package says little about where the bug is; the line of ours that called it says more.
    frames = traceback.extract_tb(trace)
    if not frames:
        return "unknown"
    own_frame = next((frame for frame in reversed(frames) if frame.filename.startswith(_PACKAGE)), None)
    last = frames[-1]
    places = (
        [f"assay/{own_frame.filename.removeprefix(_PACKAGE)}:{own_frame.lineno} in {own_frame.name}"]
        if own_frame
        else []
    )
    if last is not own_frame:
        places.append(f"{last.filename}:{last.lineno} in {last.name}")
    return ", called ".join(places)


_OF_THE_SYSTEM = {
    errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOENT, errno.ENOTDIR, errno.EISDIR,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO, errno.EEXIST, errno.ENOTEMPTY,
    errno.EAGAIN, errno.EFBIG, errno.ENXIO, errno.ENODEV, errno.ETXTBSY, errno.EADDRINUSE, errno.EADDRNOTAVAIL,
}  # fmt: skip
"""Errors that any call on files, folders or sockets can return because of the machine it runs on."""


def is_fault_of_system(error: OSError) -> bool:
    """Whether the user can put it right: a file, a permission or a limit, but not a file of Assay's own."""
    # A file of Assay's own that is missing is a broken installation or a bug, and the user did not name it.
    is_own = str(error.filename or "").startswith(_PACKAGE)
    return error.errno in _OF_THE_SYSTEM and not is_own


def describe_os_error(error: OSError) -> str:
    """An error of the system as one sentence for the user, with the files that it is about."""
    from pathlib import Path

    try:
        Path.cwd()
    except OSError:
        return "The current folder no longer exists. Change to another folder and try again."
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
    """Records the first exception that ends a thread of Assay while the context is entered.

    Python only prints such an exception, and the command would exit with 0 although a part of it did not run. Threads of
    agents and plug-ins keep Python's own behaviour.
    """

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self._before = threading.excepthook

    def __enter__(self) -> ThreadWatch:
        threading.excepthook = self._note
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self._before

    def _note(self, ended: threading.ExceptHookArgs) -> None:
        """Python calls this with every exception that ends a thread.

        The first one of ours counts; later ones often follow from it.
        """
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
