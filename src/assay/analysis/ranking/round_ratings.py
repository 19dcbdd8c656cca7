"""Computes how much the ratings of a trial vary from round to round.

A round is one pass over all cases in one process. What the machine did in that minute moves all cases of the round alike
and must not be mistaken for the agent's own speed, so ratings that depend on the machine have an error over rounds as well.
`ratings.rate` stores the deviations in `Ratings.by_round`; `comparison/weighted_ratings.py` weighs them together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from assay.analysis.comparison.rounds import SEPARATE_BLOCKS, off_by_round
from assay.analysis.estimates.case_results import OK, CaseTotals, case_index, has_status
from assay.analysis.estimates.replication import FEWEST_ROUNDS
from assay.analysis.ranking.case_ratings import EFFICIENCY
from assay.analysis.ranking.reference import quantity
from assay.model.rating import CaseTable, ReferenceValue

Floats = NDArray[np.float64]
Deviations = Sequence[float | None]

_MACHINE_METRICS = {"cpu_seconds", "rss_max_bytes"}


def rate_by_round(
    table: CaseTable,
    tally: CaseTotals,
    values: Mapping[str, float | None],
    reference: Mapping[str, ReferenceValue],
) -> dict[str, Deviations]:
    """By how much the rating of each round deviates, for each rated dimension that depends on the machine.

    Empty for recorded times, which no round of this machine is behind. A list of one number means that there are too few
    rounds to know what a round varies by. A rating r = 1 ÷ (1 + x ÷ reference) moves by r (1 − r) when the logarithm of x
    moves by 1, which turns deviations of log time into deviations of the rating.
    """
    found: dict[str, Deviations] = {}
    if table.is_recorded:
        return found
    if (speed := values["speed"]) is not None:
        off = _deviations(table, "seconds", is_trimmed=True)
        if off is not None:
            found["speed"] = _compute_weighted_sum([(-speed * (1 - speed), off)])
    if (efficiency := values["efficiency"]) is not None:
        parts = [
            (quantity(tally, name), reference[name].value, metric)
            for name, metric, _ in EFFICIENCY
            if name in reference and quantity(tally, name)
        ]
        scaled = [
            (-efficiency / len(parts) * x / (x + of), off)
            for x, of, metric in parts
            if x and metric in _MACHINE_METRICS and (off := _deviations(table, metric)) is not None
        ]
        if scaled:
            found["efficiency"] = _compute_weighted_sum(scaled)
    return found


def _compute_weighted_sum(parts: Sequence[tuple[float, Floats]]) -> list[float | None]:
    """The weighted sum of the parts, round by round; None for a round that one part lacks.

    A single 0 if a part has one round only.
    """
    if any(off.size == 1 for _, off in parts):
        return [0.0]
    rounds = min(off.size for _, off in parts)
    total = np.sum([weight * off[:rounds] for weight, off in parts], axis=0)
    return [None if np.isnan(value) else round(float(value), 9) for value in total]


def _deviations(table: CaseTable, metric: str, *, is_trimmed: bool = False) -> Floats | None:
    """By how much each round deviates, on the scale of logarithms: one place a round, NaN for a round without values.

    None where rounds are not the unit of replication.
    """
    column = table.metrics.get(metric)
    if column is None or not table.has_cases:
        return None
    values = np.asarray(column, dtype=np.float64)
    usable = has_status(table, OK) & np.isfinite(values) & (values > 0)
    rounds = np.asarray(table.processes if len(table.processes) else table.repetitions, dtype=np.int64)
    if not usable.any():
        return None
    # Numbers for names: sorting a million texts takes ten times as long.
    cases = case_index(table.cases)[1].astype(np.int64)[usable]
    values, rounds = values[usable], rounds[usable]
    own_rounds = np.unique(rounds)
    if values.size < 2 * np.unique(cases).size:
        return np.zeros(1) if own_rounds.size < SEPARATE_BLOCKS else None
    off = np.full(int(own_rounds.max()) + 1, np.nan)
    # Efficiency rates means over executions, which stragglers move, so they are trimmed only for speed, a median.
    scaled = np.log(values) if is_trimmed else values / values.mean()
    off[own_rounds] = off_by_round(scaled, cases, rounds, is_trimmed=is_trimmed)
    return off if own_rounds.size >= FEWEST_ROUNDS else np.zeros(1)
