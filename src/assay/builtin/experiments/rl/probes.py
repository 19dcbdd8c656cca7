"""What frameworks offer, as facts: each was found by a probe that ran where the framework is installed.

Seed 000 gave frameworks scores for features and ease of use. A score hides what was looked at; a probe is an import, an attribute
or an argument that anyone can check.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

PROBES: Mapping[str, Mapping[str, str]] = {
    "native": {
        "grpo": "assay.builtin.experiments.rl.objectives:Grpo",
        "gspo": "assay.builtin.experiments.rl.objectives:Gspo",
        "ppo": "assay.builtin.experiments.rl.objectives:Ppo",
        "dpo": "assay.builtin.experiments.rl.objectives:Dpo",
        "multi_turn": "assay.builtin.experiments.rl.tasks:CustomerService",
        "built_in_rewards": "assay.builtin.experiments.rl.tasks:TASKS",
        "api_server": "assay.server.app:create_app",
        "monitoring": "assay.plugin.experiment:ExperimentContext.remark",
    },
    "trl": {
        "grpo": "trl:GRPOTrainer",
        "gspo": "trl:GRPOConfig(importance_sampling_level)",
        "ppo": "trl:PPOTrainer",
        "dpo": "trl:DPOTrainer",
        "multi_turn": "trl:GRPOTrainer(environment_factory)",
        "built_in_rewards": "trl.rewards:think_format_reward",
        "api_server": "trl.scripts.vllm_serve:main",
        "monitoring": "trl:GRPOConfig(report_to)",
    },
    "rllib": {
        "grpo": "ray.rllib.algorithms.grpo:GRPO",
        "gspo": "ray.rllib.algorithms.gspo:GSPO",
        "ppo": "ray.rllib.algorithms.ppo:PPO",
        "dpo": "ray.rllib.algorithms.dpo:DPO",
        "multi_turn": "ray.rllib.env.multi_agent_env:MultiAgentEnv",
        "built_in_rewards": "ray.rllib.rewards:rewards",
        "api_server": "ray.serve:run",
        "monitoring": "ray.rllib.callbacks.callbacks:RLlibCallback",
    },
    "custom": {},
}
"""Framework to feature to `module:attribute`, with an argument in brackets where one has to be accepted."""


def probe_features(framework: str) -> list[dict[str, Any]]:
    """Return each feature with its probe and whether the probe found it."""
    return [
        {"feature": feature, "probe": probe, "found": is_found(probe)}
        for feature, probe in PROBES[framework].items()
    ]


def is_found(probe: str) -> bool:
    """
    >>> is_found("json:dumps(indent)"), is_found("json:dumps(nonsense)"), is_found("json.nothing:x")
    (True, False, False)
    """
    module, _, name = probe.partition(":")
    name, _, argument = name.rstrip(")").partition("(")
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return not argument or argument in inspect.signature(found).parameters
    except Exception:
        # A module may fail to import for want of a package of its own: then it offers nothing here.
        return False
