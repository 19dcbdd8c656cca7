"""How hard each case of a benchmark is, over the agents that were asked."""

from __future__ import annotations

from collections.abc import Sequence

from assay.model import Rating, Ratings
from assay.model.rating import CaseDifficulty
from assay.stats.verdicts import wilson


def case_difficulties(results: Sequence[Ratings]) -> list[CaseDifficulty]:
    """The hardest case first. Each agent counts once, however often it was asked.

    The interval is Wilson's for a share of that many agents. Repetitions of one agent are not independent of each other, so they do
    not make it narrower.
    """
    shares: dict[str, list[float]] = {}
    for ratings in results:
        solved = ratings.case_figures.get("solved", ())
        for case, share in zip(ratings.names, solved, strict=False):
            if share == share:  # NaN: nothing was judged
                shares.setdefault(case, []).append(float(share))
    found = []
    for case, known in shares.items():
        mean = sum(known) / len(known)
        low, high = wilson(mean, len(known))
        found.append(
            CaseDifficulty(
                case,
                len(known),
                sum(share == 1.0 for share in known),
                sum(0.0 < share < 1.0 for share in known),
                Rating("solved", mean, low, high, "share of the repetitions that passed"),
            )
        )
    return sorted(found, key=lambda difficulty: (difficulty.solved.value, difficulty.case))
