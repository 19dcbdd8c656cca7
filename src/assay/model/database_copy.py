"""The progress and the result of `assay db copy`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class CopyProgress:
    """How far a copy has come, and in the end what was copied."""

    trials: int = 0
    executions: int = 0
    of_executions: int = 0
    found: int = 0
    """Executions that an earlier, interrupted copy had brought."""
    rows: Mapping[str, int] = field(default_factory=dict)
    """Number of rows of each table, on both sides, once everything is compared."""
    later_runs: Sequence[str] = ()
    """Runs that were started, or continued, in the source since the copy began; what they stored since is not in it."""
