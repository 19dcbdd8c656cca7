"""The quantities behind speed, cost and efficiency, and what ratings of them are relative to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from assay.analysis.marks import EFFICIENCY
from assay.analysis.tally import CaseTotals, tally_of
from assay.model import Limits, Rubric
from assay.model.rating import QUANTITIES, CaseTable, Reference, ReferenceValue

_EFFICIENCY = {name: (metric, scale) for name, metric, scale in EFFICIENCY}


def quantity(tally: CaseTotals, name: str) -> float | None:
    """One of QUANTITIES as ratings use it; None where it is unknown, infinite where nothing was solved.

    Seconds: the median over cases. Usd and tokens: per solved case. CPU seconds and memory: the mean of an execution.
    """
    if name == "seconds":
        seconds = tally.seconds[~np.isnan(tally.seconds)]
        return float(np.median(seconds)) if len(seconds) else None
    metric, scale = _EFFICIENCY.get(name, (name, 1.0))
    if metric not in tally.sums:
        return None
    total = float(tally.sums[metric].sum()) / scale
    per = tally.passed if name in ("usd", "tokens") else tally.measured[metric]
    if total == 0:
        return 0.0
    return total / float(per.sum()) if per.any() else math.inf


def typical_quantities(tables: Sequence[CaseTable], pass_mark: float) -> dict[str, float]:
    """The median over agents of each quantity, one table an agent.

    Left out are agents of which no execution was ok, agents that solved nothing in what counts per solved case, and
    agents that used nothing up: there is no ratio to zero.
    """
    tallies = [tally_of(table, pass_mark) for table in tables]
    found: dict[str, float] = {}
    for name in QUANTITIES:
        values = [value for tally in tallies if tally.completed.any() and (value := quantity(tally, name))]
        if known := [value for value in values if math.isfinite(value)]:
            found[name] = median(known)
    return found


def references_of(
    rubric: Rubric, limits: Limits, kept: Mapping[str, Reference] | None = None
) -> dict[str, ReferenceValue]:
    """From the rubric, else from the run that is kept as the reference, else half the limit."""
    halves = {
        "seconds": limits.seconds and limits.seconds / 2,
        "tokens": limits.tokens and limits.tokens / 2,
        "usd": limits.usd and limits.usd / 2,
        "memory_mb": limits.memory_bytes and limits.memory_bytes / 2**21,
    }
    found: dict[str, ReferenceValue] = {}
    for name in QUANTITIES:
        run = (kept or {}).get(name)
        if given := rubric.reference.get(name):
            found[name] = ReferenceValue(float(given), "rubric")
        elif run is not None:
            found[name] = ReferenceValue(run.value, "run", run.run_id, run.ended, run.origin.value)
        elif half := halves.get(name):
            found[name] = ReferenceValue(float(half), "limit")
    return found
