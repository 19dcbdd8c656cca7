"""Two agents, or two versions of one, side by side: cases lost and won, dimensions, and the course of a metric over several runs.

`assay compare` shows them. A case has flipped only if all of its repetitions agree; a single repetition that went the other way may be
chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from assay.model.estimate import Verdict
from assay.model.metric import Metric


@dataclass(frozen=True, slots=True)
class Passes:
    """The repetitions of one case on one side."""

    passed: int
    judged: int
    is_pass: bool
    """Whether the case counts as passed: its mean score reaches the pass mark."""

    @property
    def all_passed(self) -> bool:
        return self.passed == self.judged


@dataclass(frozen=True, slots=True)
class Flips:
    """Cases of a benchmark that changed sides between A and B."""

    benchmark: str
    won: tuple[str, ...]
    """Passed in no repetition of A and in every one of B."""
    lost: tuple[str, ...]
    """Passed in every repetition of A and in none of B."""
    unchanged: int
    trial: str = ""
    """Name of B's trial."""
    passes: Mapping[str, tuple[Passes, Passes]] = field(default_factory=dict, hash=False)
    """For the cases that changed: the repetitions that passed on both sides."""
    weaker: tuple[str, ...] = ()
    """Count as passed in A and not in B by their mean scores, but some repetitions say otherwise."""
    stronger: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Showdown:
    """Two agents on a suite, dimension by dimension; a winner is named only on evidence."""

    a: str
    b: str
    winners: Mapping[str, str | None]
    """Dimension, or `overall`, to the one that is significantly better; None where neither is."""
    ratings: Mapping[str, tuple[float, float]]
    """Dimension to the means of A and B over the benchmarks."""
    flips: tuple[Flips, ...]
    advice: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    """Dimensions that only one side is rated on everywhere, and so no part of `overall` here."""
    p_corrected: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Dimension to the corrected p of the difference in ratings; empty where the two cannot be compared."""
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict, hash=False)
    """Dimension, or `overall`, to the 95 % interval of B's rating less A's, by itself; those that are unknown are missing."""

    @property
    def winner(self) -> str | None:
        return self.winners.get("overall")


@dataclass(frozen=True, slots=True)
class Course:
    """A metric over several sides in their order, which is taken for time."""

    trial: str
    metric: Metric
    values: tuple[float, ...]
    verdict: Verdict | None
    """Verdict on the last against the first; None where the metric was not requested."""
    steps: tuple[int, ...]
    """Sides at which the level changed, from 0, where there are enough of them to tell."""
