"""Agents side by side, case by case: what tells them apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from assay.analysis.rounds import OF_MACHINE, half_widths, spread_of
from assay.model.rating import DIMENSIONS, Ratings, has_solved_nothing
from assay.model.standing import Contender, Place
from assay.stats.correction import holm
from assay.stats.means import t_quantile
from assay.stats.pairs import PairedRows, paired_rows

ALPHA = 0.05
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

    def paired(self, dimensions: Sequence[str]) -> PairedRows:
        """Differences in the weighted mean of these dimensions, with uncorrected p values."""
        tables = self._of(dimensions)
        if not tables:
            number = len(self._contenders)
            return PairedRows(np.full((number, number), np.nan), np.ones((number, number)))
        found = paired_rows(tables, by_rank=tuple(dimensions) == ("speed",))
        shown = self._shown_gap(dimensions)
        is_told = (
            (found.gap * shown > 0)
            & self._are_alike(dimensions)
            & (np.abs(shown) > self._by_rounds(dimensions))
        )
        return PairedRows(found.gap, np.where(is_told, found.p, 1.0))

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

    def _by_rounds(self, dimensions: Sequence[str]) -> Floats:
        """How far apart the same ratings may be through what the machine did in the rounds of either side."""
        widths2 = np.zeros((len(self._contenders), len(self._contenders)))
        if set(dimensions) & OF_MACHINE.keys():
            for group in self._groups:
                widths2 += half_widths(*group.rounds(dimensions)) ** 2
        return np.asarray(np.sqrt(widths2))

    def difference(self, a: int, b: int, dimensions: Sequence[str]) -> Difference | None:
        """How far the rating of `a` is above that of `b` on what both did, with its 95 % interval over cases.

        The interval is never narrower than what the machine may explain. If all cases differ by the same amount, there is no
        interval: a width of zero would claim more certainty than a few cases have. None where they share no benchmark.
        """
        pairs = [group.values(dimensions)[[a, b]] for group in self._groups]
        known = [float(pair[0] - pair[1]) for pair in pairs if not np.isnan(pair).any()]
        if not known:
            return None
        steps = [table[a] - table[b] for table in self._of(dimensions)]
        shared = [step[~np.isnan(step)] for step in steps]
        parts = [(float(step.var(ddof=1)) / step.size, step.size - 1) for step in shared if step.size > 1]
        gap = sum(known) / len(known)
        if not parts:
            return Difference(gap, None, None)
        error2 = sum(error for error, _ in parts)
        spread = sum(error**2 / freedom for error, freedom in parts)
        quantile = t_quantile(1 - ALPHA / 2, max(1, int(error2**2 / spread))) if spread else 0.0
        by_machine = float(np.nan_to_num(self._by_rounds(dimensions)[a, b])) / len(known)
        half = max(quantile * float(np.sqrt(error2)) / len(parts), by_machine)
        return Difference(gap, gap - half, gap + half) if half else Difference(gap, None, None)

    def error(self, contender: int, dimensions: Sequence[str]) -> float:
        """Standard error of a contender's own mean over benchmarks, as far as its cases show it."""
        rows = [table[contender] for table in self._of(dimensions)]
        known = [row[~np.isnan(row)] for row in rows]
        errors2 = [float(row.var(ddof=1)) / row.size for row in known if row.size > 1]
        return float(np.sqrt(sum(errors2))) / max(1, len(errors2))


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
        names = dict.fromkeys(tuple(one.names) for one in self._ratings if one is not None)
        self._columns = _Columns(list(names))

    def values(self, dimensions: Sequence[str]) -> Floats:
        found = [None if one is None else value_of(one, dimensions) for one in self._ratings]
        return np.array([np.nan if value is None else value for value in found])

    def rounds(self, dimensions: Sequence[str]) -> tuple[Floats, Floats]:
        """Of each contender the number of rounds, and by how much one of them varies in these dimensions together."""
        told = [(0.0, np.nan) if one is None else _varying(one, dimensions) for one in self._ratings]
        return np.array([number for number, _ in told]), np.array([spread for _, spread in told])

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


def _varying(ratings: Ratings, dimensions: Sequence[str]) -> tuple[float, float]:
    """A slow round is slow in every dimension, so what they vary by is added."""
    weights = shares(ratings, dimensions) if len(dimensions) > 1 else dict.fromkeys(dimensions, 1.0)
    told = [(weight, spread_of(ratings.rounds.get(name))) for name, weight in weights.items()]
    known = [(weight, *one) for weight, one in told if one[0]]
    if not known:
        return 0.0, float("nan")
    return min(number for _, number, _ in known), sum(weight * spread for weight, _, spread in known)


class _Columns:
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


def places(better: Better) -> list[Place]:
    number = len(better)
    return [Place(1 + int(better[:, one].sum()), number - int(better[one].sum())) for one in range(number)]
