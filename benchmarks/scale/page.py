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

PostgreSQL with 500 agents, 100 suites and ten million executions, `assay db copy`, and executors of clusters. [What limits a larger cluster](scaling.md) is
computed from these figures.
"""
READING = """\
## How size is measured

- **Writers**: batches of 500 executions with one metric each, as runs of code experiments store them, through the store into PostgreSQL as it is
  installed; several writers are processes of their own. Server and writers share the machine, so four of them either store twice as much as one, or use at least 95 %
  of the CPU time that other programs and waiting for the disk leave, which is what then limits them: both are measured, the CPU time of every process of PostgreSQL included.
  The remark says how many cores that was; on a busy machine the second says little.
- **Copies**: the whole command, its verification included, by the wall clock. Executions with one metric are held to 50,000 a second. Those of a suite, with 8
  metrics and an output, are nine rows each: `assay db copy` copies fewer than 50,000 of them a second, and so does the bare driver, which only stores rows that it
  has in memory, in one transaction. Its rate is the ceiling, and they are held to a share of it.
- **Ten million**: every agent on every suite in five versions, and the daily runs and the long suite of the server's benchmark. The five versions are one set of
  runs that PostgreSQL itself multiplies. For the figures stored here, 40 agents were stored and SQL multiplied them to 500 as well, so about 12 tie on each suite; 2,900 of 503,576 trials were rated again since. The requests are those of the server's benchmark.
- **Ray**: simulated nodes are real processes of Ray on this machine. A case costs what one more of ten thousand takes, on both executors in turn; the
  efficiency is the ideal time, 2,000 s ÷ 64, over that of the whole run, process starts included and the start of the cluster not. The agent asks 16 cases at a time (`concurrency: 16`).
  No schedule takes less than 32 s, as the last 16 cases are a round of their own, so 0.977 is the most that anybody could reach. The run loses the rest before its first case: four nodes
  start their actors and workers on the two cores of one machine.
"""
REPRODUCE = """\
## Reproduce the figures at size

    make bench-scale                                              # everything, over an hour and 25 GB of disk; exit code 1 when a promise is missed
    PYTHONPATH=benchmarks python -m scale.run --only postgres     # one part
    PYTHONPATH=benchmarks python -m scale.run --quick             # smaller sizes; stores nothing
"""
