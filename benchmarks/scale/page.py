"""What Assay promises and keeps at size, as a part of docs/benchmarks.md: its words; `page` puts them together."""

from __future__ import annotations

import record

RESULTS = record.RESULTS / "scale"
ORDER = (
    "writer",
    "writers",
    "copy-timings-to-postgresql",
    "copy-timings-to-sqlite",
    "copy-suite-to-postgresql",
    "copy-suite-to-sqlite",
    "driver-cost",
    "driver-prediction",
    "board-ten-million",
    "lists-ten-million",
    "pruning-ten-million",
    "memory-ten-million",
    "ray-cost",
    "ray-compute",
    "ray-slots",
)
OPENING = """\
# Many machines

PostgreSQL with 500 agents, 100 suites and ten million executions, `assay db copy`, and cluster executors. [What limits a larger cluster](scaling.md) is
computed from these figures.
"""
READING = """\
## How size is measured

- **Writers**: batches of 500 executions with one metric each, as runs of code experiments store them, go through the store into PostgreSQL with its default
  settings; each of several writers is a process. Server and writers share the machine. Four writers must either store twice as much as one or use at least 95 %
  of the CPU time that other programs and waiting for the disk leave, which then is the limit. Both are measured; the CPU time includes every process of PostgreSQL.
  The remark says how many cores were left; on a busy machine the share says little.
- **Copies**: wall time of the whole command, including its verification. The target for executions with one metric is 50,000 a second. Executions of a suite, with 8
  metrics and an output, are nine rows each: `assay db copy` copies fewer than 50,000 of them a second, and so does the bare driver, which only stores rows
  from memory in one transaction. The target for them is a share of the driver's rate.
- **Ten million**: every agent on every suite in five versions, with the daily runs and the long suite of the server's benchmark. PostgreSQL itself multiplies one set
  of runs into the five versions. For the figures stored here, 40 agents were stored and SQL multiplied them to 500 as well, so about 12 agents tie on each suite; 2,900 of
  503,576 trials were rated again since. The requests are those of the server's benchmark.
- **Ray**: the simulated nodes are real Ray processes on this machine. The cost of a case is what one more of ten thousand cases takes, measured on both executors in turn.
  Efficiency is the ideal time, 2,000 s ÷ 64, divided by the time of the whole run, including process starts but not the start of the cluster. The agent handles 16 cases at
  a time (`concurrency: 16`). No schedule takes less than 32 s, because the last 16 cases are a round of their own, so 0.977 is the highest possible efficiency. The rest is lost before the
  first case: four nodes start their actors and workers on the two cores of one machine.
"""
REPRODUCE = """\
## Reproduce the figures at size

    make bench-scale                                              # everything, over an hour and 25 GB of disk; exit code 1 if a target is missed
    PYTHONPATH=benchmarks python -m scale.run --only postgres     # one part
    PYTHONPATH=benchmarks python -m scale.run --quick             # smaller sizes; stores nothing
"""
