"""Made-up learning curves, for trying out reports in a moment: seed 000's formula. Whatever comes of them is marked simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

CURVES = {
    "grpo": (0.43, 0.42, 300.0, 0.06),
    "gspo": (0.45, 0.42, 250.0, 0.04),
    "ppo": (0.40, 0.42, 350.0, 0.08),
    "dpo": (0.55, 0.25, 450.0, 0.03),
}
"""Base, amplitude, time constant and noise of base + amplitude · (1 − exp(−episode ÷ constant)) + N(0, noise)."""


class StubTrainer:
    """Trains nothing."""

    def __init__(self, algorithm: str, seed: int) -> None:
        self._algorithm = algorithm if algorithm in CURVES else "grpo"
        self._curve = CURVES[self._algorithm]
        self._chance = np.random.default_rng(seed)
        self.untrained_reward = self._curve[0]

    @property
    def settings(self) -> Mapping[str, str]:
        """Return the settings, without a task, because the curves are the same for all tasks."""
        return {"algorithm": self._algorithm, "backend": "stub"}

    def train(self, episodes: int, record: Callable[[float], None]) -> None:
        base, amplitude, constant, noise = self._curve
        for episode in range(episodes):
            mean = base + amplitude * (1 - float(np.exp(-episode / constant)))
            record(mean + self._chance.normal(0.0, noise))

    def show_samples(self) -> list[list[str]]:
        return []
