"""Compares agents case by case, and tests which differences are significant.

Leaderboards, matrices, leads and showdowns all use `Pairing`. Its evidence is the marks of the cases that two agents share
(see `ranking/case_ratings.py`): differences of marks are tested case by case, and what depends on the machine has a second
error, what rounds differ by. `certainly_better` corrects the p values over all pairs of agents by Holm, and `compute_rank_ranges` turns
the result into ranges of ranks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.nodes import MOST_OUT_OF_BALANCE, count_out_of_balance
from assay.analysis.comparison.rounds import errors_between
from assay.analysis.comparison.weighted_ratings import round_deviations, round_error, shares, value_of
from assay.model.dimension import DIMENSIONS
from assay.model.standing import Contender, RankRange
from assay.stats.correction import holm
from assay.stats.means import FEW_INFORMATIVE
from assay.stats.pairs import PairedRows, compare_rows
from assay.stats.random_effects import ErrorPart, PairErrors, combine_p, half_width
from assay.stats.student_tails import t_tails
from assay.stats.trimmed_rows import compare_trimmed_rows

ALPHA = 0.05
_ROUNDED = 1e-7
"""Marks are stored as 32-bit floats, with about seven digits, so 0 and 1 are known no better than this."""
Floats = NDArray[np.float64]
Better = NDArray[np.bool_]
"""Whether the row's agent is significantly better than the column's."""


def find_common_dimensions(contenders: Sequence[Contender]) -> tuple[str, ...]:
    """The dimensions that every agent is rated on in every benchmark that it ran.

    Speed is not among them if times of some agents were recorded earlier and those of others were measured here.
    """
    kinds = {rated.is_recorded for agent in contenders for rated in agent.ratings.values()}

    def has(contender: Contender, name: str) -> bool:
        return all(r.dimensions[name].value is not None for r in contender.ratings.values())

    shared = [name for name in DIMENSIONS if contenders and all(has(agent, name) for agent in contenders)]
    return tuple(name for name in shared if name != "speed" or len(kinds) == 1)


@dataclass(frozen=True, slots=True)
class Difference:
    """Between two agents' ratings; the ends are None where they share too few cases for an interval."""

    value: float
    low: float | None
    high: float | None


class Pairing:
    """Contenders on the cases that they share, benchmark by benchmark.

    Two results go side by side only where the benchmark has the same definition and was rated by the same references.
    """

    def __init__(self, contenders: Sequence[Contender]) -> None:
        self._contenders = contenders
        keys = dict.fromkeys(
            _key(contender, benchmark) for contender in contenders for benchmark in contender.ratings
        )
        self._groups = [_Group(contenders, key) for key in keys]
        self._tables: dict[tuple[str, ...], list[Floats]] = {}
        self._errors: dict[tuple[str, ...], PairErrors] = {}
        self._found: dict[tuple[str, ...], PairedRows] = {}

    def compare_pairs(self, dimensions: Sequence[str]) -> PairedRows:
        """Differences in the weighted mean of these dimensions, with uncorrected p values; computed once.

        What depends on the machine has two sources of error, cases and rounds; both count. Agents that did not share at
        least three rounds of one run are told apart by the other dimensions alone.
        """
        chosen = tuple(dimensions)
        if chosen not in self._found:
            self._found[chosen] = self._pair(chosen)
        return self._found[chosen]

    def _pair(self, dimensions: tuple[str, ...]) -> PairedRows:
        tables = self._of(dimensions)
        if not tables:
            number = len(self._contenders)
            return PairedRows(np.full((number, number), np.nan), np.ones((number, number)))
        is_speed = tuple(dimensions) == ("speed",)
        if is_speed:
            # Log odds of ratings of seconds are logarithms of seconds, but for the sign and the reference.
            inside = [np.clip(table, _ROUNDED, 1 - _ROUNDED) for table in tables]
            found = compare_trimmed_rows([np.asarray(np.log(marks / (1 - marks))) for marks in inside])
        else:
            found = compare_rows(tables)
        # Evidence counts only where the ratings say the same, and only between agents that were both timed here or both
        # recorded, if speed is among the dimensions.
        rating_gap = self._compute_rating_gap(dimensions)
        recorded = np.array([contender.is_recorded for contender in self._contenders])
        are_alike = (recorded[:, None] == recorded[None, :]) | ("speed" not in dimensions)
        found = PairedRows(found.gap, np.where((found.gap * rating_gap > 0) & are_alike, found.p, 1.0))
        machine = self._of_machine(dimensions)
        return self._with_machine(found, dimensions, machine) if machine else found

    def _with_machine(self, found: PairedRows, dimensions: Sequence[str], machine: set[str]) -> PairedRows:
        """The p values against cases and rounds together; `machine` are the dimensions that depend on the machine."""
        is_speed = tuple(dimensions) == ("speed",)
        by_cases = found if is_speed else self._continuous(found, dimensions, machine)
        p = with_rounds(by_cases, self._round_errors(dimensions, is_log=is_speed))
        others = [name for name in dimensions if name not in machine]
        if others:
            # Agents that shared no rounds are told apart by the other dimensions, if those point the same way as the whole.
            are_timed_together = ~np.isnan(self._round_errors(dimensions, is_log=False).error)
            by_others = self.compare_pairs(others)
            p = np.where(are_timed_together, p, np.where(by_others.gap * found.gap > 0, by_others.p, 1.0))
        return PairedRows(found.gap, p)

    def _continuous(self, found: PairedRows, dimensions: Sequence[str], machine: set[str]) -> PairedRows:
        """With Student's p values where most of the gap is one of times and there are few cases.

        `compare_rows` tests few cases by flipping signs, which suits verdicts that are all or nothing, but has too little
        power for continuous values such as times.
        """
        tables = self._of(dimensions)
        if sum(table.shape[1] for table in tables) >= FEW_INFORMATIVE:
            return found
        whole = np.abs(self._compute_rating_gap(dimensions))
        others = [name for name in dimensions if name not in machine]
        weights = next(iter(self._contenders[0].ratings.values())).weights
        share = sum(weights[name] for name in others) / (sum(weights[name] for name in dimensions) or 1.0)
        is_mostly_time = share * np.abs(self._compute_rating_gap(others)) <= whole / 2
        student = compare_rows(tables, is_continuous=True)
        return PairedRows(found.gap, np.where(is_mostly_time & (found.p < 1), student.p, found.p))

    def _of_machine(self, dimensions: Sequence[str]) -> set[str]:
        ratings = [
            agent_ratings for contender in self._contenders for agent_ratings in contender.ratings.values()
        ]
        return {
            name for name in dimensions if any(name in agent_ratings.by_round for agent_ratings in ratings)
        }

    def _of(self, dimensions: Sequence[str]) -> list[Floats]:
        chosen = tuple(dimensions)
        if chosen not in self._tables:
            self._tables[chosen] = [group.table(chosen) for group in self._groups]
        return self._tables[chosen]

    def _compute_rating_gap(self, dimensions: Sequence[str]) -> Floats:
        """The difference of the ratings themselves, summed over the benchmarks that both agents ran."""
        gap = np.zeros((len(self._contenders), len(self._contenders)))
        for group in self._groups:
            values = group.values(dimensions)
            gap += np.nan_to_num(values[:, None] - values[None, :])
        return gap

    def _round_errors(self, dimensions: Sequence[str], *, is_log: bool) -> PairErrors:
        """The error by rounds of the mean over the benchmarks that both ran; NaN if they shared no rounds in one of them."""
        key = (*dimensions, "log" if is_log else "")
        if key not in self._errors:
            self._errors[key] = mean_errors(
                [group.round_errors(dimensions, is_log=is_log) for group in self._groups],
                [group.find_shared() for group in self._groups],
            )
        return self._errors[key]

    def difference(self, a: int, b: int, dimensions: Sequence[str]) -> Difference | None:
        """How far the rating of `a` is above that of `b` on what both did, with its 95 % interval over cases and rounds.

        If all cases differ by the same amount, there is no interval: a width of zero would claim more certainty than a few
        cases have. None where they share no benchmark.
        """
        pairs = [group.values(dimensions)[[a, b]] for group in self._groups]
        known = [float(pair[0] - pair[1]) for pair in pairs if not np.isnan(pair).any()]
        if not known:
            return None
        steps = [table[a] - table[b] for table in self._of(dimensions)]
        shared = [step[~np.isnan(step)] for step in steps]
        parts = [(float(step.var(ddof=1)) / step.size, step.size - 1) for step in shared if step.size > 1]
        gap = sum(known) / len(known)
        by_round = self._round_part(a, b, dimensions)
        if not parts or by_round is None:
            return Difference(gap, None, None)
        error2 = sum(error for error, _ in parts)
        spread = sum(error**2 / freedom for error, freedom in parts)
        freedom = max(1, int(error2**2 / spread)) if spread else 1
        half = half_width([ErrorPart(float(np.sqrt(error2)) / len(parts), freedom), by_round])
        return Difference(gap, gap - half, gap + half) if half else Difference(gap, None, None)

    def _round_part(self, a: int, b: int, dimensions: Sequence[str]) -> ErrorPart | None:
        """The error by rounds between two agents: None if it is unknown, 0 if nothing depends on the machine."""
        if not self._of_machine(dimensions):
            return ErrorPart(0.0, 1)
        errors = self._round_errors(dimensions, is_log=False)
        error = float(errors.error[a, b])
        return None if np.isnan(error) else ErrorPart(error, int(errors.freedom[a, b]))

    def error(self, contender: int, dimensions: Sequence[str]) -> float:
        """The standard error of a contender's own mean over benchmarks, as far as its cases and rounds show it."""
        rows = [table[contender] for table in self._of(dimensions)]
        known = [row[~np.isnan(row)] for row in rows]
        errors2 = [float(row.var(ddof=1)) / row.size for row in known if row.size > 1]
        rated = self._contenders[contender].ratings.values()
        errors2 += [round_error(ratings, dimensions) ** 2 for ratings in rated]
        return float(np.sqrt(sum(errors2))) / max(1, len(rated))


class Pairings:
    """Pairings that are shared by everything that is made of the same contenders, such as a board and its matrix."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], Pairing] = {}

    def of(self, contenders: Sequence[Contender]) -> Pairing:
        # By identity: to compare contenders would be to compare all of their ratings. A pairing keeps its contenders alive.
        key = tuple(map(id, contenders))
        if key not in self._kept:
            self._kept[key] = Pairing(contenders)
        return self._kept[key]


Key = tuple[str, str, str]
"""Benchmark, hash of its definition, and yardstick: results that differ in one of them are not comparable."""


def _key(contender: Contender, benchmark: str) -> Key:
    return benchmark, contender.hashes.get(benchmark, ""), contender.ratings[benchmark].yardstick


class _Group:
    """The results on one benchmark that are comparable: one definition and one yardstick.

    Only within such a group are differences of ratings meaningful. Agents of one run whose work was
    spread over nodes unequally are compared without their times.
    """

    def __init__(self, contenders: Sequence[Contender], key: Key) -> None:
        benchmark = key[0]
        self._ratings = [
            contender.ratings[benchmark]
            if benchmark in contender.ratings and _key(contender, benchmark) == key
            else None
            for contender in contenders
        ]
        self._runs = [contender.runs.get(benchmark, "") for contender in contenders]
        names = dict.fromkeys(tuple(ratings.names) for ratings in self._ratings if ratings is not None)
        self._columns = _CaseColumns(list(names))

    def values(self, dimensions: Sequence[str]) -> Floats:
        found = [None if ratings is None else value_of(ratings, dimensions) for ratings in self._ratings]
        return np.array([np.nan if value is None else value for value in found])

    def find_shared(self) -> NDArray[np.bool_]:
        """Which two contenders both have a result here."""
        is_rated = np.array([ratings is not None for ratings in self._ratings])
        return np.asarray(is_rated[:, None] & is_rated[None, :])

    def round_errors(self, dimensions: Sequence[str], *, is_log: bool) -> PairErrors:
        """The errors of the differences between agents by rounds; with `is_log` on the scale of log odds, which is log time.

        Recorded times have no rounds of this machine behind them and so no such error.
        """
        offs = [
            None if ratings is None else round_deviations(ratings, dimensions, is_log=is_log)
            for ratings in self._ratings
        ]
        found = errors_between(offs, self._runs)
        found = replace(found, error=np.where(self._are_on_other_nodes(), np.nan, found.error))
        recorded = np.array([ratings is not None and ratings.is_recorded for ratings in self._ratings])
        return PairErrors(np.where(recorded[:, None] & recorded[None, :], 0.0, found.error), found.freedom)

    def _are_on_other_nodes(self) -> NDArray[np.bool_]:
        """Which two contenders of one run did not share its nodes alike, so that their times are not comparable."""
        number = len(self._ratings)
        are_apart = np.zeros((number, number), dtype=bool)
        placed = [n for n, ratings in enumerate(self._ratings) if ratings is not None and ratings.nodes]
        for a, b in combinations(placed, 2):
            if self._runs[a] == self._runs[b]:
                first, second = (side.nodes for n in (a, b) if (side := self._ratings[n]) is not None)
                are_apart[a, b] = are_apart[b, a] = count_out_of_balance(first, second) > MOST_OUT_OF_BALANCE
        return are_apart

    def table(self, dimensions: Sequence[str]) -> Floats:
        """The weighted marks of these dimensions: one row a contender, one column a case, NaN where there is none."""
        table = np.full((len(self._ratings), self._columns.number), np.nan)
        for row, ratings in enumerate(self._ratings):
            if ratings is None:
                continue
            weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
            if weights and all(name in ratings.marks for name in weights):
                parts = [
                    weight * np.asarray(ratings.marks[name], dtype=np.float64)
                    for name, weight in weights.items()
                ]
                table[row, self._columns.of(ratings.names)] = np.sum(parts, axis=0)
        return table


def mean_errors(error_tables: Sequence[PairErrors], shared: Sequence[NDArray[np.bool_]]) -> PairErrors:
    """The errors of the mean over the benchmarks that two agents share, with Satterthwaite's degrees of freedom."""
    variance = np.sum(
        [
            np.where(is_shared, errors.error**2, 0.0)
            for errors, is_shared in zip(error_tables, shared, strict=True)
        ],
        axis=0,
    )
    spread = np.sum(
        [
            np.where(is_shared, errors.error**4 / errors.freedom, 0.0)
            for errors, is_shared in zip(error_tables, shared, strict=True)
        ],
        axis=0,
    )
    number = np.maximum(np.sum(shared, axis=0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(spread > 0, np.floor(variance**2 / spread), 1.0)
    return PairErrors(np.sqrt(variance) / number, np.maximum(freedom, 1.0))


def with_rounds(found: PairedRows, errors: PairErrors) -> Floats:
    """The p values against cases and rounds together; 1 where two agents did not share rounds."""
    p = np.ones_like(found.p)
    upper = np.triu(np.ones(p.shape, dtype=np.bool_), 1)
    a, b = np.nonzero(upper & (found.p < 1) & ~np.isnan(errors.error))
    error, by_round = errors.error[a, b], np.zeros(len(a))
    known = error != 0
    t = np.abs(found.gap[a, b])[known] / error[known]
    by_round[known] = 2 * t_tails(t, errors.freedom[a, b][known].astype(np.int64))
    p[a, b] = [combine_p(*p_pair) for p_pair in zip(found.p[a, b].tolist(), by_round.tolist(), strict=True)]
    p[b, a] = p[a, b]
    return p


class _CaseColumns:
    """The column of each case in a table. If all agents have the same cases in the same order, no lookup is needed."""

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._is_one = len(lists) == 1
        self._places: Mapping[str, int] = {}
        self.number = len(lists[0]) if lists else 0
        if not self._is_one:
            all_names = dict.fromkeys(name for names in lists for name in names)
            self._places = {name: place for place, name in enumerate(all_names)}
            self.number = len(self._places)

    def of(self, names: Sequence[str]) -> slice | list[int]:
        return slice(None) if self._is_one else [self._places[name] for name in names]


def correct_p_values(found: Sequence[PairedRows]) -> list[Floats]:
    """The p of every pair in each table of differences; Holm corrects over all pairs of all tables."""
    # Only pairs above the diagonal are tests: the difference of B and A is the same test as that of A and B, and counting
    # both would halve the power of all.
    rows = len(found[0].gap)
    upper = np.triu_indices(rows, 1)
    corrected = holm(np.concatenate([differences.p[upper] for differences in found]))
    tables = []
    for p in np.split(corrected, len(found)):
        table = np.ones((rows, rows))
        table[upper] = p
        tables.append(np.minimum(table, table.T))
    return tables


def certainly_better(found: Sequence[PairedRows], tables: Sequence[Floats] | None = None) -> list[Better]:
    """Return, for each table of differences, which agent is significantly better than which.

    The corrected p must be below ALPHA and the gap positive. `tables` are the corrected p, if the caller
    has them already; Holm corrects over all tables together.
    """
    return [
        (p < ALPHA) & (rows.gap > 0) for rows, p in zip(found, tables or correct_p_values(found), strict=True)
    ]


def compute_rank_ranges(better: Better) -> list[RankRange]:
    """The ranks that each agent may have: below all who are certainly better, above all who are certainly worse."""
    number = len(better)
    return [RankRange(1 + int(better[:, n].sum()), number - int(better[n].sum())) for n in range(number)]
