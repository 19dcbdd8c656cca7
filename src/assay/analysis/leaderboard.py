"""Who leads, and who is really apart: nobody is put above another without evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import NormalDist

from assay.model.rating import DIMENSIONS, WEIGHTS, Rating
from assay.model.standing import Contender, Leaderboard, Standing
from assay.stats.correction import holm

ALPHA = 0.05
Z = 1.959963984540054


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
    ranking = _Ranking(metric, _shared_dimensions(contenders))
    rows = [ranking.standing(one, benchmarks) for one in contenders]
    rows = [row for row in rows if row.score.value is not None]
    rows.sort(key=lambda row: (-(row.score.value or 0.0), row.contender.agent))
    return _placed(rows, ranking.certainly_better(rows))


@dataclass(frozen=True, slots=True)
class _Ranking:
    """What agents are ranked by: one dimension, or the mean of those that all of them have."""

    metric: str
    shared: tuple[str, ...]

    def standing(self, contender: Contender, benchmarks: Sequence[str]) -> Standing:
        dimensions = _dimensions(contender, list(contender.ratings))
        covered = f"{len(contender.ratings)}/{len(benchmarks)}"
        return Standing(contender, dimensions, self._score(dimensions), 0, 0, 0, covered)

    def _score(self, dimensions: Mapping[str, Rating]) -> Rating:
        return overall(dimensions, self.shared) if self.metric == "overall" else dimensions[self.metric]

    def certainly_better(self, rows: Sequence[Standing]) -> set[tuple[int, int]]:
        """Pairs of which the first is better than the second beyond doubt, by Holm-corrected differences."""
        pairs = list(combinations(range(len(rows)), 2))
        corrected = holm([self._p(rows[a], rows[b]) for a, b in pairs]).tolist() if pairs else []
        return {pair for pair, p in zip(pairs, corrected, strict=True) if p < ALPHA}

    def _p(self, upper: Standing, lower: Standing) -> float:
        """One that the row which stands lower is as good, by what both did."""
        both = [name for name in upper.contender.ratings if name in lower.contender.ratings]
        if not both:
            return 1.0
        a, b = (self._score(_dimensions(row.contender, both)) for row in (upper, lower))
        return _p_of_gap(a, b)


def _p_of_gap(a: Rating, b: Rating) -> float:
    """Two-sided; 1 unless a is above b. The error is made of the ends that face each other (Zou and Donner 2008)."""
    if a.value is None or b.value is None or a.low is None or b.high is None or a.value <= b.value:
        return 1.0
    error = math.hypot(a.value - a.low, b.high - b.value) / Z
    return 2 * NormalDist().cdf((b.value - a.value) / error) if error else 0.0


def _dimensions(contender: Contender, benchmarks: Sequence[str]) -> dict[str, Rating]:
    return {
        name: _mean(name, [contender.ratings[benchmark].dimensions[name] for benchmark in benchmarks])
        for name in DIMENSIONS
    }


def _mean(name: str, ratings: Sequence[Rating]) -> Rating:
    """Mean over benchmarks; errors of different benchmarks are independent."""
    if not ratings or any(rating.value is None for rating in ratings):
        return Rating(name, None, basis=next((r.basis for r in ratings if r.value is None), ""))
    share = 1 / len(ratings)
    return _weighted(name, [(share, rating) for rating in ratings], f"mean of {len(ratings)} benchmarks")


def overall(
    dimensions: Mapping[str, Rating], shared: Sequence[str], weights: Mapping[str, float] = WEIGHTS
) -> Rating:
    total = sum(weights[name] for name in shared)
    if not total or any(dimensions[name].value is None for name in shared):
        return Rating("overall", None, basis="no dimension is rated for all")
    parts = [(weights[name] / total, dimensions[name]) for name in shared]
    return _weighted("overall", parts, f"over {', '.join(shared)}")


def _weighted(name: str, parts: Sequence[tuple[float, Rating]], basis: str) -> Rating:
    """A weighted mean; without an interval where a part has none, because what is unknown is not 0."""
    value = sum(weight * (rating.value or 0.0) for weight, rating in parts)
    if any(rating.low is None or rating.high is None for _, rating in parts):
        return Rating(name, value, basis=basis)
    below = math.hypot(*(weight * ((rating.value or 0.0) - (rating.low or 0.0)) for weight, rating in parts))
    above = math.hypot(*(weight * ((rating.high or 0.0) - (rating.value or 0.0)) for weight, rating in parts))
    return Rating(name, value, max(0.0, value - below), min(1.0, value + above), basis)


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
