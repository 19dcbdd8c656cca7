"""Handles signals from the user: the first asks a run to end, and what is finished is kept.

A run polls its `Interrupt` between jobs. A second Ctrl-C raises `UserInterrupt` at once, except while results are being
written; then it takes effect right afterwards.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType

from assay.plugin.interruption import UserInterrupt


@dataclass(slots=True)
class Interrupt:
    """Whether the user has asked the run to end; called without arguments, it says so.

    It is set by the first Ctrl-C, SIGTERM or SIGHUP. `request` is the signal handler.
    """

    is_requested: bool = False
    _is_urgent: bool = False
    _is_storing: bool = False

    def __call__(self) -> bool:
        return self.is_requested

    def request(self, signum: int, frame: FrameType | None) -> None:
        global _last_signal
        _last_signal = signum
        if signum == signal.SIGHUP:
            _leave_terminal()
        if self.is_requested and signum == signal.SIGINT:
            if self._is_urgent or not self._is_storing:
                raise UserInterrupt
            self._is_urgent = True
        self.is_requested = True

    @contextlib.contextmanager
    def storing(self) -> Iterator[None]:
        """A second Ctrl-C takes effect afterwards, a third one at once."""
        self._is_storing = True
        try:
            yield
        finally:
            self._is_storing = False
        if self._is_urgent:
            raise UserInterrupt


_last_signal: int = signal.SIGINT
_entered: ContextVar[Interrupt | None] = ContextVar("assay_interrupt", default=None)


@contextlib.contextmanager
def interruptible() -> Iterator[Interrupt]:
    """While this is entered, Ctrl-C, SIGTERM and SIGHUP ask the run to end; what is finished is kept.

    SIGHUP is left alone where it is ignored, as under `nohup`: then the run is to outlive its terminal.

    Only the main thread can catch signals. A run in another thread listens to the one that the main thread has entered
    for it, if the thread was started with a copy of its context.
    """
    interrupt = _entered.get() or Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return
    is_bound_to_terminal = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    numbers = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if is_bound_to_terminal else []))
    before = {number: signal.signal(number, interrupt.request) for number in numbers}
    token = _entered.set(interrupt)
    try:
        yield interrupt
    finally:
        _entered.reset(token)
        for number, previous in before.items():
            signal.signal(number, previous)


def _leave_terminal() -> None:
    """Send further output to /dev/null if the terminal has hung up: writing to it would be an error."""
    import errno
    import os
    import termios

    for fd in (1, 2):
        try:
            termios.tcgetattr(fd)
        except termios.error as error:
            if error.args[0] == errno.EIO:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, fd)
                os.close(nothing)


def interrupt_exit_code() -> int:
    """The exit code of a command whose run was interrupted: 128 plus the number of the signal, as shells use it."""
    return 128 + _last_signal
