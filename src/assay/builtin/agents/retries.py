"""When a request is sent again, and how long to wait before that.

A refusal is worth another try where the server may well answer the next time: no connection, 408, 409, 429 and all 5xx. The
wait is what the server asks for in Retry-After, else exponential backoff with full jitter, so that many clients do not come
back at the same moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

LONGEST_WAIT = 60.0
"""Seconds; a server that asks for more is asked again after this time."""
_LONGEST_KEPT = 1e9
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?")
LONGEST_BACKOFF = 8.0


@dataclass(frozen=True, slots=True)
class Refusal:
    """One try that came to nothing; status is None where no answer came at all."""

    status: int | None
    text: str
    retry_after: float | None = None
    is_unreachable: bool = False
    """No connection could be made: refused, no route, or an unknown host name."""

    def __str__(self) -> str:
        return self.text if self.status is None else f"HTTP {self.status}: {self.text}"

    @property
    def is_worth_another_try(self) -> bool:
        return self.status is None or self.status in (408, 409, 429) or self.status >= 500


class Backoff:
    """Exponential with full jitter; what the server asks for is obeyed, within reason."""

    def __init__(self, base: float, chance: Random | None = None) -> None:
        self._base = base
        self._chance = chance or Random()

    def seconds(self, tries: int, retry_after: float | None) -> float:
        jitter = self._chance.uniform(0, min(LONGEST_BACKOFF, self._base * 2**tries))
        return jitter if retry_after is None else min(LONGEST_WAIT, retry_after) + min(jitter, self._base)


def retry_after(header: str | None, now: datetime | None = None) -> float | None:
    """Seconds, from a number or a date; None where the header is absent or makes no sense.

    >>> retry_after("1.5"), retry_after("soon"), retry_after("-3")
    (1.5, None, None)
    """
    if header is None:
        return None
    if _SECONDS.fullmatch(header):
        return min(float(header), _LONGEST_KEPT)
    try:
        date = parsedate_to_datetime(header)
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        return min(max(0.0, (aware - (now or datetime.now(UTC))).total_seconds()), _LONGEST_KEPT)
    except (ValueError, TypeError, OverflowError):
        return None
