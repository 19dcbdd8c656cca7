"""The losses of GRPO, GSPO, PPO and DPO, each with its derivative by the log-probability of every sampled token.

A loss sees rows: one for each token that the policy sampled, in the order of the sequences. docs/algorithms.md has the
equations and their sources. Ratios are π ÷ π_old of the policy that sampled; `reference` is the policy before training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from assay.builtin.experiments.rl.policy import Floats, Ints

_TINY = 1e-8


@dataclass(frozen=True, slots=True)
class Rollout:
    """A group of sequences for one prompt, as rows of sampled tokens."""

    contexts: Ints
    tokens: Ints
    sequence: Ints
    """The number of each row's sequence."""
    rewards: Floats
    """One for each sequence."""
    old_logp: Floats
    """Log probability of each row's token when it was sampled."""
    old_values: Floats
    reference_logp: Floats

    @property
    def lengths(self) -> Floats:
        return np.bincount(self.sequence, minlength=len(self.rewards)).astype(np.float64)

    def sum_rows(self, values: Floats) -> Floats:
        """One sum for each sequence."""
        return np.bincount(self.sequence, values, len(self.rewards)).astype(np.float64)


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A value to be lowered, and its derivatives by the log-probability, and by the value, of each row."""

    value: float
    by_logp: Floats
    by_value: Floats | None = None


class PolicyObjective(Protocol):
    """Computes a loss from a rollout and the present log-probabilities and values of its rows."""

    def __call__(self, rollout: Rollout, logp: Floats, values: Floats) -> PolicyLoss: ...


def normalize_rewards(rewards: Floats) -> Floats:
    """(r − mean) ÷ standard deviation of the group: the advantage of GRPO and GSPO; 0 where all rewards are alike."""
    normal: Floats = (rewards - rewards.mean()) / (rewards.std() + _TINY)
    return normal


def _clip_surrogate(ratio: Floats, advantage: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """min(r·A, clip(r, 1 − low, 1 + high)·A), and its derivative by log r, which is 0 where the clipped term is smaller."""
    free, clipped = ratio * advantage, np.clip(ratio, 1 - low, 1 + high) * advantage
    return np.minimum(free, clipped), np.where(free <= clipped, free, 0.0)


@dataclass(frozen=True, slots=True)
class Grpo:
    """Shao et al. 2024 (DeepSeekMath), equation 3, with the estimator of the KL divergence of equation 4."""

    clip: float = 0.2
    beta: float = 0.1

    def __call__(self, rollout: Rollout, logp: Floats, values: Floats) -> PolicyLoss:
        advantage = normalize_rewards(rollout.rewards)[rollout.sequence]
        gain, by_ratio = _clip_surrogate(np.exp(logp - rollout.old_logp), advantage, self.clip, self.clip)
        gap = rollout.reference_logp - logp
        divergence, by_divergence = np.exp(gap) - gap - 1.0, 1.0 - np.exp(gap)
        # The mean over sequences of the mean over their tokens.
        weight = 1.0 / (len(rollout.rewards) * rollout.lengths[rollout.sequence])
        value = -float((weight * (gain - self.beta * divergence)).sum())
        return PolicyLoss(value, -weight * (by_ratio - self.beta * by_divergence))


@dataclass(frozen=True, slots=True)
class Gspo:
    """Zheng et al. 2025, equations 5 to 7: one ratio for a whole sequence, the geometric mean of its tokens' ratios."""

    clip_low: float = 0.2
    clip_high: float = 0.2

    def __call__(self, rollout: Rollout, logp: Floats, values: Floats) -> PolicyLoss:
        lengths = rollout.lengths
        ratio = np.exp(rollout.sum_rows(logp - rollout.old_logp) / lengths)
        advantage = normalize_rewards(rollout.rewards)
        gain, by_ratio = _clip_surrogate(ratio, advantage, self.clip_low, self.clip_high)
        return PolicyLoss(-float(gain.mean()), -(by_ratio / lengths)[rollout.sequence] / len(lengths))


@dataclass(frozen=True, slots=True)
class Ppo:
    """Schulman et al. 2017, equation 9 without the entropy bonus; advantages by GAE (Schulman et al. 2016, equation 16)."""

    clip: float = 0.2
    value_weight: float = 0.5
    trace: float = 0.95
    """λ of GAE. γ is 1: only the last token of a sequence is rewarded."""

    def __call__(self, rollout: Rollout, logp: Floats, values: Floats) -> PolicyLoss:
        estimate = estimate_advantages(rollout, self.trace)
        target = estimate + rollout.old_values
        advantage = normalize_rewards(estimate)
        gain, by_ratio = _clip_surrogate(np.exp(logp - rollout.old_logp), advantage, self.clip, self.clip)
        error = values - target
        value = -float(gain.mean()) + 0.5 * self.value_weight * float((error**2).mean())
        return PolicyLoss(value, -by_ratio / len(logp), self.value_weight * error / len(logp))


def estimate_advantages(rollout: Rollout, trace: float) -> Floats:
    """Â_t = Σ_l λ^l δ_{t+l}, where δ_t = r_t + V(s_{t+1}) − V(s_t), from the last row to the first."""
    sequence, found = rollout.sequence, np.zeros(len(rollout.tokens))
    for row in range(len(found) - 1, -1, -1):
        is_last = row + 1 == len(found) or sequence[row + 1] != sequence[row]
        ahead = rollout.rewards[sequence[row]] if is_last else rollout.old_values[row + 1]
        found[row] = ahead - rollout.old_values[row] + (0.0 if is_last else trace * found[row + 1])
    return found


@dataclass(frozen=True, slots=True)
class Dpo:
    """Rafailov et al. 2023, equation 7, on pairs of a group that is sampled anew each time (Guo et al. 2024)."""

    beta: float = 0.3

    def __call__(self, rollout: Rollout, logp: Floats, values: Floats) -> PolicyLoss:
        better, worse = np.nonzero(rollout.rewards[:, None] > rollout.rewards[None, :])
        if not len(better):
            return PolicyLoss(0.0, np.zeros_like(logp))
        gain = self.beta * rollout.sum_rows(logp - rollout.reference_logp)
        margin = gain[better] - gain[worse]
        # −log σ(z) and its derivative −σ(−z), both without overflow.
        value = float(np.logaddexp(0.0, -margin).mean())
        slope = self.beta * np.exp(-np.logaddexp(0.0, margin)) / len(margin)
        number = len(rollout.rewards)
        by_sequence = np.zeros(number)
        np.add.at(by_sequence, worse, slope)
        np.subtract.at(by_sequence, better, slope)
        return PolicyLoss(value, by_sequence[rollout.sequence])
