"""When a trial is not worth continuing: it fails again and again, or it broke a limit.

A worker keeps count within its job (`attempt.py`, `suite_job.py`), and the runner keeps count across the processes of a trial.
"""

from __future__ import annotations

from dataclasses import dataclass

from assay.model import Execution, Status

DEFAULT_SECONDS = 600.0
"""How long an execution may take where the spec sets no limit."""
FAILURES_IN_A_ROW = 3
FAILURES_OF_AN_AGENT = 10
"""An agent may fail at a few cases in a row; one that fails at so many does not work at all."""

_OF_A_LIMIT = (Status.TIMEOUT, Status.OVER_LIMIT)


@dataclass(slots=True)
class Patience:
    """Counts failures in a row. A broken limit is a reason to stop at once for an experiment, which would break it again, but
    not for an agent, whose next case may be shorter."""

    allowed: int = FAILURES_IN_A_ROW
    limit_ends_it: bool = True
    failures: int = 0
    reason: str | None = None

    def see(self, execution: Execution) -> str | None:
        """Count the next execution; returns the reason to stop, once there is one."""
        if execution.status is Status.OK:
            self.failures = 0
            return self.reason
        self.failures += 1
        if self.reason is None:
            if self.limit_ends_it and execution.status in _OF_A_LIMIT:
                self.reason = f"a limit was broken: {execution.error}"
            elif self.failures >= self.allowed:
                self.reason = f"{self.failures} executions in a row were not ok, the last {execution.status}"
        return self.reason


def patience_for(*, is_suite: bool) -> Patience:
    return Patience(FAILURES_OF_AN_AGENT, limit_ends_it=False) if is_suite else Patience()
