"""What a failing agent says: the text of its exceptions, exit codes and standard error, counted by text.

An agent may fail thousands of times a second with a text of its own each time: of a load only the first few are kept.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from assay.model.error_details import Key, without_numbers
from assay.model.redaction import redact
from assay.plugin.agent import LOG_ENDS, AgentError

_MOST = 20
"""Different failures that one worker reports."""
_LONGEST_MESSAGE = 300
_LONGEST_LOG = 1000
_NOT_THEIRS = (str(Path(__file__).parents[1]), str(Path(os.__file__).parent))
"""Our own code, and that of Python with what is installed beside it."""


class Failures:
    """The failures of one worker since its last chunk."""

    def __init__(self) -> None:
        self._known: set[Key] = set()
        self._new: dict[Key, list[Any]] = {}

    def add(self, kind: str, error: BaseException, at: float) -> None:
        # Numbers are left out of the key: a message with a port or a time in it would otherwise be new each time.
        message = message_of(error)
        key = (kind, without_numbers(message))
        if key in self._new:
            self._new[key][2] += 1
            return
        if key not in self._known and len(self._known) >= _MOST:
            return
        self._known.add(key)
        code = error.exit_code if isinstance(error, AgentError) else None
        log = error.log[-_LONGEST_LOG:] if isinstance(error, AgentError) else ""
        self._new[key] = [kind, message, 1, at, place_of(error.__traceback__), code, log]

    def take(self) -> list[list[Any]]:
        """The failures since the last call, as rows of kind, message, count, first time, place, exit code and log."""
        rows = list(self._new.values())
        self._new = {}
        return rows


def message_of(error: BaseException) -> str:
    """Redact first, then cut: half of a secret would not be recognised."""
    text = str(error)
    if isinstance(error, AgentError):
        # The log stands by itself.
        text = text.removesuffix(error.log).removesuffix(LOG_ENDS) if error.log else text
    else:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = str(redact(text)).strip()
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def place_of(trace: TracebackType | None) -> str:
    """File and line of the agent's own code in which it failed; "" where none of it is its own."""
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_NOT_THEIRS):
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def failures_in(facts: Mapping[str, object]) -> list[list[Any]]:
    """Rows of `Failures.take` in the facts of a chunk; workers for servers send none."""
    rows = facts.get("failures")
    return rows if isinstance(rows, list) else []
