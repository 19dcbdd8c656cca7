"""After a scenario of a stress test: work that it left behind is waited for, and not held against the next."""

from __future__ import annotations

import time
from dataclasses import replace

from assay.analysis.stress import longest_in_calm
from assay.execute.stress.bench import Interrupted, StressBench
from assay.model.load import Arrivals, Load
from assay.model.stress import ScenarioFinding

_REQUESTS = 3
_PAUSE = 0.2


def settled(found: ScenarioFinding, bench: StressBench, patience: float) -> ScenarioFinding:
    """With how long recovery really took, where the scenario itself did not see the end of it.

    A server that works off a queue for longer than was watched is late, not dead.
    """
    if found.is_recovered or found.recovery is None:
        return found
    try:
        took = settle(bench, patience)
    except Interrupted:
        return found
    if took is None:
        return found
    return replace(found, recovery=found.recovery + took, is_recovered=True, is_dead=False)


def settle(bench: StressBench, patience: float) -> float | None:
    """Seconds until single requests took no longer than in calm; None where they still did after `patience`."""
    limit, began = longest_in_calm(bench.calm), time.monotonic()
    while (left := began + patience - time.monotonic()) > 0:
        # One at a time adds next to nothing to a queue, and the first is answered when the queue is empty.
        load = Load(Arrivals.CLOSED, concurrency=1, count=_REQUESTS, seconds=left)
        latencies = sorted(bench.put(load, objectives=(), limit=left).latencies)
        if latencies and latencies[len(latencies) // 2] <= limit:
            return time.monotonic() - began
        time.sleep(min(_PAUSE, left))
    return None


def aftermath_of(before: ScenarioFinding | None) -> tuple[str, ...]:
    """A warning where a scenario has to begin although the agent has not recovered from the one before."""
    if before is None or before.is_recovered:
        return ()
    return (
        f"It had not recovered from {before.scenario} when this began: what is found here may come from that. "
        "Run this scenario alone to tell.",
    )
