"""Training with other people's code (extra `rl`): TRL for GRPO, GSPO and DPO, stable-baselines3 for PPO.

The policy is a Llama of a few thousand parameters that is created for the run, with a tokenizer whose words are the task's
vocabulary; or any causal model by name or folder. Nothing is downloaded: a model has to be on this machine.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from assay.builtin.experiments.rl.tasks import Task
from assay.builtin.experiments.rl.training import Trainer
from assay.errors import AssayError, MissingExtra

if TYPE_CHECKING:
    from assay.builtin.experiments.algorithm import AlgorithmParams

Record = Callable[[float], None]
_RATE = 0.002
_STEPS = 4
"""Gradient steps for each group, as the native backend has."""
_DPO_ROUND = 10
"""Episodes whose pairs DPO is trained with at a time: TRL's trainer takes a fixed set of pairs."""
_BASELINE_ANSWERS = 24
_QUIET = {
    "report_to": "none",
    "save_strategy": "no",
    "logging_strategy": "no",
    "disable_tqdm": True,
    "use_cpu": True,
    "bf16": False,
    "lr_scheduler_type": "constant",
}


def make_trl_trainer(task: Task, params: AlgorithmParams, seed: int) -> Trainer:
    """The trainer of an algorithm; MissingExtra where the packages are not installed, AssayError where the model is not here."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        import torch
        import transformers
        import trl  # noqa: F401

        if params.algorithm == "ppo":
            import stable_baselines3  # noqa: F401
    except ImportError as error:
        raise MissingExtra(f"The backend 'trl' needs {error.name}: pip install 'assay-bench[rl]'") from None
    logging.getLogger("trl").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    transformers.set_seed(seed)
    if params.algorithm == "ppo":
        if params.model is not None:
            raise AssayError(
                "'model' is not for PPO: the backend 'trl' takes PPO from stable-baselines3, which trains no language models. Leave 'model' out."
            )
        from assay.builtin.experiments.rl.sb3_backend import PpoTrainer

        return PpoTrainer(task, params.group_size, params.learning_rate or _RATE, seed)
    return LanguageModelTrainer(task, params, seed)


def make_tiny_model(task: Task) -> tuple[Any, Any]:
    """A Llama with about as many parameters as the native policy, and a tokenizer of the task's words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    padding, unknown = "<pad>", "<unknown>"
    words = {word: place for place, word in enumerate((*task.vocabulary, padding, unknown))}
    written = Tokenizer(models.WordLevel(words, unk_token=unknown))
    written.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=written, eos_token=task.vocabulary[task.end], pad_token=padding, unk_token=unknown
    )
    config = LlamaConfig(
        vocab_size=len(words), hidden_size=16, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2, max_position_embeddings=32, eos_token_id=task.end, pad_token_id=len(task.vocabulary),
        bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config), tokenizer


def load_model(name: str) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(name, local_files_only=True)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise AssayError(
            f"The model '{name}' cannot be loaded from this machine, and nothing is downloaded: {reason}"
        ) from None
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def cut_answer(ids: Sequence[int], ends: Collection[int], *, with_end: bool) -> list[int]:
    """The ids up to the first that ends an answer: the rest is padding, while padding before it was sampled and counts.

    >>> cut_answer([1, 9, 2, 6, 9, 9], {6}, with_end=True), cut_answer([1, 6], {6}, with_end=False)
    ([1, 9, 2, 6], [1])
    """
    place = next((place for place, token in enumerate(ids) if token in ends), len(ids))
    return list(ids[: place + with_end])


def read_answer(task: Task, text: str) -> list[int]:
    """The task's tokens up to its end; empty, which earns nothing, where a word is none of the task's or nothing was said."""
    words = text.split()[: task.most_tokens]
    end = task.vocabulary[task.end]
    if end in words:
        words = words[: words.index(end) + 1]
    places = {word: place for place, word in enumerate(task.vocabulary)}
    return [places[word] for word in words] if all(word in places for word in words) else []


def _name_algorithm(trainer: Any) -> str:
    """GRPOTrainer is grpo."""
    return type(trainer).__name__.removesuffix("Trainer").lower()


class LanguageModelTrainer:
    """GRPO, GSPO and DPO of TRL on one causal model."""

    def __init__(self, task: Task, params: AlgorithmParams, seed: int) -> None:
        self._task, self._params, self._seed = task, params, seed
        self._model, self._tokenizer = (
            make_tiny_model(task) if params.model is None else load_model(params.model)
        )
        self._algorithm = ""
        self._prompts = {self._write(prompt): prompt for prompt in task.prompts}
        self._most = task.most_tokens if params.model is None else 8 * task.most_tokens
        self.untrained_reward = self._measure_reward()

    @property
    def settings(self) -> Mapping[str, str]:
        """The algorithm is that of TRL's own trainer, once there is one."""
        known = {"backend": "trl", "task": self._task.name}
        return {"algorithm": self._algorithm, **known} if self._algorithm else known

    def train(self, episodes: int, record: Record) -> None:
        with tempfile.TemporaryDirectory() as folder:
            if self._params.algorithm == "dpo":
                self._train_dpo(episodes, record, folder)
            else:
                self._train_grpo(episodes, record, folder)

    def show_samples(self) -> list[list[str]]:
        samples = []
        for text, prompt in list(self._prompts.items())[:5]:
            answer = self._answer(text, 1)[0]
            tokens = read_answer(self._task, answer)
            samples.append(self._task.describe(prompt, tokens) if tokens else [f"{text}: {answer}"])
        return samples

    def _train_grpo(self, episodes: int, record: Record, folder: str) -> None:
        """One group for one prompt is a generation; GSPO is GRPO with one ratio for each sequence, and without a reference."""
        from datasets import Dataset
        from trl import GRPOConfig, GRPOTrainer

        def judge(prompts: list[str], completion_ids: list[list[int]], **_: Any) -> list[float]:
            # The texts that TRL gives lack the token that ends an answer, which the tasks look for.
            texts = self._decode(completion_ids)
            rewards = [self._reward(*pair) for pair in zip(prompts, texts, strict=True)]
            record(sum(rewards) / len(rewards))
            return rewards

        is_gspo = self._params.algorithm == "gspo"
        size = self._params.group_size
        settings = GRPOConfig(
            folder, learning_rate=self._rate, seed=self._seed, max_steps=episodes * _STEPS, per_device_train_batch_size=size,
            num_generations=size, num_iterations=_STEPS, steps_per_generation=1, max_completion_length=self._most,
            beta=0.0 if is_gspo else 0.1, loss_type="grpo", importance_sampling_level="sequence" if is_gspo else "token",
            **_QUIET,
        )  # fmt: skip
        data = Dataset.from_list([{"prompt": text} for text in self._prompts])
        # TRL loads the reference from where the model says that it comes from.
        self._model.save_pretrained(folder)
        self._model.config._name_or_path = folder
        trainer = GRPOTrainer(
            self._model, judge, args=settings, train_dataset=data, processing_class=self._tokenizer
        )
        is_by_sequence = trainer.args.importance_sampling_level == "sequence"
        self._algorithm = "gspo" if is_by_sequence else _name_algorithm(trainer)
        trainer.train()

    def _train_dpo(self, episodes: int, record: Record, folder: str) -> None:
        """Rounds of episodes: sample groups, then train with the best and the worst answer of each."""
        import copy
        import random

        from datasets import Dataset
        from trl import DPOConfig, DPOTrainer

        chance, reference = random.Random(self._seed), copy.deepcopy(self._model)
        for first in range(0, episodes, _DPO_ROUND):
            pairs = []
            for _ in range(min(_DPO_ROUND, episodes - first)):
                text = chance.choice(list(self._prompts))
                answers = self._answer(text, self._params.group_size)
                rewards = [self._reward(text, answer) for answer in answers]
                record(sum(rewards) / len(rewards))
                ranked = sorted(zip(rewards, answers, strict=True))
                if ranked[0][0] < ranked[-1][0]:
                    pairs.append(
                        {"prompt": text, "chosen": f" {ranked[-1][1]}", "rejected": f" {ranked[0][1]}"}
                    )
            if not pairs:
                continue
            settings = DPOConfig(
                folder, learning_rate=self._rate, seed=self._seed, num_train_epochs=_STEPS, beta=0.3,
                per_device_train_batch_size=len(pairs), **_QUIET,
            )  # fmt: skip
            data = Dataset.from_list(pairs)
            trainer = DPOTrainer(
                self._model, copy.deepcopy(reference), args=settings, train_dataset=data, processing_class=self._tokenizer
            )  # fmt: skip
            self._algorithm = _name_algorithm(trainer)
            trainer.train()

    @property
    def _rate(self) -> float:
        return self._params.learning_rate or (_RATE if self._params.model is None else 1e-5)

    def _write(self, prompt: Sequence[int]) -> str:
        return " ".join(self._task.vocabulary[token] for token in prompt)

    def _reward(self, prompt: str, completion: str) -> float:
        tokens = read_answer(self._task, completion)
        return self._task.reward(self._prompts[prompt], tokens) if tokens else 0.0

    def _answer(self, prompt: str, size: int) -> list[str]:
        import torch

        inputs = self._tokenizer([prompt] * size, return_tensors="pt")
        with torch.no_grad():
            generated = self._model.generate(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], do_sample=True, top_k=0,
                max_new_tokens=self._most, pad_token_id=self._tokenizer.pad_token_id,
            )  # fmt: skip
        new = generated[:, inputs["input_ids"].shape[1] :]
        return self._decode(new.tolist())

    def _decode(self, answers: Sequence[Sequence[int]]) -> list[str]:
        """The one way from sampled ids to text, for training and for all that is sampled beside it."""
        found = self._model.generation_config.eos_token_id
        ends = {self._tokenizer.eos_token_id, *(found if isinstance(found, list) else [found])}
        # For the tiny model, the end is a word of the task; for any other, it is no part of the text.
        is_word = self._params.model is None
        kept = [cut_answer(ids, ends, with_end=is_word) for ids in answers]
        return [text.strip() for text in self._tokenizer.batch_decode(kept)]

    def _measure_reward(self) -> float:
        rewards = [
            self._reward(text, a) for text in self._prompts for a in self._answer(text, _BASELINE_ANSWERS)
        ]
        return sum(rewards) / len(rewards)
