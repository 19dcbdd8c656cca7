"""What the server promises and keeps, as a part of docs/benchmarks.md: its words; `page` puts them together."""

from __future__ import annotations

import record

RESULTS = record.RESULTS / "server"
ORDER = tuple(
    f"{name}-{kind}"
    for kind in ("sqlite", "postgresql")
    for name in ("board", "rate", "lists", "memory", "paint", "weight")
)
OPENING = """\
# Server

`assay serve` with 200 agents, 50 suites, 477 runs and 1,000,000 executions. Server and load generator have one core each.
"""
READING = """\
## How the server is measured

- **Data**: every agent on every suite, twenty agents on ten suites every day for three weeks, and one suite with 500 cases per benchmark and five
  repetitions (`benchmarks/server/fill.py`). Versions get worse now and then, 2 % of the executions fail, and there are baselines.
- **Requests**: `benchmarks/server/pages.py` lists them. Each is sent once, and then 40 times, one after the other; the P95 of these 40 is judged. If the
  first one, before the server had anything in memory, took longer, its time is in the remarks.
- **Rate**: `assay load` with eight requests at a time for ten seconds, with `Accept-Encoding: gzip` as HTTP libraries send it, three times. The CPU time of
  the server gives the rate of a core that nobody else uses.
- **Leaderboards and costs** of many agents are computed by separate processes on the core of the server; measured is how fast they are served.
  Until they are ready, pages say that they are being computed, or show the previous figures with their age. The remarks say how long that took.
"""
REPRODUCE = """\
## Reproduce the server's figures

    make bench-server                                              # everything, half an hour; exit code 1 if a target is missed
    PYTHONPATH=benchmarks python -m server.run --quick             # a trial with a small database; stores nothing
    PYTHONPATH=benchmarks python -m server.fill sqlite:///large.db # only the data, for --db
"""
