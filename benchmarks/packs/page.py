"""What the packs promise and keep, as a part of docs/benchmarks.md: its words; `page` puts them together."""

from __future__ import annotations

import record

RESULTS = record.RESULTS / "packs"
ORDER = ("world-speed", "world-growth", "observations", "components-stub", "specs-simulation")
OPENING = """\
# Experiments that ship

The [simulated world](simulation.md), and the specs that ship with Assay at full size.
"""
READING = """\
## How the packs are measured

- **World**: ten steps of 10,000 agents, ten of 40,000 and fifty rounds of observations take turns in one process, twelve times. Agents occupy a tenth of the cells,
  there are two resources per agent, and nothing is logged.
- **Observations**: dense, all thirteen channels of all agents. The world moves on between two rounds, and only observing is timed.
- **Agent components with the stub agent**: the whole command once, as a user runs it.
- **Specs**: each in its own folder, as `assay run NAME` runs it.
"""
REPRODUCE = """\
## Reproduce the figures of the packs

    make bench-packs                                            # everything, several minutes; exit code 1 if a target is missed
    PYTHONPATH=benchmarks python -m packs.run --only world      # one part: world, indexes, components, specs
    PYTHONPATH=benchmarks python -m packs.run --quick           # a trial with fewer rounds and smaller runs; stores nothing
"""
