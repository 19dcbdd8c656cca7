"""What one of several load generators did: its share of a load, and whether it kept up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GeneratorResult:
    """The share of a load that was sent from one node; times are in seconds."""

    node: str
    workers: int
    """Processes that sent requests there."""
    requests_sent: int
    requests_completed: int
    lag_p99: float
    """How long answers waited there to be read."""
    cpu_share: float
    """Share of one core that the busiest worker used."""
    schedule_delay_p99: float | None
    """How much later than due its answered requests were sent; None where none was answered."""
    may_wait: bool = False
    """Whether requests may also have waited for a free place in flight, so that a delay is not the generator's own."""
    errors: Mapping[str, int] = field(default_factory=dict)
    clock_offset: float = 0.0
    """How far the node's wall clock is ahead of this machine's."""
    clock_uncertainty: float = 0.0
    """Half of the shortest round trip: the offset, and so the moment of its start, is known within as much."""
    late_start: float = 0.0
    """How long after the agreed moment it was told to begin; 0 where it was told in time."""
    lost: str | None = None
    """Why it ended before its share was done; None where it did not."""
    is_limit: bool = False
    """Whether it could not keep up: then the figures are those of the node and not of the server."""
