"""Lets the agent recover between two scenarios of a stress test.

A scenario may leave a queue that the agent still works off. Without a pause the next scenario would be blamed for it. So the
stress test sends single requests until they are as fast as at the base rate, and counts this time as recovery of the
scenario before.
"""

from __future__ import annotations

import time
from dataclasses import replace

from assay.load.stress.bench import Interrupted, StressBench
from assay.model.load import Arrivals, Load
from assay.model.stress import ScenarioFinding
from assay.plugin.scenario_baseline import longest_in_calm

_REQUESTS = 3
"""Requests of one probe; the median of their latencies is compared, so that one slow answer does not count."""
_PAUSE = 0.2
"""Seconds between two probes."""


def measure_recovery(found: ScenarioFinding, bench: StressBench, timeout: float) -> ScenarioFinding:
    """The finding with the full time of recovery, if the scenario ended before the agent had recovered.

    A server that works off its queue for longer than the scenario lasted is late, not dead.
    """
    # A scenario that recovered, or that had nothing to recover from, needs no further requests.
    if found.is_recovered or found.recovery is None:
        return found
    try:
        settle_seconds = settle(bench, timeout)
    except Interrupted:
        return found
    if settle_seconds is None:
        return found
    return replace(found, recovery=found.recovery + settle_seconds, is_recovered=True, is_dead=False)


def settle(bench: StressBench, timeout: float) -> float | None:
    """Seconds until single requests are as fast as at the base rate, or None if they are not within `timeout` seconds."""
    # The same limit by which scenarios decide that the agent is calm again, so that both mean the same by "recovered".
    limit, began = longest_in_calm(bench.calm), time.monotonic()
    while (left := began + timeout - time.monotonic()) > 0:
        # One at a time adds next to nothing to a queue, and the first is answered when the queue is empty.
        load = Load(Arrivals.CLOSED, concurrency=1, count=_REQUESTS, seconds=left)
        latencies = sorted(bench.put(load, objectives=(), limit=left).latencies)
        if latencies and latencies[len(latencies) // 2] <= limit:
            return time.monotonic() - began
        time.sleep(min(_PAUSE, left))
    return None


def warn_if_not_recovered(before: ScenarioFinding | None) -> tuple[str, ...]:
    """A warning for a scenario that begins although the agent has not recovered from the one before."""
    if before is None or before.is_recovered:
        return ()
    return (
        f"The agent had not recovered from {before.scenario} when this scenario began, which may have affected its results. "
        "Run this scenario alone to be sure.",
    )
