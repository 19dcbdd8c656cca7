"""Training in NumPy: sample a group of answers to one prompt, reward them, take a few gradient steps. That is an episode."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from assay.builtin.experiments.rl.objectives import Dpo, Grpo, Gspo, PolicyObjective, Ppo, Rollout
from assay.builtin.experiments.rl.policy import Adam, Ints, Policy
from assay.builtin.experiments.rl.tasks import Task
from assay.builtin.experiments.rl.training import DivergenceError, check_rewards

_BASELINE_GROUPS = 3
"""Groups for each prompt by which the reward before training is measured."""
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Recipe:
    """An objective with the rate of Adam, and the gradient steps that each group is used for."""

    objective: PolicyObjective
    rate: float = 0.002
    steps: int = 4


RECIPES: dict[str, Recipe] = {
    "grpo": Recipe(Grpo()),
    "gspo": Recipe(Gspo()),
    "ppo": Recipe(Ppo()),
    "dpo": Recipe(Dpo()),
}
"""The algorithms by name. Rates and steps are alike for all of them; docs/algorithms.md says how they were chosen."""


class Answers(NamedTuple):
    """A group of sampled answers, as rows of tokens in the order of the sequences."""

    contexts: Ints
    tokens: Ints
    sequence: Ints
    answers: list[list[int]]


class NativeTrainer:
    """A policy, its reference, and the algorithm that trains it; the seed decides all that is random."""

    def __init__(self, task: Task, recipe: Recipe, group_size: int, seed: int) -> None:
        self._task, self._recipe, self._group_size = task, recipe, group_size
        first, self._chance, baseline = map(np.random.default_rng, np.random.SeedSequence(seed).spawn(3))
        width = len(task.prompts[0]) + task.most_tokens
        self.policy = Policy(len(task.vocabulary), width, first)
        self._reference = self.policy.copy()
        self._adam = Adam(recipe.rate)
        self.untrained_reward = self._measure_reward(baseline)

    @property
    def settings(self) -> Mapping[str, str]:
        objective = type(self._recipe.objective).__name__.lower()
        return {"algorithm": objective, "backend": "native", "task": self._task.name}

    def train(self, episodes: int, record: Callable[[float], None]) -> None:
        order: list[int] = []
        for episode in range(1, episodes + 1):
            # Every prompt once, in a new order each time: no prompt is forgotten by chance.
            order = order or self._chance.permutation(len(self._task.prompts)).tolist()
            rollout = self.roll_out(self._task.prompts[order.pop()], episode)
            record(float(rollout.rewards.mean()))
            self._learn(rollout, episode)

    def show_samples(self) -> list[list[str]]:
        prompts = self._task.prompts[:: max(1, len(self._task.prompts) // _SHOWN)][:_SHOWN]
        sampled = [
            (prompt, sample_answers(self.policy, self._task, prompt, 1, self._chance)) for prompt in prompts
        ]
        return [self._task.describe(prompt, sample.answers[0]) for prompt, sample in sampled]

    def roll_out(self, prompt: tuple[int, ...], episode: int = 0) -> Rollout:
        sample = sample_answers(self.policy, self._task, prompt, self._group_size, self._chance)
        rewards = [self._task.reward(prompt, answer) for answer in sample.answers]
        check_rewards(rewards, episode)
        rows = np.arange(len(sample.tokens))
        old, reference = self.policy.forward(sample.contexts), self._reference.forward(sample.contexts)
        return Rollout(
            sample.contexts,
            sample.tokens,
            sample.sequence,
            np.array(rewards),
            old.logp[rows, sample.tokens],
            old.values,
            reference.logp[rows, sample.tokens],
        )

    def _learn(self, rollout: Rollout, episode: int) -> None:
        rows = np.arange(len(rollout.tokens))
        for _ in range(self._recipe.steps):
            activations = self.policy.forward(rollout.contexts)
            loss = self._recipe.objective(rollout, activations.logp[rows, rollout.tokens], activations.values)
            gradient = self.policy.backward(activations, rollout.tokens, loss.by_logp, loss.by_value)
            if not (np.isfinite(loss.value) and np.isfinite(gradient).all()):
                raise DivergenceError(
                    f"the loss of episode {episode} is {loss.value}, or its gradient is not finite"
                )
            self._adam.descend(self.policy.vector, gradient)

    def _measure_reward(self, chance: np.random.Generator) -> float:
        size = _BASELINE_GROUPS * self._group_size
        return float(
            np.mean(
                [
                    self._task.reward(prompt, answer)
                    for prompt in self._task.prompts
                    for answer in sample_answers(self.policy, self._task, prompt, size, chance).answers
                ]
            )
        )


def sample_answers(
    policy: Policy, task: Task, prompt: tuple[int, ...], size: int, chance: np.random.Generator
) -> Answers:
    """Sample token by token, all answers of the group at once; an answer that has ended gets no more rows."""
    start, padding = len(prompt), len(task.vocabulary)
    contexts = np.full((size, start + task.most_tokens), padding, dtype=np.int64)
    contexts[:, :start] = prompt
    alive, parts = np.arange(size), []
    for place in range(start, start + task.most_tokens):
        rows = contexts[alive]
        shares = np.exp(policy.forward(rows).logp).cumsum(axis=1)
        tokens = (shares < chance.random((len(alive), 1)) * shares[:, -1:]).sum(axis=1)
        parts.append((rows, tokens, alive))
        contexts[alive, place] = tokens
        alive = alive[tokens != task.end]
        if not len(alive):
            break
    seen, tokens, sequence = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(sequence, kind="stable")
    ends = np.bincount(sequence)
    answers = [row[start : start + end].tolist() for row, end in zip(contexts, ends, strict=True)]
    return Answers(seen[order], tokens[order], sequence[order], answers)
