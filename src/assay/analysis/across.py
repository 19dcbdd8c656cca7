"""Agents over all benchmarks of several suites: the middle half of their results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from assay.analysis.pairing import (
    Floats,
    certainly_better,
    mean_errors,
    places,
    round_deviations,
    shared_dimensions,
    shares,
    value_of,
    with_rounds,
)
from assay.analysis.rounds import errors_between
from assay.model.rating import Rating, Ratings
from assay.model.standing import Across, Contender, Overview
from assay.stats.interquartile import interquartile_mean, stratified_draws
from assay.stats.means import t_tail
from assay.stats.pairs import PairedRows
from assay.stats.random_effects import PairErrors

FEWEST_BENCHMARKS = 3
"""Of fewer, no quarter can be left out, and the interquartile mean is the mean."""
_SHARES = ("accuracy", "reliability")
"""Dimensions that count cases: where all of them turned out alike, drawing them again shows no spread at all."""
_LEVEL = (0.025, 0.975)

Task = tuple[str, str]
"""Suite and benchmark."""


def across(suites: Mapping[str, Sequence[Contender]], metric: str = "overall") -> Across | None:
    """Everybody who did every benchmark; None where there are too few benchmarks, or nobody did all of them."""
    merged = _merged(suites)
    every = list(dict.fromkeys(task for one in merged for task in one.ratings))
    whole = [one for one in merged if len(one.ratings) == len(every)]
    tasks = [task for task in every if _is_alike(whole, task)]
    if len(tasks) < FEWEST_BENCHMARKS:
        return None
    sides = [[one for one in whole if one.is_simulated is simulated] for simulated in (False, True)]
    measured, made_up = (_rows(side, tasks, metric) for side in sides)
    if not (measured or made_up):
        return None
    doubts = (*_lacking([one.agent for one in merged if one not in whole]), *_left_out(every, tasks))
    return Across(tuple(suites), len(tasks), metric, measured, made_up, doubts)


@dataclass(frozen=True, slots=True)
class _Merged:
    """An agent with its results of all suites."""

    agent: str
    is_simulated: bool
    ratings: Mapping[Task, Ratings]
    hashes: Mapping[Task, str]
    runs: Mapping[Task, str]


def _merged(suites: Mapping[str, Sequence[Contender]]) -> list[_Merged]:
    """Results of an older definition of a benchmark do not count: others were asked something else."""
    found: dict[tuple[str, bool], _Merged] = {}
    for suite, contenders in suites.items():
        for one in contenders:
            current = [name for name in one.ratings if name not in one.outdated]
            key = one.agent, one.is_simulated
            known = found.get(key) or _Merged(one.agent, one.is_simulated, {}, {}, {})
            found[key] = replace(
                known,
                ratings={**known.ratings, **{(suite, name): one.ratings[name] for name in current}},
                hashes={**known.hashes, **{(suite, name): one.hashes.get(name, "") for name in current}},
                runs={**known.runs, **{(suite, name): one.runs.get(name, "") for name in current}},
            )
    return list(found.values())


def _is_alike(whole: Sequence[_Merged], task: Task) -> bool:
    """Whether all were asked the same and rated by the same references, which simulated agents have of their own."""
    kinds = {one.is_simulated for one in whole}
    return len({one.hashes[task] for one in whole}) == 1 and all(
        len({one.ratings[task].yardstick for one in whole if one.is_simulated is kind}) == 1 for kind in kinds
    )


def _lacking(agents: Sequence[str]) -> Iterator[str]:
    if agents:
        yield f"{', '.join(agents)} did not run every benchmark: not ranked here."


def _left_out(every: Sequence[Task], tasks: Sequence[Task]) -> Iterator[str]:
    if unlike := [f"{benchmark} of {suite}" for suite, benchmark in every if (suite, benchmark) not in tasks]:
        yield f"Not all agents were asked and rated alike on {', '.join(unlike)}: that is left out here."


def _rows(agents: Sequence[_Merged], tasks: Sequence[Task], metric: str) -> tuple[Overview, ...]:
    dimensions = _dimensions(agents) if metric == "overall" else (metric,)
    found = [[value_of(one.ratings[task], dimensions) for task in tasks] for one in agents]
    ranked = [n for n, row in enumerate(found) if dimensions and None not in row]
    if not ranked:
        return ()
    values = np.array([found[n] for n in ranked], dtype=np.float64)
    middles = interquartile_mean(values)
    chosen = [agents[n] for n in ranked]
    draws, freedom = _draws(chosen, tasks, dimensions, values)
    [better] = certainly_better([_evidence(chosen, tasks, dimensions, _paired(middles, draws, freedom))])
    ends = np.quantile(draws, _LEVEL, axis=0)
    rows = [
        Overview(
            agents[n].agent,
            Rating(metric, float(middles[place]), *_around(float(middles[place]), *ends[:, place].tolist())),
            float(values[place].mean()),
            where,
        )
        for place, (n, where) in enumerate(zip(ranked, places(better), strict=True))
    ]
    return tuple(
        sorted(rows, key=lambda row: (row.place.best + row.place.worst, -(row.score.value or 0), row.agent))
    )


def _draws(
    agents: Sequence[_Merged], tasks: Sequence[Task], dimensions: Sequence[str], values: Floats
) -> tuple[Floats, int]:
    """The middle of each agent in every draw of the cases, and their degrees of freedom."""
    tables = [_table([one.ratings[task] for one in agents], dimensions) for task in tasks]
    draws = stratified_draws(values, [table.marks for table in tables], [table.names for table in tables])
    return draws, max(1, sum(len(table.names) for table in tables) - len(tasks))


def _evidence(
    agents: Sequence[_Merged], tasks: Sequence[Task], dimensions: Sequence[str], found: PairedRows
) -> PairedRows:
    """With what rounds differ by, of dimensions that depend on the machine; else by the other dimensions alone."""
    machine = {
        name for one in agents for r in one.ratings.values() for name in dimensions if name in r.by_round
    }
    if not machine:
        return found
    errors = _round_errors(agents, tasks, dimensions)
    p = with_rounds(found, errors)
    others = tuple(name for name in dimensions if name not in machine)
    is_known = ~np.isnan(errors.error) | np.eye(len(agents), dtype=np.bool_)
    if others and not is_known.all():
        rated = [[value_of(one.ratings[task], others) or 0.0 for task in tasks] for one in agents]
        values = np.array(rated, dtype=np.float64)
        draws, freedom = _draws(agents, tasks, others, values)
        alone = _paired(interquartile_mean(values), draws, freedom)
        p = np.where(is_known, p, np.where(alone.gap * found.gap > 0, alone.p, 1.0))
    return PairedRows(found.gap, p)


def _round_errors(agents: Sequence[_Merged], tasks: Sequence[Task], dimensions: Sequence[str]) -> PairErrors:
    """Of the mean over benchmarks; the middle half of them has at most twice its variance."""
    each = [
        errors_between(
            [round_deviations(one.ratings[task], dimensions) for one in agents],
            [one.runs.get(task, "") for one in agents],
        )
        for task in tasks
    ]
    both = np.full((len(agents), len(agents)), True)
    found = mean_errors(each, [both] * len(tasks))
    return PairErrors(math.sqrt(2) * found.error, found.freedom)


def _around(middle: float, low: float, high: float) -> tuple[float, float]:
    """Draws may all lie on one side of the figure, where its benchmarks are few and uneven."""
    return min(low, middle), max(high, middle)


def _dimensions(agents: Sequence[_Merged]) -> tuple[str, ...]:
    contenders = [
        Contender(
            one.agent, "", {"/".join(task): r for task, r in one.ratings.items()}, one.is_simulated, None
        )
        for one in agents
    ]
    return shared_dimensions(contenders)


@dataclass(frozen=True, slots=True)
class _Table:
    """What each case of a benchmark says of each agent."""

    marks: Floats
    names: Sequence[str]


def _table(ratings: Sequence[Ratings], dimensions: Sequence[str]) -> _Table:
    names = list(dict.fromkeys(name for one in ratings for name in one.names))
    places_of = {name: place for place, name in enumerate(names)}
    is_even = [name for name in _SHARES if name in dimensions and any(_is_even(one, name) for one in ratings)]
    table = np.full((len(ratings), len(names) + bool(is_even)), np.nan)
    for row, one in enumerate(ratings):
        weights = shares(one, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
        marks = sum(weight * _marks(one, name, bool(is_even)) for name, weight in weights.items())
        table[row, [*(places_of[name] for name in one.names), *([len(names)] if is_even else [])]] = marks
    return _Table(table, [*names, *([""] if is_even else [])])


def _is_even(ratings: Ratings, name: str) -> bool:
    marks = np.asarray(ratings.marks[name])
    return bool(marks.size) and bool((marks == marks[0]).all()) and marks[0] in (0, 1)


def _marks(ratings: Ratings, name: str, with_one_more: bool) -> Floats:
    """With one case more, where a share is 0 or 1: the next case may be the first to turn out differently."""
    marks = np.asarray(ratings.marks[name], dtype=np.float64)
    if not with_one_more:
        return marks
    is_even = name in _SHARES and _is_even(ratings, name)
    return np.append(marks, 1 - marks[0] if is_even else marks.mean() if marks.size else 0.0)


def _paired(middles: Floats, draws: Floats, freedom: int) -> PairedRows:
    """Differences over the spread that they have from draw to draw."""
    number = len(middles)
    gap, p = middles[:, None] - middles[None, :], np.ones((number, number))
    for a in range(number):
        for b in range(a + 1, number):
            spread = float((draws[:, a] - draws[:, b]).std(ddof=1))
            if gap[a, b] and spread:
                p[a, b] = p[b, a] = 2 * t_tail(abs(gap[a, b]) / spread, freedom)
    return PairedRows(gap, p)
