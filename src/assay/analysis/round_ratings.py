"""Ratings round by round: what the machine did in a round must not be taken for the agent's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from assay.analysis.marks import EFFICIENCY
from assay.analysis.reference import quantity
from assay.analysis.rounds import FEWEST_ROUNDS, SEPARATE_BLOCKS, off_by_round
from assay.analysis.tally import OK, CaseTotals, case_index, has_status
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
    """Of each rated dimension that depends on the machine, by how much the rating of each round is off; none of recorded ones.

    A single number where there is one round: what a round varies by is unknown then. A rating of 1 ÷ (1 + x ÷ reference)
    moves by r (1 − r) where the logarithm of x moves by 1.
    """
    found: dict[str, Deviations] = {}
    if table.is_recorded:
        return found
    if (speed := values["speed"]) is not None:
        off = _deviations(table, "seconds", is_trimmed=True)
        if off is not None:
            found["speed"] = _scaled([(-speed * (1 - speed), off)])
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
            found["efficiency"] = _scaled(scaled)
    return found


def _scaled(parts: Sequence[tuple[float, Floats]]) -> list[float | None]:
    """The sum of the parts, each with a weight; None where a round lacks one; one number where a part has one round."""
    if any(off.size == 1 for _, off in parts):
        return [0.0]
    rounds = min(off.size for _, off in parts)
    total = np.sum([weight * off[:rounds] for weight, off in parts], axis=0)
    return [None if np.isnan(one) else round(float(one), 9) for one in total]


def _deviations(table: CaseTable, metric: str, *, is_trimmed: bool = False) -> Floats | None:
    """On the scale of logarithms, a place a round, NaN where it has nothing; None where rounds are not the unit."""
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
    there = np.unique(rounds)
    if values.size < 2 * np.unique(cases).size:
        return np.zeros(1) if there.size < SEPARATE_BLOCKS else None
    off = np.full(int(there.max()) + 1, np.nan)
    # A mean over executions is moved by stragglers, so what they do belongs to it.
    scaled = np.log(values) if is_trimmed else values / values.mean()
    off[there] = off_by_round(scaled, cases, rounds, is_trimmed=is_trimmed)
    return off if there.size >= FEWEST_ROUNDS else np.zeros(1)
