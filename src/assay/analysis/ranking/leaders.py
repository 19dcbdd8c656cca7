"""Finds who leads in a run: on each benchmark, and on the suite as a whole.

A run's report shows the leads. They rest on the same evidence as the leaderboard, but compare only the agents of one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from assay.analysis.comparison.pairing import (
    Pairing,
    certainly_better,
    compute_rank_ranges,
    find_common_dimensions,
)
from assay.analysis.ranking.leaderboard import mean_overall
from assay.model import TrialReport
from assay.model.report import agent_labels
from assay.model.standing import Contender, Lead


def find_leads(trials: Sequence[TrialReport]) -> tuple[Lead, ...]:
    """One lead for each benchmark in the order of the plan, then one for all of them; measured and simulated agents apart.

    The evidence is that of the leaderboard: the overall rating on the dimensions that all agents have, case by case.
    """
    groups: dict[bool, dict[str, list[TrialReport]]] = {}
    for trial in trials:
        if trial.ratings is not None:
            benchmarks = groups.setdefault(trial.is_simulated, {})
            benchmarks.setdefault(trial.stored.trial.benchmark, []).append(trial)
    found: list[Lead] = []
    for is_simulated in sorted(groups):
        found += _leads(groups[is_simulated], is_simulated)
    return tuple(found)


def _leads(benchmarks: dict[str, list[TrialReport]], is_simulated: bool) -> Iterator[Lead]:
    """The leads of one kind of agents: benchmark by benchmark, then over the whole suite if it has several."""
    together: dict[str, list[TrialReport]] = {}
    for benchmark, trials in benchmarks.items():
        labels = agent_labels(trials)
        for label, trial in zip(labels, trials, strict=True):
            together.setdefault(label, []).append(trial)
        yield from _lead(
            benchmark,
            [_contender(label, [trial]) for label, trial in zip(labels, trials, strict=True)],
            is_simulated,
        )
    if len(benchmarks) > 1:
        # An agent that lacks a benchmark has no rating of the whole suite.
        complete = {label: own for label, own in together.items() if len(own) == len(benchmarks)}
        yield from _lead("", [_contender(label, own) for label, own in complete.items()], is_simulated)


def _contender(label: str, trials: Sequence[TrialReport]) -> Contender:
    return Contender(
        agent=label,
        version="",
        ratings={t.stored.trial.benchmark: t.ratings for t in trials if t.ratings is not None},
        is_simulated=False,
        latest=None,
        hashes={t.stored.trial.benchmark: t.definition for t in trials},
    )


def _lead(benchmark: str, contenders: Sequence[Contender], is_simulated: bool) -> Iterator[Lead]:
    """The lead among these contenders; none where fewer than two are rated on the same dimensions.

    Agents with missing or unscored results are left out: what is missing might be their failures.
    """
    contenders = [contender for contender in contenders if not (contender.unscored or contender.incomplete)]
    shared = find_common_dimensions(contenders)
    scores = [mean_overall(contender, shared).value for contender in contenders]
    if len(contenders) < 2 or any(score is None for score in scores):
        return
    # All who can be first lead together. With one leader the margin is to the next one; with several it is between the two
    # with the highest scores, and its interval includes 0.
    pairing = Pairing(contenders)
    [better] = certainly_better([pairing.compare_pairs(shared)])
    ranks = compute_rank_ranges(better)

    def order(number: int) -> tuple[int, float]:
        """Leaders by their scores alone; the others by evidence first."""
        place = ranks[number]
        return (place.best + place.worst if place.best > 1 else 0), -(scores[number] or 0.0)

    ordered = sorted(range(len(contenders)), key=order)
    gap = pairing.difference(ordered[0], ordered[1], shared)
    ahead, behind = _certain_dimensions([contenders[n] for n in ordered[:2]], shared)
    yield Lead(
        benchmark,
        is_simulated,
        shared,
        {contenders[n].agent: scores[n] or 0.0 for n in ordered},
        tuple(contenders[n].agent for n in ordered if ranks[n].best == 1),
        margin=gap.value if gap else None,
        # Ratings lie between 0 and 1, so their difference cannot exceed 1.
        low=max(-1.0, gap.low) if gap and gap.low is not None else None,
        high=min(1.0, gap.high) if gap and gap.high is not None else None,
        ahead_in=ahead,
        behind_in=behind,
    )


def _certain_dimensions(
    two: Sequence[Contender], shared: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The dimensions in which the first of two agents is significantly better than the second, and those in which it is worse."""
    pairing = Pairing(two)
    tables = certainly_better([pairing.compare_pairs((name,)) for name in shared])
    named = list(zip(shared, tables, strict=True))
    return (
        tuple(name for name, table in named if table[0, 1]),
        tuple(name for name, table in named if table[1, 0]),
    )
