"""An empty function in Assay's loop, with what the clock takes off put on again."""

from __future__ import annotations

import json
import statistics

from functions import empty

from assay.execute.clock import loop_cost_ns, time_call, timer_cost_ns

LOOPS = 20_000

taken_off = (timer_cost_ns() + (LOOPS - 1) * loop_cost_ns()) / LOOPS * 1e-9
times = [time_call(empty, LOOPS).seconds for _ in range(100)]
print(json.dumps({"empty": statistics.median(times) + taken_off}))
