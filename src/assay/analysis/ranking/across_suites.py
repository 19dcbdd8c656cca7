"""Ranks agents over all benchmarks of several suites by the interquartile mean of their results.

The interquartile mean leaves out the best and the worst quarter of the benchmarks, so that one odd benchmark does not decide
(Agarwal et al. 2021, "Deep reinforcement learning at the edge of the statistical precipice"). Its interval comes from drawing
the cases of each benchmark again; what depends on the machine also counts the spread between rounds. Only agents that ran
every benchmark are ranked, and only benchmarks on which all of them were asked the same and rated by the same references.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.analysis.comparison.pairing import (
    Floats,
    certainly_better,
    compute_rank_ranges,
    find_common_dimensions,
    mean_errors,
    with_rounds,
)
from assay.analysis.comparison.rounds import errors_between
from assay.analysis.comparison.weighted_ratings import round_deviations, shares, value_of
from assay.model.rating import Rating, Ratings
from assay.model.standing import Across, Contender, Overview
from assay.stats.interquartile import draw_interquartile_means, interquartile_mean
from assay.stats.pairs import PairedRows
from assay.stats.random_effects import PairErrors
from assay.stats.student_tails import t_tails

FEWEST_BENCHMARKS = 3
"""With fewer benchmarks no quarter can be left out, and the interquartile mean would just be the mean."""
_SHARES = ("accuracy", "reliability")
"""Dimensions that are shares of cases. If all cases turned out alike, drawing them again shows no spread at all."""
_LEVEL = (0.025, 0.975)

Task = tuple[str, str]
"""Suite and benchmark."""


def rank_across_suites(suites: Mapping[str, Sequence[Contender]], metric: str = "overall") -> Across | None:
    """Rank the agents by all benchmarks that all of them ran alike; None with too few benchmarks.

    A benchmark counts only if all were asked the same cases and rated by the same references; simulated
    agents have references of their own. What is left out, agents and benchmarks alike, is said in the
    doubts.
    """
    merged = _merge_suites(suites)
    all_tasks = list(dict.fromkeys(task for agent in merged for task in agent.ratings))
    whole = [agent for agent in merged if len(agent.ratings) == len(all_tasks)]
    # A task counts only if all were asked the same and rated by the same references. Simulated agents have their own.
    kinds = {agent.is_simulated for agent in whole}
    tasks = [
        task
        for task in all_tasks
        if len({agent.hashes[task] for agent in whole}) == 1
        and all(
            len({agent.ratings[task].yardstick for agent in whole if agent.is_simulated is kind}) == 1
            for kind in kinds
        )
    ]
    if len(tasks) < FEWEST_BENCHMARKS:
        return None
    sides = [[agent for agent in whole if agent.is_simulated is simulated] for simulated in (False, True)]
    measured, made_up = (_rows(side, tasks, metric) for side in sides)
    if not (measured or made_up):
        return None
    doubts = []
    if lacking := [agent.agent for agent in merged if agent not in whole]:
        doubts.append(f"Not ranked here, because they did not run every benchmark: {', '.join(lacking)}.")
    if omitted := [
        f"{benchmark} of {suite}" for suite, benchmark in all_tasks if (suite, benchmark) not in tasks
    ]:
        doubts.append(
            f"Left out here, because not all agents ran the same cases with the same references: {', '.join(omitted)}."
        )
    return Across(tuple(suites), len(tasks), metric, measured, made_up, tuple(doubts))


@dataclass(frozen=True, slots=True)
class _Merged:
    """An agent with its results of all suites, by task; `hashes` are the definitions and `runs` the runs they come from."""

    agent: str
    is_simulated: bool
    ratings: Mapping[Task, Ratings]
    hashes: Mapping[Task, str]
    runs: Mapping[Task, str]


def _merge_suites(suites: Mapping[str, Sequence[Contender]]) -> list[_Merged]:
    """Merge the results of each agent over suites, measured and simulated apart, without those of outdated definitions."""
    found: dict[tuple[str, bool], _Merged] = {}
    for suite, contenders in suites.items():
        for contender in contenders:
            current = [name for name in contender.ratings if name not in contender.outdated]
            key = contender.agent, contender.is_simulated
            known = found.get(key) or _Merged(contender.agent, contender.is_simulated, {}, {}, {})
            found[key] = replace(
                known,
                ratings={**known.ratings, **{(suite, name): contender.ratings[name] for name in current}},
                hashes={
                    **known.hashes,
                    **{(suite, name): contender.hashes.get(name, "") for name in current},
                },
                runs={**known.runs, **{(suite, name): contender.runs.get(name, "") for name in current}},
            )
    return list(found.values())


def _rows(agents: Sequence[_Merged], tasks: Sequence[Task], metric: str) -> tuple[Overview, ...]:
    """The ranked agents, the best first; agents without a value on one of the tasks are not ranked."""
    dimensions = _dimensions(agents) if metric == "overall" else (metric,)
    found = [[value_of(agent.ratings[task], dimensions) for task in tasks] for agent in agents]
    ranked = [n for n, row in enumerate(found) if dimensions and None not in row]
    if not ranked:
        return ()
    values = np.array([found[n] for n in ranked], dtype=np.float64)
    middles = interquartile_mean(values)
    chosen = [agents[n] for n in ranked]
    draws, freedom = _draws(chosen, tasks, dimensions, values)
    [better] = certainly_better(
        [_evidence(chosen, tasks, dimensions, _compare_pairs(middles, draws, freedom))]
    )
    ends = np.quantile(draws, _LEVEL, axis=0)
    rows = [
        Overview(
            agents[n].agent,
            # All draws may lie on one side of the figure, where its benchmarks are few and uneven.
            Rating(
                metric,
                float(middles[place]),
                min(float(ends[0, place]), float(middles[place])),
                max(float(ends[1, place]), float(middles[place])),
            ),
            float(values[place].mean()),
            where,
        )
        for place, (n, where) in enumerate(zip(ranked, compute_rank_ranges(better), strict=True))
    ]
    return tuple(
        sorted(rows, key=lambda row: (row.place.best + row.place.worst, -(row.score.value or 0), row.agent))
    )


def _draws(
    agents: Sequence[_Merged], tasks: Sequence[Task], dimensions: Sequence[str], values: Floats
) -> tuple[Floats, int]:
    """The interquartile mean of each agent in every draw of the cases, and the degrees of freedom of the draws."""
    tables = [_table([agent.ratings[task] for agent in agents], dimensions) for task in tasks]
    draws = draw_interquartile_means(
        values, [table.marks for table in tables], [table.names for table in tables]
    )
    return draws, max(1, sum(len(table.names) for table in tables) - len(tasks))


def _evidence(
    agents: Sequence[_Merged], tasks: Sequence[Task], dimensions: Sequence[str], found: PairedRows
) -> PairedRows:
    """The p values of `found`, which are over cases, with the spread between rounds where a dimension depends on the machine.

    Agents that shared no rounds are told apart by the other dimensions alone, if those point the same way.
    """
    machine = {
        name for agent in agents for r in agent.ratings.values() for name in dimensions if name in r.by_round
    }
    if not machine:
        return found
    errors = _round_errors(agents, tasks, dimensions)
    p = with_rounds(found, errors)
    others = tuple(name for name in dimensions if name not in machine)
    is_known = ~np.isnan(errors.error) | np.eye(len(agents), dtype=np.bool_)
    if others and not is_known.all():
        rated = [[value_of(agent.ratings[task], others) or 0.0 for task in tasks] for agent in agents]
        values = np.array(rated, dtype=np.float64)
        draws, freedom = _draws(agents, tasks, others, values)
        alone = _compare_pairs(interquartile_mean(values), draws, freedom)
        p = np.where(is_known, p, np.where(alone.gap * found.gap > 0, alone.p, 1.0))
    return PairedRows(found.gap, p)


def _round_errors(agents: Sequence[_Merged], tasks: Sequence[Task], dimensions: Sequence[str]) -> PairErrors:
    """The error between rounds. It is that of the mean times √2: the middle half has at most twice the variance."""
    error_tables = [
        errors_between(
            [round_deviations(agent.ratings[task], dimensions) for agent in agents],
            [agent.runs.get(task, "") for agent in agents],
        )
        for task in tasks
    ]
    is_shared = np.full((len(agents), len(agents)), True)
    found = mean_errors(error_tables, [is_shared] * len(tasks))
    return PairErrors(math.sqrt(2) * found.error, found.freedom)


def _dimensions(agents: Sequence[_Merged]) -> tuple[str, ...]:
    contenders = [
        Contender(
            agent.agent,
            "",
            {"/".join(task): r for task, r in agent.ratings.items()},
            agent.is_simulated,
            None,
        )
        for agent in agents
    ]
    return find_common_dimensions(contenders)


@dataclass(frozen=True, slots=True)
class _Table:
    """What each case of a benchmark says about each agent: one row an agent, one column a case, NaN where it is missing."""

    marks: Floats
    names: Sequence[str]


def _table(ratings: Sequence[Ratings], dimensions: Sequence[str]) -> _Table:
    """The marks of all agents on one task, each weighted over the dimensions; see `_Table`."""
    names = list(dict.fromkeys(name for agent_ratings in ratings for name in agent_ratings.names))
    places_of = {name: place for place, name in enumerate(names)}
    is_even = [
        name
        for name in _SHARES
        if name in dimensions and any(_is_even(agent_ratings, name) for agent_ratings in ratings)
    ]
    table = np.full((len(ratings), len(names) + bool(is_even)), np.nan)
    for row, agent_ratings in enumerate(ratings):
        weights = shares(agent_ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
        marks = sum(weight * _marks(agent_ratings, name, bool(is_even)) for name, weight in weights.items())
        table[
            row, [*(places_of[name] for name in agent_ratings.names), *([len(names)] if is_even else [])]
        ] = marks
    return _Table(table, [*names, *([""] if is_even else [])])


def _is_even(ratings: Ratings, name: str) -> bool:
    marks = np.asarray(ratings.marks[name])
    return bool(marks.size) and bool((marks == marks[0]).all()) and marks[0] in (0, 1)


def _marks(ratings: Ratings, name: str, with_one_more: bool) -> Floats:
    """The marks of an agent; with one more case that turned out differently, where a share is exactly 0 or 1.

    Cases that are all alike show no spread, but the next case may be the first to differ.
    """
    marks = np.asarray(ratings.marks[name], dtype=np.float64)
    if not with_one_more:
        return marks
    is_even = name in _SHARES and _is_even(ratings, name)
    return np.append(marks, 1 - marks[0] if is_even else marks.mean() if marks.size else 0.0)


def _compare_pairs(middles: Floats, draws: Floats, freedom: int) -> PairedRows:
    """Every two agents by Student's t: their difference over the spread that it has from draw to draw."""
    number = len(middles)
    gap, spread = middles[:, None] - middles[None, :], np.zeros((number, number))
    columns = np.ascontiguousarray(draws.T)
    for a in range(number):
        spread[a, a + 1 :] = (columns[a] - columns[a + 1 :]).std(axis=1, ddof=1)
    p = np.ones((number, number))
    rows, others = np.nonzero((gap != 0) & (spread != 0))
    t = np.abs(gap[rows, others]) / spread[rows, others]
    p[rows, others] = 2 * t_tails(t, np.full(len(rows), freedom))
    p[others, rows] = p[rows, others]
    return PairedRows(gap, p)
