"""Bounds of histograms, fixed before the first answer; separate from the tally, whose numpy takes a while to import."""

from __future__ import annotations

from dataclasses import dataclass

SHORTEST = 0.25
"""Seconds of a slice of time that answers are counted in."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a request must keep to, to count as good; infinity where nothing is asked."""

    ttft: float = float("inf")
    tpot: float = float("inf")
    latency: float = float("inf")
