"""Train a policy with Assay's own NumPy backend: python native.py"""

from assay.builtin.experiments.rl.native import RECIPES, NativeTrainer
from assay.builtin.experiments.rl.tasks import TASKS


def train(task_name, samples, group_size, seed, on_group):
    trainer = NativeTrainer(TASKS[task_name], RECIPES["grpo"], group_size, seed)
    trainer.train(samples // group_size, on_group)
    return trainer.policy.vector.size


if __name__ == "__main__":
    train("arithmetic", 1000, 8, 42, print)
