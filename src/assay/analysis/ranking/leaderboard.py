"""Ranks the agents of a suite: no agent is put above another without evidence.

An agent's rank is a range. Its best rank is 1 plus the number of agents that are significantly better (Holm-corrected tests over
all pairs, see `comparison/pairing.py`), and its worst rank leaves room below for those that are significantly worse. A tier ends
where every agent above is significantly better than every agent below. `pipeline/leaderboard.py` reads the contenders from the
store; `doubts` collects the remarks that a reader of a leaderboard or a matrix has to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from assay.analysis.comparison.pairing import (
    Better,
    Pairing,
    Pairings,
    certainly_better,
    compute_rank_ranges,
    find_common_dimensions,
)
from assay.analysis.comparison.weighted_ratings import has_rounds, shares, value_of
from assay.analysis.ranking.ratings import combine_ratings
from assay.model.dimension import DIMENSIONS
from assay.model.rating import Rating
from assay.model.standing import Contender, Leaderboard, Standing
from assay.units import format_count

QUALITY_COST_LATENCY = ("accuracy", "cost", "speed")
"""The axes of the Pareto front, as far as all agents are rated on them."""


def leaderboard(
    suite: str,
    contenders: Sequence[Contender],
    benchmarks: Sequence[str],
    metric: str = "overall",
    category: str = "",
    pairings: Pairings | None = None,
) -> Leaderboard:
    """The leaderboard of a suite. Measured and simulated agents are ranked separately, each among themselves."""
    kept = pairings or Pairings()
    measured = _Board(
        [contender for contender in contenders if not contender.is_simulated], benchmarks, metric, kept
    )
    simulated = _Board(
        [contender for contender in contenders if contender.is_simulated], benchmarks, metric, kept
    )
    leading = measured if measured.contenders else simulated
    return Leaderboard(
        suite,
        metric,
        measured.standings(),
        simulated.standings(),
        leading.shared,
        (
            *doubts(contenders, benchmarks, leading.shared),
            *_describe_unranked(measured),
            *_describe_unranked(simulated),
        ),
        category,
        tuple(benchmarks),
        leading.pareto_axes,
    )


def doubts(
    contenders: Sequence[Contender], benchmarks: Sequence[str], shared: Sequence[str]
) -> Iterator[str]:
    """Warnings for readers of a leaderboard or a matrix: what was left out, and which figures rest on less than others."""
    recorded = [contender.agent for contender in contenders if contender.is_recorded]
    if recorded and len(recorded) < len(contenders):
        yield (
            f"The times of {', '.join(recorded)} were recorded earlier and those of the others were measured here: "
            "the ranking leaves speed out."
        )
    left_out = ("speed",) if recorded and len(recorded) < len(contenders) else ()
    if missing := [name for name in DIMENSIONS if contenders and name not in (*shared, *left_out)]:
        yield f"Left out of the ranking, because not every agent is rated on it: {', '.join(missing)}."
    if lacking := [contender.agent for contender in contenders if len(contender.ratings) < len(benchmarks)]:
        yield (
            f"{', '.join(lacking)} did not run every benchmark: agents are compared only on benchmarks that both ran."
        )
    partial = {
        contender.agent: f"all cases of {', '.join(contender.partial)}"
        for contender in contenders
        if contender.partial
    }
    for names, skipped in _group_by_text(partial):
        yield f"{names} did not run {skipped}: agents are compared only on cases that both ran."
    for reason in dict.fromkeys(why for contender in contenders for why in contender.stale.values()):
        stale = {
            contender.agent: ", ".join(b for b, why in contender.stale.items() if why == reason)
            for contender in contenders
        }
        for names, listed in _group_by_text({agent: listed for agent, listed in stale.items() if listed}):
            yield f"{names} on {listed}: stale, {reason}."
    yield from _about_times(contenders, shared)
    for contender in contenders:
        if unscored := sum(rated.unscored for rated in contender.ratings.values() if rated.scored):
            are = "is" if unscored == 1 else "are"
            yield (
                f"{contender.agent}: {format_count(unscored, 'execution')} {are} unscored, so its accuracy is based on the others."
            )
    for contender in contenders:
        if unpriced := sum(rated.unpriced for rated in contender.ratings.values()):
            failed = format_count(unpriced, "failed execution")
            yield f"{contender.agent}: the cost of {failed} is unknown, so its cost rating is too high."
    for benchmark in benchmarks:
        measures = {
            (contender.is_simulated, contender.ratings[benchmark].yardstick)
            for contender in contenders
            if benchmark in contender.ratings and benchmark not in contender.outdated
        }
        if len(measures) > len({is_simulated for is_simulated, _ in measures}):
            yield f"Not all agents were rated by the same references on {benchmark}: it does not count for the rank."


def _about_times(contenders: Sequence[Contender], shared: Sequence[str]) -> Iterator[str]:
    """Why times cannot tell some agents apart: too few rounds, or no run in common."""
    timed = {
        contender.agent: [
            (benchmark, r) for benchmark, r in contender.ratings.items() if {*shared} & r.by_round.keys()
        ]
        for contender in contenders
    }
    few = [agent for agent, own in timed.items() if any(not has_rounds(r) for _, r in own)]
    if len(few) > 1 or (few and len(contenders) > 1):
        yield (
            f"{', '.join(few)}: fewer than 3 repetitions, so times, CPU and memory do not count for the rank. "
            "Run all agents together with --repetitions 3."
        )
    runs = {
        contender.agent: {contender.runs.get(benchmark) for benchmark, _ in timed[contender.agent]}
        for contender in contenders
    }
    known = {frozenset(own) for agent, own in runs.items() if own and agent not in few}
    if len(known) > 1:
        yield (
            "Not all agents ran in the same run: times, CPU and memory count for the rank only between those that did, "
            "because a machine's speed varies from run to run. To compare them all, run all agents together."
        )


def _group_by_text(text_by_agent: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Group equal texts, and name all agents that each text is about."""
    for text in dict.fromkeys(text_by_agent.values()):
        yield ", ".join(agent for agent, own in text_by_agent.items() if own == text), text


def _describe_unranked(board: _Board) -> Iterator[str]:
    """Why some agents have no rank, and what to do about it."""
    names = [contender.agent for contender in board.contenders if not board.is_ranked(contender)]
    if not names:
        return
    if board.metric == "overall":
        yield (
            f"{', '.join(names)} cannot be ranked: no dimension is rated for all of them. "
            "Add references to the rubric, or rank by one dimension: --metric accuracy"
        )
    else:
        first = next(contender for contender in board.contenders if contender.agent in names)
        basis = mean_rating(board.metric, first).basis
        yield f"{', '.join(names)}: {board.metric} is unrated{f' ({basis})' if basis else ''}, so there is no rank."


def mean_rating(name: str, contender: Contender) -> Rating:
    """The mean of one dimension over an agent's benchmarks; unrated where one of them is.

    Benchmarks have different cases, so their errors are taken to be independent.
    """
    ratings = [agent_ratings.dimensions[name] for agent_ratings in contender.ratings.values()]
    if not ratings or any(rating.value is None for rating in ratings):
        return Rating(name, None, basis=next((r.basis for r in ratings if r.value is None), ""))
    parts = [(1 / len(ratings), rating) for rating in ratings]
    return combine_ratings(name, parts, 0.0, f"mean of {len(ratings)} benchmarks")


def mean_overall(contender: Contender, shared: Sequence[str], error: float = 0.0) -> Rating:
    """The mean over benchmarks of the weighted mean of the `shared` dimensions, which are those that all agents have."""
    weights = [(ratings, shares(ratings, shared)) for ratings in contender.ratings.values()]
    if not weights or not all(share for _, share in weights):
        return Rating("overall", None, basis="no dimension is rated for all")
    parts = [
        (share / len(weights), ratings.dimensions[name])
        for ratings, own in weights
        for name, share in own.items()
    ]
    return combine_ratings("overall", parts, error, f"over {', '.join(shared)}")


def coverage(contender: Contender, benchmarks: Sequence[str]) -> str:
    return f"{contender.completed}/{len(benchmarks)}"


class _Board:
    """The contenders that are ranked among themselves: either the measured or the simulated ones.

    Ranks come from tests over pairs of agents and not from sorted scores, so an agent has a range of
    ranks. Agents are ranked only by dimensions that all of them are rated on, and an agent without a
    rating there is listed without a rank.
    """

    def __init__(
        self, contenders: Sequence[Contender], benchmarks: Sequence[str], metric: str, pairings: Pairings
    ) -> None:
        self.contenders, self.benchmarks, self.metric = contenders, benchmarks, metric
        self._pairings = pairings
        self.shared = find_common_dimensions(contenders)
        axes = tuple(name for name in QUALITY_COST_LATENCY if name in self.shared)
        self.pareto_axes = axes if len(axes) > 1 else ()

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What the agents are ranked by."""
        return self.shared if self.metric == "overall" else (self.metric,)

    def is_ranked(self, contender: Contender) -> bool:
        return all(value_of(ratings, self.dimensions) is not None for ratings in contender.ratings.values())

    def standings(self) -> tuple[Standing, ...]:
        """The ranked agents in the order of the board, with ranges of ranks, tiers and the Pareto front."""
        ranked = [agent for agent in self.contenders if self.is_ranked(agent)]
        if not ranked:
            return ()
        # Ranks come from the tests over pairs and not from sorting the scores: a score that is ahead by less than its noise
        # puts no agent first. Scores decide only the order within a range of ranks.
        pairing = self._pairings.of(ranked)
        [better] = certainly_better([pairing.compare_pairs(self.dimensions)])
        rows = []
        for n, (contender, rank) in enumerate(zip(ranked, compute_rank_ranges(better), strict=True)):
            means = {name: mean_rating(name, contender) for name in DIMENSIONS}
            error = pairing.error(n, self.dimensions)
            score = means.get(self.metric) or mean_overall(contender, self.shared, error)
            covered = coverage(contender, self.benchmarks)
            rows.append(Standing(contender, means, score, rank.best, rank.worst, 0, covered))
        rows = self._with_pareto(rows, pairing)

        def order_of(n: int) -> tuple[int, int, float, str]:
            """Order the rows by evidence first: by the middle of the ranks that the comparisons allow.

            Among agents that are not apart, those that completed more come first, then those with the
            better figure; the name decides last, so that the order is stable.
            """
            row = rows[n]
            middle = row.best_rank + row.worst_rank
            return middle, -row.contender.completed, -(row.score.value or 0.0), row.contender.agent

        order = sorted(range(len(rows)), key=order_of)
        return _assign_tiers([rows[n] for n in order], better[np.ix_(order, order)])

    def _with_pareto(self, rows: Sequence[Standing], pairing: Pairing) -> list[Standing]:
        """Rows with their place on the Pareto front of accuracy, cost and speed.

        The front itself goes by the figures: no other agent is as good on all axes and better on one. `dominated_by` names those for
        whom there is also evidence, that is a significant lead on at least one axis.
        """
        axes = self.pareto_axes
        if not axes:
            return list(rows)
        found = [pairing.compare_pairs((name,)) for name in axes]
        certain = np.logical_or.reduce(certainly_better(found))
        is_ahead = np.logical_and.reduce([table.gap >= 0 for table in found])
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


def _assign_tiers(rows: Sequence[Standing], better: Better) -> tuple[Standing, ...]:
    """A tier ends where every agent up to there is significantly better than every agent below.

    "Not significantly different" is not equivalence: A may be tied with B and B with C while A is significantly better than C. Such a
    chain stays one tier, so that a line between two tiers always means that the evidence separates all above from all below.
    """
    tier = 1
    tiered: list[Standing] = []
    for index, row in enumerate(rows):
        if index and better[:index, index:].all():
            tier += 1
        tiered.append(replace(row, tier=tier))
    return tuple(tiered)
