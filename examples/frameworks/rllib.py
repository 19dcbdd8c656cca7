"""Train a policy with RLlib's PPO: python rllib.py (needs ray[rllib] and torch)"""

import os
import random
import sys

import gymnasium
import numpy as np

os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig

from assay.builtin.experiments.rl.tasks import TASKS


class Answering(gymnasium.Env):
    def __init__(self, config):
        self.task, self.chance = TASKS[config["task"]], random.Random(config["seed"])
        self.width = len(self.task.prompts[0]) + self.task.most_tokens
        self.action_space = gymnasium.spaces.Discrete(len(self.task.vocabulary))
        shape = (self.width * len(self.task.vocabulary),)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, shape, np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.prompt = self.chance.choice(self.task.prompts)
        self.answer = []
        return self.observe(), {}

    def step(self, action):
        self.answer.append(int(action))
        is_over = action == self.task.end or len(self.answer) == self.task.most_tokens
        reward = self.task.reward(self.prompt, self.answer) if is_over else 0.0
        return self.observe(), reward, is_over, False, {}

    def observe(self):
        seen = np.zeros((self.width, len(self.task.vocabulary)), np.float32)
        for place, token in enumerate((*self.prompt, *self.answer)):
            seen[place, token] = 1.0
        return seen.ravel()


def train(task_name, samples, group_size, seed, on_group):
    ray.init(num_cpus=1, include_dashboard=False, configure_logging=False, log_to_driver=False)
    try:
        batch = group_size * TASKS[task_name].most_tokens
        settings = (
            PPOConfig()
            .environment(Answering, env_config={"task": task_name, "seed": seed})
            .env_runners(num_env_runners=0, batch_mode="complete_episodes")
            .training(lr=0.002, train_batch_size=batch, minibatch_size=batch, num_epochs=4, gamma=1.0)
            .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[64], fcnet_activation="tanh"))
            .debugging(seed=seed)
        )
        algorithm = settings.build_algo()
        made = told = 0
        while made < samples:
            found = algorithm.train()["env_runners"]
            made += int(found["num_episodes"])
            # RLlib reports the mean of its last 100 answers, not of a group; what is left over belongs to the next group.
            while told < made // group_size:
                told += 1
                on_group(float(found["episode_return_mean"]))
        weights = algorithm.get_module().state_dict()
        return sum(part.numel() for part in weights.values())
    finally:
        ray.shutdown()


if __name__ == "__main__":
    train(sys.argv[1] if len(sys.argv) > 1 else "arithmetic", 1000, 8, 42, print)
