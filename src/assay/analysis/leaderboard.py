"""Who leads, and who is really apart: nobody is put above another without evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
    doubts = []
    if missing := [name for name in DIMENSIONS if name not in shared]:
        doubts.append(f"Not every agent is rated on {', '.join(missing)}: the ranking leaves that out.")
    return Leaderboard(
        suite,
        metric,
        _ranked(measured, benchmarks, metric, shared),
        _ranked(simulated, benchmarks, metric, _shared_dimensions(simulated)),
        shared,
        tuple(doubts),
    )


def _shared_dimensions(contenders: Sequence[Contender]) -> tuple[str, ...]:
    def has(contender: Contender, name: str) -> bool:
        return all(r.dimensions[name].value is not None for r in contender.ratings.values())

    return tuple(name for name in DIMENSIONS if contenders and all(has(one, name) for one in contenders))


def _ranked(
    contenders: Sequence[Contender], benchmarks: Sequence[str], metric: str, shared: tuple[str, ...]
) -> tuple[Standing, ...]:
    rows = [_standing(one, benchmarks, metric, shared) for one in contenders]
    rows = [row for row in rows if row.score.value is not None]
    rows.sort(key=lambda row: (-(row.score.value or 0.0), row.contender.agent))
    return _tiered(_with_ranks(rows), rows)


def _standing(
    contender: Contender, benchmarks: Sequence[str], metric: str, shared: tuple[str, ...]
) -> Standing:
    dimensions = {
        name: _mean(name, [ratings.dimensions[name] for ratings in contender.ratings.values()])
        for name in DIMENSIONS
    }
    score = overall(dimensions, shared) if metric == "overall" else dimensions[metric]
    covered = f"{len(contender.ratings)}/{len(benchmarks)}"
    return Standing(contender, dimensions, score, 0, 0, 0, covered)


def _mean(name: str, ratings: Sequence[Rating]) -> Rating:
    """Mean over benchmarks; errors of different benchmarks are independent."""
    if not ratings or any(rating.value is None for rating in ratings):
        return Rating(name, None, basis=next((r.basis for r in ratings if r.value is None), ""))
    n = len(ratings)
    value = sum(rating.value or 0.0 for rating in ratings) / n
    half = math.sqrt(sum(_half(rating) ** 2 for rating in ratings)) / n
    return Rating(name, value, max(0.0, value - half), min(1.0, value + half), f"mean of {n} benchmarks")


def _half(rating: Rating) -> float:
    if rating.low is None or rating.high is None:
        return 0.0
    return (rating.high - rating.low) / 2


def overall(
    dimensions: Mapping[str, Rating], shared: Sequence[str], weights: Mapping[str, float] = WEIGHTS
) -> Rating:
    total = sum(weights[name] for name in shared)
    if not total:
        return Rating("overall", None, basis="no dimension is rated for all")
    value = sum(weights[name] * (dimensions[name].value or 0.0) for name in shared) / total
    half = math.sqrt(sum((weights[name] / total * _half(dimensions[name])) ** 2 for name in shared))
    return Rating(
        "overall", value, max(0.0, value - half), min(1.0, value + half), f"over {', '.join(shared)}"
    )


def _with_ranks(rows: Sequence[Standing]) -> list[Standing]:
    """Place: 1 + number certainly better … n − number certainly worse, by Holm-corrected differences."""
    pairs = list(combinations(range(len(rows)), 2))
    corrected = holm([_p(rows[a].score, rows[b].score) for a, b in pairs]).tolist() if pairs else []
    better = [0] * len(rows)
    worse = [0] * len(rows)
    for (a, b), p in zip(pairs, corrected, strict=True):
        if p < ALPHA:
            upper, lower = (a, b) if (rows[a].score.value or 0) > (rows[b].score.value or 0) else (b, a)
            better[lower] += 1
            worse[upper] += 1
    return [
        replace(row, best_rank=1 + better[i], worst_rank=len(rows) - worse[i]) for i, row in enumerate(rows)
    ]


def _p(a: Rating, b: Rating) -> float:
    error = math.hypot(_half(a), _half(b)) / Z
    gap = abs((a.value or 0.0) - (b.value or 0.0))
    if error == 0:
        return 1.0 if gap == 0 else 0.0
    return 2 * (1 - NormalDist().cdf(gap / error))


def _tiered(ranked: Sequence[Standing], rows: Sequence[Standing]) -> tuple[Standing, ...]:
    """A new tier begins where an agent is certainly worse than the first of the tier above."""
    placed: list[Standing] = []
    tier, head_rank = 0, 0
    for row in ranked:
        if not placed or row.best_rank > head_rank:
            tier += 1
            head_rank = len(placed) + 1 if not placed else row.best_rank
        placed.append(replace(row, tier=tier, dominated_by=_dominators(row, rows)))
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
