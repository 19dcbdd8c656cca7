"""One reinforcement learning algorithm, trained on one task from one seed; the spec `algorithm_comparison` sweeps them.

A process is a seed, and a seed is the unit of comparison: each process trains one policy from the beginning. What the backends
in `rl` yield is the reward of each episode, of which `rl/training.py` makes figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, Field, field_validator, model_validator

from assay.builtin.experiments.rl.tasks import TASKS
from assay.builtin.experiments.rl.training import Trainer, Training, TrainingBudget, run_training
from assay.errors import format_unknown_name
from assay.model import Better, Metric, describe_metrics
from assay.plugin import peak_memory
from assay.plugin.experiment import Experiment, ExperimentContext
from assay.plugin.outcome import Outcome

_METRICS = (
    Metric("final_reward", "", Better.HIGHER),
    Metric("untrained_reward", "", Better.UNKNOWN),
    Metric("mean_reward", "", Better.HIGHER),
    Metric("std_reward", "", Better.UNKNOWN),
    Metric("episodes_to_threshold", "episodes", Better.LOWER),
    Metric("episodes_made", "episodes", Better.UNKNOWN),
    Metric("is_censored", "", Better.UNKNOWN),
    Metric("diverged", "", Better.UNKNOWN),
    Metric("convergence_speed", "", Better.HIGHER),
    Metric("stability_score", "", Better.LOWER),
    Metric("sample_efficiency", "", Better.HIGHER),
    Metric("samples_per_sec", "1/s", Better.HIGHER),
    Metric("peak_bytes", "bytes", Better.LOWER),
)


class AlgorithmParams(BaseModel):
    """An algorithm, a task and a budget, which is the same for all algorithms of a comparison."""

    algorithm: str = Field(default="grpo", description="grpo, gspo, ppo or dpo.")
    backend: Literal["native", "trl", "stub"] = Field(
        default="native",
        description="What trains: NumPy, TRL and stable-baselines3 (extra `rl`), or nothing (made-up curves, marked simulated).",
    )
    task: Literal["customer_service", "arithmetic"] = Field(
        default="customer_service", description="Task that the policy learns."
    )
    episodes: int = Field(
        default=300, ge=1, le=1_000_000, description="Groups of answers that a policy is trained with."
    )
    group_size: int = Field(
        default=8,
        ge=2,
        le=1024,
        description="Answers to one prompt in an episode; advantages are relative to them.",
    )
    threshold: float = Field(
        default=0.8, gt=0, le=1, description="Share of the highest reward from which a policy has converged."
    )
    window: int = Field(
        default=25, ge=1, description="Episodes whose mean reward is compared with the threshold."
    )
    learning_rate: float | None = Field(
        default=None, gt=0, description="Step size; default: the backend's, the same for all algorithms."
    )
    model: str | None = Field(
        default=None,
        description="Name or folder of a model for the backend trl; default: a tiny one that is created for the run.",
    )

    @field_validator("algorithm")
    @classmethod
    def _is_known(cls, name: str) -> str:
        from assay.builtin.experiments.rl.native import RECIPES

        if name not in RECIPES:
            raise ValueError(format_unknown_name(name, "algorithms", RECIPES))
        return name

    @model_validator(mode="after")
    def _has_use_for_model(self) -> AlgorithmParams:
        if self.model is not None and self.backend != "trl":
            raise ValueError(f"'model' is for the backend 'trl'; '{self.backend}' has a policy of its own")
        return self


class AlgorithmExperiment(Experiment):
    """Trains a policy; `seconds` is the training without its preparation. A training that diverges is a result, too."""

    Params: ClassVar[Any] = AlgorithmParams
    metrics: ClassVar[Mapping[str, Metric]] = describe_metrics(*_METRICS)
    failures_are_results: ClassVar[bool] = True
    params: AlgorithmParams

    def prepare_once(self, context: ExperimentContext) -> None:
        """A policy is trained once only: each execution has a new one, from a seed of its own."""
        self._seed = context.seed + 1000 * context.execution
        self._trainer = self._make_trainer(self._seed)
        context.read_back(**self._trainer.settings)
        if self._trainer.settings["backend"] == "stub":
            context.read_back(simulated=True)

    def execute_once(self, context: ExperimentContext) -> tuple[Training, float]:
        params = self.params
        budget = TrainingBudget(params.episodes, params.group_size, params.threshold, params.window)
        began = perf_counter()
        training = run_training(self._trainer, budget, context.report_progress)
        seconds = perf_counter() - began
        # Once more: other people's trainers are made, and can be asked, only when they train.
        context.read_back(**self._trainer.settings)
        return training, seconds

    def read(self, result: tuple[Training, float]) -> Outcome:
        training, seconds = result
        figures = training.compute_figures()
        if seconds > 0:
            figures["samples_per_sec"] = len(training.rewards) * self.params.group_size / seconds
        if (peak := peak_memory()) is not None:
            figures["peak_bytes"] = float(peak)
        return Outcome(
            figures,
            {"ended": "diverged" if training.fault else "trained", "episodes": len(training.rewards)},
            problem=f"diverged: {training.fault}" if training.fault else None,
            seconds=seconds,
            detail={"training": {"seed": self._seed, **training.detail()}},
        )

    def _make_trainer(self, seed: int) -> Trainer:
        params, task = self.params, TASKS[self.params.task]
        if params.backend == "stub":
            from assay.builtin.experiments.rl.stub import StubTrainer

            return StubTrainer(params.algorithm, seed)
        if params.backend == "trl":
            from assay.builtin.experiments.rl.trl_backend import make_trl_trainer

            return make_trl_trainer(task, params, seed)
        from dataclasses import replace

        from assay.builtin.experiments.rl.native import RECIPES, NativeTrainer

        recipe = RECIPES[params.algorithm]
        return NativeTrainer(
            task, replace(recipe, rate=params.learning_rate or recipe.rate), params.group_size, seed
        )
