"""Recorded agents through the command line: their times are those of the answers file, whatever a look-up takes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from stats.clocks import CASES, Project, Tally

NAMES = ("name-a", "name-b")
FACTOR = 0.7
"""What the faster of two agents takes of the other's time."""


class RecordedProject(Project):
    """Two agents whose answers, with their seconds, were recorded earlier."""

    def _suite(self, is_simulated: bool) -> dict[str, Any]:
        suite = super()._suite(is_simulated)
        agents = [{"name": name, "type": "recorded", "answers": f"{name}.jsonl"} for name in self.names]
        return {**suite, "agents": agents}

    def record(self, chance: np.random.Generator, factor: float) -> None:
        """Answers of about a second; those of the second agent take `factor` times as long."""
        level = chance.lognormal(0.0, 0.5, CASES)
        for name, slower in zip(self.names, (1.0, factor), strict=True):
            seconds = slower * level * chance.lognormal(0.0, 0.1, CASES)
            lines = [
                json.dumps({"id": f"q{n}", "output": f"q{n}", "seconds": float(took)})
                for n, took in enumerate(seconds)
            ]
            (self.folder / f"{name}.jsonl").write_text("\n".join(lines))


def count(factor: float, times: int) -> Tally:
    """Comparisons that claim something of two agents with the same answers, by their recorded seconds."""
    tally, chance = Tally(), np.random.default_rng(12)
    with tempfile.TemporaryDirectory() as place:
        project = RecordedProject(Path(place), NAMES)
        for number in range(times):
            project.forget()
            project.record(chance, factor)
            project.run(1, number)
            tally.add(project.compare_claim(*NAMES))
    return tally
