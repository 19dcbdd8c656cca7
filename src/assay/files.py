"""Reads files that users name.

A name may stand for a regular file, a pipe such as `<(command)`, or a device. Reading must neither wait for ever, as for a
named pipe without a writer, nor fill the memory, as for /dev/zero; so files are opened without blocking, and
everything but regular files has a limit of size and of silence.
"""

from __future__ import annotations

import os
import select
import stat
from pathlib import Path

from assay.errors import AssayError

MOST_BYTES = 256 * 2**20
"""The limit for anything but a regular file: a pipe or a device may never end."""
_LONGEST_SILENCE = 30.0
"""Seconds that a pipe may stay silent while a program still has its other end open."""
_PIECE = 2**20


class UnreadableFile(AssayError):
    """A file that cannot be read; `problem` continues the sentence that the file's name begins."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"'{path}' {problem}")
        self.problem = problem


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """The content of a file or a pipe, of at most `limit` bytes. Raises UnreadableFile with the reason if it cannot be read."""
    try:
        # Without waiting: a named pipe without a writer would otherwise block for ever.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise UnreadableFile(path, "does not exist.") from None
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read: {error.strerror}.") from None
    except ValueError:
        raise UnreadableFile(path, "is not the name of a file.") from None
    try:
        return _read_all(number, path, limit)
    except OSError as error:
        raise UnreadableFile(path, f"cannot be read: {error.strerror}.") from None
    finally:
        os.close(number)


def _read_all(number: int, path: Path, limit: int | None) -> bytes:
    state = os.fstat(number)
    if stat.S_ISDIR(state.st_mode):
        raise UnreadableFile(path, "is a folder, not a file.")
    is_regular = stat.S_ISREG(state.st_mode)
    most = limit if limit is not None else None if is_regular else MOST_BYTES
    too_large = UnreadableFile(path, f"is larger than {(most or 0) / 2**20:.3g} MiB.")
    if most is not None and state.st_size > most:
        raise too_large
    content = bytearray()
    while True:
        try:
            piece = os.read(number, _PIECE)
        except BlockingIOError:
            if not select.select([number], [], [], _LONGEST_SILENCE)[0]:
                raise UnreadableFile(path, f"sent no data for {_LONGEST_SILENCE:.0f} s.") from None
            continue
        if not piece:
            if not content and stat.S_ISFIFO(state.st_mode):
                raise UnreadableFile(path, "is a pipe without a writer.")
            return bytes(content)
        content += piece
        if most is not None and len(content) > most:
            raise too_large
