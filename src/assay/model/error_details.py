"""Failures of an agent in its own words, counted by kind and text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from assay.model.stress import ErrorDetail

_NUMBERS = re.compile(r"\d+")

Key = tuple[str, str]
"""The kind of a failure, and its text without numbers."""


def without_numbers(message: str) -> str:
    """Texts that differ only in numbers, such as an address or a time, are one failure.

    >>> without_numbers("row 17 of 20")
    'row # of #'
    """
    return _NUMBERS.sub("#", message)


def gather(reported: Sequence[Sequence[Any]], most: int = 5) -> tuple[ErrorDetail, ...]:
    """Failures of all workers by kind and text, the most frequent first.

    Workers report each as the fields of an `ErrorDetail` in their order. Of failures that are alike, the details of the first are kept.
    """
    by_key: dict[Key, ErrorDetail] = {}
    for kind, message, count, at, place, code, log in reported:
        key = (kind, without_numbers(message))
        if (known := by_key.get(key)) is None:
            by_key[key] = ErrorDetail(kind, message, count, at, place, code, log)
        else:
            moments = [moment for moment in (known.first_at, at) if moment is not None]
            by_key[key] = replace(known, count=known.count + count, first_at=min(moments, default=None))
    return tuple(sorted(by_key.values(), key=lambda detail: -detail.count)[:most])


def reason_of(detail: ErrorDetail) -> str:
    """On one line: its message, where in the agent's code that was, and the last line of standard error.

    >>> reason_of(ErrorDetail("failed", "exit code 7", place="agent.py:9", stderr="no licence\\nlicence missing\\n"))
    'exit code 7 at agent.py:9, standard error: licence missing'
    """
    place = f" at {detail.place}" if detail.place else ""
    lines = detail.stderr.strip().splitlines()
    return " ".join(f"{detail.message}{place}{f', standard error: {lines[-1]}' if lines else ''}".split())


def merge(parts: Sequence[Sequence[ErrorDetail]], most: int = 5) -> tuple[ErrorDetail, ...]:
    """The failures of several loads together, as `gather` does it for the workers of one."""
    return gather(
        [
            (
                detail.kind,
                detail.message,
                detail.count,
                detail.first_at,
                detail.place,
                detail.exit_code,
                detail.stderr,
            )
            for part in parts
            for detail in part
        ],
        most,
    )
