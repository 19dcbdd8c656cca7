"""Every agent on every dimension, with its place on each, and every two of them head to head."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from assay.analysis.leaderboard import coverage, doubts, mean_overall, mean_rating
from assay.analysis.pairing import Pairing, certainly_better, places, shared_dimensions
from assay.model.rating import DIMENSIONS, Rating
from assay.model.standing import Contender, Duel, Matrix, MatrixRow, RankRange


def matrix(
    suite: str, contenders: Sequence[Contender], benchmarks: Sequence[str], category: str = ""
) -> Matrix:
    """Each column is the leaderboard of that dimension; simulated agents stand among themselves."""
    measured = _MatrixSide([one for one in contenders if not one.is_simulated])
    simulated = _MatrixSide([one for one in contenders if one.is_simulated])
    shared = (measured if measured.contenders else simulated).shared
    return Matrix(
        suite,
        measured.rows(benchmarks),
        simulated.rows(benchmarks),
        shared,
        (*measured.duels(), *simulated.duels()),
        tuple(doubts(contenders, benchmarks, shared)),
        category,
        tuple(benchmarks),
    )


class _MatrixSide:
    def __init__(self, contenders: Sequence[Contender]) -> None:
        self.contenders = contenders
        self.shared = shared_dimensions(contenders)
        self._pairing = Pairing(contenders)

    def rows(self, benchmarks: Sequence[str]) -> tuple[MatrixRow, ...]:
        ratings = [self._ratings(number) for number in range(len(self.contenders))]
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
        return tuple(sorted(rows, key=_order))

    def _ratings(self, number: int) -> dict[str, Rating]:
        contender = self.contenders[number]
        error = self._pairing.error(number, self.shared) if self.shared else 0.0
        means = {name: mean_rating(name, contender) for name in DIMENSIONS}
        return {**means, "overall": mean_overall(contender, self.shared, error)}

    def _places(self, name: str, ratings: Sequence[dict[str, Rating]]) -> dict[int, RankRange]:
        """Of those who are rated on it, among each other."""
        ranked = [number for number, one in enumerate(ratings) if one[name].value is not None]
        if not ranked:
            return {}
        pairing = Pairing([self.contenders[number] for number in ranked])
        [better] = certainly_better([pairing.paired(self.shared if name == "overall" else (name,))])
        return dict(zip(ranked, places(better), strict=True))

    def duels(self) -> Iterator[Duel]:
        """Corrected over all pairs and all five dimensions."""
        if len(self.contenders) < 2:
            return
        better = certainly_better([self._pairing.paired((name,)) for name in DIMENSIONS])
        of = dict(zip(DIMENSIONS, better, strict=True))
        for a, b in combinations(range(len(self.contenders)), 2):
            yield Duel(
                self.contenders[a].agent,
                self.contenders[b].agent,
                tuple(name for name in DIMENSIONS if of[name][a, b]),
                tuple(name for name in DIMENSIONS if of[name][b, a]),
                tuple(name for name in DIMENSIONS if not of[name][a, b] and not of[name][b, a]),
            )


def _order(row: MatrixRow) -> tuple[float, int, float, str]:
    place = row.places.get("overall")
    middle = place.best + place.worst if place else float("inf")
    return middle, -row.contender.completed, -(row.ratings["overall"].value or 0.0), row.contender.agent
