"""What every backend gives and what becomes of it: rewards episode by episode, and the figures of one training."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any, Protocol

from assay.stats.learning_curve import compute_stability, find_first_reaching

FINAL_EPISODES = 50
"""The final reward is the mean of this many last episodes."""
_FIRST_PROGRESS, _PROGRESS_STEPS = 10, 25


class DivergenceError(ArithmeticError):
    """A reward, a loss or the policy is not a finite number any more: this training has no result."""


class Trainer(Protocol):
    """One policy in training."""

    untrained_reward: float
    """Mean reward of the policy before its first episode, sampled apart from the training."""

    @property
    def settings(self) -> Mapping[str, str]:
        """`algorithm`, `backend` and `task` as the objects in use name themselves, to be compared with what was asked.

        Without those that nothing in use can tell, or not yet; `backend` is always there.
        """
        ...

    def train(self, episodes: int, record: Callable[[float], None]) -> None:
        """Train, and record the mean reward of each episode's group once it is known; what `record` raises ends it."""
        ...

    def show_samples(self) -> list[list[str]]:
        """What the policy answers now, one exchange for each of a few prompts, in lines for people."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingBudget:
    """How long a policy is trained, and what counts as learnt."""

    episodes: int
    group_size: int
    threshold: float
    """The threshold as a share of the highest reward, which is 1."""
    window: int
    """Episodes whose mean is compared with the threshold."""


@dataclass(slots=True)
class Training:
    """The outcome of a training: its rewards until it ended, successfully or not."""

    budget: TrainingBudget
    untrained_reward: float
    rewards: list[float] = field(default_factory=list)
    fault: str = ""
    """Why it diverged; empty where it did not."""
    samples: list[list[str]] = field(default_factory=list)

    def compute_figures(self) -> dict[str, float]:
        """The figures of seed 000, with true meanings; none of those of a whole training where it diverged."""
        found = {"untrained_reward": self.untrained_reward, "episodes_made": float(len(self.rewards))}
        if self.fault:
            return {**found, "diverged": 1.0}
        final = fmean(self.rewards[-FINAL_EPISODES:])
        samples = len(self.rewards) * self.budget.group_size
        reached = self.find_convergence()
        found |= {
            "diverged": 0.0,
            "final_reward": final,
            "mean_reward": fmean(self.rewards),
            "std_reward": pstdev(self.rewards),
            "convergence_speed": (final - self.rewards[0]) / (len(self.rewards) / 100),
            "sample_efficiency": final / (samples / 1000),
            "is_censored": float(reached is None),
        }
        if reached is not None:
            found["episodes_to_threshold"] = float(reached)
            if (stability := compute_stability(self.rewards, reached)) is not None:
                found["stability_score"] = stability
        return found

    def find_convergence(self) -> int | None:
        return find_first_reaching(self.rewards, self.budget.threshold, self.budget.window)

    def detail(self) -> dict[str, Any]:
        return {
            "rewards": [round(reward, 5) for reward in self.rewards],
            "fault": self.fault,
            "samples": self.samples,
        }


def run_training(
    trainer: Trainer, budget: TrainingBudget, report_progress: Callable[[str], None]
) -> Training:
    """Train to the end of the budget, or until it diverges, which is a result as well."""
    training = Training(budget, trainer.untrained_reward)
    interval = max(1, min(_FIRST_PROGRESS, budget.episodes // _PROGRESS_STEPS))

    def record(reward: float) -> None:
        if not math.isfinite(reward):
            raise DivergenceError(f"the reward of episode {len(training.rewards) + 1} is {reward}")
        training.rewards.append(reward)
        if len(training.rewards) % interval == 0:
            recent = fmean(training.rewards[-budget.window :])
            report_progress(f"episode {len(training.rewards)} of {budget.episodes}, reward {recent:.2f}")

    try:
        trainer.train(budget.episodes, record)
        training.samples = trainer.show_samples()
    except DivergenceError as fault:
        training.fault = str(fault)
    return training


def check_rewards(rewards: Sequence[float], episode: int) -> None:
    """Raises DivergenceError where a task gave a reward that is no number: no gradient can be made of it."""
    wrong = [reward for reward in rewards if not math.isfinite(reward)]
    if wrong:
        raise DivergenceError(f"a reward of episode {episode} is {wrong[0]}")
