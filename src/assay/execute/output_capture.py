"""Keeps what executions print apart while several of them run in one process.

A process has one standard output. While this is installed, what Python code prints is kept with the execution that
printed it, known by its context: that of its thread, or of its task on the event loop. What C code or a child process
writes to the file descriptor cannot be assigned to an execution; it stays in the log of the process.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from assay.execute.worker_log import KEPT_BYTES

_HALF = KEPT_BYTES // 2


class OutputBuffer:
    """The text that one execution printed; if it is very long, only its beginning and its end.

    The tail is a queue of pieces, from which whole pieces are dropped as long as enough characters remain: writing stays
    cheap however much is printed.
    """

    def __init__(self) -> None:
        self._head = ""
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._left_out = 0

    def write(self, text: str) -> None:
        room = _HALF - len(self._head)
        self._head += text[:room]
        if rest := text[room:]:
            self._tail.append(rest[-_HALF:])
            self._left_out += len(rest) - len(self._tail[-1])
            self._tail_size += len(self._tail[-1])
        while self._tail_size - len(self._tail[0] if self._tail else "") >= _HALF:
            gone = len(self._tail.popleft())
            self._tail_size -= gone
            self._left_out += gone

    def text(self) -> str | None:
        omission = f"\n[{self._left_out:,} characters left out]\n" if self._left_out else ""
        return f"{self._head}{omission}{''.join(self._tail)}" or None


_current: ContextVar[OutputBuffer | None] = ContextVar("printed", default=None)


def capture_prints(printed: OutputBuffer) -> None:
    """Collect what this thread or task prints from now on in `printed`."""
    _current.set(printed)


@contextlib.contextmanager
def capture_prints_per_execution() -> Iterator[None]:
    """Replace the standard streams. To be entered before the agent is imported, so that its log handlers get them, too."""
    before = sys.stdout, sys.stderr
    streams: tuple[Any, Any] = _CapturedStream(sys.stdout), _CapturedStream(sys.stderr)
    sys.stdout, sys.stderr = streams
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


class _CapturedStream:
    """A text stream that hands what is written to the execution that writes it."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        printed = _current.get()
        if printed is None:
            return int(self._stream.write(text))
        printed.write(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
