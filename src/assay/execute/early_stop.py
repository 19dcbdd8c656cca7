"""Decides when a trial needs no more executions: it was repeated often enough, keeps failing, or broke a limit.

A worker keeps count within its job (`attempt.py`, `suite_job.py`), and the runner keeps count across the processes of a trial.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.model import Execution, Status, Until
from assay.plugin.experiment import has_trait
from assay.stats.order import median_interval

DEFAULT_SECONDS = 600.0
"""How long an execution may take where the spec sets no limit."""
FAILURES_IN_A_ROW = 3
FAILURES_OF_AN_AGENT = 10
"""An agent may fail at a few cases in a row; one that fails at this many does not work at all."""

_OF_A_LIMIT = (Status.TIMEOUT, Status.OVER_LIMIT)


@dataclass(slots=True)
class FailureLimit:
    """Counts failures in a row. A broken limit is a reason to stop at once for an experiment, which would break it again, but
    not for an agent, whose next case may be shorter."""

    allowed: int = FAILURES_IN_A_ROW
    limit_ends_it: bool = True
    failures_are_results: bool = False
    """Whether failures with an output are not counted; see ExperimentHooks."""
    failures: int = 0
    reason: str | None = None

    def see(self, execution: Execution) -> str | None:
        """Count the next execution; returns the reason to stop, once there is one."""
        if execution.status is Status.OK or (self.failures_are_results and execution.output):
            self.failures = 0
            return self.reason
        self.failures += 1
        if self.reason is None:
            if self.limit_ends_it and execution.status in _OF_A_LIMIT:
                self.reason = f"an execution hit a limit: {execution.error}"
            elif self.failures >= self.allowed:
                self.reason = (
                    f"{self.failures} executions in a row were not ok; the last one: {execution.status}"
                )
        return self.reason


def failure_limit_for(experiment: str, *, is_suite: bool = False) -> FailureLimit:
    if is_suite:
        return FailureLimit(FAILURES_OF_AN_AGENT, limit_ends_it=False)
    return FailureLimit(failures_are_results=has_trait(experiment, "failures_are_results"))


class StoppingRule:
    """Whether an experiment with `measured: auto` has been repeated often enough: called with each execution, True once it has.

    The rule: once there are `min` values, stop as soon as half the width of the 95 % confidence interval of the median is at
    most the share `interval` of the median. The interval comes from order statistics, so it assumes no distribution.

    The interval needs all values in order, so it is computed only each time the number of values has grown by a tenth:
    the cost for each execution stays constant on average.
    """

    def __init__(self, until: Until) -> None:
        self._until = until
        self._values: list[float] = []
        self._next = until.min

    def __call__(self, execution: Execution) -> bool:
        value = execution.measurements.get(self._until.metric)
        return value is not None and execution.status is Status.OK and self.is_reached(value)

    def is_reached(self, value: float) -> bool:
        """Add a value and say whether that is enough."""
        self._values.append(value)
        if len(self._values) < self._next:
            return False
        self._next = len(self._values) + max(1, len(self._values) // 10)
        return self._is_narrow()

    def _is_narrow(self) -> bool:
        ordered = sorted(self._values)
        interval = median_interval(ordered)
        if interval is None:
            return False
        middle = ordered[len(ordered) // 2]
        return (interval[1] - interval[0]) / 2 <= self._until.interval * abs(middle)
