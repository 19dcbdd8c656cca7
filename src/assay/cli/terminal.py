"""Where people read: rich, with our way of ending when they stop."""

from __future__ import annotations

import errno
from typing import Any

from assay.cli.output import echo
from assay.report.safe_console import SafeConsole


class Terminal(SafeConsole):
    def on_broken_pipe(self) -> None:
        """Rich would exit with 1, which here means that something was found."""
        raise BrokenPipeError(errno.EPIPE, "the reader went away")


class QuietTerminal(Terminal):
    """Prints results without hints and explanations; warnings go to standard error."""

    _LEFT_OUT = ("→", "?", "·")

    def print(self, *objects: Any, **options: Any) -> None:
        sign = getattr(objects[0], "sign", "") if len(objects) == 1 else ""
        if sign == "!":
            echo(f"Warning: {objects[0].note}", err=True)
        elif sign not in self._LEFT_OUT:
            super().print(*objects, **options)
