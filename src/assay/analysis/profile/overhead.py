"""What sampling cost: executions with it against executions without it, pair by pair."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from assay.model import Execution, Phase, Status
from assay.model.profile import Overhead

LEAST_SECONDS = 0.01
"""Of CPU time in each execution; the clock is too coarse to compare less."""


def sampling_overhead(
    executions: Iterable[Execution], sampled: Sequence[int], metric: str = "seconds"
) -> Overhead | None:
    """The geometric mean of time with ÷ time without, − 1, with a 95 % interval from Student's t over the pairs.

    Each sampled execution ran right after a measured one of the same case, so a drift of the machine meets both alike. Ratios are
    compared by their logarithms, because times of a slow moment are longer by a factor.
    """
    timed: dict[Phase, dict[int, float]] = {Phase.MEASURED: {}, Phase.PROFILED: {}}
    case = None
    for execution in executions:
        if execution.status is not Status.OK or execution.phase is Phase.WARMUP:
            continue
        if execution.phase is Phase.PROFILED:
            case = execution.case if case is None else case
        if (took := execution.measurements.get(metric)) is not None and (
            case is None or execution.case == case
        ):
            timed[execution.phase].setdefault(execution.repetition, took)
    pairs = [
        math.log(timed[Phase.PROFILED][number] / timed[Phase.MEASURED][number])
        for number in sampled
        if timed[Phase.PROFILED].get(number, 0) > 0 and timed[Phase.MEASURED].get(number, 0) > 0
    ]
    if not pairs or (
        metric != "seconds" and min(map(min, (t.values() for t in timed.values()))) < LEAST_SECONDS
    ):
        return None
    mean = sum(pairs) / len(pairs)
    if len(pairs) < 2:
        return Overhead(math.expm1(mean), None, None, 1)
    from assay.stats.means import mean_half_width

    half = mean_half_width(pairs)
    return Overhead(math.expm1(mean), math.expm1(mean - half), math.expm1(mean + half), len(pairs))
