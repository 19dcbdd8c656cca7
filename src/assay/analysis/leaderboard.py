"""Who leads, and who is really apart: nobody is put above another without evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assay.analysis.ratings import weighted
from assay.model.rating import DIMENSIONS, WEIGHTS, Rating
from assay.model.standing import Contender, Leaderboard, Standing
from assay.stats.correction import holm
from assay.stats.means import t_tail

ALPHA = 0.05
Floats = NDArray[np.float64]


def leaderboard(
    suite: str, contenders: Sequence[Contender], benchmarks: Sequence[str], metric: str = "overall"
) -> Leaderboard:
    """Measured agents and simulated ones each ranked among themselves."""
    measured = [one for one in contenders if not one.is_simulated]
    simulated = [one for one in contenders if one.is_simulated]
    shared = _shared_dimensions(measured or simulated)
    return Leaderboard(
        suite,
        metric,
        _ranked(measured, benchmarks, metric),
        _ranked(simulated, benchmarks, metric),
        shared,
        tuple(_doubts(contenders, benchmarks, shared)),
    )


def _doubts(
    contenders: Sequence[Contender], benchmarks: Sequence[str], shared: Sequence[str]
) -> Iterator[str]:
    if missing := [name for name in DIMENSIONS if name not in shared]:
        yield f"Not every agent is rated on {', '.join(missing)}: the ranking leaves that out."
    if partial := [one.agent for one in contenders if len(one.ratings) < len(benchmarks)]:
        yield (
            f"{', '.join(partial)} did not do every benchmark: agents are told apart only by benchmarks that both did."
        )


def _shared_dimensions(contenders: Sequence[Contender]) -> tuple[str, ...]:
    def has(contender: Contender, name: str) -> bool:
        return all(r.dimensions[name].value is not None for r in contender.ratings.values())

    return tuple(name for name in DIMENSIONS if contenders and all(has(one, name) for one in contenders))


def _ranked(contenders: Sequence[Contender], benchmarks: Sequence[str], metric: str) -> tuple[Standing, ...]:
    ranking = _Ranking(_weights(metric, _shared_dimensions(contenders)), metric)
    rows = [ranking.standing(one, benchmarks) for one in contenders]
    rows = [row for row in rows if row.score.value is not None]
    rows.sort(key=lambda row: (-(row.score.value or 0.0), row.contender.agent))
    return _placed(rows, ranking.certainly_better(rows))


def _weights(metric: str, shared: Sequence[str]) -> dict[str, float]:
    """Of the dimensions that agents are ranked by: one of them, or those that all agents have."""
    if metric != "overall":
        return {metric: 1.0}
    total = sum(WEIGHTS[name] for name in shared)
    return {name: WEIGHTS[name] / total for name in shared}


@dataclass(frozen=True, slots=True)
class _Ranking:
    weights: Mapping[str, float]
    metric: str

    def standing(self, contender: Contender, benchmarks: Sequence[str]) -> Standing:
        dimensions = {name: _mean(name, contender) for name in DIMENSIONS}
        covered = f"{len(contender.ratings)}/{len(benchmarks)}"
        return Standing(contender, dimensions, self._score(contender, dimensions), 0, 0, 0, covered)

    def _score(self, contender: Contender, dimensions: Mapping[str, Rating]) -> Rating:
        if not self.weights or any(dimensions[name].value is None for name in self.weights):
            return Rating(self.metric, None, basis="no dimension is rated for all")
        parts = [(weight, dimensions[name]) for name, weight in self.weights.items()]
        drawn = self._drawn(contender, list(contender.ratings))
        return weighted(self.metric, parts, drawn, f"over {', '.join(self.weights)}")

    def _drawn(self, contender: Contender, benchmarks: Sequence[str]) -> Floats:
        """The score in each draw of the cases of these benchmarks; empty where a part of it was not drawn."""
        draws = [contender.ratings[benchmark].draws for benchmark in benchmarks]
        if not all(name in one for one in draws for name in self.weights):
            return np.empty(0)
        parts = [weight * np.asarray(one[name]) for one in draws for name, weight in self.weights.items()]
        return np.sum(parts, axis=0) / len(benchmarks)  # type: ignore[no-any-return]

    def _value(self, contender: Contender, benchmarks: Sequence[str]) -> float:
        ratings = [contender.ratings[benchmark].dimensions for benchmark in benchmarks]
        parts = [
            weight * (one[name].value or 0.0) for one in ratings for name, weight in self.weights.items()
        ]
        return sum(parts) / len(benchmarks)

    def certainly_better(self, rows: Sequence[Standing]) -> set[tuple[int, int]]:
        """Pairs of which the first is better than the second beyond doubt, by Holm-corrected paired differences."""
        pairs = list(combinations(range(len(rows)), 2))
        corrected = holm([self._p(rows[a].contender, rows[b].contender) for a, b in pairs])
        return {pair for pair, p in zip(pairs, corrected, strict=True) if p < ALPHA}

    def _p(self, upper: Contender, lower: Contender) -> float:
        """Of the difference in what both did; 1 unless the one that stands above is ahead in that as well.

        The draws of both are of the same cases, so the spread of their difference is that of paired differences.
        """
        both = [name for name in upper.ratings if name in lower.ratings]
        freedom = sum(min(upper.ratings[name].cases, lower.ratings[name].cases) - 1 for name in both)
        if freedom < 1:
            return 1.0
        drawn = self._drawn(upper, both), self._drawn(lower, both)
        gap = self._value(upper, both) - self._value(lower, both)
        if gap <= 0 or not (drawn[0].size and drawn[1].size):
            return 1.0
        # Resampling n cases shows a spread that is too small by a factor of (n − 1) / n.
        error = float((drawn[0] - drawn[1]).std()) * math.sqrt(1 + len(both) / freedom)
        return 2 * t_tail(gap / error, freedom) if error else 2.0**-freedom


def _mean(name: str, contender: Contender) -> Rating:
    """Mean over benchmarks; errors of different benchmarks are independent."""
    ratings = [one.dimensions[name] for one in contender.ratings.values()]
    if not ratings or any(rating.value is None for rating in ratings):
        return Rating(name, None, basis=next((r.basis for r in ratings if r.value is None), ""))
    parts = [(1 / len(ratings), rating) for rating in ratings]
    return weighted(name, parts, np.empty(0), f"mean of {len(ratings)} benchmarks")


def _placed(rows: Sequence[Standing], better: set[tuple[int, int]]) -> tuple[Standing, ...]:
    """Place: 1 + number certainly better … n − number certainly worse.

    A new tier begins where an agent is certainly worse than the first of the tier above.
    """
    placed: list[Standing] = []
    tier, head = 1, 0
    for index, row in enumerate(rows):
        if (head, index) in better:
            tier, head = tier + 1, index
        above = sum(lower == index for _, lower in better)
        below = sum(upper == index for upper, _ in better)
        place = replace(row, best_rank=1 + above, worst_rank=len(rows) - below)
        placed.append(replace(place, tier=tier, dominated_by=_dominators(row, rows)))
    return tuple(placed)


def _dominators(row: Standing, rows: Sequence[Standing]) -> tuple[str, ...]:
    mine = _qualities(row)
    if mine is None:
        return ()
    names = []
    for other in rows:
        theirs = _qualities(other)
        if other is row or theirs is None or other.contender.agent == row.contender.agent:
            continue
        if all(t >= m for t, m in zip(theirs, mine, strict=True)) and theirs != mine:
            names.append(other.contender.agent)
    return tuple(names)


def _qualities(row: Standing) -> tuple[float, ...] | None:
    values = [row.dimensions[name].value for name in ("accuracy", "cost", "speed")]
    return None if any(value is None for value in values) else tuple(value or 0.0 for value in values)
