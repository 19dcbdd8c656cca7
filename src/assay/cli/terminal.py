"""Consoles of commands: rich, without control characters from data, and without exiting when the reader closes the pipe."""

from __future__ import annotations

import sys
from typing import Any

from assay.cli.output import discard, echo
from assay.report.console.safe_console import SafeConsole


class Terminal(SafeConsole):
    """The console of commands. Names and outputs of whatever was measured cannot move its cursor or change its colours."""

    def on_broken_pipe(self) -> None:
        """The reader closed the pipe. The command continues, because its exit code is still to come; rich would exit with 1."""
        self.quiet = True
        discard(sys.stdout)


class QuietTerminal(Terminal):
    """Prints results without hints and explanations; warnings go to standard error.

    What a line is, it knows by the sign of its bullet, so that the functions that print need not know of `--quiet`.
    """

    _LEFT_OUT = ("→", "?", "·")

    def print(self, *objects: Any, **options: Any) -> None:
        """Print what is a result.

        Bullets carry their sign, by which hints are left out and warnings are sent to standard error.
        """
        sign = getattr(objects[0], "sign", "") if len(objects) == 1 else ""
        if sign == "!":
            echo(f"Warning: {objects[0].note}", err=True)
        elif sign not in self._LEFT_OUT:
            super().print(*objects, **options)
