"""Puts every agent beside every dimension, with its place on each, and every two agents head to head.

Each column is a leaderboard of its own dimension with its own tests, so an agent may lead in speed and be last in accuracy.
`assay matrix` shows the result; `pipeline/leaderboard.py` reads the contenders.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from assay.analysis.comparison.pairing import (
    Pairings,
    certainly_better,
    compute_rank_ranges,
    correct_p_values,
    find_common_dimensions,
)
from assay.analysis.ranking.leaderboard import coverage, doubts, mean_overall, mean_rating
from assay.model.dimension import DIMENSIONS
from assay.model.rating import Rating
from assay.model.standing import Contender, Duel, Matrix, MatrixRow, RankRange


def matrix(
    suite: str,
    contenders: Sequence[Contender],
    benchmarks: Sequence[str],
    category: str = "",
    *,
    pairings: Pairings | None = None,
    with_duels: bool = True,
) -> Matrix:
    """The matrix of a suite; measured and simulated agents are placed separately, each among themselves.

    Without duels it takes a fraction of the memory: there is one for every two agents.
    """
    kept = pairings or Pairings()
    measured = _MatrixSide([contender for contender in contenders if not contender.is_simulated], kept)
    simulated = _MatrixSide([contender for contender in contenders if contender.is_simulated], kept)
    shared = (measured if measured.contenders else simulated).shared
    return Matrix(
        suite,
        measured.rows(benchmarks),
        simulated.rows(benchmarks),
        shared,
        (*measured.duels(), *simulated.duels()) if with_duels else (),
        tuple(doubts(contenders, benchmarks, shared)),
        category,
        tuple(benchmarks),
    )


class _MatrixSide:
    """The contenders that are placed among themselves: either the measured or the simulated ones.

    Every agent has a place on each dimension and overall. As on a leaderboard a place is a range, which
    only a significant difference narrows.
    """

    def __init__(self, contenders: Sequence[Contender], pairings: Pairings) -> None:
        self.contenders = contenders
        self.shared = find_common_dimensions(contenders)
        self._pairings = pairings
        self._pairing = pairings.of(contenders)

    def rows(self, benchmarks: Sequence[str]) -> tuple[MatrixRow, ...]:
        """One row for each agent, ordered by the place overall, then by what it completed and by its figures."""
        ratings = []
        for number, contender in enumerate(self.contenders):
            error = self._pairing.error(number, self.shared) if self.shared else 0.0
            means = {name: mean_rating(name, contender) for name in DIMENSIONS}
            ratings.append({**means, "overall": mean_overall(contender, self.shared, error)})
        ranks = {name: self._places(name, ratings) for name in (*DIMENSIONS, "overall")}
        rows = [
            MatrixRow(
                contender,
                ratings[number],
                {name: of[number] for name, of in ranks.items() if number in of},
                coverage(contender, benchmarks),
            )
            for number, contender in enumerate(self.contenders)
        ]

        def order_of(row: MatrixRow) -> tuple[float, int, float, str]:
            place = row.places.get("overall")
            middle = place.best + place.worst if place else float("inf")
            return (
                middle,
                -row.contender.completed,
                -(row.ratings["overall"].value or 0.0),
                row.contender.agent,
            )

        return tuple(sorted(rows, key=order_of))

    def _places(self, name: str, ratings: Sequence[dict[str, Rating]]) -> dict[int, RankRange]:
        """The rank ranges of those that are rated on this dimension, by their number among the contenders."""
        ranked = [
            number for number, by_dimension in enumerate(ratings) if by_dimension[name].value is not None
        ]
        if not ranked:
            return {}
        pairing = self._pairings.of([self.contenders[number] for number in ranked])
        [better] = certainly_better([pairing.compare_pairs(self.shared if name == "overall" else (name,))])
        return dict(zip(ranked, compute_rank_ranges(better), strict=True))

    def duels(self) -> Iterator[Duel]:
        """Every two agents: where each is significantly better. Holm corrects over all pairs and all five dimensions."""
        if len(self.contenders) < 2:
            return
        found = [self._pairing.compare_pairs((name,)) for name in DIMENSIONS]
        tables = correct_p_values(found)
        of = dict(zip(DIMENSIONS, certainly_better(found, tables), strict=True))
        for a, b in combinations(range(len(self.contenders)), 2):
            yield Duel(
                self.contenders[a].agent,
                self.contenders[b].agent,
                tuple(name for name in DIMENSIONS if of[name][a, b]),
                tuple(name for name in DIMENSIONS if of[name][b, a]),
                tuple(name for name in DIMENSIONS if not of[name][a, b] and not of[name][b, a]),
                {name: float(p[a, b]) for name, p in zip(DIMENSIONS, tables, strict=True)},
            )
