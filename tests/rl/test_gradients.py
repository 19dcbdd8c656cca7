from __future__ import annotations

import numpy as np
import pytest

from assay.builtin.experiments.rl.native import NativeTrainer, Recipe
from assay.builtin.experiments.rl.objectives import Dpo, Grpo, Gspo, PolicyObjective, Ppo, estimate_advantages
from assay.builtin.experiments.rl.tasks import TASKS

OBJECTIVES = (Grpo(), Gspo(), Ppo(), Dpo())


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda objective: type(objective).__name__)
@pytest.mark.parametrize("seed", range(3))
def test_the_gradient_of_an_objective_agrees_with_finite_differences(
    objective: PolicyObjective, seed: int
) -> None:
    """Off the policy that sampled, where ratios differ from 1 and some of them are clipped."""
    task = TASKS["customer_service"]
    trainer = NativeTrainer(task, Recipe(objective), 6, seed)
    rollout = trainer.roll_out(task.prompts[seed])
    chance, policy, rows = np.random.default_rng(seed), trainer.policy, np.arange(len(rollout.tokens))
    policy.vector += chance.normal(0.0, 0.05, policy.vector.shape)

    def lose() -> float:
        made = policy.forward(rollout.contexts)
        return objective(rollout, made.logp[rows, rollout.tokens], made.values).value

    made = policy.forward(rollout.contexts)
    loss = objective(rollout, made.logp[rows, rollout.tokens], made.values)
    gradient = policy.backward(made, rollout.tokens, loss.by_logp, loss.by_value)
    assert np.abs(gradient).max() > 1e-3
    for direction in chance.normal(size=(12, policy.vector.size)) / np.sqrt(policy.vector.size):
        origin, step = policy.vector.copy(), 1e-5
        policy.vector = origin + step * direction
        ahead = lose()
        policy.vector = origin - step * direction
        behind = lose()
        policy.vector = origin
        assert (ahead - behind) / (2 * step) == pytest.approx(float(gradient @ direction), rel=1e-4, abs=1e-7)


def test_on_the_policy_that_sampled_grpo_without_a_reference_and_gspo_have_the_same_gradient() -> None:
    """All ratios are 1, and the derivative of a geometric mean is the mean of the derivatives."""
    task = TASKS["arithmetic"]
    rollout = NativeTrainer(task, Recipe(Grpo()), 8, 5).roll_out(task.prompts[4])
    first, second = (
        objective(rollout, rollout.old_logp, rollout.old_values) for objective in (Grpo(beta=0.0), Gspo())
    )
    np.testing.assert_allclose(first.by_logp, second.by_logp, atol=1e-12)


def test_advantages_with_a_full_trace_are_what_the_value_head_did_not_expect() -> None:
    """GAE with λ = γ = 1 is the return less the value (Schulman et al. 2016, equation 18)."""
    task = TASKS["customer_service"]
    rollout = NativeTrainer(task, Recipe(Ppo()), 4, 1).roll_out(task.prompts[0])
    expected = rollout.rewards[rollout.sequence] - rollout.old_values
    np.testing.assert_allclose(estimate_advantages(rollout, 1.0), expected)


def test_a_group_whose_rewards_are_alike_teaches_nothing() -> None:
    task = TASKS["customer_service"]
    rollout = NativeTrainer(task, Recipe(Grpo()), 4, 1).roll_out(task.prompts[0])
    rollout.rewards[:] = 0.5
    for objective in (Grpo(beta=0.0), Gspo(), Dpo()):
        assert not objective(rollout, rollout.old_logp, rollout.old_values).by_logp.any()
