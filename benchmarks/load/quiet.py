"""Measuring while the machine leaves programs alone, as far as it does.

The host of a virtual machine may take a processor away for milliseconds at a time. What is lost by that is no fault of any load
generator, so every measurement is begun in a quiet moment, and one during which much was taken away is made again. Neither
depends on what was measured, or of which tool.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Generic, TypeVar

from arms import tell

from assay.units import percent, seconds
from load.server import compiled, pinned

SOURCE = Path(__file__).parent / "pauses.c"
LOOK = 1.0
QUIET = 0.1e-3
"""Seconds that the clock's reader may be late by, at P99, in a machine that is called quiet."""
PATIENCE = 30
"""Looks before a measurement, at most."""
LITTLE = 0.003
"""Share of a core's time that its host may take away during a measurement that counts."""
TRIES = 4

T = TypeVar("T")


def floor(pauses: Sequence[float], length: float) -> float:
    """P99 of how late a program would be that is always awake, over moments spread evenly.

    Whatever falls into a pause is as late as the rest of that pause is long.

    >>> floor([0.002] * 10, 1.0), floor([0.002] * 5, 1.0), floor([], 1.0)
    (0.001, 0.0, 0.0)
    """
    longest_first = accumulate(sorted(pauses, reverse=True))
    # What the longest so many pauses have beyond the answer adds up to a hundredth of the time.
    late = ((total - length / 100) / many for many, total in enumerate(longest_first, 1))
    return round(max(0.0, max(late, default=0.0)), 9)


def look(length: float = LOOK) -> float:
    """The floor of this moment, on the core where it is highest; both are looked at together."""
    words = [str(compiled(SOURCE)), str(length)]
    readers = [subprocess.Popen(pinned(words, place), stdout=subprocess.PIPE, text=True) for place in (0, 1)]
    told = [reader.communicate()[0] for reader in readers]
    return max(floor([int(line) / 1e9 for line in text.split()], length) for text in told)


def taken_away(path: Path = Path("/proc/stat")) -> list[float]:
    """Seconds that the host has taken away from each core since the start, by the kernel's account."""
    if not path.is_file():
        return []
    rows = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line[:3] == "cpu"]
    return [int(row[8]) / os.sysconf("SC_CLK_TCK") for row in rows[1:]]


@dataclass(frozen=True, slots=True)
class Taken(Generic[T]):
    """A measurement, and the share of a core's time that was taken away meanwhile, where it was most."""

    found: T
    share: float


@dataclass(slots=True)
class Quiet:
    tries: int = TRIES
    floors: list[float] = field(default_factory=list)
    """Before each measurement."""
    shares: list[float] = field(default_factory=list)
    """During each that was kept."""

    def then(self, measure: Callable[[], T]) -> T:
        """Of a measurement that was made more than once, the one during which least was taken away."""
        made: list[Taken[T]] = []
        while not made or (made[-1].share > LITTLE and len(made) < self.tries):
            self._wait()
            made.append(_watched(measure))
        best = min(made, key=lambda one: one.share)
        self.shares.append(best.share)
        return best.found

    def _wait(self) -> None:
        looks = [look()]
        while looks[-1] > QUIET and len(looks) < PATIENCE:
            looks.append(look())
        if len(looks) > 1:
            tell(f"    waited {len(looks) * LOOK:.0f} s for a quiet moment")
        self.floors.append(looks[-1])

    def __str__(self) -> str:
        noisy = sum(share > LITTLE for share in self.shares)
        kept = f"; it was more than {percent(LITTLE)} in {noisy} of {len(self.shares)}" if noisy else ""
        again = len(self.floors) - len(self.shares)
        return (
            f"A program that only reads the clock was late by {seconds(statistics.median(self.floors))} at P99 before "
            f"measurements began; the host took {percent(statistics.median(self.shares))} of a core away during them "
            f"(medians){kept}. {again} more were made again for that"
        )


def _watched(measure: Callable[[], T]) -> Taken[T]:
    before, begun = taken_away(), time.monotonic()
    found = measure()
    length = time.monotonic() - begun
    lost = (after - earlier for earlier, after in zip(before, taken_away(), strict=True))
    return Taken(found, max(lost, default=0.0) / length)
