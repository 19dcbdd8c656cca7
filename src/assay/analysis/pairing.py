"""Agents side by side, case by case: what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.analysis.rounds import FEWEST_ROUNDS, error_by_round, errors_between
from assay.model.rating import DIMENSIONS, Ratings, has_solved_nothing
from assay.model.standing import Contender, RankRange
from assay.stats.correction import holm
from assay.stats.means import FEW_INFORMATIVE, t_tail
from assay.stats.pairs import PairedRows, paired_rows
from assay.stats.random_effects import ErrorPart, PairErrors, combine_p, half_width
from assay.stats.sample import quantile
from assay.stats.trimmed_rows import trimmed_rows

ALPHA = 0.05
_ROUNDED = 1e-7
"""Marks are kept with seven digits."""
Floats = NDArray[np.float64]
Better = NDArray[np.bool_]
"""Whether the row's agent is certainly better than the column's."""


def shared_dimensions(contenders: Sequence[Contender]) -> tuple[str, ...]:
    """Those that every agent is rated on in every benchmark that it did.

    Speed is not shared by agents whose times were recorded earlier and agents that were measured here.
    """
    kinds = {rated.is_recorded for one in contenders for rated in one.ratings.values()}

    def has(contender: Contender, name: str) -> bool:
        return all(r.dimensions[name].value is not None for r in contender.ratings.values())

    shared = [name for name in DIMENSIONS if contenders and all(has(one, name) for one in contenders)]
    return tuple(name for name in shared if name != "speed" or len(kinds) == 1)


def shares(ratings: Ratings, dimensions: Sequence[str]) -> dict[str, float]:
    """Weights of these dimensions, scaled to a sum of 1; empty where they weigh nothing.

    An agent that solved nothing is weighed by its accuracy alone, which is 0.
    """
    if "accuracy" in dimensions and has_solved_nothing(ratings.dimensions["accuracy"], ratings.weights):
        return {"accuracy": 1.0}
    weights = {name: ratings.weights[name] for name in dimensions if ratings.weights[name] > 0}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def value_of(ratings: Ratings, dimensions: Sequence[str]) -> float | None:
    """The weighted mean of these dimensions on one benchmark; None where one of them is unrated, or all weigh nothing."""
    weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
    values = {name: ratings.dimensions[name].value for name in weights}
    if not weights or any(value is None for value in values.values()):
        return None
    return sum(weight * (values[name] or 0.0) for name, weight in weights.items())


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
        self._groups = [_Group(contenders, key) for key in dict.fromkeys(_keys(contenders))]
        self._tables: dict[tuple[str, ...], list[Floats]] = {}
        self._errors: dict[tuple[str, ...], PairErrors] = {}

    def paired(self, dimensions: Sequence[str]) -> PairedRows:
        """Differences in the weighted mean of these dimensions, with uncorrected p values.

        What depends on the machine has two sources of error, cases and rounds; both count. Agents that did not share at
        least three rounds of one run are told apart by the other dimensions alone.
        """
        tables = self._of(dimensions)
        if not tables:
            number = len(self._contenders)
            return PairedRows(np.full((number, number), np.nan), np.ones((number, number)))
        is_speed = tuple(dimensions) == ("speed",)
        found = trimmed_rows([_log_odds(table) for table in tables]) if is_speed else paired_rows(tables)
        shown = self._shown_gap(dimensions)
        found = PairedRows(
            found.gap, np.where((found.gap * shown > 0) & self._are_alike(dimensions), found.p, 1.0)
        )
        machine = self._of_machine(dimensions)
        return self._with_machine(found, dimensions, machine) if machine else found

    def _with_machine(self, found: PairedRows, dimensions: Sequence[str], machine: set[str]) -> PairedRows:
        is_speed = tuple(dimensions) == ("speed",)
        by_cases = found if is_speed else self._continuous(found, dimensions, machine)
        p = with_rounds(by_cases, self._round_errors(dimensions, is_log=is_speed))
        others = [name for name in dimensions if name not in machine]
        if others:
            p = np.where(self._are_timed_together(dimensions), p, self._p_by(others, found.gap))
        return PairedRows(found.gap, p)

    def _continuous(self, found: PairedRows, dimensions: Sequence[str], machine: set[str]) -> PairedRows:
        """With Student's p where most of the gap is one of times: sign flips are for verdicts, which are all or nothing."""
        tables = self._of(dimensions)
        if sum(table.shape[1] for table in tables) >= FEW_INFORMATIVE:
            return found
        whole = np.abs(self._shown_gap(dimensions))
        others = [name for name in dimensions if name not in machine]
        weights = next(iter(self._contenders[0].ratings.values())).weights
        share = sum(weights[name] for name in others) / (sum(weights[name] for name in dimensions) or 1.0)
        is_mostly_time = share * np.abs(self._shown_gap(others)) <= whole / 2
        student = paired_rows(tables, is_continuous=True)
        return PairedRows(found.gap, np.where(is_mostly_time & (found.p < 1), student.p, found.p))

    def _of_machine(self, dimensions: Sequence[str]) -> set[str]:
        ratings = [one for contender in self._contenders for one in contender.ratings.values()]
        return {name for name in dimensions if any(name in one.by_round for one in ratings)}

    def _p_by(self, others: Sequence[str], gap: Floats) -> Floats:
        """By dimensions that do not depend on the machine, where they point the same way as the whole."""
        found = self.paired(others)
        return np.where(found.gap * gap > 0, found.p, 1.0)

    def _of(self, dimensions: Sequence[str]) -> list[Floats]:
        chosen = tuple(dimensions)
        if chosen not in self._tables:
            self._tables[chosen] = [group.table(chosen) for group in self._groups]
        return self._tables[chosen]

    def _shown_gap(self, dimensions: Sequence[str]) -> Floats:
        """How far the ratings themselves are apart on what both did: evidence counts only where it says the same."""
        gap = np.zeros((len(self._contenders), len(self._contenders)))
        for group in self._groups:
            values = group.values(dimensions)
            gap += np.nan_to_num(values[:, None] - values[None, :])
        return gap

    def _are_alike(self, dimensions: Sequence[str]) -> Better:
        """Of every two, whether both were timed here or both are recorded, where that matters."""
        recorded = np.array([one.is_recorded for one in self._contenders])
        return np.asarray((recorded[:, None] == recorded[None, :]) | ("speed" not in dimensions))

    def _are_timed_together(self, dimensions: Sequence[str]) -> NDArray[np.bool_]:
        return ~np.isnan(self._round_errors(dimensions, is_log=False).error)

    def _round_errors(self, dimensions: Sequence[str], *, is_log: bool) -> PairErrors:
        """Of the mean over the benchmarks that both did, by rounds; NaN where they did not share rounds in one of them."""
        key = (*dimensions, "log" if is_log else "")
        if key not in self._errors:
            self._errors[key] = mean_errors(
                [group.round_errors(dimensions, is_log=is_log) for group in self._groups],
                [group.shared() for group in self._groups],
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
        """None where it is unknown; without error where nothing depends on the machine."""
        if not self._of_machine(dimensions):
            return ErrorPart(0.0, 1)
        errors = self._round_errors(dimensions, is_log=False)
        error = float(errors.error[a, b])
        return None if np.isnan(error) else ErrorPart(error, int(errors.freedom[a, b]))

    def error(self, contender: int, dimensions: Sequence[str]) -> float:
        """Standard error of a contender's own mean over benchmarks, as far as its cases and rounds show it."""
        rows = [table[contender] for table in self._of(dimensions)]
        known = [row[~np.isnan(row)] for row in rows]
        errors2 = [float(row.var(ddof=1)) / row.size for row in known if row.size > 1]
        rated = self._contenders[contender].ratings.values()
        errors2 += [round_error(one, dimensions) ** 2 for one in rated]
        return float(np.sqrt(sum(errors2))) / max(1, len(rated))


Key = tuple[str, str, str]
"""Benchmark, hash of its definition, yardstick."""


def _keys(contenders: Sequence[Contender]) -> list[Key]:
    return [_key(one, benchmark) for one in contenders for benchmark in one.ratings]


def _key(contender: Contender, benchmark: str) -> Key:
    return benchmark, contender.hashes.get(benchmark, ""), contender.ratings[benchmark].yardstick


class _Group:
    """The results on one benchmark that may be put side by side."""

    def __init__(self, contenders: Sequence[Contender], key: Key) -> None:
        benchmark = key[0]
        self._ratings = [
            one.ratings[benchmark] if benchmark in one.ratings and _key(one, benchmark) == key else None
            for one in contenders
        ]
        self._runs = [one.runs.get(benchmark, "") for one in contenders]
        names = dict.fromkeys(tuple(one.names) for one in self._ratings if one is not None)
        self._columns = _CaseColumns(list(names))

    def values(self, dimensions: Sequence[str]) -> Floats:
        found = [None if one is None else value_of(one, dimensions) for one in self._ratings]
        return np.array([np.nan if value is None else value for value in found])

    def shared(self) -> NDArray[np.bool_]:
        """Which two contenders both have a result here."""
        there = np.array([one is not None for one in self._ratings])
        return np.asarray(there[:, None] & there[None, :])

    def round_errors(self, dimensions: Sequence[str], *, is_log: bool) -> PairErrors:
        """Of the differences in these dimensions together, by rounds; of speed on the scale of log odds, which is log time."""
        offs = [
            None if one is None else round_deviations(one, dimensions, is_log=is_log) for one in self._ratings
        ]
        found = errors_between(offs, self._runs)
        recorded = np.array([one is not None and one.is_recorded for one in self._ratings])
        return PairErrors(np.where(recorded[:, None] & recorded[None, :], 0.0, found.error), found.freedom)

    def table(self, dimensions: Sequence[str]) -> Floats:
        """A row a contender, a column a case."""
        table = np.full((len(self._ratings), self._columns.number), np.nan)
        for row, ratings in enumerate(self._ratings):
            marks = None if ratings is None else _combined(ratings, dimensions)
            if ratings is not None and marks is not None:
                table[row, self._columns.of(ratings.names)] = marks
        return table


def _combined(ratings: Ratings, dimensions: Sequence[str]) -> Floats | None:
    weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
    if not weights or any(name not in ratings.marks for name in weights):
        return None
    parts = [weight * np.asarray(ratings.marks[name], dtype=np.float64) for name, weight in weights.items()]
    return np.asarray(np.sum(parts, axis=0))


def round_deviations(
    ratings: Ratings, dimensions: Sequence[str], *, is_log: bool = False
) -> list[float | None] | None:
    """By how much each round is off in these dimensions together; a slow round is slow in all of them.

    None with fewer than three rounds; all 0 where nothing depends on the machine.
    """
    weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
    parts = [(weight, ratings.by_round[name]) for name, weight in weights.items() if name in ratings.by_round]
    if is_log and (value := ratings.dimensions["speed"].value) is not None and 0 < value < 1:
        parts = [(weight / (value * (1 - value)), off) for weight, off in parts]
    if not parts or any(sum(one is not None for one in off) < FEWEST_ROUNDS for _, off in parts):
        return None
    rounds = range(min(len(off) for _, off in parts))
    return [
        None
        if any(off[number] is None for _, off in parts)
        else sum(weight * (off[number] or 0.0) for weight, off in parts)
        for number in rounds
    ]


def round_error(ratings: Ratings, dimensions: Sequence[str]) -> float:
    """Of these dimensions together, by rounds: the normal standard error whose interval is as wide as Student's.

    0 where nothing depends on the machine, and with too few rounds to know.
    """
    offs = round_deviations(ratings, dimensions)
    part = error_by_round(offs) if offs else None
    return half_width([part]) / quantile(0.975) if part else 0.0


def has_rounds(ratings: Ratings) -> bool:
    """Whether there are enough rounds to know how much what depends on the machine varies."""
    return all(sum(one is not None for one in off) >= FEWEST_ROUNDS for off in ratings.by_round.values())


def _log_odds(marks: Floats) -> Floats:
    """Of ratings of seconds, logarithms of seconds but for the sign and the reference."""
    inside = np.clip(marks, _ROUNDED, 1 - _ROUNDED)
    return np.asarray(np.log(inside / (1 - inside)))


def mean_errors(each: Sequence[PairErrors], shared: Sequence[NDArray[np.bool_]]) -> PairErrors:
    """Of the mean over several benchmarks of those that two agents share; Satterthwaite's degrees of freedom."""
    variance = np.sum(
        [np.where(both, one.error**2, 0.0) for one, both in zip(each, shared, strict=True)], axis=0
    )
    spread = np.sum(
        [np.where(both, one.error**4 / one.freedom, 0.0) for one, both in zip(each, shared, strict=True)],
        axis=0,
    )
    number = np.maximum(np.sum(shared, axis=0), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = np.where(spread > 0, np.floor(variance**2 / spread), 1.0)
    return PairErrors(np.sqrt(variance) / number, np.maximum(freedom, 1.0))


def with_rounds(found: PairedRows, errors: PairErrors) -> Floats:
    """p values against cases and rounds together; 1 where two agents did not share rounds."""
    p = np.ones_like(found.p)
    rows = len(p)
    for a, b in zip(*np.triu_indices(rows, 1), strict=True):
        error = errors.error[a, b]
        if found.p[a, b] < 1 and not np.isnan(error):
            by_round = 2 * t_tail(abs(found.gap[a, b]) / error, int(errors.freedom[a, b])) if error else 0.0
            p[a, b] = p[b, a] = combine_p(float(found.p[a, b]), by_round)
    return p


class _CaseColumns:
    """Where each case stands; agents that were asked the same have them in one order."""

    def __init__(self, lists: Sequence[Sequence[str]]) -> None:
        self._is_one = len(lists) == 1
        self._places: Mapping[str, int] = {}
        self.number = len(lists[0]) if lists else 0
        if not self._is_one:
            every = dict.fromkeys(name for names in lists for name in names)
            self._places = {name: place for place, name in enumerate(every)}
            self.number = len(self._places)

    def of(self, names: Sequence[str]) -> slice | list[int]:
        return slice(None) if self._is_one else [self._places[name] for name in names]


def certainly_better(found: Sequence[PairedRows]) -> list[Better]:
    """For each of the tables; corrected by Holm over all pairs of all of them."""
    rows = len(found[0].gap)
    upper = np.triu_indices(rows, 1)
    corrected = holm(np.concatenate([one.p[upper] for one in found]))
    told: list[Better] = []
    for one, p in zip(found, np.split(corrected, len(found)), strict=True):
        better = np.zeros((rows, rows), dtype=np.bool_)
        better[upper] = p < ALPHA
        told.append((better | better.T) & (one.gap > 0))
    return told


def places(better: Better) -> list[RankRange]:
    number = len(better)
    return [
        RankRange(1 + int(better[:, one].sum()), number - int(better[one].sum())) for one in range(number)
    ]
