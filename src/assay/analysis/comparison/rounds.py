"""Times, CPU and memory of suites: the unit of replication is the round.

A round is one interleaved pass over all agents: every case once, in one process and one minute. Cases of a round share what
the machine did in that minute, so a test over cases alone takes a slow minute for a slow agent. Rounds are a sample of
minutes: what they differ by is what a difference between two agents has to exceed before it is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.nodes import NodeBlocks
from assay.analysis.estimates.replication import FEWEST_ROUNDS
from assay.model import Series
from assay.stats.blocks import Blocked, mean_difference_within_blocks
from assay.stats.effect import Effect
from assay.stats.random_effects import (
    ErrorPart,
    PairErrors,
    compute_trimmed_mean,
    compute_trimmed_means,
    half_width,
    layout_errors,
    two_sided_p,
)
from assay.stats.sample import Scale

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SEPARATE_BLOCKS = 6
"""If each round has cases of its own and there are this many, cases are far enough apart in time to be the unit."""


@dataclass(frozen=True, slots=True)
class RoundEffect:
    """B against A over rounds."""

    effect: Effect | None
    """None with one round on a side: then it is unknown how much rounds vary."""
    rounds_a: int
    rounds_b: int
    cases: int
    """The number of cases that both sides have."""
    parts: tuple[ErrorPart, ...] = ()
    """The parts of the effect's error, that of the rounds first."""


def compare_rounds(
    a: Series,
    b: Series,
    *,
    are_interleaved: bool,
    are_cases_fixed: bool = False,
    session: ErrorPart | None = None,
    nodes: NodeBlocks | None = None,
) -> RoundEffect:
    """The ratio B ÷ A of a typical case (difference where values are not all positive), with Student's t over rounds.

    Interleaved sides are paired round by round. Where cases are a sample (two agents), what cases differ by is added to the
    error; where they are fixed (two versions of one agent), it is not. `session` is the error of the difference of two runs.
    Rounds on several `nodes` are compared within these.
    """
    sides = _Cells.of(a, b)
    if nodes is not None:
        found = _compare_within_nodes(sides, nodes, are_interleaved)
    else:
        found = _compare_paired(sides) if are_interleaved else _compare_unpaired(sides)
    extra = [part for part in (None if are_cases_fixed else found.by_case, session) if part is not None]
    return _effect(found, extra, sides.scale, "" if nodes is None else " within nodes")


def compare_round_percentiles(
    a: Series,
    b: Series,
    q: float,
    *,
    are_interleaved: bool,
    session: ErrorPart | None = None,
    nodes: NodeBlocks | None = None,
) -> RoundEffect:
    """Like `compare_rounds`, but for the percentile of each round over all of its executions.

    Of several `nodes`, only rounds that both sides had on the same node count.
    """
    sides = _Cells.of(a, b)
    if nodes is not None:
        sides = sides.only_rounds(nodes.together)
    first, second = (side.per_round(lambda values: float(np.percentile(values, q))) for side in sides.both)
    shared = np.intersect1d(list(first), list(second))
    if are_interleaved:
        steps = np.array([second[r] - first[r] for r in shared])
        found = _RoundDifference(steps, steps.size, steps.size, sides.cases, _mean_part(steps))
    else:
        x, y = np.array([*first.values()]), np.array([*second.values()])
        steps = np.array([y.mean() - x.mean()]) if x.size and y.size else np.array([])
        found = _RoundDifference(steps, x.size, y.size, sides.cases, _welch_part(x, y))
    return _effect(found, [part for part in (session,) if part is not None], sides.scale)


@dataclass(frozen=True, slots=True)
class _RoundDifference:
    """The differences by round, whose mean is the estimate (only that mean for unpaired sides), and their errors."""

    steps: Floats
    rounds_a: int
    rounds_b: int
    cases: int
    by_round: ErrorPart | None
    by_case: ErrorPart | None = None


def _effect(
    found: _RoundDifference, extra: Sequence[ErrorPart], scale: Scale, within: str = ""
) -> RoundEffect:
    """The effect over rounds, with the interval and p value of all parts of its error together."""
    counts = found.rounds_a, found.rounds_b, found.cases
    if found.by_round is None or not found.steps.size:
        return RoundEffect(None, *counts)
    parts = (found.by_round, *(part for part in extra if part.freedom))
    value, half = float(found.steps.mean()), half_width(parts)
    estimate, low, high = value, value - half, value + half
    if scale is Scale.RATIO:
        # The exponential of more than about 709 overflows a float.
        estimate, low, high = (math.exp(max(-700.0, min(700.0, log))) for log in (estimate, low, high))
    effect = Effect(
        scale,
        estimate,
        low,
        high,
        two_sided_p(value, parts),
        f"Student's t over rounds{within}, trimmed-mean {scale}",
        float(np.sign(found.steps).mean()),
    )
    return RoundEffect(effect, *counts, parts)


@dataclass(frozen=True, slots=True)
class _SideRounds:
    """One side as columns: case, round, and logarithm (or value), with repetitions within one round averaged."""

    cases: Ints
    rounds: Ints
    values: Floats

    def only(self, kept: NDArray[np.bool_]) -> _SideRounds:
        return _SideRounds(self.cases[kept], self.rounds[kept], self.values[kept])

    def per_round(self, figure: Callable[[Floats], float]) -> dict[int, float]:
        return {int(r): figure(self.values[self.rounds == r]) for r in np.unique(self.rounds)}

    @property
    def is_crossed(self) -> bool:
        """Whether cases occur in several rounds; else a round has cases of its own."""
        return bool(self.values.size >= 2 * (_number_labels(self.cases).max(initial=-1) + 1))

    def round_figures(self) -> Floats:
        """How far each round deviates: the trimmed mean over its cases of how far each is from its own mean."""
        return off_by_round(self.values, self.cases, self.rounds)


@dataclass(frozen=True, slots=True)
class _Cells:
    """The values of both sides on the cases that they share, as logarithms if all values are positive."""

    both: tuple[_SideRounds, _SideRounds]
    scale: Scale
    cases: int

    @classmethod
    def of(cls, a: Series, b: Series) -> _Cells:
        columns = [_columns(series) for series in (a, b)]
        scale = Scale.RATIO if all((column.values > 0).all() for column in columns) else Scale.DIFFERENCE
        shared = np.intersect1d(columns[0].cases, columns[1].cases)
        first, second = (_cells(column, shared, scale) for column in columns)
        return cls((first, second), scale, shared.size)

    def only_rounds(self, rounds: Collection[int]) -> _Cells:
        first, second = (side.only(np.isin(side.rounds, [*rounds])) for side in self.both)
        return replace(self, both=(first, second))


def _columns(series: Series) -> _SideRounds:
    values = np.asarray(series.values, dtype=np.float64)
    rounds = np.asarray(series.rounds if len(series.rounds) else series.repetitions, dtype=np.int64)
    whole = np.isfinite(values)
    return _SideRounds(np.asarray(series.processes, dtype=np.int64)[whole], rounds[whole], values[whole])


def _cells(side: _SideRounds, shared: Ints, scale: Scale) -> _SideRounds:
    """One side on the shared cases: one value for each case and round, the mean of its repetitions."""
    kept = np.isin(side.cases, shared)
    case, number, values = np.searchsorted(shared, side.cases[kept]), side.rounds[kept], side.values[kept]
    if not values.size:
        return _SideRounds(case, number, values)
    if scale is Scale.RATIO:
        values = np.log(values)
    span = int(number.max()) + 1
    keys, place = np.unique(case * span + number, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place)
    return _SideRounds(keys // span, keys % span, means)


def _compare_paired(sides: _Cells) -> _RoundDifference:
    """Compare sides that took turns: differences within each case and round, so that slow minutes cancel out.

    The difference d of case i in round j is taken as d_ij = level + case_i + round_j + rest_ij, with cases and rounds as
    random effects. The estimate is the trimmed mean over cases of their means over rounds; its error has a part from rounds,
    by how far whole rounds deviate, and a part from cases. Trimming keeps a few stragglers, such as an answer that ran into
    a retry, from deciding.
    """
    a, b = sides.both
    if not a.values.size or not b.values.size:
        return _RoundDifference(np.array([]), 0, 0, 0, None)
    span = int(max(a.rounds.max(), b.rounds.max())) + 1
    keys, of_a, of_b = np.intersect1d(
        a.cases * span + a.rounds, b.cases * span + b.rounds, return_indices=True
    )
    differences = _SideRounds(keys // span, keys % span, b.values[of_b] - a.values[of_a])
    if not keys.size:
        return _RoundDifference(np.array([]), 0, 0, 0, None)
    # Crossed: most cases occur in several rounds, so both effects can be told apart. Otherwise every round has cases of its
    # own, and what rounds differ by includes what cases differ by.
    if differences.is_crossed:
        level = compute_trimmed_mean(_case_means(differences))
        steps = level.value + differences.round_figures()
        by_case: ErrorPart | None = _of_cases_alone(level.part, differences)
    else:
        _, number = np.unique(differences.rounds, return_inverse=True)
        # Each round has cases of its own, so what cases differ by is in the rounds.
        steps, by_case = compute_trimmed_means(differences.values, number), None
    cases = int(np.unique(differences.cases).size)
    return _RoundDifference(steps, steps.size, steps.size, cases, _mean_part(steps), by_case)


def _compare_unpaired(sides: _Cells) -> _RoundDifference:
    """Compare sides of two runs: differences between case means, with the error of both sides' rounds."""
    a, b = sides.both
    if not a.values.size or not b.values.size:
        return _RoundDifference(np.array([]), 0, 0, 0, None)
    level = compute_trimmed_mean(_case_means(b) - _case_means(a))
    rounds_a, rounds_b = (int(np.unique(side.rounds).size) for side in sides.both)
    steps = np.array([level.value])
    if a.is_crossed and b.is_crossed:
        by_round = _welch_part(a.round_figures(), b.round_figures())
        return _RoundDifference(
            steps, rounds_a, rounds_b, sides.cases, by_round, _of_cases_alone(level.part, a, b)
        )
    by_case = level.part if min(rounds_a, rounds_b) > 1 and level.part.freedom else None
    return _RoundDifference(steps, rounds_a, rounds_b, sides.cases, by_case)


def _compare_within_nodes(sides: _Cells, nodes: NodeBlocks, are_interleaved: bool) -> _RoundDifference:
    """Compare rounds that ran on several nodes: pairs of one node, or the rounds of each node as two samples.

    The second way takes how far each round is from the level of its cases, and the difference of these between the sides within
    each node; it needs cases that occur in several rounds, or the level of a case could not be told from that of a node.
    """
    a, b = sides.both
    rounds = np.intersect1d(a.rounds, b.rounds).tolist()
    is_crossed = a.is_crossed and b.is_crossed
    if are_interleaved and (nodes.has_pairs(rounds, FEWEST_ROUNDS) or not is_crossed):
        return _compare_paired(sides.only_rounds(nodes.together))
    if not a.values.size or not b.values.size or not is_crossed:
        return _RoundDifference(np.array([]), 0, 0, sides.cases, None)
    level = compute_trimmed_mean(_case_means(b) - _case_means(a))
    centre = (_case_means(a) + _case_means(b)) / 2
    figures = [_round_levels(side, centre, places) for side, places in ((a, nodes.a), (b, nodes.b))]
    found = mean_difference_within_blocks(*figures)
    if found is None:
        return _RoundDifference(np.array([]), 0, 0, sides.cases, None)
    steps, by_case = np.array([found.value]), _of_cases_alone(level.part, a, b)
    return _RoundDifference(steps, found.units_a, found.units_b, sides.cases, found.part, by_case)


def _round_levels(side: _SideRounds, centre: Floats, nodes: Mapping[int, str]) -> Blocked:
    """How far each round is from the level of its cases, with its node; rounds without one are left out."""
    numbers, place = np.unique(side.rounds, return_inverse=True)
    levels = compute_trimmed_means(side.values - centre[_number_labels(side.cases)], place)
    kept = [place for place, number in enumerate(numbers.tolist()) if number in nodes]
    return Blocked(levels[kept], [nodes[int(numbers[place])] for place in kept])


def _case_means(side: _SideRounds) -> Floats:
    _, case = np.unique(side.cases, return_inverse=True)
    return np.asarray(np.bincount(case, side.values) / np.bincount(case))


def _of_cases_alone(part: ErrorPart, *sides: _SideRounds) -> ErrorPart:
    """The error over cases, less what means of cases vary by between repetitions, which the rounds' error already has.

    The variance of case means is the variance of the cases themselves plus that of the repetitions over their number. The
    second term is estimated from what is left of the values without their case and round, and subtracted; the median over
    cases keeps one erratic case from taking all of it away. Counting it twice would make intervals too wide.
    """
    repeated = 0.0
    for side in sides:
        _, case = np.unique(side.cases, return_inverse=True)
        number = np.bincount(case)
        left = side.values - (np.bincount(case, side.values) / number)[case]
        _, place = np.unique(side.rounds, return_inverse=True)
        left -= compute_trimmed_means(left, place)[place]
        variances = np.bincount(case, left**2) / np.maximum(number - 1, 1)
        repeated += float(np.median(variances / number)) / number.size
    return ErrorPart(math.sqrt(max(0.0, part.error**2 - repeated)), part.freedom)


def _mean_part(steps: Floats, fewest: int = 2) -> ErrorPart | None:
    if steps.size < fewest:
        return None
    return ErrorPart(float(steps.std(ddof=1)) / math.sqrt(steps.size), steps.size - 1)


def _welch_part(x: Floats, y: Floats) -> ErrorPart | None:
    """Welch's error of the difference of two means, with at least as many degrees of freedom as the smaller side has."""
    if min(x.size, y.size) < 2:
        return None
    # Welch (1947): the variances of both means add up, with the degrees of freedom of Welch and Satterthwaite.
    errors2 = [float(side.var(ddof=1)) / side.size for side in (x, y)]
    spread = sum(error2**2 / (side.size - 1) for error2, side in zip(errors2, (x, y), strict=True))
    fewest = min(x.size, y.size) - 1
    freedom = max(fewest, int(sum(errors2) ** 2 / spread)) if spread else fewest
    return ErrorPart(math.sqrt(sum(errors2)), freedom)


def off_by_round(
    values: Floats, cases: NDArray[np.generic], rounds: NDArray[np.generic], *, is_trimmed: bool = True
) -> Floats:
    """By how much each round deviates: the mean over its cases of how far each is from its own mean over all rounds.

    With a trimmed mean a few stragglers do not count.
    """
    case, number = _number_labels(cases), _number_labels(rounds)
    own = (np.bincount(case, values) / np.bincount(case))[case]
    if not is_trimmed:
        return np.asarray(np.bincount(number, values - own) / np.bincount(number))
    return compute_trimmed_means(values - own, number)


def _number_labels(labels: NDArray[np.generic]) -> Ints:
    """The labels as numbers from 0 without gaps, in their order. Small whole numbers need no sorting, which saves time."""
    if labels.dtype == np.int64 and labels.size and labels.min() >= 0 and labels.max() < 4 * labels.size:
        whole = labels.astype(np.int64, copy=False)
        return np.asarray((np.cumsum(np.bincount(whole) > 0) - 1)[whole])
    return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)


def error_by_round(offs: Sequence[float | None]) -> ErrorPart | None:
    """The error of an agent's own figure by the deviations of its rounds; None with fewer than three rounds."""
    return _mean_part(np.array([off for off in offs if off is not None]), FEWEST_ROUNDS)


def series_error(series: Series) -> ErrorPart | None:
    """The error of a trial's typical value by its rounds, on the scale of logarithms; None with too few rounds to know."""
    side = _columns(series)
    if not side.values.size or side.values.mean() <= 0:
        return None
    if not side.is_crossed:
        are_apart = np.unique(side.rounds).size >= SEPARATE_BLOCKS
        return ErrorPart(0.0, 1) if are_apart else None
    scaled = np.log(side.values) if (side.values > 0).all() else side.values / side.values.mean()
    return _mean_part(off_by_round(scaled, side.cases, side.rounds), FEWEST_ROUNDS)


def errors_between(offs: Sequence[Sequence[float | None] | None], runs: Sequence[str]) -> PairErrors:
    """For every two agents, the error of their difference by rounds; NaN if they were not measured in the same rounds.

    `offs` has the deviations of each agent's rounds, None if they are unknown, and `runs` the run of each agent. Agents of
    one run that share at least three complete rounds are analysed together (a two-way layout), others two by two.
    """
    number = len(offs)
    error, freedom = np.full((number, number), np.nan), np.ones((number, number))
    for run in dict.fromkeys(runs):
        members = [n for n in range(number) if runs[n] == run and offs[n] is not None]
        rows = [offs[n] or () for n in members]
        table = np.full((len(rows), max((len(row) for row in rows), default=0)), np.nan)
        for place, row in enumerate(rows):
            table[place, : len(row)] = [np.nan if value is None else value for value in row]
        whole = ~np.isnan(table).any(axis=0) if table.size else np.zeros(0, dtype=bool)
        pairs = [list(pair) for pair in combinations(members, 2)]
        groups = [members] if whole.sum() >= FEWEST_ROUNDS else pairs
        for group in groups:
            shared = table[[members.index(n) for n in group]]
            shared = shared[:, ~np.isnan(shared).any(axis=0)]
            if len(group) > 1 and shared.shape[1] >= FEWEST_ROUNDS:
                found = layout_errors(shared)
                error[np.ix_(group, group)], freedom[np.ix_(group, group)] = found.error, found.freedom
    return PairErrors(error, freedom)
