"""Decides whether a version may be promoted.

`advise` computes the health of a version, from 0 to 1, and recommends one of four actions: roll back, run again, hold or
promote. It looks only at regressions that are proved, so that noise alone never rolls a version back.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.analysis.comparison.severity import depends_on_machine, dimension_of
from assay.model import WEIGHTS, Comparison, Verdict
from assay.model.regression import Action, Advice, Regression, Severity
from assay.units import format_count, percent

FATAL = 0.3
"""A loss of 30 % takes all of a dimension's weight."""
WELL = 0.7
"""Below this health a version is rolled back even if no single regression is critical."""


def health_of(regressions: Sequence[Regression], benchmarks: int) -> float:
    """1 − Σ weight × min(1, loss ÷ 0.3) over the five dimensions, with the weights of the overall rating.

    The loss of a dimension is the mean over all benchmarks, where a benchmark without a proved regression counts as 0.
    If several metrics of one dimension got worse on a benchmark, the worst of them counts.
    """
    worst: dict[tuple[str, str], float] = {}
    for regression in regressions:
        place = dimension_of(regression.metric), regression.benchmark
        worst[place] = max(worst.get(place, 0.0), regression.loss.value)
    sums = dict.fromkeys(WEIGHTS, 0.0)
    for (dimension, _), loss in worst.items():
        sums[dimension] += loss
    return 1 - sum(
        weight * min(1.0, sums[name] / max(1, benchmarks) / FATAL) for name, weight in WEIGHTS.items()
    )


def advise(
    regressions: Sequence[Regression],
    comparisons: Sequence[Comparison],
    *,
    benchmarks: int,
    machine: str = "",
    missing: str = "",
) -> Advice:
    """The health of a version and what to do with it; the first rule that applies wins.

    `machine` says why times of this machine cannot be trusted and `missing` why there is nothing to judge by; both are empty
    if all is well.
    """
    counted = [regression for regression in regressions if regression.counts]
    proved = [regression for regression in counted if not (regression.is_pending or regression.is_suspect)]
    health = health_of(proved, benchmarks)
    critical = [regression for regression in proved if regression.severity is Severity.CRITICAL]
    if critical:
        worst = critical[0]
        more = f", and {len(critical) - 1} more" if len(critical) > 1 else ""
        loss = f"'{worst.metric.name}' of {worst.benchmark} is worse by at least {percent(worst.loss.low)}{more}."
        return Advice(health, Action.ROLL_BACK, loss)
    if health < WELL:
        return Advice(health, Action.ROLL_BACK, f"The health is {health:.2f}, below {WELL}.")
    # Another run cannot undo what does not depend on the machine.
    if machine and all(depends_on_machine(regression.metric) for regression in proved):
        return Advice(health, Action.RERUN, machine)
    if reason := missing or _open_question(counted, comparisons):
        return Advice(health, Action.HOLD, reason)
    better = sum(comparison.verdict is Verdict.BETTER for comparison in comparisons)
    return Advice(health, Action.PROMOTE, f"Nothing got worse and {better} of {len(comparisons)} got better.")


def _open_question(counted: Sequence[Regression], comparisons: Sequence[Comparison]) -> str:
    """Why a version is neither rolled back nor promoted; empty if nothing is open."""
    if certain := [regression for regression in counted if not regression.is_pending]:
        return f"{format_count(len(certain), 'regression')}, none of them critical."
    if counted:
        pronoun = "it" if len(counted) == 1 else "them"
        return f"{format_count(len(counted), 'change')} so recent that more runs have to confirm {pronoun}."
    unsure = sum(comparison.verdict is Verdict.UNSURE for comparison in comparisons)
    return f"{unsure} of {len(comparisons)} comparisons are unsure." if unsure else ""
