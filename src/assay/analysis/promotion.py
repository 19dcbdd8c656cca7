"""Whether a version may go on: its health from 0 to 1, and what to do with it."""

from __future__ import annotations

from collections.abc import Sequence

from assay.analysis.losses import depends_on_machine, dimension_of
from assay.model import WEIGHTS, Comparison, Verdict
from assay.model.regression import Action, Advice, Regression, Severity
from assay.units import percent

FATAL = 0.3
"""A loss that takes all of a dimension's weight."""
WELL = 0.7


def health_of(regressions: Sequence[Regression], benchmarks: int) -> float:
    """1 − Σ weight × min(1, loss ÷ 0.3); the loss of a dimension is the mean over the benchmarks of what is proved.

    Of several metrics of one dimension and benchmark the worst counts.
    """
    worst: dict[tuple[str, str], float] = {}
    for one in regressions:
        place = dimension_of(one.metric), one.benchmark
        worst[place] = max(worst.get(place, 0.0), one.loss.value)
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
    """`machine` says why its times are not to be trusted, `missing` why there is nothing to judge by; empty if neither."""
    counted = [one for one in regressions if one.counts]
    proved = [one for one in counted if not (one.is_pending or one.is_suspect)]
    health = health_of(proved, benchmarks)
    critical = [one for one in proved if one.severity is Severity.CRITICAL]
    if critical or health < WELL:
        return Advice(health, Action.ROLL_BACK, _why_back(critical, health))
    # Another run cannot undo what does not depend on the machine.
    if machine and all(depends_on_machine(one.metric) for one in proved):
        return Advice(health, Action.RERUN, machine)
    if reason := missing or _open_question(counted, comparisons):
        return Advice(health, Action.HOLD, reason)
    better = sum(one.verdict is Verdict.BETTER for one in comparisons)
    return Advice(health, Action.PROMOTE, f"Nothing got worse and {better} of {len(comparisons)} got better.")


def _why_back(critical: Sequence[Regression], health: float) -> str:
    if not critical:
        return f"The health is {health:.2f}, below {WELL}."
    one = critical[0]
    more = f", and {len(critical) - 1} more" if len(critical) > 1 else ""
    return f"'{one.metric.name}' of {one.benchmark} is worse by at least {percent(one.loss.low)}{more}."


def _open_question(counted: Sequence[Regression], comparisons: Sequence[Comparison]) -> str:
    if certain := [one for one in counted if not one.is_pending]:
        return f"{len(certain)} regression{'s' * (len(certain) != 1)}, none of them critical."
    if counted:
        return (
            f"{len(counted)} change{'s' * (len(counted) != 1)} so young that more runs have to confirm them."
        )
    unsure = sum(one.verdict is Verdict.UNSURE for one in comparisons)
    return f"{unsure} of {len(comparisons)} comparisons are unsure." if unsure else ""
