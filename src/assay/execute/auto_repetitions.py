"""When an experiment with `measured: auto` has been repeated often enough.

The rule: once there are `min` values, stop as soon as half the width of the 95 % confidence interval of the median is at
most the share `interval` of the median. The interval comes from order statistics, so it assumes no distribution.
"""

from __future__ import annotations

from assay.model import Execution, Status, Until
from assay.stats.order import median_interval


class Enough:
    """Called with each execution; True once enough of them were seen.

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
