"""When a trial is not worth going on with."""

from __future__ import annotations

from dataclasses import dataclass

from assay.model import Execution, Status

DEFAULT_SECONDS = 600.0
"""How long an execution may take where no limit says so."""
FAILURES_IN_A_ROW = 3
FAILURES_OF_AN_AGENT = 10
"""An agent may fail at a few cases that follow each other; one that fails at so many is out of order."""

_OF_A_LIMIT = (Status.TIMEOUT, Status.OVER_LIMIT)


@dataclass(slots=True)
class Patience:
    """Counts failures in a row; a broken limit ends it at once, unless it is only about the case at hand."""

    allowed: int = FAILURES_IN_A_ROW
    limit_ends_it: bool = True
    failures: int = 0
    reason: str | None = None

    def see(self, execution: Execution) -> str | None:
        """Take note of the next execution; the reason to stop, once there is one."""
        if execution.status is Status.OK:
            self.failures = 0
        else:
            self.failures += 1
            self.reason = self.reason or self._verdict(execution)
        return self.reason

    def _verdict(self, execution: Execution) -> str | None:
        if self.limit_ends_it and execution.status in _OF_A_LIMIT:
            return f"a limit was broken: {execution.error}"
        if self.failures >= self.allowed:
            return f"{self.failures} executions in a row were not ok, the last {execution.status}"
        return None


def patience_for(*, is_suite: bool) -> Patience:
    return Patience(FAILURES_OF_AN_AGENT, limit_ends_it=False) if is_suite else Patience()
