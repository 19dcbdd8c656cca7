"""What a failing agent says: the text of its exceptions, exit codes and standard error, counted by text.

An agent may fail thousands of times a second with a text of its own each time: of a load only the first few are kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from assay.model.redaction import redact
from assay.model.stress import ErrorDetail
from assay.plugin.agent import LOG_ENDS, AgentError

_MOST = 20
"""Different failures that one worker tells of."""
_LONGEST_MESSAGE = 300
_LONGEST_LOG = 1000
_NUMBERS = re.compile(r"\d+")
_NOT_THEIRS = (str(Path(__file__).parents[2]), str(Path(os.__file__).parent))
"""Our own code, and that of Python with what is installed beside it."""

Key = tuple[str, str]


class Failures:
    """Of one worker, since it last told."""

    def __init__(self) -> None:
        self._known: set[Key] = set()
        self._new: dict[Key, list[Any]] = {}

    def add(self, kind: str, error: BaseException, at: float) -> None:
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
        told = list(self._new.values())
        self._new = {}
        return told


def message_of(error: BaseException) -> str:
    """Redacted before it is cut: nobody recognises half of a secret."""
    text = str(error)
    if isinstance(error, AgentError):
        # The log stands by itself.
        text = text.removesuffix(error.log).removesuffix(LOG_ENDS) if error.log else text
    else:
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = str(redact(text)).strip()
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 1]}…"


def without_numbers(message: str) -> str:
    """Texts that differ only in numbers, such as an address or a time, are one failure.

    >>> without_numbers("row 17 of 20")
    'row # of #'
    """
    return _NUMBERS.sub("#", message)


def place_of(trace: TracebackType | None) -> str:
    """File and line of the agent's own code in which it failed; "" where none of it is its own."""
    found = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(_NOT_THEIRS):
            found = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def gather(told: Sequence[Sequence[Any]], most: int = 5) -> tuple[ErrorDetail, ...]:
    """Failures of all workers by kind and text, the most frequent first."""
    found: dict[Key, ErrorDetail] = {}
    for kind, message, count, at, place, code, log in told:
        key = (kind, without_numbers(message))
        before = found.get(key)
        found[key] = (
            ErrorDetail(kind, message, count, at, place, code, log)
            if before is None
            else _add_count(before, count, at)
        )
    return tuple(sorted(found.values(), key=lambda one: -one.count)[:most])


def _add_count(one: ErrorDetail, count: int, at: float | None) -> ErrorDetail:
    known = [moment for moment in (one.first_at, at) if moment is not None]
    return ErrorDetail(
        one.kind,
        one.message,
        one.count + count,
        min(known, default=None),
        one.place,
        one.exit_code,
        one.stderr,
    )


def reason_of(one: ErrorDetail) -> str:
    """On one line: its message, where in the agent's code that was, and the last line of standard error.

    >>> reason_of(ErrorDetail("failed", "exit code 7", place="agent.py:9", stderr="no licence\\nlicence missing\\n"))
    'exit code 7 at agent.py:9, standard error: licence missing'
    """
    place = f" at {one.place}" if one.place else ""
    said = one.stderr.strip().splitlines()
    return " ".join(f"{one.message}{place}{f', standard error: {said[-1]}' if said else ''}".split())


def failures_in(facts: Mapping[str, object]) -> list[list[Any]]:
    """Of a chunk; workers for servers tell none."""
    found = facts.get("failures")
    return found if isinstance(found, list) else []


def merge(parts: Sequence[Sequence[ErrorDetail]], most: int = 5) -> tuple[ErrorDetail, ...]:
    """Of several loads."""
    return gather(
        [
            (one.kind, one.message, one.count, one.first_at, one.place, one.exit_code, one.stderr)
            for part in parts
            for one in part
        ],
        most,
    )
