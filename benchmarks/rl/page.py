"""What the training of small policies promises and keeps, as a part of docs/benchmarks.md."""

from __future__ import annotations

import record

RESULTS = record.RESULTS / "rl"
ORDER = ("rl-comparison-seconds", "rl-samples-times")
OPENING = """\
# Reinforcement learning

`assay run algorithm_comparison` trains policies in NumPy. It must be fast enough to train ten seeds without a long wait, and it is compared
with TRL on the same task with a model of the same size.
"""
READING = """\
## How it is measured

- **Comparison**: the whole command on one core, from its start to its report: four algorithms, three seeds each, 300 episodes of eight answers.
- **Samples**: answers per second of GRPO on arithmetic, 50 episodes of eight, from the first episode to the last. Assay and TRL take
  turns in one environment, on one core, with one thread; both use a group for four gradient steps.
"""
REPRODUCE = """\
## Reproduce

    make bench-rl                                             # installs torch and TRL (1.5 GB) in .venv-rl first
"""
