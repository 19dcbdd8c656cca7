"""PPO of stable-baselines3 on a task, as an environment whose actions are tokens; part of the backend `trl`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

from assay.builtin.experiments.rl.tasks import Task

_BASELINE_ANSWERS = 24


class TokenEnvironment(gymnasium.Env):  # type: ignore[misc]
    """One answer is one episode of the environment; the observation is the context, one-hot, and only the end is rewarded."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._width = len(task.prompts[0]) + task.most_tokens
        self.action_space = gymnasium.spaces.Discrete(len(task.vocabulary))
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, (self._width * len(task.vocabulary),), np.float32
        )
        self._answer: list[int] = []

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.prompt = self._task.prompts[int(self.np_random.integers(len(self._task.prompts)))]
        self._answer = []
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._answer.append(int(action))
        is_over = int(action) == self._task.end or len(self._answer) == self._task.most_tokens
        reward = self._task.reward(self.prompt, self._answer) if is_over else 0.0
        return self._observe(), reward, is_over, False, {"answer": list(self._answer)} if is_over else {}

    def _observe(self) -> Any:
        seen = np.zeros((self._width, len(self._task.vocabulary)), np.float32)
        for place, token in enumerate((*self.prompt, *self._answer)):
            seen[place, token] = 1.0
        return seen.ravel()


class GroupRecorder(BaseCallback):  # type: ignore[misc]
    """Counts finished answers; as many as a group has are one episode of the comparison."""

    def __init__(self, group_size: int, episodes: int, record: Callable[[float], None]) -> None:
        super().__init__()
        self._size, self._left, self._record = group_size, episodes, record
        self._rewards: list[float] = []

    def _on_step(self) -> bool:
        rewards, ends = self.locals["rewards"], self.locals["dones"]
        self._rewards += [float(reward) for reward, is_end in zip(rewards, ends, strict=True) if is_end]
        while len(self._rewards) >= self._size and self._left:
            group, self._rewards = self._rewards[: self._size], self._rewards[self._size :]
            self._left -= 1
            self._record(sum(group) / len(group))
        return self._left > 0


class PpoTrainer:
    """A policy of one hidden layer of 64, as the native one; a rollout is as long as a group of the longest answers."""

    def __init__(self, task: Task, group_size: int, rate: float, seed: int) -> None:
        self._task, self._group_size, self._environment = task, group_size, TokenEnvironment(task)
        steps = group_size * task.most_tokens
        self._model = PPO(
            "MlpPolicy", self._environment, learning_rate=rate, n_steps=steps, batch_size=steps, n_epochs=4, gamma=1.0,
            gae_lambda=0.95, clip_range=0.2, policy_kwargs={"net_arch": [64]}, seed=seed, device="cpu",
        )  # fmt: skip
        self.untrained_reward = float(
            np.mean([self._sample()[1] for _ in range(_BASELINE_ANSWERS * len(task.prompts))])
        )

    @property
    def settings(self) -> Mapping[str, str]:
        return {"algorithm": type(self._model).__name__.lower(), "backend": "trl", "task": self._task.name}

    def train(self, episodes: int, record: Callable[[float], None]) -> None:
        most = (episodes + 1) * self._group_size * self._task.most_tokens
        self._model.learn(most, GroupRecorder(self._group_size, episodes, record))

    def show_samples(self) -> list[list[str]]:
        return [self._sample()[0] for _ in range(5)]

    def _sample(self) -> tuple[list[str], float]:
        seen, _ = self._environment.reset()
        while True:
            action, _ = self._model.predict(seen)
            seen, reward, is_over, _, about = self._environment.step(action)
            if is_over:
                return self._task.describe(self._environment.prompt, about["answer"]), reward
