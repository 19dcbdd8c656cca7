"""Train a policy with a loop of one's own in PyTorch: python custom.py (needs torch)"""

import random

import torch
from torch import nn

from assay.builtin.experiments.rl.tasks import TASKS


class Policy(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.embedding = nn.Embedding(tokens + 1, 16)
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(16 * width, 64), nn.Tanh(), nn.Linear(64, tokens))

    def forward(self, contexts):
        return torch.log_softmax(self.layers(self.embedding(contexts)), dim=-1)


def sample(policy, task, prompt, size):
    """Contexts, tokens and a mask for each step of a group of answers."""
    width = len(prompt) + task.most_tokens
    contexts = torch.full((size, width), len(task.vocabulary))
    contexts[:, : len(prompt)] = torch.tensor(prompt)
    alive, steps = torch.ones(size, dtype=torch.bool), []
    for place in range(len(prompt), width):
        with torch.no_grad():
            tokens = torch.multinomial(policy(contexts).exp(), 1)[:, 0]
        steps.append((contexts.clone(), tokens, alive.clone()))
        contexts[alive, place] = tokens[alive]
        alive &= tokens != task.end
    return contexts[:, len(prompt) :], steps


def logp(policy, steps):
    """The log-probability of every sampled token: answers × steps."""
    chosen = [policy(seen).gather(1, tokens[:, None])[:, 0] for seen, tokens, _ in steps]
    return torch.stack(chosen, dim=1)


def train(task_name, samples, group_size, seed, on_group):
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    task, chance = TASKS[task_name], random.Random(seed)
    policy = Policy(len(task.vocabulary), len(task.prompts[0]) + task.most_tokens)
    adam = torch.optim.Adam(policy.parameters(), lr=0.002)
    for _ in range(samples // group_size):
        prompt = chance.choice(task.prompts)
        answers, steps = sample(policy, task, prompt, group_size)
        mask = torch.stack([alive for _, _, alive in steps], dim=1).float()
        lengths = mask.sum(dim=1).int().tolist()
        pairs = zip(answers.tolist(), lengths, strict=True)
        rewards = torch.tensor(
            [task.reward(prompt, row[:length]) for row, length in pairs], dtype=torch.float32
        )
        on_group(rewards.mean().item())
        advantage = ((rewards - rewards.mean()) / (rewards.std() + 1e-6))[:, None]
        old = logp(policy, steps).detach()
        for _ in range(4):
            ratio = (logp(policy, steps) - old).exp()
            gain = torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
            loss = -((gain * mask).sum(dim=1) / mask.sum(dim=1)).mean()
            adam.zero_grad()
            loss.backward()
            adam.step()
    return sum(part.numel() for part in policy.parameters())


if __name__ == "__main__":
    train("arithmetic", 1000, 8, 42, print)
