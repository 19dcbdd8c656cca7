"""What each case contributes to a trial's ratings: the evidence by which agents are told apart, case by case.

A rating that is a mean over cases has their values as its marks. A rating of the form Σ above ÷ Σ below has the linear part
of what a case moves it by (the delta method): the mean of the marks is the rating, and they spread as the rating does from
one draw of cases to the next. `comparison/pairing.py` compares the marks of two agents case by case.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from assay.analysis.estimates.case_results import CaseTotals

Floats = NDArray[np.float64]

EFFICIENCY = (
    ("tokens", "tokens", 1.0),
    ("cpu_seconds", "cpu_seconds", 1.0),
    ("memory_mb", "rss_max_bytes", 2**20),
)
"""Quantities of efficiency: name, the metric behind it, and what its values are divided by (bytes become MiB)."""


def marks_of(tally: CaseTotals, reference: Mapping[str, float]) -> dict[str, Floats]:
    """Dimension to marks, for the dimensions that can be rated by these references."""
    judged = (tally.scored > 0).astype(np.float64)
    mean_scores = tally.score / np.maximum(tally.scored, 1) * judged
    found = {
        "accuracy": _of_ratio(mean_scores, judged) if judged.any() else None,
        "speed": _speed(tally, reference.get("seconds")),
        "efficiency": _efficiency(tally, reference),
        "cost": _cost(tally, reference.get("usd")),
        "reliability": _reliability(tally) if len(tally.names) else None,
    }
    return {name: marks for name, marks in found.items() if marks is not None}


def _of_ratio(above: Floats, below: Floats) -> Floats:
    """Marks of Σ above ÷ Σ below by the delta method; all 0 where Σ below is 0."""
    whole = float(below.sum())
    if not whole:
        return np.zeros(len(above))
    ratio = float(above.sum()) / whole
    return ratio + (above - ratio * below) / whole * len(above)


def _speed(tally: CaseTotals, reference: float | None) -> Floats | None:
    """The rating that each case alone would get, so that cases that are slow for everybody cancel out between agents.

    Cases without a time get the mean of the others: they say nothing for or against the agent.
    """
    known = ~np.isnan(tally.mean_seconds)
    if reference is None or not known.any():
        return None
    rated = reference / (reference + np.where(known, tally.mean_seconds, 0.0))
    return np.where(known, rated, rated[known].mean())


def _of_quantity(reference: float, used: Floats, per: Floats) -> Floats:
    """Marks of the rating 1 ÷ (1 + x ÷ reference), where x is Σ used ÷ Σ per."""
    return _of_ratio(reference * per, reference * per + used)


def _cost(tally: CaseTotals, reference: float | None) -> Floats | None:
    """Marks of cost per solved case; all 1 for a free agent."""
    usd = tally.sums.get("usd")
    if usd is None:
        return None
    if not usd.any():
        return np.ones(len(tally.names))
    return None if reference is None else _of_quantity(reference, usd, tally.passed)


def _efficiency(tally: CaseTotals, reference: Mapping[str, float]) -> Floats | None:
    """Marks of the geometric mean over tokens, CPU seconds and memory, as far as each has a reference."""
    parts = []
    for name, metric, scale in EFFICIENCY:
        if name in reference and metric in tally.sums and tally.sums[metric].any():
            per = tally.passed if name == "tokens" else tally.measured[metric]
            parts.append(_of_quantity(reference[name], tally.sums[metric] / scale, per))
    return _geometric(parts) if parts else None


def _geometric(parts: list[Floats]) -> Floats:
    """Marks of the geometric mean of several ratings, linear in what each case moves each of them by."""
    means = [float(part.mean()) for part in parts]
    if min(means) <= 0:
        return np.zeros(len(parts[0]))
    value = math.prod(means) ** (1 / len(means))
    moved = [part / mean - 1 for part, mean in zip(parts, means, strict=True)]
    return np.asarray(value * (1 + np.mean(moved, axis=0)))


def _reliability(tally: CaseTotals) -> Floats:
    """Marks of completion × consistency by the product rule; of completion alone where no case was repeated."""
    completed = _of_ratio(tally.completed, tally.executions)
    if not tally.comparable.any():
        return completed
    consistencies = _of_ratio(tally.alike, tally.comparable)
    completion, consistency = float(completed.mean()), float(consistencies.mean())
    return np.asarray(completed * consistency + consistencies * completion - completion * consistency)
