"""Who leads, and who is really apart: nobody is put above another without evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.analysis.pairing import (
    Better,
    Pairing,
    certainly_better,
    has_rounds,
    places,
    shared_dimensions,
    shares,
    value_of,
)
from assay.analysis.ratings import weighted
from assay.model.rating import DIMENSIONS, Rating
from assay.model.standing import Contender, Leaderboard, Standing

QUALITY_COST_LATENCY = ("accuracy", "cost", "speed")


def leaderboard(
    suite: str,
    contenders: Sequence[Contender],
    benchmarks: Sequence[str],
    metric: str = "overall",
    category: str = "",
) -> Leaderboard:
    """Measured agents and simulated ones each ranked among themselves."""
    measured = _Board([one for one in contenders if not one.is_simulated], benchmarks, metric)
    simulated = _Board([one for one in contenders if one.is_simulated], benchmarks, metric)
    leading = measured if measured.contenders else simulated
    return Leaderboard(
        suite,
        metric,
        measured.standings(),
        simulated.standings(),
        leading.shared,
        (*doubts(contenders, benchmarks, leading.shared), *_unranked(measured), *_unranked(simulated)),
        category,
        tuple(benchmarks),
        leading.pareto_axes,
    )


def doubts(
    contenders: Sequence[Contender], benchmarks: Sequence[str], shared: Sequence[str]
) -> Iterator[str]:
    """What a reader of a board or a matrix has to know."""
    recorded = [one.agent for one in contenders if one.is_recorded]
    if recorded and len(recorded) < len(contenders):
        yield (
            f"The times of {', '.join(recorded)} were recorded earlier and those of the others were measured here: "
            "the ranking leaves speed out."
        )
    left_out = ("speed",) if recorded and len(recorded) < len(contenders) else ()
    if missing := [name for name in DIMENSIONS if contenders and name not in (*shared, *left_out)]:
        yield f"Not every agent is rated on {', '.join(missing)}: the ranking leaves that out."
    if lacking := [one.agent for one in contenders if len(one.ratings) < len(benchmarks)]:
        yield (
            f"{', '.join(lacking)} did not run every benchmark: agents are compared only on benchmarks that both ran."
        )
    for names, told in _alike(
        {one.agent: f"all cases of {_listed(one.partial)}" for one in contenders if one.partial}
    ):
        yield f"{names} did not run {told}: agents are compared only on cases that both ran."
    for reason in dict.fromkeys(why for one in contenders for why in one.stale.values()):
        stale = {
            one.agent: _listed([b for b, why in one.stale.items() if why == reason]) for one in contenders
        }
        for names, told in _alike({agent: listed for agent, listed in stale.items() if listed}):
            yield f"{names} on {told}: stale, {reason}."
    yield from _about_times(contenders, shared)
    for one in contenders:
        if unscored := sum(rated.unscored for rated in one.ratings.values() if rated.scored):
            yield f"{one.agent}: {unscored} executions are unscored, so its accuracy rests on the others."
    for one in contenders:
        if unpriced := sum(rated.unpriced for rated in one.ratings.values()):
            yield f"{one.agent}: the cost of {unpriced} failed executions is unknown, so its cost is rated too well."
    for benchmark in benchmarks:
        measures = {
            (one.is_simulated, one.ratings[benchmark].yardstick) for one in _current(contenders, benchmark)
        }
        if len(measures) > len({is_simulated for is_simulated, _ in measures}):
            yield f"Not all agents were rated by the same references on {benchmark}: it does not count for the rank."


def _about_times(contenders: Sequence[Contender], shared: Sequence[str]) -> Iterator[str]:
    """Why times do not tell some agents apart, of those that are ranked by them."""
    timed = {
        one.agent: [(benchmark, r) for benchmark, r in one.ratings.items() if {*shared} & r.by_round.keys()]
        for one in contenders
    }
    few = [agent for agent, own in timed.items() if any(not has_rounds(r) for _, r in own)]
    if len(few) > 1 or (few and len(contenders) > 1):
        yield (
            f"{_listed(few)}: fewer than 3 repetitions, so times, CPU and memory do not count for the rank. "
            "Run all agents together with --repetitions 3."
        )
    runs = {one.agent: {one.runs.get(benchmark) for benchmark, _ in timed[one.agent]} for one in contenders}
    known = {frozenset(own) for agent, own in runs.items() if own and agent not in few}
    if len(known) > 1:
        yield (
            "Not all agents ran in the same run: times, CPU and memory count for the rank only between those that did, "
            "because a machine's speed varies from run to run. To compare them all, run all agents together."
        )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _alike(told: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """What is told of several agents, once with all their names."""
    for text in dict.fromkeys(told.values()):
        yield _listed(agent for agent, one in told.items() if one == text), text


def _current(contenders: Sequence[Contender], benchmark: str) -> list[Contender]:
    return [one for one in contenders if benchmark in one.ratings and benchmark not in one.outdated]


def _unranked(board: _Board) -> Iterator[str]:
    names = [one.agent for one in board.contenders if not board.is_ranked(one)]
    if not names:
        return
    if board.metric == "overall":
        yield (
            f"{', '.join(names)} cannot be ranked: there is no dimension that all are rated on. "
            "Give a rubric with references, or rank by one: --metric accuracy"
        )
    else:
        reason = next(one for one in board.contenders if one.agent in names)
        basis = mean_rating(board.metric, reason).basis
        yield f"{', '.join(names)}: {board.metric} is unrated{f' ({basis})' if basis else ''}, so there is no rank."


def mean_rating(name: str, contender: Contender) -> Rating:
    """Of one dimension over benchmarks, whose errors are independent; unrated where one of them is."""
    ratings = [one.dimensions[name] for one in contender.ratings.values()]
    if not ratings or any(rating.value is None for rating in ratings):
        return Rating(name, None, basis=next((r.basis for r in ratings if r.value is None), ""))
    parts = [(1 / len(ratings), rating) for rating in ratings]
    return weighted(name, parts, 0.0, f"mean of {len(ratings)} benchmarks")


def mean_overall(contender: Contender, shared: Sequence[str], error: float = 0.0) -> Rating:
    """Over benchmarks, of the weighted mean of the dimensions that all agents have."""
    weights = [(one, shares(one, shared)) for one in contender.ratings.values()]
    if not weights or not all(share for _, share in weights):
        return Rating("overall", None, basis="no dimension is rated for all")
    parts = [
        (share / len(weights), one.dimensions[name]) for one, own in weights for name, share in own.items()
    ]
    return weighted("overall", parts, error, f"over {', '.join(shared)}")


def coverage(contender: Contender, benchmarks: Sequence[str]) -> str:
    return f"{contender.completed}/{len(benchmarks)}"


class _Board:
    def __init__(self, contenders: Sequence[Contender], benchmarks: Sequence[str], metric: str) -> None:
        self.contenders, self.benchmarks, self.metric = contenders, benchmarks, metric
        self.shared = shared_dimensions(contenders)
        axes = tuple(name for name in QUALITY_COST_LATENCY if name in self.shared)
        self.pareto_axes = axes if len(axes) > 1 else ()

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What the agents are ranked by."""
        return self.shared if self.metric == "overall" else (self.metric,)

    def is_ranked(self, contender: Contender) -> bool:
        return all(value_of(one, self.dimensions) is not None for one in contender.ratings.values())

    def standings(self) -> tuple[Standing, ...]:
        ranked = [one for one in self.contenders if self.is_ranked(one)]
        if not ranked:
            return ()
        pairing = Pairing(ranked)
        [better] = certainly_better([pairing.paired(self.dimensions)])
        rows = [self._standing(one, pairing.error(n, self.dimensions)) for n, one in enumerate(ranked)]
        rows = self._with_pareto(_placed(rows, better), pairing)
        order = sorted(range(len(rows)), key=lambda n: _order(rows[n]))
        return _tiered([rows[n] for n in order], better[np.ix_(order, order)])

    def _standing(self, contender: Contender, error: float) -> Standing:
        means = {name: mean_rating(name, contender) for name in DIMENSIONS}
        score = means.get(self.metric) or mean_overall(contender, self.shared, error)
        return Standing(contender, means, score, 0, 0, 0, coverage(contender, self.benchmarks))

    def _with_pareto(self, rows: Sequence[Standing], pairing: Pairing) -> list[Standing]:
        axes = self.pareto_axes
        if not axes:
            return list(rows)
        found = [pairing.paired((name,)) for name in axes]
        certain = np.logical_or.reduce(certainly_better(found))
        is_ahead = np.logical_and.reduce([one.gap >= 0 for one in found])
        points = np.array([[row.dimensions[name].value or 0.0 for name in axes] for row in rows])
        no_worse: Better = np.all(points[:, None] >= points[None, :], axis=2)
        above: Better = no_worse & np.any(points[:, None] > points[None, :], axis=2)
        names = [row.contender.agent for row in rows]
        return [
            replace(
                row,
                is_pareto=not above[:, n].any(),
                dominated_by=tuple(names[m] for m in np.flatnonzero((no_worse & is_ahead & certain)[:, n])),
            )
            for n, row in enumerate(rows)
        ]


def _placed(rows: Sequence[Standing], better: Better) -> list[Standing]:
    return [
        replace(row, best_rank=place.best, worst_rank=place.worst)
        for row, place in zip(rows, places(better), strict=True)
    ]


def _order(row: Standing) -> tuple[int, int, float, str]:
    """By evidence first; among those who are not apart, by what they completed, and then by figures."""
    middle = row.best_rank + row.worst_rank
    return middle, -row.contender.completed, -(row.score.value or 0.0), row.contender.agent


def _tiered(rows: Sequence[Standing], better: Better) -> tuple[Standing, ...]:
    """A tier ends where everybody up to there is certainly better than everybody below."""
    tier = 1
    tiered: list[Standing] = []
    for index, row in enumerate(rows):
        if index and better[:index, index:].all():
            tier += 1
        tiered.append(replace(row, tier=tier))
    return tuple(tiered)
