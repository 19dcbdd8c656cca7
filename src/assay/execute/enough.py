"""When `measured: auto` has seen enough."""

from __future__ import annotations

from assay.model import Execution, Status, Until
from assay.stats.order import median_interval


class Enough:
    """Takes in executions; looks after every tenth more of them, so that looking stays cheap."""

    def __init__(self, until: Until) -> None:
        self._until = until
        self._values: list[float] = []
        self._next = until.min

    def __call__(self, execution: Execution) -> bool:
        value = execution.measurements.get(self._until.metric)
        return value is not None and execution.status is Status.OK and self.is_reached(value)

    def is_reached(self, value: float) -> bool:
        """With one more value."""
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
