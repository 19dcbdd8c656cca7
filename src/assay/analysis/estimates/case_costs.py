"""What a trial cost, case by case and in all: computed when the trial is rated, and stored with its ratings.

`assay cost` reads these few numbers instead of a million executions. The unit is the case: its repetitions are averaged first.
"""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

from assay.analysis.estimates.case_results import (
    NOT_COUNTED,
    OK,
    CaseTotals,
    case_index,
    column_of,
    has_status,
)
from assay.model.rating import BILLED, CaseTable, TrialUsage

Floats = NDArray[np.float64]


def case_figures_of(table: CaseTable, tally: CaseTotals) -> dict[str, array[float]]:
    """The figures of `CASE_FIGURES` as 32-bit floats, NaN where unknown; without those that are unknown in every case.

    The cost of a case is unknown where an ok repetition of it has none. Repetitions that failed without telling their cost are
    left out of its mean, and `TrialUsage.unpriced` counts them.
    """
    counts = ~has_status(table, NOT_COUNTED)
    _, index = case_index([case for case, counted in zip(table.cases, counts, strict=True) if counted])
    usd = column_of(table, "usd")[counts]
    known = ~np.isnan(usd)

    def per_case(values: NDArray[np.generic]) -> Floats:
        summed = np.bincount(index, weights=values.astype(np.float64), minlength=len(tally.names))
        return summed.astype(np.float64)

    total = per_case(np.where(known, usd, 0.0))
    lacking = per_case(has_status(table, OK)[counts] & ~known)
    is_judged = (tally.scored > 0) & tally.is_judged
    figures = {
        "usd": _divide(np.where(lacking > 0, np.nan, total), per_case(known)),
        "score": _divide(tally.score, np.where(is_judged, tally.scored, 0.0)),
        "solved": _divide(tally.passed, np.where(is_judged, tally.scored, 0.0)),
    }
    return {
        # A figure beyond the range of 32 bits is stored as the largest that they hold, as nothing is left to tell apart there.
        name: array("f", np.minimum(values, np.finfo(np.float32).max).astype(np.float32).tobytes())
        for name, values in figures.items()
        if not np.isnan(values).all()
    }


def _divide(above: Floats, below: Floats) -> Floats:
    """Divide; NaN where the denominator is 0."""
    return np.where(below > 0, above / np.where(below > 0, below, 1.0), np.nan)


def usage_of(table: CaseTable) -> TrialUsage:
    """The sums over all executions that count."""
    counts = ~has_status(table, NOT_COUNTED)
    is_ok = has_status(table, OK)[counts]
    usd = column_of(table, "usd")[counts]
    totals = {}
    for name in BILLED:
        values = column_of(table, name)[counts]
        if is_ok.any() and not np.isnan(values[is_ok]).any():
            totals[name] = float(np.nansum(values))
    return TrialUsage(
        executions=int(counts.sum()),
        unpriced=int(np.isnan(usd).sum()),
        usd=float(np.nansum(usd)),
        failed_usd=float(np.nansum(usd[~is_ok])),
        totals=totals,
    )
