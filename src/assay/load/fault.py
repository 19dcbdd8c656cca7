"""Faults that a proxy puts between an agent and what it depends on, and what the proxy saw of the requests meanwhile.

`proxy.FaultProxy` imposes a `Fault` and hands out `Traffic`; the stress scenarios read from it whether an agent retried,
how often, how soon, and whether its users got an answer in the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from math import inf
from typing import Self


class FaultKind(StrEnum):
    NONE = "none"
    ANSWER = "answer"
    """An error status instead of the upstream's answer, which is never asked."""
    REFUSE = "refuse"
    """No process listens, as if the server were gone: open connections are cut as well."""
    RESET = "reset"
    """The connection is reset as soon as the request is there, and the upstream is never asked."""
    CUT = "cut"
    """The connection is reset in the middle of the upstream's answer."""
    STALL = "stall"
    """The request is taken and never answered, not even when the fault is over."""
    SLOW = "slow"
    """All bytes, of requests and answers, pass at a low rate."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens to requests, or to a share of them that is drawn by the proxy's seed."""

    kind: FaultKind = FaultKind.NONE
    share: float = 1.0
    status: int = 0
    retry_after: float | None = None
    bytes_per_second: float = inf

    def __post_init__(self) -> None:
        if not 0 <= self.share <= 1:
            raise ValueError(f"A share is between 0 and 1, not {self.share!r}.")
        if self.share != 1 and self.kind in (FaultKind.REFUSE, FaultKind.SLOW):
            raise ValueError(f"'{self.kind}' is a fault of the whole server: it has no share.")
        if self.kind is FaultKind.ANSWER and not 400 <= self.status <= 599:
            raise ValueError(f"A fault answers with a status of 400 to 599, not {self.status!r}.")
        if not self.bytes_per_second > 0:
            raise ValueError(f"A rate is above 0 bytes a second, not {self.bytes_per_second!r}.")

    # Those of the many combinations that scenarios use have names; `__post_init__` refuses those that mean nothing.

    @classmethod
    def rate_limited(cls, share: float = 0.5, retry_after: float = 1.0) -> Self:
        return cls(FaultKind.ANSWER, share, 429, retry_after)

    @classmethod
    def failing(cls, status: int = 503, share: float = 1.0) -> Self:
        return cls(FaultKind.ANSWER, share, status)

    @classmethod
    def slow(cls, bytes_per_second: float) -> Self:
        return cls(FaultKind.SLOW, bytes_per_second=bytes_per_second)


NOTHING = Fault()
REFUSING = Fault(FaultKind.REFUSE)
RESETTING = Fault(FaultKind.RESET)
CUTTING = Fault(FaultKind.CUT)
STALLING = Fault(FaultKind.STALL)


@dataclass(slots=True)
class Passage:
    """One request as the proxy saw it; moments on the proxy's clock, None for what has not happened."""

    number: int
    connection: int
    key: str
    """Equal for requests that are the same one, sent again."""
    arrived: float
    fault: FaultKind = FaultKind.NONE
    retry_after: float | None = None
    forwarded: float | None = None
    status: int | None = None
    first_byte: float | None = None
    ended: float | None = None
    """When the last byte of the answer was handed over."""

    @property
    def is_success(self) -> bool:
        return self.ended is not None and self.status is not None and self.status < 400


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the fault in effect, at the time `at`."""

    at: float
    fault: Fault


@dataclass(frozen=True, slots=True)
class Traffic:
    """All requests that the proxy saw, in the order of their arrival, and the faults that were imposed meanwhile."""

    passages: tuple[Passage, ...]
    changes: tuple[Change, ...] = ()
    connections: int = 0
    unread: int = 0
    """Requests whose sender left before all of them had come: of a slow proxy the first to be lost."""
    _by_key: dict[str, list[Passage]] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        for passage in self.passages:
            self._by_key.setdefault(passage.key, []).append(passage)

    @property
    def seen(self) -> int:
        return len(self.passages)

    @property
    def doubled(self) -> int:
        """How often the upstream was asked again what it had been asked before."""
        forwarded = (sum(p.forwarded is not None for p in same) for same in self._by_key.values())
        return sum(times - 1 for times in forwarded if times > 1)

    @property
    def early_retries(self) -> int:
        """How often a request came again before the time that `retry-after` had asked it to wait.

        The wait is counted from the arrival of the first request, as it is not known when its answer was read: on a busy
        machine the moment at which the answer was handed over is known too late.
        """
        return sum(
            first.retry_after is not None and again.arrived < first.arrived + first.retry_after
            for same in self._by_key.values()
            for first, again in pairwise(same)
        )

    def compute_retry_amplification(self, needed: int) -> float:
        """Requests seen ÷ requests needed: 1 without retries, many times that in a storm of them."""
        return self.seen / needed

    def while_imposed(self, kind: FaultKind) -> tuple[tuple[float, float], ...]:
        """Return the beginning and the end of each fault of this kind."""
        nexts = (*(change.at for change in self.changes[1:]), inf)
        spans = zip(self.changes, nexts, strict=False)
        return tuple((change.at, end) for change, end in spans if change.fault.kind is kind)

    def first_success_after(self, moment: float) -> float | None:
        """Seconds from a moment, such as the end of a fault, to the end of the next good answer."""
        ends = (p.ended for p in self.passages if p.is_success and p.ended is not None)
        return min((end - moment for end in ends if end >= moment), default=None)
