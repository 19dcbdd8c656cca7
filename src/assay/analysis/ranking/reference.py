"""Defines the quantities behind speed, cost and efficiency, and the references that ratings of them are relative to.

A reference is the value that is rated 0.5. It comes from the rubric, from a stored run or from half the limit; which one
was used is part of a rating's yardstick.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np

from assay.analysis.estimates.case_results import CaseTotals, tally_of
from assay.analysis.ranking.case_ratings import EFFICIENCY
from assay.model import Limits, Rubric
from assay.model.rating import QUANTITIES, CaseTable, Reference, ReferenceValue

_EFFICIENCY = {name: (metric, scale) for name, metric, scale in EFFICIENCY}


def quantity(tally: CaseTotals, name: str) -> float | None:
    """One of QUANTITIES as ratings use it; None where it is unknown, infinite where nothing was solved.

    Seconds are the median over cases, usd and tokens are per solved case, and CPU seconds and memory (MiB) are the mean of an
    execution.
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
    """The median over agents of each quantity; `tables` has one table for each agent.

    Agents without an ok execution are left out, and so are agents that solved nothing, for quantities per solved case, and
    agents that used nothing: nothing can be rated relative to zero.
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
    """The reference of each quantity: from the rubric, else from the stored run, else half the limit; absent without any."""
    halves = {
        "seconds": limits.seconds and limits.seconds / 2,
        "tokens": limits.tokens and limits.tokens / 2,
        "usd": limits.usd and limits.usd / 2,
        "memory_mb": limits.memory_bytes and limits.memory_bytes / 2**21,
    }
    # The user's word first. A stored run is better than a limit, which is a ceiling and not what is typical; half of it is
    # used so that an agent at its limit is rated 0.33 and not 0.5.
    found: dict[str, ReferenceValue] = {}
    for name in QUANTITIES:
        run = (kept or {}).get(name)
        if own := rubric.reference.get(name):
            found[name] = ReferenceValue(float(own), "rubric")
        elif run is not None:
            found[name] = ReferenceValue(run.value, "run", run.run_id, run.ended, run.origin.value)
        elif half := halves.get(name):
            found[name] = ReferenceValue(float(half), "limit")
    return found
